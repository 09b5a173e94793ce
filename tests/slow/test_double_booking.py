# SPDX-License-Identifier: Apache-2.0
"""Sixteen processes race for the last host of a window, the last room on it, the last address, the last thing: nothing
is ever promised twice.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import FileStorage, of_size
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.resources.instances.reservation_flavor import flavor_name, resource_class
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.oracle import BESIDE_HOSTS, STACK
from tests.people import PeopledCloud
from tests.promises import check_promises
from tests.world import (
    NOON,
    ManualClock,
    World,
    a_host,
    a_network,
    addresses,
    devices,
    flavored,
    instances,
    servers,
    stacks,
    things,
    units,
    volumes,
)

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("BLAZAR_ROUNDS", "50"))
PROCESSES = 16
HOSTS = 4
HOUR = timedelta(hours=1)
ADDRESSES = range(10, 16)
OFFERED = tuple(
    Flavor(name, f"c1.{name}", vcpus, 2048, 10, extra_specs={"quota:cpu_shares": "100"}, public=True)
    for name, vcpus in (("small", 4), ("large", 8))
)

ROOMS: tuple[Callable[[random.Random], ReservationRequest], ...] = (
    lambda dice: a_host(1, dice.randint(1, 2)),
    lambda dice: instances(dice.randint(1, 4), vcpus=dice.choice((4, 8, 15)), affinity=None),
    lambda dice: instances(dice.randint(1, 3), vcpus=dice.choice((4, 8, 15)), affinity=True),
    lambda dice: instances(dice.randint(1, 3), vcpus=dice.choice((4, 8, 15)), affinity=False),
    lambda dice: flavored(dice.randint(1, 3), dice.choice(OFFERED).id, affinity=dice.choice((None, True, False))),
    lambda dice: servers(dice.randint(1, 3), vcpus=dice.choice((4, 8)), affinity=dice.choice((None, True, False))),
    lambda dice: addresses(dice.randint(1, 3)),
    lambda dice: a_network(),
    lambda dice: devices(1, dice.randint(1, 2)),
    lambda dice: things(1, dice.randint(1, 2)),
    lambda dice: units(dice.randint(1, 3)),
    lambda dice: volumes(dice.randint(1, 2), size=dice.choice((5, 10)), mode=dice.choice(("volume", "quota"))),
    lambda dice: stacks(
        *(dice.choice(OFFERED).id for _ in range(dice.randint(1, 3))),
        disks=dice.randint(0, 1),
        outside=dice.randint(0, 2),
    ),
)
"""What the processes ask for when all types race for the same hosts and addresses: a line or more a type."""


def a_world(url: str, cloud_file: Path, *, register: bool = False) -> World:
    clock = ManualClock()
    cloud = PeopledCloud(FileStorage(cloud_file, of_size(HOSTS)), clock=clock)
    return World(make_engine(url), hosts=HOSTS, clock=clock, cloud=cloud, register=register)


def racer(url: str, cloud_file: Path, barrier: Any, pipe: Connection) -> None:
    """Do, on every word from the test, one thing at the same moment as everybody else."""
    race(a_world(url, cloud_file), barrier, pipe)


def race(world: World, barrier: Any, pipe: Connection) -> None:
    """Do that with this world."""
    while (order := pipe.recv()) is not None:
        kind, argument = order
        barrier.wait()
        try:
            match kind:
                case "create":
                    world.manager.leases.create(argument)
                case "update":
                    world.manager.leases.update(*argument)
                case "delete":
                    world.manager.leases.delete(argument)
            pipe.send((kind, "done"))
        except BlazarError as error:
            pipe.send((kind, error.status))
        except Exception as error:
            pipe.send((kind, repr(error)))


def request(start: datetime, name: str) -> LeaseRequest:
    return LeaseRequest(name, "curie", "physics", start, start + HOUR, reservations=(a_host(),))


@contextmanager
def racers(database_url: str, tmp_path: Path) -> Iterator[tuple[World, list[Connection]]]:
    """Start the processes; yield a world to look at and the pipes to them."""
    upgrade(make_engine(database_url))
    cloud_file = tmp_path / "cloud.json"
    world = a_world(database_url, cloud_file, register=True)
    world.register_addresses(*ADDRESSES)
    world.register_segments(101, 102)
    for number in (1, 2):
        world.register_device(f"edge-{number}")
    for number, capacity in enumerate((1, 1, 4)):
        world.register_thing(f"microscope-{number}", capacity=capacity)
    world.register_pools(1, 2, gigabytes=15)
    for flavor in OFFERED:
        world.simulated.operators.offer_flavor(flavor)
    world.engine.dispose()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(PROCESSES)
    pipes = []
    processes = []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=racer, args=(database_url, cloud_file, barrier, theirs), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    try:
        yield world, pipes
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(10)


def run(pipes: list[Connection], orders: list[tuple[str, object]]) -> Counter[object]:
    """Let every process do one thing at the same moment; return what came of it."""
    for pipe, order in zip(pipes, orders, strict=True):
        pipe.send(order)
    return Counter(pipe.recv() for pipe in pipes)


def test_nothing_is_promised_twice_however_many_want_it(database_url, tmp_path):
    outcomes: Counter[object] = Counter()
    with racers(database_url, tmp_path) as (world, pipes):
        for number in range(ROUNDS):
            outcomes += one_round(world, pipes, NOON + timedelta(days=number + 1))
    print(f"{database_url.split(':')[0]}: {dict(outcomes)}")
    assert set(outcomes) <= {(k, o) for k in ("create", "update", "delete") for o in ("done", 409)}
    assert outcomes["delete", "done"] == ROUNDS
    assert outcomes["create", "done"] + outcomes["update", "done"] >= ROUNDS


def one_round(world: World, pipes: list[Connection], start: datetime) -> Counter[object]:
    """Leave one host free, let it be raced for while another becomes free, and look at what came of it."""
    fixed = world.manager.leases.create(replace(request(start, "grows"), reservations=(a_host(2),)))
    ending = world.manager.leases.create(request(start, "ends"))
    earlier = [world.manager.leases.create(request(start - HOUR, "prolongs")) for _ in range(3)]
    growth = ReservationChange(fixed.reservations[0].id, {"min": 3, "max": 3})
    orders = [("create", request(start + timedelta(minutes=number), f"racer {number}")) for number in range(11)]
    orders += [("update", (lease.id, LeaseChange(end=start + HOUR))) for lease in earlier]
    orders += [("update", (fixed.id, LeaseChange(reservations=(growth,)))), ("delete", ending.id)]
    outcomes = run(pipes, orders)

    leases = world.manager.leases.all(None)
    assert {lease.status for lease in leases} == {LeaseStatus.PENDING}
    assert sum(lease.name.startswith("racer") for lease in leases) == outcomes["create", "done"]
    nobody_shares(world)
    assert sorted(world.reservation_aggregates()) == sorted(r.id for lease in leases for r in lease.reservations)
    # One host was free, and one became free or did not in time.
    in_window = {a.resource_id for a in allocations(world) if a.window.start >= start or a.window.end > start}
    assert len(in_window) in (HOSTS - 1, HOSTS)
    for lease in leases:
        world.manager.leases.delete(lease.id)
    assert world.reservation_aggregates() == []
    return outcomes


def allocations(world: World) -> list:
    return list(world.store.calendar.load_live(HOST))


def nobody_shares(world: World) -> None:
    by_host: dict[int, list] = {}
    for allocation in allocations(world):
        by_host.setdefault(allocation.resource_id, []).append(allocation.window)
    for windows in by_host.values():
        for one, other in pairwise(sorted(windows)):
            assert not one.overlaps(other), (one, other)


def test_leases_of_all_types_that_want_the_same_never_get_more_than_there_is(database_url, tmp_path):
    outcomes: Counter[object] = Counter()
    dice = random.Random(11)
    with racers(database_url, tmp_path) as (world, pipes):
        for number in range(ROUNDS):
            outcomes += one_mixed_round(world, pipes, NOON + timedelta(days=number + 1), dice)
    print(f"{database_url.split(':')[0]}: {dict(outcomes)}")
    assert set(outcomes) <= {(k, o) for k in ("create", "update", "delete") for o in ("done", 409)}
    assert outcomes["delete", "done"] == ROUNDS
    assert outcomes["create", "done"] >= ROUNDS
    assert outcomes["create", 409] >= ROUNDS
    assert outcomes["update", "done"] >= ROUNDS


def one_mixed_round(world: World, pipes: list[Connection], start: datetime, dice: random.Random) -> Counter[object]:
    """Let leases of all types begin, grow, last longer and go on four hosts and six addresses at the same moment."""

    def lease(begin: datetime, name: str, *rooms: ReservationRequest) -> LeaseRequest:
        return replace(request(begin, name), reservations=rooms)

    def growth(of: Lease, **values: object) -> tuple[str, object]:
        change = ReservationChange(of.reservations[0].id, values)
        return "update", (of.id, LeaseChange(reservations=(change,)))

    crowd = world.manager.leases.create(lease(start, "grows", instances(2, vcpus=4)))
    apart = world.manager.leases.create(lease(start, "grows apart", flavored(1, "small", affinity=False)))
    reached = world.manager.leases.create(lease(start, "grows addresses", addresses(1)))
    ending = world.manager.leases.create(lease(start, "ends", a_host(1), addresses(1)))
    earlier = [
        world.manager.leases.create(lease(start - HOUR, "prolongs", *rooms))
        for rooms in (
            (instances(2, vcpus=8),),
            (instances(2, vcpus=8, affinity=False), addresses(1)),
            (flavored(2, "large", affinity=True),),
        )
    ]
    # Every type in its turn, and another one first every time.
    first = dice.randrange(len(ROOMS))
    orders: list[tuple[str, object]] = [
        (
            "create",
            lease(start + timedelta(minutes=number), f"racer {number}", ROOMS[(first + number) % len(ROOMS)](dice)),
        )
        for number in range(8)
    ]
    both = [dice.choice(ROOMS)(dice), dice.choice(ROOMS)(dice)]
    orders += [("create", lease(start, "racer with two reservations", *both))]
    orders += [("update", (one.id, LeaseChange(end=start + HOUR))) for one in earlier]
    orders += [
        growth(crowd, amount=dice.randint(3, 9)),
        growth(apart, amount=dice.randint(2, 4), flavor_id="large"),
        growth(reached, amount=dice.randint(2, 4)),
    ]
    orders += [("delete", ending.id)]
    outcomes = run(pipes, orders)

    leases = world.manager.leases.all(None)
    assert {one.status for one in leases} == {LeaseStatus.PENDING}
    assert sum(one.name.startswith("racer") for one in leases) == outcomes["create", "done"]
    check_promises(world.store, since=NOON)
    for one in leases:
        held = Counter(a.reservation_id for a in world.store.calendar.of_lease(one.id) for _ in range(a.count))
        for reservation in one.reservations:
            wanted = reservation.parameters.values
            if reservation.resource_type == STACK:
                made_of = {each.resource_type for each in one.children(reservation.id)}
                assert (held[reservation.id], "flavor:instance" in made_of) == (0, True), one
                continue
            amount = wanted.get("amount", 1)
            least, most = wanted.get("min", amount), wanted.get("max", amount)
            assert least <= held[reservation.id] <= most, one
    only_theirs_is_in_the_cloud(world, leases)
    for one in leases:
        world.manager.leases.delete(one.id)
    only_theirs_is_in_the_cloud(world, ())
    return outcomes


def only_theirs_is_in_the_cloud(world: World, leases: tuple[Lease, ...]) -> None:
    """Those who lost a race have left nothing behind, and nobody has anything but what is on hosts before its start."""
    everything = [r for lease in leases for r in lease.reservations]
    on_hosts = [r for r in everything if r.resource_type not in BESIDE_HOSTS]
    servers = [r for r in on_hosts if r.resource_type != "physical:host"]
    with world.simulated.inspect() as state:
        aggregates = sorted(a.name for a in state.aggregates.values())
        assert aggregates == sorted(["freepool", "az-1", "az-2", *(r.id for r in on_hosts)])
        assert set(state.flavors) == {r.id for r in servers} | {flavor.id for flavor in OFFERED}
        for copy in (r for r in servers if r.resource_type == "flavor:instance"):
            of = next(flavor for flavor in OFFERED if flavor.id == copy.parameters.values["flavor_id"])
            assert state.flavors[copy.id].vcpus == of.vcpus
            assert state.flavors[copy.id].extra_specs.items() >= of.extra_specs.items()
        assert sorted(state.classes) == sorted(resource_class(r.id) for r in servers)
        grouped = sorted(flavor_name(r.id) for r in servers if r.parameters.values["affinity"] is not None)
        assert sorted(group.name for group in state.groups.values()) == grouped
        assert state.floating_ips == {}
        assert not any(network.network_type for network in state.networks.values())
        assert not any(thing.users for thing in state.things.values())
        assert not state.block.volumes
        assert not state.stacks
        assert not any(each.projects for each in state.block.types.values())
