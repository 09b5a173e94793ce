# SPDX-License-Identifier: Apache-2.0
"""What follows a round of messages: pauses, dead letters, and how far a receiver counts as told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.subscriptions.rounds import (
    BACK_OFF,
    BETWEEN_REFUSALS,
    HOURLY,
    PATIENCE,
    REFUSALS,
    ReceiverStanding,
    Round,
    Undelivered,
    decide_round,
    pause_after,
)

NOW = datetime(2030, 4, 1, 12, tzinfo=UTC)


def refused(position: int) -> Undelivered:
    return Undelivered(position, f"e-{position}", "blazar.lease.started", "leases/x", "it refuses the message (400)")


def decide(before: ReceiverStanding, result: Round, now: datetime = NOW):
    return decide_round(before, result, now=now, chance=0.5)


def test_what_was_accepted_is_behind():
    found = decide(ReceiverStanding(3, attempts=2, failing_since=NOW - HOURLY), Round(9, accepted=4))
    assert found.standing == ReceiverStanding(9)
    assert (found.pause, found.reason, found.disabled, found.delivered) == (None, None, False, True)


def test_a_receiver_that_cannot_be_reached_is_called_after_longer_and_longer_pauses():
    standing, pauses = ReceiverStanding(3), []
    for _ in range(8):
        found = decide(standing, Round(9, failed=5, failure="it cannot be reached"))
        standing = found.standing
        pauses.append(found.pause)
    assert tuple(pauses) == (*BACK_OFF, HOURLY, HOURLY, HOURLY)
    assert (standing.position, standing.attempts, standing.failing_since) == (4, 8, NOW)


def test_an_hour_has_jitter_and_a_receiver_may_ask_for_a_time_within_an_hour():
    assert pause_after(9, chance=0) == HOURLY * 0.9
    assert pause_after(9, chance=1) == HOURLY * 1.1
    assert pause_after(1, chance=0.5, wanted=timedelta(seconds=90)) == timedelta(seconds=90)
    assert pause_after(1, chance=0.5, wanted=timedelta(days=9)) == HOURLY
    assert pause_after(4, chance=0.5, wanted=timedelta(0)) == BACK_OFF[0]


def test_after_five_days_nothing_is_sent_any_more():
    since = NOW - PATIENCE
    failing = Round(9, failed=5, failure="it cannot be reached")
    assert not decide(ReceiverStanding(3, 9, failing_since=since + timedelta(seconds=1)), failing).disabled
    found = decide(ReceiverStanding(3, 9, failing_since=since), failing)
    assert (found.disabled, found.reason) == (True, "it cannot be reached")
    # One that was accepted begins that time again.
    assert not decide(ReceiverStanding(3, 9, failing_since=since), Round(9, accepted=1, failed=5, failure="x")).disabled


def test_a_receiver_that_wants_nothing_any_more_is_sent_nothing_any_more():
    found = decide(ReceiverStanding(3), Round(9, failed=5, failure="it answered 410", gone=True))
    assert (found.disabled, found.standing.position) == (True, 4)


def test_a_refused_message_is_tried_three_times_in_five_minutes_and_then_given_up():
    standing, pauses = ReceiverStanding(3), []
    for number in range(1, REFUSALS + 1):
        found = decide(standing, Round(9, accepted=2, refused=(refused(5),), held=7))
        standing = found.standing
        pauses.append(found.pause)
        if number < REFUSALS:
            assert (standing.position, found.dead) == (4, ())
    assert tuple(pauses) == (*BETWEEN_REFUSALS, timedelta(0))
    assert sum(BETWEEN_REFUSALS, timedelta(0)) == timedelta(minutes=5)
    assert found.dead == (refused(5),)
    # What waited behind it is next.
    assert (standing.position, standing.refusals) == (6, {})


def test_each_message_has_its_own_tries():
    before = ReceiverStanding(3, refusals={"e-5": 2})
    found = decide(before, Round(9, refused=(refused(5), refused(8))))
    assert found.dead == (refused(5),)
    assert (found.standing.position, found.standing.refusals) == (7, {"e-8": 1})


def test_a_receiver_that_refuses_everything_for_five_days_is_disabled():
    found = decide(ReceiverStanding(3, failing_since=NOW - PATIENCE), Round(9, refused=(refused(5),)))
    assert found.disabled


places = st.none() | st.integers(4, 20)


@given(
    accepted=st.integers(0, 5),
    refusals=st.lists(st.integers(4, 20), unique=True, max_size=4),
    held=places,
    failed=places,
    counts=st.dictionaries(st.integers(4, 20).map("e-{}".format), st.integers(1, 2), max_size=4),
)
def test_nothing_that_is_left_is_passed_over(accepted, refusals, held, failed, counts):
    result = Round(20, accepted, tuple(map(refused, sorted(refusals))), held, failed, "down" if failed else None)
    found = decide(ReceiverStanding(3, refusals=counts), result)
    dead = {message.position for message in found.dead}
    left = {place for place in (held, failed) if place is not None} | set(refusals) - dead
    assert all(place > found.standing.position for place in left)
    assert found.standing.position == (min(left) - 1 if left else 20)
    assert dead <= set(refusals)
    assert (found.pause is None) is (not left)


@pytest.mark.parametrize("reason", ["it cannot be reached", "it did not answer in time"])
def test_the_last_failure_is_what_its_owner_sees(reason):
    assert decide(ReceiverStanding(3), Round(9, failed=5, failure=reason)).reason == reason
    assert decide(ReceiverStanding(3), Round(9, refused=(refused(5),))).reason == "it refuses the message (400)"
