# SPDX-License-Identifier: Apache-2.0
"""Processes that give back, book and plan at the same moment: nobody gets what those who wait are to have."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.simulated import FileStorage, of_size
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import BlazarError
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.conftest import fresh_database
from tests.people import PeopledCloud
from tests.promises import check_promises
from tests.world import NOON, ManualClock, World, a_host

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("BLAZAR_ROUNDS", "50")) // 2
HOSTS = 3
HOUR = timedelta(hours=1)
GRANTED = (LeaseStatus.PENDING, LeaseStatus.ACTIVE)
ROLES = ("give back", "book", "book", "book", "plan", "plan")
"""What each process does in a round."""


def a_world(url: str, cloud_file: Path, *, register: bool = False) -> World:
    clock = ManualClock()
    cloud = PeopledCloud(FileStorage(cloud_file, of_size(HOSTS)), clock=clock)
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0)
    return World(make_engine(url), hosts=HOSTS, clock=clock, cloud=cloud, register=register, settings=settings)


def racer(url: str, cloud_file: Path, role: str, barrier: Any, pipe: Connection) -> None:
    """Do its part in each round at the same moment as everybody else; answer with what was granted."""
    world = a_world(url, cloud_file)
    while (order := pipe.recv()) is not None:
        now, full = order
        world.clock.to(now)
        barrier.wait()
        try:
            match role:
                case "give back":
                    world.manager.leases.delete(full)
                    pipe.send(0)
                case "book":
                    world.lease(a_host(), project="direct")
                    pipe.send("booked")
                case _:
                    pipe.send(sum(world.manager.waiting_list.run_once() for _ in range(3)))
        except BlazarError as error:
            pipe.send(error.status)
        except Exception as error:
            pipe.send(repr(error))


@contextmanager
def racers(url: str, cloud_file: Path) -> Iterator[dict[int, tuple[str, Connection]]]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(ROLES))
    processes, pipes = [], {}
    for number, role in enumerate(ROLES):
        mine, theirs = context.Pipe()
        processes.append(context.Process(target=racer, args=(url, cloud_file, role, barrier, theirs), daemon=True))
        pipes[number] = role, mine
    for process in processes:
        process.start()
    try:
        yield pipes
    finally:
        for process in processes:
            process.kill()
            process.join()


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield from fresh_database(request.param, tmp_path)


def test_what_is_given_back_goes_to_who_waits_once_and_to_nobody_else(url, tmp_path):
    engine = make_engine(url)
    upgrade(engine)
    cloud_file = tmp_path / "cloud.json"
    world = a_world(url, cloud_file, register=True)
    world.waits = True
    with racers(url, cloud_file) as pipes:
        for number in range(ROUNDS):
            now: datetime = NOON + number * timedelta(minutes=10, milliseconds=1)
            world.clock.to(now)
            full = world.lease(a_host(HOSTS), project="biology")
            world.run()
            # All hosts in every other round, and else one after the other.
            sizes = (HOSTS,) if number % 2 else (1, 2)
            waiting = [world.lease(a_host(size), project="physics", wait=HOUR) for size in sizes]
            assert {lease.status for lease in waiting} == {LeaseStatus.WAITING}
            world.run()
            for _, pipe in pipes.values():
                pipe.send((now + timedelta(seconds=1), full.id))
            answers = [(role, pipe.recv()) for role, pipe in pipes.values()]
            assert [answer for role, answer in answers if role == "give back"] == [0], answers
            # Refused as those who wait come first, or for want of room.
            assert {answer for role, answer in answers if role == "book"} == {409}, answers
            world.clock.to(now + timedelta(seconds=2))
            world.run()
            check_promises(world.store, since=world.clock.now())
            assert {world.now(lease).status for lease in waiting} <= {*GRANTED}, answers
            assert [len(world.hosts_of(lease)) for lease in waiting] == [*sizes], answers
            granted = [answer for role, answer in answers if role == "plan"]
            assert all(isinstance(each, int) for each in granted), answers
            assert sum(granted) <= len(waiting), answers
            for lease in waiting:
                world.manager.leases.delete(lease.id)
            world.run()
    told = [lease.id for kind, lease in world.notifier.told if kind == "lease.create"]
    assert len(told) == len({*told})
    engine.dispose()
