# SPDX-License-Identifier: Apache-2.0
"""Managers that are killed in the middle of surgery on leases: after each statement and call of the cloud in turn.

Whatever is the last thing that they do, the operation is done or it is not, and histories tell it as often as it is.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from blazar.clouds.simulated import Faults, FileStorage, of_size
from blazar.model.base.paging import Page
from blazar.model.journal.entries import Verb
from blazar.model.leases.requests import IdempotencyKey, LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import MergeRequest, Operated, Partner, PartRequest, SplitRequest, SwapRequest, Terms
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.conftest import fresh_database
from tests.manager.surgery.steps import HOUR, OPERATOR, booked
from tests.oracle import check_at_rest
from tests.people import PeopledCloud
from tests.promises import check_promises
from tests.world import ManualClock, World, a_host

pytestmark = pytest.mark.slow

HOSTS = 5
MOST = 120
"""More steps than this no operation has."""

Ids = tuple[str, ...]
Operate = Callable[[World, Ids, Terms], object]


def swap(world: World, ids: Ids, terms: Terms) -> Operated:
    lease = world.now_of(ids[0])
    return world.manager.surgery.swap(ids[0], SwapRequest(lease.reservations[0].id, host_of(world, ids[0])), terms)


def give_up(world: World, ids: Ids, terms: Terms) -> object:
    asked = ReservationChange(world.now_of(ids[0]).reservations[0].id, {}, give_up=(host_of(world, ids[0]),))
    change = LeaseChange(reservations=(asked,), asked_by=terms.asked_by, exact=True, key=terms.key)
    return world.manager.leases.change(ids[0], change)


def exchange(world: World, ids: Ids, terms: Terms) -> Operated:
    one, other = (world.now_of(lease_id).reservations[0].id for lease_id in ids)
    asked = SwapRequest(one, host_of(world, ids[0]), host_of(world, ids[1]), Partner(ids[1], other))
    return world.manager.surgery.swap(ids[0], asked, terms)


def split(world: World, ids: Ids, terms: Terms) -> Operated:
    part = PartRequest(world.now_of(ids[0]).reservations[0].id, count=1)
    return world.manager.surgery.split(ids[0], SplitRequest((part,)), terms)


def cut(world: World, ids: Ids, terms: Terms) -> Operated:
    return world.manager.surgery.split(ids[0], SplitRequest(at=world.now_of(ids[0]).window.start + HOUR), terms)


def merge(world: World, ids: Ids, terms: Terms) -> Operated:
    return world.manager.surgery.merge(ids[0], MergeRequest(ids[1]), terms)


def host_of(world: World, lease_id: str) -> str:
    return min(world.hosts_of(world.now_of(lease_id)))


@dataclass(frozen=True)
class Operation:
    """An operation, what histories call it, whether its leases are in use, and how many of the two it changes.

    ``kept``: of its hosts, how many of all four the leases have afterwards.
    """

    operate: Operate
    verb: Verb
    in_use: bool = False
    leases: int = 1
    kept: int = 4


OPERATIONS = {
    "swap": Operation(swap, Verb.SWAPPED),
    "swap in use": Operation(swap, Verb.SWAPPED, in_use=True),
    "give up": Operation(give_up, Verb.CHANGED, kept=3),
    "give up in use": Operation(give_up, Verb.CHANGED, in_use=True, kept=3),
    "exchange": Operation(exchange, Verb.SWAPPED, leases=2),
    "split": Operation(split, Verb.SPLIT),
    "split by time": Operation(cut, Verb.SPLIT),
    "merge": Operation(merge, Verb.MERGED, leases=2),
    "merge in use": Operation(merge, Verb.MERGED, in_use=True, leases=2),
}


def a_world(url: str, cloud_file: Path, on_call: Callable[[str, str], None] | None = None, **more: bool) -> World:
    clock = ManualClock()
    cloud = PeopledCloud(FileStorage(cloud_file, of_size(HOSTS)), clock=clock, faults=Faults(on_call=on_call))
    return World(make_engine(url), hosts=HOSTS, clock=clock, cloud=cloud, **more)


def operate_and_die(url: str, cloud_file: Path, now: datetime, name: str, ids: Ids, key: str, last: int) -> None:
    """Operate, and die at the last step: the steps are what is written, and all that follows it."""
    steps = itertools.count(1)
    begun = False

    def step(*_: object) -> None:
        if begun and next(steps) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(connection: object, cursor: object, text: str, *_: object) -> None:
        nonlocal begun
        begun = begun or text.lstrip().split(maxsplit=1)[0].upper() in ("INSERT", "UPDATE", "DELETE")
        step()

    world = a_world(url, cloud_file, step, register=False)
    world.clock.to(now)
    sa.event.listen(world.engine, "after_cursor_execute", statement)
    sa.event.listen(world.engine, "commit", step)
    OPERATIONS[name].operate(world, ids, with_key(key))
    os._exit(0)


def with_key(key: str) -> Terms:
    return Terms(OPERATOR.asked_by, key=IdempotencyKey(key, "the same"))


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield from fresh_database(request.param, tmp_path)


def told(world: World, ids: Ids, verb: Verb) -> list[int]:
    entries = (world.store.history.page(lease_id, Page(1000, "at")).items for lease_id in ids)
    return [sum(entry.verb is verb for entry in some) for some in entries]


@pytest.mark.parametrize("name", OPERATIONS)
def test_wherever_a_manager_is_killed_an_operation_is_done_or_not(url, tmp_path, name):
    cloud_file = tmp_path / "cloud.json"
    upgrade(make_engine(url))
    world = a_world(url, cloud_file, register=True)
    operation = OPERATIONS[name]
    verb = operation.verb
    start = timedelta(0) if operation.in_use else HOUR
    leases = [world.lease(a_host(2), start=start, hours=9), world.lease(a_host(2), start=start, hours=9)]
    world.run()
    ids: Ids = tuple(lease.id for lease in leases)
    context = multiprocessing.get_context("fork")
    for last in range(1, MOST):
        before, holds, was_told = [world.now_of(id_) for id_ in ids], booked(world), told(world, ids, verb)
        world.engine.dispose()
        arguments = (url, cloud_file, world.clock.now(), name, ids, f"key {last}", last)
        process = context.Process(target=operate_and_die, args=arguments)
        process.start()
        process.join(60)
        killed = process.exitcode == -signal.SIGKILL
        assert killed or process.exitcode == 0
        # What was begun is given up when its claim has ended.
        world.clock.to(world.clock.now() + timedelta(minutes=1))
        world.run()
        check_promises(world.store, since=world.clock.now())
        check_at_rest(world.store, world.simulated, now=world.clock.now())
        new = [after - n for after, n in zip(told(world, ids, verb), was_told, strict=True)]
        if new[0]:
            break
        assert killed
        assert new == [0, 0]
        assert booked(world) == holds
        found = [world.now_of(id_) for id_ in ids]
        assert [(f.window, f.status, f.reservations) for f in found] == [
            (b.window, b.status, b.reservations) for b in before
        ]
    assert new == [1, operation.leases - 1]
    assert len([id_ for id_, seconds in booked(world).items() if seconds]) == operation.kept
    if operation.kept == len(holds):
        assert sum(booked(world).values()) == sum(holds.values())
    if verb in (Verb.SPLIT, Verb.MERGED):
        assert booked(world) == holds
        # Who asks again with the same key gets what was done, and nothing is done twice.
        assert operation.operate(world, ids, with_key(f"key {last}")).replayed
    assert told(world, ids, verb)[0] == was_told[0] + 1
    assert world.now_of(ids[0]).status is (LeaseStatus.ACTIVE if operation.in_use else LeaseStatus.PENDING)
    print(f"{name}: killed {last - 1 + killed} times")
    world.engine.dispose()
