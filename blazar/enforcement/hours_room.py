# SPDX-License-Identifier: Apache-2.0
"""What a budget of resource-hours has left for one lease, and what of the lease would fit into it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Protocol

from blazar.model.base.clock import later
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.fits import find_first, find_most
from blazar.model.use.resource_hours import UsageCurve, epoch

Uses = Sequence[tuple[Window, int]]

MOST_STARTS = 60
"""Later starts that are tried: five years of months."""

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


class Period(Protocol):
    """A division of time into periods."""

    has_edges: ClassVar[bool]
    """Whether each period begins where another one ends."""

    @property
    def words(self) -> str:
        """Return what people call one of them."""

    def whole_periods(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""

    def growing_periods(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield the periods that overlap the window and in which usage grows, as far as they can be the worst."""

    def list_starts(self, instants: Collection[int], length: timedelta) -> Iterator[datetime]:
        """Yield starts at which a lease of this length may find more left than before, in any order.

        ``instants`` are those at which the use of others begins or ends, in seconds since the epoch.
        """


@dataclass(frozen=True, slots=True)
class HoursExcess:
    """The fullest period of those that a lease would fill beyond a limit, and its sum."""

    period: Window
    sum: int


@dataclass(frozen=True, slots=True)
class HoursRoom:
    """What a project may use of a measure: in no period more than ``limit``, in the measure times seconds.

    ``others`` is what it uses besides a lease, ``before`` what the lease has without a change.
    """

    period: Period
    limit: int
    others: Uses
    before: Uses = ()

    def find_excess(self, after: Uses, window: Window) -> HoursExcess | None:
        """Return the fullest period that is too full with what a lease has after a change; None: it fits."""
        total = UsageCurve([*self.others, *after])
        growth = UsageCurve([*after, *((span, -amount) for span, amount in self.before)])
        found: HoursExcess | None = None
        for period in self.period.growing_periods(total, growth, window):
            sum_ = total.sum_between(epoch(period.start), epoch(period.end))
            if sum_ > (self.limit if found is None else found.sum):
                found = HoursExcess(period, sum_)
        return found

    def find_longest(self, window: Window, make_uses: Callable[[Window], Uses]) -> timedelta:
        """Return the most whole minutes from the start of a window, which is too long, for which a lease fits.

        ``make_uses`` returns what it has then.
        """

        def is_low(minutes: int) -> bool:
            part = Window(window.start, window.start + minutes * MINUTE)
            return self.find_excess(make_uses(part), part) is None

        return find_most(-(-window.duration // MINUTE), is_low) * MINUTE

    def find_fewer(self, window: Window, count: int) -> int:
        """Return the largest number below ``count`` that fits for a window; 0: none does."""
        return find_most(count, lambda fewer: self.find_excess([(window, fewer)], window) is None)

    def find_later(self, window: Window, uses: Uses, last: datetime) -> datetime | None:
        """Return a later start, up to the last one, at which a new lease fits with all that it uses; None: none.

        A second earlier it does not. What fits into no period may fit into the end of one and the next.
        """

        def moved(start: datetime) -> list[tuple[Window, int]]:
            by = start - window.start
            return [(Window(span.start + by, span.end + by), amount) for span, amount in uses]

        def fits(start: datetime) -> bool:
            return self.find_excess(moved(start), Window(start, later(start, window.duration))) is None

        def fits_until(start: datetime, edge: datetime) -> bool:
            cut = [(Window(span.start, min(span.end, edge)), amount) for span, amount in moved(start)]
            return self.find_excess(cut, Window(start, edge)) is None

        instants = UsageCurve(self.others).instants
        edges = self.period.list_starts([epoch(window.start), *instants], window.duration)
        before = window.start
        for edge in sorted({edge for edge in edges if edge > window.start})[:MOST_STARTS]:
            for start in (*self._list_last_parts(max(before, edge - window.duration), edge, fits_until), edge):
                if start > last:
                    return None
                if fits(start):
                    return find_first(before, start, fits)
                before = start
        return None

    def _list_last_parts(
        self, before: datetime, edge: datetime, fits_until: Callable[[datetime, datetime], bool]
    ) -> Iterator[datetime]:
        """Yield the first start after ``before`` at which what a lease has up to the edge of periods fits, if any.

        Only there it may fit over the edge: later it has more of the next period.
        """
        final = edge - SECOND
        if self.period.has_edges and before < final and fits_until(final, edge):
            yield find_first(before, final, lambda start: fits_until(start, edge))


def add_periods(instants: Collection[int], length: timedelta, days: int) -> Iterator[datetime]:
    """Yield the starts at which rolling periods of ``days`` begin, or cease, to reach each of the instants."""
    for instant in instants:
        gone = datetime.fromtimestamp(instant, UTC) + timedelta(days=days)
        yield gone
        yield gone - length
