# SPDX-License-Identifier: Apache-2.0
"""Requests of version 2 that make no sense: those of version 1, but for what it differs in, and some of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.api.bad_requests import BODIES, CHANGES, CREATION
from tests.api.bad_requests.builders import FORMAT, LEASE, MEMBER, Bad, without

OTHER_HERE = frozenset(
    {
        "create: start_date '2030-05-01T10:00'",
        "create: end_date '2030-05-01T10:00'",
        "create: an end now",
    }
)
"""Good requests in version 2, or bad ones for another reason."""


def post(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"v2 create: {name}", "POST", "/v2/leases", status, says, body, headers=MEMBER)


def put(name: str, body: Any, says: str, status: int = 400, lease: str = "{lease}") -> Bad:
    return Bad(f"v2 update: {name}", "PUT", f"/v2/leases/{lease}", status, says, body, headers=MEMBER)


def host(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"v2 host: {name}", "POST", "/v2/os-hosts", status, says, body)


def set_(name: str, body: Any, says: str, status: int = 400, host: str = "{host}") -> Bad:
    return Bad(f"v2 capability: {name}", "PUT", f"/v2/os-hosts/{host}", status, says, body)


SHARED = [
    replace(bad, name=f"v2 {bad.name}", path=bad.path.replace("/v1/", "/v2/"))
    for bad in (*CREATION, *CHANGES, *BODIES)
    if bad.name not in OTHER_HERE
]

DATES = [
    *(
        post(f"{key} {value!r}", {**LEASE, key: value}, FORMAT)
        for key in ("start_date", "end_date")
        for value in (
            "now",
            "20300501T1000",
            "2030-W18-3T10:00",
            "2030-05-01T10",
            "2030-05-01T10:00:00.5",
            "2030-05-01T10:00:60",
            "2030-05-01T24:00",
            "2030-05-01T10:00+25:00",
            "2030-05-01T10:00+0200",
            "2030-05-01T10:00 UTC",
            "2030-05-01 10:00+00:00",
            "2030-02-30T10:00",
            "0001-01-01T00:00+14:00",
            "9999-12-31T23:59-14:00",
            "٢٠٣٠-05-01T10:00",
        )
    ),
    post("a start in the past, elsewhere", {**LEASE, "start_date": "2030-04-01T13:59+02:00"}, "in the past"),
    post("an event at a bad date", {**LEASE, "events": [{"event_type": "x", "event_date": "2030-05-01T1"}]}, FORMAT),
    put("an end now", {"end_date": "now"}, FORMAT, lease="{active}"),
]

KEYS = [
    post("an action of the lease", {**LEASE, "before_end_action": "snapshot"}, "before_end_action is unknown"),
    post("an envelope", {"lease": LEASE}, "Missing parameter name, start_date, end_date"),
    post("an envelope beside the lease", {**LEASE, "lease": {}}, "lease is unknown"),
    post("no name, with an id", {**without("name"), "id": "x"}, "Missing parameter name"),
    put("an action of the lease", {"before_end_action": "snapshot"}, "before_end_action is unknown"),
    *(put(f"{key} is given", {key: "x"}, f"{key} is set by the service") for key in ("user_id", "trust_id")),
]

HOSTS = [
    host("nothing", {}, "give name"),
    host("an empty name", {"name": ""}, "give name"),
    *(
        host(f"{key} {value!r}", {key: value}, key)
        for key in ("name", "hypervisor_hostname")
        for value in (None, 5, [], True, "n" * 256)
    ),
    host("two names", {"name": "node-3", "hypervisor_hostname": "node-4"}, "are aliases and differ"),
    *(host(f"id {value!r}", {"id": value}, "id") for value in (None, [], 1.5, {}, True, -1, "", "-1", "node-3", "٣")),
    host("unknown to the cloud", {"hypervisor_hostname": "no-such-node"}, "no hypervisor", 404),
    host("an id unknown to the cloud", {"id": 4711}, "no hypervisor", 404),
    host("registered already", {"name": "node-1"}, "registered already", 409),
    host("a capability in the open", {"name": "node-3", "gpu": "A100"}, "gpu is unknown"),
    host("a time", {"name": "node-3", "created_at": "x"}, "created_at is set by the service"),
    *(
        host(f"extra_capas {value!r}", {"name": "node-3", "extra_capas": value}, "extra_capas")
        for value in (None, [], "x", 5)
    ),
    *(
        host(f"a capability {value!r}", {"name": "node-3", "extra_capas": {"gpu": value}}, "extra_capas.gpu")
        for value in (None, [], {}, "v" * 65536)
    ),
    host("a key too long", {"name": "node-3", "extra_capas": {"k" * 65: "v"}}, "Extra capability key too long"),
    host("an empty key", {"name": "node-3", "extra_capas": {"": "v"}}, "needs a name"),
    *(
        host(f"the fact {key}", {"name": "node-3", "extra_capas": {key: "x"}}, f"{key} is read from the cloud")
        for key in ("service_name", "availability_zone", "reservable", "vcpus", "id", "created_at")
    ),
    *(
        host(f"what would pass for {key}", {"name": "node-3", "extra_capas": {key: "x"}}, f"{key} is not a capability")
        for key in ("name", "trust_id")
    ),
    set_("nothing", {}, "Missing parameter extra_capas"),
    set_("no capability", {"extra_capas": {}}, "1 to 500 capabilities"),
    *(set_(f"extra_capas {value!r}", {"extra_capas": value}, "extra_capas") for value in (None, [], "x", 5)),
    set_("a list", {"extra_capas": {"gpu": []}}, "extra_capas.gpu"),
    set_("a capability in the open", {"gpu": "A100"}, "Missing parameter extra_capas"),
    set_("a name", {"extra_capas": {"gpu": "x"}, "name": "y"}, "name is unknown"),
    set_("a fact", {"extra_capas": {"vcpus": "5"}}, "vcpus is read from the cloud"),
    set_("what would pass for a name", {"extra_capas": {"name": None}}, "name is not a capability"),
    set_("a key too long", {"extra_capas": {"k" * 65: "v"}}, "Extra capability key too long"),
    set_("asked for by a live reservation", {"extra_capas": {"gpu": "other"}}, "gpu cannot be changed", 409),
    set_("of no host", {"extra_capas": {"a": "b"}}, "{'host_id': '4711'} not found", 404, host="4711"),
    *(
        Bad(f"v2 host: {method} {name}", method, f"/v2/os-hosts/{name}", 400, "give the number", body)
        for method, body in (("GET", None), ("PUT", {"extra_capas": {"a": "b"}}), ("DELETE", None))
        for name in ("node-1", "1.5", "-1", "%D9%A3", "%00", "9" * 65, "allocations", "properties")
    ),
    *(
        Bad(f"v2 host: {method} nobody's", method, "/v2/os-hosts/4711", 404, "{'host_id': '4711'} not found")
        for method in ("GET", "DELETE")
    ),
    Bad("v2 host: a number without end", "GET", "/v2/os-hosts/" + "9" * 64, 404, "not found"),
    Bad("v2 host: delete a promised one", "DELETE", "/v2/os-hosts/{host}", 409, "allocated"),
    *(
        Bad(
            f"v2 host: {method} {path} as a member",
            method,
            f"/v2{path}",
            403,
            f"blazar:oshosts:{method.lower()}",
            body,
            headers=MEMBER,
        )
        for method, path, body in (
            ("GET", "/os-hosts", None),
            ("POST", "/os-hosts", {"name": "node-3"}),
            ("GET", "/os-hosts/{host}", None),
            ("PUT", "/os-hosts/{host}", {"extra_capas": {"a": "b"}}),
            ("DELETE", "/os-hosts/{host}", None),
        )
    ),
]

FRAMES = [
    Bad("v2 frame: no such path", "GET", "/v2/nothing", 404, "openapi"),
    Bad("v2 frame: a name that is none", "GET", "/v2/oshosts", 404, "openapi"),
    Bad("v2 frame: no allocations", "GET", "/v2/os-hosts/{host}/allocation", 404, "openapi"),
    Bad("v2 frame: a trailing slash", "GET", "/v2/leases/", 404, "slash"),
    Bad("v2 frame: nothing but a slash", "GET", "/v2/", 404, "slash"),
    Bad("v2 frame: the version itself", "GET", "/v2", 405, "method"),
    Bad("v2 frame: a method", "PATCH", "/v2/leases", 405, "method"),
    Bad("v2 frame: a method of a lease", "POST", "/v2/leases/{lease}", 405, "method"),
    Bad("v2 frame: a host that is none", "GET", "/v2/leases", 400, "not a valid host name", headers={"Host": "["}),
    Bad("v2 frame: no caller", "GET", "/v2/leases", 401, "requires authentication", headers={"X-Auth-Token": "x"}),
    Bad("v2 frame: nobody at no path", "GET", "/v2/x", 401, "requires authentication", headers={"X-Auth-Token": "x"}),
]

ALL = [*SHARED, *DATES, *KEYS, *HOSTS, *FRAMES]
