# SPDX-License-Identifier: Apache-2.0
"""Requests with a key whose process is killed at any moment, and sent again to another: one lease for each key."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from blazar.clouds.simulated import Faults, FileStorage, of_size
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import Conflict
from blazar.model.base.paging import Page
from blazar.model.leases.details import LeaseFilter, LeaseState
from blazar.model.leases.requests import IdempotencyKey, LeaseRequest
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.options import HostSettings
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store
from tests.people import PeopledCloud
from tests.world import TYPES, RecordingNotifier, host_request, instances, kinds_of

pytestmark = pytest.mark.slow

TRIALS = int(os.environ.get("BLAZAR_TRIALS", "70"))
"""On each of the three databases."""
BEGIN = datetime(2040, 1, 1, tzinfo=UTC)
SETTINGS = Settings(claim_ttl=timedelta(seconds=2), longest_sleep=timedelta(milliseconds=300), starters=2, enders=2)


def manager_of(folder: Path, database_url: str) -> ManagerService:
    faults = Faults(latency=timedelta(milliseconds=8))
    cloud = PeopledCloud(FileStorage(folder / "cloud.json", of_size(2)), clock=SystemClock(), faults=faults).cloud
    settings = HostSettings()
    store = Store(make_engine(database_url))
    types = tuple(make(cloud, settings) for make in TYPES)
    return ManagerService(
        store, SystemClock(), SETTINGS, Plugins(types, kinds_of(cloud, settings), RecordingNotifier())
    )


def request(number: int) -> LeaseRequest:
    return LeaseRequest(
        name=f"trial {number}",
        user_id="curie",
        project_id="physics",
        start=BEGIN + timedelta(days=number),
        end=BEGIN + timedelta(days=number, hours=1),
        reservations=(instances(),),
        exact=True,
        key=IdempotencyKey(f"scope {number}", "fingerprint"),
    )


def _book(folder: Path, database_url: str, number: int, ready: Event, booked: Event) -> None:
    manager = manager_of(folder, database_url)
    # What follows has a connection already: all that is left is to book.
    assert manager.leases.replay(request(number).key) is None
    ready.set()
    manager.leases.book(request(number))
    booked.set()
    # Killed while it sends its answer.
    time.sleep(60)


@pytest.mark.timeout(1200)
def test_a_key_makes_one_lease_whenever_the_process_is_killed(tmp_path, database_url):
    engine = make_engine(database_url)
    upgrade(engine)
    engine.dispose()
    manager_of(tmp_path, database_url).resources.register(HOST, host_request(name="node-1"))
    dice, context = random.Random(7), multiprocessing.get_context("fork")
    seconds = 0.0
    for number in range(TRIALS):
        ready, booked = context.Event(), context.Event()
        victim = context.Process(target=_book, args=(tmp_path, database_url, number, ready, booked))
        victim.start()
        assert ready.wait(30)
        if number == 0:
            # How long a booking takes here and now tells when the others are in the middle of theirs.
            began = time.monotonic()
            assert booked.wait(30)
            seconds = time.monotonic() - began
        else:
            time.sleep(dice.uniform(0, 2 * seconds))
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()

    manager = manager_of(tmp_path, database_url)
    keys = manager.leases._runtime.store.idempotency
    begun = sum(keys.find(request(number).key) is not None for number in range(TRIALS))
    manager.start()
    try:
        made = {number: _until_made(manager, number) for number in range(TRIALS)}
    finally:
        manager.stop()
    assert len(set(made.values())) == TRIALS
    page = manager.leases.page(LeaseFilter(LeaseState.ALL), Page(10 * TRIALS, "created_at"))
    assert {item.lease.id for item in page.items} == set(made.values())
    # Some were killed before they booked, and some after, beside the first one.
    assert 1 < begun < TRIALS


def _until_made(manager: ManagerService, number: int) -> str:
    """Send the request again until it is granted, as a client does; return the id of the lease."""
    until = time.monotonic() + 60
    while True:
        try:
            return manager.leases.book(request(number)).details.lease.id
        except Conflict as error:
            if error.code != "request_in_progress" or time.monotonic() > until:
                raise
            time.sleep(0.1)
