# SPDX-License-Identifier: Apache-2.0
"""Who may do what to whose lease: role, own or foreign, operation, version of the API. Data, for any cloud."""

from __future__ import annotations

from typing import Any

WHO = ("admin", "member", "reader", "stranger", "foreign reader", "service", "nobody")
"""``member`` and ``reader`` have just that role in the lease's project; the strangers have it in another."""

HOST_RESERVATION = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}
LEASE = {"name": "own plan", "start_date": "2031-05-01 10:00", "end_date": "2031-05-01 12:00", "events": []}
PRICES = {"currency": "EUR", "decimals": 2, "valid_from": "2030-04-01", "time_zone": "UTC", "prices": []}
NEW = {**LEASE, "reservations": [HOST_RESERVATION]}

ON_A_LEASE = [
    (root, *row)
    for root in ("/v1", "/v2")
    for row in (
        #                                      admin member reader stranger foreign reader service nobody
        ("GET", "/leases/{lease}", None, (200, 200, 200, 403, 403, 403, 401)),
        ("GET", "/leases/{lease}.json", None, (200, 200, 200, 403, 403, 403, 401)),
        ("PUT", "/leases/{lease}", {"name": "x"}, (200, 200, 403, 403, 403, 403, 401)),
        ("PUT", "/leases/{lease}", {"end_date": "2031-05-01 13:00"}, (200, 200, 403, 403, 403, 403, 401)),
        # What is wrong with a body is not told to those who may not send one.
        ("PUT", "/leases/{lease}", {"project_id": "x"}, (400, 400, 403, 403, 403, 403, 401)),
        ("POST", "/leases", NEW, (201, 201, 403, 201, 403, 403, 401)),
        ("DELETE", "/leases/{lease}", None, (204, 204, 403, 403, 403, 403, 401)),
    )
] + [
    ("/v1", "GET", f"/leases/{{lease}}/{what}", None, (200, 200, 200, 403, 403, 403, 401))
    for what in ("hosts", "networks", "devices")
]
"""Version, method, path, body, and the status that each of ``WHO`` gets."""

ON_HOSTS = [
    ("/v1", "GET", "/os-hosts", None, 200),
    ("/v1", "GET", "/os-hosts/{host}", None, 200),
    ("/v1", "POST", "/os-hosts", {"name": "no-such-host"}, 404),
    ("/v1", "PUT", "/os-hosts/{host}", {"rack": "r1"}, 200),
    ("/v1", "DELETE", "/os-hosts/0", None, 404),
    ("/v1", "GET", "/os-hosts/allocations", None, 200),
    ("/v1", "GET", "/os-hosts/{host}/allocation", None, 200),
    ("/v1", "PUT", "/os-hosts/{host}/allocation", {"reservation_id": "none"}, 404),
    ("/v1", "POST", "/os-hosts/{host}/refresh", None, 200),
    ("/v1", "GET", "/os-hosts/properties", None, 200),
    ("/v1", "PATCH", "/os-hosts/properties/rack", {"private": False}, 200),
    ("/v2", "GET", "/os-hosts", None, 200),
    ("/v2", "GET", "/os-hosts/{host}", None, 200),
    ("/v2", "POST", "/os-hosts", {"name": "no-such-host"}, 404),
    ("/v2", "POST", "/os-hosts", {"colour": "red"}, 400),
    ("/v2", "PUT", "/os-hosts/{host}", {"extra_capas": {"rack": "r1"}}, 200),
    ("/v2", "GET", "/os-hosts/no-number", None, 400),
    ("/v2", "DELETE", "/os-hosts/0", None, 404),
]
"""What an operator gets; everybody else gets 403, and nobody 401."""

