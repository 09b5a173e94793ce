# SPDX-License-Identifier: Apache-2.0
"""What is promised in a window, or over a range: from the kept calendar, or read if that is not kept.

Both answer the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.calendar.kept import OwnUse
from blazar.calendar.occupancy import Occupancy
from blazar.calendar.timeline import Timeline, TimelineTerms, epoch
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.kept import FORGETS, Seen
from blazar.store.calendar.kept_rows import read_own
from blazar.store.calendar.occupancy import read_occupancy
from blazar.store.calendar.timelines import read_timeline


@dataclass(frozen=True, slots=True)
class CalendarLook:
    """A question about one kind at an instant, without what some leases have; of whole resources only, or of parts."""

    kind: ResourceKind
    window: Window
    without_amounts: bool
    now: datetime
    besides: frozenset[str]
    cleaning: timedelta

    @property
    def terms(self) -> TimelineTerms:
        """How a timeline is read for it."""
        return TimelineTerms(epoch(self.now), int(self.cleaning.total_seconds()), self.without_amounts)

    @property
    def span(self) -> tuple[int, int]:
        """The window, in seconds since the epoch."""
        return epoch(self.window.start), epoch(self.window.end)


def look_at_window(seen: Seen, asked: CalendarLook) -> Occupancy:
    """Return what is promised in a window, without the one lease ``besides``; at most one statement."""
    kept = seen.calendars.get(asked.kind)
    if kept is not None:
        return kept.occupancy(*asked.span, asked.terms, _read_own(seen, asked) if asked.besides else ())
    return read_occupancy(
        seen.connection,
        asked.kind,
        asked.window,
        without_amounts=asked.without_amounts,
        now=asked.now,
        besides=next(iter(asked.besides), None),
        cleaning=asked.cleaning,
    )


def look_at_range(seen: Seen, asked: CalendarLook) -> Timeline:
    """Return what is promised over a range; at most one statement."""
    kept = seen.calendars.get(asked.kind)
    if kept is not None:
        return kept.timeline(*asked.span, asked.terms, _read_own(seen, asked) if asked.besides else ())
    return read_timeline(
        seen.connection,
        asked.kind,
        asked.window,
        without_amounts=asked.without_amounts,
        now=asked.now,
        besides=asked.besides,
        cleaning=asked.cleaning,
    )


def _read_own(seen: Seen, asked: CalendarLook) -> tuple[OwnUse, ...]:
    return read_own(seen.connection, asked.kind, asked.besides, epoch(asked.now - FORGETS))
