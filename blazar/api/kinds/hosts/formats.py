# SPDX-License-Identifier: Apache-2.0
"""The format of hosts in each version of the API, as values; the handlers are shared by all versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blazar.api.http.routes import Body
from blazar.api.http.shapes import Json
from blazar.api.kinds.hosts import render, requests, v2
from blazar.api.kinds.hosts.requests import HOST_CREATE, HOST_UPDATE
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import Resource


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
