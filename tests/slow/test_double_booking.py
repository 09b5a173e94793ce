"""Sixteen processes race for the last host of a window: nothing is ever promised twice."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from blazar.clouds.simulated import FileKeeper, SimulatedCloud, of_size
from blazar.model.errors import BlazarError
from blazar.model.lease import LeaseStatus
from blazar.model.requests import LeaseChange, LeaseRequest, ReservationChange
from blazar.model.resource import ResourceKind
from blazar.store.engine import connect
from blazar.store.migrate import upgrade
from tests.world import NOON, ManualClock, World, a_host

pytestmark = pytest.mark.slow

ROUNDS = 50
PROCESSES = 16
HOSTS = 4
HOUR = timedelta(hours=1)


def a_world(url: str, cloud_file: Path, *, register: bool = False) -> World:
    clock = ManualClock()
    cloud = SimulatedCloud(FileKeeper(cloud_file, of_size(HOSTS)), clock=clock)
    return World(connect(url), hosts=HOSTS, clock=clock, cloud=cloud, register=register)


def racer(url: str, cloud_file: Path, barrier: object, pipe: Connection) -> None:
    """Do, on every word from the test, one thing at the same moment as everybody else."""
    world = a_world(url, cloud_file)
    while (order := pipe.recv()) is not None:
        kind, argument = order
        barrier.wait()
        try:
            match kind:
                case "create":
                    world.manager.create_lease(argument)
                case "update":
                    world.manager.update_lease(*argument)
                case "delete":
                    world.manager.delete_lease(argument)
            pipe.send((kind, "done"))
        except BlazarError as error:
            pipe.send((kind, error.status))
        except Exception as error:
            pipe.send((kind, repr(error)))


def request(start: datetime, name: str) -> LeaseRequest:
    return LeaseRequest(name, "curie", "physics", start, start + HOUR, reservations=(a_host(),))


def test_nothing_is_promised_twice_however_many_want_it(database_url, tmp_path):
    upgrade(connect(database_url))
    cloud_file = tmp_path / "cloud.json"
    world = a_world(database_url, cloud_file, register=True)
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
    outcomes: Counter[object] = Counter()
    try:
        for number in range(ROUNDS):
            outcomes += one_round(world, pipes, NOON + timedelta(days=number + 1))
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(10)
    print(f"{database_url.split(':')[0]}: {dict(outcomes)}")
    assert set(outcomes) <= {(k, o) for k in ("create", "update", "delete") for o in ("done", 409)}
    assert outcomes["delete", "done"] == ROUNDS
    assert outcomes["create", "done"] + outcomes["update", "done"] >= ROUNDS


def one_round(world: World, pipes: list[Connection], start: datetime) -> Counter[object]:
    """Leave one host free, let it be raced for while another becomes free, and look at what came of it."""
    fixed = world.manager.create_lease(replace(request(start, "grows"), reservations=(a_host(2),)))
    ending = world.manager.create_lease(request(start, "ends"))
    earlier = [world.manager.create_lease(request(start - HOUR, "prolongs")) for _ in range(3)]
    growth = ReservationChange(fixed.reservations[0].id, {"min": 3, "max": 3})
    orders = [("create", request(start + timedelta(minutes=number), f"racer {number}")) for number in range(11)]
    orders += [("update", (lease.id, LeaseChange(end=start + HOUR))) for lease in earlier]
    orders += [("update", (fixed.id, LeaseChange(reservations=(growth,)))), ("delete", ending.id)]
    assert len(orders) == PROCESSES
    for pipe, order in zip(pipes, orders, strict=True):
        pipe.send(order)
    outcomes = Counter(pipe.recv() for pipe in pipes)

    leases = world.manager.leases(None)
    assert {lease.status for lease in leases} == {LeaseStatus.PENDING}
    assert sum(lease.name.startswith("racer") for lease in leases) == outcomes["create", "done"]
    nobody_shares(world)
    assert sorted(world.reservation_pools()) == sorted(r.id for lease in leases for r in lease.reservations)
    # One host was free, and one became free or did not in time.
    in_window = {a.resource_id for a in allocations(world) if a.window.start >= start or a.window.end > start}
    assert len(in_window) in (HOSTS - 1, HOSTS)
    for lease in leases:
        world.manager.delete_lease(lease.id)
    assert world.reservation_pools() == []
    return outcomes


def allocations(world: World) -> list:
    return list(world.store.live_allocations(ResourceKind.HOST))


def nobody_shares(world: World) -> None:
    by_host: dict[int, list] = {}
    for allocation in allocations(world):
        by_host.setdefault(allocation.resource_id, []).append(allocation.window)
    for windows in by_host.values():
        for one, other in pairwise(sorted(windows)):
            assert not one.overlaps(other), (one, other)
