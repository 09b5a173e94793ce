# SPDX-License-Identifier: Apache-2.0
"""Offers of leases to other projects."""
