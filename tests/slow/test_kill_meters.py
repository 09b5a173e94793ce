# SPDX-License-Identifier: Apache-2.0
"""Managers that read what hosts draw, and charge leases, are killed again and again: no watt-hour is lost, none is told
twice.

Some hosts are measured by a Prometheus, the others by their adapters, and sleep while nobody needs them. Leases in use
are passed on, split and merged at any second of an hour. A month ends, and clocks change. Time stands still while
managers work, so that what a killed one has left is known to the second.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.clouds.ports.power import PowerRef
from blazar.context import scope
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.reports.usage import UsageQuestion
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import accounts, allocations, charges, host_hours, leases, reservations
from tests.conftest import fresh_database
from tests.manager.billing.ledger import publish, rows
from tests.manager.reports.ledger import Life
from tests.slow.deadly import Workers
from tests.slow.metered import (
    ASKED,
    BEGIN,
    METERED,
    PUE,
    a_world,
    do,
    grams_at,
    measuring,
    watts_of,
    write_configuration,
)
from tests.world import a_host, instances

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("BLAZAR_KILLS", "220")) // 2
HOUR, MINUTE, TURN = timedelta(hours=1), timedelta(minutes=1), timedelta(minutes=5)
END = BEGIN + 40 * HOUR
"""In it clocks of Berlin are put forward, and a month ends."""
WRITERS = ("one", "other")
PROJECTS = ("arts", "biology", "physics")


class Site:
    """Managers that are killed, members, and an observer who notes what is had of each host, and when it is read."""

    def __init__(self, url: str, folder: Path) -> None:
        self.world = a_world(url, folder, BEGIN)
        make_world = lambda: a_world(url, folder, self.now)  # noqa: E731
        self.workers = Workers(self.world, make_world, do)
        publish(self.world, BEGIN - HOUR)
        for name in (*METERED, *ASKED):
            host = self.world.register(name)
            if name in ASKED:
                address = PowerAddress(PowerAdapter.SIMULATED, name)
                self.world.manager.power.change(host.external_id, PowerChange(address))
        self.hosts = {host.id: host for host in self.world.store.resources.catalog(HOST).resources}
        self.life, self.dice = Life(self.world, 3), random.Random(3)
        self.done = Counter[str]()
        self.killed, self.steps = Counter[tuple[str, str]](), {"read": 1, "close": 1, "run": 1}
        self.readings: dict[tuple[str, int], list[Fraction]] = defaultdict(list)
        self.had: dict[tuple[str, str, str, int], list[tuple[int, int, Fraction]]] = defaultdict(list)
        """Begin, end and share by lease, project, reservation and host."""
        self.slept: dict[int, list[tuple[int, int]]] = defaultdict(list)

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def pass_to(self, until: datetime) -> None:
        """Let time pass, and note for how long what is now has lasted then."""
        begin, end = int(self.now.timestamp()), int(until.timestamp())
        for key, share in self._look():
            self.had[key].append((begin, end, share))
        for host, power in self.world.store.power.read_hosts_power(self.now).items():
            if power.state == "off":
                self.slept[host].append((begin, end))
        self.world.clock.to(until)

    def _look(self) -> Iterator[tuple[tuple[str, str, str, int], Fraction]]:
        """Yield what reservations have that were handed over, with the share of the host."""
        a, r = allocations.c, reservations.c
        query = (
            sa.select(a.lease_id, leases.c.project_id, a.reservation_id, a.resource_id, a.count, r.resource_type)
            .join(leases, leases.c.id == a.lease_id)
            .join(reservations, r.id == a.reservation_id)
            .where(a.released_at.is_(None), a.starts_at <= self.now, r.status == "active")
        )
        with self.world.engine.connect() as connection:
            for *key, count, kind in connection.execute(query):
                share = Fraction(1)
                if kind != "physical:host":
                    # Servers of the life have two VCPUs.
                    share = Fraction(2 * count, self.hosts[key[-1]].capacity.get("VCPU"))
                yield tuple(key), share  # type: ignore[misc]

    def act(self) -> None:
        """Have a member do something."""
        life = self.life
        life.made = [lease.id for lease in self.world.store.leases.of_project(None)]
        often = (life.create, self.book, self.give, self.give, self.split, self.merge)
        deed = self.dice.choice((*often, life.move_end, life.resize, life.delete))
        try:
            with scope(actor=Actor("curie", "physics")):
                deed()
        except (BlazarError, IndexError):
            # It was refused, or there is none of which this can be done.
            return
        self.done[deed.__name__] += 1

    def book(self) -> None:
        """Have a project book a lease of two reservations, from now on."""
        two = self.dice.choice(((a_host(), a_host()), (a_host(), instances(2)), (instances(1), instances(3))))
        project = self.dice.choice(PROJECTS)
        self.world.lease(*two, hours=self.dice.randint(2, 14), project=project)

    def give(self) -> None:
        """Have a lease in use pass to another project, at times several times in an hour, or back."""
        lease = self.dice.choice(self._list_used())
        for _ in range(self.dice.choice((1, 2, 3))):
            owner = self.world.now(lease)
            taker = self.dice.choice([project for project in PROJECTS if project != owner.project_id])
            giver = Actor(owner.user_id, owner.project_id)
            self.world.manager.transfers.offer(lease.id, OfferRequest(taker), Terms(giver))
            self.world.manager.transfers.accept(lease.id, Terms(Actor("noether", taker)))
            self.work_until(self.now + timedelta(seconds=self.dice.randint(0, 40)))

    def split(self) -> None:
        """Split a reservation off a lease in use."""
        lease = self.dice.choice([one for one in self._list_used() if len(one.reservations) > 1])
        asked = SplitRequest((PartRequest(self.dice.choice(lease.reservations).id),), None, "part")
        self.world.manager.surgery.split(lease.id, asked, Terms(Actor(lease.user_id, lease.project_id)))

    def merge(self) -> None:
        """Merge two leases in use that have one window."""
        used = self._list_used()
        pairs = [
            (one, other)
            for one in used
            for other in used
            if one.id != other.id and (one.project_id, one.window) == (other.project_id, other.window)
        ]
        lease, other = self.dice.choice(pairs)
        terms = Terms(Actor(lease.user_id, lease.project_id))
        self.world.manager.surgery.merge(lease.id, MergeRequest(other.id), terms)

    def _list_used(self) -> list[Lease]:
        return [one for one in self.world.store.leases.of_project(None) if one.status is LeaseStatus.ACTIVE]

    def order(self, what: str, *names: str, deadly: bool = False) -> None:
        """Have managers do something side by side, of which some may die."""
        # Half of them in the last third, in which they write.
        last = self.steps[what] + 1
        lasts = {
            name: self.dice.randint(self.dice.choice((1, last * 2 // 3 + 1)), last) if deadly else 0 for name in names
        }
        answers = self.workers.order(what, lasts)
        for answer in answers.values():
            if answer.died_at:
                self.killed[what, answer.died_at] += 1
            else:
                self.steps[what] = max(self.steps[what] - 1, answer.steps)

    def read(self, *, deadly: bool) -> None:
        """Have the hosts read, by those who take over if all die: until it is on record that they were."""
        for tries in range(9):
            self.order("read", *WRITERS, deadly=deadly and tries < 6)
            due_at = self.world.store.energy.next_turn()
            # A claim ends half a minute after it began, which is no full five minutes.
            if due_at is not None and due_at > self.now and due_at.minute % 5 == due_at.second == 0:
                self._note_watts()
                return
            self.work_until(self.now + timedelta(seconds=31))
        raise AssertionError("nobody reads")

    def _note_watts(self) -> None:
        at = int(self.now.timestamp())
        refs = [
            PowerRef(one.external_id, one.name, PowerAddress(PowerAdapter.SIMULATED, one.name))
            for one in self.hosts.values()
        ]
        names = {one.external_id: one.name for one in self.hosts.values()}
        for id_, watts in self.world.power.power_watts(refs).items():
            if names[id_] in ASKED:
                self.readings[names[id_], at - at % 3600].append(Fraction(watts))

    def work_until(self, until: datetime) -> None:
        """Let time pass, and work on what is due when it is: what is late is had for longer than it is charged for."""
        while (due := self.world.store.events.next_due()) is not None and due <= until:
            if due > self.now:
                self.pass_to(due)
            self.order("run", WRITERS[0])
        if until > self.now:
            self.pass_to(until)

    def step(self, until: datetime, kills: int) -> None:
        """Work on all that is due until the next turn, and then read and charge; some die of that."""
        self.work_until(until)
        dead = Counter(what for what, _ in self.killed.elements())
        self.read(deadly=2 * dead["read"] < kills)
        self.order("run", WRITERS[0])
        due_at = self.world.store.closings.next_due()
        if due_at is not None and due_at <= self.now:
            self.order("close", *WRITERS, deadly=2 * dead["close"] < kills)


@pytest.fixture(
    params=["sqlite", *(pytest.param(other, marks=pytest.mark.nightly) for other in ("postgresql", "mariadb"))]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    for url in fresh_database(request.param, tmp_path):
        upgrade(make_engine(url))
        with measuring() as prometheus:
            write_configuration(tmp_path, prometheus)
            found = Site(url, tmp_path)
            try:
                yield found
            finally:
                found.workers.close()


def test_wherever_managers_are_killed_what_hosts_drew_is_told_once(site):
    at = BEGIN
    while at <= END:
        if site.dice.random() < 0.5 and at < END - 5 * HOUR:
            # At any second, but so early that what lasts a while is over before the next turn.
            site.work_until(min(site.now + timedelta(seconds=site.dice.randint(0, 200)), at - 2.1 * MINUTE))
            site.act()
        site.step(at, int(KILLS * min(1, (at - BEGIN) / (36 * HOUR)) + 1))
        at += TURN
    for lease in site.world.store.leases.of_project(None):
        site.world.manager.leases.delete(lease.id)
    while at <= END + 3 * HOUR:
        site.step(at, 0)
        at += TURN
    print(f"killed at {dict(site.killed)}; {len(site.had)} shares of hosts, {len(site.slept)} hosts slept")
    print(f"done: {dict(site.done)}")
    assert min(site.done[deed] for deed in ("give", "split", "merge")) >= 2
    dead = Counter(what for what, _ in site.killed.elements())
    assert min(dead["read"], dead["close"]) >= KILLS // 3
    check_readings(site)
    told, had = sum_told(site), sum_had(site, site.had)
    check_charges(told, had)
    check_report(site, had)


def mean_of(site: Site, host: str, hour: int) -> Fraction:
    """Return the mean of what a host drew in an hour, in watts."""
    if host in METERED:
        return Fraction(sum(watts_of(host, at) for at in range(hour, hour + 3600, 300)), 12)
    known = site.readings[host, hour]
    return sum(known, Fraction(0)) / len(known)


def drawn(site: Site, host: int, begin: int, end: int) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the watt-hours of a host by hour, and the grams of them."""
    while begin < end:
        hour = begin - begin % 3600
        until = min(end, hour + 3600)
        drew = mean_of(site, site.hosts[host].name, hour) * (until - begin) / 3600
        yield drew, drew / 1000 * PUE * grams_at(hour)
        begin = until


