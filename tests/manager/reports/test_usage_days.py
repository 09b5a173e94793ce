# SPDX-License-Identifier: Apache-2.0
"""Days of usage are put on record once they are over, stay when leases are purged, and follow the journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from unittest import mock

import pytest
import sqlalchemy as sa

from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import LocalDay
from blazar.model.reports.days import ClosedDay
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import UsageGroup, UsageQuestion
from blazar.store.sql.tables import journal, leases, usage_days
from tests.statements import counted
from tests.world import NOON, World, a_host

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
FIRST, APRIL = date(2030, 4, 1), LocalDay(2030, 4, 1)


@pytest.fixture
def third_day(world: World) -> World:
    """A lease of 30 hours of two hosts, and one of an hour on the day after, by the third noon."""
    world.lease(a_host(2), hours=30)
    world.lease(a_host(), start=DAY, hours=1, project="biology")
    world.run_to(NOON + 2 * DAY)
    number(world)
    return world


def number(world: World) -> None:
    """Give the entries of the journal their positions."""
    while world.store.journal.number(500, now=world.clock.now()):
        pass


def reserved(world: World, *group_by: UsageGroup, start=APRIL, step=ReportStep.DAY):
    question = UsageQuestion("admin", start, LocalDay(2030, 4, 4), group_by, step, private=True)
    rows = world.manager.reports.usage(question).rows
    return [(row.window.start.day, *row.groups, row.sums.reserved // 3600, row.sums.leases) for row in rows]


def test_a_day_is_closed_an_hour_after_its_end_and_once(third_day):
    before = reserved(third_day, UsageGroup.PROJECT)
    assert before == [(1, "physics", 24, 1), (2, "biology", 1, 1), (2, "physics", 36, 1)]
    # Those of a month, of which all but two are empty.
    assert third_day.manager.usage_days.run_once() == 31
    assert third_day.manager.usage_days.run_once() == 0
    assert reserved(third_day, UsageGroup.PROJECT) == before
    assert reserved(third_day, step=ReportStep.ALL) == [(1, 61, 2)]
    third_day.run_to(NOON + 2 * DAY + 12 * HOUR + 59 * timedelta(minutes=1))
    assert third_day.manager.usage_days.run_once() == 0
    third_day.run_to(NOON + 2 * DAY + 13 * HOUR)
    assert third_day.manager.usage_days.run_once() == 1


def test_what_is_closed_is_read_from_the_record(third_day):
    third_day.manager.usage_days.run_once()
    with third_day.engine.begin() as connection:
        connection.execute(usage_days.update().where(usage_days.c.day == FIRST).values(reserved=7 * 3600))
    assert reserved(third_day)[0] == (1, 14, 1)
    assert third_day.manager.usage_days.recompute(FIRST, FIRST) == 1
    assert reserved(third_day)[0] == (1, 24, 1)


def test_a_day_stays_when_its_leases_are_purged_and_is_closed_again(third_day):
    third_day.manager.usage_days.run_once()
    before = reserved(third_day)
    third_day.run_to(NOON + 9 * DAY)
    assert third_day.store.leases.purge(NOON + 30 * DAY, 10)["leases"] == 2
    with third_day.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(leases)).scalar() == 0
    assert reserved(third_day) == before
    third_day.manager.usage_days.recompute(FIRST, FIRST + DAY)
    assert reserved(third_day) == before


def test_an_entry_that_tells_of_closed_days_has_them_closed_again(third_day):
    third_day.manager.usage_days.run_once()
    with third_day.engine.begin() as connection:
        owned = leases.update().where(leases.c.project_id == "biology")
        connection.execute(owned.values(project_id="chemistry"))
        ended = journal.update().where(journal.c.project_id == "biology", journal.c.verb == "ended")
        connection.execute(ended.values(verb="transferred", position=None, at=third_day.clock.now()))
    number(third_day)
    assert third_day.manager.usage_days.run_once() >= 1
    assert [row for row in reserved(third_day, UsageGroup.PROJECT) if row[0] == 2] == [
        (2, "chemistry", 1, 1),
        (2, "physics", 36, 1),
    ]
    number(third_day)
    assert third_day.manager.usage_days.run_once() == 0


def test_a_day_is_written_as_a_whole_or_not_at_all(third_day):
    third_day.manager.usage_days.run_once()
    before = reserved(third_day)

    def die(connection, cursor, statement, parameters, context, many):
        if statement.startswith("INSERT INTO usage_closed_days"):
            raise MemoryError("killed")

    sa.event.listen(third_day.engine, "before_cursor_execute", die)
    with pytest.raises(MemoryError):
        third_day.manager.usage_days.recompute(FIRST, FIRST)
    sa.event.remove(third_day.engine, "before_cursor_execute", die)
    assert reserved(third_day) == before
    assert third_day.manager.usage_days.recompute(FIRST, FIRST) == 1
    assert reserved(third_day) == before


def test_a_day_that_two_managers_close_at_once_is_closed_by_both(third_day):
    clashes = [sa.exc.IntegrityError("INSERT", {}, Exception("duplicate key"))]

    def clash(connection, cursor, statement, parameters, context, many):
        if statement.startswith("INSERT INTO usage_closed_days") and clashes:
            raise clashes.pop()

    sa.event.listen(third_day.engine, "before_cursor_execute", clash)
    assert third_day.manager.usage_days.recompute(FIRST, FIRST) == 1
    assert not clashes
    assert reserved(third_day)[0] == (1, 24, 1)


@pytest.mark.parametrize("late_at", [1, 2], ids=["as its entry is read", "after that"])
def test_a_day_that_a_slow_manager_writes_as_it_was_earlier_is_closed_once_more(third_day, late_at):
    days, store = third_day.manager.usage_days, third_day.store.usage_days
    days.run_once()
    position, transfer = store.read_position(), {"verb": "transferred", "position": None, "at": third_day.clock.now()}
    for project in ("physics", "biology"):
        with third_day.engine.begin() as connection:
            ended = journal.update().where(journal.c.project_id == project, journal.c.verb == "ended")
            connection.execute(ended.values(**transfer))
        number(third_day)
        with mock.patch.object(store, "note_position", partial(write_late, third_day, late_at, position)):
            days.run_once()
        late_at -= 1
    days.run_once()
    assert reserved(third_day)[0] == (1, 24, 1)


def write_late(world: World, late_at: int, read_at: int, *args, **more) -> None:
    """Be a slow manager that has read what a day had at a position, and writes that while another one is at work."""
    store = world.store.usage_days
    if late_at == 1:
        store.replace_day(ClosedDay(FIRST, "UTC", read_at), (), at=world.clock.now())
    type(store).note_position(store, *args, **more)


def test_a_long_period_needs_the_record(third_day):
    with pytest.raises(
        InvalidInput, match="not on record as such, of which a report has at most 31; the record has none of the days"
    ):
        reserved(third_day, start=LocalDay(2030, 1, 1))
    third_day.manager.usage_days.recompute(FIRST, FIRST + DAY)
    with pytest.raises(
        InvalidInput, match="at most 31; the record has 2030-04-01 to 2030-04-02, and operators can add"
    ):
        reserved(third_day, start=LocalDay(2030, 1, 1))
    third_day.manager.usage_days.recompute(date(2030, 1, 1), FIRST + DAY)
    assert reserved(third_day, start=LocalDay(2030, 1, 1), step=ReportStep.ALL) == [(1, 61, 2)]


def test_the_number_of_statements_is_constant(third_day):
    def count(start: LocalDay) -> int:
        with counted(third_day.engine) as statements:
            reserved(third_day, UsageGroup.PROJECT, UsageGroup.USER, start=start)
        return statements.count

    third_day.manager.usage_days.recompute(date(2030, 3, 1), FIRST + DAY)
    assert {count(LocalDay(2030, 4, 1)), count(LocalDay(2030, 3, 1))} == {10}


def test_days_of_another_zone_are_not_read(third_day):
    third_day.manager.usage_days.run_once()
    before = reserved(third_day)
    there = replace(third_day.settings.reports, time_zone="Asia/Tokyo")
    third_day.settings = replace(third_day.settings, reports=there)
    third_day.manager = third_day.another_manager()
    assert reserved(third_day) != before
