# SPDX-License-Identifier: Apache-2.0
"""What is said to be free is what a booking gets, also where leases that have not started make room for it."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta

import pytest

from blazar.calendar.repack.values import RepackMode
from blazar.model.base.clock import zulu
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.moments import Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.search.availability import Availability, AvailabilityQuestion, Change, LimitedBy
from tests.cases import cases
from tests.manager.booking.test_repacking import a_world, booked_on, hosts, in_the_way_of_a_booking, pair, prolong
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
ASKER = Actor("curie", PROJECT)


def ask(world: World, **question) -> Availability:
    return world.manager.availability.find(AvailabilityQuestion(ASKER, **question))


def asked_window(world: World, count: int, start: float, hours: float) -> Availability:
    begin = NOON + start * HOUR
    return ask(world, reservations=(a_host(count),), start=begin, end=begin + hours * HOUR)


def is_booked(world: World, count: int, start: float, hours: float) -> bool:
    begin = NOON + start * HOUR
    request = LeaseRequest("x", "curie", PROJECT, begin, begin + hours * HOUR, reservations=(a_host(count),))
    with suppress(NotEnoughResources):
        world.manager.leases.creator.preview(request)
        return True
    return False


def is_prolonged(world: World, lease: Lease, end) -> bool:
    with suppress(NotEnoughResources):
        world.manager.leases.change(lease.id, LeaseChange(end=end, asked_by=ASKER, exact=True, dry_run=True))
        return True
    return False


def test_a_window_that_others_make_free_is_an_opening_and_says_how_many(sqlite):
    world = a_world(sqlite, {}, {})
    in_the_way_of_a_booking(world)
    found = asked_window(world, 1, 4, 4)
    (opening,) = found.openings
    assert (opening.window.start, opening.last_start, opening.open_until) == (
        NOON + 4 * HOUR,
        NOON + 4 * HOUR,
        # Others are asked to leave for two weeks ahead.
        NOON + 8 * HOUR + 14 * 24 * HOUR,
    )
    assert (opening.moves_others, opening.counts, found.reasons) == (1, (1,), ())
    # What fits as it is moves nobody.
    assert asked_window(world, 1, 30, 4).openings[0].moves_others == 0


def test_nobody_makes_room_where_the_operator_says_so(sqlite):
    world = a_world(sqlite, {}, {}, mode=RepackMode.OFF)
    in_the_way_of_a_booking(world)
    found = asked_window(world, 1, 4, 4)
    assert not found.openings
    assert found.reasons


def test_an_opening_by_moves_tells_its_starts_and_how_long_it_goes_on(sqlite):
    world = a_world(sqlite, {}, {})
    in_the_way_of_a_booking(world)
    begin = NOON + 4 * HOUR
    question = {"reservations": (a_host(),), "duration": Duration(seconds=4 * 3600), "earliest": begin}
    first = ask(world, **question, latest=begin + 12 * HOUR).openings[0]
    assert (first.window.start, first.moves_others, first.open_until) == (begin, 1, None)
    assert all(is_booked(world, 1, hour, 4) for hour in range(4, 12))


def test_an_earlier_time_that_others_make_free_is_offered(sqlite):
    """Two hosts are taken from 4 to 5, one after the other of them until 12: one is free from 5 on by moves."""
    world = a_world(sqlite, {}, {})
    world.lease(a_host(2), start=4 * HOUR, hours=1)
    booked_on(world, 1, start=5, hours=3)
    booked_on(world, 2, start=8, hours=4)
    found = asked_window(world, 1, 4, 7)
    assert not found.openings
    assert found.proof is not None
    time = next(one for one in found.alternatives if one.change is Change.TIME)
    assert time.window.start == NOON + 5 * HOUR
    assert is_booked(world, 1, 5, 7)
    assert not is_booked(world, 1, 4.5, 7)
    # A refusal offers the same.
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(a_host(), start=4 * HOUR, hours=7)
    offered = next(one for one in refused.value.data["alternatives"] if one["change"] == "time")
    assert offered["start_date"] == zulu(time.window.start)


def test_as_many_as_others_make_free_are_offered_and_for_as_long(sqlite):
    world = a_world(sqlite, {}, {}, {})
    for host, start in ((1, 4), (2, 8), (3, 12)):
        booked_on(world, host, start=start, hours=4)
    offered = {one.change: one for one in asked_window(world, 3, 4, 12).alternatives}
    assert offered[Change.COUNT].counts == ({"min": 2, "max": 2},)
    assert is_booked(world, 2, 4, 12)
    assert not is_booked(world, 3, 4, 1)
    world.lease(a_host(2), start=16 * HOUR, hours=4)
    offered = {one.change: one for one in asked_window(world, 2, 4, 15).alternatives}
    assert offered[Change.DURATION].window.end == NOON + 16 * HOUR
    assert is_booked(world, 2, 4, 12)
    assert not is_booked(world, 2, 4, 13)


@pytest.mark.parametrize("seed", range(cases(4)))
def test_what_is_offered_instead_is_granted_and_nothing_more_is(sqlite, seed):
    """Brute force: the earliest opening, the most hosts and the longest time are what a booking gets."""
    dice, world = random.Random(seed), a_world(sqlite, *[{}] * 3)
    for _ in range(12):
        with suppress(NotEnoughResources):
            world.lease(a_host(dice.randint(1, 2)), start=dice.randint(3, 14) * HOUR, hours=dice.randint(1, 5))
    for _ in range(4):
        count, start, hours = dice.randint(1, 3), dice.randint(3, 12), dice.randint(1, 6)
        begin, length = NOON + start * HOUR, Duration(seconds=hours * 3600)
        free = [hour for hour in range(start, 30) if is_booked(world, count, hour, hours)]
        found = ask(world, reservations=(a_host(count),), duration=length, earliest=begin, latest=NOON + 40 * HOUR)
        assert found.openings[0].window.start == NOON + free[0] * HOUR
        for opening in found.openings:
            hour = (opening.window.start - NOON) / HOUR
            until = opening.open_until or opening.window.end
            assert is_booked(world, count, hour, hours)
            assert is_booked(world, count, hour, (until - opening.window.start) / HOUR)
            assert is_booked(world, count, (opening.last_start - NOON) / HOUR, hours)
        if free[0] == start:
            continue
        offered = {one.change: one for one in asked_window(world, count, start, hours).alternatives}
        assert offered[Change.TIME].window.start == NOON + free[0] * HOUR
        most = max((n for n in range(1, count) if is_booked(world, n, start, hours)), default=0)
        assert (Change.COUNT in offered) == bool(most)
        if most:
            assert offered[Change.COUNT].counts == ({"min": most, "max": most},)
        longest = max((n for n in range(1, hours) if is_booked(world, count, start, n)), default=0)
        assert (Change.DURATION in offered) == bool(longest)
        if longest:
            assert offered[Change.DURATION].window.end == begin + longest * HOUR


def test_a_search_goes_on_where_an_opening_is_left_out(sqlite):
    world = a_world(sqlite, {}, {})
    in_the_way_of_a_booking(world)
    begin = NOON + 4 * HOUR
    question = {"reservations": (a_host(),), "start": begin, "end": begin + 4 * HOUR, "latest": begin + 48 * HOUR}
    first = ask(world, **question, limit=1)
    assert [one.moves_others for one in first.openings] == [1]
    rest = ask(world, **question, limit=2)
    assert [one.moves_others for one in rest.openings] in ([1], [1, 0])


def test_how_far_a_lease_can_be_extended_counts_on_who_makes_room(sqlite):
    world = a_world(sqlite)
    lease, _ = pair(world)
    (host,) = hosts(world, lease)
    fixed = world.change(booked_on(world, host, start=20, hours=2), keep_hosts=True)
    extension = ask(world, lease_id=lease.id).extension
    assert (extension.open_until, extension.limited_by) == (fixed.window.start, LimitedBy.PROMISED)
    assert is_prolonged(world, lease, extension.open_until)
    assert not is_prolonged(world, lease, extension.open_until + HOUR)
    assert prolong(world, lease, 20).window.end == fixed.window.start


@pytest.mark.parametrize("seed", range(cases(4)))
def test_what_is_said_is_what_is_granted_on_any_calendar(sqlite, seed):
    """Brute force: a window is an opening exactly if it is booked, and a lease extended exactly up to the end told."""
    dice, world = random.Random(seed), a_world(sqlite, *[{}] * 3)
    used = world.lease(hours=3)
    world.run()
    for _ in range(12):
        with suppress(NotEnoughResources):
            world.lease(a_host(dice.randint(1, 2)), start=dice.randint(3, 14) * HOUR, hours=dice.randint(1, 5))
    for _ in range(8):
        asked = dice.randint(1, 3), dice.randint(3, 14), dice.randint(1, 6)
        begin = NOON + asked[1] * HOUR
        openings = asked_window(world, *asked).openings
        fits = bool(openings) and openings[0].window.start == begin
        assert fits == is_booked(world, *asked), asked
    extension = ask(world, lease_id=used.id, latest=NOON + 30 * HOUR).extension
    if extension.open_until > used.window.end:
        assert is_prolonged(world, used, extension.open_until)
    if extension.limited_by is LimitedBy.PROMISED:
        assert not is_prolonged(world, used, extension.open_until + HOUR)
