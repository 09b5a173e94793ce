# SPDX-License-Identifier: Apache-2.0
"""Leases: ``v1_0`` for existing clients and version 2, ``v1_1`` from microversion 1.1 on, and what both need."""
