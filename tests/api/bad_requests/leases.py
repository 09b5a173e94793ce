# SPDX-License-Identifier: Apache-2.0
"""Creations and changes of leases."""

from __future__ import annotations

from tests.api.bad_requests.builders import (
    FORMAT,
    HOST_RESERVATION,
    LEASE,
    MEMBER,
    NOBODY,
    READER,
    Bad,
    change,
    post,
    put,
    reservation,
    room_without,
    without,
)

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
    change("fewer hosts than have servers", "servers run on", 409, lease="{active}", id="{running}", min=1, max=1),
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
