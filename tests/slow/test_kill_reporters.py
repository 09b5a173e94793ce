# SPDX-License-Identifier: Apache-2.0
"""A month whose managers are killed again and again: each report is what was looked at while it happened.

Time stands still while they work, so that what a killed one has left behind is known to the second.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from blazar.clouds.simulated import FileStorage, of_size
from blazar.context import scope
from blazar.manager.common.settings import Settings
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError
from blazar.model.leases.requests import Actor, LeaseRequest
from blazar.model.reports.capacity import CapacityGroup, CapacityReportQuestion
from blazar.model.reports.demand import DemandGroup, DemandQuestion
from blazar.model.reports.forecast import DISTANCES, ForecastQuestion, PastDay, forecast_day, judge_forecasts
from blazar.model.reports.periods import ReportSettings, ReportStep, day_at, start_of_day
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import allocations, leases, usage_closed_days
from blazarconformance.clock import ManualClock
from tests.conftest import fresh_database
from tests.manager.reports.ledger import Life
from tests.manager.reports.test_capacity import Observer
from tests.manager.reports.test_recomputed import BY_BOTH, ask, measured
from tests.people import PeopledCloud
from tests.world import NOON, PROJECT, World, a_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

KILLS = int(os.environ.get("BLAZAR_KILLS", "220")) - 20
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
END, HOSTS = NOON + 30 * DAY, 4
ZONE = ZoneInfo("America/Santiago")
USE = UsePolicies(UsePolicy(UseMode.ON, unused_after=5 * HOUR, idle_after=4 * HOUR, warn_before=2 * HOUR))
SETTINGS = Settings(
    claim_ttl=30 * SECOND, promises=0, reports=ReportSettings(str(ZONE)), use_policies=USE, patience=timedelta(0)
)
WRITERS = ("life", "records", "more records")


def a_world(url: str, cloud_file: Path, now: datetime) -> World:
    """Return the world of a process."""
    clock = ManualClock(now)
    cloud = PeopledCloud(FileStorage(cloud_file, of_size(HOSTS)), clock=clock)
    return World(make_engine(url), hosts=HOSTS, register=False, clock=clock, cloud=cloud, settings=SETTINGS)


class WaitingLife(Life):
    """A life in which some wait for resources."""

    def wait(self) -> None:
        now = to_second(self.world.clock.now())
        hours = self.random.randint(2, 30)
        asked = LeaseRequest("a wait", "curie", PROJECT, now, now + hours * HOUR, reservations=(a_host(2),), exact=True)
        self.world.manager.leases.create(replace(asked, wait_until=now + self.random.randint(4, 60) * HOUR))

    def act(self, seed: int) -> str | None:
        """Do something; return the code of the error for which it was refused."""
        self.random = random.Random(seed)
        often = (*(self.create, self.boot, self.move_end) * 3, self.resize, self.wait)
        try:
            with scope(actor=Actor("curie", "physics")):
                self.random.choice((*often, self.delete, self.transfer, self.fail_or_mend))()
        except BlazarError as error:
            return error.code
        return None


def work(url: str, cloud_file: Path, now: datetime, orders: Connection) -> None:
    """Be a manager that does what it is told, and kills itself before one of its next statements or calls."""
    world, left = a_world(url, cloud_file, now), 0
    world.waits = True

    def die_in_time(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(world.engine, "before_cursor_execute", die_in_time)
    sa.event.listen(world.engine, "commit", die_in_time)
    world.faults.on_call = die_in_time
    while True:
        instant, what, seed, left = orders.recv()
        world.clock.to(instant)
        refused = None
        match what:
            case "act":
                life = WaitingLife(world, seed)
                life.made = [lease.id for lease in world.store.leases.of_project(None)]
                refused = life.act(seed)
                world.manager.refused_requests.write()
            case "run":
                world.run()
            case _:
                world.store.journal.number(500, now=instant)
                world.manager.usage_days.run_once()
                while world.manager.capacity_records.run_once():
                    pass
        orders.send(refused)


class Site:
    """Managers that are killed; an observer who looks at all that they leave behind."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._file = url, folder / "cloud.json"
        self.world = a_world(url, self._file, NOON)
        for number in range(1, HOSTS + 1):
            self.world.register(f"node-{number}")
        self.ledger, self.observer = Life(self.world, 0).ledger, Observer(self.world, lambda at: day_at(at, ZONE))
        self.dice, self.killed, self.refused = random.Random(7), Counter[str](), Counter[str]()
        self.unsure, self.waits = 0, defaultdict[str, list[tuple[datetime, str]]](list)
        self.promised: dict[tuple[date, int], int] = {}
        self._workers: dict[str, tuple[multiprocessing.process.BaseProcess, Connection]] = {}

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def close(self) -> None:
        for process, _ in self._workers.values():
            process.kill()
            process.join()

    def _born(self, name: str) -> Connection:
        if name not in self._workers:
            # What the new process has of our connections must not end them.
            self.world.engine.dispose()
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(self._url, self._file, self.now, theirs), daemon=True)
            process.start()
            theirs.close()
            self._workers[name] = process, ours
        return self._workers[name][1]

    def order(self, what: str, *names: str, deadly: bool) -> list[str]:
        """Have managers do something side by side; return who died of it."""
        for name in names:
            left = self.dice.choice((self.dice.randint(1, 8), self.dice.randint(1, 60))) if deadly else 0
            self._born(name).send((self.now, what, self.dice.randrange(2**32), left))
        died = []
        for name in names:
            process, orders = self._workers[name]
            try:
                if (code := orders.recv()) is not None:
                    self.refused[code] += 1
            except EOFError:
                process.join()
                assert process.exitcode == -signal.SIGKILL
                del self._workers[name]
                died.append(name)
                self.killed[what] += 1
                self.unsure += what == "act"
        self.note()
        return died

    def note(self) -> None:
        """Note what is held, and who waits."""
        self.ledger.note()
        with self.world.engine.connect() as connection:
            for lease_id, status in connection.execute(sa.select(leases.c.id, leases.c.status)):
                known = self.waits[lease_id]
                if not known or known[-1][1] != status:
                    known.append((self.now, status))

    def step(self, kills: int) -> None:
        """Let users and managers do something, and some of them die; then it is on record."""
        for what in self.dice.sample(("act", "run", "close"), k=3):
            names = WRITERS[1:] if what == "close" else WRITERS[:1]
            if what == "close":
                self._foresee()
            while died := self.order(what, *names, deadly=self.killed.total() < kills):
                names = tuple(died)
                if what == "act":
                    break

    def _foresee(self) -> None:
        """Note what is promised of days to come, once a day."""
        today = day_at(self.now, ZONE)
        for ahead in DISTANCES:
            self.promised.setdefault((today + ahead * DAY, ahead), self.sum_promised(today + ahead * DAY))

    def sum_promised(self, day: date) -> int:
        """Return the seconds of hosts that are promised of a day by now."""
        first, last, found = start_of_day(day, ZONE), start_of_day(day + DAY, ZONE), timedelta(0)
        for host in {one.resource_id for one in self.ledger.held}:
            until = first
            for one in sorted(self.ledger.held, key=lambda one: one.start):
                if one.resource_id == host and min(one.end, last) > max(one.start, until):
                    found += min(one.end, last) - max(one.start, until)
                    until = min(one.end, last)
        return found // SECOND

    def pass_until(self, until: datetime) -> None:
        """Let time pass; the observer looks wherever something begins or ends, or a day does."""
        late = self.dice.random() < 0.25
        while (now := self.now) < until:
            borders = {until, start_of_day(day_at(now, ZONE) + DAY, ZONE), *self._list_borders()}
            if (due := self.world.store.events.next_due()) is not None:
                due = to_second(due + SECOND - timedelta(microseconds=1))
                borders.add(due)
            coming = min(border for border in borders if now < border <= until)
            self.observer.look(coming)
            self.world.clock.to(coming)
            self.note()
            if coming == due and not late:
                self.order("run", "life", deadly=False)

    def _list_borders(self) -> Iterator[datetime]:
        a = allocations.c
        with self.world.engine.connect() as connection:
            for row in connection.execute(sa.select(a.starts_at, a.ends_at, a.blocks_until)):
                yield from row


