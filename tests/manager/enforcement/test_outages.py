# SPDX-License-Identifier: Apache-2.0
"""Services that do not answer, and managers that die, lose no notification and repeat none."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.enforcement import NotDelivered, NotificationRefused, Occasion
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import EnforcementUnavailable
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import outbox
from tests.manager.enforcement.recording import DAY, HOUR, RecordingFilter
from tests.observed import Killed
from tests.world import NOON, World, a_host, instances


def killing_at(step: int) -> Callable[[str, str], None]:
    """Die in the so-manieth call to the cloud."""
    left = [step]

    def kill(name: str, phase: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return kill


def test_who_does_not_listen_delays_no_lease_and_is_told_again(world, books):
    books.deaf = 4
    lease = world.lease()
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert books.tries == 1
    for wait in (1, 2, 4, 8):
        world.clock.by(seconds=wait)
        world.manager.outbox.run_due()
    assert (books.tries, books.heard) == (5, ["commit-create"])


def test_news_of_one_lease_keep_their_order_and_those_of_others_do_not_wait(world, books):
    books.deaf = 1
    first = world.lease()
    world.manager.leases.delete(first.id)
    second = world.lease()
    world.manager.leases.delete(second.id)
    world.run()
    assert [(n.view.lease.id, str(n.occasion)) for n in books.told] == [
        (second.id, "commit-create"),
        (second.id, "on-end"),
    ]
    world.clock.by(seconds=1)
    world.run()
    assert [str(n.occasion) for n in books.told if n.view.lease.id == first.id] == ["commit-create", "on-end"]


def test_it_is_given_up_after_so_many_tries_and_the_reason_is_kept(sqlite, books, caplog):
    world = World(sqlite, filters=[books], settings=Settings(outbox_attempts=3))
    books.deaf = 99
    lease = world.lease()
    for _ in range(9):
        world.manager.outbox.run_due()
        world.clock.by(minutes=1)
    assert books.tries == 3
    assert f"commit-create of lease {lease.id} is given up: RecordingFilter: nobody listens" in caplog.text
    with world.engine.connect() as connection:
        kept = connection.execute(sa.select(outbox)).one()
    assert (kept.due_at, kept.reason) == (None, "RecordingFilter: nobody listens")
    assert lease.id in kept.content


def test_a_message_keeps_the_names_that_the_database_has_for_what_was_granted(world, books):
    books.deaf = 1
    world.lease(instances(2))
    with world.engine.connect() as connection:
        kept = json.loads(connection.execute(sa.select(outbox.c.content)).scalars().one())
    assert [(h["count"], h["per_instance"]["items"][0][0]) for h in kept["view"]["allocated_resources"]] == [
        (2, "DISK_GB")
    ]
    world.clock.by(seconds=1)
    world.manager.outbox.run_due()
    (told,) = books.told
    assert [(h.count, h.whole) for h in told.view.allocated_resources] == [(2, False)]


def test_what_is_refused_for_good_is_told_once_and_the_next_follows(world, books):
    def notify(notification, notify=books.notify):
        notify(notification)
        raise NotificationRefused("I know that already")

    books.deaf = 1
    lease = world.lease(start=HOUR)
    books.notify = notify
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + DAY)
    assert books.heard == ["commit-create", "on-end"]


@pytest.mark.parametrize("heard", [True, False])
def test_an_end_does_not_wait_long_behind_what_fails_where_the_service_can_be_reached(world, books, heard):
    """A service that cannot be reached at all hears of both, in their order, when it is back."""
    commits = []

    def notify(notification, notify=books.notify):
        if notification.occasion is Occasion.CREATED:
            commits.append(world.clock.now())
            raise NotDelivered("it answered 500", maybe_accepted=heard)
        notify(notification)

    books.notify = notify
    lease = world.lease(start=HOUR)
    world.run()
    world.clock.by(minutes=2)
    world.manager.leases.delete(lease.id)
    for _ in range(30):
        world.run()
        world.clock.by(minutes=1)
    assert books.heard == (["on-end"] if heard else [])
    if heard:
        assert commits[-1] < NOON + timedelta(minutes=25)


def test_a_change_is_asked_about_when_all_before_it_is_told(world, books):
    books.deaf = 1
    lease = world.lease(start=HOUR)
    world.clock.by(seconds=1)
    order = []
    books.says = lambda question: order.append("check")
    notify = books.notify
    books.notify = lambda notification: (order.append(str(notification.occasion)), notify(notification))
    world.change(lease, end=NOON + 9 * HOUR)
    world.change(lease, end=NOON + 5 * HOUR)
    world.run()
    assert order == ["commit-create", "check", "commit-update", "check", "commit-update"]


def test_a_change_does_not_wait_for_what_cannot_be_told(world, books):
    books.deaf = 99
    lease = world.lease(start=HOUR)
    world.change(lease, end=NOON + 9 * HOUR)
    assert len(books.asked) == 2
    assert books.tries == 2
    books.mandatory = True
    with pytest.raises(EnforcementUnavailable, match="does not know the current state of lease .* yet"):
        world.change(lease, end=NOON + 5 * HOUR)
    assert len(books.asked) == 2


def test_a_change_waits_while_another_manager_tells(world, books):
    books.deaf = 1
    lease = world.lease(start=HOUR)
    world.clock.by(seconds=1)
    telling, may_go = threading.Event(), threading.Event()
    notify = books.notify

    def slowly(notification):
        telling.set()
        assert may_go.wait(10)
        notify(notification)

    books.notify = slowly
    other = threading.Thread(target=world.another_manager().outbox.run_due)
    other.start()
    assert telling.wait(10)
    books.says = lambda question: order.append(books.heard)
    order: list[list[str]] = []
    threading.Timer(0.2, may_go.set).start()
    world.change(lease, end=NOON + 9 * HOUR)
    other.join()
    assert order == [["commit-create"]]


def test_a_bug_in_a_filter_is_like_not_listening(world, books):
    def bug(notification):
        books.tries += 1
        raise KeyError("oops")

    books.notify = bug
    lease = world.lease()
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.tries > 1


def test_each_filter_is_told_once_though_another_does_not_listen(sqlite):
    class Other(RecordingFilter):
        pass

    deaf, hears = RecordingFilter(deaf=2), Other()
    world = World(sqlite, filters=[deaf, hears])
    world.lease()
    for _ in range(4):
        world.manager.outbox.run_due()
        world.clock.by(seconds=10)
    assert (deaf.tries, deaf.heard) == (3, ["commit-create"])
    assert (hears.tries, hears.heard) == (1, ["commit-create"])


def test_what_a_dead_manager_had_in_hand_is_told_by_another_and_not_before_its_time(world, books):
    notify = books.notify

    def die(notification):
        raise Killed

    books.deaf = 1
    world.lease()
    world.clock.by(seconds=1)
    books.notify = die
    with pytest.raises(Killed):
        world.manager.outbox.run_due()
    books.notify = notify
    survivor = world.another_manager()
    survivor.outbox.run_due()
    assert books.told == []
    world.clock.by(seconds=61)
    survivor.outbox.run_due()
    assert books.heard == ["commit-create"]


def test_a_manager_that_dies_as_it_begins_an_end_leaves_one_message_or_none_yet(world, books):
    """Killed at every step of an end in turn: the message is there once, whichever manager finishes the work."""
    lease = world.lease()
    world.run()
    world.clock.to(NOON + 2 * HOUR)
    steps = 0
    while True:
        steps += 1
        world.faults.on_call = killing_at(steps)
        try:
            world.manager.engine.run_due()
        except Killed:
            world.clock.by(seconds=31)
            world.faults.on_call = None
            world.manager = world.another_manager()
            continue
        break
    world.faults.on_call = None
    world.run()
    assert steps > 3
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.heard == ["commit-create", "on-end"]


def test_of_two_managers_one_tells(sqlite, books):
    world = World(sqlite, filters=[books])
    other = world.another_manager()
    notify = books.notify

    def both(notification):
        books.notify = notify
        other.outbox.run_due()
        notify(notification)

    books.notify = both
    world.lease()
    world.run()
    assert (books.tries, books.heard) == (1, ["commit-create"])


def test_news_are_the_same_on_every_database(engine, books):
    world = World(engine, filters=[books])
    lease = world.lease(a_host(2))
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]
    assert replace(books.told[0].view.lease, revision=lease.revision) == lease
    assert [h.resource.attributes for h in books.told[0].view.allocated_resources] == [
        h.resource.attributes for h in books.asked[0].wanted.allocated_resources
    ]


def test_a_running_manager_tells_without_being_asked_to(sqlite):
    heard = threading.Event()

    class Listener(RecordingFilter):
        def notify(self, notification):
            heard.set()

    world = World(sqlite, filters=[Listener()])
    world.manager.start()
    try:
        world.lease(start=HOUR)
        assert heard.wait(5)
    finally:
        world.manager.stop()
