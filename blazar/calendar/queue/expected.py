# SPDX-License-Identifier: Apache-2.0
"""When a request will probably start: earlier than if all leases end as they are booked, as some end early.

Early ends are in no calendar. If they are a tenth of all ends, then as much ends in nine days as the calendar has ends
for ten, and what would take ten days takes nine.
"""

from __future__ import annotations

from collections.abc import Iterable

from blazar.calendar.queue.usage import Piece

LEAST_FORESEEN = 0.9
"""A start is told at most a tenth of the wait earlier: most requests start just when they do if all end as booked."""

LEAST_KNOWN = 20
"""From fewer leases that have ended nothing is concluded."""

EARLY = 0.1
"""An end is early if more than this part of what was booked is left; one a few minutes early tells nothing."""


def foreseen(ended: Iterable[tuple[Piece, int]]) -> float:
    """Return which part of what becomes free does so as booked, of pieces that are over, each with its real end.

    Rounded to percents, so that what is told changes only if that part does, and not below LEAST_FORESEEN; 1 if too
    little is known.
    """
    known, total, early = 0, 0.0, 0.0
    for piece, end in ended:
        known += 1
        total += piece.share
        early += piece.share * (piece.end - end > EARLY * (piece.end - piece.begin))
    return max(round(1 - early / total, 2), LEAST_FORESEEN) if known >= LEAST_KNOWN and total > 0 else 1.0


def expected_start(wish: int, latest: int, part: float) -> int:
    """Return when a request will probably start that wants to at ``wish``, and does at ``latest`` if all end as booked.

    ``part`` is what is ``foreseen``. Whole minutes earlier than ``latest``, and never before ``wish``.
    """
    minutes = round((latest - wish) * (1 - part) / 60)
    return max(latest - minutes * 60, wish) if latest > wish else latest
