# SPDX-License-Identifier: Apache-2.0
"""Leases that go to another project, or another user: offers, and their acceptance."""
