# SPDX-License-Identifier: Apache-2.0
"""A month of 500 projects: its report, live and from the record, says the same, and is there in seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

import pytest

from blazar.model.base.moments import LocalDay
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import UsageGroup, UsageQuestion, UsageReport
from blazar.store.sql.tables import allocations, events, leases, reservations
from tests.world import NOON, World, a_host

pytestmark = pytest.mark.slow
PROJECTS, LEASES, HOUR = 500, 20_000, timedelta(hours=1)
FIRST, LAST = date(2030, 4, 1), date(2030, 4, 30)
LONGEST_SECONDS = 30.0
"""Several times what it takes on two shared cores."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.fixture
def month(world: World) -> World:
    """Copies of a lease that is over, each of a project by chance, at a time by chance; it is the first of May."""
    pattern = world.lease(a_host(), hours=1)
    world.run_to(NOON + 2 * HOUR)
    with world.engine.begin() as connection:
        rows = {
            table: [dict(row) for row in connection.execute(table.select().where(column == pattern.id)).mappings()]
            for table, column in (
                (leases, leases.c.id),
                (reservations, reservations.c.lease_id),
                (events, events.c.lease_id),
                (allocations, allocations.c.lease_id),
            )
        }
        chance, made = random.Random(1), {table: [] for table in rows}
        for number in range(LEASES):
            by = timedelta(seconds=chance.randrange(28 * 86400))
            changed = {"id": f"lease-{number}", "lease_id": f"lease-{number}", "reservation_id": f"part-{number}"}
            for table, found in rows.items():
                for place, row in enumerate(found):
                    written = {name: value for name, value in row.items() if table.c[name].computed is None}
                    moved = {
                        name: value + by if hasattr(value, "astimezone") else value for name, value in written.items()
                    }
                    moved |= {name: value for name, value in changed.items() if name in row and name != "id"}
                    moved["id"] = f"lease-{number}" if table is leases else f"part-{number}"
                    if table is events:
                        moved["id"] = f"{number}-{place}"
                    if table is allocations:
                        del moved["id"]
                    made[table].append(moved | ({"project_id": f"p{number % PROJECTS}"} if table is leases else {}))
        for table, found in made.items():
            connection.execute(table.insert(), found)
    world.clock.to(NOON + 30 * 24 * HOUR)
    return world


def ask(world: World, *group_by: UsageGroup, step: ReportStep = ReportStep.ALL) -> UsageReport:
    question = UsageQuestion("admin", LocalDay(2030, 4, 1), LocalDay(2030, 5, 1), group_by, step, private=True)
    with within(LONGEST_SECONDS):
        return world.manager.reports.usage(question)


def total(report: UsageReport) -> int:
    return sum(row.sums.reserved for row in report.rows)


def test_a_month_of_500_projects_is_there_in_seconds_and_the_same_from_the_record(month):
    live = [ask(month, UsageGroup.PROJECT), ask(month, UsageGroup.RESOURCE_TYPE, step=ReportStep.DAY)]
    assert len(live[0].rows) == PROJECTS + 1
    assert {total(report) for report in live} == {(LEASES + 1) * 3600}
    with within(10 * LONGEST_SECONDS):
        assert month.manager.usage_days.recompute(FIRST, LAST) == 30
    recorded = [ask(month, UsageGroup.PROJECT), ask(month, UsageGroup.RESOURCE_TYPE, step=ReportStep.DAY)]
    assert [report.rows for report in recorded] == [report.rows for report in live]
