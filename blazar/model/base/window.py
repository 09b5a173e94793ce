# SPDX-License-Identifier: Apache-2.0
"""Half-open spans of time, for which resources are promised."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from blazar.model.base.clock import later, zulu
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.values import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The span ``[start, end)`` in UTC with whole seconds; ``end`` is after ``start``.

    Two windows that touch do not overlap: a lease may start at the second in which another ends.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for instant in (self.start, self.end):
            # Nearly all are in this very one: the others are asked.
            if instant.tzinfo is not UTC and instant.utcoffset() != timedelta(0):
                raise ValueError(f"{instant!r} is not in UTC")
            if instant.microsecond:
                raise ValueError(f"{instant!r} is not a whole second")
        if self.end <= self.start:
            raise ValueError(f"the end {self.end} is not after the start {self.start}")

    @property
    def duration(self) -> timedelta:
        """Return the length of the window."""
        return self.end - self.start

    def overlaps(self, other: Window) -> bool:
        """Return whether the two windows share an instant."""
        return self.start < other.end and other.start < self.end

    def contains(self, instant: datetime) -> bool:
        """Return whether the instant lies in the window (its end does not)."""
        return self.start <= instant < self.end

    def covers(self, other: Window) -> bool:
        """Return whether every instant of the other window lies in this one."""
        return self.start <= other.start and other.end <= self.end

    def extended(self, by: timedelta) -> Window:
        """Return the window with its end ``by`` later (for the cleaning time after a use)."""
        return Window(self.start, later(self.end, by))


def enclose(windows: Collection[Window]) -> Window:
    """Return the shortest window that covers all of these; there is one at least."""
    return Window(min(window.start for window in windows), max(window.end for window in windows))


def check_order(start: datetime, end: datetime) -> None:
    """Raise InvalidInput if ``to`` is not after ``from``."""
    if end <= start:
        raise InvalidInput(
            f"to is {zulu(end)}, which is not after from, {zulu(start)}; give a later one",
            code="invalid_window",
            at=query_field("to"),
        )
