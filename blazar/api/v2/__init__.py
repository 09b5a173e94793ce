# SPDX-License-Identifier: Apache-2.0
"""Version 2 of the API, deprecated: bare objects and arrays, ``before_end_date`` and ``before_end_action``.

What may enter: what it does not share with version 1. Its handlers, and so who may do what, are the same.
"""
