# SPDX-License-Identifier: Apache-2.0
"""Requests about resources of any kind that make no sense, from 1.1 on; what is said is a code and its place."""

from __future__ import annotations

from typing import Any

from tests.api.bad_requests.builders import MEMBER, Bad

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
ADMIN = {**VERSION, "X-Auth-Token": "root:operators:admin"}
USER = {**VERSION, **MEMBER}
HOST = "/v1/resources/host/{host}"


def get(path: str, code: str, status: int = 400, headers: dict[str, str] = ADMIN) -> Bad:
    who = "member" if headers is USER else "operator"
    return Bad(f"resources: {who} gets {path}"[:90], "GET", f"/v1/resources{path}", status, code, headers=headers)


def register(what: str, code: str, body: Any, status: int = 400, kind: str = "host") -> Bad:
    return Bad(f"resources: registers {what}", "POST", f"/v1/resources/{kind}", status, code, body, headers=ADMIN)


def change(what: str, code: str, body: Any, status: int = 400, path: str = HOST, **headers: str) -> Bad:
    return Bad(f"resources: changes {what}", "PUT", path, status, code, body, headers={**ADMIN, **headers})


def of(what: str, method: str, path: str, status: int, code: str, body: Any = None) -> Bad:
    return Bad(f"resources: {what}", method, f"/v1/resources{path}", status, code, body, headers=ADMIN)


