# SPDX-License-Identifier: Apache-2.0
"""A manager that dies while it works on a series: another one goes on, to all of it or to nothing."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.manager.series import service as requests
from blazar.manager.series import work
from blazar.model.base.errors import BlazarError, CloudUnavailable
from blazar.model.base.paging import Page
from blazar.model.leases.states import LeaseStatus
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit
from blazar.model.series.details import SeriesQuestion, SeriesStatus
from tests.cases import cases
from tests.manager.booking.test_commitments import Strict
from tests.manager.events.test_between_writes import Between
from tests.manager.events.test_crashes import nothing_is_left
from tests.observed import Killed
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, a_series, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TTL = timedelta(seconds=45)


phases = pytest.mark.parametrize("phase", ["after", pytest.param("before", marks=pytest.mark.slow)])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Three leases are a chunk, and what one request books."""
    monkeypatch.setattr(work, "CHUNK", 3)
    monkeypatch.setattr(requests, "CHUNK", 9)


def die() -> None:
    raise Killed


def only(world: World):
    """Return the only series; None if there is none."""
    found = world.manager.series.page(SeriesQuestion(Page(9, "created_at"))).items
    return world.manager.series.one(found[0].id) if found else None


def killed_at(world: World, step: int, phase: str, act) -> bool:
    """Let a manager die before or after an operation on the database; return whether it came to that."""
    store = Between(world.store, step, phase, die)
    manager = world.another_manager(store=store)
    with suppress(Killed):
        act(manager)
    # Its claims expire, and another manager goes on.
    world.clock.to(world.clock.now() + TTL)
    world.run()
    return store.reached


def is_whole(world: World) -> bool:
    """Check that the series is booked completely, or that nothing is left of it; return which."""
    found = only(world)
    live = world.store.leases.of_project(None)
    if found is None or found.series.status is SeriesStatus.FAILED:
        assert live == ()
        assert world.pool() == {"node-1", "node-2", "node-3"}
        nothing_is_left(world)
        return False
    assert found.series.status is SeriesStatus.ACTIVE
    assert Counter(str(each.state) for each in found.occurrences) == {"booked": 8}
    assert {lease.id for lease in live} == {each.lease_id for each in found.occurrences}
    assert {lease.status for lease in live} == {LeaseStatus.PENDING}
    assert all(len(world.hosts_of(lease)) == 3 for lease in live)
    return True


REQUEST = a_series(a_host(2), instances(1), rule="FREQ=DAILY;COUNT=8")


@pytest.mark.slow
@phases
def test_a_manager_that_dies_at_any_write_leaves_all_or_nothing(tmp_path, phase):
    outcomes = []
    for step in range(1, 200):
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"))
        reached = killed_at(world, step, phase, lambda manager: manager.series.create(REQUEST))
        outcomes.append(is_whole(world))
        if not reached:
            break
    assert len(outcomes) > 12
    # It is on record before anything is booked; from then on it is booked by the manager that takes it over.
    first = outcomes.index(True)
    assert outcomes == [False] * first + [True] * (len(outcomes) - first)


class Rival(Between):
    """A store with which a manager dies, after somebody has taken what the last chunk of a series needs."""

    def __init__(self, world: World, step: int, phase: str) -> None:
        super().__init__(world.store, step, phase, die)
        self._world = world

    def _call(self, name, operation, *args, **more):
        if name == "series.add":
            self._world.lease(a_host(3), start=8 * DAY - 4 * HOUR, project="biology")
        return super()._call(name, operation, *args, **more)


@pytest.mark.slow
@phases
def test_a_series_that_cannot_be_finished_is_undone_wherever_its_manager_died(tmp_path, phase):
    """Somebody takes what the last chunk needs after the plan was made."""
    for step in range(1, 200):
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"))

        store = Rival(world, step, phase)
        with suppress(Killed, BlazarError):
            world.another_manager(store=store).series.create(REQUEST)
        world.clock.to(world.clock.now() + TTL)
        world.run()
        found = only(world)
        assert found is None or found.series.status is SeriesStatus.FAILED, step
        assert [lease.project_id for lease in world.store.leases.of_project("physics")] == [], step
        if not store.reached:
            break
    assert step > 10


@pytest.mark.slow
@phases
def test_a_deletion_goes_on_wherever_its_manager_died(tmp_path, phase):
    for step in range(1, 200):
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"))
        made = world.manager.series.create(REQUEST)
        reached = killed_at(world, step, phase, lambda manager, made=made: manager.series.delete(made.series.id))
        world.run_to(world.clock.now() + TTL)
        if world.store.series.owner(made.series.id).deleted:
            assert world.store.leases.of_project(None) == (), step
            nothing_is_left(world)
        else:
            assert (phase, step) == ("before", 1)
        if not reached:
            break
    assert step > 10


@pytest.mark.slow
@phases
def test_a_series_is_booked_further_once_wherever_its_manager_died(tmp_path, phase):
    for step in range(1, 100):
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"))
        made = world.manager.series.create(a_series(rule="FREQ=MONTHLY", fit=Fit.AS_MANY))
        before = len(made.occurrences)
        world.clock.to(NOON + 10 * DAY)
        world.manager.engine.run_due()
        reached = killed_at(world, step, phase, lambda manager: manager.series_work.run_once())
        found = world.manager.series.one(made.series.id)
        assert len(found.occurrences) == before + 1, step
        assert len({each.recurrence_id for each in found.occurrences}) == before + 1
        last = found.occurrences[-1]
        assert world.now_of(last.lease_id).status is LeaseStatus.PENDING
        if not reached:
            break
    assert step > 8


