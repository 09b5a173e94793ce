# SPDX-License-Identifier: Apache-2.0
"""What costs more than it may is refused, with a sentence that says what would not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from blazar.enforcement.sentences import plural, span
from blazar.model.base.clock import zulu
from blazar.model.base.errors import Conflict
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.limits import Growth, GrowthDenied, refuse_growth
from blazar.model.resources.resource import noun, part_noun
from blazar.model.search.availability import Alternative, Change


@dataclass(frozen=True, slots=True)
class PriceFit:
    """Something near to a request that costs no more than its maximum.

    ``counts`` are fewer of a reservation, ``count`` says how many of what, ``amount`` is the number.
    """

    change: Change
    window: Window
    price: str
    counts: tuple[Mapping[str, int | str], ...] = ()
    count: str = ""
    amount: int = 0


def refuse_price(
    sentence: str, price: LeasePrice | None, most: str, fits: Sequence[Mapping[str, Any]] = ()
) -> Conflict:
    """Return the error for a price above a maximum; ``price`` is None if it is not known."""
    return Conflict(
        f"max_price: {sentence}",
        code="price_exceeds_maximum",
        at="/max_price",
        data={
            "price": None if price is None else price.amount,
            "currency": None if price is None else price.currency,
            "max_price": most,
            "fits": list(fits),
        },
    )


def refuse_lapsed(quoted_at: datetime, price: LeasePrice) -> Conflict:
    """Return the error for a lease that costs more by now than by a quote that does not hold any more."""
    return Conflict(
        f"quoted_at: the quote of {zulu(quoted_at)} has lapsed, and the lease costs {price.amount} {price.currency} "
        "now, more than then; send the quoted_at of a new quote, or leave it out",
        code="quote_lapsed",
        at="/quoted_at",
        data={"price": price.amount, "currency": price.currency},
    )


def tell_excess(price: LeasePrice, most: str, advice: str) -> str:
    """Return that a lease would cost too much, and what may help."""
    change = "" if price.difference is None else f", {_tell_difference(price.difference)}"
    return f"the lease would cost {price.amount} {price.currency}{change}, and at most {most} are allowed; {advice}"


def refuse_excess(price: LeasePrice, most: str, fits: Sequence[PriceFit], otherwise: str) -> Conflict:
    """Return the error for a price above a maximum, with what would not be; ``otherwise`` is said if nothing is."""
    told = ", ".join(map(_tell_fit, fits)) or otherwise
    return refuse_price(tell_excess(price, most, told), price, most, list(map(_show_fit, fits)))


def refuse_unplanned(most: str) -> Conflict:
    """Return the error for a lease of which not all is planned, so that it has no price, and that has a maximum."""
    return refuse_price(
        f"at most {most} are allowed, and what the lease costs is not known, as more than the next three years of "
        "it would not be over; ask for an earlier end, or leave max_price out",
        None,
        most,
    )


class DearChange(GrowthDenied):
    """The refusal of a change to a ``wanted`` window that a project cannot pay for; it can for what is ``near``."""

    def __init__(self, denial: GrowthDenied, wanted: Window, near: Sequence[Alternative]) -> None:
        super().__init__(denial.message, data=denial.data or {}, growth=denial.growth)
        self.wanted = wanted
        self.near = near


def explain_growth(growth: Growth, wanted: Window, fits: Sequence[PriceFit]) -> DearChange:
    """Return the refusal of a change that a project cannot pay for, with what it can."""
    granted: dict[str, int | str] = {}
    told = []
    # Of several reservations it would not be known of which one it is.
    is_one = sum(fit.change is Change.COUNT for fit in fits) == 1
    for fit in fits:
        if fit.change is Change.DURATION:
            granted["duration_seconds"] = int(fit.window.duration.total_seconds())
            told.append(f"for at most {span(fit.window.duration)} in all")
        else:
            granted |= {"amount": fit.amount} if is_one else {}
            told.append(f"for at most {fit.count}")
    near = [Alternative(fit.change, fit.window, fit.counts or None) for fit in fits]
    return DearChange(refuse_growth(growth, granted, told), wanted, near)


def _tell_difference(difference: str) -> str:
    if not Fraction(difference):
        return "as much as now"
    return f"{difference[1:]} less than now" if difference.startswith("-") else f"{difference} more than now"


def limit_count(held: Sequence[Allocation], count: int) -> Iterator[Allocation]:
    """Yield the first so many of what a reservation has."""
    left = count
    for allocation in held:
        if left > 0:
            yield replace(allocation, count=min(left, allocation.count))
        left -= allocation.count


def tell_count(allocations: Sequence[Allocation], reservation_id: str, count: int) -> str:
    """Return so many of what a reservation has, in words."""
    first = next(a for a in allocations if a.reservation_id == reservation_id)
    return f"{count} {plural(count, noun(first.kind) if first.per_instance is None else part_noun(first.kind))}"


def _tell_fit(fit: PriceFit) -> str:
    match fit.change:
        case Change.DURATION:
            return f"{span(fit.window.duration)} cost {fit.price}"
        case Change.COUNT:
            return f"with {fit.count} it costs {fit.price}"
    return f"a start at {zulu(fit.window.start)} costs {fit.price}"


def _show_fit(fit: PriceFit) -> dict[str, Any]:
    dates = {"start_date": zulu(fit.window.start), "end_date": zulu(fit.window.end)}
    counts = {"reservations": [dict(one) for one in fit.counts]} if fit.counts else {}
    return {"change": str(fit.change), **dates, **counts, "price": fit.price}
