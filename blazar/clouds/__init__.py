# SPDX-License-Identifier: Apache-2.0
"""What we need of a cloud (``ports``) and the adapters that give it: ``simulated`` now, OpenStack beside it.

What may enter: calls to one cloud service each, with errors turned into ``CloudUnavailable`` (try again) or
``CloudRefused``/``NotFound``/``Conflict`` (do not). No rule of the life cycle.
"""
