# SPDX-License-Identifier: Apache-2.0
"""Threads that do rounds until they are stopped."""

from __future__ import annotations

import threading
import time

import pytest

from blazar.manager.common.background import BackgroundThread
from tests.openstack import eventually

LONG = 60.0


class Rounds(BackgroundThread):
    """Counts its rounds, and does in each what the test says."""

    def __init__(self, act=lambda number: None, *, pause: float = LONG, **more: float) -> None:
        super().__init__("rounds", work="Rounds fail", **more)
        self.pause = pause
        self.act = act
        self.begun: list[float] = []
        self.errors: list[Exception] = []

    def _round(self) -> float:
        self.begun.append(time.monotonic())
        self.act(len(self.begun))
        return self.pause

    def _failed(self, error: Exception) -> float:
        self.errors.append(error)
        return 0.01


@pytest.fixture
def run():
    """Start threads, and stop them in the end."""
    started = []

    def start(thread: Rounds) -> Rounds:
        started.append(thread)
        thread.start()
        return thread

    yield start
    for thread in started:
        thread.stop()


def rounds(thread: Rounds, number: int) -> None:
    eventually(lambda: len(thread.begun) >= number, patience=5)


def test_rounds_follow_each_other_after_a_pause(run):
    rounds(run(Rounds(pause=0.01)), 5)


def test_a_wake_cuts_a_pause_short(run):
    thread = run(Rounds())
    rounds(thread, 1)
    thread.wake()
    rounds(thread, 2)


def test_a_wake_during_a_round_is_not_lost(run):
    thread = Rounds(lambda number: thread.wake() if number == 1 else None)
    rounds(run(thread), 2)
    time.sleep(0.05)
    assert len(thread.begun) == 2


def test_it_survives_what_goes_wrong_in_a_round(run):
    def fail(number):
        if number < 3:
            raise RuntimeError(number)

    thread = run(Rounds(fail))
    rounds(thread, 3)
    assert [error.args for error in thread.errors] == [(1,), (2,)]


def test_the_first_round_can_come_later_and_a_wake_brings_it_forward(run):
    thread = run(Rounds(first_pause=LONG))
    time.sleep(0.05)
    assert not thread.begun
    thread.wake()
    rounds(thread, 1)


def test_after_a_wake_it_waits_so_that_one_round_serves_a_burst(run):
    thread = run(Rounds(settle=0.2))
    rounds(thread, 1)
    woken = time.monotonic()
    thread.wake()
    rounds(thread, 2)
    assert thread.begun[1] - woken >= 0.2


@pytest.mark.parametrize("more", [{}, {"first_pause": LONG}, {"settle": LONG}])
def test_a_stop_waits_for_the_round_in_progress_and_for_no_pause(more):
    in_progress, finish = threading.Event(), threading.Event()

    def work(number):
        in_progress.set()
        finish.wait(5)

    thread = Rounds(work, **more)
    thread.start()
    if "first_pause" not in more:
        assert in_progress.wait(5)
    thread.begin_stop()
    finish.set()
    begun = time.monotonic()
    thread.stop()
    assert time.monotonic() - begun < 5
    assert len(thread.begun) <= 1


def test_one_that_was_never_started_can_be_stopped():
    Rounds().stop()
