# SPDX-License-Identifier: Apache-2.0
"""Months of the demo's life, lived by a real manager on a clock of its own, from the same random numbers each time."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from oslo_config import cfg
from sqlalchemy.engine import Engine

from blazar.clouds.simulated import FileStorage, MemoryStorage, SimulatedCloud
from blazar.cmd import assemble, config
from blazar.cmd.demo import hosts, people
from blazar.manager.service import ManagerService
from blazar.model.errors import BlazarError
from blazar.model.lease import LeaseStatus
from blazar.model.requests import (
    Disabling,
    LeaseChange,
    LeaseRequest,
    Registration,
    ReservationRequest,
    ResourceChange,
)
from blazar.model.resource import FLOATING_IP, HOST
from blazar.store.engine import connect
from blazar.store.migrate import upgrade
from blazar.store.store import Store

DAYS = 90
"""Days before the start of the demo at which its life begins."""

BUSY_DAYS = 25
"""The last days of it, in which the cloud has become popular."""

SEED = 2026
REQUESTS_A_DAY, REQUESTS_A_BUSY_DAY = 3, 9
WEEKS_OF_COURSE = 8


@dataclass(slots=True)
class DemoClock:
    """A clock that the script moves."""

    instant: datetime

    def now(self) -> datetime:
        """Return where the script is."""
        return self.instant

    def elapsed(self) -> float:
        """Return the seconds of the script's time."""
        return self.instant.timestamp()

    def synchronize(self) -> None:
        """Do nothing: there is no reference clock."""


