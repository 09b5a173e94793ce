# SPDX-License-Identifier: Apache-2.0
"""The interface to a cloud (``ports``) and its adapters: ``simulated`` and ``openstack``.

What may enter: calls to one cloud service each, with errors converted to ``CloudUnavailable`` (retry) or
``CloudRefused``/``NotFound``/``Conflict`` (no retry). No rules of the life cycle.
"""
