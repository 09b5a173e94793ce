# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` and ``/v2/os-hosts``: the same handlers and rules, each with the format of its version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from blazar.api.http.context import Call
from blazar.api.http.routes import ADMIN, Body, NounRows, Part, Root, Route, Rule, in_path, in_query, only_at_1_0
from blazar.api.http.shapes import Json, a_list, an_object, enclose, in_envelope, ref
from blazar.api.kinds.flat import PROPERTY_UPDATE
from blazar.api.kinds.hosts import allocations, components, render, requests, v2
from blazar.api.kinds.hosts.requests import DELETE, GET, HOST_CREATE, HOST_ID, HOST_UPDATE, POST, PUT, REFRESH
from blazar.api.leases.v1_0.held import KindInLease
from blazar.api.resources.handlers import Handlers, form_of
from blazar.model.base.errors import NotFound
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import HOST, Resource, ResourceProperty

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


def list_properties(call: Call) -> Sequence[Json]:
    """List capabilities."""
    # Any non-empty value counts as true, as in the existing Blazar: clients send True and never False.
    everything = bool(call.query.get("all")) and call.is_operator
    detail = bool(call.query.get("detail"))
    found = call.manager.resources.properties(HOST, include_private=everything)
    return [render.property_values(value, detail=detail) for value in found]


def set_property(call: Call, name: str) -> ResourceProperty:
    """Make a capability public or private."""
    body = call.body()
    if "\0" in name or len(name) > 255:
        raise NotFound("no host has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(HOST, name, private=body["private"])


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
_PROPERTIES = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/properties",
        name="list_properties",
        summary="List the capabilities of hosts",
        handler=list_properties,
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
        handler=set_property,
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
            (*_routes(Root.V1, V1), *allocations.ROUTES, _REFRESH, *_PROPERTIES),
            instead="/v1/resources/host",
        ),
        *_routes(Root.V2, V2),
    ),
    rules=(GET, POST, PUT, DELETE, *allocations.RULES, REFRESH, LIST_PROPERTIES, SET_PROPERTY),
    components={**components.COMPONENTS, **v2.COMPONENTS},
    reservations=components.RESERVATIONS,
    fields=components.FIELDS,
    controller="oshosts",
)