def make(conf: cfg.ConfigOpts, *, database: Path, cloud: Path, now: datetime, days: int = DAYS) -> None:
    """Write the database and the state of the cloud as they are ``now``, after a life of so many days.

    The database appears when all is written, so a start that was interrupted begins from the beginning.
    """
    cloud.unlink(missing_ok=True)
    unfinished = database.with_name(database.name + ".unfinished")
    for suffix in ("", "-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    engine = connect(f"sqlite:///{unfinished}")
    upgrade(engine)
    clock = DemoClock(now - timedelta(days=days))
    simulated = SimulatedCloud(MemoryStorage(hosts.cloud()), clock=clock)
    manager = _manager(conf, engine, simulated, clock)
    store = Store(engine, cleaning_time=config.cleaning_time(conf))
    Script(manager, store, simulated, clock).live_until(now)
    with simulated.inspect() as state:
        FileStorage(cloud, state)
    engine.dispose()
    os.replace(unfinished, database)


def _manager(conf: cfg.ConfigOpts, engine: Engine, simulated: SimulatedCloud, clock: DemoClock) -> ManagerService:
    """Return the manager of the past. It does not look at the use of leases, which takes longer than all else."""
    conf.set_override("mode", "off", group="unused")
    try:
        return assemble.manager(conf, engine=engine, clouds={"": simulated.cloud}, clock=clock)
    finally:
        conf.clear_override("mode", group="unused")


class Script:
    """What happens in the demo's life: users book, change and cancel; hosts fail and are repaired."""

    def __init__(self, manager: ManagerService, store: Store, cloud: SimulatedCloud, clock: DemoClock) -> None:
        self._manager = manager
        self._store = store
        self._cloud = cloud
        self._clock = clock
        # Not for secrets: the same life each time.
        self._chance = random.Random(SEED)

    def live_until(self, now: datetime) -> None:
        """Live from where the clock is."""
        self._register()
        for instant in self._instants(now):
            self._run_to(instant)
            self._somebody_books()
            if self._chance.random() < 0.15:
                self._somebody_changes_plans()
        self._run_to(now - timedelta(hours=5))
        self._plan_course(now)
        self._trouble(now)
        self._run_to(now)

    def _register(self) -> None:
        for host in hosts.hosts():
            self._manager.resources.register(HOST, host.registration)
        for number in hosts.ADDRESSES:
            given = {"floating_network_id": hosts.NETWORK, "floating_ip_address": f"198.51.100.{number}"}
            self._manager.resources.register(FLOATING_IP, Registration(given))
        self._manager.resources.set_property(HOST, "rack", private=False)

    def _instants(self, now: datetime) -> Iterator[datetime]:
        """Return when users book, in order: on working days more often, at working hours."""
        day = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        while day < now:
            count = REQUESTS_A_BUSY_DAY if now - day < timedelta(days=BUSY_DAYS) else REQUESTS_A_DAY
            count = self._chance.randint(count - 1, count + 1) if day.weekday() < 5 else 1
            minutes = sorted(self._chance.randint(7 * 60, 19 * 60) for _ in range(count))
            for minute in minutes:
                instant = day + timedelta(minutes=minute)
                if self._clock.now() <= instant < now - timedelta(hours=5):
                    yield instant
            day += timedelta(days=1)

    def _run_to(self, instant: datetime) -> None:
        """Let time pass until then; the manager works on events when they are due."""
        while (due := self._store.events.next_due()) is not None and due <= instant:
            self._clock.instant = max(due, self._clock.instant)
            self._manager.engine.run_due()
        self._clock.instant = max(instant, self._clock.instant)

    def _somebody_books(self) -> None:
        project = self._chance.choices(people.PROJECTS, [one.weight for one in people.PROJECTS])[0]
        work = self._chance.choices(project.works, [one.weight for one in project.works])[0]
        name, user = self._chance.choice(work.names), self._chance.choice(project.users)
        start = self._clock.now() + timedelta(days=self._chance.randint(*work.days_ahead), minutes=1)
        if start - self._clock.now() > timedelta(hours=1):
            start = start.replace(hour=self._chance.choice((8, 9, 12, 14, 18)), minute=0)
        hours = self._chance.choice(work.hours)
        number = self._clock.now().strftime("%m%d")
        self._book(project.id, user, f"{name}-{number}", start, hours, work.make(self._chance))

    def _book(
        self, project: str, user: str, name: str, start: datetime, hours: int, reservation: ReservationRequest
    ) -> None:
        start = start.replace(second=0, microsecond=0)
        request = LeaseRequest(
            name=name,
            user_id=user,
            project_id=project,
            start=max(start, self._clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)),
            end=start + timedelta(hours=hours),
            reservations=(reservation,),
        )
        # What does not fit is refused, as in life.
        with suppress(BlazarError):
            self._manager.leases.create(request)

    def _somebody_changes_plans(self) -> None:
        """Let a user cancel a lease, end it early, or have it for longer."""
        # Ids are random, so the order of leases of one minute is not the same each time.
        leases = sorted(self._manager.leases.all(None), key=lambda lease: (lease.created_at, lease.name))
        live = [lease for lease in leases if lease.status in (LeaseStatus.PENDING, LeaseStatus.ACTIVE)]
        if not live:
            return
        lease = self._chance.choice(live)
        with suppress(BlazarError):
            if self._chance.random() < 0.5:
                longer = lease.window.end + timedelta(hours=self._chance.choice((6, 24)))
                self._manager.leases.update(lease.id, LeaseChange(end=longer))
            else:
                self._manager.leases.delete(lease.id)

    def _plan_course(self, now: datetime) -> None:
        """Book each Monday afternoon of the coming weeks."""
        monday = (now + timedelta(days=7 - now.weekday())).replace(hour=13, minute=0)
        for week in range(WEEKS_OF_COURSE):
            project = people.COURSE
            reservation = people.COURSE_WORK(self._chance)
            start = monday + timedelta(weeks=week)
            self._book(project.id, project.users[0], f"hpc-course-{week + 1}", start, 4, reservation)

    def _trouble(self, now: datetime) -> None:
        """Disable hosts with a reason, restrict one, and let one fail while it is in use."""
        self._disable("cpu-07", Disabling("fan replaced", now + timedelta(days=3)))
        self._disable("io-02", Disabling("waits for spare disks"))
        self._disable("h100-06", Disabling("firmware upgrade", now + timedelta(hours=20)))
        self._change("arm-05", ResourceChange({}, open_to=("robotics",), sets_projects=True))
        in_use = self._hosts_in_use()
        for name in (next((n for n in in_use if n.startswith("cpu-")), "cpu-11"), "mem-04"):
            self._cloud.operators.host_down(name)
        # One poll is not enough to call a host failed.
        for _ in range(3):
            self._clock.instant += timedelta(minutes=1)
            self._manager.monitor.run_once()

    def _hosts_in_use(self) -> list[str]:
        """Return the names of hosts that active leases use, in order."""
        active = [lease for lease in self._manager.leases.all(None) if lease.status is LeaseStatus.ACTIVE]
        ids = {use.resource_id for lease in active for use in self._store.calendar.of_lease(lease.id)}
        return sorted(resource.name for resource in self._store.resources.by_ids(ids).values())

    def _disable(self, name: str, disabling: Disabling) -> None:
        self._change(name, ResourceChange({}, disabled=True, disabling=disabling))

    def _change(self, name: str, change: ResourceChange) -> None:
        host = next(one for one in self._manager.resources.all(HOST) if one.name == name)
        self._manager.resources.change(HOST, host.external_id, change)
