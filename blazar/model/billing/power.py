# SPDX-License-Identifier: Apache-2.0
"""What the energy of a lease costs: the price of each part of it, and an estimate of what it will be. Pure.

A use of power is a ``PricedUse`` whose amount are milliwatts, by the data sheets of its hosts. What hosts draw has none
of the factors that what is reserved has, but that of the project; nothing of it is rounded up, or given back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.charges import (
    WHOLE,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    LineEnergy,
    divide_half_even,
    price_energy,
    window_of_month,
)
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import ChargeTerms, PricedUse, find_list_of, find_part, list_cuts
from blazar.model.energy.consumption import WATT_HOUR, EnergySource
from blazar.model.use.resource_hours import epoch


@dataclass(frozen=True, slots=True)
class EnergyPrice:
    """By what the energy of some time is charged: the price of a kilowatt-hour, and a factor; without a sku nothing."""

    sku: str | None = None
    version: int | None = None
    unit_nano: int = 0
    factor: Fraction = WHOLE
    status: ChargeStatus = ChargeStatus.USED


FREE = EnergyPrice()


@dataclass(frozen=True, slots=True)
class PowerShare:
    """What a reservation had of each of some hosts, in a window in one month of UTC, and by what that is charged.

    ``vcpus`` are those of its servers on a host; None: it had all of it. ``milliwatts`` are what its part of a host
    draws by the data sheet of when it was booked, where that has a price. ``region`` is that of the reservation.
    """

    reservation_id: str
    region: str
    window: Window
    price: EnergyPrice
    hosts: tuple[int, ...]
    vcpus: int | None = None
    milliwatts: int = 0

    @property
    def month(self) -> Window:
        """Return its month."""
        return window_of_month(self.window.start.date())


def split_by_price(
    use: PricedUse, lists: Sequence[PriceList], terms: ChargeTerms
) -> Iterator[tuple[Window, EnergyPrice]]:
    """Yield the parts of a use of power with the price of each; no part is of two months."""
    parts = terms.list_parts_of(use)
    for start, end in pairwise(list_cuts(use, parts, lists, terms)):
        found = find_list_of(find_part(parts, start), start, lists)
        yield Window(start, end), _find_price(use, start, found, terms)


def _find_price(use: PricedUse, instant: datetime, found: PriceList | None, terms: ChargeTerms) -> EnergyPrice:
    price = None if found is None else found.find_price(use.sku)
    if found is None or price is None:
        return FREE
    if found.lost_is_free and any(outage.contains(instant) for outage in use.outages):
        return EnergyPrice(status=ChargeStatus.LOST)
    return EnergyPrice(price.sku, found.version, price.unit_nano, found.find_energy_factor(terms.project_id))


def estimate_energy(
    uses: Iterable[PricedUse], lists: Sequence[PriceList], terms: ChargeTerms
) -> tuple[ChargeLine, ...]:
    """Return the lines of what hosts will draw by their data sheets, from the hand-over on; those that cost something.

    As those of a bill each is of a reservation, a month and a price, and its watt-hours are rounded once.
    """
    drawn: Counter[tuple[str, Window, EnergyPrice]] = Counter()
    for use in uses:
        for window, price in split_by_price(use, lists, terms):
            if price.sku is not None and not (use.handed_over_at and window.start < use.handed_over_at):
                month = window_of_month(window.start.date())
                drawn[use.reservation_id, month, price] += use.amount * (epoch(window.end) - epoch(window.start))
    return tuple(_make_line(*key, milliwatt_seconds) for key, milliwatt_seconds in drawn.items())


def estimate_shares(shares: Iterable[PowerShare]) -> tuple[ChargeLine, ...]:
    """Return the lines of what shares of hosts drew by their data sheets; one of what has no price costs nothing."""
    drawn: Counter[tuple[str, Window, EnergyPrice]] = Counter()
    for one in shares:
        seconds = epoch(one.window.end) - epoch(one.window.start)
        drawn[one.reservation_id, one.month, one.price] += one.milliwatts * len(one.hosts) * seconds
    return tuple(_make_line(*key, milliwatt_seconds) for key, milliwatt_seconds in drawn.items())


def _make_line(reservation_id: str, month: Window, price: EnergyPrice, milliwatt_seconds: int) -> ChargeLine:
    wh = divide_half_even(milliwatt_seconds, WATT_HOUR)
    return ChargeLine(
        month,
        ChargeCategory.ENERGY,
        price.status,
        price_energy(price.unit_nano, price.factor, wh),
        reservation_id,
        price.sku,
        price.version,
        price.unit_nano,
        price.factor,
        energy=LineEnergy(wh, EnergySource.RATED),
    )
