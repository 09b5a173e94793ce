# SPDX-License-Identifier: Apache-2.0
"""Leases: routes, formats of requests and responses in both versions of the API, and a cache of rendered leases."""
