# SPDX-License-Identifier: Apache-2.0
"""Hosts, their capabilities and properties."""

from __future__ import annotations

from typing import Any

from tests.api.bad_requests.builders import MEMBER, NOBODY, Bad


def host(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"host: {name}", "POST", "/v1/os-hosts", status, says, body)


def set_(name: str, body: Any, says: str, status: int = 400, host: str = "{host}") -> Bad:
    return Bad(f"capability: {name}", "PUT", f"/v1/os-hosts/{host}", status, says, body)


HOSTS = [
    host("nothing", {}, "give name"),
    host("an empty name", {"name": ""}, "give name"),
    *(host(f"name {v!r}", {"name": v}, "name") for v in (None, 5, [], True)),
    *(
        host(f"id {v!r}", {"id": v}, "id")
        for v in (None, [], 1.5, {}, True, -1, "", "-1", "node-3", "3/x", "٣", "9" * 300)
    ),
    host("unknown to the cloud", {"name": "no-such-node"}, "no hypervisor", 404),
    host("an id unknown to the cloud", {"id": "4711"}, "no hypervisor", 404),
    host("registered already", {"name": "node-1"}, "registered already", 409),
    host("a key too long", {"name": "node-3", "k" * 65: "v"}, "Extra capability key too long"),
    host("an empty key", {"name": "node-3", "": "v"}, "needs a name"),
    *(host(f"a capability {v!r}", {"name": "node-3", "gpu": v}, "gpu") for v in (None, [], {})),
    host("a capability too long", {"name": "node-3", "gpu": "v" * 65536}, "too long"),
    host("a fact", {"name": "node-3", "reservable": "x"}, "reservable is read from the cloud"),
    Bad("host: as a member", "POST", "/v1/os-hosts", 403, "blazar:oshosts:post", {"name": "node-3"}, headers=MEMBER),
    set_("nothing", {}, "at least one capability"),
    set_("a list", {"gpu": []}, "gpu"),
    set_("a fact", {"vcpus": "5"}, "vcpus is read from the cloud"),
    set_("a name", {"name": "x"}, "name is not a capability"),
    set_("a key too long", {"k" * 65: "v"}, "Extra capability key too long"),
    set_("asked for by a live reservation", {"gpu": "other"}, "gpu cannot be changed", 409),
    set_("of no host", {"a": "b"}, "{'host_id': '4711'} not found", 404, host="4711"),
    Bad("capability: as a member", "PUT", "/v1/os-hosts/{host}", 403, "blazar:oshosts:put", {"a": "b"}, headers=MEMBER),
    Bad(
        "capability: disabled or not",
        "PUT",
        "/v1/os-hosts/{host}",
        400,
        "disabled is 'perhaps', which is invalid; give true",
        {"disabled": "perhaps"},
    ),
    *(
        Bad(
            f"capability: for {v!r}",
            "PUT",
            "/v1/os-hosts/{host}",
            400,
            "authorized_projects",
            {"authorized_projects": v},
        )
        for v in ([], "", " , ", [1], [""], 5, {"a": "b"}, True)
    ),
    Bad("capability: failure", "PUT", "/v1/os-hosts/{host}", 400, "not a capability", {"failure": "none"}),
    Bad("host: disabled or not", "POST", "/v1/os-hosts", 400, "disabled", {"name": "node-3", "disabled": 1}),
    Bad("move: nothing", "PUT", "/v1/os-hosts/{host}/allocation", 400, "Missing parameter reservation_id", {}),
    Bad("move: a number", "PUT", "/v1/os-hosts/{host}/allocation", 400, "reservation_id is 5", {"reservation_id": 5}),
    Bad(
        "move: more",
        "PUT",
        "/v1/os-hosts/{host}/allocation",
        400,
        "lease_id is set by the service",
        {"reservation_id": NOBODY, "lease_id": NOBODY},
    ),
    Bad(
        "move: no such",
        "PUT",
        "/v1/os-hosts/{host}/allocation",
        404,
        "has no allocation on",
        {"reservation_id": NOBODY},
    ),
    Bad(
        "move: no id",
        "PUT",
        "/v1/os-hosts/{host}/allocation",
        404,
        "has no allocation on",
        {"reservation_id": "%'; --"},
    ),
    Bad("move: no such host", "PUT", "/v1/os-hosts/4711/allocation", 404, "not found", {"reservation_id": NOBODY}),
    Bad(
        "move: as a member",
        "PUT",
        "/v1/os-hosts/{host}/allocation",
        403,
        "blazar:oshosts:reallocate",
        {"reservation_id": "{running}"},
        headers=MEMBER,
    ),
    Bad("refresh: no such host", "POST", "/v1/os-hosts/4711/refresh", 404, "not found"),
    Bad("refresh: as a member", "POST", "/v1/os-hosts/{host}/refresh", 403, "blazar:oshosts:refresh", headers=MEMBER),
    Bad("host: no such", "GET", "/v1/os-hosts/4711", 404, "{'host_id': '4711'} not found"),
    Bad("host: no such allocation", "GET", "/v1/os-hosts/4711/allocation", 404, "not found"),
    Bad("host: by name", "GET", "/v1/os-hosts/node-1", 404, "not found"),
    Bad("host: delete no such", "DELETE", "/v1/os-hosts/4711", 404, "not found"),
    Bad("host: delete a promised one", "DELETE", "/v1/os-hosts/{host}", 409, "allocated"),
    Bad("host: list as a member", "GET", "/v1/os-hosts", 403, "blazar:oshosts:get", headers=MEMBER),
    Bad("host: delete as a member", "DELETE", "/v1/os-hosts/{host}", 403, "blazar:oshosts:delete", headers=MEMBER),
    Bad("allocations: as a member", "GET", "/v1/os-hosts/allocations", 403, "get_allocations", headers=MEMBER),
    Bad("properties: as a member", "GET", "/v1/os-hosts/properties", 403, "get_resource_properties", headers=MEMBER),
    *(
        Bad(f"property: {v!r}", "PATCH", "/v1/os-hosts/properties/gpu", 400, says, v)
        for v, says in (
            ({}, "Missing parameter private"),
            ({"private": "true"}, "private"),
            ({"private": 1}, "private"),
            ({"private": None}, "private"),
            ({"private": True, "x": 1}, "x is unknown"),
        )
    ),
    Bad("property: no such", "PATCH", "/v1/os-hosts/properties/nothing", 404, "nothing", {"private": True}),
    Bad(
        "property: as a member",
        "PATCH",
        "/v1/os-hosts/properties/gpu",
        403,
        "update_resource_properties",
        {"private": True},
        headers=MEMBER,
    ),
]
