# SPDX-License-Identifier: Apache-2.0
"""Leases: each one, pages of them, and what they have made in clouds."""
