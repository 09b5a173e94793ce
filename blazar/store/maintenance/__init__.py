# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows, and what they do to leases."""
