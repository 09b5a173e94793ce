# SPDX-License-Identifier: Apache-2.0
"""Tables, queries and migrations: the only package with SQL.

It takes and returns domain values, never rows. The number of statements of a request does not grow with hosts, leases
or reservations, and each transaction is as short as the write it protects.
"""
