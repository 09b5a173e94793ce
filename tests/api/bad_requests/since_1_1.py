# SPDX-License-Identifier: Apache-2.0
"""Requests of 1.1 that make no sense; what is said is the code of the first fault, and its place."""

from __future__ import annotations

from typing import Any

from tests.api.bad_requests.builders import MEMBER, NOBODY, Bad

VERSION = {**MEMBER, "OpenStack-API-Version": "reservation 1.1"}
HOST = {"resource_type": "physical:host", "min": 1}
FIRST = "/reservations/0"
ADMIN = {"X-Auth-Token": "root:operators:admin"}
NEEDS = f"{FIRST}/resource_properties"
LEASE = {"name": "x", "start_date": "2030-05-01T10:00Z", "end_date": "+2h", "reservations": [HOST]}


def get(query: str, code: str, path: str = "/v1/leases", status: int = 400) -> Bad:
    return Bad(f"1.1 get: {path}?{query}"[:90], "GET", f"{path}?{query}", status, code, headers=VERSION)


def post(what: str, code: str, status: int = 400, headers: dict[str, str] | None = None, **changes: Any) -> Bad:
    sent = {**VERSION, **(headers or {})}
    return Bad(f"1.1 create: {what}", "POST", "/v1/leases", status, code, {**LEASE, **changes}, headers=sent)


def put(
    name: str,
    body: Any,
    code: str,
    status: int = 400,
    lease: str = "{lease}",
    headers: dict[str, str] | None = None,
    query: str = "",
) -> Bad:
    sent = {**VERSION, **(headers or {})}
    return Bad(f"1.1 update: {name}", "PUT", f"/v1/leases/{lease}{query}", status, code, body, headers=sent)


def reserve(name: str, code: str, **changes: Any) -> Bad:
    return post(f"reservation {name}", code, reservations=[{**HOST, **changes}])


def reserved(**changes: Any) -> dict[str, Any]:
    return {"reservations": [changes]}


QUERIES = [
    get("colour=red", "unknown_query_parameter colour"),
    get("limit=0", "invalid_query limit"),
    get("limit=1&limit=2", "invalid_query limit"),
    get("sort_key=colour", "invalid_query sort_key"),
    get("sort_dir=up", "invalid_query sort_dir"),
    get("fields=colour", "invalid_query fields"),
    get("state=gone", "invalid_query state"),
    get("status=gone", "invalid_query status"),
    get("status=in:ACTIVE,gone", "invalid_query status"),
    get("degraded=maybe", "invalid_query degraded"),
    get("text=x", "invalid_query text"),
    get("text=" + "x" * 81, "invalid_query text"),
    get("name=%00", "invalid_query name"),
    get("name=gt:x", "invalid_query name"),
    get("name=%ff", "invalid_query name"),
    get("name=a%C3%28&name=b", "invalid_query name"),
    get("text=%E9t%E9", "invalid_query text"),
    get("from=2030-05-01T10:00Z&to=2030-05-01T10:00Z", "invalid_window to"),
    get("from=now&to=2030-01-01T00:00Z", "invalid_window to"),
    get("name=in:" + ",".join("x" * 51), "out_of_bounds name"),
    get("from=yesterday", "invalid_date from"),
    get("from=2030-05-01T10:00+01:00", "invalid_date from"),
    get("end_date=in:now", "invalid_query end_date"),
    get("updated_at=gte:2030-13-01T00:00Z", "invalid_date updated_at"),
    get("marker=nobody", "invalid_marker marker"),
    get("marker={foreign}", "invalid_marker marker"),
    get("marker=c.%21%21", "invalid_marker marker"),
    get("marker=c.eyJrIjoieCIsImkiOiJ5In0", "invalid_marker marker"),
    get("marker=c." + "e" * 3000, "invalid_marker marker"),
    get("project_id=art", "forbidden project_id", status=403),
    get("project_id=in:physics,art", "forbidden project_id", status=403),
    get("fields=colour", "invalid_query fields", "/v1/leases/{lease}"),
    get("x=1", "unknown_query_parameter x", "/v1/leases/{lease}"),
    get("", "lease_not_found", "/v1/leases/{foreign}", 404),
    get("", "lease_not_found", f"/v1/leases/{NOBODY}", 404),
    get("", "lease_not_found", "/v1/leases/%00", 404),
]
DEEP: list[Any] = ["==", "$vcpus", 1]
for _ in range(16):
    DEEP = ["not", DEEP]
