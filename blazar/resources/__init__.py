# SPDX-License-Identifier: Apache-2.0
"""Resource types: what reservation parameters ask of the calendar, and what to do in a cloud for what was promised.

One module a type. A type never looks for free resources: it says what is wanted (a ``Demand``), and *ensures* in
the cloud what was allocated. What may enter: the ports of ``clouds`` and values; no database, no HTTP.
"""
