# SPDX-License-Identifier: Apache-2.0
"""What projects have to pay for months, and the most that they may: what is left, and what would fit into it. Pure.

What counts is what the ledger has: what was charged for a month, and what is planned for the rest of what is booked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil

from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import DECIMALS, NANO, format_nano, window_of_month
from blazar.model.billing.fits import LeaseLimit, find_first, find_longest
from blazar.model.billing.ledger import Planned, plan_quoted
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import PricedAmount, QuotedLease
from blazar.model.use.resource_hours import KWH, MonthSpending, ReachedShare, SpendingByMonth, SpendLimit, find_reached

MOST_MONTHS = 12
"""How many months ahead a start is looked for that would fit."""
LONGEST_MOVED = timedelta(days=62)
"""Of longer leases no other start is looked for: each would have to be priced over all of its time."""


@dataclass(frozen=True, slots=True)
class ProjectSpending:
    """What a project has to pay besides a lease, and the price lists by which that costs; there is one at least."""

    lists: Sequence[PriceList]
    months: SpendingByMonth = field(default_factory=dict)

    @property
    def currency(self) -> str:
        """Return the currency of all lists."""
        return self.lists[-1].currency

    @property
    def decimals(self) -> int:
        """Return with how many decimals totals are shown."""
        return self.lists[-1].decimals

    def add(self, more: Planned) -> ProjectSpending:
        """Return what it has to pay if this is planned, too."""
        months = dict(self.months)
        for month, one in more.items():
            was = months.get(month, MonthSpending())
            months[month] = replace(was, planned=was.planned + one.nano)
        return replace(self, months=months)


@dataclass(frozen=True, slots=True)
class SpendExcess:
    """A month for which a project would have to pay more than it may: ``taken`` by a lease, of what is ``left``."""

    month: date
    taken: int
    left: int


@dataclass(frozen=True, slots=True)
class SpendRoom:
    """What a project may still spend: each new lease must fit into it month by month."""

    limit: SpendLimit
    spending: ProjectSpending

    @property
    def lists(self) -> Sequence[PriceList]:
        """Return the price lists by which leases cost."""
        return self.spending.lists

    def find_excess(self, quoted: QuotedLease) -> SpendExcess | None:
        """Return the first month of which a new lease would take more than is left; None: it fits."""
        for month, one in plan_quoted(quoted, self.lists).items():
            left = self.limit.nano - self.spending.months.get(month, MonthSpending()).total
            if one.nano > max(left, 0):
                return SpendExcess(month, one.nano, max(left, 0))
        return None

    def allows(self, quoted: QuotedLease) -> bool:
        """Return whether a new lease fits."""
        return self.find_excess(quoted) is None


def find_affordable_length(quoted: QuotedLease, room: SpendRoom, excess: SpendExcess) -> Window | None:
    """Return the longest window from the start of a lease for which it fits; None: not even a second does."""
    end = window_of_month(excess.month).end
    cut = replace(quoted, window=Window(quoted.window.start, min(quoted.window.end, end)))
    # What is rounded up at its end may be what is too much.
    return find_longest(quoted if room.allows(cut) else cut, room)


def find_affordable_start(quoted: QuotedLease, limit: LeaseLimit) -> Window | None:
    """Return a later window of the same length in which a lease fits: within a year, by the first month that has room.

    A second earlier it does not. One that is too dear for each month may fit into the end of one and the next.
    """
    length = quoted.window.duration
    if length > LONGEST_MOVED:
        return None

    def fits(start: datetime) -> bool:
        return limit.allows(replace(quoted, window=Window(start, start + length)))

    before = quoted.window.start
    for edge in _list_month_starts(before):
        for start in (_find_last_part(quoted, limit, max(before, edge - length), edge), edge):
            if fits(start):
                first = find_first(before, start, fits)
                return Window(first, first + length)
            before = start
    return None


def _find_last_part(quoted: QuotedLease, limit: LeaseLimit, before: datetime, edge: datetime) -> datetime:
    """Return the first start after ``before`` at which what the lease has up to the edge of a month fits, or the edge.

    Only there a lease may fit that is too dear for each month alone: later it has more of the next month.
    """

    def fits(start: datetime) -> bool:
        return start == edge or limit.allows(replace(quoted, window=Window(start, edge)))

    last = edge - timedelta(seconds=1)
    return find_first(before, edge, fits) if before < last and fits(last) else edge


def find_affordable_count(quoted: QuotedLease, count: int, room: SpendRoom) -> int:
    """Return the largest smaller count of a lease's only reservation for which it fits; 0: there is none.

    Each of them has the same part of what is counted; of what has several prices the dearest is taken.
    """
    enough, too_much = 0, count
    while too_much - enough > 1:
        middle = (enough + too_much) // 2
        if room.allows(_scale(quoted, Fraction(middle, count), room.lists)):
            enough = middle
        else:
            too_much = middle
    return enough


def find_growth(before: Mapping[date, int], after: Mapping[date, int], most: int) -> SpendExcess | None:
    """Return the first month for which a project has to pay more than before, and than it may; None: there is none.

    ``taken`` is how much more.
    """
    for month, total in sorted(after.items()):
        was = before.get(month, 0)
        if total > most and total > was:
            return SpendExcess(month, total - was, max(0, most - was))
    return None


def list_reached(
    project_id: str, limit: SpendLimit, before: Mapping[date, int], after: Mapping[date, int], prices: PriceList
) -> Iterator[ReachedShare]:
    """Yield the largest share of a limit that is reached for each month."""
    most = spell_down(limit.nano, prices.decimals)
    for month, total in sorted(after.items()):
        share = find_reached(limit.shares, before.get(month, 0), total, limit.nano)
        if share is not None:
            taken = spell_up(total, prices.decimals)
            window = window_of_month(month)
            yield ReachedShare(project_id, limit.name, prices.currency, window, share, most, taken)


def spell_month(month: date) -> str:
    """Return a month as sentences name it: ``April 2030``."""
    return f"{month:%B %Y}"


def spell_down(nano: int, decimals: int) -> str:
    """Return an amount with so many decimals, rounded down, so that as much is there."""
    unit: int = 10 ** (DECIMALS - decimals)
    return format_nano(nano // unit * unit, decimals)


def spell_up(nano: int, decimals: int) -> str:
    """Return an amount with so many decimals, rounded up."""
    unit: int = 10 ** (DECIMALS - decimals)
    return format_nano(-(-nano // unit) * unit, decimals)


def parse_limit(text: str) -> int | None:
    """Return an amount that an operator has written, in 10⁻⁹; None for -1, which is no limit. ValueError."""
    if text.strip() == "-1":
        return None
    whole, _, digits = text.strip().partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= DECIMALS):
        raise ValueError(text)
    if digits and not (digits.isascii() and digits.isdigit() and len(digits) <= DECIMALS):
        raise ValueError(text)
    return int(whole) * NANO + int(digits.ljust(DECIMALS, "0"))


def _list_month_starts(after: datetime) -> Iterator[datetime]:
    month = after.date()
    for _ in range(MOST_MONTHS):
        start = window_of_month(month).end
        if start.day != 1:
            return
        yield start
        month = start.date()


def _scale(quoted: QuotedLease, part: Fraction, lists: Sequence[PriceList]) -> QuotedLease:
    """Return a lease with a part of what it has: the dearest, as it is not known which of it that would be."""
    prices = quoted.choose_list(lists)

    def find_price(one: PricedAmount) -> int:
        price = None if prices is None else prices.find_price(one.sku)
        return 0 if price is None else price.unit_nano

    left: dict[tuple[str, str], int] = {}
    amounts = []
    for one in sorted(quoted.amounts, key=find_price, reverse=True):
        if one.measure == KWH:
            # Rounded up: nobody knows which of the hosts would be left.
            amounts.append(replace(one, amount=ceil(one.amount * part)))
            continue
        total = int(one.booked * part)
        key = one.reservation_id, one.measure
        amount = min(one.amount, left.get(key, total))
        left[key] = left.get(key, total) - amount
        amounts.append(replace(one, amount=amount, booked=total))
    return replace(quoted, amounts=tuple(amounts))
