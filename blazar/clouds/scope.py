"""On whose behalf, and until when, calls to a cloud are made.

Set at the edges (an API request, an event that is worked on) and read by whatever calls out, so that no signature in
between has to carry it. Kept in a context variable: each thread has its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Scope:
    """``request_id`` is passed on to other services as the global request id; ``deadline`` is in monotonic seconds."""

    request_id: str | None = None
    deadline: float | None = None

    def remaining(self) -> float | None:
        """Return the seconds that are left, at least 0; None if there is no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


_CURRENT: ContextVar[Scope] = ContextVar("scope", default=Scope())  # noqa: B039 - Scope is frozen


def current() -> Scope:
    """Return the scope of this thread."""
    return _CURRENT.get()


@contextmanager
def scope(*, request_id: str | None = None, limit: timedelta | None = None) -> Iterator[Scope]:
    """Narrow the scope: a request id of its own, and no later a deadline than ``limit`` from now."""
    outer = _CURRENT.get()
    ends = [outer.deadline] if outer.deadline is not None else []
    if limit is not None:
        ends.append(time.monotonic() + limit.total_seconds())
    inner = Scope(request_id or outer.request_id, min(ends) if ends else None)
    token = _CURRENT.set(inner)
    try:
        yield inner
    finally:
        _CURRENT.reset(token)
