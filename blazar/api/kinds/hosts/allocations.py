# SPDX-License-Identifier: Apache-2.0
"""Allocations of hosts, and the move of a reservation to another host, at 1.0 only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import ADMIN, Body, Root, Route, Rule
from blazar.api.http.shapes import RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.kinds.flat import NARROWING, narrowing_query
from blazar.api.kinds.hosts import render
from blazar.api.kinds.hosts.requests import ALLOCATION_UPDATE, HOST_ID
from blazar.api.kinds.hosts.requests import host_id as parsed
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.resources.resource import HOST

GET = Rule("blazar:oshosts:get_allocations", ADMIN, "List and show allocations of hosts.")
MOVE = Rule("blazar:oshosts:reallocate", ADMIN, "Move a reservation to another host.")
RULES = (GET, MOVE)


def index(call: Call) -> Sequence[ResourceAllocations]:
    """List the allocations of all hosts."""
    return call.manager.resources.allocations(HOST, **narrowing_query(call))


def show(call: Call, host_id: str) -> ResourceAllocations:
    """Show the allocations of one host."""
    return call.manager.resources.allocations(HOST, resource_id=parsed(host_id), **narrowing_query(call))[0]


def move(call: Call, host_id: str) -> ResourceAllocations:
    """Move a reservation from this host to another."""
    key = parsed(host_id)
    call.manager.resources.one(HOST, key)
    return call.manager.resources.move(HOST, key, identifier(call.body()["reservation_id"]))


def _render(found: ResourceAllocations) -> Json:
    return {"allocation": render.allocation(found)}


_UPDATE = Body("AllocationUpdate", ALLOCATION_UPDATE, ({"reservation_id": RESERVATION_ID},))
_on_host = partial(Route, root=Root.V1, path="/os-hosts/{host_id}/allocation")
ROUTES = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/allocations",
        name="list_allocations",
        summary="List the allocations of all hosts",
        handler=index,
        rule=GET,
        render=lambda found: {"allocations": [render.allocation(allocations) for allocations in found]},
        answers={200: an_object({"allocations": a_list(ref("Allocation"))})},
        parameters=NARROWING,
        json_twin=True,
    ),
    _on_host(
        method="GET",
        name="show_allocation",
        summary="Show the allocations of a host",
        handler=show,
        rule=GET,
        render=_render,
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404,),
        parameters=(HOST_ID, *NARROWING),
        json_twin=True,
    ),
    _on_host(
        method="PUT",
        name="move_reservation",
        summary="Move a reservation from this host to another",
        handler=move,
        rule=MOVE,
        body=_UPDATE,
        render=_render,
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404, 409),
        # The query is ignored here; the document of 1.0 has it for both methods.
        parameters=(HOST_ID, *NARROWING),
        json_twin=True,
    ),
)
