# SPDX-License-Identifier: Apache-2.0
"""Whatever becomes of a lease, it is charged what a table of its hours adds up to, and expected to be at any time.

The table knows nothing of rows: it has, for each hour, what was booked and by which list, as the user would count it.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.leases.requests import Actor
from blazar.model.surgery import OfferRequest, Terms
from blazar.store.sql.tables import charges, findings, planned
from tests.cases import cases
from tests.manager.billing.ledger import CURIE, HOUR, act, publish, rows
from tests.manager.health.steps import look
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host

BEGIN = NOON + 28 * 24 * HOUR
"""Two days and a half before the end of April."""


def hour_of(instant: datetime) -> int:
    return round((instant - BEGIN) / HOUR)


def at(hour: int) -> datetime:
    return BEGIN + hour * HOUR


@dataclass
class Table:
    """What a lease has in each hour, as the numbers of the lists by which it was booked, in that order."""

    lists: list[dict[str, Any]]
    start: int
    end: int
    booked: dict[int, list[int]] = field(default_factory=dict)
    project: str = "physics"
    fee_by: int | None = None
    paid: Counter[str] = field(default_factory=Counter)
    """What each project was charged so far, in fractions of the currency."""

    def price(self, hour: int, number: int) -> Fraction:
        document = self.lists[number]
        is_day = 9 <= at(hour).hour < 18
        return Fraction(document["prices"][0]["per_hour"]) * (Fraction(document["hours"][0]["factor"]) if is_day else 1)

    def share(self, now: int, number: int) -> Fraction:
        document = self.lists[number]
        if now >= self.start:
            return Fraction(document["early_return"])
        first, rest = document["cancellation"]
        return Fraction(first["share"] if self.start - now > 6 else rest["share"])

    def book(self, hours: range, count: int, *, by: int) -> None:
        for hour in hours:
            self.booked.setdefault(hour, []).extend([by] * count)

    def give_back(self, hours: range, now: int, count: int | None = None) -> None:
        """Take what was booked last out of hours, and charge its share."""
        for hour in hours:
            units = self.booked.pop(hour)
            kept = [] if count is None else units[:-count]
            if kept:
                self.booked[hour] = kept
            for number in units[len(kept) :]:
                self.paid[self.project] += self.price(hour, number) * self.share(now, number)

    def use(self, now: int, lost: Counter[int]) -> None:
        """Charge the hours that are over to who has the lease."""
        for hour in sorted(hour for hour in self.booked if hour < now):
            units = self.booked.pop(hour)
            for number in units[lost[hour] :]:
                self.paid[self.project] += self.price(hour, number)
        if self.fee_by is not None and now >= self.start:
            self.paid[self.project] += Fraction(self.lists[self.fee_by]["fee"])
            self.fee_by = None

    @property
    def rest(self) -> Fraction:
        """Return what is still to come."""
        fee = 0 if self.fee_by is None else Fraction(self.lists[self.fee_by]["fee"])
        return fee + sum(self.price(hour, number) for hour, units in self.booked.items() for number in units)


class Life:
    """A life of one lease, with all that its owner does, and what a table says of it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, random.Random(seed)
        self.lists: list[dict[str, Any]] = []
        self.lost: Counter[int] = Counter()
        self.now = 0
        world.run_to(BEGIN)
        self.publish()
        start = self.random.choice([0, 1, 8, 30])
        length = self.random.randint(2, 90)
        count = self.random.randint(1, 3)
        self.lease = act(world, world.lease, a_host(count), start=at(start), end=at(start + length))
        self.count = count
        self.table = Table(self.lists, start, start + length, fee_by=0)
        self.table.book(range(start, start + length), count, by=0)
        self.is_over = False

    def publish(self) -> None:
        """Publish another list, a second before the hour."""
        price = lambda: f"{self.random.randint(1, 9)}.{self.random.randint(0, 999999):06}"  # noqa: E731
        share = lambda: str(self.random.choice([0, 0.1, 0.5, 1]))  # noqa: E731
        document = {
            "prices": [{"sku": "host", "measure": "host", "per_hour": price()}],
            "hours": [{"from": "09:00", "to": "18:00", "factor": price()}],
            "fee": price(),
            "early_return": share(),
            "cancellation": [{"before_start": "PT6H", "share": share()}, {"share": share()}],
        }
        publish(self.world, at(self.now) - timedelta(seconds=1), **document)
        self.lists.append(document)

    @property
    def newest(self) -> int:
        return len(self.lists) - 1

    def live(self) -> None:
        """Do something a few times, with some hours between."""
        for _ in range(self.random.randint(2, 8)):
            self.wait(self.random.choice([1, 1, 5, 20, 40]))
            if self.is_over or self.now >= self.table.end - 1:
                break
            self.do_something()
            self.check()
        self.wait(max(self.table.end - self.now, 0) + 2)
        while self.world.manager.closing.run_once():
            pass
        assert rows(self.world, planned) == []
        self.check()
        assert self.world.manager.recomputation.run_once() == 1
        assert rows(self.world, findings) == []

    def wait(self, hours: int) -> None:
        self.now += hours
        self.world.run_to(at(self.now))
        if self.random.random() < 0.5:
            self.world.manager.closing.run_once()
        self.table.use(self.now, self.lost)

    def do_something(self) -> None:
        often = [self.extend, self.shorten, self.grow, self.shrink, self.publish, self.transfer]
        if self.now < self.table.start:
            often += [self.shift, self.heal]
        else:
            often += [self.lose]
        self.random.choice([*often, self.extend, self.delete] if self.random.random() < 0.2 else often)()

    def extend(self) -> None:
        end = self.table.end + self.random.randint(1, 40)
        act(self.world, self.world.change, self.lease, end=at(end))
        self.table.book(range(self.table.end, end), self.count, by=self.newest)
        self.table.end = end

    def shorten(self) -> None:
        end = self.random.randint(max(self.now, self.table.start) + 1, self.table.end)
        if end < self.table.end:
            act(self.world, self.world.change, self.lease, end=at(end))
            self.table.give_back(range(end, self.table.end), self.now)
            self.table.end = end

    def shift(self) -> None:
        """Move a lease that has not started, and keep its length."""
        start = self.random.randint(self.now + 1, self.table.start + 30)
        table, by = self.table, self.random.randint(0, 3)
        end = start + table.end - table.start + by
        act(self.world, self.world.change, self.lease, start=at(start), end=at(end))
        before, after = set(range(table.start, table.end)), set(range(start, end))
        for hour in sorted(before - after):
            table.give_back(range(hour, hour + 1), self.now)
        for hour in sorted(after - before):
            table.book(range(hour, hour + 1), self.count, by=self.newest)
        # The fee is that by which its first hour was booked: of an extension, if no more than that is left.
        table.fee_by = table.booked[start][0]
        table.start, table.end = start, end

    def grow(self) -> None:
        if self.count < 4:
            self.resize(self.count + 1)
            self.table.book(range(max(self.now, self.table.start), self.table.end), 1, by=self.newest)
            self.count += 1

    def shrink(self) -> None:
        if self.count > 1:
            self.resize(self.count - 1)
            self.table.give_back(range(max(self.now, self.table.start), self.table.end), self.now, 1)
            self.count -= 1

    def resize(self, count: int) -> None:
        self.lease = self.world.now(self.lease)
        act(self.world, self.world.resize, self.lease, min=count, max=count)

    def transfer(self) -> None:
        table, world = self.table, self.world
        taker = Actor("turing", "computing") if table.project == "physics" else CURIE
        giver = CURIE if table.project == "physics" else Actor("turing", "computing")
        world.manager.transfers.offer(self.lease.id, OfferRequest(taker.project_id), Terms(giver))
        world.manager.transfers.accept(self.lease.id, Terms(taker))
        table.project = taker.project_id
        table.booked = {hour: [self.newest] * len(units) for hour, units in table.booked.items()}
        if table.fee_by is not None:
            table.fee_by = self.newest

    def lose(self) -> None:
        """Let a host fail for some hours, if all that there is costs the same: else one does not know which it is."""
        until = self.now + self.random.randint(1, 9)
        hours = range(self.now, min(until, self.table.end))
        if any(len(set(self.table.booked[hour])) > 1 for hour in hours) or until >= self.table.end:
            return
        host = min(self.world.hosts_of(self.lease))
        self.world.simulated.operators.host_down(host)
        look(self.world, 4)
        self.lost.update(hours)
        self.wait(until - self.now)
        self.world.simulated.operators.host_up(host)
        look(self.world, 4)

    def heal(self) -> None:
        """Let a host fail before the start: another one takes its place, for what that costs."""
        host = self.random.choice(sorted(self.world.hosts_of(self.lease)))
        self.world.simulated.operators.host_down(host)
        look(self.world, 4)
        self.world.simulated.operators.host_up(host)
        look(self.world, 4)

    def delete(self) -> None:
        act(self.world, self.world.manager.leases.delete, self.lease.id)
        self.world.run()
        table = self.table
        if self.now < table.start and table.fee_by is not None:
            fee, share = Fraction(self.lists[table.fee_by]["fee"]), table.share(self.now, table.fee_by)
            table.paid[table.project] += fee * share
            table.fee_by = None
        table.give_back(range(max(self.now, table.start), table.end), self.now)
        self.is_over = True

    def check(self) -> None:
        """Compare what was and will be charged, to each project, but for the rounding of each line."""
        found: dict[str, int] = defaultdict(int)
        lines = rows(self.world, charges) + rows(self.world, planned)
        for row in lines:
            found[row["project_id"]] += row["nano"]
        for project in ("physics", "computing"):
            expected = self.table.paid[project] + (self.table.rest if project == self.table.project else 0)
            assert abs(found[project] - expected * 10**9) <= 40 * (len(lines) + 1), project


def run_life(tmp_path: Any, seed: int) -> None:
    engine = new_sqlite(tmp_path / f"{seed}.sqlite")
    try:
        Life(World(engine, hosts=6), seed).live()
    finally:
        engine.dispose()


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=cases(400), deadline=None)
@given(st.integers(0, 10**6))
def test_any_life_costs_what_its_hours_do(tmp_path_factory, seed):
    run_life(tmp_path_factory.mktemp("life"), seed)
