# SPDX-License-Identifier: Apache-2.0
"""The deadline until which the caller of a request waits for the answer.

A request may wait in a manager process that is paused. Meanwhile its caller got a timeout, read the state and sent the
request a second time: a manager that then continued with the first one would do the same work twice. The deadline is
kept in a context variable: each thread has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from blazar.model.clock import Clock
from blazar.model.errors import TooLate

_UNTIL: ContextVar[tuple[datetime, Clock] | None] = ContextVar("awaited", default=None)


@contextmanager
def awaited(until: datetime | None, clock: Clock) -> Iterator[None]:
    """Run a request whose caller waits until ``until`` by that clock; None if unknown. TooLate if it has passed."""
    token = _UNTIL.set(None if until is None else (until, clock))
    try:
        check_awaited()
        yield
    finally:
        _UNTIL.reset(token)


def check_awaited() -> None:
    """Raise TooLate if the caller no longer waits. Call it before work begins, and right before it becomes durable."""
    if (known := _UNTIL.get()) is None:
        return
    until, clock = known
    if clock.now() >= until:
        raise TooLate(
            "the manager that took the request could not start it in time, and nothing was done; please try again"
        )


def begun() -> None:
    """Drop the deadline because something durable was done: the rest is finished even if the caller has gone."""
    _UNTIL.set(None)
