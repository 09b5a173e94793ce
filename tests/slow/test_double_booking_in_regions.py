# SPDX-License-Identifier: Apache-2.0
"""Sixteen processes race for the last of everything in two regions: in neither is anything ever promised twice, and
nothing lies in a region that it was not asked for.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from blazar.clouds.simulated import FileStorage, of_size
from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, NETWORK, VOLUME
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.manager.regions.world import REGIONS, TwoRegions
from tests.oracle import STACK
from tests.promises import check_promises
from tests.slow.test_double_booking import HOUR, OFFERED, PROCESSES, ROOMS, race, run
from tests.world import (
    NOON,
    a_host,
    address_request,
    addresses,
    device_request,
    instances,
    segment_request,
    thing_request,
)

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("BLAZAR_ROUNDS", "30"))
HOSTS = 2


def a_world(url: str, folder: Path, *, register: bool = False) -> TwoRegions:
    storages = tuple(FileStorage(folder / f"{region}.json", of_size(HOSTS)) for region in REGIONS)
    return TwoRegions(make_engine(url), hosts=HOSTS, register=register, storages=(storages[0], storages[1]))


def register_everything(world: TwoRegions) -> None:
    """Register, in each region, things of every kind, of the same names in both."""
    for region, cloud in zip(REGIONS, (world.simulated, world.second), strict=True):
        for number in (10, 11, 12):
            world.register_one(FLOATING_IP, region, address_request("public", f"203.0.113.{number}"))
        world.register_one(NETWORK, region, segment_request(101))
        world.register_one(DEVICE, region, device_request("edge-1"))
        for number, capacity in enumerate((1, 4)):
            world.register_one(GENERIC, region, thing_request(f"microscope-{number}", capacity=capacity))
        cloud.volume_users.add_pool(PoolState("node@disks#1", "disks", "1", 15), type_name="disks-1")
        pool = {"pool": "node@disks#1", "volume_type": "disks-1", "gigabytes": 15}
        world.register_one(VOLUME, region, Registration(pool))
        for flavor in OFFERED:
            cloud.operators.offer_flavor(flavor)


@contextmanager
def racers(database_url: str, folder: Path) -> Iterator[tuple[TwoRegions, list[Connection]]]:
    """Start the processes; yield a world to look at and the pipes to them."""
    upgrade(make_engine(database_url))
    world = a_world(database_url, folder, register=True)
    register_everything(world)
    world.engine.dispose()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(PROCESSES)
    pipes = []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        act = lambda pipe=theirs: race(a_world(database_url, folder), barrier, pipe)  # noqa: E731
        context.Process(target=act, daemon=True).start()
        pipes.append(ours)
    try:
        yield world, pipes
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in multiprocessing.active_children():
            process.join(10)


def lease_of(begin: datetime, name: str, *rooms: ReservationRequest) -> LeaseRequest:
    return LeaseRequest(name, "curie", "physics", begin, begin + HOUR, reservations=rooms)


def within(region: str | None, room: ReservationRequest) -> ReservationRequest:
    """Ask for the same in a region; None: wherever there is room."""
    return room if region is None else ReservationRequest(room.resource_type, {**room.parameters, "region": region})


def growth(of: Lease, **values: object) -> tuple[str, object]:
    return "update", (of.id, LeaseChange(reservations=(ReservationChange(of.reservations[0].id, values),)))


def test_in_each_of_two_regions_leases_that_want_the_same_never_get_more_than_it_has(database_url, tmp_path):
    outcomes: Counter[object] = Counter()
    dice = random.Random(17)
    with racers(database_url, tmp_path) as (world, pipes):
        for number in range(ROUNDS):
            outcomes += one_round(world, pipes, NOON + timedelta(days=number + 1), dice)
    print(f"{database_url.split(':')[0]}: {dict(outcomes)}")
    assert set(outcomes) <= {(k, o) for k in ("create", "update", "delete") for o in ("done", 409)}
    assert outcomes["delete", "done"] == 2 * ROUNDS
    assert outcomes["create", "done"] >= ROUNDS
    assert outcomes["create", 409] >= ROUNDS
    assert outcomes["update", "done"] >= ROUNDS


def one_round(world: TwoRegions, pipes: list[Connection], start: datetime, dice: random.Random) -> Counter[object]:
    """Let leases of all types begin in one region, the other or either, and others grow, last longer and go."""
    make = world.manager.leases.create
    ending = [
        make(lease_of(start, "ends", within(region, a_host()), within(region, addresses()))) for region in REGIONS
    ]
    crowds = [make(lease_of(start, "grows", within(region, instances(2, vcpus=4)))) for region in REGIONS]
    before = [make(lease_of(start - HOUR, "lasts", within(region, instances(2, vcpus=8)))) for region in REGIONS]
    asked: dict[str, str | None] = {}
    orders: list[tuple[str, object]] = []
    first = dice.randrange(len(ROOMS))
    for number in range(10):
        region = dice.choice((*REGIONS, None))
        asked[f"racer {number}"] = region
        rooms = [within(region, ROOMS[(first + number) % len(ROOMS)](dice))]
        if number == 0:
            rooms.append(dice.choice(ROOMS)(dice))
        orders.append(("create", lease_of(start + timedelta(minutes=number), f"racer {number}", *rooms)))
    orders += [growth(crowd, amount=dice.randint(3, 9)) for crowd in crowds]
    orders += [("update", (lease.id, LeaseChange(end=start + HOUR))) for lease in before]
    orders += [("delete", lease.id) for lease in ending]
    outcomes = run(pipes, orders)

    leases = world.manager.leases.all(None)
    assert {lease.status for lease in leases} == {LeaseStatus.PENDING}
    assert sum(lease.name.startswith("racer") for lease in leases) == outcomes["create", "done"]
    check_promises(world.store, since=NOON)
    for lease in leases:
        each_in_its_region(world, lease, asked.get(lease.name))
    only_theirs_is_in_the_clouds(world, leases)
    for lease in leases:
        world.manager.leases.delete(lease.id)
    only_theirs_is_in_the_clouds(world, ())
    return outcomes


def each_in_its_region(world: TwoRegions, lease: Lease, asked: str | None) -> None:
    """All of a lease lies in one region, that which it asked for; and each reservation holds what it was promised."""
    held = world.store.calendar.of_lease(lease.id)
    found = world.store.resources.by_ids({each.resource_id for each in held})
    (region,) = {reservation.region for reservation in lease.reservations}
    assert {found[each.resource_id].region for each in held} == {region}, lease
    assert asked in (None, region), lease
    counts = Counter(each.reservation_id for each in held for _ in range(each.count))
    for reservation in lease.reservations:
        wanted = reservation.parameters.values
        amount = wanted.get("amount", 0 if reservation.resource_type == STACK else 1)
        assert wanted.get("min", amount) <= counts[reservation.id] <= wanted.get("max", amount), lease


def only_theirs_is_in_the_clouds(world: TwoRegions, leases: tuple[Lease, ...]) -> None:
    """Each cloud has what the leases in its region need before their start, and nothing of those in the other."""
    everything = [reservation for lease in leases for reservation in lease.reservations]
    for region, cloud in zip(REGIONS, (world.simulated, world.second), strict=True):
        there = {reservation.id for reservation in everything if reservation.region == region}
        hosts = {r.id for r in everything if r.resource_type in ON_HOSTS and r.id in there}
        with cloud.inspect() as state:
            ours = {a.name for a in state.aggregates.values()} - {"freepool", "az-1", "az-2"}
            assert ours == hosts
            assert set(state.flavors) - {flavor.id for flavor in OFFERED} <= there
            assert state.floating_ips == {}
            assert not any(network.network_type for network in state.networks.values())
            assert not any(thing.users for thing in state.things.values())
            assert not state.block.volumes
            assert not state.stacks


ON_HOSTS = frozenset({"physical:host", "virtual:instance", "flavor:instance", "virtual:server"})
