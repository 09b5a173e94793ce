# SPDX-License-Identifier: Apache-2.0
"""As much of nova as the filter needs, for environments without nova: the names of its modules, and its manners."""

from __future__ import annotations

from types import ModuleType


class BaseHostFilter:
    RUN_ON_REBUILD = False
    run_filter_once_per_request = False


class Thing:
    """A nova object: ``in`` tells whether an attribute is set, and to read one that is not set is an error."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __contains__(self, name):
        return name in vars(self)

    def __getattr__(self, name):
        raise NotImplementedError(f"cannot load {name!r}")


class RequestSpec(Thing):
    def get_scheduler_hint(self, name, default=None):
        hints = vars(self).get("scheduler_hints") or {}
        value = hints.get(name, default)
        return value[0] if isinstance(value, list) and len(value) == 1 else value


class Flavor(Thing):
    pass


class Destination(Thing):
    pass


class Aggregate(Thing):
    pass


class HostState:
    def __init__(self, host, node, cell_uuid):
        self.host = host
        self.nodename = node
        self.cell_uuid = cell_uuid
        self.aggregates = []


def modules():
    """The modules of nova that the filter imports, by their names."""
    nova, scheduler, filters = (ModuleType(name) for name in ("nova", "nova.scheduler", "nova.scheduler.filters"))
    nova.__path__ = scheduler.__path__ = []
    nova.scheduler, scheduler.filters = scheduler, filters
    filters.BaseHostFilter = BaseHostFilter
    return {module.__name__: module for module in (nova, scheduler, filters)}