def check_readings(site: Site) -> None:
    """Each host was read twelve times in each hour, and what is on record is the mean of that."""
    found = {(row["resource_id"], row["hour"]): row for row in rows(site.world, host_hours)}
    first, last = int(BEGIN.timestamp()), int((END + 3 * HOUR).timestamp())
    for host in site.hosts.values():
        for hour in range(first, last, 3600):
            row = found[host.id, hour]
            if host.name in ASKED:
                assert (row["readings"], len(site.readings[host.name, hour])) == (12, 12), (host.name, hour)
            # A mean of readings is rounded with each of them.
            assert abs(row["milliwatts"] - 1000 * mean_of(site, host.name, hour)) <= 6


Sums = dict[tuple[str, str, str], list[Fraction]]
"""Seconds, watt-hours and grams by lease, project and month."""


def month_of(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m}"


def sum_had(site: Site, seen: Mapping[Any, list[tuple[int, int, Fraction]]]) -> Sums:
    """Return what leases had of hosts, as it was seen."""
    found: Sums = defaultdict(lambda: [Fraction(0)] * 3)
    for (lease, project, _, host), spans in seen.items():
        for begin, end, share in spans:
            for hour in range(begin - begin % 3600, end, 3600):
                start, until = max(begin, hour), min(end, hour + 3600)
                for drew, grams in drawn(site, host, start, until):
                    sums = found[lease, project, month_of(start)]
                    added = (share * (until - start), share * drew, share * grams)
                    found[lease, project, month_of(start)] = [a + b for a, b in zip(sums, added, strict=True)]
    return found


