# SPDX-License-Identifier: Apache-2.0
"""A host for a time is granted everywhere or nowhere: bookings, openings, series, changes, healing and the line.

On random small calendars, whose leases may get other hosts, keep theirs, or are bound to one; a brute force says what
is possible, and a second count checks what a refusal proves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from blazar.calendar.maintenance import PromisedPiece
from blazar.calendar.repack.values import RepackProblem, WholeNeed
from blazar.calendar.timeline import epoch
from blazar.manager.common.settings import RepackSettings, Settings
from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import Outcome
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import Change
from tests.calendar.test_repack import can_be_arranged
from tests.cases import cases
from tests.manager.booking.test_repacking import hosts
from tests.manager.health.steps import look
from tests.manager.health.test_by_moves import OPERATOR, SwapRequest
from tests.manager.maintenance.test_maintenance import asked, outcomes, shown, work
from tests.manager.search.test_moves_in_answers import ASKER, asked_window
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, a_host, a_series, of_hosts

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SPARE = "node-4"
Wanted = tuple[int, int]
"""The first hour, and how many."""


def a_calendar(engine, dice: random.Random) -> tuple[World, list[Lease]]:
    """Return a world of three hosts, and a spare one that nobody gets, with leases for some of the next 20 hours."""
    settings = Settings(
        claim_ttl=timedelta(seconds=30),
        promises=0,
        healing_interval=timedelta(days=9),
        repack=RepackSettings(notice=timedelta(0)),
    )
    world = World(engine, hosts=4, state=of_hosts({}, {}, {}, {}), settings=settings)
    switch_spare(world, disabled=True)
    made = []
    for number in range(11):
        bound = f'["==", "$hypervisor_hostname", "node-{dice.randint(1, 3)}"]' if dice.random() < 0.15 else ""
        asked_for = a_host(needs=bound) if bound else a_host(dice.choice([1, 1, 2]))
        with suppress(NotEnoughResources):
            span = {"start": dice.randint(3, 14) * HOUR, "hours": dice.randint(1, 5), "name": f"l{number}"}
            made.append(world.lease(asked_for, **span, project="chemistry"))
            if dice.random() < 0.1:
                made[-1] = world.change(made[-1], keep_hosts=True)
    return world, [world.now(lease) for lease in made]


def switch_spare(world: World, *, disabled: bool) -> None:
    id_ = next(host.external_id for host in world.manager.resources.all(HOST) if host.name == SPARE)
    world.manager.resources.change(HOST, id_, ResourceChange({}, disabled=disabled))


def on_the_spare_host(world: World, start: float, hours: float) -> Lease:
    """Return a lease of any host that has the spare one, which nobody else gets."""
    switch_spare(world, disabled=False)
    lease = world.lease(start=start * HOUR, hours=hours)
    (name,) = world.hosts_of(lease)
    if name != SPARE:
        world.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, name, SPARE), OPERATOR)
    switch_spare(world, disabled=True)
    return world.now(lease)


def begin(wanted: Wanted) -> datetime:
    return NOON + wanted[0] * HOUR


def is_booked(world: World, wanted: Wanted) -> bool:
    end = begin(wanted) + wanted[1] * HOUR
    request = LeaseRequest("x", "curie", PROJECT, begin(wanted), end, reservations=(a_host(),))
    try:
        world.manager.leases.creator.preview(request)
    except NotEnoughResources as refused:
        check_proof(world, refused, end)
        return False
    return True


def check_proof(world: World, refused: NotEnoughResources, end: datetime) -> None:
    """Count again what a refusal proves: at its instant no arrangement has room."""
    full = None if refused.proof is None else refused.proof.full
    if full is not None:
        instant = epoch(full.at)
        assert full.promised + full.asked > full.hosts
        assert full.at < end
        assert not can_be_arranged(problem_of(world, (instant, instant + 1)))


def problem_of(world: World, span: tuple[int, int]) -> RepackProblem:
    """Return what a brute force has to arrange: all leases, and one host more for a span."""
    pieces, equal = [], frozenset({1, 2, 3})
    for lease in world.store.leases.of_project(None):
        needs = str(lease.reservations[0].parameters)
        movable = not lease.keep_hosts and "hostname" not in needs
        span_of = epoch(lease.window.start), epoch(lease.window.end)
        for host in hosts(world, lease) & equal:
            pieces.append(PromisedPiece(lease.id, lease.id, host, *span_of, movable=movable, group="any"))
    return RepackProblem(span, [WholeNeed(1, equal)], pieces, {"any": equal})


def is_opening(world: World, wanted: Wanted) -> bool:
    found = asked_window(world, 1, *wanted).openings
    return bool(found) and found[0].window.start == begin(wanted)


def is_alternative(world: World, wanted: Wanted) -> bool:
    """Tell whether the time is offered to who asks for all hosts at that time, as fewer of them."""
    offered = {one.change: one for one in asked_window(world, 3, *wanted).alternatives}
    fits = bool(asked_window(world, 3, *wanted).openings)
    return Change.COUNT in offered or (fits and is_opening(world, wanted))


def is_occurrence(world: World, wanted: Wanted) -> bool:
    first = begin(wanted).replace(tzinfo=None)
    series = a_series(start=first, length=wanted[1] * HOUR, rule="FREQ=DAILY;COUNT=1", dry_run=True)
    return str(world.manager.series.create(series).occurrences[0].state) == "planned"


def is_changed_to(world: World, wanted: Wanted) -> bool:
    lease = on_the_spare_host(world, 400, 1)
    window = {"start": begin(wanted), "end": begin(wanted) + wanted[1] * HOUR}
    with suppress(NotEnoughResources):
        world.manager.leases.change(lease.id, LeaseChange(**window, asked_by=ASKER, exact=True))
        return True
    return False


def is_prolonged_to(world: World, wanted: Wanted) -> bool:
    lease = on_the_spare_host(world, wanted[0], 0.5)
    with suppress(NotEnoughResources):
        world.change(lease, end=begin(wanted) + wanted[1] * HOUR)
        return True
    return False


def is_healed(world: World, wanted: Wanted) -> bool:
    lease = on_the_spare_host(world, *wanted)
    world.simulated.operators.host_down(SPARE)
    look(world)
    return world.hosts_of(lease) != {SPARE}


def is_moved_for_maintenance(world: World, wanted: Wanted) -> bool:
    lease = on_the_spare_host(world, *wanted)
    made = world.manager.maintenances.create(asked(world, SPARE, start=HOUR, end=40 * HOUR)).maintenance
    work(world)
    return outcomes(shown(world, made))[lease.id] is Outcome.MOVED


def has_its_turn(world: World, wanted: Wanted) -> bool:
    """Tell whether it gets that time though somebody waits before it, for what has nothing to do with it."""
    world.change(world.lease(a_host(3), start=300 * HOUR, hours=9, project="biology"), keep_hosts=True)
    world.waits = True
    world.lease(a_host(3), start=301 * HOUR, hours=1, wait=20 * DAY, project="biology")
    world.clock.by(seconds=1)
    lease = world.lease(start=begin(wanted), end=begin(wanted) + wanted[1] * HOUR, wait=DAY)
    world.run()
    after = world.now(lease)
    return after.status is LeaseStatus.PENDING and after.window.start == begin(wanted)


PLACES: tuple[Callable[[World, Wanted], bool], ...] = (
    is_opening,
    is_alternative,
    is_occurrence,
    is_changed_to,
    is_prolonged_to,
    is_healed,
    is_moved_for_maintenance,
    has_its_turn,
)


def questions(dice: random.Random) -> Iterator[Wanted]:
    while True:
        yield dice.randint(3, 14), dice.randint(1, 6)


def find_questions(world: World, dice: random.Random) -> list[Wanted]:
    """Return a question that needs moves, if one is found soon, and one that is refused."""
    found: dict[bool, Wanted] = {}
    for wanted, _ in zip(questions(dice), range(25), strict=False):
        granted = is_booked(world, wanted)
        possible = can_be_arranged(problem_of(world, (epoch(begin(wanted)), epoch(begin(wanted) + wanted[1] * HOUR))))
        assert possible or not granted, wanted
        found.setdefault(granted, wanted)
        if len(found) == 2:
            break
    return list(found.values())


@pytest.mark.parametrize("seed", range(cases(60)))
@pytest.mark.parametrize("place", PLACES, ids=[place.__name__ for place in PLACES])
def test_each_place_says_what_a_booking_gets(sqlite, place, seed):
    dice = random.Random(seed)
    world, before = a_calendar(sqlite, dice)
    # What one question has moved is another calendar for the next one.
    wanted = dice.choice(find_questions(world, dice))
    expected = is_booked(world, wanted)
    counts = {lease.id: len(hosts(world, lease)) for lease in before}
    kept = {lease.id: hosts(world, lease) for lease in before if lease.keep_hosts}
    assert place(world, wanted) == expected, (wanted, expected)
    for lease in before:
        after = world.now(lease)
        assert (after.window, after.name, len(hosts(world, after))) == (lease.window, lease.name, counts[lease.id])
        assert kept.get(lease.id, hosts(world, after)) == hosts(world, after)
    check_promises(world.store, since=NOON)
