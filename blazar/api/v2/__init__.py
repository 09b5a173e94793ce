# SPDX-License-Identifier: Apache-2.0
"""Version 2 of the API, deprecated: bare objects and arrays, ``before_end_date`` and ``before_end_action``.

What may enter: formats that differ from version 1. The handlers, and so the policy checks, are shared with it.
"""
