# SPDX-License-Identifier: Apache-2.0
"""A lease is granted, or changed, when those who keep books accept it: before the answer, and both or neither."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement import NotDelivered, NotificationRefused, Occasion
from blazar.manager.outbox.messages import plan_messages
from blazar.model.base.errors import ClaimLost, EnforcementUnavailable, UsageDenied, WrongState
from blazar.model.leases.states import LeaseStatus
from tests.manager.enforcement.recording import RecordingFilter
from tests.observed import Killed
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class Strict(RecordingFilter):
    """A mandatory filter: nothing is granted without its answer. ``objects`` maps occasions to what is raised."""

    mandatory = True

    def __init__(self, **objects: Exception | None) -> None:
        super().__init__()
        self.objects = {Occasion[name]: error for name, error in objects.items()}
        self.meanwhile = lambda: None

    def notify(self, notification) -> None:
        super().notify(notification)
        self.meanwhile()
        if error := self.objects.get(notification.occasion):
            raise error


class Second(Strict):
    """Another one."""


NO = NotificationRefused("no credit is left")
LOST = NotDelivered("no answer", maybe_accepted=True)
DOWN = NotDelivered("it cannot be reached", maybe_accepted=False)


@pytest.fixture
def books() -> Strict:
    return Strict()


@pytest.fixture
def world(sqlite, books) -> World:
    return World(sqlite, filters=[books])


def nothing_is_there(world: World) -> bool:
    return not world.manager.leases.all(None) and not world.reservation_aggregates()


def outstanding(world: World) -> int:
    return len(world.store.outbox.due(NOON + timedelta(days=99), 99))


def test_who_accepts_a_lease_does_so_before_the_answer(world, books):
    lease = world.lease()
    assert books.heard == ["commit-create"]
    assert lease.status is LeaseStatus.PENDING
    world.change(lease, end=NOON + 9 * HOUR)
    assert books.heard == ["commit-create", "commit-update"]
    assert outstanding(world) == 0


def test_a_refused_commit_is_a_refused_lease(world, books):
    books.objects[Occasion.CREATED] = NO
    with pytest.raises(UsageDenied, match="^no credit is left$"):
        world.lease(a_host(3))
    assert nothing_is_there(world)
    world.run_to(NOON + HOUR)
    assert books.heard == ["commit-create"]
    books.objects.clear()
    assert len(world.hosts_of(world.lease(a_host(3)))) == 3


@pytest.mark.parametrize("running", [False, True], ids=["pending", "active"])
def test_a_refused_commit_is_a_refused_change(engine, books, running):
    world = World(engine, filters=[books])
    lease = world.lease(start=timedelta(0) if running else HOUR)
    world.run()
    lease, held = world.now(lease), world.hosts_of(lease)
    books.objects[Occasion.UPDATED] = NO
    for change in (
        lambda: world.change(lease, end=NOON + 9 * HOUR),
        lambda: world.change(lease, name="x", before_end=NOON + 90 * MINUTE),
        lambda: world.resize(lease, min=2, max=2),
    ):
        with pytest.raises(UsageDenied, match="^no credit is left$"):
            change()
        now = world.now(lease)
        assert (now.status, now.name, now.window, now.reservations) == (
            lease.status, lease.name, lease.window, lease.reservations
        )  # fmt: skip
        assert [e.time for e in now.events[:3]] == [e.time for e in lease.events[:3]]
        assert world.hosts_of(lease) == held
    assert len(world.hosts_of(world.lease(a_host(2), start=HOUR))) == 2
    assert outstanding(world) == 0
    books.objects.clear()
    assert world.change(lease, end=NOON + 9 * HOUR).window.end == NOON + 9 * HOUR


def test_a_lease_that_nobody_answers_for_is_undone_and_taken_back_when_no_answer_can_come_any_more(world, books):
    books.objects[Occasion.CREATED] = LOST
    with pytest.raises(EnforcementUnavailable, match="nothing was changed; please try again later"):
        world.lease()
    assert nothing_is_there(world)
    world.run()
    assert books.heard == ["commit-create"]
    world.run_to(NOON + 2 * MINUTE)
    world.clock.by(minutes=2)
    world.run()
    assert books.heard == ["commit-create", "on-end"]
    created, ended = books.told
    assert ended.view.lease.id == created.view.lease.id
    assert ended.view.allocated_resources == created.view.allocated_resources
    assert ended.at <= ended.view.window.start
    assert outstanding(world) == 0


def test_what_nobody_can_have_heard_is_not_taken_back(world, books):
    books.objects[Occasion.CREATED] = DOWN
    with pytest.raises(EnforcementUnavailable):
        world.lease()
    assert nothing_is_there(world)
    assert outstanding(world) == 0


def test_a_refusal_of_what_may_have_been_accepted_before_is_taken_back(world, books):
    books.objects[Occasion.CREATED] = NotificationRefused("it is there already", maybe_accepted=True)
    with pytest.raises(UsageDenied):
        world.lease()
    world.clock.by(minutes=2)
    world.run()
    assert books.heard == ["commit-create", "on-end"]


def test_a_change_that_nobody_answers_for_is_undone_and_taken_back(world, books):
    lease = world.lease()
    world.run()
    books.objects[Occasion.UPDATED] = LOST
    with pytest.raises(EnforcementUnavailable):
        world.change(lease, end=NOON + 9 * HOUR)
    assert world.now(lease).window.end == NOON + 2 * HOUR
    books.objects.clear()
    with pytest.raises(EnforcementUnavailable, match="does not know the current state of lease .* yet"):
        world.change(lease, end=NOON + 5 * HOUR)
    world.clock.by(minutes=2)
    assert world.change(lease, end=NOON + 5 * HOUR).window.end == NOON + 5 * HOUR
    told = [(str(n.occasion), n.before and n.before.window.end, n.view.window.end) for n in books.told[1:]]
    assert told == [
        ("commit-update", NOON + 2 * HOUR, NOON + 9 * HOUR),
        ("commit-update", NOON + 9 * HOUR, NOON + 2 * HOUR),
        ("commit-update", NOON + 2 * HOUR, NOON + 5 * HOUR),
    ]


def test_who_does_not_insist_is_told_again_of_a_lease_that_stands(sqlite):
    books = RecordingFilter(deaf=1)
    world = World(sqlite, filters=[books])
    lease = world.lease()
    assert lease.status is LeaseStatus.PENDING
    world.clock.by(seconds=2)
    world.run()
    assert (books.tries, books.heard) == (2, ["commit-create"])


def test_who_does_not_insist_may_refuse(sqlite):
    books = Strict(CREATED=NO)
    books.mandatory = False
    world = World(sqlite, filters=[books])
    with pytest.raises(UsageDenied):
        world.lease()
    assert nothing_is_there(world)


def test_exempt_projects_are_told_of_afterwards_and_not_refused(sqlite, books):
    books.objects = {Occasion.CREATED: NO}
    world = World(sqlite, filters=[books], exempt=["physics"])
    assert world.lease().status is LeaseStatus.PENDING
    assert books.heard == []
    world.run()
    assert books.heard == ["commit-create"]


def test_who_has_accepted_what_another_refuses_takes_it_back(sqlite, books):
    second = Second(CREATED=NO)
    world = World(sqlite, filters=[books, second])
    with pytest.raises(UsageDenied):
        world.lease()
    world.clock.by(minutes=2)
    world.run()
    assert books.heard == ["commit-create", "on-end"]
    assert second.heard == ["commit-create"]


def die(*_: object) -> None:
    raise Killed


def test_a_manager_that_takes_over_an_accepted_creation_reverses_it(engine, books):
    world = World(engine, filters=[books])
    survivor = world.another_manager()
    books.meanwhile = die
    world.manager.engine.worker.perform = die
    with pytest.raises(Killed):
        world.lease()
    books.meanwhile = lambda: None
    assert len(world.manager.leases.all(None)) == 1
    world.clock.by(minutes=1)
    survivor.engine.run_due()
    assert nothing_is_there(world)
    world.clock.by(minutes=2)
    survivor.outbox.run_due()
    assert books.heard == ["commit-create", "on-end"]
    assert outstanding(world) == 0


def test_a_manager_that_takes_over_an_accepted_change_reverses_it(engine, books):
    world = World(engine, filters=[books])
    lease = world.lease(a_host(1))
    world.run()
    survivor = world.another_manager()
    books.meanwhile = die
    world.manager.engine.worker.perform = die
    with pytest.raises(Killed):
        world.resize(lease, min=2, max=2)
    books.meanwhile = lambda: None
    world.clock.by(minutes=1)
    survivor.engine.run_due()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.hosts_of(lease)) == 1
    world.clock.by(minutes=2)
    survivor.outbox.run_due()
    assert [(str(n.occasion), n.view.hosts) for n in books.told] == [
        ("commit-create", 1),
        ("commit-update", 2),
        ("commit-update", 1),
    ]
    assert outstanding(world) == 0


def test_a_lease_that_is_deleted_while_it_is_being_accepted_has_ended(world, books):
    def delete() -> None:
        books.meanwhile = lambda: None
        (lease,) = world.manager.leases.all(None)
        world.manager.leases.delete(lease.id)

    books.meanwhile = delete
    with pytest.raises(WrongState):
        world.lease()
    world.clock.by(minutes=2)
    world.run()
    assert nothing_is_there(world)
    assert books.heard == ["commit-create", "on-end"]
    assert outstanding(world) == 0


def test_a_lease_that_is_deleted_while_its_change_is_being_accepted_has_ended_after_that(world, books):
    lease = world.lease(start=HOUR)

    def delete() -> None:
        books.meanwhile = lambda: None
        world.manager.leases.delete(lease.id)
        world.manager.outbox.run_due()
        assert "on-end" not in books.heard

    books.meanwhile = delete
    with pytest.raises(WrongState):
        world.change(lease, end=NOON + 9 * HOUR)
    world.run()
    assert nothing_is_there(world)
    assert books.heard == ["commit-create", "commit-update", "on-end"]
    assert outstanding(world) == 0


@pytest.mark.parametrize("seconds", [20, 120], ids=["nearly too long", "too long"])
def test_a_manager_that_was_held_up_tells_nobody(world, books, monkeypatch, seconds):
    def slowly(*arguments, **named):
        world.clock.by(seconds=seconds)
        return plan_messages(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr("blazar.manager.changing.creation.plan_messages", slowly)
        with pytest.raises(ClaimLost, match="held up"):
            world.lease()
    assert books.heard == []
    world.run()
    world.clock.by(minutes=2)
    world.run()
    world.clock.by(minutes=2)
    world.run()
    assert nothing_is_there(world)
    assert books.heard == []
    assert outstanding(world) == 0


def test_who_was_slower_than_its_claim_leaves_what_another_has_settled(world, books):
    lease = world.lease()
    world.run()
    survivor = world.another_manager()

    def overtaken() -> None:
        books.meanwhile = lambda: None
        world.clock.by(minutes=2)
        survivor.engine.run_due()

    books.meanwhile = overtaken
    books.objects[Occasion.UPDATED] = LOST
    with pytest.raises(EnforcementUnavailable):
        world.change(lease, end=NOON + 9 * HOUR)
    books.objects.clear()
    world.manager.leases.delete(lease.id)
    world.clock.by(minutes=2)
    world.run()
    assert books.heard == ["commit-create", "commit-update", "commit-update", "on-end"]
    assert outstanding(world) == 0


def test_a_start_that_comes_while_a_change_is_being_accepted_waits_for_that(world, books):
    lease = world.lease(start=HOUR)
    world.clock.to(NOON + HOUR - timedelta(seconds=5))

    def starts() -> None:
        books.meanwhile = lambda: None
        world.clock.to(NOON + HOUR)
        world.manager.engine.run_due()
        assert world.now(lease).status is LeaseStatus.UPDATING

    books.meanwhile = starts
    world.change(lease, end=NOON + 9 * HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.now(lease).window.end == NOON + 9 * HOUR
