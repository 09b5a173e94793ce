# SPDX-License-Identifier: Apache-2.0
"""Lines that tell what a lease drew and emitted while an account was closed, and what that costs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from blazar.model.base.window import Window, enclose
from blazar.model.billing.charges import (
    CarbonState,
    ChargeCategory,
    ChargeLine,
    LineEnergy,
    price_energy,
    window_of_month,
)
from blazar.model.billing.power import FREE, EnergyPrice, split_by_price
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import ChargeTerms
from blazar.model.billing.uses import (
    BookedUse,
    LeaseFacts,
    ReservationStart,
    find_power_sku,
    list_power_skus,
    make_power_use,
)
from blazar.model.energy.book import EnergyBook
from blazar.model.energy.carbon import Footprint
from blazar.model.energy.consumption import HostShare
from blazar.model.resources.resource import HOST
from blazar.model.use.resource_hours import VCPU


@dataclass(frozen=True, slots=True)
class EnergyRates:
    """By what energy is charged: the price lists, and for whom and since when a lease is booked."""

    lists: Sequence[PriceList]
    terms: ChargeTerms


def tell_energy(facts: LeaseFacts, span: Window, book: EnergyBook, rates: EnergyRates) -> tuple[ChargeLine, ...]:
    """Return a line for each reservation, month and price of which it is known what its hosts drew in a span."""
    return tuple(line for part in _split_months(span) for line in _tell_month(facts, part, book, rates))


def _split_months(span: Window) -> Iterator[Window]:
    start = span.start
    while start < span.end:
        end = min(span.end, window_of_month(start.date()).end)
        yield Window(start, end)
        start = end


def _tell_month(facts: LeaseFacts, span: Window, book: EnergyBook, rates: EnergyRates) -> Iterator[ChargeLine]:
    for (reservation_id, price), shares in _list_shares(facts, span, book, rates).items():
        energy, footprint = book.measure(shares)
        if energy.source is None:
            continue
        seconds = sum((_seconds(one.window) * one.share for one in shares), Fraction(0)) - energy.unknown
        told = LineEnergy(
            energy.watt_hours,
            energy.source,
            None if footprint is None else footprint.grams,
            None if footprint is None else _find_state(footprint),
        )
        window = enclose([one.window for one in shares])
        nano = price_energy(price.unit_nano, price.factor, told.wh)
        head = (window, ChargeCategory.ENERGY, price.status, nano, reservation_id)
        priced = (price.sku, price.version, price.unit_nano, price.factor)
        yield ChargeLine(*head, *priced, resource_seconds=round(seconds), energy=told)


def _list_shares(
    facts: LeaseFacts, span: Window, book: EnergyBook, rates: EnergyRates
) -> dict[tuple[str, EnergyPrice], list[HostShare]]:
    """Return the shares of hosts that reservations had in a span, from their hand-over on, by the price of each."""
    found: dict[tuple[str, EnergyPrice], list[HostShare]] = defaultdict(list)
    skus = list_power_skus(rates.lists)
    for use in facts.uses:
        at = facts.starts.get(use.reservation_id, ReservationStart()).at
        window = None if at is None else _meet(use.window, span, at)
        if window is None:
            continue
        if use.amounts.get(str(HOST)):
            share = Fraction(1)
        elif VCPU in use.amounts:
            share = book.host(use.resource_id).take_share(use.amounts[VCPU])
        else:
            continue
        sku = find_power_sku(use, skus)
        for part, price in ((window, FREE),) if sku is None else _split_priced(facts, use, window, sku, rates):
            found[use.reservation_id, price].append(HostShare(str(use.resource_id), part, share))
    return found


def _split_priced(
    facts: LeaseFacts, use: BookedUse, window: Window, sku: str, rates: EnergyRates
) -> Iterator[tuple[Window, EnergyPrice]]:
    """Yield the parts of a window whose power has a price, with that of each: as few as there are."""
    last: tuple[Window, EnergyPrice] | None = None
    for part, price in split_by_price(make_power_use(facts, use, window, sku), rates.lists, rates.terms):
        if last is not None and last[1] == price:
            part = Window(last[0].start, part.end)
        elif last is not None:
            yield last
        last = part, price
    if last is not None:
        yield last


def _meet(one: Window, span: Window, handed_over_at: datetime) -> Window | None:
    start = max(one.start, span.start, handed_over_at.replace(microsecond=0))
    end = min(one.end, span.end)
    return Window(start, end) if start < end else None


def _seconds(window: Window) -> int:
    return int(window.duration.total_seconds())


def _find_state(footprint: Footprint) -> CarbonState:
    if not footprint.complete:
        return CarbonState.PARTIAL
    return CarbonState.ESTIMATED if footprint.estimated else CarbonState.KNOWN


def list_hosts(facts: LeaseFacts) -> Iterator[int]:
    """Yield the hosts of which a lease has or had a part, by the ids of their resources."""
    return (use.resource_id for use in facts.uses if use.amounts.get(str(HOST)) or VCPU in use.amounts)
