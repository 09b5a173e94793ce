# SPDX-License-Identifier: Apache-2.0
"""Rating: what the use of a lease costs, computed from facts. Pure, exact, in whole seconds of UTC.

The same function makes quotes and bills: a quote is the bill of a lease that nobody touches. A span is cut wherever a
price may change, and what has the same price in a month is added up before it is rounded. So it makes no difference
into how many uses a span was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

from blazar.model.base.clock import later
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import (
    WHOLE,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    multiply,
    price_seconds,
    take_share,
)
from blazar.model.billing.hours import split_by_hours
from blazar.model.billing.price_lists import PriceList, find_list
from blazar.model.use.resource_hours import epoch

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class BookedPart:
    """What a lease has from ``since`` on, until the next part, and when that was booked.

    The first part begins with the lease, each extension is one more. After a transfer the prices are those that were
    published at ``listed_at``; None: when it was booked. ``moved``: when its begin was given back, and what that was.
    """

    since: datetime
    booked_at: datetime
    listed_at: datetime | None = None
    moved: tuple[tuple[datetime, datetime], ...] = ()

    def start_at(self, since: datetime, at: datetime) -> BookedPart:
        """Return the part without what it has before an instant, if that is later than its begin; given back then."""
        return replace(self, since=since, moved=(*self.moved, (at, self.since))) if since > self.since else self

    def lead_on(self, before: Sequence[BookedPart], at: datetime) -> BookedPart:
        """Return the part without those ``before`` it, which were given back at an instant.

        What was added to it while there were some of them was booked from the first of these on.
        """
        moved, begin = self.moved or ((self.booked_at, self.since),), self.since
        for part in reversed(before):
            if part.booked_at > moved[-1][0]:
                moved = (*moved, (part.booked_at, begin))
            begin = part.since
        return replace(self, moved=(*moved, (at, begin)))

    def add_at(self, added_at: datetime, begin: datetime) -> BookedPart:
        """Return what was added to the part at an instant, of all that was added then from ``begin`` on."""
        return replace(self, booked_at=added_at, moved=() if begin == self.since else ((added_at, begin),))

    def find_begin(self, at: datetime) -> datetime:
        """Return when the part began for what was booked at an instant."""
        if not self.moved:
            return self.since
        # What a change of the same second has added to it has the new begin; the part itself was there before.
        begins = (begin for moved_at, begin in self.moved if at < moved_at or at == self.booked_at)
        return next(begins, self.since)

    @property
    def lead(self) -> int:
        """Return the seconds from its booking to the begin that it had then: what is kept keeps its lead."""
        return max(0, epoch(self.find_begin(self.booked_at)) - epoch(self.booked_at))


JoinedParts = Mapping[tuple[str, datetime | None], tuple[BookedPart, ...]]
"""The parts of what was of another lease: of all that a reservation has (None), or of what of it was booked then.

