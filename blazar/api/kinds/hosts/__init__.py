# SPDX-License-Identifier: Apache-2.0
"""Hosts: registration, allocations and capabilities, and reservations of whole hosts."""
