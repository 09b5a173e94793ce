# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: the addresses that can be reserved, and their reservations."""
