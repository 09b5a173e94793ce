# SPDX-License-Identifier: Apache-2.0
"""Floating IPs and their reservations."""

from __future__ import annotations

from typing import Any

from tests.api.bad_requests.builders import MEMBER, NEW_ADDRESS, NOBODY, Bad, change, ips, ips_without, post


def address(name: str, body: Any, says: str, status: int = 400) -> Bad:
    return Bad(f"address: {name}", "POST", "/v1/floatingips", status, says, body)


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
    address(
        "of IPv6", {**NEW_ADDRESS, "floating_ip_address": "2001:db8::1"}, "floating_ip_address is 2001:db8::1, an IPv6"
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
