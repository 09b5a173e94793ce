# SPDX-License-Identifier: Apache-2.0
"""Reasons: one for several, how they are stored, and what is read from reasons that are texts only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.model.base.reasons import Cause, Reason, ReasonCode, join_reasons, joint, reason, spell_count
from blazar.model.leases.lease import Event, reason_of, set_reason
from blazar.model.leases.states import EventStatus, EventType
from blazar.model.leases.stored import cause_json, cause_of
from tests.world import NOON

START = Event("e", EventType.START, NOON, EventStatus.UNDONE, NOON)


def test_of_several_reasons_the_first_code_stands_for_all_with_its_numbers():
    given = [
        reason("slow", ReasonCode.RESOURCE_NOT_READY, servers=7),
        Reason("one is down", Cause(ReasonCode.RESOURCE_FAILED, 1).at(3)),
        Reason("two are down", Cause(ReasonCode.RESOURCE_FAILED, 2, until=NOON).at(3, 5)),
    ]
    whole = Cause(ReasonCode.RESOURCE_FAILED, 3, frozenset({3, 5}), NOON)
    assert joint(given) == Reason("slow; one is down; two are down", whole)
    assert join_reasons([None, given[0], None]) == given[0]
    assert join_reasons([None]) is None


@pytest.mark.parametrize("code", ReasonCode)
def test_a_cause_is_stored_and_read_whole(code):
    for cause in (Cause(code), Cause(code, 2, frozenset({4, 1}), NOON)):
        assert cause_of(cause_json(cause, "why: ü"), "why: ü") == cause
    assert cause_json(None, "why") is cause_of(None, "why") is None


def test_a_code_of_a_later_version_is_read_as_the_vaguest():
    later = {**(cause_json(Cause(ReasonCode.SAVE_FAILED), "x") or {}), "code": "strike", "days": 3}
    assert cause_of(later, "x") == Cause(ReasonCode.RESOURCE_NOT_READY)


def test_a_cause_that_an_earlier_manager_left_beside_another_text_does_not_count():
    left = cause_json(Cause(ReasonCode.SERVER_IN_THE_WAY), "host a runs a server")
    assert cause_of(left, "the lease ended before it could start") is cause_of(left, None) is None


def test_an_event_keeps_text_and_cause_together():
    why = reason("lease 7 is late", ReasonCode.PREVIOUS_USER_NOT_LEFT, until=NOON)
    assert reason_of(set_reason(START, why)) == why
    assert set_reason(set_reason(START, why), None) == START
    assert reason_of(START) is None


def test_how_many_there_are_is_said_as_people_say_it():
    assert [spell_count(number, "server") for number in (0, 1, 2)] == ["0 servers", "1 server", "2 servers"]


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("start_lease", "the lease ended before it could start: host a has failed", "lease_ended"),
        ("start_lease", "lease 5 has not released its resources yet; it still has them", "previous_user_not_left"),
        ("start_lease", "the resources that lease 5 released late are being cleaned", "previous_user_not_left"),
        ("start_lease", "host a runs 2 servers that belong to no reservation, as b", "server_in_the_way"),
        ("start_lease", "Quota exceeded for resources: ['floatingip']", "quota_exceeded"),
        ("start_lease", "nova-compute on a is down", "resource_failed"),
        ("start_lease", "Nova refused POST /servers with 400: no", "cloud_refused"),
        ("start_lease", "something else", "resource_not_ready"),
        ("before_end_lease", "not finished at the end of the lease: images being made: 2", "not_finished_at_end"),
        ("before_end_lease", "the lease was ERROR when its before_end event was due", "lease_ended"),
        ("before_end_lease", "no image of server 5: it is SHELVED", "save_failed"),
        ("end_lease", "something else", "cloud_unavailable"),
        ("update_lease", "internal error: KeyError", "internal_error"),
    ],
)
def test_the_code_of_a_reason_without_one_is_told_from_its_words(kind, text, code):
    found = reason_of(replace(START, event_type=kind, reason=text))
    assert found == Reason(text, Cause(ReasonCode(code)))