def test_who_was_taken_for_dead_books_nothing_more(sqlite):
    """Another manager takes the series over while the first one plans a chunk."""
    world = World(sqlite)
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=12"))

    def meanwhile() -> None:
        world.clock.to(world.clock.now() + TTL)
        assert world.manager.series_work.run_once() == 1

    slow = Between(world.store, 6, "before", meanwhile)
    world.another_manager(store=slow).series_work.run_once()
    assert slow.reached
    found = world.manager.series.one(made.series.id)
    assert Counter(str(each.state) for each in found.occurrences) == {"booked": 12}
    assert len(world.store.leases.of_project(None)) == 12


def test_a_cloud_that_does_not_answer_delays_a_series(sqlite):
    world = World(sqlite)
    down = [True]

    def fails(name: str, phase: str) -> None:
        if down and phase == "before":
            raise CloudUnavailable("Nova does not answer")

    world.faults.on_call = fails
    made = world.manager.series.create(REQUEST)
    assert made.series.status is SeriesStatus.CREATING
    assert {lease.status for lease in world.store.leases.of_project(None)} == {LeaseStatus.CREATING}
    down.clear()
    world.clock.to(world.clock.now() + timedelta(seconds=5))
    world.run()
    assert is_whole(world)


def test_a_series_is_undone_if_the_cloud_does_not_answer_for_long(sqlite):
    world = World(sqlite)

    def fails(name: str, phase: str) -> None:
        if phase == "before":
            raise CloudUnavailable("Nova does not answer")

    world.faults.on_call = fails
    made = world.manager.series.create(REQUEST)
    for _ in range(work.ATTEMPTS):
        world.clock.to(world.clock.now() + timedelta(minutes=2))
        world.manager.series_work.run_once()
    found = world.manager.series.one(made.series.id)
    assert (found.series.status, found.series.reason) == (SeriesStatus.FAILED, CloudUnavailable.public)
    world.faults.on_call = None
    world.run_to(world.clock.now() + timedelta(minutes=5))
    assert not is_whole(world)


@pytest.mark.slow
@phases
def test_who_must_accept_each_lease_has_exactly_those_that_exist(tmp_path, phase):
    """A filter that keeps books of what was granted has exactly the leases, wherever a manager died."""
    for step in range(1, 200):
        credits = Credit()
        world = World(new_sqlite(tmp_path / f"{phase}{step}.sqlite"), filters=[credits])
        reached = killed_at(world, step, phase, lambda manager: manager.series.create(REQUEST))
        world.run_to(world.clock.now() + timedelta(minutes=5))
        whole = is_whole(world)
        assert len(credits.granted) == (8 if whole else 0), step
        if not reached:
            break
    assert step > 15


class Credit(Strict):
    """Knows which leases were granted and have not ended."""

    @property
    def granted(self) -> set[str]:
        held: set[str] = set()
        for notification in self.told:
            lease_id = notification.view.lease.id
            (held.discard if str(notification.occasion) == "ended" else held.add)(lease_id)
        return held


RULES = ["FREQ=DAILY;COUNT=7", "FREQ=WEEKLY;COUNT=3", "FREQ=DAILY;INTERVAL=3;COUNT=4"]


@settings(max_examples=cases(10))
@given(st.data())
def test_series_together_promise_nothing_twice(tmp_path_factory, data):
    """Series and leases of any sizes, deletions and deaths: what is promised is there, and nobody is forgotten."""
    world = World(new_sqlite(tmp_path_factory.mktemp("series") / "blazar.sqlite"))
    for _ in range(data.draw(st.integers(1, 5))):
        rule = data.draw(
            st.sampled_from(["FREQ=DAILY;COUNT=7", "FREQ=WEEKLY;COUNT=3", "FREQ=DAILY;INTERVAL=3;COUNT=4"])
        )
        asked = a_series(
            a_host(data.draw(st.integers(1, 2))),
            rule=rule,
            length=data.draw(st.sampled_from([1, 4, 20])) * HOUR,
            fit=data.draw(st.sampled_from(Fit)),
        )
        step, phase = data.draw(st.integers(1, 40)), data.draw(st.sampled_from(["before", "after"]))

        def act(manager, asked=asked) -> None:
            with suppress(BlazarError):
                manager.series.create(asked)

        killed_at(world, step, phase, act)
        if data.draw(st.booleans()) and (found := only(world)) is not None:
            wanted = SeriesChange(
                length=data.draw(st.sampled_from([2, 6])) * HOUR,
                since=data.draw(st.none() | st.sampled_from([each.recurrence_id for each in found.occurrences])),
                fit=data.draw(st.sampled_from(Fit)),
            )

            def alter(manager, id_=found.series.id, wanted=wanted) -> None:
                with suppress(BlazarError):
                    manager.series.change(id_, wanted)

            killed_at(world, data.draw(st.integers(1, 20)), phase, alter)
        if data.draw(st.booleans()) and (found := only(world)) is not None:
            world.manager.series.delete(found.series.id)
            world.run()
        kinds = Counter(each.status for each in world.store.leases.of_project(None))
        assert kinds.keys() <= {LeaseStatus.PENDING, LeaseStatus.ACTIVE}
    held = [a for lease in world.store.leases.of_project(None) for a in world.store.calendar.of_lease(lease.id)]
    for one in held:
        for other in held:
            if one is not other and one.resource_id == other.resource_id:
                assert not one.window.overlaps(other.window)
    for found in world.manager.series.page(SeriesQuestion(Page(99, "created_at"))).items:
        every = world.manager.series.one(found.id).occurrences
        booked = [each for each in every if each.lease_id is not None]
        assert found.status in (SeriesStatus.ACTIVE, SeriesStatus.FAILED, SeriesStatus.ENDED)
        if found.fit is Fit.ALL and found.status is SeriesStatus.ACTIVE and found.previous_id is None:
            assert len(booked) == len(every)
