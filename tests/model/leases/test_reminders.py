# SPDX-License-Identifier: Apache-2.0
"""Reminders: when they are told as the dates of a lease move, and how they are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.manager.events.reminding import tell_next
from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reminders import (
    MOST_REMINDERS,
    Anchor,
    Reminder,
    accept,
    check_recurring,
    find_next,
    find_told_reminder,
    join,
    reminders_json,
    reminders_of,
    skip_past,
    spell_duration,
)
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus

NOON = datetime(2030, 4, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = Window(NOON, NOON + 24 * HOUR)

hours = st.integers(0, 40).map(lambda n: NOON + n * HOUR)
windows = st.tuples(hours, st.integers(1, 30)).map(lambda w: Window(w[0], w[0] + w[1] * HOUR))
reminders = st.builds(
    lambda at, anchor, text: Reminder(at, text, None if isinstance(at, datetime) else anchor),
    st.one_of(hours, st.integers(-20, 20).filter(bool).map(lambda n: n * HOUR)),
    st.sampled_from(Anchor),
    st.text("ab", min_size=1, max_size=2),
)
lists = st.lists(reminders, max_size=5, unique=True)


def before_end(length: timedelta, text: str = "save it") -> Reminder:
    return Reminder(-length, text, Anchor.END)


def a_lease(*asked: Reminder, window: Window = DAY, status: LeaseStatus = LeaseStatus.ACTIVE) -> Lease:
    return Lease("l", "n", "u", "p", window, status, NOON, reminders=asked)


def moment_of(reminder: Reminder, window: Window) -> datetime:
    """When it is told, said in another way than the code."""
    if isinstance(reminder.at, datetime):
        return reminder.at
    return {Anchor.START: window.start, Anchor.END: window.end}[reminder.anchor] + reminder.at


@given(asked=lists, moves=st.lists(st.tuples(st.integers(0, 3), windows), min_size=1, max_size=6))
def test_whatever_moves_each_is_told_once_for_each_time_that_it_comes_to(asked, moves):
    """Hour by hour, with the window moved in between: an oracle that keeps the last time told of each reminder."""
    now, last = NOON - HOUR, dict.fromkeys(asked)
    lease = a_lease(*asked, window=moves[0][1]).with_reminder_due
    for passing, window in moves:
        lease = replace(lease, window=window).with_reminder_due
        for _ in range(passing * 7 + 1):
            expected = []
            for reminder in asked:
                moment = moment_of(reminder, window)
                new = last[reminder] is None or last[reminder] < moment
                if moment <= now and moment < window.end and new:
                    expected.append((moment, reminder))
                    last[reminder] = now
            told = []
            while (due := lease.event(EventType.REMIND)) is not None and due.due_at is not None and due.due_at <= now:
                after = tell_next(lease, now)
                told.append(find_told_reminder(lease.reminders, after.reminders).fresh)
                lease = replace(after, events=(replace(due, due_at=None),)).with_reminder_due
            assert told == [reminder for _, reminder in sorted(expected, key=lambda pair: pair[0])]
            now += HOUR
    assert {reminder.fresh: reminder.sent_at for reminder in lease.reminders} == last


@given(asked=lists, window=windows, now=hours)
def test_the_event_is_due_at_the_earliest_time_that_is_to_come_or_was_missed(asked, window, now):
    moments = [moment_of(reminder, window) for reminder in asked]
    due = a_lease(*asked, window=window).with_reminder_due.event(EventType.REMIND)
    assert (due and due.due_at) == min((moment for moment in moments if moment < window.end), default=None)
    # A lease of a series is made with some that are past: these are not told.
    skipped = a_lease(*skip_past(asked, window, now), window=window).with_reminder_due.event(EventType.REMIND)
    assert (skipped and skipped.due_at) == min((m for m in moments if now < m < window.end), default=None)


@given(asked=lists, window=windows, now=hours)
def test_what_is_asked_for_is_taken_if_its_time_is_to_come_before_the_end(asked, window, now):
    fits = [now < moment_of(reminder, window) < window.end for reminder in asked]
    if all(fits):
        assert accept(asked, window, now) == tuple(asked)
        return
    first = fits.index(False)
    with pytest.raises(InvalidInput, match=rf"reminders\[{first}\] would be at .*; give a time") as refused:
        accept(asked, window, now)
    assert refused.value.pointer == f"/reminders/{first}/at"
    # One that the lease has may be sent back, however late it is.
    assert accept(asked, window, now, tuple(asked)) == tuple(asked)


@given(asked=lists, recurring=st.lists(windows, min_size=1, max_size=4))
def test_one_of_a_series_is_refused_only_if_no_lease_would_tell_it(asked, recurring):
    never = [all(moment_of(reminder, window) >= window.end for window in recurring) for reminder in asked]
    if not any(never):
        check_recurring(asked, recurring)
        return
    with pytest.raises(InvalidInput, match="after the end of each lease of the series") as refused:
        check_recurring(asked, recurring)
    assert refused.value.pointer == f"/reminders/{never.index(True)}/at"


@given(st.lists(st.tuples(reminders, st.none() | hours, st.none() | hours), max_size=4))
def test_they_are_kept_as_they_are(asked):
    kept = tuple(replace(reminder, sent_at=sent, skipped_at=skipped) for reminder, sent, skipped in asked)
    assert reminders_of(reminders_json(kept)) == kept


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(days=1), "P1D"),
        (timedelta(hours=26), "P1DT2H"),
        (timedelta(minutes=90), "PT1H30M"),
        (timedelta(seconds=5), "PT5S"),
    ],
)
def test_a_length_is_spelled_with_days_of_24_hours(length, text):
    assert spell_duration(length) == text


def test_one_that_was_told_is_told_again_if_its_time_moves_on():
    lease = a_lease(before_end(2 * HOUR)).with_reminder_due
    told = tell_next(lease, DAY.end - 2 * HOUR)
    assert find_told_reminder(lease.reminders, told.reminders) is not None
    longer = replace(told, window=Window(NOON, DAY.end + HOUR))
    assert find_next(longer.reminders, longer.window) is not None
    shorter = replace(told, window=Window(NOON, DAY.end - HOUR))
    assert find_next(shorter.reminders, shorter.window) is None


@pytest.mark.parametrize("status", LeaseStatus)
def test_nothing_is_due_of_leases_that_wait_change_or_are_given_up(status):
    told = {
        LeaseStatus.PENDING,
        LeaseStatus.STARTING,
        LeaseStatus.ACTIVE,
        LeaseStatus.TERMINATING,
        LeaseStatus.TERMINATED,
    }
    lease = a_lease(before_end(HOUR), status=status)
    due = lease.with_reminder_due.event(EventType.REMIND)
    assert (due.due_at is not None) is (status in told)
    for reason in EndReason:
        ended = replace(lease, end_reason=reason).with_reminder_due.event(EventType.REMIND)
        assert (ended.due_at is not None) is (status in told and reason is EndReason.ENDED)
    gone = replace(lease, deleted_at=NOON).with_reminder_due
    failed = replace(lease, events=(Event("s", EventType.START, NOON, EventStatus.ERROR, NOON),)).with_reminder_due
    assert (gone.event(EventType.REMIND).due_at, failed.event(EventType.REMIND).due_at) == (None, None)


def test_what_somebody_works_on_and_what_waits_stays_as_it_is():
    lease = a_lease(before_end(HOUR)).with_reminder_due
    due = lease.event(EventType.REMIND)
    for event in (replace(due, claimed_by="m", due_at=NOON), replace(due, due_at=due.time + HOUR)):
        held = replace(lease, events=(event,))
        assert held.with_reminder_due == held
    moved = replace(lease, events=(replace(due, due_at=due.time + HOUR),), window=Window(NOON, NOON + HOUR * 9))
    assert moved.with_reminder_due.event(EventType.REMIND).due_at == NOON + 8 * HOUR


def test_two_leases_that_become_one_have_what_both_had_once():
    one, other = [before_end(n * HOUR) for n in range(1, 8)], [before_end(n * HOUR) for n in range(5, 15)]
    joined = join([replace(one[0], sent_at=NOON), *one[1:]], other)
    assert joined == (replace(one[0], sent_at=NOON), *one[1:], *other[3:6])
    assert len(joined) == MOST_REMINDERS
