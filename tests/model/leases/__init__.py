# SPDX-License-Identifier: Apache-2.0
"""Leases and what is remembered of them."""
