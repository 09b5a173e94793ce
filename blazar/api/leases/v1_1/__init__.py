# SPDX-License-Identifier: Apache-2.0
"""Leases from microversion 1.1 on: in full shape, with past ones, in pages, and with dates of any zone."""
