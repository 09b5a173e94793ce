# SPDX-License-Identifier: Apache-2.0
"""A manager that is killed with -9 leaves a row: it is not up once its claims have ended, and others do its work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.clock import SystemClock
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.openstack import eventually
from tests.world import World, a_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TTL = timedelta(seconds=3)
SETTINGS = Settings(claim_ttl=TTL, promises=0)


def work_for_ever(url: str) -> None:
    """Be a manager that starts a lease, and stands still in the middle of it."""
    world = World(make_engine(url), clock=SystemClock(), settings=SETTINGS, register=True)

    def hook(name: str, when: str) -> None:
        if (name, when) == ("add_host", "before"):
            threading.Event().wait()

    lease = world.lease(a_host())
    world.faults.on_call = hook
    world.manager.start()
    assert lease
    threading.Event().wait()


def test_a_manager_that_is_killed_is_not_up_and_its_work_is_seen_until_it_is_taken_over(database_url):
    engine = make_engine(database_url)
    upgrade(engine)
    child = multiprocessing.get_context("spawn").Process(target=work_for_ever, args=(database_url,), daemon=True)
    child.start()
    world = World(engine, clock=SystemClock(), settings=SETTINGS, register=False)

    def known(pid: int | None) -> list:
        managers = world.store.managers.all(now=world.clock.now(), claim_ttl=TTL)
        return [one for one in managers if one.facts.pid == pid]

    try:
        eventually(lambda: known(child.pid) and known(child.pid)[0].work, patience=60)
        (seen,) = known(child.pid)
        (work,) = seen.work
        assert (seen.up, work.event_type) == (True, "start_lease")
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        eventually(lambda: not known(child.pid)[0].up, patience=30)
        assert known(child.pid)[0].work == (work,)
        assert world.store.leases.one(work.lease_id).status is LeaseStatus.STARTING
        world.manager.start()
        eventually(lambda: known(child.pid)[0].work == (), patience=30)
        assert [one.up for one in known(os.getpid())] == [True]
        world.manager.stop()
        assert known(os.getpid()) == []
        assert [one.up for one in known(child.pid)] == [False]
    finally:
        child.kill()
        child.join()
        engine.dispose()