The latter say themselves when each of them was booked.
"""


def list_parts_of(
    joined: JoinedParts, parts: Sequence[BookedPart], reservation_id: str, added_at: datetime | None
) -> tuple[BookedPart, ...]:
    """Return the parts of what a reservation has since an instant, each of which says itself when that was booked.

    ``parts`` are those of its lease.
    """
    if added_at is None and not joined:
        return tuple(parts)
    if exact := joined.get((reservation_id, added_at)):
        return exact
    known = tuple(joined.get((reservation_id, None), parts))
    first = None if added_at is None else next((one for one in known if one.booked_at <= added_at), None)
    if added_at is None or first is None:
        return known
    # It was booked for all that there was then, so its lead is to the begin of that.
    begin = first.find_begin(added_at)
    return tuple(part.add_at(added_at, begin) if part.booked_at < added_at else part for part in known)


@dataclass(frozen=True, slots=True)
class ChargeTerms:
    """For whom a lease is rated, its parts in their order, and the spans in which nobody used it, without overlaps.

    ``joined`` are the parts of what was of another lease.
    """

    project_id: str
    parts: tuple[BookedPart, ...]
    unused: tuple[Window, ...] = ()
    joined: JoinedParts = field(default_factory=dict)

    @property
    def start(self) -> datetime:
        """Return when the lease starts by its booking."""
        return self.parts[0].since

    def list_parts_of(self, use: PricedUse) -> tuple[BookedPart, ...]:
        """Return the parts of a use."""
        return list_parts_of(self.joined, self.parts, use.reservation_id, use.added_at)


@dataclass(frozen=True, slots=True)
class PricedUse:
    """An amount of one sku that a reservation has for a window; what differs by its amount only is best one use.

    ``booked_amount`` is how many of the measure the reservation was booked with. ``added_at``: it was added to the
    lease then. Until ``handed_over_at`` it is late, in ``outages`` it is missing. ``rounded_from`` is the start of its
    reservation, if that ends with the window: then its time is rounded up. ``given_back_at``: it was promised for this
    window, and given back then. ``kept`` is what its reservation keeps before what is given back.
    """

    reservation_id: str
    sku: str
    booked_amount: int
    window: Window
    added_at: datetime | None = None
    handed_over_at: datetime | None = None
    outages: tuple[Window, ...] = ()
    rounded_from: datetime | None = None
    given_back_at: datetime | None = None
    kept: Window | None = None
    amount: int = field(kw_only=True)


def sum_uses(amounts: Iterable[tuple[tuple[Any, ...], int]]) -> list[PricedUse]:
    """Return uses of amounts, each given with all else that a use has, in its order; those that have the same are one.

    To compare what a use is made of costs less than to make each.
    """
    found: dict[tuple[Any, ...], int] = {}
    for key, amount in amounts:
        found[key] = found.get(key, 0) + amount
    return [PricedUse(*key, amount=amount) for key, amount in found.items()]


@dataclass(slots=True)
class RatedTime:
    """The time of a line: what all of it has in common, how much it is, and the instants between which it is.

    The month is counted from the begin of the calendar.
    """

    month: int
    reservation_id: str
    sku: str
    category: ChargeCategory
    status: ChargeStatus
    version: int | None
    unit_nano: int
    factor: Fraction
    resource_seconds: int
    start: int
    end: int

    @property
    def nano(self) -> int:
        """Return what it costs."""
        if self.category is ChargeCategory.FREE:
            return 0
        return price_seconds(self.unit_nano, self.factor, self.resource_seconds)

    def make_line(self) -> ChargeLine:
        """Return the line of it."""
        window = Window(datetime.fromtimestamp(self.start, UTC), datetime.fromtimestamp(self.end, UTC))
        head = window, self.category, self.status, self.nano, self.reservation_id, self.sku
        return ChargeLine(*head, self.version, self.unit_nano, self.factor, self.resource_seconds)


def rate(uses: Iterable[PricedUse], lists: Sequence[PriceList], terms: ChargeTerms) -> tuple[ChargeLine, ...]:
    """Return the lines of these uses, in the order of their windows.

    What is not charged has a line with the amount 0 that says why; but none if it was given back.
    """
    return tuple(time.make_line() for time in rate_times(uses, lists, terms))


def rate_times(uses: Iterable[PricedUse], lists: Sequence[PriceList], terms: ChargeTerms) -> Sequence[RatedTime]:
    """Return the time of each line of these uses, as ``rate`` does."""
    sums: dict[tuple[object, ...], RatedTime] = {}
    for use in uses:
        for time in _rate_use(use, lists, terms):
            of_line = time.month, time.reservation_id, time.sku, time.category, time.status, time.version
            # The hash of a fraction costs more than all others together.
            key = *of_line, time.unit_nano, *time.factor.as_integer_ratio()
            if (known := sums.setdefault(key, time)) is not time:
                known.resource_seconds += time.resource_seconds
                known.start, known.end = min(known.start, time.start), max(known.end, time.end)
    return sorted(sums.values(), key=_sort_key) if len(sums) > 1 else list(sums.values())


def rate_fee(
    lists: Sequence[PriceList], terms: ChargeTerms, *, given_back_at: datetime | None = None
) -> ChargeLine | None:
    """Return the fee of a lease that starts, or the share of it that its cancellation costs; None: there is none."""
    if (due := _find_fee(lists, terms, given_back_at)) is None:
        return None
    found, share = due
    category, status = ChargeCategory.FEE, ChargeStatus.USED
    if given_back_at is not None:
        category, status = ChargeCategory.CANCELLATION, ChargeStatus.UNUSED
    window = Window(terms.start, terms.start + _SECOND)
    nano = take_share(found.fee, share)
    return ChargeLine(window, category, status, nano, None, None, found.version, found.fee, share)


def price_fee(lists: Sequence[PriceList], terms: ChargeTerms, *, given_back_at: datetime | None = None) -> int:
    """Return the amount of the line that ``rate_fee`` returns, 0 if there is none."""
    due = _find_fee(lists, terms, given_back_at)
    return 0 if due is None else take_share(due[0].fee, due[1])


def _find_fee(
    lists: Sequence[PriceList], terms: ChargeTerms, given_back_at: datetime | None
) -> tuple[PriceList, Fraction] | None:
    """Return the list whose fee is due, and the share of it; None: there is none."""
    part = terms.parts[0]
    found = find_list(lists, part.listed_at or part.booked_at, part.since)
    if found is None or not found.fee:
        return None
    share = WHOLE
    if given_back_at is not None:
        share = found.find_share(epoch(part.since) - epoch(given_back_at))
    return (found, share) if share else None


def _rate_use(use: PricedUse, lists: Sequence[PriceList], terms: ChargeTerms) -> list[RatedTime]:
    parts = terms.list_parts_of(use)
    if use.kept is not None:
        start = max(use.window.start, _find_rounded_end(use.kept, parts, lists))
        if start >= use.window.end:
            return []
        use = replace(use, window=Window(start, use.window.end))
    times: list[RatedTime] = []
    for begin, over in pairwise(list_cuts(use, parts, lists, terms)):
        part = find_part(parts, begin)
        found = find_list_of(part, begin, lists)
        times += _rate_span(use, begin, over, part, found, terms)
    if use.rounded_from is not None and found is not None:
        times += _round_up(use, use.rounded_from, part, found, terms)
    return times


def _round_up(
    use: PricedUse, begin: datetime, part: BookedPart, found: PriceList, terms: ChargeTerms
) -> Iterator[RatedTime]:
    """Yield the seconds by which the time of a reservation is rounded up, at the price of its last second."""
    end = use.window.end
    seconds = epoch(end) - epoch(begin)
    if not (more := found.round_time(seconds) - seconds):
        return
    for time in _rate_span(use, end - _SECOND, end, part, found, terms):
        if time.category is not ChargeCategory.FREE:
            time.resource_seconds = use.amount * more
            if use.given_back_at is None:
                time.category = ChargeCategory.ROUNDING_UP
            yield time


def _find_rounded_end(kept: Window, parts: Sequence[BookedPart], lists: Sequence[PriceList]) -> datetime:
    """Return until when what is kept is charged, its time rounded up: for that nobody pays as given back, too."""
    last = kept.end - _SECOND
    found = find_list_of(find_part(parts, last), last, lists)
    seconds = epoch(kept.end) - epoch(kept.start)
    return kept.end if found is None else later(kept.start, timedelta(seconds=found.round_time(seconds)))


def find_part(parts: Sequence[BookedPart], instant: datetime) -> BookedPart:
    """Return the part to which an instant belongs; what comes before the first belongs to that."""
    return next((part for part in reversed(parts) if part.since <= instant), parts[0])


def find_list_of(part: BookedPart, instant: datetime, lists: Sequence[PriceList]) -> PriceList | None:
    """Return the list by which a part of a lease is charged at an instant."""
    return find_list(lists, max(part.listed_at or part.booked_at, part.booked_at), instant)


def list_cuts(
    use: PricedUse, parts: Sequence[BookedPart], lists: Sequence[PriceList], terms: ChargeTerms
) -> Sequence[datetime]:
    """Return the instants between which a use has one rate, but for the hours of the day; with its begin and end."""
    start, end = use.window.start, use.window.end
    edges = [one.valid_from for one in lists]
    edges += [part.since for part in parts]
    for span in (*terms.unused, *use.outages):
        edges += (span.start, span.end)
    if use.handed_over_at is not None:
        edges.append(use.handed_over_at)
    for month in range(count_months(start) + 1, count_months(end) + 1):
        edges.append(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC))
    return sorted({start, end, *(edge for edge in edges if start < edge < end)})


def _rate_span(
    use: PricedUse, begin: datetime, over: datetime, part: BookedPart, found: PriceList | None, terms: ChargeTerms
) -> list[RatedTime]:
    """Return the time of a span in which only the hours of the day change the price; none of what costs no share."""
    price = None if found is None else found.find_price(use.sku)
    start, end = epoch(begin), epoch(over)
    of_line = count_months(begin), use.reservation_id, use.sku
    if found is None or price is None:
        if use.given_back_at is not None:
            return []
        unpriced = ChargeCategory.FREE, ChargeStatus.UNPRICED, None if found is None else found.version
        return [RatedTime(*of_line, *unpriced, 0, WHOLE, (end - start) * use.amount, start, end)]
    category, status, share = _find_category(use, begin, found, terms)
    if use.given_back_at is not None and not share:
        return []
    factor = multiply(found.find_booking_factor(terms.project_id, part.lead, use.booked_amount), share)
    of_price = *of_line, category, status, found.version, price.unit_nano
    return [
        RatedTime(*of_price, multiply(factor, of_hours), seconds * use.amount, first, last)
        for of_hours, seconds, first, last in split_by_hours(found.week, found.zone, start, end)
    ]


def _find_category(
    use: PricedUse, instant: datetime, found: PriceList, terms: ChargeTerms
) -> tuple[ChargeCategory, ChargeStatus, Fraction]:
    """Return as what a use is charged at an instant, and the share of its price."""
    if use.given_back_at is not None:
        ahead = epoch(terms.start) - epoch(use.given_back_at)
        category = ChargeCategory.CANCELLATION if ahead > 0 else ChargeCategory.EARLY_RETURN
        return category, ChargeStatus.UNUSED, found.find_share(ahead)
    if found.late_is_free and use.handed_over_at is not None and instant < use.handed_over_at:
        return ChargeCategory.FREE, ChargeStatus.LATE, WHOLE
    if use.outages and found.lost_is_free and any(outage.contains(instant) for outage in use.outages):
        return ChargeCategory.FREE, ChargeStatus.LOST, WHOLE
    if terms.unused and any(span.contains(instant) for span in terms.unused):
        return ChargeCategory.USAGE, ChargeStatus.UNUSED, found.unused
    return ChargeCategory.USAGE, ChargeStatus.USED, WHOLE


def _sort_key(time: RatedTime) -> tuple[int, str, str, str, str, Fraction]:
    return time.start, time.reservation_id, time.sku, time.category, time.status, time.factor


def count_months(instant: datetime) -> int:
    """Return the months from the begin of the calendar to that of an instant."""
    return 12 * instant.year + instant.month - 1
