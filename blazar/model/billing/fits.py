# SPDX-License-Identifier: Apache-2.0
"""What of a lease that is too dear would cost no more than a maximum. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Protocol

from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import NANO, window_of_month
from blazar.model.billing.hours import split_by_hours
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import QuotedLease
from blazar.model.use.resource_hours import epoch

_SECOND = timedelta(seconds=1)
SEARCHED = timedelta(days=8)
"""How much later a cheaper start is looked for: a week of hours, and what is booked a day ahead."""
MOST_STARTS = 200
"""Starts that are tried."""


class LeaseLimit(Protocol):
    """A limit on what a lease costs by price lists. What is longer, or begins earlier, may be too dear."""

    @property
    def lists(self) -> Sequence[PriceList]:
        """Return the price lists by which it costs."""

    def allows(self, quoted: QuotedLease) -> bool:
        """Return whether a lease costs no more."""


@dataclass(frozen=True, slots=True)
class PriceLimit:
    """The most that a lease may cost, as it is shown: rounded to the decimals of its list."""

    most: Fraction
    lists: Sequence[PriceList]

    def allows(self, quoted: QuotedLease) -> bool:
        """Return whether a lease costs no more."""
        first = quoted.choose_list(self.lists)
        if first is None:
            return True
        unit = 10**first.decimals
        return Fraction(round(Fraction(quoted.sum_nano(self.lists), NANO) * unit), unit) <= self.most


@dataclass(frozen=True, slots=True)
class JointLimit:
    """Several limits, all of which a lease must keep; there is one at least."""

    limits: Sequence[LeaseLimit]

    @property
    def lists(self) -> Sequence[PriceList]:
        """Return the price lists by which it costs, which are those of each limit."""
        return self.limits[0].lists

    def allows(self, quoted: QuotedLease) -> bool:
        """Return whether a lease keeps all limits."""
        return all(limit.allows(quoted) for limit in self.limits)


def find_longest(quoted: QuotedLease, limit: LeaseLimit) -> Window | None:
    """Return the longest window from the start of a lease for which it costs no more; None: not even a second does."""
    start = quoted.window.start

    def is_low(seconds: int) -> bool:
        return limit.allows(replace(quoted, window=Window(start, start + timedelta(seconds=seconds))))

    enough = find_most(int(quoted.window.duration.total_seconds()), is_low)
    return Window(start, start + timedelta(seconds=enough)) if enough else None


def find_most(too_much: int, is_low: Callable[[int], bool]) -> int:
    """Return the largest number below one that costs too much that does not: fewer, or shorter, never costs more."""
    enough = 0
    while too_much - enough > 1:
        middle = (enough + too_much) // 2
        if is_low(middle):
            enough = middle
        else:
            too_much = middle
    return enough


def list_cheaper_starts(quoted: QuotedLease, limit: LeaseLimit) -> Iterator[Window]:
    """Yield later windows of the same length in which a lease costs no more, the earliest first.

    Between two edges of hours the price of a window is linear in its start. So of each stretch between them in which it
    is low enough somewhere, the first second is yielded.
    """
    length = quoted.window.duration
    starts = sorted(_list_starts(quoted, limit.lists))[:MOST_STARTS]

    def is_low(start: datetime) -> bool:
        return limit.allows(replace(quoted, window=Window(start, start + length)))

    before, was_low = quoted.window.start, False
    for start in starts:
        low = is_low(start)
        if low and not was_low:
            cheaper = find_first(before, start, is_low)
            yield Window(cheaper, cheaper + length)
        before, was_low = start, low


def find_first(high: datetime, low: datetime, is_low: Callable[[datetime], bool]) -> datetime:
    """Return the first second after ``high``, which is too dear, from which on it is not, up to ``low``."""
    while low - high > _SECOND:
        middle = high + timedelta(seconds=int((low - high).total_seconds()) // 2)
        if is_low(middle):
            low = middle
        else:
            high = middle
    return low


def _list_starts(quoted: QuotedLease, lists: Sequence[PriceList]) -> set[datetime]:
    """Return the starts at which a price may begin to rise or to fall."""
    first, length = quoted.window.start, quoted.window.duration
    last = first + SEARCHED
    # A limit on what a month costs has another amount left for each.
    month = window_of_month(last.date()).start
    found = {last, month, month - length}
    for prices in lists:
        found |= {quoted.booked_at + timedelta(seconds=entry.below) for entry in prices.lead}
        found |= {prices.valid_from, prices.valid_from - length}
        for shift in (timedelta(0), length):
            found |= {edge - shift for edge in _list_edges(prices, Window(first + shift, last + shift))}
    return {start for start in found if first < start <= last}


def _list_edges(prices: PriceList, window: Window) -> Iterator[datetime]:
    """Yield the instants of a window at which the factor of hours is another one than before."""
    before: Fraction | None = None
    begin, end = epoch(window.start), epoch(window.end)
    for hour in range(begin, end, 3600) if prices.hours else ():
        pieces = split_by_hours(prices.week, prices.zone, hour, min(hour + 3600, end))
        for start, factor in sorted((start, factor) for factor, _, start, _ in pieces):
            if before is not None and factor != before:
                yield datetime.fromtimestamp(start, UTC)
            before = factor
