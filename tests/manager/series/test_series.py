# SPDX-License-Identifier: Apache-2.0
"""Series of leases, from the request to the last occurrence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from blazar.manager.common.notifications import CREATED
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.base.paging import Page
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.series.checks import Fit, SeriesLimits
from blazar.model.series.details import OccurrenceState, SeriesDetails, SeriesQuestion, SeriesStatus
from blazar.model.series.recurrence import LocalEnd
from tests.manager.enforcement.recording import RecordingFilter
from tests.observed import ObservedStore, before
from tests.statements import counted
from tests.world import NOON, World, a_host, a_series, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FIRST = datetime(2030, 4, 2, 8)
MORNING = FIRST.replace(tzinfo=UTC)


def states(world: World, found: SeriesDetails) -> dict[str, int]:
    return Counter(str(each.state) for each in world.manager.series.one(found.series.id).occurrences)


def status(world: World, found: SeriesDetails) -> SeriesStatus:
    return world.manager.series.one(found.series.id).series.status


def leases(world: World, found: SeriesDetails) -> list[Lease]:
    every = world.manager.series.one(found.series.id).occurrences
    return [world.now_of(each.lease_id) for each in every if each.lease_id is not None]


def full_on(world: World, *days: int, project="biology") -> None:
    """Let somebody else have all hosts on these days, counted from the first occurrence on."""
    for day in days:
        start = MORNING + day * DAY - NOON
        world.lease(a_host(3), start=start, end=MORNING + day * DAY + 2 * HOUR, project=project)


def test_each_occurrence_is_a_lease(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    assert made.series.status is SeriesStatus.ACTIVE
    assert states(world, made) == {"booked": 5}
    booked = leases(world, made)
    assert [lease.window.start for lease in booked] == [MORNING + n * DAY for n in range(5)]
    assert {lease.status for lease in booked} == {LeaseStatus.PENDING}
    assert [lease.series.recurrence_id for lease in booked] == [FIRST + n * DAY for n in range(5)]
    assert all(world.hosts_of(lease) for lease in booked)
    assert world.notifier.types == [CREATED] * 5
    world.run_to(NOON + DAY - 3 * HOUR)
    assert world.now(booked[0]).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 6 * DAY)
    assert {world.now(lease).status for lease in booked} == {LeaseStatus.TERMINATED}
    assert (status(world, made), states(world, made)) == (SeriesStatus.ENDED, {"over": 5})


def test_a_series_that_does_not_fit_as_a_whole_leaves_nothing_and_says_why(engine):
    world = World(engine)
    full_on(world, 1, 3)
    with pytest.raises(NotEnoughResources, match="the occurrence of 2030-04-03 08:00.* 1 more") as refused:
        world.manager.series.create(a_series())
    first, second = refused.value.data["occurrences"]
    assert first["recurrence_id"] == "2030-04-03T08:00:00"
    assert first["opening"] == {"start_date": "2030-04-03T10:00:00Z", "end_date": "2030-04-03T14:00:00Z"}
    assert second["recurrence_id"] == "2030-04-05T08:00:00"
    assert len(world.store.leases.of_project(None)) == 2
    assert world.manager.series.page(SeriesQuestion(Page(9, "created_at"))).items == ()


def test_as_many_as_fit_are_booked_and_the_others_have_a_reason_and_an_opening(engine):
    world = World(engine)
    full_on(world, 1)
    made = world.manager.series.create(a_series(fit=Fit.AS_MANY))
    assert (made.series.status, states(world, made)) == (SeriesStatus.ACTIVE, {"booked": 4, "unfit": 1})
    (unfit,) = [each for each in made.occurrences if each.state is OccurrenceState.UNFIT]
    assert (unfit.lease_id, "host" in unfit.reason) == (None, True)
    assert unfit.opening.start == MORNING + DAY + 2 * HOUR


def test_a_dry_run_lists_everything_and_books_nothing(sqlite):
    world = World(sqlite)
    full_on(world, 1)
    found = world.manager.series.create(a_series(dry_run=True))
    assert [str(each.state) for each in found.occurrences] == ["planned", "unfit", "planned", "planned", "planned"]
    assert found.occurrences[1].opening.start == MORNING + DAY + 2 * HOUR
    assert len(world.store.leases.of_project(None)) == 1
    with pytest.raises(NotFound):
        world.manager.series.one(found.series.id)


def test_nothing_is_recorded_of_a_series_of_which_nothing_fits(sqlite):
    world = World(sqlite)
    with pytest.raises(NotEnoughResources, match="4 more do not"):
        world.manager.series.create(a_series(a_host(4), fit=Fit.AS_MANY))
    assert world.manager.series.page(SeriesQuestion(Page(9, "created_at"))).items == ()


def test_an_occurrence_that_has_passed_is_unfit(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(start=datetime(2030, 3, 31, 8), fit=Fit.AS_MANY))
    assert states(world, made) == {"unfit": 2, "booked": 3}
    assert "has passed" in made.occurrences[0].reason
    with pytest.raises(InvalidInput, match="begun already"):
        world.manager.series.create(a_series(start=datetime(2030, 3, 1, 8), fit=Fit.AS_MANY))


@pytest.mark.slow
def test_many_occurrences_are_booked_in_the_background(engine):
    world = World(engine)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=120"))
    assert (made.series.status, states(world, made)) == (SeriesStatus.CREATING, {"planned": 120})
    assert leases(world, made) == []
    assert world.manager.series_work.run_once() == 1
    assert (status(world, made), states(world, made)) == (SeriesStatus.ACTIVE, {"booked": 120})
    assert {lease.status for lease in leases(world, made)} == {LeaseStatus.PENDING}


@pytest.mark.slow
def test_statements_grow_with_chunks_of_occurrences_only(sqlite):
    def cost(world: World, count: int) -> tuple[int, int]:
        with counted(sqlite) as asked:
            made = world.manager.series.create(a_series(rule=f"FREQ=DAILY;COUNT={count}", length=HOUR))
        with counted(sqlite) as worked:
            world.manager.series_work.run_once()
        assert status(world, made) is SeriesStatus.ACTIVE
        return asked.count, worked.count

    world = World(sqlite, hosts=9)
    # The clouds of hosts need nothing before the start of a lease; what a chunk costs is the same for any of them.
    cost(world, 2)
    (few, _), (more, _) = cost(world, 3), cost(world, 50)
    assert few == more
    (asked, two), (asked_again, three) = cost(world, 100), cost(world, 150)
    (_, four) = cost(world, 180)
    assert asked == asked_again
    assert four - three == three - two <= 16


def test_a_series_follows_the_clocks_of_its_zone(sqlite):
    """On 31 March 2030 the clocks of Paris go forward, on 27 October back."""
    world = World(sqlite)
    world.clock.to(datetime(2030, 10, 20, tzinfo=UTC))
    nights = {"start": datetime(2030, 10, 25, 22), "zone": "Europe/Paris", "rule": "FREQ=DAILY;COUNT=4"}
    by_clock = world.manager.series.create(a_series(**nights, length=LocalEnd(time(6), 1)))
    spans = [(lease.window.start.hour, lease.window.duration) for lease in leases(world, by_clock)]
    assert spans == [(20, 8 * HOUR), (20, 9 * HOUR), (21, 8 * HOUR), (21, 8 * HOUR)]
    elapsed = world.manager.series.create(a_series(**nights, length=8 * HOUR))
    assert {lease.window.duration for lease in leases(world, elapsed)} == {8 * HOUR}


def test_an_occurrence_that_the_clocks_skip_is_moved(sqlite):
    world = World(sqlite)
    world.clock.to(datetime(2031, 3, 20, tzinfo=UTC))
    made = world.manager.series.create(
        a_series(start=datetime(2031, 3, 29, 2, 30), zone="Europe/Paris", rule="FREQ=DAILY;COUNT=3", length=HOUR)
    )
    starts = [lease.window.start for lease in leases(world, made)]
    assert [(at.day, at.hour, at.minute) for at in starts] == [(29, 1, 30), (30, 1, 30), (31, 0, 30)]
    assert made.occurrences[1].recurrence_id == datetime(2031, 3, 30, 2, 30)


def test_each_lease_warns_before_its_own_end(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(before_end=Duration(seconds=1800, backward=True)))
    for lease in leases(world, made):
        assert lease.event(EventType.BEFORE_END).time == lease.window.end - HOUR / 2


def test_what_leases_need_before_their_start_is_made(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(instances(2), instances(1)))
    with world.simulated.inspect() as state:
        names = {flavor.name for flavor in state.flavors.values()}
    assert {f"reservation:{r.id}" for lease in leases(world, made) for r in lease.reservations} <= names
    assert all(lease.reservations[0].cloud_ids.values for lease in leases(world, made))


def test_deleting_a_lease_cancels_its_occurrence(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    world.manager.leases.delete(made.occurrences[2].lease_id)
    assert [str(each.state) for each in world.manager.series.one(made.series.id).occurrences] == [
        "booked",
        "booked",
        "cancelled",
        "booked",
        "booked",
    ]


@pytest.mark.parametrize("change", [{"name": "exam"}, {"end": MORNING + DAY + 6 * HOUR}], ids=["name", "end"])
def test_a_lease_that_is_changed_by_itself_is_marked_and_the_others_stay(engine, change):
    world = World(engine)
    made = world.manager.series.create(a_series())
    before = leases(world, made)
    world.change(before[1], **change)
    found = world.manager.series.one(made.series.id)
    assert [each.changed for each in found.occurrences] == [False, True, False, False, False]
    assert found.occurrences[1].recurrence_id == FIRST + DAY
    assert [lease for number, lease in enumerate(leases(world, made)) if number != 1] == [before[0], *before[2:]]


@pytest.mark.slow
def test_deleting_a_series_deletes_what_has_not_begun_and_by_choice_the_rest(engine):
    world = World(engine)
    first, other = (world.manager.series.create(a_series()) for _ in range(2))
    world.run_to(MORNING + DAY + HOUR)
    world.manager.series.delete(first.series.id)
    world.manager.series.delete(other.series.id, ends_running=True)
    world.run()
    assert (status(world, first), states(world, first)) == (
        SeriesStatus.DELETED,
        {"over": 1, "booked": 1, "cancelled": 3},
    )
    assert states(world, other) == {"over": 1, "cancelled": 4}
    assert leases(world, first)[1].status is LeaseStatus.ACTIVE
    world.manager.series.delete(first.series.id)
    assert world.manager.series.page(SeriesQuestion(Page(9, "created_at"))).items == ()
    assert len(world.lease(a_host(2), start=3 * DAY).reservations) == 1


def test_what_a_deleted_series_has_left_running_can_be_ended_later(engine):
    world = World(engine)
    made = world.manager.series.create(a_series())
    world.run_to(MORNING + HOUR)
    world.manager.series.delete(made.series.id)
    assert leases(world, made)[0].status is LeaseStatus.ACTIVE
    for _ in range(2):
        world.manager.series.delete(made.series.id, ends_running=True)
        world.run()
        assert (status(world, made), states(world, made)) == (SeriesStatus.DELETED, {"cancelled": 5})


@pytest.mark.slow
def test_deleting_a_long_series_goes_on_in_the_background(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=60"))
    world.run()
    world.manager.series.delete(made.series.id)
    assert status(world, made) is SeriesStatus.DELETING
    world.run()
    assert (status(world, made), states(world, made)) == (SeriesStatus.DELETED, {"cancelled": 60})


@pytest.mark.slow
def test_two_may_delete_a_long_series_at_the_same_moment(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=60"))
    world.run()
    delete = world.manager.series.delete
    store = ObservedStore(world.store, before("series_work.release", lambda: delete(made.series.id)))
    world.another_manager(store=store).series.delete(made.series.id)
    world.run_to(world.clock.now() + timedelta(minutes=1))
    assert (status(world, made), states(world, made)) == (SeriesStatus.DELETED, {"cancelled": 60})


def test_a_series_that_is_deleted_while_it_is_booked_leaves_nothing(sqlite):
    world = World(sqlite)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=120"))
    world.manager.series.delete(made.series.id)
    world.run()
    assert status(world, made) is SeriesStatus.DELETED
    assert world.store.leases.of_project(None) == ()


def rolling(**more):
    return a_series(rule="FREQ=DAILY", fit=Fit.AS_MANY, **more)


@pytest.fixture
def short(engine) -> World:
    """Series without an end are booked a week ahead."""
    limits = SeriesLimits(horizon=timedelta(days=7))
    return World(engine, settings=Settings(claim_ttl=timedelta(seconds=30), series=limits))


@pytest.mark.slow
def test_a_series_without_an_end_is_booked_ahead_each_day(short):
    world = short
    made = world.manager.series.create(rolling())
    assert states(world, made) == {"booked": 7}
    assert made.series.booked_until == NOON + 7 * DAY
    world.manager.leases.delete(made.occurrences[6].lease_id)
    for day in range(1, 4):
        world.run_to(NOON + day * DAY)
    found = world.manager.series.one(made.series.id)
    assert [each.recurrence_id for each in found.occurrences] == [FIRST + n * DAY for n in range(10)]
    assert states(world, made) == {"over": 3, "cancelled": 1, "booked": 6}
    assert found.series.status is SeriesStatus.ACTIVE


def test_a_series_without_an_end_is_booked_ahead_at_any_fraction_of_a_second(short):
    world = short
    world.clock.by(seconds=0.25)
    made = world.manager.series.create(rolling())
    assert made.series.booked_until == NOON + 7 * DAY
    world.clock.to(NOON + 2 * DAY + timedelta(seconds=0.5))
    world.run()
    found = world.manager.series.one(made.series.id)
    assert [each.recurrence_id for each in found.occurrences] == [FIRST + n * DAY for n in range(9)]
    assert found.series.booked_until == NOON + 9 * DAY


def test_any_manager_books_a_series_further_once(short):
    world = short
    made = world.manager.series.create(rolling())
    world.run_to(NOON + DAY - HOUR)
    world.clock.to(NOON + DAY + HOUR)
    other = world.another_manager()
    assert other.series_work.run_once() + world.manager.series_work.run_once() == 1
    assert len(leases(world, made)) == 8


def test_what_does_not_fit_of_a_series_without_an_end_is_told_and_not_tried_again(short):
    world = short
    made = world.manager.series.create(rolling())
    full_on(world, 7)
    for day in (1, 2):
        world.run_to(NOON + day * DAY)
    found = {each.recurrence_id: str(each.state) for each in world.manager.series.one(made.series.id).occurrences}
    assert (found[FIRST + 7 * DAY], found[FIRST + 8 * DAY]) == ("unfit", "booked")


def test_bounds_hold_for_series(sqlite):
    settings = Settings(max_series=1, bounds=Bounds(leases=5), series=SeriesLimits(max_occurrences=9))
    world = World(sqlite, settings=settings)
    with pytest.raises(UsageDenied, match="leases_per_project"):
        world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=6"))
    world.run()
    assert world.store.leases.of_project(None) == ()
    with pytest.raises(InvalidInput, match="the limit is 9"):
        world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=10"))
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=6", fit=Fit.AS_MANY))
    assert states(world, made) == {"booked": 5, "unfit": 1}
    with pytest.raises(UsageDenied, match="series_per_project"):
        world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=1"))


def test_a_key_makes_one_series(sqlite):
    world = World(sqlite)
    key = IdempotencyKey("scope", "what")
    first, again = (world.manager.series.create(a_series(key=key)) for _ in range(2))
    assert (first.series.id, first.replayed, again.replayed) == (again.series.id, False, True)
    assert len(world.store.leases.of_project(None)) == 5
    with pytest.raises(Conflict, match="another request"):
        world.manager.series.create(a_series(key=replace(key, fingerprint="else")))


def test_a_series_that_failed_can_be_asked_for_with_its_key_again(sqlite):
    world = World(sqlite, settings=Settings(bounds=Bounds(leases=4)))
    key = IdempotencyKey("scope", "what")
    with pytest.raises(UsageDenied):
        world.manager.series.create(a_series(key=key))
    world.run()
    assert world.manager.series.replay(key) is None


class Refusing(RecordingFilter):
    """Denies some of the leases that it is asked about, by their day."""

    def __init__(self, *days: int) -> None:
        super().__init__()
        self.days = days

    def check(self, question):
        super().check(question)
        if question.wanted.window.start.day in self.days:
            raise UsageDenied(f"not on day {question.wanted.window.start.day}")


def test_enforcement_is_asked_for_each_occurrence(sqlite):
    world = World(sqlite, filters=[Refusing(4)])
    with pytest.raises(UsageDenied, match="not on day 4"):
        world.manager.series.create(a_series())
    world.run()
    assert world.store.leases.of_project(None) == ()
    made = world.manager.series.create(a_series(fit=Fit.AS_MANY))
    assert states(world, made) == {"booked": 4, "unfit": 1}
    dry = world.manager.series.create(a_series(dry_run=True))
    assert [each.reason for each in dry.occurrences] == [None, None, "not on day 4", None, None]


def test_a_series_takes_nothing_from_those_who_wait(sqlite):
    world = World(sqlite)
    world.waits = True
    world.lease(a_host(3), project="biology", hours=20)
    waiting = world.lease(a_host(3), project="chemistry", wait=2 * DAY, hours=5)
    world.run()
    assert world.now(waiting).status is LeaseStatus.WAITING
    # They get what they wait for from 8 to 13 tomorrow.
    with pytest.raises(NotEnoughResources, match="the occurrence of 2030-04-02 08:00"):
        world.manager.series.create(a_series())
    made = world.manager.series.create(a_series(fit=Fit.AS_MANY))
    assert states(world, made) == {"booked": 4, "unfit": 1}
    assert made.occurrences[0].opening.start == MORNING + 5 * HOUR
    assert made.occurrences[0].reason.endswith("; leases that wait for their turn come first")


def test_two_series_cannot_have_the_same_hosts(sqlite):
    """Each takes two of three hosts: no other series of this size fits beside it, and a smaller one does."""
    world = World(sqlite)
    world.manager.series.create(a_series(a_host(2)))
    with pytest.raises(NotEnoughResources):
        world.manager.series.create(a_series(a_host(2)))
    assert world.manager.series.create(a_series(a_host(1))).series.status is SeriesStatus.ACTIVE


def test_pages_have_the_series_of_a_project_and_their_states(engine):
    world = World(engine)
    mine = [world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=1")).series.id for _ in range(2)]
    world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=1", project="art"))
    page = world.manager.series.page(SeriesQuestion(Page(1, "created_at", with_count=True), "physics"))
    rest = world.manager.series.page(SeriesQuestion(Page(9, "created_at", after=page.following), "physics"))
    assert {page.items[0].id, *(each.id for each in rest.items)} == {*mine}
    assert (page.count, len(rest.items), rest.following) == (2, 1, None)
    assert world.manager.series.page(SeriesQuestion(Page(9, "created_at"), None, (SeriesStatus.ENDED,))).items == ()
    assert len(world.manager.series.page(SeriesQuestion(Page(9, "created_at"))).items) == 3
