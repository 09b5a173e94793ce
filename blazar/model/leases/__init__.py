# SPDX-License-Identifier: Apache-2.0
"""Leases: their values, their states and stored forms, and what is asked of them."""
