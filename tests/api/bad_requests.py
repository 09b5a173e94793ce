# SPDX-License-Identifier: Apache-2.0
"""Requests that make no sense, each with the answer it gets. Data: who runs them brings the world.

Placeholders in paths and bodies: ``{lease}`` pending and ours, ``{active}``, ``{ended}``, ``{foreign}`` of another
project, ``{reservation}`` of ``{lease}``, ``{running}`` the reservation of ``{active}``, ``{host}`` registered;
``{instances}`` pending with its reservation ``{servers}``, ``{used}`` active with servers and its ``{booted}``;
``{address}`` free and ``{taken}`` promised, ``{addresses}`` pending with its ``{planned}``, ``{holding}`` active with
its ``{attached}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NOBODY = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True, slots=True)
class Bad:
    """A request and what must come of it: the status, and a part of the sentence."""

    name: str
    method: str
    path: str
    status: int
    says: str
    body: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


MEMBER = {"X-Auth-Token": "curie:physics"}
READER = {"X-Auth-Token": "pierre:physics:reader"}
OTHER = {"X-Auth-Token": "frida:art"}
FORMAT = "Required format: %Y-%m-%d %H:%M"

HOST_RESERVATION = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}
INSTANCE_RESERVATION = {
    "resource_type": "virtual:instance",
    "amount": 1,
    "vcpus": 1,
    "memory_mb": 512,
    "disk_gb": 1,
    "affinity": None,
    "resource_properties": "",
}
FLAVOR_RESERVATION = {"resource_type": "flavor:instance", "flavor_id": "small", "amount": 1, "affinity": None}
ADDRESSES = {
    "resource_type": "virtual:floatingip",
    "network_id": "public",
    "amount": 1,
    "required_floatingips": [],
}
NEW_ADDRESS = {"floating_network_id": "public", "floating_ip_address": "203.0.113.20"}
LEASE = {
    "name": "x",
    "start_date": "2030-05-01 10:00",
    "end_date": "2030-05-01 12:00",
    "reservations": [HOST_RESERVATION],
}


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in LEASE.items() if k != key}


def reservation(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**HOST_RESERVATION, **changes}]}


def room_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in HOST_RESERVATION.items() if k != key}]}


def servers(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**INSTANCE_RESERVATION, **changes}]}


def flavored(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**FLAVOR_RESERVATION, **changes}]}


def flavored_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in FLAVOR_RESERVATION.items() if k != key}]}


def servers_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in INSTANCE_RESERVATION.items() if k != key}]}


def ips(**changes: Any) -> dict[str, Any]:
    return {**LEASE, "reservations": [{**ADDRESSES, **changes}]}


def ips_without(key: str) -> dict[str, Any]:
    return {**LEASE, "reservations": [{k: v for k, v in ADDRESSES.items() if k != key}]}


def address(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"address: {name}", "POST", "/v1/floatingips", status, says, body)


def post(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"create: {name}", "POST", "/v1/leases", status, says, body, headers=MEMBER)


def put(name: str, body: Any, says: str, status: int = 400, lease: str = "{lease}") -> Bad:
    return Bad(f"update: {name}", "PUT", f"/v1/leases/{lease}", status, says, body, headers=MEMBER)


def change(
    name: str, says: str, status: int = 400, lease: str = "{lease}", id: str = "{reservation}", **values: Any
) -> Bad:
    return put(name, {"reservations": [{"id": id, **values}]}, says, status, lease)


def raw(name: str, data: bytes, says: str, method: str = "POST", path: str = "/v1/leases") -> Bad:
    return Bad(
        f"body: {name}", method, path, 400, says, raw=data, headers={**MEMBER, "Content-Type": "application/json"}
    )


def host(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"host: {name}", "POST", "/v1/os-hosts", status, says, body)


def set_(name: str, body: Any, says: str, status: int = 400, host: str = "{host}") -> Bad:
    return Bad(f"capability: {name}", "PUT", f"/v1/os-hosts/{host}", status, says, body)


CREATION = [
    post("nothing", {}, "Missing parameter name, start_date, end_date"),
    post("no name", without("name"), "Missing parameter name"),
    post("no start", without("start_date"), "Missing parameter start_date"),
    post("no end", without("end_date"), "Missing parameter end_date"),
    *(post(f"name {v!r}", {**LEASE, "name": v}, "name") for v in (None, 5, True, [], {}, 1.5)),
    post("a name too long", {**LEASE, "name": "n" * 81}, "at most 80"),
    *(
        post(f"{key} {v!r}", {**LEASE, key: v}, FORMAT)
        for key in ("start_date", "end_date")
        for v in (
            "",
            "tomorrow",
            "NOW",
            "2030-05-01",
            "2030-05-01T10:00",
            "2030-05-01 10:00:00",
            "2030-05-01 10:00Z",
            "2030-13-01 10:00",
            "2030-02-30 10:00",
            "2030-05-01 25:00",
            "0000-01-01 00:00",
            " 2030-05-01 10:00 x",
            "2030-05-01 10:00\n",
            1893456000,
            None,
            True,
            ["2030-05-01 10:00"],
            {"date": "2030-05-01 10:00"},
        )
        if not (isinstance(v, str) and v.endswith("\n"))
    ),
    post("a date of a thousand characters", {**LEASE, "start_date": "2" * 1000}, "start_date"),
    post("a start in the past", {**LEASE, "start_date": "2001-01-01 10:00"}, "in the past"),
    post(
        "an end before the start", {**LEASE, "end_date": "2030-05-01 09:00"}, "End date must be later than start date."
    ),
    post("an end at the start", {**LEASE, "end_date": "2030-05-01 10:00"}, "End date must be later than start date."),
    post("an end now", {**LEASE, "start_date": "now", "end_date": "now"}, "End date must be later than start date."),
    post("an end after the end of time", {**LEASE, "end_date": "10000-01-01 00:00"}, FORMAT),
    *(
        post(f"before_end_date {v!r}", {**LEASE, "before_end_date": v}, FORMAT)
        for v in ("now", " ", "soon", 5, [], False)
    ),
    post("a warning before the start", {**LEASE, "before_end_date": "2030-05-01 09:00"}, "out of lease limits"),
    post("a warning at the start", {**LEASE, "before_end_date": "2030-05-01 10:00"}, "out of lease limits"),
    post("a warning at the end", {**LEASE, "before_end_date": "2030-05-01 12:00"}, "out of lease limits"),
    *(
        post(f"reservations {v!r}", {**LEASE, "reservations": v}, "reservations")
        for v in (None, "x", 1, {}, [None], [1], ["x"], [[]])
    ),
    post("too many reservations", {**LEASE, "reservations": [HOST_RESERVATION] * 101}, "reservations"),
    post("a reservation without a type", room_without("resource_type"), "Missing parameter resource_type"),
    *(
        post(f"type {v!r}", reservation(resource_type=v), "resource_type")
        for v in (None, 1, [], "", "virtual:address", "x" * 500)
    ),
    *(post(f"events {v!r}", {**LEASE, "events": v}, "events") for v in (None, "x", {}, [1], [{}], [{"event_type": 1}])),
    post("an event with a status", {**LEASE, "events": [{"event_type": "x", "status": "DONE"}]}, "status"),
    *(
        post(
            f"an event {kind}", {**LEASE, "events": [{"event_type": kind, "event_date": None}]}, "events[0].event_type"
        )
        for kind in ("start_lease", "before_end_lease", "end_lease", "create_lease", "update_lease", "delete_lease", "")
    ),
    post("an event at no date", {**LEASE, "events": [{"event_type": "x", "event_date": "soon"}]}, FORMAT),
    *(
        post(f"{key} is given", {**LEASE, key: "x"}, f"{key} is set by the service")
        for key in ("id", "status", "project_id", "user_id", "trust_id", "degraded", "created_at")
    ),
    post("an unknown key", {**LEASE, "colour": "red"}, "colour is unknown"),
    *(
        post(f"no {key}", room_without(key), f"Missing parameter {key}")
        for key in ("min", "max", "hypervisor_properties", "resource_properties")
    ),
    *(
        post(f"{key} {v!r}", reservation(**{key: v}), key)
        for key in ("min", "max")
        for v in (0, -1, "", "foo", "1.5", 1.5, None, True, [], {}, 2**40, "٣", 10**300)
    ),
    post("a key too long", reservation(**{"k" * 256: 1}), "at most 255 characters"),
    post("max below min", reservation(min=3, max=2), "max (2) is less than min (3)"),
    *(
        post(f"{key} {v!r}", reservation(**{key: v}), "before_end")
        for key in ("before_end", "before_end_action")
        for v in (None, "email", 1, [], {}, True)
    ),
    post("two actions", reservation(before_end="none", before_end_action="snapshot"), "two names of one thing"),
    *(
        post(f"{key} {v!r}"[:60], reservation(**{key: v}), key)
        for key in ("hypervisor_properties", "resource_properties")
        for v in (
            "x",
            "{}",
            "5",
            "null",
            '"text"',
            '["and"]',
            '["like", "$vcpus", "1"]',
            '["==", "vcpus", "1"]',
            '["==", "$", "1"]',
            '["==", "$vcpus", ""]',
            '["==", "$vcpus"]',
            '["==", "$vcpus", "1", "2"]',
            '["==", "$vcpus", null]',
            '["==", "$vcpus", {}]',
            '["==", "$vcpus", NaN]',
            '["not"]',
            '["not", [], []]',
            '["in", "$vcpus"]',
            '["in", "$vcpus", []]',
            '["==", "$colour", "red"]',
            '["==", "$trust_id", "x"]',
            "[" * 5000 + "]" * 5000,
            '["and", ' * 20 + "[]" + "]" * 20,
            "x" * 70000,
            5,
            {"a": 1},
            True,
        )
    ),
    post("more hosts than there are", reservation(min=99, max=99), "Not enough hosts", 409),
    post(
        "more hosts than match",
        reservation(min=1, max=1, resource_properties='[">", "$vcpus", "4096"]'),
        "0 match",
        409,
    ),
]

INSTANCES = [
    *(
        post(f"servers without {key}", servers_without(key), f"Missing parameter {key}")
        for key in INSTANCE_RESERVATION
        if key != "resource_type"
    ),
    *(
        post(f"servers, {key} {v!r}", servers(**{key: v}), key)
        for key in ("amount", "vcpus", "memory_mb", "disk_gb")
        for v in (0, -1, "", "foo", "1.5", 1.5, None, True, [], {}, 2**31, 2**70, "9" * 30, "-1", "٣")
        if (key, v) != ("disk_gb", 0)
    ),
    *(
        post(f"servers, affinity {v!r}", servers(affinity=v), "affinity")
        for v in (2, -1, "yess", "maybe", [], {}, 1.0, "soft-affinity")
    ),
    *(
        post(f"servers, {key} {v!r}", servers(**{key: v}), "before_end")
        for key in ("before_end", "before_end_action")
        for v in ("migration", "email", None, 1, [])
    ),
    *(
        post(f"servers, requirement {v!r}"[:60], servers(resource_properties=v), "resource_properties")
        for v in ("x", "{}", 5, '["==", "$colour", "red"]', '["and"]', {"a": 1})
    ),
    post("more servers than there is room for", servers(amount=2**31 - 1), "Not enough hosts", 409),
    post("a server larger than any host", servers(vcpus=2**31 - 1), "0 instances fit", 409),
    post("servers apart on more hosts than there are", servers(amount=99, affinity=False), "Not enough", 409),
    *(
        post(f"a flavor's servers without {key}", flavored_without(key), f"Missing parameter {key}")
        for key in ("flavor_id", "amount", "affinity")
    ),
    *(
        post(f"a flavor's servers, amount {v!r}", flavored(amount=v), "amount")
        for v in (0, -1, "", "foo", 1.5, None, True, [], {}, 2**31, 2**70, "9" * 30, "٣")
    ),
    *(
        post(f"a flavor {v!r}"[:40], flavored(flavor_id=v), "flavor_id")
        for v in (None, "", True, 1.5, [], {}, "a/b", "..", "../servers", "a?b", "a\nb", "f" * 256)
    ),
    *(post(f"a flavor {v!r}", flavored(flavor_id=v), "there is no flavor", 404) for v in ("foreign", "none", 77, -1)),
    *(
        post(f"a flavor that is {flavor}", flavored(flavor_id=flavor), says)
        for flavor, says in (
            ("nothing", "take nothing"),
            ("grouped", "resources1:VGPU"),
            ("undecided", "trait:HW_X"),
            ("endless", "resources:VCPU"),
            ("negative", "resources:VCPU"),
            ("ours", "the flavor of a reservation"),
        )
    ),
    post("a flavor larger than any host", flavored(flavor_id="huge"), "0 instances fit", 409),
    post("a flavor with a trait that no host has", flavored(flavor_id="rare"), "0 hosts match", 409),
    post("more of a flavor than there is room for", flavored(amount=2**31 - 1), "Not enough hosts", 409),
    post("a flavor apart on more hosts than there are", flavored(amount=99, affinity=False), "Not enough", 409),
    *(post(f"a flavor, affinity {v!r}", flavored(affinity=v), "affinity") for v in (2, "yess", [], {})),
    *(
        post(f"a flavor, requirement {v!r}", flavored(resource_properties=v), "resource_properties")
        for v in ("x", '[">", "$vcpus", "1"]', 5, {"a": 1})
    ),
    post("a flavor that moves out", flavored(before_end="migration"), "'migration'"),
    post("servers with a host's keys only", reservation(resource_type="virtual:instance"), "Missing parameter amount"),
]

CHANGES = [
    put("an unknown key", {"colour": "red"}, "colour is unknown"),
    *(
        put(f"{key} is given", {key: "x"}, f"{key} is set by the service")
        for key in ("id", "status", "project_id", "degraded")
    ),
    *(put(f"name {v!r}", {"name": v}, "name") for v in (None, 5, [], "n" * 81)),
    *(put(f"{k} {v!r}", {k: v}, FORMAT) for k in ("start_date", "end_date") for v in (5, None, "soon", "2030-05-01")),
    put("an end in the past", {"end_date": "2001-01-01 10:00"}, "End date"),
    put("a start in the past", {"start_date": "2001-01-01 10:00"}, "in the past"),
    put("an end before the start", {"start_date": "2031-01-01 10:00"}, "End date must be later than start date."),
    put("a start that was", {"start_date": "2030-05-01 10:00"}, "can no longer be changed", lease="{active}"),
    put("a warning outside", {"before_end_date": "2040-01-01 10:00"}, "out of lease limits"),
    put("a warning now", {"before_end_date": "now"}, FORMAT),
    put("dates of what is over", {"end_date": "2031-01-01 10:00"}, "only its name", lease="{ended}"),
    *(put(f"reservations {v!r}", {"reservations": v}, "reservations") for v in (None, "x", {}, [1], [None])),
    put("a reservation without id", {"reservations": [{"max": 2}]}, "Missing parameter reservation ID"),
    put("a reservation with a numeric id", {"reservations": [{"id": 5}]}, "id"),
    put("a reservation twice", {"reservations": [{"id": "{reservation}"}] * 2}, "two items have the same id"),
    change("a foreign reservation", "has no reservation", id=NOBODY),
    change("another type", "cannot be changed", 409, resource_type="virtual:instance"),
    *(
        change(f"servers, {key} {v!r}", key, id="{servers}", lease="{instances}", **{key: v})
        for key in ("amount", "vcpus", "memory_mb", "disk_gb", "affinity", "before_end")
        for v in (-1, "x", [], 2**40)
    ),
    change("servers, no amount", "amount", id="{servers}", lease="{instances}", amount=0),
    change("servers, more than fit", "Not enough", 409, id="{servers}", lease="{instances}", amount=10**6),
    change("servers that move out", "'migration'", id="{servers}", lease="{instances}", before_end="migration"),
    *(
        change(f"a flavor's servers, {key} {v!r}", key, id="{flavored}", lease="{of_flavor}", **{key: v})
        for key in ("amount", "affinity", "before_end", "vcpus", "memory_mb", "disk_gb", "flavor_id")
        for v in (-2, "x?", [], 2**40)
        if key != "flavor_id" or isinstance(v, (str, list)) and v != 2**40
    ),
    change("a foreign flavor", "there is no flavor", 404, id="{flavored}", lease="{of_flavor}", flavor_id="foreign"),
    change("a flavor that is nothing", "take nothing", id="{flavored}", lease="{of_flavor}", flavor_id="nothing"),
    change("a huge flavor", "0 instances fit", 409, id="{flavored}", lease="{of_flavor}", flavor_id="huge"),
    change(
        "hosts for a flavor",
        "resource_properties",
        id="{flavored}",
        lease="{of_flavor}",
        resource_properties='["==", "$vcpus", "16"]',
    ),
    *(
        change(f"servers in use, {key}", key, 409, id="{booted}", lease="{used}", **{key: v})
        for key, v in {"vcpus": 2, "memory_mb": 1024, "disk_gb": 2, "affinity": True, "amount": 1}.items()
    ),
    change("servers in use, no amount", "amount", id="{booted}", lease="{used}", amount=0),
    change(
        "servers in use, elsewhere",
        "no longer match",
        409,
        id="{booted}",
        lease="{used}",
        resource_properties='["==", "$hypervisor_hostname", "node-1"]',
    ),
    *(change(f"min {v!r}", "min", min=v) for v in (0, -1, "x", None, [])),
    *(change(f"max {v!r}", "max", max=v) for v in (0, "y", True)),
    change("a key too long", "at most 255 characters", **{"k" * 256: 1}),
    change("max below min", "max (1) is less than min (2)", min=2, max=1),
    change("before_end", "before_end", before_end="email"),
    change("before_end_action", "before_end", before_end_action="email"),
    change("a malformed requirement", "resource_properties", resource_properties="["),
    change("a requirement that nothing tells", "$colour", resource_properties='["==", "$colour", "red"]'),
    change("more hosts than there are", "Not enough hosts", 409, min=50, max=50),
    change("fewer hosts while active", "cannot shrink", 409, lease="{active}", id="{running}", min=1, max=1),
    Bad("update: nobody's", "PUT", f"/v1/leases/{NOBODY}", 404, f"{{'lease_id': '{NOBODY}'}} not found", {"name": "x"}),
    Bad(
        "update: a foreign lease",
        "PUT",
        "/v1/leases/{foreign}",
        403,
        "blazar:leases:get",
        {"name": "x"},
        headers=MEMBER,
    ),
    Bad("update: as a reader", "PUT", "/v1/leases/{lease}", 403, "blazar:leases:put", {"name": "x"}, headers=READER),
    Bad("delete: nobody's", "DELETE", f"/v1/leases/{NOBODY}", 404, "not found"),
    Bad("delete: a foreign lease", "DELETE", "/v1/leases/{foreign}", 403, "blazar:leases:get", headers=MEMBER),
    Bad("delete: as a reader", "DELETE", "/v1/leases/{lease}", 403, "blazar:leases:delete", headers=READER),
    Bad("create: as a reader", "POST", "/v1/leases", 403, "blazar:leases:post", LEASE, headers=READER),
    Bad("show: nobody's", "GET", f"/v1/leases/{NOBODY}", 404, "not found"),
    Bad("show: a foreign lease", "GET", "/v1/leases/{foreign}", 403, "blazar:leases:get", headers=MEMBER),
    Bad("show: no id", "GET", "/v1/leases/%00", 404, "not found"),
    Bad("show: an id that breaks out", "GET", "/v1/leases/'%20OR%201=1", 404, "not found"),
    Bad("show: a very long id", "GET", "/v1/leases/" + "a" * 3000, 404, "not found"),
]

BODIES = [
    raw("no JSON", b"{", "not JSON"),
    raw("a text", b'"x"', "string"),
    raw("a number", b"5", "number"),
    raw("a list", b"[]", "array"),
    raw("null", b"null", "literal"),
    raw("NaN", b'{"name": NaN}', "NaN"),
    raw("infinity", b'{"name": -Infinity}', "Infinity"),
    raw("not UTF-8", b'{"name": "\xff\xfe"}', "UTF-8"),
    raw("UTF-16", '{"name": "x"}'.encode("utf-16"), "UTF-8"),
    raw("a key twice", b'{"name": "a", "name": "b"}', "twice"),
    raw("a NUL character", b'{"name": "a\\u0000b"}', "NUL"),
    raw("half of a pair", b'{"name": "\\ud800"}', "surrogate"),
    raw("bottomless", b"[" * 100000 + b"]" * 100000, "deep"),
    raw("bottomless inside", b'{"reservations": ' + b"[" * 60 + b"]" * 60 + b"}", "deep"),
    raw("a number beyond all", b'{"name": 1e999}', "too large"),
    raw("a number below all", b'{"reservations": [{"x": [-1e999]}]}', "too large"),
    raw("a number without end", b'{"name": ' + b"9" * 5000 + b"}", "JSON"),
    raw("an update that is a list", b"[]", "array", "PUT", "/v1/leases/{lease}"),
    Bad("body: XML", "POST", "/v1/leases", 400, "application/json", raw=b"<x/>", headers={"Content-Type": "text/xml"}),
    Bad(
        "body: a form",
        "POST",
        "/v1/os-hosts",
        400,
        "application/json",
        raw=b"a=b",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Bad(
        "body: too big",
        "POST",
        "/v1/leases",
        413,
        "",
        raw=b'{"name": "' + b"x" * 1100000 + b'"}',
        headers={"Content-Type": "application/json"},
    ),
]

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

FLOATING_IPS = [
    address("nothing", {}, "Missing parameter floating_network_id, floating_ip_address"),
    *(
        address(f"no {key}", {k: v for k, v in NEW_ADDRESS.items() if k != key}, f"Missing parameter {key}")
        for key in NEW_ADDRESS
    ),
    *(
        address(f"{key} {v!r}", {**NEW_ADDRESS, key: v}, key)
        for key in NEW_ADDRESS
        for v in ("", None, 5, True, [], {}, "x" * 65, "203.0.113.", "a b", "../public")
    ),
    *(
        address(f"address {v}", {**NEW_ADDRESS, "floating_ip_address": v}, "give an IP address")
        for v in ("203.0.113.256", "203.0.113.0/24", "203.0.113.020", "::1%lo", "2001:db8::g", "host.example")
    ),
    *(
        address(f"{key} cannot be given", {**NEW_ADDRESS, key: "x"}, key)
        for key in ("id", "subnet_id", "reservable", "created_at", "project_id")
    ),
    address("a network that is not external", {**NEW_ADDRESS, "floating_network_id": "private"}, "is not external"),
    address("no subnet", {**NEW_ADDRESS, "floating_ip_address": "198.51.100.1"}, "no subnet of network public", 404),
    address("the gateway", {**NEW_ADDRESS, "floating_ip_address": "203.0.113.1"}, "is the gateway"),
    address("in a pool", {**NEW_ADDRESS, "floating_ip_address": "203.0.113.200"}, "is in an allocation pool"),
    address("a port has it", {**NEW_ADDRESS, "floating_ip_address": "203.0.113.66"}, "is in use by port", 409),
    address("it is registered", {**NEW_ADDRESS, "floating_ip_address": "203.0.113.10"}, "registered already", 409),
    Bad("address: unknown", "GET", f"/v1/floatingips/{NOBODY}", 404, f"Floating IP {NOBODY} not found."),
    Bad("address: no id", "GET", "/v1/floatingips/a%20b", 404, "Floating IP a b not found."),
    Bad("address: delete an unknown one", "DELETE", f"/v1/floatingips/{NOBODY}", 404, "not found"),
    Bad("address: change", "PUT", "/v1/floatingips/{address}", 405, "method", {}),
    Bad("address: delete a member", "DELETE", "/v1/floatingips/{address}", 403, "Policy", headers=MEMBER),
    Bad("address: create as a member", "POST", "/v1/floatingips", 403, "Policy", NEW_ADDRESS, headers=MEMBER),
    Bad("address: not in version 2", "GET", "/v2/floatingips", 404, "This URL does not exist"),
]

RESERVED_IPS = [
    *(
        post(f"addresses without {key}", ips_without(key), f"Missing parameter {key}")
        for key in ("network_id", "amount")
    ),
    *(
        post(f"addresses, amount {v!r}", ips(amount=v), "amount")
        for v in (0, -1, "", None, True, 1.5, "x", 2**31, [], {}, "-1", "1.0")
    ),
    *(
        post(f"addresses, network {v!r}"[:60], ips(network_id=v), "network_id")
        for v in ("", None, 5, [], {}, "n" * 256)
    ),
    *(
        post(f"addresses, required {v!r}", ips(required_floatingips=v), "required_floatingips")
        for v in (None, "203.0.113.10", 5, {}, ["x"], [None], [5], [["203.0.113.10"]], ["203.0.113.10/32"])
    ),
    post(
        "addresses, one required twice",
        ips(amount=2, required_floatingips=["2001:db8::1", "2001:DB8:0::1"]),
        "2001:db8::1 more than once",
    ),
    post(
        "addresses, more required than asked for",
        ips(required_floatingips=["203.0.113.10", "203.0.113.14"]),
        "2 addresses, and amount is 1",
    ),
    post("addresses, not registered", ips(required_floatingips=["203.0.113.99"]), "no such floating IP is registered"),
    post(
        "addresses, of another network",
        ips(required_floatingips=["203.0.113.10"], network_id="private"),
        "203.0.113.10 on network private: no such floating IP",
    ),
    post("addresses, of an unknown network", ips(network_id="nowhere"), "0 match", 409),
    post("addresses, more than there are", ips(amount=2**31 - 1), "Not enough floating IPs available", 409),
    post(
        "addresses, one that is promised",
        {**ips(required_floatingips=["203.0.113.11"]), "start_date": "2030-05-01 10:00"},
        "203.0.113.11 on network public is promised to another lease",
        409,
    ),
    *(post(f"addresses, before_end {v!r}", ips(before_end=v), "before_end") for v in ("snapshot", "migration", "x", 5)),
    change(
        "addresses, another network", "network_id cannot be changed", 400, "{addresses}", "{planned}", network_id="x"
    ),
    change("addresses, amount 0", "amount is 0", 400, "{addresses}", "{planned}", amount=0),
    change(
        "addresses, fewer than required",
        "2 addresses, and amount is 1",
        400,
        "{addresses}",
        "{planned}",
        amount=1,
        required_floatingips=["203.0.113.13", "203.0.113.14"],
    ),
    change("addresses, a text", "give a list", 400, "{addresses}", "{planned}", required_floatingips="203.0.113.13"),
    change("addresses, too many", "Not enough", 409, "{addresses}", "{planned}", amount=99),
    change(
        "addresses, one that is promised",
        "203.0.113.11 on network public is promised",
        409,
        "{addresses}",
        "{planned}",
        required_floatingips=["203.0.113.11"],
    ),
    change("attached addresses, another network", "network_id cannot", 400, "{holding}", "{attached}", network_id="x"),
    change(
        "attached addresses, fewer",
        "3 are attached to ports; detach 2 of them first",
        409,
        "{holding}",
        "{attached}",
        amount=1,
        required_floatingips=[],
    ),
    change(
        "attached addresses, others",
        "3 are attached to ports; detach 1 of them first",
        409,
        "{holding}",
        "{attached}",
        required_floatingips=["203.0.113.15"],
    ),
    Bad("address: delete a promised one", "DELETE", "/v1/floatingips/{taken}", 409, "the floating IP is allocated"),
]

FRAMES = [
    Bad("frame: no such path", "GET", "/v1/nothing", 404, "openapi"),
    Bad("frame: the plugins, which no client can ask for", "GET", "/v1/plugins", 404, "openapi"),
    Bad("frame: no such version", "GET", "/v3/leases", 404, "openapi"),
    Bad("frame: a trailing slash", "GET", "/v1/leases/", 404, "slash"),
    Bad("frame: a method", "PATCH", "/v1/leases", 405, "method"),
    Bad("frame: a method of a lease", "POST", "/v1/leases/{lease}", 405, "method"),
    Bad(
        "frame: a malformed version",
        "GET",
        "/v1/leases",
        400,
        "is not a version",
        headers={"OpenStack-API-Version": "reservation one"},
    ),
    Bad(
        "frame: a version too high",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 9.9"},
    ),
    Bad(
        "frame: a version too low",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 0.9"},
    ),
    *(
        Bad(f"frame: {header} {name!r}", "GET", "/v1/leases", status, says, headers={header: name})
        for header, status, says in (("Host", 400, "not a valid host name"), ("Origin", 401, "requires authentication"))
        for name in ("[", "[::1", "//", "a b", "evil@127.0.0.1", "127.0.0.1#x", "localhost:x")
    ),
    Bad(
        "frame: a version far too high",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 99999.0"},
    ),
    Bad("frame: no caller", "GET", "/v1/leases", 401, "requires authentication", headers={"X-Auth-Token": "x"}),
    Bad(
        "frame: half a caller", "GET", "/v1/leases", 401, "requires authentication", headers={"X-Auth-Token": "curie:"}
    ),
    Bad(
        "frame: a strange role",
        "GET",
        "/v1/leases",
        401,
        "requires authentication",
        headers={"X-Auth-Token": "a:b:c d"},
    ),
]

ALL = [*CREATION, *INSTANCES, *CHANGES, *BODIES, *HOSTS, *FLOATING_IPS, *RESERVED_IPS, *FRAMES]
