# SPDX-License-Identifier: Apache-2.0
"""What becomes of an event, from what became of each of its reservations."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.manager.events.results import Acted, Failed, Finished, Retry, UnusableResources, result_of
from blazar.model.base.reasons import ReasonCode, reason
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.values import NotYet
from tests.world import NOON

ACTIVE, ERROR, PENDING = ReservationStatus.ACTIVE, ReservationStatus.ERROR, ReservationStatus.PENDING
SOON, LATER = timedelta(seconds=2), timedelta(seconds=9)
ONE, TWO, THREE = (Reservation(name, "physical:host", name, PENDING, NOON) for name in ("one", "two", "three"))
DONE = Acted(ONE, None)
NO = reason("refused", ReasonCode.CLOUD_REFUSED)
REFUSED = Failed(TWO, NO, permanent=True)
UNREACHABLE = Failed(TWO, reason("unreachable", ReasonCode.CLOUD_UNAVAILABLE), permanent=False)


def states(result):
    return {reservation.id: reservation.status for reservation in result.reservations}


def of(*outcomes, then=ACTIVE, tolerant=True):
    return result_of(outcomes, then=then, tolerant=tolerant, now=NOON)


def test_what_succeeded_has_the_next_status_and_its_cloud_ids():
    ids = Content({"aggregate_id": 7})
    result = of(Acted(ONE, ids), Acted(TWO, None))
    assert isinstance(result, Finished)
    assert (states(result), result.error) == ({"one": ACTIVE, "two": ACTIVE}, None)
    assert result.reservations[0].cloud_ids == ids


def test_without_a_next_status_only_new_cloud_ids_are_written():
    ids = Content({"aggregate_id": 7})
    assert of(DONE, then=None) == Finished()
    assert states(of(Acted(ONE, ids), Acted(TWO, None), then=None)) == {"one": PENDING}


def test_a_permanent_failure_is_recorded_where_the_event_goes_on():
    result = of(DONE, REFUSED)
    assert isinstance(result, Finished)
    assert (states(result), result.error) == ({"one": ACTIVE, "two": ERROR}, NO)
    assert of(DONE, REFUSED, then=None) == Finished(error=NO)


@pytest.mark.parametrize(
    ("outcome", "tolerant", "reason"),
    [
        (REFUSED, False, "refused"),
        (UNREACHABLE, True, "unreachable"),
        (UnusableResources(TWO, {5: "host a is down", 7: "host b is down"}), True, "host a is down; host b is down"),
    ],
)
def test_other_failures_are_retried_with_the_usual_back_off_and_keep_what_succeeded(outcome, tolerant, reason):
    result = of(DONE, outcome, tolerant=tolerant)
    assert isinstance(result, Retry)
    assert (states(result), result.reason.text, result.after) == ({"one": ACTIVE}, reason, None)


def test_where_the_cloud_is_still_working_the_shortest_wait_counts_unless_something_failed():
    result = of(NotYet(LATER, "slow"), DONE, NotYet(SOON, "soon"))
    waits = reason("slow; soon", ReasonCode.RESOURCE_NOT_READY)
    assert result == Retry(waits, SOON, result.reservations)
    assert of(NotYet(LATER, "slow"), UNREACHABLE).after is None
    assert of(NotYet(LATER, "slow"), REFUSED).after == LATER


def test_reasons_of_what_is_given_up_come_before_those_of_what_is_retried():
    result = of(NotYet(LATER, "slow"), replace(UNREACHABLE, reservation=THREE), REFUSED)
    assert result.reason == reason("refused; slow; unreachable", ReasonCode.CLOUD_REFUSED)
