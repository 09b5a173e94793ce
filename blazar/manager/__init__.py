# SPDX-License-Identifier: Apache-2.0
"""Leases from request to release: requests of users, events, health, and what others are notified of.

A room for each noun, each using only rooms below it (see the contracts of import-linter); ``service`` builds a manager
of them. What may enter: decisions as pure functions over values (``leases.lifecycle``, ``leases.dates``), and
thin services that read, decide and write. They speak to the store, the resource types and the
cloud's ports; no SQL, no HTTP.
"""
