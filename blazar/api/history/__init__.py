# SPDX-License-Identifier: Apache-2.0
"""Histories of leases: who did what, as far as the caller may know."""
