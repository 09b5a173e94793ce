# SPDX-License-Identifier: Apache-2.0
"""The framework: routes as data, and what is done for each of them.

Versions, policy, bodies, queries, dates, errors, tags, the OpenAPI document. What may enter: what every noun needs.
"""
