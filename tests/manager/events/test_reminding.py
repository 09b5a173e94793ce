# SPDX-License-Identifier: Apache-2.0
"""Reminders, end to end: each is told at its time, once, whatever happens to the lease and to managers."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.model.base.paging import Page
from blazar.model.journal.entries import FieldChange, Verb
from blazar.model.leases.lease import Lease
from blazar.model.leases.reminders import Anchor, Reminder
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest, Terms
from tests.manager.enforcement.recording import RecordingFilter
from tests.observed import Killed, ObservedStore, before
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LONG = 10
END = NOON + LONG * HOUR


def before_end(length: timedelta, text: str = "copy the results") -> Reminder:
    return Reminder(-length, text, Anchor.END)


def after_start(length: timedelta, text: str = "look at the logs") -> Reminder:
    return Reminder(length, text, Anchor.START)


def a_lease(world: World, *reminders: Reminder, **more) -> Lease:
    return world.lease(reminders=reminders, **{"hours": LONG, **more})


def history(world: World, lease: Lease):
    return world.store.history.page(lease.id, Page(50, "at")).items


def told(world: World, lease: Lease) -> list[tuple[object, str]]:
    """Return when the lease says that it has reminded of what."""
    found = [entry for entry in history(world, lease) if entry.verb is Verb.REMINDED]
    for entry in found:
        assert (entry.by, [change.field for change in entry.changes]) == (None, ["reminder"])
    return [(entry.at, entry.changes[0].after) for entry in found]


def test_each_is_told_at_its_time_in_the_order_of_time(world):
    lease = a_lease(
        world,
        before_end(2 * HOUR),
        after_start(3 * HOUR),
        Reminder(NOON + 4 * HOUR, "call the operator"),
        before_end(2 * HOUR, "and stop the workers"),
    )
    world.run_to(END + HOUR)
    assert told(world, lease) == [
        (NOON + 3 * HOUR, "look at the logs"),
        (NOON + 4 * HOUR, "call the operator"),
        (END - 2 * HOUR, "copy the results"),
        (END - 2 * HOUR, "and stop the workers"),
    ]
    assert world.notifier.reminded == [text for _, text in told(world, lease)]
    assert world.notifier.types.count("lease.reminded") == 4
    assert all(reminder.sent_at is not None for reminder in world.now(lease).reminders)


def test_one_before_the_start_is_told_then_and_changes_nothing_else_of_the_lease(world):
    lease = a_lease(world, Reminder(-HOUR, "prepare the data", Anchor.START), start=3 * HOUR, hours=2)
    before_it = world.now(lease)
    world.run_to(NOON + 2 * HOUR)
    after = world.now(lease)
    assert (after.status, after.updated_at) == (LeaseStatus.PENDING, before_it.updated_at)
    assert told(world, lease) == [(NOON + 2 * HOUR, "prepare the data")]
    shown = world.manager.leases.details(lease.id).lease
    assert all(event.event_type != EventType.REMIND for event in shown.events)


def test_a_lease_without_reminders_has_no_event_for_them(world):
    lease = a_lease(world)
    assert world.now(lease).event(EventType.REMIND) is None


@pytest.mark.parametrize(
    ("reminder", "why"),
    [
        (before_end(LONG * HOUR), "it is 2030-04-01T12:00:00Z now; give a time to come, or leave it out"),
        (after_start(LONG * HOUR), "the lease ends at 2030-04-01T22:00:00Z; give a time before its end"),
        (Reminder(END + HOUR, "x"), "the lease ends at 2030-04-01T22:00:00Z; give a time before its end"),
    ],
)
def test_one_that_could_not_be_told_is_refused(world, reminder, why):
    with pytest.raises(InvalidInput, match=rf"^reminders\[1\] would be at 2030-.*Z, and {why}$"):
        a_lease(world, before_end(HOUR), reminder)


def test_they_move_with_the_dates_and_are_told_again_when_these_move_on(world):
    lease = a_lease(world, before_end(2 * HOUR))
    world.run_to(NOON + HOUR)
    world.change(lease, end=END - HOUR)
    world.run_to(END - 3 * HOUR + MINUTE)
    world.change(lease, end=END + 5 * HOUR)
    world.run_to(END + HOUR)
    # Brought forward past its time: at once, as the end is near.
    world.run_to(END + 2 * HOUR)
    world.change(lease, end=END + 3 * HOUR)
    world.run_to(END + 9 * HOUR)
    assert [at for at, _ in told(world, lease)] == [END - 3 * HOUR, END + 2 * HOUR]


def test_who_ends_or_deletes_the_lease_is_not_reminded_of_its_end(world):
    ended, deleted = a_lease(world, before_end(2 * HOUR)), a_lease(world, before_end(2 * HOUR))
    world.run_to(NOON + HOUR)
    world.change(ended, end=world.clock.now())
    world.manager.leases.delete(deleted.id)
    world.run_to(END + HOUR)
    assert (told(world, ended), world.notifier.reminded) == ([], [])


def test_a_put_takes_the_place_of_all_and_keeps_what_was_told(world):
    lease = a_lease(world, after_start(HOUR), before_end(HOUR))
    world.run_to(NOON + 2 * HOUR)
    after = world.change(lease, reminders=(after_start(HOUR), before_end(3 * HOUR)), exact=True)
    assert [reminder.sent_at for reminder in after.reminders] == [NOON + HOUR, None]
    entry = history(world, lease)[-1]
    assert (entry.verb, entry.changes) == (
        Verb.CHANGED,
        (
            FieldChange(
                "reminders",
                "PT1H after the start: look at the logs; PT1H before the end: copy the results",
                "PT1H after the start: look at the logs; PT3H before the end: copy the results",
            ),
        ),
    )
    world.run_to(END)
    assert [at for at, _ in told(world, lease)] == [NOON + HOUR, END - 3 * HOUR]
    with pytest.raises(InvalidInput, match="the lease has ended; only its name can be changed"):
        world.change(lease, reminders=())


def test_removed_ones_are_not_told(world):
    lease = a_lease(world, before_end(HOUR))
    world.change(lease, reminders=())
    world.run_to(END)
    assert told(world, lease) == []


def test_a_manager_that_comes_late_tells_each_once_also_after_the_end(world):
    lease = a_lease(world, after_start(HOUR), before_end(HOUR))
    world.run()
    world.clock.to(END + 2 * HOUR)
    world.run()
    world.run_to(END + 3 * HOUR)
    assert told(world, lease) == [(END + 2 * HOUR, "look at the logs"), (END + 2 * HOUR, "copy the results")]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_lease_whose_start_has_failed_reminds_of_nothing(world):
    lease = world.lease(a_host(), start=2 * HOUR, hours=2, reminders=(before_end(HOUR),))
    world.clock.to(NOON + 9 * HOUR)
    world.run()
    assert (world.now(lease).event(EventType.START).status, told(world, lease)) == ("ERROR", [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_manager_killed_at_any_write_of_it_tells_it_once(world, when):
    for step in itertools.count(1):
        lease = a_lease(world, before_end(HOUR), name=f"{when} {step}")
        world.run()
        end = world.now(lease).window.end
        world.run_to(end - HOUR - MINUTE)
        left = [step]

        def dying(name, call, *given, left=left, **more):
            if name == "leases.save":
                left[0] -= 1
            if left[0] == 0 and name == "leases.save" and when == "before":
                raise Killed
            answer = call(*given, **more)
            if left[0] == 0 and name == "leases.save":
                raise Killed
            return answer

        manager = world.another_manager(store=ObservedStore(world.store, dying))
        world.clock.to(end - HOUR)
        try:
            manager.engine.run_due()
        except Killed:
            died = True
        else:
            died = False
        world.run_to(end - HOUR + 5 * MINUTE)
        assert [text for _, text in told(world, lease)] == ["copy the results"], step
        world.manager.leases.delete(lease.id)
        world.run()
        if not died:
            assert step > 2
            return


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"reminders": ()}, []),
        ({"reminders": (before_end(MINUTE, "later"),)}, []),
        ({"end": END + HOUR}, []),
        ({"name": "renamed"}, ["copy the results"]),
    ],
    ids=str,
)
def test_a_change_while_it_is_being_told_decides_what_is_told(world, change, expected):
    """The claim keeps nobody waiting; what the lease says at the write is what counts."""
    lease = a_lease(world, before_end(2 * HOUR))
    world.run()
    world.run_to(END - 2 * HOUR - MINUTE)
    calls = itertools.count()

    def around(name, call, *given, **more):
        if name == "leases.save" and next(calls) == 1:
            world.manager.leases.update(lease.id, LeaseChange(**change))
        return call(*given, **more)

    manager = world.another_manager(store=ObservedStore(world.store, around))
    world.clock.to(END - 2 * HOUR)
    manager.engine.run_due()
    assert [text for _, text in told(world, lease)] == expected
    assert world.now(lease).event(EventType.REMIND).claimed_by is None


def test_a_reminder_that_is_told_while_a_change_is_made_is_not_told_again(world):
    lease = a_lease(world, before_end(2 * HOUR))
    world.run_to(END - 2 * HOUR - MINUTE)
    world.clock.to(END - 2 * HOUR)
    manager = world.another_manager(
        store=ObservedStore(world.store, before("bookings.commit", lambda: world.manager.engine.run_due()))
    )
    changed = manager.leases.update(lease.id, LeaseChange(name="renamed", asked_by=Actor("curie", PROJECT)))
    assert changed.reminders[0].sent_at == END - 2 * HOUR
    world.run_to(END)
    assert len(told(world, lease)) == 1


def test_one_that_waits_is_reminded_by_the_dates_that_it_gets(world):
    """Not while it waits: its dates are an estimate."""
    world.waits = True
    for number in range(3):
        world.lease(a_host(), hours=6, name=f"in the way {number}")
    lease = world.lease(a_host(), hours=4, wait=timedelta(days=2), reminders=(before_end(HOUR), after_start(2 * HOUR)))
    assert lease.status is LeaseStatus.WAITING
    world.run_to(NOON + 5 * HOUR)
    assert (world.now(lease).status, told(world, lease)) == (LeaseStatus.WAITING, [])
    world.run_to(NOON + 7 * HOUR)
    start = world.now(lease).window.start
    assert start >= NOON + 6 * HOUR
    world.run_to(start + 5 * HOUR)
    assert [at for at, _ in told(world, lease)] == [start + 2 * HOUR, start + 3 * HOUR]


def test_a_split_gives_both_parts_their_own_and_a_merge_those_of_both_once(world):
    lease = world.lease(a_host(2), start=HOUR, hours=8, reminders=(before_end(HOUR),))
    part = PartRequest(lease.reservations[0].id, count=1)
    terms = Terms(Actor("curie", PROJECT, operator=True))
    first, second = world.manager.surgery.split(lease.id, SplitRequest((part,)), terms).leases
    world.change(second.lease, reminders=(before_end(HOUR), before_end(2 * HOUR, "stop the workers")))
    (merged,) = world.manager.surgery.merge(first.lease.id, MergeRequest(second.lease.id), terms).leases
    assert [reminder.text for reminder in merged.lease.reminders] == ["copy the results", "stop the workers"]
    world.run_to(NOON + 9 * HOUR)
    assert [at for at, _ in told(world, lease)] == [NOON + 7 * HOUR, NOON + 8 * HOUR]
    assert told(world, second.lease) == []


def test_the_parts_of_a_lease_that_is_split_in_time_remind_before_their_own_ends(world):
    lease = world.lease(a_host(), start=HOUR, hours=8, reminders=(before_end(HOUR), after_start(HOUR)))
    terms = Terms(Actor("curie", PROJECT, operator=True))
    parts = world.manager.surgery.split(lease.id, SplitRequest((), NOON + 5 * HOUR), terms).leases
    world.run_to(NOON + 9 * HOUR)
    assert [[at for at, _ in told(world, part.lease)] for part in parts] == [
        [NOON + 2 * HOUR, NOON + 4 * HOUR],
        [NOON + 6 * HOUR, NOON + 8 * HOUR],
    ]


def test_telling_takes_as_many_statements_however_many_leases_and_reminders_there_are(world):
    def tell(*reminders: Reminder) -> int:
        lease = a_lease(world, *reminders)
        world.run()
        world.clock.to(lease.window.start + HOUR)
        with counted(world.engine) as statements:
            world.run()
        assert len(told(world, lease)) == 1
        return statements.count

    few = tell(after_start(HOUR))
    many = tell(after_start(HOUR), *(after_start(HOUR + n * MINUTE, f"{n}") for n in range(1, 10)))
    assert many <= few


def test_enforcement_is_not_asked_for_a_change_of_reminders(a_world):
    books = RecordingFilter()
    world = a_world(filters=[books])
    lease = a_lease(world)
    before_it = (len(books.asked), books.tries)
    world.change(lease, reminders=(before_end(HOUR),), exact=True)
    world.run()
    assert (len(books.asked), books.tries) == before_it
    assert world.now(lease).reminders == (before_end(HOUR),)
