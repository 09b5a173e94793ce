# SPDX-License-Identifier: Apache-2.0
"""Calls that do not depend on each other, made at the same time instead of one after the other.

The threads for it are shared by the whole process, and nobody waits for them: a call that none of them has begun is
made by the thread that asked for it, so that work in threads can be shared out once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

MOST = 64
"""Threads that help all others."""

_HELPERS = ThreadPoolExecutor(MOST, thread_name_prefix="beside")


def side_by_side(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Return the results of two calls. Raises the error of the first, else of the second, when both are over."""
    helper = _lend_hand(second)
    try:
        one = first()
    except BaseException:
        _settle(helper)
        raise
    return one, second() if helper.cancel() else helper.result()


def ask_each(items: Mapping[str, A], ask: Callable[[A], B], *, callers: int) -> Mapping[str, B]:
    """Return an answer for each item, by its key and in their order; at most ``callers`` are asked at a time.

    After an error of ``ask`` no other item is asked; it is raised when the calls that have begun are over.
    """
    left, answers = deque(items.items()), dict[str, B]()

    def go_on() -> None:
        while (taken := _take(left)) is not None:
            key, item = taken
            try:
                answers[key] = ask(item)
            except BaseException:
                left.clear()
                raise

    helpers = [_lend_hand(go_on) for _ in range(min(callers, len(items)) - 1)]
    try:
        go_on()
    finally:
        errors = [error for helper in helpers if (error := _settle(helper)) is not None]
    if errors:
        raise errors[0]
    return {key: answers[key] for key in items}


def _take(left: deque[tuple[str, A]]) -> tuple[str, A] | None:
    """Return the next of what is left; None if another thread has taken the last one."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _lend_hand(call: Callable[[], B]) -> Future[B]:
    """Have a helper make a call, with the deadline, the claim and the request id of this thread."""
    helper, here = Future[B](), copy_context()

    def help_out() -> None:
        if not helper.set_running_or_notify_cancel():
            return
        try:
            helper.set_result(here.run(call))
        except BaseException as error:
            helper.set_exception(error)

    # No thread can be started at the limit of processes or memory: one that runs helps, or nobody.
    with suppress(RuntimeError):
        _HELPERS.submit(help_out)
    return helper


def _settle(helper: Future[B]) -> BaseException | None:
    """Return the error of a helper when it is over; one that has not begun never does."""
    return None if helper.cancel() else helper.exception()
