# SPDX-License-Identifier: Apache-2.0
"""The policy rules of ``/v1/resources``."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.http.routes import ADMIN, READER, Rule
from blazar.model.resources.resource import DEVICE, FLOATING_IP, HOST, NETWORK, ResourceKind

_EARLIER: Mapping[ResourceKind, str] = {
    HOST: "blazar:oshosts",
    FLOATING_IP: "blazar:floatingips",
    NETWORK: "blazar:networks",
    DEVICE: "blazar:devices",
}
"""The kinds that have routes of their own at 1.0, and how the rules of these begin."""


def _earlier(action: str, **others: str) -> tuple[str, ...]:
    """Return the checks of an action on a resource of a kind with routes at 1.0: the rule of these.

    ``others`` have the action at 1.0 by the beginning of its rule, where that has another name.
    """
    actions = {kind: others.get(begin.rpartition(":")[2], action) for kind, begin in _EARLIER.items()}
    return tuple(f"('{kind}':%(kind)s and rule:{_EARLIER[kind]}:{action})" for kind, action in actions.items())


def _as_before(action: str, **others: str) -> str:
    """Return the check of an action on a resource: for kinds with routes at 1.0 their rule, else operators only."""
    other = " and ".join(f"not '{kind}':%(kind)s" for kind in _EARLIER)
    return " or ".join((*_earlier(action, **others), f"({other} and {ADMIN})"))


GET = Rule(
    "blazar:resources:get",
    # Who may list the resources of a kind at 1.0 need not be a reader of the project.
    " or ".join((READER, *_earlier("get"))),
    "List kinds of resources, and what the project may see of resources.",
)
POST = Rule("blazar:resources:post", _as_before("post"), "Register a resource.")
PUT = Rule(
    "blazar:resources:put",
    # Version 1.0 has no change of an address; who may not register one may not change it either.
    _as_before("put", floatingips="post"),
    "Update a resource's properties, disabled flag and authorized projects.",
)
DELETE = Rule("blazar:resources:delete", _as_before("delete"), "Unregister a resource.")
REFRESH = Rule(
    "blazar:resources:refresh",
    _as_before("refresh", floatingips="post", networks="put", devices="put"),
    "Refresh a resource's data from the cloud.",
)
ALLOCATIONS = Rule(
    "blazar:resources:get_allocations",
    _as_before("get_allocations", floatingips="post"),
    "List and show allocations of resources.",
)
MOVE = Rule(
    "blazar:resources:reallocate",
    _as_before("reallocate", floatingips="post", networks="put"),
    "Move a reservation to another resource.",
)
CANDIDATES = Rule("blazar:resources:get_candidates", _as_before("post"), "List what the cloud has to register.")
PROPERTIES = Rule(
    "blazar:resources:get_properties",
    _as_before("get_resource_properties", floatingips="post"),
    "List the properties that operators have set.",
)
PATCH = Rule(
    "blazar:resources:update_properties",
    _as_before("update_resource_properties", floatingips="post"),
    "Make a property public or private.",
)
RULES = (GET, POST, PUT, DELETE, REFRESH, ALLOCATIONS, MOVE, CANDIDATES, PROPERTIES, PATCH)

PRIVATE = Rule(
    "blazar:resources:get_private",
    # Everybody lists addresses, but not what is for operators.
    _as_before("get", floatingips="post"),
    "See ids, names, conditions and private properties of resources, and those that are restricted to other projects.",
)
