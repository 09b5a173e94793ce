# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` from version 1.1 on: with labels, conditions, filters, pages and tags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from blazar.api.answers import Answer
from blazar.api.context import Call
from blazar.api.faults import pointer_to
from blazar.api.kinds.hosts import requests
from blazar.api.kinds.hosts.full_schemas import COMPONENTS, HOST_CREATE, HOST_KEYS, HOST_UPDATE
from blazar.api.kinds.hosts.requests import HOST_ID
from blazar.api.kinds.hosts.rules import DELETE, GET, POST, PUT
from blazar.api.kinds.lists import itself, resource_list
from blazar.api.moments import in_body, moment_or_duration
from blazar.api.preconditions import IF_MATCH, Tags
from blazar.api.queries import filter_by, option
from blazar.api.readers import Choice, Flag, JsonText, Text
from blazar.api.routes import Body, Caching, Root, Route
from blazar.api.shapes import Json, an_object, ref
from blazar.api.urls import link
from blazar.model.clock import zulu
from blazar.model.duration import Duration
from blazar.model.errors import InvalidInput, PreconditionFailed, pointing_at
from blazar.model.requests import NOW, Disabling, Registration, ResourceChange
from blazar.model.resource import HOST, Resource

__all__ = ["COMPONENTS", "ROUTES"]

MINOR = 1
"""The minor version in whose shape hosts are shown."""

SORT_KEYS = ("hypervisor_hostname", "availability_zone", "created_at", "label", "updated_at")


def show(call: Call, host_id: str) -> Answer:
    """Show a host."""
    return _tagged(call.manager.resources.one(HOST, requests.host_id(host_id)))


def create(call: Call) -> Answer:
    """Register a host."""
    host = call.manager.resources.register(HOST, _registration(call.body()))
    return _tagged(host, headers={"Location": link(_path(host))})


def update(call: Call, host_id: str) -> Answer:
    """Change a host."""
    host = call.manager.resources.one(HOST, requests.host_id(host_id))
    change = _change(call.body(), _tags(host).wanted())
    try:
        return _tagged(call.manager.resources.change(HOST, host.external_id, change))
    except PreconditionFailed as error:
        raise _tags(host).refused(error, host.edits) from error


def delete(call: Call, host_id: str) -> None:
    """Unregister a host."""
    host = call.manager.resources.one(HOST, requests.host_id(host_id))
    try:
        call.manager.resources.unregister(HOST, host.external_id, edits=_tags(host).wanted())
    except PreconditionFailed as error:
        raise _tags(host).refused(error, host.edits) from error


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
        "properties": dict(host.capabilities),
        "reservable": host.reservable,
        "disabled": _disabled(host),
        "failure": None if host.failed_since is None else {"reason": host.failure, "since": zulu(host.failed_since)},
        "authorized_projects": None if host.authorized_projects is None else sorted(host.authorized_projects),
        "created_at": zulu(host.created_at),
        "updated_at": None if host.updated_at is None else zulu(host.updated_at),
        "links": [{"rel": "self", "href": link(_path(host))}],
    }


def _disabled(host: Resource) -> Json | None:
    if not host.disabled:
        return None
    since, until = host.disabled_since, host.disabled_until
    return {
        "reason": host.disabled_reason,
        "since": None if since is None else zulu(since),
        "until": None if until is None else zulu(until),
    }


def _parsed(cpu_info: object) -> Any:
    """Return what Nova says of the processor; None if that is not JSON."""
    try:
        return json.loads(str(cpu_info))
    except ValueError:
        return None


def _path(host: Resource) -> str:
    return f"/v1/os-hosts/{host.external_id}"


def _tags(host: Resource) -> Tags:
    # With the label: a host that was registered again counts from 0.
    return Tags(f".{host.label}.{MINOR}")


