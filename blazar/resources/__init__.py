# SPDX-License-Identifier: Apache-2.0
"""Resource types and kinds of resources: the contract of both, and a folder a kind.

A type translates reservation parameters into demands, and ensures in the cloud what was promised. It never searches
for free resources: it returns a ``Demand``, and is told what was allocated. Beside it stand the registration of its
kind, the service for operators, and the watch that polls it. What may enter: the ports of ``clouds``, the store and
values; no HTTP.
"""
