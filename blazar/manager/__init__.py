# SPDX-License-Identifier: Apache-2.0
"""Leases from request to release: the rules of requests, the booking, the events, what users are told.

What may enter: decisions as pure functions over values (``lifecycle``, ``dates``), and thin services that read, decide
and write. It speaks to the store, the resource types and the cloud's ports; no SQL, no HTTP.
"""