def _tagged(host: Resource, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer({"host": shown(host)}, etag=_tags(host).of(host.edits), headers=headers or {})


def _registration(body: Json) -> Registration:
    capabilities = {name: text for name, text in _properties(body).items() if text is not None}
    given_id = str(int(body["id"])) if body.get("id") is not None else None
    return Registration(
        {"name": body.get("name"), "id": given_id},
        capabilities,
        disabled=body.get("disabled") is not None,
        open_to=_projects(body.get("authorized_projects")),
        disabling=_disabling(body.get("disabled")) or Disabling(),
    )


def _change(body: Json, edits: tuple[int, ...] | None) -> ResourceChange:
    return ResourceChange(
        _properties(body),
        disabled=body["disabled"] is not None if "disabled" in body else None,
        open_to=_projects(body.get("authorized_projects")),
        sets_projects="authorized_projects" in body,
        disabling=_disabling(body.get("disabled")),
        edits=edits,
    )


def _properties(body: Json) -> Mapping[str, str | None]:
    """Return the properties to set, and to take away where the value is null. InvalidInput."""
    given = body.get("properties", {})
    for name, value in given.items():
        if name.startswith("$") and value is not None:
            # Such a one was possible before 1.1, and can still be taken away.
            raise InvalidInput(
                f"properties.{name[:80]} begins with $, which is how requirements mark a property; leave the $ out",
                pointer=pointer_to(("properties", name)),
            )
    with pointing_at("/properties"):
        return requests.capability_changes(given)


def _projects(given: list[str] | None) -> tuple[str, ...] | None:
    with pointing_at("/authorized_projects"):
        return requests.projects(given)


def _disabling(given: Json | None) -> Disabling | None:
    if given is None:
        return None
    reason, text = given.get("reason"), given.get("until")
    if text is None:
        return Disabling(reason)
    place = in_body("disabled", "until")
    until = moment_or_duration(text, place)
    if isinstance(until, Duration):
        return Disabling(reason, lasting=until)
    if until is NOW:
        raise place.invalid(text, "a later date, a duration such as +P3D, or null", "date_in_past")
    assert isinstance(until, datetime)
    return Disabling(reason, until)


_on_host = partial(Route, root=Root.V1, path="/os-hosts/{host_id}", parameters=(HOST_ID,), since=(1, 1))
_ONE: Json = an_object({"host": ref("Host1_1")})


ROUTES = (
    resource_list(
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
            filter_by("condition", Choice(("ok", "disabled", "failed")), "ok, disabled or failed; both may hold"),
            filter_by("project_id", Text(), "a project to which it is restricted"),
            option("requirement", JsonText(), "hosts that meet this, as in reservations"),
            option("text", Text(2, 80), "a part of the name"),
        ),
        fields=HOST_KEYS,
    ),
    Route(
        root=Root.V1,
        path="/os-hosts",
        method="POST",
        name="create_host",
        summary="Register a host",
        handler=create,
        rule=POST,
        body=Body(
            "HostCreate1_1",
            HOST_CREATE,
            ({"name": "cn12.example", "properties": {"rack": "r7"}, "disabled": {"reason": "new", "until": "+P1D"}},),
        ),
        render=itself,
        answers={201: _ONE},
        errors=(404, 409),
        caching=Caching.NONE,
        since=(1, 1),
    ),
    _on_host(
        method="GET",
        name="show_host",
        summary="Show a host",
        handler=show,
        rule=GET,
        render=itself,
        answers={200: _ONE},
        errors=(404,),
        caching=Caching.STRONG,
    ),
    _on_host(
        method="PUT",
        name="update_host",
        summary="Change a host",
        handler=update,
        rule=PUT,
        body=Body(
            "HostUpdate1_1",
            HOST_UPDATE,
            (
                {"properties": {"rack": "r8", "gpu": None}, "authorized_projects": ["physics"]},
                {"disabled": {"reason": "fan replaced", "until": "2030-12-01T00:00:00Z"}},
                {"disabled": None},
            ),
        ),
        render=itself,
        answers={200: _ONE},
        errors=(404, 409, 412),
        parameters=(HOST_ID, IF_MATCH),
        caching=Caching.NONE,
    ),
    _on_host(
        method="DELETE",
        name="delete_host",
        summary="Unregister a host",
        handler=delete,
        rule=DELETE,
        answers={204: None},
        errors=(404, 409, 412),
        parameters=(HOST_ID, IF_MATCH),
    ),
)
