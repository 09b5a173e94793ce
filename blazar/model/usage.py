# SPDX-License-Identifier: Apache-2.0
"""What a project has at a time, as limits on usage see it, and the outbox messages about leases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from blazar.model.spending import UsageRecord
from blazar.model.window import Window


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """One lease, and the number of whole hosts that are promised to it for its window."""

    lease_id: str
    window: Window
    hosts: int


@dataclass(frozen=True, slots=True)
class ProjectUse:
    """What a project has in a window, as of a version.

    A transaction that grants more to the project raises the version, if it is still the one that was read. So two
    requests that each fit into the rest of a limit cannot both succeed.
    """

    project_id: str
    version: int
    leases: tuple[LeaseUse, ...]
    usage: tuple[UsageRecord, ...] = ()
    """What it has over a longer time, if that was requested: see ``Question``."""
    own_usage: tuple[UsageRecord, ...] = ()


HELD_BY_REQUEST = datetime(9999, 1, 1, tzinfo=UTC)
"""The ``due_at`` of an outbox message that only its own request delivers."""


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """An outbox message about a lease, kept until it is delivered.

    ``content`` is a string that only its writer interprets. ``due_at`` is the time of the next attempt; while a
    delivery is in progress, the time at which its claim expires; and HELD_BY_REQUEST while it belongs to a request in
    progress. ``delivered_to`` names the filters that have it. ``stored``: it is in the database, and is written as an
    update. ``finished``: no attempt follows.
    """

    id: str
    lease_id: str
    content: str
    created_at: datetime
    due_at: datetime
    attempts: int = 0
    delivered_to: tuple[str, ...] = ()
    reason: str | None = None
    stored: bool = False
    finished: bool = False

    @property
    def held(self) -> bool:
        """Return whether it belongs to a request, which delivers it itself and knows the result."""
        return self.due_at == HELD_BY_REQUEST


def peak(window: Window, uses: Iterable[tuple[Window, int]]) -> int:
    """Return the highest sum of amounts at any one instant of a window."""
    steps: list[tuple[datetime, int]] = []
    for use, amount in uses:
        if use.overlaps(window):
            steps += [(max(use.start, window.start), amount), (use.end, -amount)]
    total = highest = 0
    # At one instant ends sort before starts: windows that touch are not added up.
    for _, change in sorted(steps):
        total += change
        highest = max(highest, total)
    return highest


def longest_below(window: Window, uses: Iterable[tuple[Window, int]], most: int) -> Window | None:
    """Return the first of the longest parts of a window in which the sum is never above ``most``."""
    changes: dict[datetime, int] = {window.start: 0, window.end: 0}
    for use, amount in uses:
        if use.overlaps(window):
            begin, end = max(use.start, window.start), min(use.end, window.end)
            changes[begin] = changes.get(begin, 0) + amount
            changes[end] = changes.get(end, 0) - amount
    instants = sorted(changes)
    best: Window | None = None
    begins: datetime | None = None
    total = 0
    for instant, following in zip(instants, instants[1:], strict=False):
        total += changes[instant]
        if total > most:
            begins = None
            continue
        begins = instant if begins is None else begins
        if best is None or following - begins > best.duration:
            best = Window(begins, following)
    return best
