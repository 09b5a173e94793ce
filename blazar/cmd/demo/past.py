# SPDX-License-Identifier: Apache-2.0
"""Months of the demo's life, lived by a real manager on a clock of its own, from the same random numbers each time."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import Engine

from blazar.clouds.energy import SECTION, read_terms
from blazar.clouds.simulated import FileStorage, MemoryStorage, SimulatedCloud
from blazar.cmd import assemble, config
from blazar.cmd.demo import looks, money, people, present
from blazar.cmd.demo.cloud import list_hosts, make_cloud, registrations
from blazar.cmd.demo.stage import DemoClock, Stage, give_switch, set_defaults
from blazar.manager.service import ManagerService
from blazar.model.base.errors import BlazarError
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.classes import POWERED
from blazar.model.resources.resource import HOST
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store

DAYS = 45
"""Days before the start of the demo at which its life begins."""

BUSY_DAYS = 25
"""The last days of it, in which the cloud has become popular."""

SEED = 2026
REQUESTS_A_DAY, REQUESTS_A_BUSY_DAY = 3, 9
COURSE_BEGINS = timedelta(days=24)
"""How long before the start of the demo a teacher books the course."""


def make(conf: cfg.ConfigOpts, *, database: Path, cloud: Path, now: datetime, days: int = DAYS) -> None:
    """Write the database and the state of the cloud as they are ``now``, after a life of so many days.

    The database appears when all is written, so a start that was interrupted begins from the beginning.
    """
    set_defaults(conf)
    cloud.unlink(missing_ok=True)
    unfinished = database.with_name(database.name + ".unfinished")
    for suffix in ("", "-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    engine = make_engine(f"sqlite:///{unfinished}")
    upgrade(engine)
    clock = DemoClock(now - timedelta(days=days))
    simulated = SimulatedCloud(MemoryStorage(make_cloud()), clock=clock)
    # Limits take time, and none of the past is near them; nor did hosts sleep, of which each minute would be planned.
    manager = _manager(conf, engine, simulated, clock, ("enabled_filters", [], "enforcement"), ("mode", "off", "power"))
    store = Store(engine, cleaning_time=config.cleaning_time(conf), energy=read_terms(conf[SECTION]))
    script = Script(Stage(manager, store, simulated, clock))
    script.live_until(now - present.BEGINS)
    present.play(Stage(_manager(conf, engine, simulated, clock), store, simulated, clock), script.chance, now)
    with simulated.inspect() as state:
        FileStorage(cloud, state)
    engine.dispose()
    os.replace(unfinished, database)


def _manager(
    conf: cfg.ConfigOpts, engine: Engine, simulated: SimulatedCloud, clock: DemoClock, *overrides: tuple[str, Any, str]
) -> ManagerService:
    """Return a manager of the past. It does not look at the use of leases, which takes longer than all else."""
    overrides = (("mode", "off", "unused"), *overrides)
    for name, value, group in overrides:
        conf.set_override(name, value, group=group)
    try:
        return assemble.manager(conf, engine=engine, clouds={"": simulated.cloud}, clock=clock)
    finally:
        for name, _, group in overrides:
            conf.clear_override(name, group=group)


class Script:
    """What happens in the demo's life: users book, change and cancel; hosts fail and are repaired."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        # Not for secrets: the same life each time.
        self.chance = random.Random(SEED)

    def live_until(self, end: datetime) -> None:
        """Live from where the clock is."""
        self._register()
        money.publish(self._stage)
        self._live(max(self._stage.clock.now(), end - COURSE_BEGINS), end)
        present.plan_course(self._stage, self.chance)
        self._live(end, end)
        self._stage.run_to(end)
        money.charge(self._stage)
        money.correct(self._stage, end)
        money.raise_prices(self._stage)

    def _register(self) -> None:
        resources = self._stage.manager.resources
        for host in list_hosts():
            give_switch(self._stage.manager, resources.register(HOST, host.registration))
        for kind, registration in registrations():
            resource = resources.register(kind, registration)
            if kind in POWERED:
                give_switch(self._stage.manager, resource)
        resources.set_property(HOST, "rack", private=False)

    def _live(self, until: datetime, end: datetime) -> None:
        """Live until then; ``end`` is when the life ends."""
        for instant in self._instants(until, end):
            self._stage.run_to(instant)
            looks.look(self._stage)
            money.charge(self._stage)
            self._somebody_books()
            if self.chance.random() < 0.15:
                self._somebody_changes_plans()

    def _instants(self, until: datetime, end: datetime) -> Iterator[datetime]:
        """Return when users book, in order: on working days more often, at working hours."""
        clock = self._stage.clock
        day = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        while day < until:
            count = REQUESTS_A_BUSY_DAY if end - day < timedelta(days=BUSY_DAYS) else REQUESTS_A_DAY
            count = self.chance.randint(count - 1, count + 1) if day.weekday() < 5 else 1
            minutes = sorted(self.chance.randint(7 * 60, 19 * 60) for _ in range(count))
            for minute in minutes:
                instant = day + timedelta(minutes=minute)
                if clock.now() <= instant < until:
                    yield instant
            day += timedelta(days=1)

    def _somebody_books(self) -> None:
        project = self.chance.choices(people.PROJECTS, [one.weight for one in people.PROJECTS])[0]
        work = self.chance.choices(project.works, [one.weight for one in project.works])[0]
        name, user = self.chance.choice(work.names), self.chance.choice(project.users)
        now = self._stage.clock.now()
        start = now + timedelta(days=self.chance.randint(*work.days_ahead), minutes=1)
        if start - now > timedelta(hours=1):
            start = start.replace(hour=self.chance.choice((8, 9, 12, 14, 18)), minute=0)
        hours = self.chance.choice(work.hours)
        self._stage.book((project.id, user), f"{name}-{now:%m%d}", start, hours, work.make(self.chance))

    def _somebody_changes_plans(self) -> None:
        """Let a user cancel a lease, end it early, or have it for longer."""
        leases = self._stage.manager.leases
        # Ids are random, so the order of leases of one minute is not the same each time.
        every = sorted(leases.all(None), key=lambda lease: (lease.created_at, lease.name, lease.window.start))
        live = [lease for lease in every if lease.status in (LeaseStatus.PENDING, LeaseStatus.ACTIVE)]
        if not live:
            return
        lease = self.chance.choice(live)
        with suppress(BlazarError):
            if self.chance.random() < 0.5:
                longer = lease.window.end + timedelta(hours=self.chance.choice((6, 24)))
                leases.update(lease.id, LeaseChange(end=longer))
            else:
                leases.delete(lease.id)
