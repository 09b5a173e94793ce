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
from operator import attrgetter

from blazar.model.base.clock import later
from blazar.model.base.values import dataclass, field, fields, replace
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

    def list_parts(self, reservation_id: str, added_at: datetime | None) -> tuple[BookedPart, ...]:
        """Return the parts of what a reservation has since an instant, as ``list_parts_of`` does."""
        return list_parts_of(self.joined, self.parts, reservation_id, added_at)

    def find_part(self, instant: datetime, use: PricedUse) -> BookedPart:
        """Return the part of a use to which an instant belongs; what comes before the first belongs to that."""
        parts = self.list_parts(use.reservation_id, use.added_at)
        for part in reversed(parts):
            if part.since <= instant:
                return part
        return parts[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedUse:
    """An amount of one sku that a reservation has for a window.

    ``booked_amount`` is how many of the measure the reservation was booked with. ``added_at``: it was added to the
    lease then. Until ``handed_over_at`` it is late, in ``outages`` it is missing. ``given_back_at``: it was promised
    for this window, and given back then. ``rounded_from`` is the start of its reservation, if that ends with the
    window: then its time is rounded up. ``kept`` is what its reservation keeps before what is given back.
    """

    reservation_id: str
    sku: str
    amount: int
    booked_amount: int
    window: Window
    added_at: datetime | None = None
    handed_over_at: datetime | None = None
    outages: tuple[Window, ...] = ()
    given_back_at: datetime | None = None
    rounded_from: datetime | None = None
    kept: Window | None = None


_BESIDES_AMOUNT = attrgetter(*(one.name for one in fields(PricedUse) if one.name != "amount"))
"""A tuple of all that a use has besides its amount: to copy the use without that costs more than all else here."""


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
    for use, amount in _add_alike(tuple(uses)):
        for time in _rate_use(use, lists, terms):
            of_line = time.month, time.reservation_id, time.sku, time.category, time.status, time.version
            # The hash of a fraction costs more than all others together.
            key = *of_line, time.unit_nano, *time.factor.as_integer_ratio()
            time.resource_seconds *= amount
            if (known := sums.get(key)) is None:
                sums[key] = time
                continue
            known.resource_seconds += time.resource_seconds
            known.start, known.end = min(known.start, time.start), max(known.end, time.end)
    return sorted(sums.values(), key=_sort_key)


def _add_alike(uses: Sequence[PricedUse]) -> Iterable[tuple[PricedUse, int]]:
    """Return uses with their amounts, of those that differ by these only the first one, with the sum."""
    if len(uses) == 1 or len({(use.reservation_id, use.sku) for use in uses}) == len(uses):
        return [(use, use.amount) for use in uses]
    found: dict[tuple[object, ...], tuple[PricedUse, int]] = {}
    for use in uses:
        first, amount = found.get(key := _BESIDES_AMOUNT(use), (use, 0))
        found[key] = first, amount + use.amount
    return found.values()


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


def _rate_use(use: PricedUse, lists: Sequence[PriceList], terms: ChargeTerms) -> Iterator[RatedTime]:
    if use.kept is not None:
        start = max(use.window.start, _find_rounded_end(use, use.kept, lists, terms))
        if start >= use.window.end:
            return
        use = replace(use, window=Window(start, use.window.end))
    cuts = list_cuts(use, lists, terms)
    for begin, over in pairwise(cuts):
        yield from _rate_span(use, begin, over, lists, terms)
    if use.rounded_from is not None:
        yield from _round_up(use, use.rounded_from, lists, terms)


def _round_up(use: PricedUse, begin: datetime, lists: Sequence[PriceList], terms: ChargeTerms) -> Iterator[RatedTime]:
    """Yield the seconds by which the time of a reservation is rounded up, at the price of its last second."""
    end, seconds = epoch(use.window.end), epoch(use.window.end) - epoch(begin)
    found = find_list_of(use, use.window.end - _SECOND, lists, terms)
    if found is None or not (more := found.round_time(seconds) - seconds):
        return
    for last in _rate_span(use, end - 1, end, lists, terms):
        if last.category is not ChargeCategory.FREE:
            category = ChargeCategory.ROUNDING_UP if use.given_back_at is None else last.category
            yield replace(last, category=category, resource_seconds=more)


def _find_rounded_end(use: PricedUse, kept: Window, lists: Sequence[PriceList], terms: ChargeTerms) -> datetime:
    """Return until when what is kept is charged, its time rounded up: for that nobody pays as given back, too."""
    found = find_list_of(use, kept.end - _SECOND, lists, terms)
    seconds = epoch(kept.end) - epoch(kept.start)
    return kept.end if found is None else later(kept.start, timedelta(seconds=found.round_time(seconds)))


def find_list_of(use: PricedUse, instant: datetime, lists: Sequence[PriceList], terms: ChargeTerms) -> PriceList | None:
    """Return the list by which a use is charged at an instant."""
    return _find_list_of_part(terms.find_part(instant, use), instant, lists)


def _find_list_of_part(part: BookedPart, instant: datetime, lists: Sequence[PriceList]) -> PriceList | None:
    return find_list(lists, max(part.listed_at or part.booked_at, part.booked_at), instant)


def list_cuts(use: PricedUse, lists: Sequence[PriceList], terms: ChargeTerms) -> Sequence[int]:
    """Return the instants between which a use has one rate, but for the hours of the day; with its begin and end."""
    start, end = use.window.start, use.window.end
    edges = {epoch(start), epoch(end)}
    for one in lists:
        if start < one.valid_from < end:
            edges.add(epoch(one.valid_from))
    for part in terms.list_parts(use.reservation_id, use.added_at):
        if start < part.since < end:
            edges.add(epoch(part.since))
    for span in (*terms.unused, *use.outages):
        edges |= {epoch(edge) for edge in (span.start, span.end) if start < edge < end}
    if use.handed_over_at is not None and start < use.handed_over_at < end:
        edges.add(epoch(use.handed_over_at))
    for month in range(_count_months(start) + 1, _count_months(end) + 1):
        if (begin := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)) < end:
            edges.add(epoch(begin))
    return sorted(edges)


def _rate_span(
    use: PricedUse, start: int, end: int, lists: Sequence[PriceList], terms: ChargeTerms
) -> Iterator[RatedTime]:
    """Yield the time of a span in which only the hours of the day change the price; none of what costs no share."""
    instant = datetime.fromtimestamp(start, UTC)
    part = terms.find_part(instant, use)
    found = _find_list_of_part(part, instant, lists)
    price = None if found is None else found.find_price(use.sku)
    of_line = _count_months(instant), use.reservation_id, use.sku
    if found is None or price is None:
        if use.given_back_at is None:
            unpriced = ChargeCategory.FREE, ChargeStatus.UNPRICED, None if found is None else found.version
            yield RatedTime(*of_line, *unpriced, 0, WHOLE, end - start, start, end)
        return
    category, status, share = _find_category(use, instant, found, terms)
    if use.given_back_at is not None and not share:
        return
    factor = multiply(found.find_booking_factor(terms.project_id, part.lead, use.booked_amount), share)
    of_price = *of_line, category, status, found.version, price.unit_nano
    for of_hours, *time in split_by_hours(found.week, found.zone, start, end):
        yield RatedTime(*of_price, multiply(factor, of_hours), *time)


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


def _count_months(instant: datetime) -> int:
    """Return the months from the begin of the calendar to that of an instant."""
    return 12 * instant.year + instant.month - 1
