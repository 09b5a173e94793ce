# SPDX-License-Identifier: Apache-2.0
"""Requests of users on leases: create, change, delete."""
