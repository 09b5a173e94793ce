# SPDX-License-Identifier: Apache-2.0
"""Changes of series: of one occurrence, of the following ones, and of all."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from blazar.manager.common.notifications import UPDATED
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit, SeriesLimits
from blazar.model.series.details import SeriesDetails, SeriesStatus
from blazar.model.series.rule_text import parse_rule, rule_text
from tests.manager.booking.test_commitments import Strict
from tests.manager.events.test_between_writes import Between
from tests.manager.events.test_crashes import nothing_is_left
from tests.observed import Killed
from tests.statements import counted
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, a_series, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FIRST = datetime(2030, 4, 2, 8)
MORNING = FIRST.replace(tzinfo=UTC)


def change(world: World, found: SeriesDetails, **changes) -> SeriesDetails:
    return world.manager.series.change(found.series.id, SeriesChange(**changes))


def leases(world: World, found: SeriesDetails) -> list[Lease]:
    every = world.manager.series.one(found.series.id).occurrences
    return [world.now_of(each.lease_id) for each in every if each.lease_id is not None]


def states(world: World, found: SeriesDetails) -> dict[str, int]:
    return Counter(str(each.state) for each in world.manager.series.one(found.series.id).occurrences)


def live(world: World) -> list[Lease]:
    return sorted(world.store.leases.of_project("physics"), key=lambda lease: lease.window.start)


def promised(world: World) -> list:
    return [(a.lease_id, a.window) for lease in live(world) for a in world.store.calendar.of_lease(lease.id)]


def nothing_is_promised_twice(world: World) -> None:
    held = [a for lease in world.store.leases.of_project(None) for a in world.store.calendar.of_lease(lease.id)]
    for number, one in enumerate(held):
        for other in held[number + 1 :]:
            assert one.resource_id != other.resource_id or not one.window.overlaps(other.window)


@pytest.mark.slow
def test_all_get_another_length_and_stay_the_same_leases(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    before = leases(world, made)
    changed = change(world, made, length=6 * HOUR, name="longer")
    assert (changed.series.id, changed.series.name, changed.series.previous_id) == (made.series.id, "longer", None)
    after = leases(world, changed)
    assert [lease.id for lease in after] == [lease.id for lease in before]
    assert {lease.window.duration for lease in after} == {6 * HOUR}
    assert {lease.name for lease in after} == {"longer"}
    assert {lease.status for lease in after} == {LeaseStatus.PENDING}
    for lease in after:
        assert lease.event(EventType.END).due_at == lease.window.end
        assert lease.event(EventType.BEFORE_END).time == lease.window.end - HOUR
        (allocation,) = world.store.calendar.of_lease(lease.id)
        assert allocation.window == lease.window
    assert world.notifier.types.count(UPDATED) == 5
    world.run_to(NOON + 7 * DAY)
    assert {world.now(lease).status for lease in after} == {LeaseStatus.TERMINATED}
    assert states(world, changed) == {"over": 5}


def test_the_following_become_another_series_and_those_before_stay_byte_for_byte(engine):
    world = World(engine)
    made = world.manager.series.create(a_series(excluded=frozenset({FIRST + DAY}), rule="FREQ=DAILY;COUNT=6"))
    before = leases(world, made)
    rest = change(world, made, since=FIRST + 3 * DAY, start=FIRST + 3 * DAY + HOUR)
    assert rest.series.id != made.series.id
    assert rest.series.previous_id == made.series.id
    assert rule_text(rest.series.recurrence.rule) == "FREQ=DAILY;COUNT=3"
    old = world.manager.series.one(made.series.id)
    assert rule_text(old.series.recurrence.rule) == "FREQ=DAILY;UNTIL=20300405T075959"
    assert leases(world, old) == before[:2]
    after = leases(world, rest)
    assert [lease.id for lease in after] == [lease.id for lease in before[2:]]
    assert [lease.window.start for lease in after] == [lease.window.start + HOUR for lease in before[2:]]
    assert {lease.series.series_id for lease in after} == {rest.series.id}
    assert [each.recurrence_id for each in rest.occurrences] == [FIRST + n * DAY + HOUR for n in (3, 4, 5)]
    world.run_to(NOON + 8 * DAY)
    assert {world.manager.series.one(each.series.id).series.status for each in (old, rest)} == {SeriesStatus.ENDED}


def test_what_has_begun_or_was_changed_by_itself_or_cancelled_stays(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    world.run_to(MORNING + HOUR)
    own = leases(world, made)
    world.change(own[2], end=own[2].window.end + HOUR)
    world.manager.leases.delete(own[3].id)
    kept = [world.now(lease) for lease in own[:3]]
    rest = change(world, made, length=2 * HOUR)
    assert rest.series.previous_id == made.series.id
    assert [str(each.state) for each in rest.occurrences] == ["booked", "booked", "cancelled", "booked"]
    assert [each.changed for each in rest.occurrences] == [False, True, False, False]
    assert world.now(own[0]) == kept[0]
    assert world.now(own[2]).window == kept[2].window
    # It shows another series, and so it is another revision.
    assert world.now(own[2]).series.series_id == rest.series.id
    assert world.now(own[2]).revision > kept[2].revision
    assert [world.now(own[n]).window.duration for n in (1, 4)] == [2 * HOUR] * 2
    again = change(world, rest, length=3 * HOUR, with_changed=True)
    assert [each.changed for each in again.occurrences] == [False] * 4
    assert [world.now(own[n]).window.duration for n in (1, 2, 4)] == [3 * HOUR] * 3
    nothing_is_promised_twice(world)


def test_dates_that_are_left_out_or_added_stay_when_the_rule_or_the_time_of_day_changes(world):
    out, more, own = FIRST + DAY, FIRST + 10 * DAY, FIRST + 11 * DAY + HOUR
    when = a_series(excluded=frozenset({out}), added=frozenset({more, own}), rule="FREQ=DAILY;COUNT=4")
    made = world.manager.series.create(when)
    booked = leases(world, made)
    longer = change(world, made, rule=parse_rule("FREQ=DAILY;COUNT=5"))
    assert [each.recurrence_id for each in longer.occurrences] == [FIRST + n * DAY for n in (0, 2, 3, 4, 10)] + [own]
    assert {lease.id for lease in booked} < {lease.id for lease in leases(world, longer)}
    later = change(world, longer, start=FIRST + 2 * HOUR)
    days = [FIRST + n * DAY + 2 * HOUR for n in (0, 2, 3, 4, 10)]
    assert [each.recurrence_id for each in later.occurrences] == [*days, own]
    assert (later.series.recurrence.excluded, later.series.recurrence.added) == ({out + 2 * HOUR}, {days[-1], own})
    shorter = change(world, later, rule=parse_rule("FREQ=DAILY;INTERVAL=10;COUNT=2"))
    assert [each.recurrence_id for each in shorter.occurrences] == [days[0], days[-1], own]
    assert (shorter.series.recurrence.excluded, shorter.series.recurrence.added) == (set(), {own})
    nothing_is_promised_twice(world)


def test_what_was_cancelled_or_changed_by_itself_stays_at_another_time_of_day_too(engine):
    """Its day has nothing else: neither is what was deleted booked again, nor has a day two leases."""
    world = World(engine)
    made = world.manager.series.create(a_series())
    own = leases(world, made)
    world.manager.leases.delete(own[1].id)
    world.change(own[2], end=own[2].window.end + HOUR)
    kept = world.now(own[2]).window
    changed = change(world, made, start=FIRST + HOUR)
    world.run()
    assert [(each.recurrence_id, str(each.state)) for each in changed.occurrences] == [
        (FIRST + HOUR, "booked"),
        (FIRST + DAY, "cancelled"),
        (FIRST + 2 * DAY, "booked"),
        (FIRST + 3 * DAY + HOUR, "booked"),
        (FIRST + 4 * DAY + HOUR, "booked"),
    ]
    assert [lease.id for lease in live(world)] == [own[n].id for n in (0, 2, 3, 4)]
    assert world.now(own[2]).window == kept
    nothing_is_promised_twice(world)


def test_all_are_changed_again_although_the_first_to_come_stayed_at_its_old_time(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series())
    own = leases(world, made)
    world.manager.leases.delete(own[0].id)
    moved = change(world, made, start=FIRST + HOUR)
    again = change(world, moved, length=3 * HOUR)
    world.run()
    assert again.series.id == made.series.id
    assert [lease.id for lease in live(world)] == [lease.id for lease in own[1:]]
    assert {lease.window.start.hour for lease in live(world)} == {9}
    assert {lease.window.duration for lease in live(world)} == {3 * HOUR}
    assert again.series.recurrence.rule.count == 5


def test_an_added_date_that_stays_takes_nothing_from_the_rule_on_its_day(sqlite):
    world = World(sqlite)
    later = FIRST + DAY + 6 * HOUR
    made = world.manager.series.create(a_series(added=frozenset({later})))
    (extra,) = (each for each in made.occurrences if each.recurrence_id == later)
    world.change(world.now_of(extra.lease_id), end=extra.end + HOUR)
    changed = change(world, made, added=frozenset())
    assert states(world, changed) == {"booked": 6}
    assert [lease.id for lease in live(world)] == [each.lease_id for each in made.occurrences]
    rest = change(world, changed, since=later, length=2 * HOUR)
    assert [each.recurrence_id for each in rest.occurrences] == [later, *(FIRST + n * DAY for n in (2, 3, 4))]
    assert rest.series.recurrence.rule.count == 3
    assert [lease.id for lease in live(world)] == [each.lease_id for each in made.occurrences]


def test_another_rule_moves_deletes_and_books_leases(engine):
    world = World(engine)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=4"))
    before = leases(world, made)
    changed = change(world, made, rule=parse_rule("FREQ=DAILY;INTERVAL=2;COUNT=4"))
    world.run()
    after = leases(world, changed)
    assert [lease.id for lease in after[:2]] == [before[0].id, before[2].id]
    assert [lease.window.start for lease in after] == [MORNING + n * DAY for n in (0, 2, 4, 6)]
    assert {lease.status for lease in after} == {LeaseStatus.PENDING}
    assert [lease.id for lease in live(world)] == [lease.id for lease in after]
    assert states(world, changed) == {"booked": 4}


@pytest.mark.parametrize("rule", ["FREQ=WEEKLY;COUNT=3", "FREQ=WEEKLY"])
def test_all_that_is_to_come_changes_also_if_an_additional_date_comes_first(engine, rule):
    world = World(engine)
    more = frozenset({FIRST + 2 * DAY, FIRST + 3 * DAY})
    made = world.manager.series.create(a_series(rule=rule, added=more, fit=Fit.AS_MANY))
    world.run_to(MORNING + DAY)
    changed = change(world, made, length=6 * HOUR)
    assert changed.series.previous_id == made.series.id
    found = [lease.window for lease in leases(world, changed)][:4]
    assert [(w.start - MORNING, w.duration) for w in found] == [(n * DAY, 6 * HOUR) for n in (2, 3, 7, 14)]
    again = change(world, changed, length=5 * HOUR)
    assert [lease.window.duration for lease in leases(world, again)][:4] == [5 * HOUR] * 4
    with pytest.raises(InvalidInput, match="is an additional date"):
        change(world, again, since=FIRST + 3 * DAY, length=4 * HOUR)


def test_two_series_out_of_one_count_as_two_while_both_go_on(engine):
    world = World(engine, settings=Settings(claim_ttl=timedelta(seconds=30), promises=0, max_series=1))
    made = world.manager.series.create(a_series())
    with pytest.raises(UsageDenied, match="has 1 series that have not ended; the limit is 1"):
        change(world, made, since=FIRST + 2 * DAY, length=6 * HOUR)
    assert states(world, made) == {"booked": 5}
    # What is over does not count.
    world.run_to(MORNING + DAY + 23 * HOUR)
    changed = change(world, made, length=6 * HOUR)
    assert states(world, changed) == {"booked": 3}


def test_own_resources_count_as_free(engine):
    """All hosts are taken by the series itself: moved by an hour, each occurrence overlaps what it had."""
    world = World(engine)
    made = world.manager.series.create(a_series(a_host(3)))
    changed = change(world, made, start=FIRST + HOUR)
    assert states(world, changed) == {"booked": 5}
    assert {len(world.hosts_of(lease)) for lease in leases(world, changed)} == {3}
    nothing_is_promised_twice(world)


def test_a_change_that_does_not_fit_changes_nothing(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    start = MORNING + 2 * DAY + 5 * HOUR
    world.lease(a_host(3), start=start - NOON, end=start + HOUR, project="biology")
    before, held = leases(world, made), promised(world)
    with pytest.raises(NotEnoughResources, match="the occurrence of 2030-04-04 08:00"):
        change(world, made, length=6 * HOUR)
    assert (leases(world, made), promised(world)) == (before, held)
    found = world.manager.series.one(made.series.id)
    assert found.series.recurrence == made.series.recurrence
    dry = change(world, made, length=6 * HOUR, dry_run=True)
    assert Counter(str(each.state) for each in dry.occurrences) == {"planned": 4, "unfit": 1}
    assert (leases(world, made), promised(world)) == (before, held)
    many = change(world, made, length=6 * HOUR, fit=Fit.AS_MANY)
    assert states(world, many) == {"booked": 4, "unfit": 1}
    world.run()
    assert len(live(world)) == 4


def test_other_reservations_make_other_leases(engine):
    world = World(engine)
    made = world.manager.series.create(a_series(instances(1)))
    before = leases(world, made)
    changed = change(world, made, reservations=(instances(3), a_host()), asked_by=Actor("curie", "physics"))
    world.run()
    after = leases(world, changed)
    assert {lease.id for lease in after}.isdisjoint(lease.id for lease in before)
    assert {len(lease.reservations) for lease in after} == {2}
    assert {lease.status for lease in after} == {LeaseStatus.PENDING}
    assert [lease.id for lease in live(world)] == [lease.id for lease in after]
    world.manager.series.delete(changed.series.id)
    world.run()
    nothing_is_left(world)


def test_the_warning_before_the_end_can_be_changed(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series())
    asked = Duration(seconds=600, backward=True)
    changed = change(world, made, before_end=asked, sets_before_end=True)
    times = [(lease.window.end - lease.event(EventType.BEFORE_END).time) for lease in leases(world, changed)]
    assert times == [timedelta(minutes=10)] * 5
    changed = change(world, changed, sets_before_end=True)
    times = [(lease.window.end - lease.event(EventType.BEFORE_END).time) for lease in leases(world, changed)]
    assert times == [HOUR] * 5


@pytest.mark.slow
def test_a_series_without_an_end_can_be_given_one(sqlite):
    limits = SeriesLimits(horizon=timedelta(days=9))
    world = World(sqlite, settings=Settings(series=limits))
    made = world.manager.series.create(a_series(rule="FREQ=DAILY", fit=Fit.AS_MANY))
    assert states(world, made) == {"booked": 9}
    rest = change(world, made, since=FIRST + 3 * DAY, rule=parse_rule("FREQ=DAILY;COUNT=2"))
    world.run()
    assert [lease.window.start for lease in live(world)] == [MORNING + n * DAY for n in range(5)]
    for day in range(1, 4):
        world.run_to(NOON + day * DAY)
    assert (states(world, made), states(world, rest)) == ({"over": 3}, {"booked": 2})


def test_limits_count_what_the_series_has_once(sqlite):
    world = World(sqlite, settings=Settings(bounds=Bounds(leases=5)))
    made = world.manager.series.create(a_series())
    assert states(world, change(world, made, length=HOUR)) == {"booked": 5}
    with pytest.raises(UsageDenied, match="leases_per_project"):
        change(world, made, rule=parse_rule("FREQ=DAILY;COUNT=6"))
    assert len(live(world)) == 5


def test_changes_that_cannot_be_are_refused(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series())
    with pytest.raises(InvalidInput, match="no occurrence of the series"):
        change(world, made, since=FIRST + HOUR, name="x")
    with pytest.raises(InvalidInput, match="not after 2030-04-03 08:00, the occurrence before"):
        change(world, made, since=FIRST + 2 * DAY, start=FIRST + DAY)
    with pytest.raises(NotFound):
        world.manager.series.change("nothing", SeriesChange(name="x"))
    world.run_to(MORNING + HOUR)
    with pytest.raises(InvalidInput, match="has begun"):
        change(world, made, since=FIRST, name="x")
    world.manager.series.delete(made.series.id)
    with pytest.raises(Conflict, match="DELETED"):
        change(world, made, name="x")


def test_where_a_service_must_hear_of_each_change_a_series_is_not_changed(sqlite):
    world = World(sqlite, filters=[Strict()])
    made = world.manager.series.create(a_series())
    with pytest.raises(Conflict, match="one by one"):
        change(world, made, name="x")


@pytest.mark.slow
def test_the_statements_of_a_change_do_not_grow_with_occurrences(sqlite):
    world = World(sqlite, hosts=9)

    def cost(count: int) -> int:
        made = world.manager.series.create(a_series(rule=f"FREQ=DAILY;COUNT={count}"))
        world.run()
        with counted(sqlite) as statements:
            change(world, made, length=HOUR)
        return statements.count

    cost(2)
    assert cost(3) == cost(40) == cost(170)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_that_dies_while_it_changes_a_series_has_changed_all_or_nothing(tmp_path, phase):
    outcomes = []
    for step in range(1, 60):
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"))
        made = world.manager.series.create(a_series(instances(1)))

        def die() -> None:
            raise Killed

        store = Between(world.store, step, phase, die)
        wanted = SeriesChange(since=FIRST + DAY, rule=parse_rule("FREQ=DAILY;INTERVAL=2;COUNT=3"))
        with suppress(Killed):
            world.another_manager(store=store).series.change(made.series.id, wanted)
        world.clock.to(world.clock.now() + timedelta(seconds=45))
        world.run()
        starts = [lease.window.start for lease in live(world)]
        whole = [MORNING + n * DAY for n in (0, 1, 3, 5)]
        assert starts in (whole, [MORNING + n * DAY for n in range(5)]), step
        assert {lease.status for lease in live(world)} == {LeaseStatus.PENDING}
        nothing_is_promised_twice(world)
        outcomes.append(starts == whole)
        if not store.reached:
            break
    first = outcomes.index(True)
    assert outcomes == [False] * first + [True] * (len(outcomes) - first)
    assert len(outcomes) > 8


def test_a_lease_that_changes_meanwhile_is_not_overwritten(sqlite):
    """Somebody prolongs one by itself, between the plan of the change and its write."""
    world = World(sqlite)
    made = world.manager.series.create(a_series())
    third = leases(world, made)[2]

    def prolong() -> None:
        world.change(third, end=third.window.end + HOUR)

    class Meanwhile(Between):
        def _call(self, name, operation, *args, **more):
            if name == "series.exchange" and not self.reached:
                self.reached = True
                prolong()
            return operation(*args, **more)

    store = Meanwhile(world.store, 1, "before", prolong)
    world.another_manager(store=store).series.change(made.series.id, SeriesChange(length=2 * HOUR))
    durations = [lease.window.duration for lease in leases(world, made)]
    assert durations == [2 * HOUR, 2 * HOUR, 5 * HOUR, 2 * HOUR, 2 * HOUR]
    nothing_is_promised_twice(world)
