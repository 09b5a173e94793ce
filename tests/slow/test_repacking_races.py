# SPDX-License-Identifier: Apache-2.0
"""Processes prolong leases for which others are moved, while these are changed and ended: nobody shares a host."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.simulated import FileStorage
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.people import PeopledCloud
from tests.promises import check_promises
from tests.slow.test_double_booking import race, request, run
from tests.world import NOON, ManualClock, World, of_hosts

pytestmark = pytest.mark.slow

ROUNDS = max(3, int(os.environ.get("BLAZAR_ROUNDS", "50")) // 5)
PROCESSES = 12
HOSTS = 6
HOUR = timedelta(hours=1)


def a_world(url: str, cloud_file: Path, *, register: bool = False) -> World:
    clock = ManualClock()
    cloud = PeopledCloud(FileStorage(cloud_file, of_hosts(*[{}] * HOSTS)), clock=clock)
    return World(make_engine(url), hosts=HOSTS, clock=clock, cloud=cloud, register=register)


def racer(url: str, cloud_file: Path, barrier: Any, pipe: Any) -> None:
    race(a_world(url, cloud_file), barrier, pipe)


def test_who_is_moved_and_who_moves_them_never_share_a_host(database_url, tmp_path):
    upgrade(make_engine(database_url))
    cloud_file = tmp_path / "cloud.json"
    world = a_world(database_url, cloud_file, register=True)
    world.engine.dispose()
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(PROCESSES)
    pipes, processes = [], []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=racer, args=(database_url, cloud_file, barrier, theirs), daemon=True))
        processes[-1].start()
        pipes.append(ours)
    outcomes: Counter[object] = Counter()
    try:
        moved = [one_round(world, pipes, random.Random(number), outcomes) for number in range(ROUNDS)]
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(10)
    print(f"{database_url.split(':')[0]}: {dict(outcomes)}, {sum(moved)} moved")
    assert set(outcomes) <= {(kind, o) for kind in ("create", "update", "delete") for o in ("done", 404, 409)}
    assert sum(moved) > 0


def hosts(world: World, lease: Lease) -> frozenset[int]:
    return frozenset(a.resource_id for a in world.store.calendar.of_lease(lease.id))


def one_round(world: World, pipes: list[Any], dice: random.Random, outcomes: Counter[object]) -> int:
    """Let three leases in use last longer, whose hosts are promised to others from then on; return how many moved."""
    used = [world.manager.leases.create(request(NOON, "in use")) for _ in range(3)]
    used = [world.change(lease, end=NOON + 3 * HOUR) for lease in used]
    world.run()
    taken = frozenset[int]().union(*(hosts(world, lease) for lease in used))
    booked = [world.manager.leases.create(request(NOON + 3 * HOUR, "comes next")) for _ in range(HOSTS)]
    coming = [lease for lease in booked if hosts(world, lease) <= taken]
    for lease in booked:
        if lease not in coming:
            world.manager.leases.delete(lease.id)
    before = {lease.id: hosts(world, lease) for lease in coming}
    orders: list[tuple[str, object]] = [
        ("update", (lease.id, LeaseChange(end=NOON + dice.choice((3.5, 4, 5)) * HOUR))) for lease in (*used, *used)
    ]
    orders += [("update", (lease.id, LeaseChange(name=f"was {lease.name}"))) for lease in coming[:2]]
    orders += [("create", request(NOON + 3.5 * HOUR, f"racer {number}")) for number in range(3)]
    orders += [("delete", coming[2].id)]
    dice.shuffle(orders)
    outcomes.update(run(pipes, orders))
    check_promises(world.store, since=NOON)
    for lease in world.manager.leases.all(None):
        assert len(hosts(world, lease)) == 1, lease
    for lease in coming[:2]:
        now = world.now(lease)
        assert (now.window, now.status) == (lease.window, LeaseStatus.PENDING)
    for lease, had in zip(used, map(frozenset, [hosts(world, lease) for lease in used]), strict=True):
        assert had <= taken, lease
    moved = sum(hosts(world, lease) != before[lease.id] for lease in coming[:2])
    for lease in world.manager.leases.all(None):
        world.manager.leases.delete(lease.id)
    world.run()
    assert not world.store.calendar.load_live(HOST)
    return moved
