# SPDX-License-Identifier: Apache-2.0
"""The domain as frozen values: what a lease, a reservation, a demand and a resource *are*.

What may enter: values and pure functions. No I/O, no clock, no library but the standard one.
Times are aware ``datetime`` in UTC; amounts carry their unit in the name.
"""
