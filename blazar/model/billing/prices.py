# SPDX-License-Identifier: Apache-2.0
"""What a lease will cost, before it is booked and after: the bill of a lease that nobody touches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from blazar.model.base.clock import later
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import (
    DECIMALS,
    NANO,
    ChargeLine,
    ChargeStatus,
    divide_half_even,
    sum_lines,
)
from blazar.model.billing.power import estimate_energy
from blazar.model.billing.price_lists import PriceList, find_list
from blazar.model.billing.rating import BookedPart, ChargeTerms, PricedUse, RatedTime, price_fee, rate_times
from blazar.model.billing.uses import Skus, size_power
from blazar.model.use.resource_hours import KWH, epoch

LONGEST = timedelta(days=20 * 366)
"""Of what is longer the price is not computed: it would have a line for each of its months."""
_Times = Iterable[tuple[RatedTime, int]]
"""The time of each line, with what it costs."""


@dataclass(frozen=True, slots=True)
class PricedAmount:
    """How many of a measure a reservation has by one price, of how many that it is booked with by any.

    ``number`` is the place of the reservation. Of the measure ``kwh`` the amount are milliwatts.
    """

    reservation_id: str
    number: int
    sku: str
    measure: str
    amount: int
    booked: int


def sum_amounts(
    booked: Sequence[tuple[str, Mapping[str, int]]],
    chosen: Sequence[Skus],
    prices: PriceList,
    places: Mapping[str, int] = MappingProxyType({}),
) -> tuple[PricedAmount, ...]:
    """Return how much reservations get by each price, of things with these measures and the prices chosen for each.

    ``places`` are those of the reservations in their lease, where anybody asks for them.
    """
    measures = prices.measures
    sums: dict[tuple[str, str, int], int] = {}
    for (reservation_id, sizes), skus in zip(booked, chosen, strict=True):
        for sku, total in skus.items():
            if measures[sku] == KWH:
                # The data sheet of each host has its own milliwatts: they are added up.
                amount, total = size_power(sizes) * total, 1
            elif not (amount := sizes[measures[sku]]):
                continue
            key = reservation_id, sku, total
            sums[key] = sums.get(key, 0) + amount
    return tuple(
        [
            PricedAmount(reservation_id, places.get(reservation_id, 0), sku, measures[sku], amount, total)
            for (reservation_id, sku, total), amount in sums.items()
        ]
    )


@dataclass(frozen=True, slots=True)
class PricePart:
    """A part of a price: ``count`` of a measure for ``hours`` each, with a price of an hour and a factor.

    ``reservation`` is the place of the reservation in the lease; numbers are decimals. Of what hosts will draw, by an
    estimate, it has the kilowatt-hours and the price of one instead.
    """

    reservation: int
    sku: str
    measure: str
    count: int | None
    hours: str | None
    per_hour: str | None
    factor: str
    amount: str
    kwh: str | None = None
    per_kwh: str | None = None


@dataclass(frozen=True, slots=True)
class CancellationCost:
    """What it costs to cancel a lease until an instant; the last one is its start."""

    until: datetime
    amount: str


@dataclass(frozen=True, slots=True)
class LeasePrice:
    """What a lease costs if nothing is given back, lost or late from now on; amounts are decimals of the currency.

    ``price_list`` is the version by which its start is charged. ``if_cancelled`` begins when it was booked, or now.
    ``charged`` is what its project has been charged for it so far, None of what is not booked: only that has a fee,
    parts and a list. ``difference`` is by how much a change that is not made would make it dearer. ``estimated`` is
    what of the amount is for energy, of which only an estimate is known; None: nothing is. Of what is not booked
    ``quoted_at`` is by when it counts as booked, and ``held_until`` how long that holds; None: quotes do not hold.
    """

    amount: str
    currency: str
    price_list: int | None = None
    fee: str | None = None
    parts: tuple[PricePart, ...] = ()
    if_cancelled: tuple[CancellationCost, ...] = ()
    charged: str | None = None
    difference: str | None = None
    estimated: str | None = None
    quoted_at: datetime | None = None
    held_until: datetime | None = None

    @property
    def value(self) -> Fraction:
        """Return the amount as a number."""
        return Fraction(self.amount)


@dataclass(frozen=True, slots=True)
class QuotedLease:
    """What is priced: amounts for a window, booked at an instant for a project, and to be confirmed by another one."""

    amounts: tuple[PricedAmount, ...]
    window: Window
    project_id: str
    booked_at: datetime
    confirm_by: datetime | None = None

    @property
    def terms(self) -> ChargeTerms:
        """Return for whom and since when it is booked."""
        return ChargeTerms(self.project_id, (BookedPart(self.window.start, self.booked_at),))

    def choose_list(self, lists: Sequence[PriceList]) -> PriceList | None:
        """Return the list by which its start is charged, and that has chosen its prices; None: there is none."""
        return find_list(lists, self.booked_at, self.window.start)

    def list_uses(self, *, is_whole: bool = True) -> list[PricedUse]:
        """Return its uses of what is reserved; if it ``is_whole`` their time is rounded up."""
        begin = self.window.start if is_whole else None
        return [self._make_use(one, begin) for one in self.amounts if one.measure != KWH]

    def list_powers(self) -> list[PricedUse]:
        """Return its uses of power."""
        return [self._make_use(one) for one in self.amounts if one.measure == KWH]

    def _make_use(self, one: PricedAmount, rounded_from: datetime | None = None) -> PricedUse:
        return PricedUse(
            one.reservation_id, one.sku, one.booked, self.window, rounded_from=rounded_from, amount=one.amount
        )

    def sum_nano(self, lists: Sequence[PriceList]) -> int:
        """Return what it costs, not rounded."""
        terms = self.terms
        times = rate_times(self.list_uses(), lists, terms)
        energy = estimate_energy(self.list_powers(), lists, terms)
        return sum(time.nano for time in times) + sum_lines(energy) + price_fee(lists, terms)


def choose_quote(held: QuotedLease, today: QuotedLease, lists: Sequence[PriceList]) -> QuotedLease:
    """Return a lease as it was quoted, or as of today if that costs less, or if it had no price then."""
    if held.choose_list(lists) is None or held.window.duration > LONGEST:
        return today
    return today if today.sum_nano(lists) < held.sum_nano(lists) else held


def quote(quoted: QuotedLease, lists: Sequence[PriceList], holds: timedelta = timedelta(0)) -> LeasePrice | None:
    """Return what a lease will cost; None if no list holds at its start, or if it is longer than ``LONGEST``.

    The quote ``holds`` so long.
    """
    first = quoted.choose_list(lists)
    if first is None or quoted.window.duration > LONGEST:
        return None
    terms = quoted.terms
    times = [(time, time.nano) for time in rate_times(quoted.list_uses(), lists, terms)]
    powers = quoted.list_powers()
    energy = estimate_energy(powers, lists, terms) if powers else ()
    estimated = sum_lines(energy)
    return LeasePrice(
        amount=show_amount(sum(nano for _, nano in times) + estimated + first.fee, first.decimals),
        currency=first.currency,
        price_list=first.version,
        fee=_show_unit(first.fee, first.decimals),
        parts=(
            *_list_parts(times, quoted.amounts, first.decimals),
            *_list_energy(energy, quoted.amounts, first.decimals),
        ),
        # Of what was not drawn nothing is given back.
        if_cancelled=excuse(_list_cancellation(quoted, times, lists, first), quoted.confirm_by, first.decimals),
        estimated=show_amount(estimated, first.decimals) if energy else None,
        quoted_at=quoted.booked_at if holds else None,
        held_until=later(quoted.booked_at, holds) if holds else None,
    )


def _list_energy(lines: Iterable[ChargeLine], amounts: Iterable[PricedAmount], decimals: int) -> Iterator[PricePart]:
    """Yield the parts of a price that are for energy: lines of all months together."""
    numbers = {one.reservation_id: one.number for one in amounts}
    found: dict[tuple[str, str, int, Fraction], tuple[int, int]] = {}
    for line in lines:
        key = line.reservation_id or "", line.sku or "", line.unit_nano, line.factor
        wh, nano = found.get(key, (0, 0))
        found[key] = wh + (line.energy.wh if line.energy else 0), nano + line.nano
    for (reservation_id, sku, unit, factor), (wh, nano) in found.items():
        yield PricePart(
            reservation=numbers[reservation_id],
            sku=sku,
            measure=KWH,
            count=None,
            hours=None,
            per_hour=None,
            factor=show_number(factor),
            amount=show_exactly(nano, decimals),
            kwh=show_quotient(wh, 1000),
            per_kwh=show_exactly(unit, decimals),
        )


def _list_parts(times: _Times, amounts: Iterable[PricedAmount], decimals: int) -> Iterator[PricePart]:
    """Yield the parts of a price of what is reserved: lines of all months together, with what is rounded up."""
    counts: dict[tuple[str, str], PricedAmount] = {}
    for one in amounts:
        key = one.reservation_id, one.sku
        counts[key] = one if key not in counts else replace(one, amount=one.amount + counts[key].amount)
    found: dict[tuple[str, str, int, int, int], tuple[int, int]] = {}
    for time, nano in times:
        part = time.reservation_id, time.sku, time.unit_nano, *time.factor.as_integer_ratio()
        seconds, before = found.get(part, (0, 0))
        found[part] = seconds + time.resource_seconds, before + nano
    for (reservation_id, sku, unit, *factor), (seconds, nano) in found.items():
        one = counts[reservation_id, sku]
        yield PricePart(
            reservation=one.number,
            sku=sku,
            measure=one.measure,
            count=one.amount,
            hours=show_quotient(seconds, one.amount * 3600),
            per_hour=_show_unit(unit, decimals),
            factor=_show_factor(*factor),
            amount=show_exactly(nano, decimals),
        )


def _list_cancellation(
    quoted: QuotedLease, times: _Times, lists: Sequence[PriceList], first: PriceList
) -> Iterator[CancellationCost]:
    """Yield what it costs to cancel a lease with these lines, and until when, from its booking to its start.

    ``first`` is the list by which its start is charged, and so its fee.
    """
    start = quoted.window.start
    if quoted.booked_at >= start:
        return iter(())
    whole = _add_rounded(times)
    used = [one for one in lists if one.version in whole or one is first]

    def find_cost(before_start: int) -> int:
        # As ``rate`` does: what is given back of a line is rounded once.
        cost = 0
        for one in used:
            over, under = one.find_share(before_start).as_integer_ratio()
            if not over:
                continue
            if one is first:
                cost += divide_half_even(one.fee * over, under)
            for number, by in whole.get(one.version, ()):
                cost += divide_half_even(number * over, by * under)
        return cost

    return list_cancellation(Window(quoted.booked_at, start), used, first.decimals, find_cost)


def _add_rounded(times: _Times) -> Mapping[int, Sequence[tuple[int, int]]]:
    """Return what each line costs by each list, not rounded, in a number and by what it is divided.

    Those by which the time of a line is rounded up are in it: so does ``rate``, as both are given back.
    """
    found: dict[tuple[int, int, str, str, int, int, int], int] = {}
    for time, _ in times:
        if time.version is not None and time.status is not ChargeStatus.UNPRICED:
            of_price = time.unit_nano, *time.factor.as_integer_ratio()
            key = time.version, time.month, time.reservation_id, time.sku, *of_price
            found[key] = found.get(key, 0) + time.resource_seconds
    lines: dict[int, list[tuple[int, int]]] = {}
    for (version, _, _, _, unit, over, under), seconds in found.items():
        lines.setdefault(version, []).append((unit * seconds * over, 3600 * under))
    return lines


def list_cancellation(
    ahead: Window, lists: Sequence[PriceList], decimals: int, find_cost: Callable[[int], int]
) -> Iterator[CancellationCost]:
    """Yield what it costs to cancel a lease, and until when, in the time before its start.

    ``find_cost`` returns what giving it back so many seconds before its start costs, not rounded.
    """
    seconds = epoch(ahead.end) - epoch(ahead.start)
    lengths = {entry.before_start for one in lists for entry in one.cancellation if entry.before_start is not None}
    edges = [length for length in sorted(lengths, reverse=True) if length < seconds]
    cost = find_cost(seconds)
    # Instants and texts are made of what is shown only.
    amount = show_amount(cost, decimals)
    for edge in edges:
        if (following := find_cost(edge)) == cost:
            continue
        cost, before = following, amount
        if (amount := show_amount(cost, decimals)) != before:
            yield CancellationCost(ahead.end - timedelta(seconds=edge), before)
    yield CancellationCost(ahead.end, amount)


def excuse(
    costs: Iterable[CancellationCost], confirm_by: datetime | None, decimals: int
) -> tuple[CancellationCost, ...]:
    """Return what it costs to cancel a lease that is to be confirmed by then: nothing before; None: it is firm."""
    if confirm_by is None:
        return tuple(costs)
    later, nothing = [cost for cost in costs if cost.until > confirm_by], show_amount(0, decimals)
    free = () if later and later[0].amount == nothing else (CancellationCost(confirm_by, nothing),)
    return (*free, *later)


def show_amount(nano: int, decimals: int) -> str:
    """Return an amount with so many decimals, rounded half to even: 673.80."""
    amount = divide_half_even(nano, 10 ** (DECIMALS - decimals))
    whole, rest = divmod(abs(amount), 10**decimals)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{rest:0{decimals}}" if decimals else f"{sign}{whole}"


def show_exactly(nano: int, decimals: int) -> str:
    """Return an amount with all its decimals, and these at least."""
    whole, rest = divmod(abs(nano), NANO)
    digits = f"{rest:0{DECIMALS}}".rstrip("0").ljust(decimals, "0") if rest else "0" * decimals
    sign = "-" if nano < 0 else ""
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def show_number(value: Fraction) -> str:
    """Return a number as a decimal with at most 9 places: the hours of 20 minutes have no end."""
    return show_quotient(*value.as_integer_ratio())


def show_quotient(number: int, by: int) -> str:
    """Return a quotient as ``show_number`` does; ``by`` is positive."""
    return show_exactly(divide_half_even(number * NANO, by), 0)


_show_unit, _show_factor = lru_cache(maxsize=1024)(show_exactly), lru_cache(maxsize=1024)(show_quotient)
"""There are few prices and factors, and each is shown in nearly all answers."""
