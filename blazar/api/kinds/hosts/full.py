# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` from version 1.1 on: with labels, conditions, filters, pages and tags."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from blazar.api.kinds import changes
from blazar.api.kinds.handlers import Handlers, form_of
from blazar.api.kinds.hosts.full_schemas import COMPONENTS, HOST_CREATE, HOST_KEYS
from blazar.api.kinds.hosts.requests import HOST_ID
from blazar.api.kinds.hosts.rules import DELETE, GET, POST, PUT
from blazar.api.kinds.lists import CONDITION, TROUBLES, resource_list
from blazar.api.preconditions import IF_MATCH
from blazar.api.queries import filter_by, option
from blazar.api.readers import Flag, JsonText, Text
from blazar.api.routes import Body, Caching, Parameter, Root, Route
from blazar.api.shapes import Json, an_object, ref
from blazar.api.urls import link
from blazar.model.requests import Registration
from blazar.model.resource import HOST, Resource
from blazar.resources.hosts.ids import normal

__all__ = ["COMPONENTS", "ROUTES"]

MINOR = 1
"""The minor version in whose shape hosts are shown."""

SORT_KEYS = ("hypervisor_hostname", "availability_zone", "created_at", "label", "updated_at")


def shown(host: Resource) -> Json:
    """Render a host; the same for all who may see it, and a function of its row: its tag is strong."""
    known = host.attributes
    return {
        "id": host.external_id,
        "label": host.label,
        "hypervisor_hostname": host.name,
        "service_name": known.get("service_name"),
        "hypervisor_type": known.get("hypervisor_type"),
        "hypervisor_version": known.get("hypervisor_version"),
        "availability_zone": known.get("availability_zone"),
        "cpu_info": _parsed(known.get("cpu_info")),
        "capacity": dict(host.capacity.items),
        "traits": sorted(host.traits),
        **changes.shown(host),
        "links": [{"rel": "self", "href": link(_path(host))}],
    }


def _parsed(cpu_info: object) -> Any:
    """Return what Nova says of the processor; None if that is not JSON."""
    try:
        return json.loads(str(cpu_info))
    except ValueError:
        return None


def _path(host: Resource) -> str:
    return f"/v1/os-hosts/{host.external_id}"


def _registration(body: Json) -> Registration:
    given_id = normal(body["id"]) if body.get("id") is not None else None
    return changes.registration({"name": body.get("name"), "id": given_id}, body)


def _one(host: Resource) -> Json:
    return {"host": shown(host)}


_handlers = Handlers(
    form_of(
        HOST,
        "host_id",
        _registration,
        change=changes.change,
        url=_path,
        minor=MINOR,
        shown=lambda _call, host: shown(host),
    )
)
_on_host = partial(Route, root=Root.V1, path="/os-hosts/{host_id}", parameters=(HOST_ID,), since=(1, 1))
_ONE: Json = an_object({"host": ref("Host1_1")})


def _list(*wrong: Parameter, since: tuple[int, int], until: tuple[int, int] | None = None) -> Route:
    """Return the row of the list; ``wrong`` are the filters by what is wrong with a host."""
    return resource_list(
        HOST,
        "hosts",
        shown,
        item=ref("HostInList1_1"),
        sort_keys=SORT_KEYS,
        path="/os-hosts",
        name="list_hosts",
        summary="List hosts",
        rule=GET,
        parameters=(
            filter_by("hypervisor_hostname", Text(), "the name"),
            filter_by("label", Text(), "the label"),
            filter_by("availability_zone", Text(), "the zone"),
            filter_by("reservable", Flag(), "whether it takes new leases"),
            *wrong,
            filter_by("project_id", Text(), "a project to which it is restricted"),
            option("requirement", JsonText(), "hosts that meet this, as in reservations"),
            option("text", Text(2, 80), "a part of the name"),
        ),
        fields=HOST_KEYS,
        since=since,
        until=until,
    )


ROUTES = (
    _list(CONDITION, since=(1, 1), until=(1, 2)),
    _list(*TROUBLES, since=(1, 3)),
    Route(
        root=Root.V1,
        path="/os-hosts",
        method="POST",
        name="create_host",
        summary="Register a host",
        handler=_handlers.create,
        rule=POST,
        body=Body(
            "HostCreate1_1",
            HOST_CREATE,
            ({"name": "cn12.example", "properties": {"rack": "r7"}, "disabled": {"reason": "new", "until": "+P1D"}},),
        ),
        render=_one,
        answers={201: _ONE},
        errors=(404, 409),
        caching=Caching.NONE,
        since=(1, 1),
    ),
    _on_host(
        method="GET",
        name="show_host",
        summary="Show a host",
        handler=_handlers.show,
        rule=GET,
        render=_one,
        answers={200: _ONE},
        errors=(404,),
        caching=Caching.STRONG,
    ),
    _on_host(
        method="PUT",
        name="update_host",
        summary="Change a host",
        handler=_handlers.update,
        rule=PUT,
        body=Body(
            "HostUpdate1_1",
            changes.CHANGE,
            (
                {"properties": {"rack": "r8", "gpu": None}, "authorized_projects": ["physics"]},
                {"disabled": {"reason": "fan replaced", "until": "2030-12-01T00:00:00Z"}},
                {"disabled": None},
            ),
        ),
        render=_one,
        answers={200: _ONE},
        errors=(404, 409, 412),
        parameters=(HOST_ID, IF_MATCH),
        caching=Caching.NONE,
    ),
    _on_host(
        method="DELETE",
        name="delete_host",
        summary="Unregister a host",
        handler=_handlers.delete,
        rule=DELETE,
        answers={204: None},
        errors=(404, 409, 412),
        parameters=(HOST_ID, IF_MATCH),
    ),
)