NO_ADDRESS = {"floating_network_id": "no-such-network", "floating_ip_address": "203.0.113.10"}
ON_ADDRESSES = [
    #                                                admin member reader stranger foreign reader service nobody
    ("GET", "/floatingips", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/floatingips/{address}", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/floatingips/0", None, (404, 404, 404, 404, 404, 403, 401)),
    ("POST", "/floatingips", NO_ADDRESS, (400, 403, 403, 403, 403, 403, 401)),
    ("POST", "/floatingips", {"colour": "red"}, (400, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/floatingips/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/floatingips/{address}", None, (204, 403, 403, 403, 403, 403, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, in version 1: addresses are everybody's to see."""

_FOR_OPERATORS = (403, 403, 403, 403, 403, 401)
ON_NETWORKS = [
    ("GET", "/networks", None, (200, *_FOR_OPERATORS)),
    ("GET", "/networks/{segment}", None, (200, *_FOR_OPERATORS)),
    ("GET", "/networks/0", None, (404, *_FOR_OPERATORS)),
    ("POST", "/networks", {"colour": "red"}, (400, *_FOR_OPERATORS)),
    ("PUT", "/networks/{segment}", {"colour": "red"}, (200, *_FOR_OPERATORS)),
    ("DELETE", "/networks/{segment}", None, (200, *_FOR_OPERATORS)),
    ("GET", "/networks/allocations", None, (200, *_FOR_OPERATORS)),
    ("GET", "/networks/{segment}/allocation", None, (200, *_FOR_OPERATORS)),
    ("GET", "/networks/properties", None, (200, *_FOR_OPERATORS)),
    ("PATCH", "/networks/properties/none", {"private": False}, (404, *_FOR_OPERATORS)),
]
"""The same of network segments, which are for operators."""

ON_DEVICES = [
    *(
        (method, path.replace("networks", "devices").replace("segment", "device"), body, statuses)
        for method, path, body, statuses in ON_NETWORKS
    ),
    ("PUT", "/devices/{device}/allocation", {"lease_id": "none"}, (404, *_FOR_OPERATORS)),
]
"""The same of devices."""

FREE = {"reservations": [{"resource_type": "physical:host", "min": 1}], "duration": "PT1H"}
ON_CALENDAR = [
    #                                   admin member reader stranger foreign reader service nobody
    ("GET", "/calendar", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/capacity", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/properties", None, (200, 200, 200, 200, 200, 403, 401)),
    ("POST", "/availability", FREE, (200, 200, 403, 200, 403, 403, 401)),
    ("POST", "/availability", {"colour": "red"}, (400, 400, 403, 400, 403, 403, 401)),
    ("GET", "/info", None, (200, 200, 200, 200, 200, 200, 401)),
    ("GET", "/resources/host", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/resources/host/candidates", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/allocations", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/0/allocations", None, (404, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/resources/host/0/allocations", {"reservation_id": "none"}, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/resources/host/0/refresh", None, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/properties", None, (200, 403, 403, 403, 403, 403, 401)),
    ("PATCH", "/resources/host/properties/none", {"private": False}, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/floatingip", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/resources/floatingip/0", None, (404, 404, 404, 404, 404, 403, 401)),
    ("POST", "/resources/floatingip", NO_ADDRESS, (400, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/resources/floatingip/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/resources/host", {"name": "no-such-host"}, (400, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/resources/host/0", {"disabled": None}, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/leases", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/leases/{lease}", None, (200, 200, 200, 404, 404, 404, 401)),
    ("PUT", "/leases/{lease}", {"name": "x"}, (200, 200, 403, 404, 404, 404, 401)),
    ("PUT", "/leases/{lease}", {"project_id": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("DELETE", "/leases/{lease}", None, (204, 204, 403, 404, 404, 404, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, in version 1 from microversion 1.1 on."""

ON_RESOURCES = [
    #                                          admin member reader stranger foreign reader service nobody
    ("GET", "/resources", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/resources/nothing", None, (404, 404, 404, 404, 404, 403, 401)),
    ("GET", "/resources/host", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/resources/host/{label}", None, (404, 200, 200, 200, 200, 403, 401)),
    ("GET", "/resources/host/1", None, (200, 404, 404, 404, 404, 403, 401)),
    ("POST", "/resources/host", {"name": "no-such-host"}, (400, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/resources/host/1", {"disabled": None}, (200, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/resources/host/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/resources/host/1/refresh", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/allocations", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/1/allocations", None, (200, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/resources/host/0/allocations", {"reservation_id": "none"}, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/candidates", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/resources/host/properties", None, (200, 403, 403, 403, 403, 403, 401)),
    ("PATCH", "/resources/host/properties/none", {"private": False}, (404, 403, 403, 403, 403, 403, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, in version 1 from microversion 1.1 on."""

SERIES = {
    "name": "own plan",
    "rule": "FREQ=DAILY;COUNT=2",
    "start": "2031-05-01T10:00",
    "duration": "PT1H",
    "fit": "as_many",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
ON_MORE = [
    #                                     admin member reader stranger foreign reader service nobody
    ("POST", "/leases/{lease}/keep", None, (409, 409, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/confirm", None, (409, 409, 403, 404, 404, 404, 401)),
    ("PUT", "/leases/{lease}/hold", None, (409, 403, 403, 404, 404, 404, 401)),
    ("DELETE", "/leases/{lease}/hold", None, (409, 403, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/reservations/none/swap", {"host": "x"}, (404, 404, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/reservations/none/swap", {"colour": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/reservations/none/swap", {"host": "x", "for": "y"}, (404, 403, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/split", {"reservations": [{"id": "x"}]}, (400, 400, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/split", {"colour": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/merge", {"with": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/merge", {"colour": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("GET", "/leases/{lease}/history", None, (200, 200, 200, 404, 404, 404, 401)),
    ("GET", "/leases/{lease}/energy", None, (200, 200, 200, 404, 404, 404, 401)),
    ("DELETE", "/leases/{lease}/transfer", None, (404, 404, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/transfer?dry_run=true", {"project_id": "x"}, (200, 200, 403, 404, 404, 404, 401)),
    ("POST", "/leases/{lease}/transfer", {"colour": "x"}, (400, 400, 403, 404, 404, 404, 401)),
    ("GET", "/transfers", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/transfers/{lease}", None, (404, 404, 404, 404, 404, 403, 401)),
    ("POST", "/transfers/{lease}/accept", None, (404, 404, 403, 404, 403, 403, 401)),
    ("POST", "/transfers/{lease}/decline", None, (404, 404, 403, 404, 403, 403, 401)),
    ("GET", "/series", None, (200, 200, 200, 200, 200, 403, 401)),
    ("POST", "/series", SERIES, (201, 201, 403, 201, 403, 403, 401)),
    ("POST", "/series", {"colour": "red"}, (400, 400, 403, 400, 403, 403, 401)),
    ("GET", "/series/{series}", None, (200, 200, 200, 404, 404, 404, 401)),
    ("PUT", "/series/{series}", {"name": "x"}, (200, 200, 403, 404, 404, 404, 401)),
    ("PUT", "/series/{series}", {"colour": "red"}, (400, 400, 403, 404, 404, 404, 401)),
    ("DELETE", "/series/{series}", None, (204, 204, 403, 404, 404, 404, 401)),
    ("GET", "/maintenances", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/history", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/reports/usage", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/reports/usage?project_id=other", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/reports/usage?unbooked=true", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/reports/capacity", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/reports/demand", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/reports/demand?project_id=other", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/reports/forecast", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/problems", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/problems/event:0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/problems/event:0/retry", {"reason": "x"}, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/hosts", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/hosts/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/power/hosts/0", {"colour": "red"}, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/power/hosts/0/wake", None, (409, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/hosts/0/log", None, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/pools", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/pools/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("PUT", "/power/pools/0", {"colour": "red"}, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/power/pools/0/wake", None, (409, 403, 403, 403, 403, 403, 401)),
    ("GET", "/power/pools/0/log", None, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/price-lists", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/price-lists/1", None, (404, 404, 404, 404, 404, 403, 401)),
    ("POST", "/price-lists", {"colour": "red"}, (400, 403, 403, 403, 403, 403, 401)),
    ("POST", "/price-lists?dry_run=true", PRICES, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/rules", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/rules/nights", None, (404, 404, 404, 404, 404, 403, 401)),
    ("PUT", "/rules/nights", {"colour": "red"}, (400, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/rules/nights", None, (404, 403, 403, 403, 403, 403, 401)),
    ("GET", "/budgets", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/budgets?project_id=another", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/budgets?all_projects=true", None, (200, 403, 403, 403, 403, 403, 401)),
    ("GET", "/statements", None, (200, 200, 200, 200, 200, 403, 401)),
    ("GET", "/statements/2030-04", None, (404, 404, 404, 404, 404, 403, 401)),
    ("GET", "/charges", None, (200, 200, 200, 200, 200, 403, 401)),
    ("POST", "/charges", {"colour": "red"}, (400, 403, 403, 403, 403, 403, 401)),
    ("GET", "/managers", None, (200, 403, 403, 403, 403, 403, 401)),
    ("POST", "/maintenances", {"name": "x"}, (400, 403, 403, 403, 403, 403, 401)),
    ("GET", "/maintenances/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("PATCH", "/maintenances/0", {"name": "x"}, (404, 403, 403, 403, 403, 403, 401)),
    ("DELETE", "/maintenances/0", None, (404, 403, 403, 403, 403, 403, 401)),
    ("POST", "/maintenances/0/end", None, (404, 403, 403, 403, 403, 403, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, in version 1 from microversion 1.1 on."""

USERS_FEED = {"kind": "user", "name": "mine"}
ON_FEEDS = [
    #                                       admin member reader stranger foreign reader service nobody
    ("GET", "/feeds", None, (200, 200, 200, 200, 200, 403, 401)),
    ("POST", "/feeds", USERS_FEED, (201, 201, 201, 201, 201, 403, 401)),
    ("POST", "/feeds", {**USERS_FEED, "kind": "resource", "resource": "{host}"}, (201, 403, 403, 403, 403, 403, 401)),
    ("POST", "/feeds", {"colour": "red"}, (400, 400, 400, 400, 400, 403, 401)),
    ("GET", "/feeds/{feed}", None, (200, 200, 404, 404, 404, 403, 401)),
    ("DELETE", "/feeds/{feed}", None, (204, 204, 404, 404, 404, 403, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, from 1.1 on: a feed is its user's, a member's here."""

SUBSCRIPTION = {"url": "https://ci.example/x", "events": ["lease.*"]}
ON_SUBSCRIPTIONS = [
    #                                       admin member reader stranger foreign reader service nobody
    ("GET", "/subscriptions", None, (200, 200, 200, 200, 200, 403, 401)),
    ("POST", "/subscriptions", SUBSCRIPTION, (201, 201, 403, 201, 403, 403, 401)),
    ("POST", "/subscriptions", {**SUBSCRIPTION, "project_id": None}, (201, 403, 403, 403, 403, 403, 401)),
    ("POST", "/subscriptions", {**SUBSCRIPTION, "project_id": "chemistry"}, (403, 403, 403, 403, 403, 403, 401)),
    ("POST", "/subscriptions", {"colour": "red"}, (400, 400, 403, 400, 403, 403, 401)),
    ("GET", "/subscriptions/{subscription}", None, (200, 200, 200, 404, 404, 404, 401)),
    ("PATCH", "/subscriptions/{subscription}", {"state": "paused"}, (200, 200, 403, 404, 404, 404, 401)),
    ("PATCH", "/subscriptions/{subscription}", {"colour": "red"}, (400, 400, 403, 404, 404, 404, 401)),
    ("POST", "/subscriptions/{subscription}/test", None, (202, 202, 403, 404, 404, 404, 401)),
    ("POST", "/subscriptions/{subscription}/replay", {"after": 0}, (202, 202, 403, 404, 404, 404, 401)),
    ("POST", "/subscriptions/{subscription}/replay", {"colour": "red"}, (400, 400, 403, 404, 404, 404, 401)),
    ("GET", "/subscriptions/{subscription}/failures", None, (200, 200, 200, 404, 404, 404, 401)),
    ("GET", "/subscriptions/{operators}/failures", None, (200, 404, 404, 404, 404, 404, 401)),
    ("DELETE", "/subscriptions/{subscription}", None, (204, 204, 403, 404, 404, 404, 401)),
    ("GET", "/subscriptions/{operators}", None, (200, 404, 404, 404, 404, 404, 401)),
    ("PATCH", "/subscriptions/{operators}", {"state": "paused"}, (200, 404, 404, 404, 404, 404, 401)),
    ("GET", "/subscriptions/mine", None, (200, 200, 200, 200, 200, 403, 401)),
    ("PATCH", "/subscriptions/mine", {"events": []}, (200, 200, 200, 200, 200, 403, 401)),
    ("PATCH", "/subscriptions/mine", {"colour": "red"}, (400, 400, 400, 400, 400, 403, 401)),
    ("DELETE", "/subscriptions/{operators}", None, (204, 404, 404, 404, 404, 404, 401)),
]
"""Method, path, body, and the status that each of ``WHO`` gets, from 1.1 on: of the member's, and of an operator's."""

SEEN = {
    "admin": {"own", "foreign"},
    "member": {"own"},
    "reader": {"own"},
    "stranger": {"foreign"},
    "foreign reader": {"foreign"},
    "service": set(),
}
"""Of the lease in the table and one of the stranger's project, what a list has."""

QUERIES = ("?all_tenants=1", "?project_id={project}", "?all_projects=True")


def for_hosts(who: str, status: int) -> int:
    """Return what somebody gets where an operator gets this status."""
    return {"admin": status, "nobody": 401}.get(who, 403)


def lease_in(body: Any) -> dict[str, Any]:
    """Return the lease of an answer: version 1 puts it into an envelope."""
    lease: dict[str, Any] = body.get("lease", body)
    return lease


def ids_in(body: Any) -> set[str]:
    """Return the ids of a list of leases; of a refusal, none."""
    return {lease["id"] for lease in (body if isinstance(body, list) else body.get("leases", []))}