@pytest.fixture(
    params=["sqlite", *(pytest.param(other, marks=pytest.mark.nightly) for other in ("postgresql", "mariadb"))]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    for url in fresh_database(request.param, tmp_path):
        upgrade(make_engine(url))
        found = Site(url, tmp_path)
        try:
            yield found
        finally:
            found.close()


def test_after_a_month_of_kills_the_reports_are_what_was_looked_at(site):
    while site.now < END:
        # All of them have died some days before the end.
        site.step(int(KILLS * min(1, (site.now - NOON) / (27 * DAY)) + 1) if site.now < END - DAY else 0)
        site.pass_until(min(site.now + timedelta(seconds=site.dice.randint(1, 6 * 3600)), END))
    site.order("close", WRITERS[1], deadly=False)
    print(
        f"killed in {dict(site.killed)}; {len(site.waits)} leases; refused: {dict(site.refused)}, "
        f"perhaps {site.unsure} more"
    )
    assert site.killed.total() >= KILLS
    closed = site.world.store.usage_days.list_closed(str(ZONE))
    assert {day_at(begin, ZONE) for begin, _ in local_days()} <= set(closed)
    check_usage(site)
    check_capacity(site)
    check_demand(site)
    check_forecast(site)
    with site.world.engine.begin() as connection:
        connection.execute(usage_closed_days.delete())
    check_usage(site)


def local_days() -> list[tuple[datetime, datetime]]:
    """Return the local days that are on record by the end."""
    borders = [start_of_day(NOON.date() + number * DAY, ZONE) for number in range(31)]
    return list(pairwise(borders))


def check_usage(site: Site) -> None:
    report = ask(site.world, ReportStep.DAY, *BY_BOTH)
    for begin, end in local_days():
        assert measured(report, (begin, end)) == site.ledger.sums(begin, end), begin


def seen(site: Site, day: date) -> dict[str, int]:
    return {state: number for (on, state, _), number in site.observer.seconds.items() if on == day}


def check_capacity(site: Site) -> None:
    """The report and what is on record of each day."""
    asked = CapacityReportQuestion(PROJECT, NOON, END, (CapacityGroup.KIND,), ReportStep.DAY, operator=True)
    rows = {day_at(row.window.start, ZONE): row for row in site.world.manager.reports.capacity(asked).rows}
    recorded = {day.day: day for day in site.world.store.capacity.read_days(NOON.date(), END.date() + 28 * DAY)}
    for begin, _ in local_days():
        day = day_at(begin, ZONE)
        for found in (rows[day].sums.seconds, recorded[day].seconds):
            assert {str(state): number for state, number in found.items() if number} == seen(site, day), day
    assert {
        (day.day, ahead): n for day in recorded.values() for ahead, n in day.promised_before.items()
    } == site.promised


def check_demand(site: Site) -> None:
    """Who waited, to the second; a request whose manager was killed may be counted or not."""
    asked = DemandQuestion(start_of_day(NOON.date(), ZONE), END, (DemandGroup.CODE,))
    rows = {row.groups[0]: row.sums for row in site.world.manager.reports.demand(asked).rows}
    found = {code: sums.refused for code, sums in rows.items() if sums.refused}
    for code in ("not_enough_resources", "others_wait"):
        assert 0 <= found.pop(code, 0) - site.refused[code] <= site.unsure
    assert not found
    waited, became = timedelta(0), Counter[str]()
    for moments in site.waits.values():
        for number, (at, status) in enumerate(moments):
            if status == "WAITING":
                later = moments[number + 1 :]
                waited += (later[0][0] if later else END) - at
                became[next((name for _, name in later if name != "CREATING"), "")] += 1
    sums = rows[""]
    assert (sums.waited, sums.timed_out) == (waited // SECOND, became["TIMED_OUT"])
    assert sums.granted == became["PENDING"] + became["STARTING"] + became["ACTIVE"] > 0


def check_forecast(site: Site) -> None:
    """What is promised by now, and what is expected by the days that were looked at."""
    today = day_at(site.now, ZONE)
    found = site.world.manager.reports.forecast(
        ForecastQuestion(PROJECT, group_by=(CapacityGroup.KIND,), operator=True)
    )
    past = {}
    for begin, _ in local_days():
        day = day_at(begin, ZONE)
        states = seen(site, day)
        before = {ahead: n for (on, ahead), n in site.promised.items() if on == day}
        past[day] = PastDay(day, sum(states.values()), states.get("promised", 0), before)
    assert found.accuracy == judge_forecasts(past, today=today)
    for row in found.rows[1:]:
        day = row.day.day
        whole = HOSTS * ((start_of_day(day + DAY, ZONE) - start_of_day(day, ZONE)) // SECOND)
        told = forecast_day(day, today=today, registered=whole, promised=site.sum_promised(day), past=past)
        assert row.day == told
