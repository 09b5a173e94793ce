# SPDX-License-Identifier: Apache-2.0
"""Managers that remind are killed again and again while users rename their leases: each is told once, none is lost."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from datetime import timedelta
from multiprocessing.synchronize import Event

import pytest

from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import SystemClock, to_second
from blazar.model.base.errors import BlazarError
from blazar.model.base.paging import Page
from blazar.model.journal.entries import Verb
from blazar.model.leases.reminders import Anchor, Reminder
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store
from tests.world import RecordingNotifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("BLAZAR_KILLS", "220")) // 10
SECOND = timedelta(seconds=1)
LEASES, EACH = 20, 8
PATIENCE = 120
"""Seconds within which all are told at the end, also on a busy machine."""
SETTINGS = Settings(claim_ttl=SECOND, longest_sleep=timedelta(milliseconds=300), before_end_lead=timedelta(0))


def make_manager(store: Store) -> ManagerService:
    return ManagerService(store, SystemClock(), SETTINGS, Plugins((), {}, RecordingNotifier()))


def manage(url: str, ready: Event) -> None:
    """Be a manager that works on events, until it is killed."""
    manager = make_manager(Store(make_engine(url)))
    for part in (manager.claims, manager.engine):
        part.start()
    ready.set()
    signal.pause()


def told(store: Store, lease_id: str) -> Counter[str]:
    entries = store.history.page(lease_id, Page(1000, "at")).items
    return Counter(str(entry.changes[0].after) for entry in entries if entry.verb is Verb.REMINDED)


def test_each_reminder_is_told_once_while_managers_are_killed_and_leases_renamed(postgresql_url):
    upgrade(make_engine(postgresql_url))
    store, dice, context = Store(make_engine(postgresql_url)), random.Random(7), multiprocessing.get_context("fork")
    manager = make_manager(store)
    now = to_second(manager.clock.now())
    # Some are due at one second.
    wanted = tuple(Reminder(2 * SECOND * (2 + n // 2), f"text {n}", Anchor.START) for n in range(EACH))
    leases = [
        manager.leases.create(
            LeaseRequest(f"lease {n}", "curie", "physics", now, now + timedelta(days=1), exact=True, reminders=wanted)
        )
        for n in range(LEASES)
    ]
    killed = renamed = 0
    running = []
    try:
        while killed < KILLS:
            while len(running) < 2:
                ready = context.Event()
                running.append(context.Process(target=manage, args=(postgresql_url, ready), daemon=True))
                running[-1].start()
                ready.wait(PATIENCE)
            for lease in dice.sample(leases, 3):
                with contextlib.suppress(BlazarError):
                    manager.leases.update(lease.id, LeaseChange(name=f"renamed {renamed}", exact=True))
                    renamed += 1
            time.sleep(dice.random() * 0.7)
            victim = running.pop(dice.randrange(2))
            victim.kill()
            victim.join()
            killed += 1
        last = context.Process(target=manage, args=(postgresql_url, context.Event()), daemon=True)
        running.append(last)
        last.start()
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(told(store, each.id).total() < EACH for each in leases):
            time.sleep(0.5)
    finally:
        for process in running:
            process.kill()
    assert [told(store, each.id) for each in leases] == [Counter(each.text for each in wanted)] * LEASES
    for lease in leases:
        found = manager.leases.details(lease.id).lease
        assert all(r.sent_at is not None and r.sent_at >= r.moment(found.window) for r in found.reminders)
    assert renamed > KILLS
