# SPDX-License-Identifier: Apache-2.0
"""Each occurrence of a series gets what a lease of its own would: also hosts that others can leave."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.repack.values import RepackMode
from blazar.manager.series import moved_occurrences
from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.series.checks import Fit
from tests.manager.booking.test_repacking import a_world, hosts, told
from tests.manager.health.test_by_moves import booked_on
from tests.manager.series.test_changes import change
from tests.manager.series.test_series import leases, states
from tests.promises import check_promises
from tests.world import NOON, World, a_host, a_series

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def halves(world: World, *days: int, counted_from: int = 20) -> list[Lease]:
    """On each of these days one of two hosts is promised from 8 to 10, and the other one from 10 to 12."""
    found = []
    for day in days:
        eight = counted_from + 24 * day
        found += [booked_on(world, 1, start=eight, hours=2), booked_on(world, 2, start=eight + 2, hours=2)]
    return [world.now(lease) for lease in found]


def check_made_room(world: World, before: list[Lease], number: int) -> None:
    after = [world.now(lease) for lease in before]
    moved = [one.id for one, was in zip(after, before, strict=True) if one.revision > was.revision]
    assert len(moved) == number
    assert [replace(one, revision=0) for one in after] == [replace(was, revision=0) for was in before]
    assert [told(world, lease) for lease in before] == [int(lease.id in moved) for lease in before]
    check_promises(world.store, since=NOON)


def test_all_occurrences_fit_where_others_can_leave(engine):
    world = a_world(engine, {}, {})
    pending = halves(world, 1, 3)
    planned = world.manager.series.create(a_series(dry_run=True))
    assert {str(each.state) for each in planned.occurrences} == {"planned"}
    check_made_room(world, pending, 0)
    made = world.manager.series.create(a_series())
    assert states(world, made) == {"booked": 5}
    check_made_room(world, pending, 2)
    world.run_to(NOON + 7 * DAY)
    assert {world.now(lease).status for lease in (*pending, *leases(world, made))} == {LeaseStatus.TERMINATED}


def test_one_lease_makes_room_for_two_occurrences(sqlite):
    """It goes on from one to the other: once for both, or not at all."""
    world = a_world(sqlite, {}, {}, {})
    long = booked_on(world, 1, start=20, hours=52)
    pending = [long, *halves_besides(world, 0), *halves_besides(world, 1)]
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=2"))
    assert states(world, made) == {"booked": 2}
    check_promises(world.store, since=NOON)
    assert all(told(world, lease) <= 1 for lease in pending)


def halves_besides(world: World, day: int) -> list[Lease]:
    eight = 20 + 24 * day
    return [booked_on(world, 2, start=eight, hours=2), booked_on(world, 3, start=eight + 2, hours=2)]


def test_a_series_that_is_full_on_a_day_moves_nobody(sqlite):
    world = a_world(sqlite, {}, {})
    pending = [*halves(world, 1), world.now(world.lease(a_host(2), start=68 * HOUR, hours=1, project="chemistry"))]
    with pytest.raises(NotEnoughResources, match="the occurrence of 2030-04-04 08:00"):
        world.manager.series.create(a_series())
    check_made_room(world, pending, 0)
    made = world.manager.series.create(a_series(fit=Fit.AS_MANY))
    assert states(world, made) == {"booked": 4, "unfit": 1}
    check_made_room(world, pending, 1)


@pytest.mark.parametrize("mode", [RepackMode.OFF, RepackMode.EQUAL])
def test_nobody_is_moved_where_the_operator_says_so_or_somebody_waits(sqlite, mode):
    world = a_world(sqlite, {}, {}, mode=mode)
    pending = halves(world, 1)
    if mode is not RepackMode.OFF:
        world.waits = True
        world.lease(a_host(2), start=44 * HOUR, hours=1, wait=9 * DAY, project="biology")
    made = world.manager.series.create(a_series(fit=Fit.AS_MANY))
    assert states(world, made)["unfit"] >= 1
    check_made_room(world, pending, 0)


def test_a_series_that_is_changed_gets_what_others_can_leave(sqlite):
    world = a_world(sqlite, {}, {})
    made = world.manager.series.create(a_series(length=HOUR, rule="FREQ=DAILY;COUNT=3"))
    pending = []
    for lease in leases(world, made):
        (host,) = hosts(world, lease)
        eight = round((lease.window.start - NOON) / HOUR)
        pending += [
            booked_on(world, 3 - host, start=eight, hours=2),
            booked_on(world, host, start=eight + 2, hours=2),
        ]
    changed = change(world, made, length=4 * HOUR)
    assert [lease.window.duration for lease in leases(world, changed)] == [4 * HOUR] * 3
    check_made_room(world, pending, 3)


def test_a_moved_occurrence_of_another_series_stays_the_one_that_it_is(sqlite):
    world = a_world(sqlite, {}, {})
    other = world.manager.series.create(a_series(length=2 * HOUR, project="chemistry"))
    before = leases(world, other)
    for lease in before:
        (host,) = hosts(world, lease)
        booked_on(world, 3 - host, start=round((lease.window.end - NOON) / HOUR), hours=2)
    made = world.manager.series.create(a_series())
    assert states(world, made) == states(world, other) == {"booked": 5}
    assert {lease.id for lease in leases(world, other)} == {lease.id for lease in before}
    assert not any(each.changed for each in world.manager.series.one(other.series.id).occurrences)
    check_promises(world.store, since=NOON)


def test_no_more_is_searched_for_once_the_time_is_spent(sqlite, monkeypatch):
    monkeypatch.setattr(moved_occurrences, "LONGEST_SEARCHES", -1.0)
    world = a_world(sqlite, {}, {})
    pending = halves(world, 1)
    assert states(world, world.manager.series.create(a_series(fit=Fit.AS_MANY))) == {"booked": 4, "unfit": 1}
    check_made_room(world, pending, 0)
