# SPDX-License-Identifier: Apache-2.0
"""Leases without their surroundings: the lifecycle as pure decisions, the plan of resources, and flags."""
