# SPDX-License-Identifier: Apache-2.0
"""Resource types: translate reservation parameters into demands, and ensure in the cloud what was promised.

One module per type. A type never searches for free resources: it returns a ``Demand``, and ensures in the cloud what
was allocated. What may enter: the ports of ``clouds`` and values; no database, no HTTP.
"""
