# SPDX-License-Identifier: Apache-2.0
"""Lines that tell what a lease drew and emitted while an account was closed, and what that costs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction

from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window, enclose
from blazar.model.billing.charges import (
    CarbonState,
    ChargeCategory,
    ChargeLine,
    LineEnergy,
    price_energy,
    split_months,
)
from blazar.model.billing.power import FREE, EnergyPrice, PowerShare, split_by_price
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import ChargeTerms
from blazar.model.billing.uses import (
    BookedUse,
    LeaseFacts,
    ReservationStart,
    find_power_sku,
    list_power_skus,
    make_power_use,
    size_power,
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


def tell_energy(shares: Iterable[PowerShare], book: EnergyBook) -> tuple[ChargeLine, ...]:
    """Return a line for each month, reservation and price of which it is known what shares of its hosts drew."""
    found: dict[tuple[Window, str, EnergyPrice], list[HostShare]] = defaultdict(list)
    for one in shares:
        found[one.month, one.reservation_id, one.price] += _list_host_shares(one, book)
    lines = (_tell_line(reservation_id, price, had, book) for (_, reservation_id, price), had in found.items())
    return tuple(line for line in lines if line is not None)


def _list_host_shares(one: PowerShare, book: EnergyBook) -> Iterator[HostShare]:
    for id_ in one.hosts:
        share = Fraction(1) if one.vcpus is None else book.host(id_).take_share(one.vcpus)
        yield HostShare(str(id_), one.window, share)


def _tell_line(
    reservation_id: str, price: EnergyPrice, shares: Sequence[HostShare], book: EnergyBook
) -> ChargeLine | None:
    energy, footprint = book.measure(shares)
    if energy.source is None:
        return None
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
    return ChargeLine(*head, *priced, resource_seconds=round(seconds), energy=told)


def list_power_shares(facts: LeaseFacts, span: Window, rates: EnergyRates) -> tuple[PowerShare, ...]:
    """Return the shares of hosts that reservations had in a span, from their hand-over on, by the price of each.

    Hosts of which a reservation had the same at the same time are together.
    """
    found: dict[PowerShare, list[int]] = defaultdict(list)
    skus = list_power_skus(rates.lists)
    for month in split_months(span):
        for use in facts.uses:
            at = facts.starts.get(use.reservation_id, ReservationStart()).at
            window = None if at is None or not _has_power(use) else _meet(use.window, month, at)
            if window is not None:
                for share in _list_shares(facts, use, window, find_power_sku(use, skus), rates):
                    found[share].append(use.resource_id)
    return tuple(replace(share, hosts=tuple(hosts)) for share, hosts in found.items())


def _list_shares(
    facts: LeaseFacts, use: BookedUse, window: Window, sku: str | None, rates: EnergyRates
) -> Iterator[PowerShare]:
    """Yield what a use has of its host in a window, without naming the host."""
    region = facts.regions.get(use.reservation_id, "")
    vcpus = None if use.amounts.get(str(HOST)) else use.amounts[VCPU]
    milliwatts = 0 if sku is None else size_power(use.amounts) * (use.skus or {})[sku]
    for part, price in ((window, FREE),) if sku is None else _split_priced(facts, use, window, sku, rates):
        drawn = milliwatts if price.sku is not None else 0
        yield PowerShare(use.reservation_id, region, part, price, (), vcpus, drawn)


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
    return (use.resource_id for use in facts.uses if _has_power(use))


def _has_power(use: BookedUse) -> bool:
    return bool(use.amounts.get(str(HOST))) or VCPU in use.amounts
