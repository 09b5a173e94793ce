# SPDX-License-Identifier: Apache-2.0
"""Tables, queries and migrations: the only room that knows SQL.

It returns and takes domain values and leaks no rows. A request costs a number of statements that does not grow
with hosts, leases or reservations, and each transaction is as short as the write it protects.
"""
