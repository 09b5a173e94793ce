# SPDX-License-Identifier: Apache-2.0
"""What a request costs does not grow with hosts, leases or reservations."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.clouds.ports.compute import Flavor
from tests.observed import ObservedManager
from tests.statements import counted
from tests.world import World, a_host

STATEMENTS = {
    "create": 10,
    "create for ten hosts": 10,
    "create with three reservations": 10,
    "create with instances": 10,
    "create with a flavor": 10,
    "create with hosts and instances": 10,
    "show": 3,
    "list, cold": 4,
    "list": 1,
    "list, one changed": 4,
    "rename": 8,
    "prolong": 18,
    "grow": 18,
    "more instances": 19,
    "more of a flavor": 19,
    "another flavor": 29,
    "delete": 17,
    "hosts": 1,
    "host": 2,
    "allocations": 2,
    "allocation of a host": 3,
    "properties": 2,
}
"""A change leaves a note of what it changes, and reads what those before it have changed."""

ONLY_IN_V1 = {"allocations", "allocation of a host", "properties"}


def expected(root: str) -> dict[str, int]:
    """Return what a version is to cost: the same as the other, for what both have."""
    return {name: count for name, count in STATEMENTS.items() if root == "/v1" or name not in ONLY_IN_V1}


def cost_of_everything(world: World, root: str) -> dict[str, int]:
    http = create_app(world.manager, identity=StandaloneIdentity()).test_client()
    cost = {}

    def ask(name: str, method: str, path: str, json: object = None) -> dict:
        with counted(world.engine) as statements:
            answer = http.open(root + path, method=method, json=json)
        assert answer.status_code < 300, answer.text
        cost[name] = statements.count
        body = answer.json or {}
        return body.get("lease", body) if isinstance(body, dict) else {}

    reservation = {"resource_type": "physical:host", "hypervisor_properties": "", "resource_properties": ""}

    servers = {**reservation, "resource_type": "virtual:instance", "amount": 2, "affinity": None}
    servers |= {"vcpus": 1, "memory_mb": 512, "disk_gb": 1}

    def body(*sizes: int) -> dict:
        reservations = [{**reservation, "min": n, "max": n} for n in sizes]
        return {
            "name": "x",
            "start_date": "2031-05-01 10:00",
            "end_date": "2031-05-01 12:00",
            "reservations": reservations,
        }

    later = {"name": "x", "start_date": "2032-05-01 10:00", "end_date": "2032-05-01 12:00"}
    ask("the first one", "POST", "/leases", body(1))  # reads the inventory, which is kept from then on
    lease = ask("create", "POST", "/leases", body(1))
    ten = ask("create for ten hosts", "POST", "/leases", body(10))
    ask("create with three reservations", "POST", "/leases", body(1, 1, 1))
    booked = ask("create with instances", "POST", "/leases", {**later, "reservations": [servers]})
    of_flavor = {"resource_type": "flavor:instance", "flavor_id": "small", "amount": 2, "affinity": None}
    for flavor_id in ("small", "large"):
        flavor = Flavor(flavor_id, flavor_id, 2, 512, 1, extra_specs={"resources:DISK_GB": "1"}, public=True)
        world.simulated.operators.offer_flavor(flavor)
    chosen = ask("create with a flavor", "POST", "/leases", {**later, "reservations": [of_flavor]})
    both = [{**reservation, "min": 1, "max": 1}, servers]
    ask("create with hosts and instances", "POST", "/leases", {**later, "reservations": both})
    ask("show", "GET", f"/leases/{lease['id']}")
    ask("list, cold", "GET", "/leases")
    ask("list", "GET", "/leases")
    ask("rename", "PUT", f"/leases/{lease['id']}", {"name": "y"})
    ask("prolong", "PUT", f"/leases/{ten['id']}", {"end_date": "2031-05-01 13:00"})
    ask("list, one changed", "GET", "/leases")
    more = {"id": lease["reservations"][0]["id"], "min": 2, "max": 2}
    ask("grow", "PUT", f"/leases/{lease['id']}", {"reservations": [more]})
    for name, made in (("more instances", booked), ("more of a flavor", chosen)):
        more = {"id": made["reservations"][0]["id"], "amount": 3}
        ask(name, "PUT", f"/leases/{made['id']}", {"reservations": [more]})
    other = {"id": chosen["reservations"][0]["id"], "flavor_id": "large"}
    ask("another flavor", "PUT", f"/leases/{chosen['id']}", {"reservations": [other]})
    ask("hosts", "GET", "/os-hosts")
    ask("host", "GET", "/os-hosts/1")
    if root == "/v1":
        ask("allocations", "GET", "/os-hosts/allocations")
        ask("allocation of a host", "GET", "/os-hosts/1/allocation")
        ask("properties", "GET", "/os-hosts/properties?detail=True")
    ask("delete", "DELETE", f"/leases/{ten['id']}")
    del cost["the first one"]
    return cost


@pytest.mark.slow
@pytest.mark.parametrize("root", ["/v1", "/v2"])
def test_the_number_of_statements_is_pinned_and_the_same_on_every_database(engine, root):
    world = World(engine, hosts=16)
    assert cost_of_everything(world, root) == expected(root)


@pytest.mark.slow
@pytest.mark.parametrize("root", ["/v1", "/v2"])
@pytest.mark.parametrize(("hosts", "leases"), [(16, 40), (48, 10)])
def test_the_number_of_statements_does_not_grow(sqlite, hosts, leases, root):
    world = World(sqlite, hosts=hosts)
    for number in range(leases):
        world.lease(a_host(1, 3), start=timedelta(hours=3 * number + 1))
    assert cost_of_everything(world, root) == expected(root)


def test_from_1_1_on_a_lease_is_read_no_more_often_than_is_needed(world):
    lease = world.lease(a_host(), start=timedelta(days=1))
    calls: list[str] = []

    def watched(name, call, *arguments, **more):
        calls.append(name)
        return call(*arguments, **more)

    http = create_app(ObservedManager(world.manager, watched), identity=StandaloneIdentity()).test_client()
    put, path = "leases.change", f"/v1/leases/{lease.id}"
    ask, search = "availability.find", "/v1/availability"
    grown = {"reservations": [{"id": lease.reservations[0].id, "min": 2, "max": 2}]}
    later = {"end_date": "2030-05-01T12:00:00Z"}

    def cost(method: str, path: str, json: object) -> tuple[int, list[str]]:
        calls.clear()
        with counted(world.engine) as statements:
            answer = http.open(path, method=method, json=json, headers={"OpenStack-API-Version": "reservation 1.1"})
        assert answer.status_code == 200, answer.text
        assert calls.pop(0) == "leases.owner"
        return statements.count, calls

    cost("POST", search, {"lease_id": lease.id})
    assert cost("POST", search, {"lease_id": lease.id}) == (9, [ask])
    assert cost("POST", search, {"lease_id": lease.id, **later}) == (9, [ask])
    assert cost("POST", search, {"lease_id": lease.id, **grown}) == (13, ["leases.details", ask])
    assert cost("PUT", path, {"name": "x"}) == (10, [put])
    # A dry run says the price, so it asks whether there is a newer price list.
    assert cost("PUT", f"{path}?dry_run=true", later) == (11, [put])
    assert cost("PUT", f"{path}?dry_run=true", grown) == (15, ["leases.details", put])
