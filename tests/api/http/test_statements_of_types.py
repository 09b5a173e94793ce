# SPDX-License-Identifier: Apache-2.0
"""What a request costs is pinned for every type, and does not grow with its resources, reservations or leases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.clouds.ports.compute import Flavor
from blazar.model.leases.requests import ReservationRequest
from tests.statements import counted
from tests.world import PROJECT, World, a_host, a_network, addresses, devices, servers, stacks, things, units, volumes

HEADERS = {"OpenStack-API-Version": "reservation 1.1", "X-Project-Id": PROJECT}
FLAVOR = "m1.small"

REQUESTS: Mapping[str, tuple[ReservationRequest, ...]] = {
    "addresses": (addresses(2),),
    "networks": (a_network(), a_network("other")),
    "devices": (devices(2),),
    "things": (things(2),),
    "units": (units(2),),
    "volumes": (volumes(2),),
    "servers": (servers(2),),
    "stack": (stacks(FLAVOR),),
    "stack of many": (stacks(FLAVOR, FLAVOR, disks=3, outside=2),),
    "all": (a_host(), addresses(), a_network(), devices(), volumes(), servers(), stacks(FLAVOR, disks=1, outside=1)),
}
"""Reservations of a lease: each type by itself, and all together."""


STATEMENTS: Mapping[str, tuple[int, int, int, int]] = {
    "addresses": (14, 20, 3, 15),
    "networks": (13, 20, 2, 15),
    "devices": (13, 21, 2, 16),
    "things": (14, 21, 3, 16),
    "units": (14, 21, 3, 16),
    "volumes": (13, 20, 2, 21),
    "servers": (14, 20, 2, 15),
    "stack": (14, 20, 2, 15),
    "stack of many": (18, 28, 8, 21),
    "all": (20, 37, 12, 28),
}
"""To create, prolong, find a time for, and delete. What reads a calendar does so once for each kind of resource.

Each question here comes after a change, which it reads: one statement more for each kind. A change leaves a note.
"""

DELETE_WITHOUT_QUOTAS = 15


def stocked(engine, hosts: int, leases: int) -> World:
    """Return a world with so many hosts, addresses, segments, devices, things and pools, and as many leases of each."""
    world = World(engine, hosts=hosts)
    numbers = range(10, 10 + hosts)
    world.register_addresses(*numbers)
    world.register_segments(*(100 + number for number in numbers))
    world.register_pools(*range(1, hosts + 1), gigabytes=300)
    for number in numbers:
        world.register_device(f"edge-{number}")
        world.register_thing(f"microscope-{number}")
        world.register_thing(f"cluster-{number}", capacity=4)
    world.simulated.operators.offer_flavor(Flavor(FLAVOR, FLAVOR, 1, 512, 1, public=True))
    for number in range(leases):
        for reservations in REQUESTS.values():
            world.lease(*reservations, start=timedelta(hours=3 * number + 1), name=f"{number}")
    return world


def cost_of(world: World, reservations: tuple[ReservationRequest, ...]) -> dict[str, int]:
    """Return the statements of each request in the life of a lease before its start, and of the questions for it."""
    http = create_app(world.manager, identity=StandaloneIdentity()).test_client()
    cost = {}

    def ask(name: str, method: str, path: str, json: object = None) -> dict:
        with counted(world.engine) as statements:
            answer = http.open(f"/v1{path}", method=method, json=json, headers=HEADERS)
        assert answer.status_code < 300, answer.text
        cost[name] = statements.count
        return answer.json or {}

    wanted = [{"resource_type": one.resource_type, **one.parameters} for one in reservations]
    for day in ("2032-04-01", "2032-05-01"):  # the first request reads the inventory, which is kept from then on
        dates = {"start_date": f"{day} 10:00", "end_date": f"{day} 12:00"}
        lease = ask("create", "POST", "/leases", {"name": "x", **dates, "reservations": wanted})["lease"]
    ask("show", "GET", f"/leases/{lease['id']}")
    ask("list, cold", "GET", "/leases?limit=5")
    ask("prolong", "PUT", f"/leases/{lease['id']}", {"end_date": "2032-05-01 13:00"})
    question = {"duration": "1h", "reservations": wanted}
    ask("find a time", "POST", "/availability", question)
    ask("delete", "DELETE", f"/leases/{lease['id']}")
    return cost


def expected(name: str) -> dict[str, int]:
    create, prolong, find, delete = STATEMENTS[name]
    return {"create": create, "show": 5, "list, cold": 4, "prolong": prolong, "find a time": find, "delete": delete}


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "leases"), [(16, 1), (24, 4)])
def test_the_number_of_statements_does_not_grow(sqlite, hosts, leases):
    world = stocked(sqlite, hosts, leases)
    cost = {name: cost_of(world, reservations) for name, reservations in REQUESTS.items()}
    assert cost == {name: expected(name) for name in REQUESTS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("few", "many"),
    [
        ([a_network(), a_network("other")], [a_network(f"lab-{number}") for number in range(10)]),
        ([servers(1), servers(1)], [servers(1)] * 10),
        ([volumes(1), volumes(1)], [volumes(1)] * 10),
        ([stacks(*[FLAVOR] * 20, disks=2, outside=2)], [stacks(*[FLAVOR] * 40, disks=8, outside=4)]),
        ([a_host(), stacks(FLAVOR, disks=1)], [a_host(), *[stacks(FLAVOR, disks=1)] * 5]),
    ],
)
def test_nor_does_it_with_the_parts_of_a_lease(sqlite, few, many):
    """But for what gives quotas back, which looks at the other reservations after each call to the cloud."""
    world = stocked(sqlite, 24, 1)
    less, more = cost_of(world, tuple(few)), cost_of(world, tuple(many))
    if less["delete"] > DELETE_WITHOUT_QUOTAS:
        del less["delete"], more["delete"]
    assert more == less


def test_it_is_the_same_on_every_database(engine):
    assert cost_of(stocked(engine, 16, 1), REQUESTS["all"]) == expected("all")
