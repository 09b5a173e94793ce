# SPDX-License-Identifier: Apache-2.0
"""Allocations of hosts, and the move of a reservation to another host, in version 1 only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.api.context import Call, identifier
from blazar.api.kinds import lists
from blazar.api.kinds.hosts import render
from blazar.api.kinds.hosts.full import SORT_KEYS
from blazar.api.kinds.hosts.requests import HOST_ID
from blazar.api.kinds.hosts.requests import host_id as parsed
from blazar.api.kinds.hosts.schemas import ALLOCATION_UPDATE
from blazar.api.routes import ADMIN, Body, Caching, Root, Route, Rule, in_query, within
from blazar.api.shapes import RESERVATION_ID, Json, a_list, an_object, ref
from blazar.model.demand import ResourceAllocations
from blazar.model.resource import HOST

GET = Rule("blazar:oshosts:get_allocations", ADMIN, "List and show allocations of hosts.")
MOVE = Rule("blazar:oshosts:reallocate", ADMIN, "Move a reservation to another host.")
RULES = (GET, MOVE)

_NARROWING = (
    in_query("lease_id", "only allocations of this lease"),
    in_query("reservation_id", "only allocations of this reservation"),
)


def index(call: Call) -> Sequence[ResourceAllocations]:
    """List the allocations of all hosts."""
    return call.manager.resources.allocations(HOST, **_narrowed(call))


def show(call: Call, host_id: str) -> ResourceAllocations:
    """Show the allocations of one host."""
    return call.manager.resources.allocations(HOST, resource_id=parsed(host_id), **_narrowed(call))[0]


def move(call: Call, host_id: str) -> ResourceAllocations:
    """Move a reservation from this host to another."""
    key = parsed(host_id)
    call.manager.resources.one(HOST, key)
    return call.manager.resources.move(HOST, key, identifier(call.body()["reservation_id"]))


def _narrowed(call: Call) -> dict[str, str]:
    return {each.name: identifier(call.query[each.name]) for each in _NARROWING if each.name in call.query}


def _shown(found: ResourceAllocations) -> Json:
    return {"allocation": render.allocation(found)}


def show_counted(call: Call, host_id: str) -> ResourceAllocations:
    """Show the allocations of one host, of those of a lease or reservation past ones, too."""
    return lists.allocations_of(call, HOST, parsed(host_id))


def _counted(found: ResourceAllocations) -> Json:
    return {"allocation": lists.allocation(found)}


_UPDATE = Body("AllocationUpdate", ALLOCATION_UPDATE, ({"reservation_id": RESERVATION_ID},))
_on_host = partial(Route, root=Root.V1, path="/os-hosts/{host_id}/allocation")
_OF_1_0 = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/allocations",
        name="list_allocations",
        summary="List the allocations of all hosts",
        handler=index,
        rule=GET,
        render=lambda found: {"allocations": [render.allocation(each) for each in found]},
        answers={200: an_object({"allocations": a_list(ref("Allocation"))})},
        parameters=_NARROWING,
        json_twin=True,
    ),
    _on_host(
        method="GET",
        name="show_allocation",
        summary="Show the allocations of a host",
        handler=show,
        rule=GET,
        render=_shown,
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404,),
        parameters=(HOST_ID, *_NARROWING),
        json_twin=True,
    ),
    _on_host(
        method="PUT",
        name="move_reservation",
        summary="Move a reservation from this host to another",
        handler=move,
        rule=MOVE,
        body=_UPDATE,
        render=_shown,
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404, 409),
        # The query is ignored here; the document of 1.0 has it for both methods.
        parameters=(HOST_ID, *_NARROWING),
        json_twin=True,
    ),
)
ROUTES = (
    *within(_OF_1_0, until=(1, 0)),
    lists.allocation_list(
        HOST,
        sort_keys=SORT_KEYS,
        rule=GET,
        path="/os-hosts/allocations",
        name="list_allocations",
        summary="List the allocations of all hosts",
    ),
    _on_host(
        method="GET",
        name="show_allocation",
        summary="Show the allocations of a host",
        handler=show_counted,
        rule=GET,
        render=_counted,
        answers={200: an_object({"allocation": ref(lists.ALLOCATION)})},
        errors=(404,),
        parameters=(HOST_ID, *lists.NARROWED),
        since=(1, 1),
    ),
    _on_host(
        method="PUT",
        name="move_reservation",
        summary="Move a reservation from this host to another",
        handler=move,
        rule=MOVE,
        body=_UPDATE,
        render=_counted,
        answers={200: an_object({"allocation": ref(lists.ALLOCATION)})},
        errors=(404, 409),
        parameters=(HOST_ID,),
        caching=Caching.NONE,
        since=(1, 1),
    ),
)