def sum_told(site: Site) -> dict[tuple[str, str, str], tuple[list[int], int]]:
    """Return what charges tell of energy, and how many do: none of two of a reservation at one time."""
    found: dict[tuple[str, str, str], tuple[list[int], int]] = {}
    spans: dict[tuple[str, str], list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in rows(site.world, charges):
        if row["category"] == "energy":
            assert (row["energy_source"], row["carbon_state"]) == ("measured", "known")
            spans[row["reservation_id"], row["project_id"]].append((row["starts_at"], row["ends_at"]))
            key = row["lease_id"], row["project_id"], month_of(int(row["starts_at"].timestamp()))
            sums, count = found.get(key, ([0, 0, 0], 0))
            added = (row["resource_seconds"], row["wh"], row["gco2"])
            found[key] = [a + b for a, b in zip(sums, added, strict=True)], count + 1
    for found_spans in spans.values():
        found_spans.sort()
        assert all(one[1] <= next_[0] for one, next_ in zip(found_spans, found_spans[1:], strict=False))
    assert all(row["due_at"] is None for row in rows(site.world, accounts)), "all are closed"
    return found


def check_charges(told, had) -> None:
    """Each line is rounded once, and so they differ from what was seen by half a unit each at most."""
    assert told.keys() == {key for key, sums in had.items() if sums[0]}
    for key, (sums, count) in told.items():
        for is_told, was in zip(sums, had[key], strict=True):
            assert abs(is_told - was) <= Fraction(count, 2) + Fraction(1, 50), (key, sums, had[key])


def check_report(site: Site, had: Sums) -> None:
    """Of all that hosts drew some was drawn by leases, and the rest by hosts that were idle, or asleep."""
    until = END + 2 * HOUR
    report = site.world.manager.reports.usage(UsageQuestion("physics", BEGIN, until, unbooked=True))
    (row,), unbooked = report.rows, report.unbooked
    slept = sum(
        (
            drew
            for host, spans in site.slept.items()
            for span in spans
            for drew, _ in drawn(site, host, *clip(span, until))
        ),
        Fraction(0),
    )
    leased = sum((sums[1] for sums in had.values()), Fraction(0))
    first, last = int(BEGIN.timestamp()), int(until.timestamp())
    whole = sum((drew for host in site.hosts for drew, _ in drawn(site, host, first, last)), Fraction(0))
    print(f"{float(whole):.3f} Wh: {float(leased):.3f} by leases, {float(slept):.3f} asleep")
    assert slept
    assert abs(row.sums.energy_wh - leased) <= 1
    assert abs(unbooked.asleep.energy_wh - slept) <= 1
    assert abs(unbooked.idle.energy_wh - (whole - leased - slept)) <= 1
    assert abs(row.sums.energy_wh + unbooked.idle.energy_wh + unbooked.asleep.energy_wh - whole) <= 1


def clip(span: tuple[int, int], until: datetime) -> tuple[int, int]:
    return span[0], min(span[1], int(until.timestamp()))
