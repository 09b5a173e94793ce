# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` and ``/v2/os-hosts``: the same handlers and rules, each with the format of its version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import ADMIN, Body, NounRows, Part, Root, Route, Rule, in_path, in_query, only_at_1_0
from blazar.api.http.shapes import RESERVATION_ID, Json, a_list, an_object, enclose, in_envelope, ref
from blazar.api.kinds.flat import NARROWING, PROPERTY_UPDATE, list_properties, narrowing_query, set_property
from blazar.api.kinds.hosts import components, render, requests, v2
from blazar.api.kinds.hosts.requests import (
    ALLOCATION_UPDATE,
    DELETE,
    GET,
    HOST_CREATE,
    HOST_ID,
    HOST_UPDATE,
    POST,
    PUT,
    REFRESH,
)
from blazar.api.leases.v1_0.held import KindInLease
from blazar.api.resources.handlers import Handlers, form_of
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import HOST, Resource

LIST_ALLOCATIONS = Rule("blazar:oshosts:get_allocations", ADMIN, "List and show allocations of hosts.")
MOVE = Rule("blazar:oshosts:reallocate", ADMIN, "Move a reservation to another host.")
LIST_PROPERTIES = Rule("blazar:oshosts:get_resource_properties", ADMIN, "List capabilities.")
SET_PROPERTY = Rule("blazar:oshosts:update_resource_properties", ADMIN, "Make a capability public or private.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFormat:
    """The format of hosts in a range of versions.

    ``component`` is the name of the component that describes a rendered host. ``host_id`` parses an id from a path.
    ``one`` and ``many`` are the envelope keys of a host and of a list of hosts; None: no envelope.
    """

    component: str
    created: Body
    changed: Body
    host_id: Callable[[str], str]
    request: Callable[[Json], Registration]
    change: Callable[[Json], ResourceChange]
    shown: Callable[[Resource], Json]
    one: str | None = None
    many: str | None = None


V1 = HostFormat(
    component="Host",
    created=Body("HostCreate", HOST_CREATE, ({"name": "cn12.example", "rack": "r7"},)),
    changed=Body(
        "HostUpdate",
        HOST_UPDATE,
        ({"rack": "r8", "gpu": None}, {"disabled": True, "authorized_projects": ["physics"]}),
    ),
    host_id=requests.host_id,
    request=requests.request,
    change=requests.change,
    shown=render.host,
    one="host",
    many="hosts",
)
V2 = HostFormat(
    component="HostV2",
    created=Body(
        "HostCreateV2", v2.HOST_CREATE, ({"hypervisor_hostname": "cn12.example", "extra_capas": {"rack": "r7"}},)
    ),
    changed=Body("HostUpdateV2", v2.HOST_UPDATE, ({"extra_capas": {"rack": "r8", "gpu": None}},)),
    host_id=v2.host_id,
    request=v2.request,
    change=v2.change,
    shown=v2.host,
)


def _handlers(form: HostFormat) -> Handlers:
    return Handlers(
        form_of(
            HOST,
            "host_id",
            form.request,
            id_of=lambda path: form.host_id(path["host_id"]),
            change=lambda body, _: form.change(body),
        )
    )


def _routes(root: Root, form: HostFormat) -> tuple[Route, ...]:
    """Return the routes of hosts that every version has, in one format."""
    handlers = _handlers(form)
    suffix = "_v2" if root is Root.V2 else ""
    one, many = in_envelope(form.one, ref(form.component)), in_envelope(form.many, a_list(ref(form.component)))

    def shown(host: Resource) -> Any:
        return enclose(form.one, form.shown(host))

    def listed(hosts: Sequence[Resource]) -> Any:
        return enclose(form.many, [form.shown(host) for host in hosts])

    rows = NounRows(root=root, path="/os-hosts", key=HOST_ID, listed=many, shown=one, render=shown)
    return (
        rows.list(handlers.index, GET, f"list_hosts{suffix}", "List hosts", render=listed),
        rows.create(handlers.create, POST, f"create_host{suffix}", "Register a host", form.created),
        rows.show(handlers.show, GET, f"show_host{suffix}", "Show a host"),
        rows.update(handlers.update, PUT, f"update_host{suffix}", "Set and remove capabilities", form.changed),
        rows.delete(handlers.delete, DELETE, f"delete_host{suffix}", "Unregister a host"),
    )


def list_allocations(call: Call) -> Sequence[ResourceAllocations]:
    """List the allocations of all hosts."""
    return call.manager.resources.allocations(HOST, **narrowing_query(call))


def show_allocations(call: Call, host_id: str) -> ResourceAllocations:
    """Show the allocations of one host."""
    return call.manager.resources.allocations(HOST, resource_id=requests.host_id(host_id), **narrowing_query(call))[0]


def move(call: Call, host_id: str) -> ResourceAllocations:
    """Move a reservation from this host to another."""
    key = requests.host_id(host_id)
    call.manager.resources.one(HOST, key)
    return call.manager.resources.move(HOST, key, identifier(call.body()["reservation_id"]))


def _allocation(found: ResourceAllocations) -> Json:
    return {"allocation": render.allocation(found)}


_REFRESH = Route(
    root=Root.V1,
    method="POST",
    path="/os-hosts/{host_id}/refresh",
    name="refresh_host",
    summary="Refresh a host's data from the cloud",
    handler=_handlers(V1).refresh,
    rule=REFRESH,
    render=lambda host: {"host": V1.shown(host)},
    answers={200: in_envelope("host", ref("Host"))},
    errors=(404, 409),
    parameters=(HOST_ID,),
    json_twin=True,
)
_UPDATE = Body("AllocationUpdate", ALLOCATION_UPDATE, ({"reservation_id": RESERVATION_ID},))
_on_host = partial(Route, root=Root.V1, path="/os-hosts/{host_id}/allocation")
_ALLOCATIONS = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/allocations",
        name="list_allocations",
        summary="List the allocations of all hosts",
        handler=list_allocations,
        rule=LIST_ALLOCATIONS,
        render=lambda found: {"allocations": [render.allocation(allocations) for allocations in found]},
        answers={200: an_object({"allocations": a_list(ref("Allocation"))})},
        parameters=NARROWING,
        json_twin=True,
    ),
    _on_host(
        method="GET",
        name="show_allocation",
        summary="Show the allocations of a host",
        handler=show_allocations,
        rule=LIST_ALLOCATIONS,
        render=_allocation,
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
        render=_allocation,
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404, 409),
        # The query is ignored here; the document of 1.0 has it for both methods.
        parameters=(HOST_ID, *NARROWING),
        json_twin=True,
    ),
)
_PROPERTIES = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/properties",
        name="list_properties",
        summary="List the capabilities of hosts",
        handler=partial(list_properties, kind=HOST, shown=render.property_values),
        rule=LIST_PROPERTIES,
        render=lambda shown: {"resource_properties": shown},
        answers={200: an_object({"resource_properties": a_list(ref("PropertyInList"))})},
        parameters=(
            in_query("detail", "any value: include values and the private flag"),
            in_query("all", "any value: include private capabilities (operators only)"),
        ),
        json_twin=True,
    ),
    Route(
        root=Root.V1,
        method="PATCH",
        path="/os-hosts/properties/{name}",
        name="set_property",
        summary="Make a capability public, or private to operators",
        handler=partial(set_property, kind=HOST, short="host"),
        rule=SET_PROPERTY,
        body=Body("PropertyUpdate", PROPERTY_UPDATE, ({"private": True},)),
        render=lambda changed: {"resource_property": render.resource_property(changed)},
        answers={200: an_object({"resource_property": ref("ResourceProperty")})},
        errors=(404,),
        parameters=(in_path("name", "a capability's name", policy_name="property_name"),),
    ),
)
HELD = KindInLease(
    kind=HOST,
    many="hosts",
    nouns="hosts",
    component="HostInLease",
    attributes=components.ATTRIBUTES,
    named_by="hypervisor_hostname",
    example=components.EXAMPLE,
)

PART = Part(
    "hosts",
    routes=(
        *only_at_1_0(
            (*_routes(Root.V1, V1), *_ALLOCATIONS, _REFRESH, *_PROPERTIES),
            instead="/v1/resources/host",
        ),
        *_routes(Root.V2, V2),
    ),
    rules=(GET, POST, PUT, DELETE, LIST_ALLOCATIONS, MOVE, REFRESH, LIST_PROPERTIES, SET_PROPERTY),
    components={**components.COMPONENTS, **v2.COMPONENTS},
    reservations=components.RESERVATIONS,
    fields=components.FIELDS,
    controller="oshosts",
)
