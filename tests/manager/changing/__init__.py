# SPDX-License-Identifier: Apache-2.0
"""Leases are made, changed and deleted."""
