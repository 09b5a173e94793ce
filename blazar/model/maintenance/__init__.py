# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows, in which hosts are booked out over existing leases."""
