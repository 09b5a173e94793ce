# SPDX-License-Identifier: Apache-2.0
"""What a project has of the cloud at a time: what limits on usage are held against, and what is told about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from blazar.model.spending import UsageRecord
from blazar.model.window import Window


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """One lease, and how many whole hosts are promised to it for its window."""

    lease_id: str
    window: Window
    hosts: int


@dataclass(frozen=True, slots=True)
class ProjectUse:
    """What a project holds in a window, as of a version.

    Whoever grants more to the project raises the version where it is still the one read, so that two requests that
    each fit into what is left of a limit can not both have it.
    """

    project_id: str
    version: int
    leases: tuple[LeaseUse, ...]
    usage: tuple[UsageRecord, ...] = ()
    """What it holds over a longer time, if that was asked for: see ``Question``."""
    own_usage: tuple[UsageRecord, ...] = ()


HELD = datetime(9999, 1, 1, tzinfo=UTC)
"""When nobody but its request tells a notice."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about a lease that somebody is to be told, kept until that is done.

    ``content`` is text that only its writer reads. ``due_at`` is when to try (again); while somebody tries, it is when
    others may, should he die; and HELD for what belongs to a request that is under way. ``told`` names those who know
    already. ``stored``: it is in the database, and written as a change of that; ``over``: it needs no more work.
    """

    id: str
    lease_id: str
    content: str
    created_at: datetime
    due_at: datetime
    attempts: int = 0
    told: tuple[str, ...] = ()
    reason: str | None = None
    stored: bool = False
    over: bool = False

    @property
    def held(self) -> bool:
        """Tell whether it belongs to a request, which tells it itself and knows what came of it."""
        return self.due_at == HELD


def peak(window: Window, uses: Iterable[tuple[Window, int]]) -> int:
    """Return the highest sum of amounts at any one instant of a window."""
    steps: list[tuple[datetime, int]] = []
    for use, amount in uses:
        if use.overlaps(window):
            steps += [(max(use.start, window.start), amount), (use.end, -amount)]
    total = highest = 0
    # At one instant ends come before starts: windows that touch never add up.
    for _, change in sorted(steps):
        total += change
        highest = max(highest, total)
    return highest


def longest_below(window: Window, uses: Iterable[tuple[Window, int]], most: int) -> Window | None:
    """Return the longest part of a window, the first of those, in which the sum is never above ``most``."""
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
