# SPDX-License-Identifier: Apache-2.0
"""Servers with networks, volumes and addresses of their own lease."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests import oracle
from tests.world import NOON, PROJECT, World, a_network, addresses, servers, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SUBNET = {"cidr": "10.0.0.0/24"}
ALL = {"networks": [{"reservation": 1}], "volumes": [{"reservation": 2}], "floating_ip": {"reservation": 3}}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_segments(101, 102)
    world.register_pools(1, 2)
    world.register_addresses(10, 11, 12)
    return world


def a_lab(world: World, amount: int = 1, *, disks: int = 1, subnet: object = SUBNET, **more):
    """Return a lease of servers with a network, volumes and addresses of their own."""
    whole = {**ALL, **more}
    return world.lease(
        servers(amount, name="web", **whole),
        a_network("lab", subnet=subnet),
        volumes(disks, name="data"),
        addresses(amount),
        start=HOUR,
    )


def found_in(world: World):
    """Return servers by name, the servers of each volume, and the ports of addresses."""
    with world.simulated.inspect() as state:
        by_id = {server.id: server.name for server in state.servers.values()}
        disks = {v.name: [by_id.get(id_) for id_ in v.servers.values()] for v in state.block.volumes.values()}
        ports = sorted(f.port_id or "" for f in state.floating_ips.values())
        return {s.name: s for s in state.servers.values()}, disks, ports


def test_a_server_gets_what_its_lease_has(world):
    lease = a_lab(world)
    world.run_to(NOON + HOUR + MINUTE)
    now = world.now(lease)
    assert now.status is LeaseStatus.ACTIVE
    by_type = {r.resource_type: r for r in now.reservations}
    booted, disks, ports = found_in(world)
    assert booted["web"].networks == [by_type["network"].shown["network_id"]]
    assert disks == {"data": ["web"]}
    assert ports == [f"port-of-{booted['web'].id}"]
    assert by_type["virtual:server"].shown["networks"] == [{"reservation": by_type["network"].id}]
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert found_in(world) == ({}, {}, [])
    oracle.check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_volumes_go_to_servers_in_turn_and_each_gets_an_address(world):
    a_lab(world, 2, disks=3)
    world.run_to(NOON + HOUR + MINUTE)
    booted, disks, ports = found_in(world)
    assert ports == sorted(f"port-of-{booted[name].id}" for name in ("web-1", "web-2"))
    assert sorted(name for (name,) in disks.values()) == ["web-1", "web-1", "web-2"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["create_subnet", "begin_boot", "begin_attachment", "attach_floating_ip"])
def test_a_lost_answer_does_nothing_twice(world, call):
    lease = a_lab(world)
    world.faults.fail_after(call, CloudUnavailable("lost"))
    world.run_to(NOON + HOUR)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    booted, disks, ports = found_in(world)
    assert (world.now(lease).status, booted.keys()) == (LeaseStatus.ACTIVE, {"web"})
    assert (disks, ports) == ({"data": ["web"]}, [f"port-of-{booted['web'].id}"])


def test_a_network_without_a_subnet_is_refused_when_servers_name_it(world):
    """They would fail at the start, whatever their users do."""
    with pytest.raises(InvalidInput, match="networks/0 names reservation 1, which has no subnet") as refused:
        a_lab(world, subnet=None)
    assert refused.value.pointer == "/reservations/0/networks/0"
    assert world.manager.leases.all(None) == ()
    lease = a_lab(world)
    network = next(r for r in lease.reservations if r.resource_type == "network")
    with pytest.raises(InvalidInput, match="has no subnet"):
        world.change(lease, reservations=(ReservationChange(id=network.id, parameters={"subnet": None}),))
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(
    ("tie", "other"),
    [({"volumes": [{"reservation": 2}]}, volumes(4)), ({"floating_ip": {"reservation": 2}}, addresses(2))],
)
def test_volumes_and_addresses_are_for_one_reservation_of_servers(world, tie, other):
    """The second one would wait for volumes that the first has, until the end of the lease."""
    with pytest.raises(InvalidInput, match="which another reservation names, too; make one for each") as refused:
        world.lease(servers(1, **tie), servers(1, **tie), other, start=HOUR)
    (field,) = tie
    assert refused.value.pointer == f"/reservations/1/{field}" + ("/0" if field == "volumes" else "")
    assert world.manager.leases.all(None) == ()
    lease = world.lease(servers(1, **tie), servers(1), other, start=HOUR)
    first, second, _ = lease.reservations
    values = {field: first.parameters.values[field]}
    with pytest.raises(InvalidInput, match="which another reservation names, too"):
        world.change(lease, reservations=(ReservationChange(id=second.id, parameters=values),))
    free = ReservationChange(id=first.id, parameters={field: [] if field == "volumes" else None})
    taken = ReservationChange(id=second.id, parameters=values)
    world.change(lease, reservations=(free, taken))
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_server_without_a_network_gets_no_address(world):
    with pytest.raises(InvalidInput, match="floating_ip is given, and networks is 'none'") as refused:
        world.lease(servers(networks="none", floating_ip={"reservation": 1}), addresses(1), start=HOUR)
    assert refused.value.pointer == "/reservations/0/floating_ip"


@pytest.mark.parametrize(
    "more",
    [
        {"networks": [{"reservation": 2}]},
        {"volumes": [{"reservation": 1}]},
        {"floating_ip": {"reservation": 0}},
        {"floating_ip": {"reservation": 9}},
        {"volumes": {"reservation": 2}},
        {"networks": [{"reservation": 1, "uuid": "public"}]},
    ],
)
def test_references_to_what_is_not_meant_are_refused(world, more):
    with pytest.raises(InvalidInput):
        a_lab(world, **more)
    assert world.manager.leases.all(None) == ()
    assert {each.project_id for each in world.simulated.network.floating_ips()} <= {PROJECT}


@pytest.mark.parametrize(
    ("amount", "disks", "named", "why"),
    [
        (1, {"mode": "quota", "amount": 1}, [1], "is a quota: it has no volumes"),
        (2, {"amount": 1}, [1], "has 1 volume for 2 servers"),
        (1, {"amount": 2}, [1, 1], "twice"),
    ],
)
def test_volumes_that_the_servers_could_not_get_are_refused(world, amount, disks, named, why):
    tied = [{"reservation": number} for number in named]
    with pytest.raises(InvalidInput, match=why) as refused:
        world.lease(servers(amount, volumes=tied), volumes(**disks), start=HOUR)
    assert refused.value.pointer == f"/reservations/0/volumes/{len(named) - 1}"
    assert world.manager.leases.all(None) == ()


def test_before_the_start_there_stay_as_many_volumes_as_servers(world):
    lease = world.lease(servers(2, volumes=[{"reservation": 1}]), volumes(2), start=HOUR)
    of_servers, of_volumes = lease.reservations
    for reservation, amount in ((of_servers, 3), (of_volumes, 1)):
        with pytest.raises(InvalidInput, match="for [23] servers"):
            world.change(lease, reservations=(ReservationChange(id=reservation.id, parameters={"amount": amount}),))
    world.run_to(NOON + HOUR + MINUTE)
    # From then on, volumes for new servers are for users to attach.
    world.resize(lease, amount=3)
    world.run_to(NOON + HOUR + 2 * MINUTE)
    assert len(found_in(world)[0]) == 3
