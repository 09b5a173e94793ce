# SPDX-License-Identifier: Apache-2.0
"""Calls that do not depend on each other, made at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from blazar.clouds import side_by_side as beside
from blazar.clouds.side_by_side import MOST, ask_each, side_by_side
from blazar.context import current, scope
from blazar.model.base.errors import CloudUnavailable


def test_two_calls_are_made_at_the_same_time():
    both = threading.Barrier(2)
    assert side_by_side(lambda: both.wait(10) >= 0, lambda: both.wait(10) >= 0) == (True, True)


def test_each_item_is_asked_in_the_scope_of_the_caller_and_answers_come_in_order():
    met = threading.Barrier(4)

    def ask(item: int) -> tuple[int, str | None]:
        met.wait(10)
        return item, current().request_id

    with scope(request_id="req-1"):
        answers = ask_each({str(n): n for n in range(4)}, ask, callers=4)
    assert list(answers.items()) == [(str(n), (n, "req-1")) for n in range(4)]


def test_no_more_than_the_callers_ask_at_a_time():
    busy, most, lock = 0, 0, threading.Lock()

    def ask(item: int) -> None:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        with lock:
            busy -= 1

    ask_each({str(n): n for n in range(100)}, ask, callers=3)
    assert 1 <= most <= 3


def test_after_an_error_nothing_else_is_asked_and_it_is_raised_when_all_is_over():
    asked: list[int] = []
    met = threading.Barrier(2)
    failed = threading.Event()

    def ask(item: int) -> None:
        asked.append(item)
        met.wait(10)
        if item == 0:
            failed.set()
            raise CloudUnavailable("lost")
        failed.wait(10)

    with pytest.raises(CloudUnavailable, match="lost"):
        ask_each({str(n): n for n in range(2)}, ask, callers=2)
    assert sorted(asked) == [0, 1]
    asked.clear()
    with pytest.raises(ZeroDivisionError):
        ask_each({str(n): n for n in range(5)}, lambda item: asked.append(item) or 1 // 0, callers=1)
    assert asked == [0]


def test_errors_of_either_call_are_raised_when_both_are_over():
    over: list[str] = []

    def fail(name: str) -> None:
        over.append(name)
        raise CloudUnavailable(name)

    for calls in ((lambda: fail("one"), lambda: over.append("other")), (lambda: over.append("one"), lambda: fail("b"))):
        over.clear()
        with pytest.raises(CloudUnavailable):
            side_by_side(*calls)
        # What no helper has begun when the first fails is not made any more.
        assert over


def test_callers_that_take_all_helpers_wait_for_none(monkeypatch):
    """Each of many asks for many, of which each asks for two: without a thread to help, callers go on alone."""
    few = ThreadPoolExecutor(2)
    monkeypatch.setattr(beside, "_HELPERS", few)

    def ask(item: int) -> int:
        return sum(side_by_side(lambda: item, lambda: 1))

    with ThreadPoolExecutor(8) as callers:
        found = callers.map(lambda _: ask_each({str(n): n for n in range(MOST)}, ask, callers=16), range(8))
        assert all(sum(answers.values()) == sum(range(MOST)) + MOST for answers in found)
    few.shutdown()


def test_without_threads_the_caller_makes_all_calls(monkeypatch):
    none = ThreadPoolExecutor(1)
    none.shutdown()
    monkeypatch.setattr(beside, "_HELPERS", none)
    assert ask_each({str(n): n for n in range(9)}, lambda n: n * n, callers=4)["8"] == 64
    assert side_by_side(lambda: 1, lambda: 2) == (1, 2)
