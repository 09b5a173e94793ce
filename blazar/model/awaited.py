# SPDX-License-Identifier: Apache-2.0
"""Until when somebody waits for the answer to what is being done.

A request may lie with a manager that stands still, for as long as it does. Its caller has been told by then that
nobody answered, has looked, and has asked again: whoever goes on with the first request does the same thing twice.
Kept in a context variable: each thread has its own.
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
    """Work on a request whose caller waits until then by that clock; None if nobody knows. TooLate if it is over."""
    token = _UNTIL.set(None if until is None else (until, clock))
    try:
        check_awaited()
        yield
    finally:
        _UNTIL.reset(token)


def check_awaited() -> None:
    """Raise TooLate if nobody waits any more; to be called before work begins, and right before it is durable."""
    if (known := _UNTIL.get()) is None:
        return
    until, clock = known
    if clock.now() >= until:
        raise TooLate(
            "the manager that took the request could not begin in time, and nothing was done; please try again"
        )


def begun() -> None:
    """Note that something durable was done: what follows belongs to it, and is finished whoever waits."""
    _UNTIL.set(None)