QUERIES = [
    get("?colour=red", "unknown_query_parameter colour"),
    get("/rocket", "kind_not_found", 404),
    get("/%00", "kind_not_found", 404),
    get("/rocket/1", "kind_not_found", 404),
    get("/rocket/allocations", "kind_not_found", 404),
    get("/rocket/candidates", "kind_not_found", 404),
    get("/rocket/properties", "kind_not_found", 404),
    get("/rocket/1/allocations", "kind_not_found", 404),
    get("/host/99", "host_not_found", 404),
    get("/host/%00", "host_not_found", 404),
    get("/host/99/allocations", "host_not_found", 404),
    get("/floatingip/99", "floating_ip_not_found", 404),
    get("/host?colour=red", "unknown_query_parameter colour"),
    get("/host?condition=broken", "invalid_query condition"),
    get("/host?reservable=maybe", "invalid_query reservable"),
    get("/host?property=gpu", "invalid_query property"),
    get("/host?property=:A100", "invalid_query property"),
    get("/host?property=colour:red", "unknown_property property"),
    get("/host?requirement=%5B%22%3D%3D%22,%22%24colour%22,%22red%22%5D", "unknown_property requirement"),
    get("/host?requirement=%5B%22~%22%5D", "malformed_requirement requirement"),
    get("/host?text=x", "invalid_query text"),
    get("/host?sort_key=rack", "invalid_query sort_key"),
    get("/host?fields=colour", "invalid_query fields"),
    get("/host?marker=nobody", "invalid_marker marker"),
    get("/host/candidates?registered=perhaps", "invalid_query registered"),
    get("/host/allocations?lease_id=", "invalid_query lease_id"),
    get("/host/properties?sort_key=private", "invalid_query sort_key"),
    get("/rocket", "kind_not_found", 404, USER),
    get("/rocket/1", "kind_not_found", 404, USER),
    get("/host/1", "host_not_found", 404, USER),
    get("/host?condition=ok", "invalid_query condition", headers=USER),
    get("/host?project_id=physics", "invalid_query project_id", headers=USER),
    get("/host?sort_key=updated_at", "invalid_query sort_key", headers=USER),
    get("/host?property=hypervisor_hostname:node-1", "unknown_property property", headers=USER),
    get("/host?requirement=%5B%22%3D%3D%22,%22%24id%22,%221%22%5D", "unknown_property requirement", headers=USER),
    get("/host?marker=1", "invalid_marker marker", headers=USER),
    get("/host/allocations", "forbidden", 403, USER),
    get("/host/candidates", "forbidden", 403, USER),
    get("/host/properties", "forbidden", 403, USER),
]
NETWORK = {"floating_network_id": "public", "floating_ip_address": "203.0.113.30"}
REGISTRATIONS = [
    register("a kind that is not served", "kind_not_found", {"name": "x"}, 404, "rocket"),
    register("nothing", "invalid_value", {}),
    register("an unknown host", "unknown_reference /name", {"name": "nowhere"}),
    register("a field of no kind", "unknown_field /colour", {"name": "node-3", "colour": "red"}),
    register("a field of another kind", "unknown_field /floating_network_id", {"floating_network_id": "public"}),
    register("a name that is a number", "invalid_value /name", {"name": 3}),
    register("an id that is no number", "invalid_value /id", {"id": "node-3"}),
    register("a host twice", "already_registered", {"name": "node-1"}, 409),
    register("properties that are a list", "invalid_value /properties", {"name": "node-3", "properties": []}),
    register("a property with a $", "invalid_value /properties/$x", {"name": "node-3", "properties": {"$x": "1"}}),
    register(
        "a property of the cloud", "invalid_value /properties/vcpus", {"name": "node-3", "properties": {"vcpus": "1"}}
    ),
    register("a flag for disabled", "invalid_value /disabled", {"name": "node-3", "disabled": True}),
    register(
        "disabled until a past date",
        "date_in_past /disabled/until",
        {"name": "node-3", "disabled": {"until": "2020-01-01T00:00Z"}},
    ),
    register("for no project", "invalid_value /authorized_projects", {"name": "node-3", "authorized_projects": []}),
    register(
        "an address without a network",
        "missing_field /floating_network_id",
        {"floating_ip_address": "203.0.113.30"},
        kind="floatingip",
    ),
    register(
        "half an address",
        "invalid_value /floating_ip_address",
        {**NETWORK, "floating_ip_address": "203"},
        400,
        "floatingip",
    ),
    register(
        "an address on no network",
        "unknown_reference /floating_network_id",
        {**NETWORK, "floating_network_id": "nowhere"},
        kind="floatingip",
    ),
    register("an address with a name", "unknown_field /name", {**NETWORK, "name": "x"}, kind="floatingip"),
]
CHANGES = [
    change("nothing", "invalid_value", {}),
    change("a name", "read_only_field /name", {"name": "node-9"}),
    change("a property of the cloud", "invalid_value /properties/vcpus", {"properties": {"vcpus": "1"}}),
    change("a property that is asked for", "resource_in_use", {"properties": {"gpu": "H100"}}, 409),
    change("too many properties", "out_of_bounds /properties", {"properties": {f"p{n}": "1" for n in range(501)}}),
    change("until tomorrow", "invalid_date /disabled/until", {"disabled": {"until": "tomorrow"}}),
    change("with an old tag", "precondition_failed If-Match", {"disabled": None}, 412, **{"If-Match": '"0.x.2"'}),
    change("with a weak tag", "precondition_failed If-Match", {"disabled": None}, 412, **{"If-Match": 'W/"0.x.2"'}),
    change("what is not registered", "host_not_found", {"disabled": None}, 404, "/v1/resources/host/99"),
    change("what no kind has", "kind_not_found", {"disabled": None}, 404, "/v1/resources/rocket/1"),
    of("unregisters what is promised", "DELETE", "/host/{host}", 409, "resource_in_use"),
    of("unregisters nothing", "DELETE", "/host/99", 404, "host_not_found"),
    of("unregisters a rocket", "DELETE", "/rocket/1", 404, "kind_not_found"),
    of("refreshes nothing", "POST", "/host/99/refresh", 404, "host_not_found"),
    of("refreshes a rocket", "POST", "/rocket/1/refresh", 404, "kind_not_found"),
    of("hides what no host has", "PATCH", "/host/properties/colour", 404, "property_not_found", {"private": True}),
    of("hides half a property", "PATCH", "/host/properties/gpu", 400, "missing_field /private", {}),
    of("hides it twice", "PATCH", "/host/properties/gpu", 400, "invalid_value /private", {"private": "yes"}),
    of("hides that of a rocket", "PATCH", "/rocket/properties/gpu", 404, "kind_not_found", {"private": True}),
    of("puts a kind", "PUT", "/host", 405, "method_not_allowed", {}),
]
ALL = [*QUERIES, *REGISTRATIONS, *CHANGES]
