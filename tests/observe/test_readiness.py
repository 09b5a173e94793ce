# SPDX-License-Identifier: Apache-2.0
"""What checks find is remembered, in time, and told to those who may act on it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from blazar.model.base.errors import StoreUnavailable
from blazar.observe import readiness as module
from blazar.observe.readiness import DRAINING, Check, Liveness, Readiness
from blazar.store.sql.engine import ANSWER_SECONDS, CONNECT_SECONDS, LOCK_SECONDS
from tests.openstack import eventually

NOON = datetime(2030, 4, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Thing:
    """Works, or does not, as the test says."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0

    def look(self) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def thing() -> Thing:
    return Thing()


@pytest.fixture
def time() -> list[datetime]:
    return [NOON]


@pytest.fixture
def readiness(thing, time) -> Readiness:
    return Readiness((Check("keystone", thing.look),), now=lambda: time[0])


def test_before_the_first_look_nothing_is_ready_and_nobody_is_asked(readiness, thing):
    assert readiness.explain_refusal() == "keystone: it was not looked at yet"
    assert readiness.list_failures() == ("keystone: it was not looked at yet",)
    assert thing.asked == 0


def test_what_fails_from_the_start_is_a_refusal_and_what_has_worked_once_is_none(readiness, thing, time):
    thing.error = StoreUnavailable("it is\naway")
    readiness.look_at_all()
    assert readiness.explain_refusal() == "keystone: it is away"
    thing.error, time[0] = None, NOON + SECOND
    readiness.look_at_all()
    assert (readiness.explain_refusal(), readiness.list_failures()) == (None, ())
    thing.error, time[0] = RuntimeError("broken"), NOON + 2 * SECOND
    readiness.look_at_all()
    assert (readiness.explain_refusal(), readiness.list_failures()) == (None, ("keystone: RuntimeError: broken",))


def test_a_state_lasts_since_it_began_and_is_as_new_as_the_last_look(readiness, thing, time):
    for second, error in enumerate((None, None, StoreUnavailable("a"), StoreUnavailable("b"))):
        thing.error, time[0] = error, NOON + second * SECOND
        readiness.look_at_all()
        (state,) = readiness.list_states()
        assert state.checked_at == time[0]
    assert (state.since, state.error) == (NOON + 2 * SECOND, "b")
    shown = dict(state.render())
    assert 0 <= shown.pop("ms") < 1000
    assert shown == {
        "name": "keystone",
        "status": "failing",
        "since": "2030-04-01T12:00:02Z",
        "checked_at": "2030-04-01T12:00:03Z",
        "error": "b",
    }


def test_what_does_not_answer_in_time_is_left_and_not_asked_again_before_it_does():
    gate, asked = threading.Event(), []

    def look() -> None:
        asked.append(1)
        assert gate.wait(20)

    slow = Readiness((Check("manager", look),), limit=0.01)
    slow.look_at_all()
    assert slow.explain_refusal() == "manager: there was no answer within 0.01 s"
    slow.look_at_all()
    assert slow.explain_refusal() == "manager: there was no answer within 0.01 s, and there still is none"
    assert len(asked) == 1
    gate.set()
    patient = Readiness((Check("manager", look),), limit=20)
    patient.look_at_all()
    assert patient.explain_refusal() is None


def test_one_that_drains_is_refused_whatever_works(readiness):
    readiness.look_at_all()
    readiness.begin_drain()
    assert readiness.explain_refusal() == DRAINING
    assert readiness.list_failures() == (DRAINING,)


def test_it_looks_by_itself_from_its_start_on_and_once_only(readiness, thing, monkeypatch):
    monkeypatch.setattr(module, "FIRST_INTERVAL", 0.01)
    thing.error = StoreUnavailable("not yet")
    for _ in range(3):
        readiness.start()
    eventually(lambda: thing.asked > 2, patience=5)
    thing.error = None
    eventually(lambda: readiness.explain_refusal() is None, patience=5)
    asked = thing.asked
    assert asked <= thing.asked <= asked + 1
    readiness.stop()


def test_a_process_is_stuck_if_a_thread_stays_in_one_turn_and_not_if_its_turns_fail():
    turns = {"heartbeat": 0.0, "engine": 119.0}
    liveness = Liveness({name: lambda name=name: turns[name] for name in turns})
    assert liveness.list_stuck() == ()
    turns["engine"] = 121.2
    assert liveness.list_stuck() == ("engine has been in one turn for 121 s",)


def test_a_turn_that_waits_for_a_silent_database_makes_no_thread_stuck():
    longest = CONNECT_SECONDS + ANSWER_SECONDS + LOCK_SECONDS
    assert Liveness({"heartbeat": lambda: longest}).list_stuck() == ()
    assert Liveness({"heartbeat": lambda: 2 * longest}).list_stuck() == ("heartbeat has been in one turn for 190 s",)