CREATION = [
    post("an end before the start", "invalid_window /end_date", end_date="2030-05-01T09:00Z"),
    post("a duration without a sign", "invalid_date /end_date", end_date="3d"),
    post("a duration of nothing", "invalid_date /end_date", end_date="+0h"),
    post("a duration of six years", "invalid_date /end_date", end_date="+P6Y"),
    post("a start in the past", "date_in_past /start_date", start_date="2020-01-01T00:00Z"),
    post("a point without a fraction", "invalid_date /start_date", start_date="2030-05-01T10:00:00.Z"),
    post("the zone of the machine", "invalid_value /time_zone", time_zone="localtime"),
    post("the zone of no place", "invalid_value /time_zone", time_zone="Factory"),
    post("a reservation that is a text", "invalid_value /reservations/0", reservations=["x"]),
    post("101 reservations", "out_of_bounds /reservations", reservations=[HOST] * 101),
    post("an unknown zone", "invalid_value /time_zone", time_zone="Mars/Olympus"),
    post("a warning after the end", "invalid_window /before_end_date", before_end_date="+3h"),
    post("a warning before the start", "invalid_window /before_end_date", before_end_date="-3h"),
    post("a warning now", "invalid_date /before_end_date", before_end_date="now"),
    post("events", "unknown_field /events", events=[]),
    post("an id", "read_only_field /id", id="x"),
    post("no name", "invalid_value /name", name=""),
    post("a long name", "invalid_value /name", name="x" * 81),
    post("a name that is long when it is normal", "invalid_value /name", name="\u0958" * 41),
    post("no reservations", "invalid_value /reservations", reservations=[]),
    post("a reservation of no type", "missing_field /reservations/0/resource_type", reservations=[{}]),
    post("too many hosts", "not_enough_resources", 409, reservations=[{**HOST, "min": 99}]),
    post("a key with a space", "invalid_value Idempotency-Key", headers={"Idempotency-Key": "a b"}),
    post("a key of 256", "invalid_value Idempotency-Key", headers={"Idempotency-Key": "k" * 256}),
    reserve("with a text for a number", "invalid_value /reservations/0/min", min="1"),
    reserve("of no hosts", "invalid_value /reservations/0/min", min=0),
    reserve("of fewer at most", "invalid_value /reservations/0/max", min=2, max=1),
    reserve("with a requirement of 64 KiB and more", f"out_of_bounds {NEEDS}", resource_properties="x" * 65537),
    reserve("with a typo", "unknown_field /reservations/0/mim", mim=1),
    reserve("with an empty action", "invalid_value /reservations/0/before_end", before_end=""),
    reserve("with the second name", "unknown_field /reservations/0/before_end_action", before_end_action="none"),
    reserve("with half a requirement", f"malformed_requirement {NEEDS}", resource_properties=["=="]),
    reserve("with a requirement of 1001 parts", f"out_of_bounds {NEEDS}", resource_properties=["in", "$a", [1] * 1000]),
    reserve("with a requirement of 17 levels", f"out_of_bounds {NEEDS}", resource_properties=DEEP),
    reserve("with what no host has", f"unknown_property {NEEDS}", resource_properties=["==", "$no", "1"]),
]
CHANGES = [
    put("of nobody's lease", {"name": "y"}, "lease_not_found", 404, NOBODY),
    put("of a foreign lease", {"name": "y"}, "lease_not_found", 404, "{foreign}"),
    put("of an ended lease", {"end_date": "+9h"}, "lease_ended", 409, "{ended}"),
    put("with an old tag", {"name": "y"}, "precondition_failed If-Match", 412, headers={"If-Match": '"0.1.m"'}),
    put("with a weak tag", {"name": "y"}, "precondition_failed If-Match", 412, headers={"If-Match": 'W/"1.1.m"'}),
    put("with a wrong query", {"name": "y"}, "unknown_query_parameter dry", query="?dry=true"),
    put("of an unknown field", {"nme": "y"}, "unknown_field /nme"),
    put("of a foreign reservation", reserved(id="{running}", min=1), "unknown_reference /reservations/0/id"),
    put("of a reservation without id", reserved(min=1), "missing_field /reservations/0/id"),
    put(
        "of another type",
        reserved(id="{reservation}", resource_type="x:y"),
        f"invalid_state {FIRST}/resource_type",
        409,
    ),
    put("of fewer at most", reserved(id="{reservation}", min=2, max=1), f"invalid_value {FIRST}/max"),
    put(
        "of a network",
        reserved(id="{planned}", network_id="x"),
        f"invalid_value {FIRST}/network_id",
        lease="{addresses}",
    ),
    put(
        "of what no host has",
        reserved(id="{reservation}", resource_properties=["==", "$no", "1"]),
        f"unknown_property {FIRST}/resource_properties",
    ),
    put(
        "of an unknown flavor",
        reserved(id="{flavored}", flavor_id="x"),
        f"unknown_reference {FIRST}/flavor_id",
        lease="{of_flavor}",
    ),
    put("with a tag of nothing", {"name": "y"}, "precondition_failed If-Match", 412, headers={"If-Match": "x"}),
    put("of a field of another type", reserved(id="{reservation}", amount=1), "unknown_field /reservations/0/amount"),
    put("of a started start", {"start_date": "2031-01-01T00:00Z"}, "invalid_window /start_date", lease="{active}"),
]
IPS = {"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1}
ADDRESSES = [
    Bad(
        f"1.1 {name}: {what}",
        "POST",
        path,
        400,
        f"{code} {FIRST}/{place}",
        {**body, "reservations": [{**IPS, **wrong}]},
        headers=VERSION,
    )
    for name, path, body in (
        ("create", "/v1/leases", LEASE),
        ("dry run", "/v1/leases?dry_run=true", LEASE),
        ("availability", "/v1/availability", {"duration": "1h"}),
    )
    for what, code, place, wrong in (
        ("an unknown network", "unknown_reference", "network_id", {"network_id": "nowhere"}),
        ("a network without addresses", "unknown_reference", "network_id", {"network_id": "private"}),
        ("too many addresses", "invalid_value", "required_floatingips", {"required_floatingips": ["203.0.113.10"] * 2}),
        ("half an address", "invalid_value", "required_floatingips/0", {"required_floatingips": ["203"]}),
        ("addresses that are saved", "invalid_value", "before_end", {"before_end": "snapshot"}),
    )
]
HOSTS = [
    Bad(
        f"1.1 host: {what}",
        "PUT",
        "/v1/resources/host/{host}",
        400,
        says,
        {"properties": properties},
        headers={**VERSION, **ADMIN},
    )
    for what, says, properties in (
        ("a property with a $", "invalid_value /properties/$rack", {"$rack": "r7"}),
        ("a property of the cloud", "invalid_value /properties/vcpus", {"vcpus": "1"}),
        ("too many properties", "out_of_bounds /properties", {f"p{number}": "1" for number in range(501)}),
    )
]
ALL = [*QUERIES, *CREATION, *CHANGES, *ADDRESSES, *HOSTS]
