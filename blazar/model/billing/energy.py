# SPDX-License-Identifier: Apache-2.0
"""Lines that tell what a lease drew and emitted while an account was closed: each costs nothing. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from blazar.model.base.window import Window, enclose
from blazar.model.billing.charges import (
    CarbonState,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    LineEnergy,
    window_of_month,
)
from blazar.model.billing.uses import LeaseFacts, ReservationStart
from blazar.model.energy.book import EnergyBook
from blazar.model.energy.carbon import Footprint
from blazar.model.energy.consumption import HostShare
from blazar.model.resources.resource import HOST
from blazar.model.use.resource_hours import VCPU


def tell_energy(facts: LeaseFacts, span: Window, book: EnergyBook) -> tuple[ChargeLine, ...]:
    """Return a line for each reservation and month of which it is known what its hosts drew in a span."""
    return tuple(line for part in _split_months(span) for line in _tell_month(facts, part, book))


def _split_months(span: Window) -> Iterator[Window]:
    start = span.start
    while start < span.end:
        end = min(span.end, window_of_month(start.date()).end)
        yield Window(start, end)
        start = end


def _tell_month(facts: LeaseFacts, span: Window, book: EnergyBook) -> Iterator[ChargeLine]:
    for reservation_id, shares in _list_shares(facts, span, book).items():
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
        head = (window, ChargeCategory.ENERGY, ChargeStatus.USED, 0, reservation_id)
        yield ChargeLine(*head, resource_seconds=round(seconds), energy=told)


def _list_shares(facts: LeaseFacts, span: Window, book: EnergyBook) -> dict[str, list[HostShare]]:
    """Return the shares of hosts that reservations had in a span, from their hand-over on."""
    found: dict[str, list[HostShare]] = defaultdict(list)
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
        found[use.reservation_id].append(HostShare(str(use.resource_id), window, share))
    return found


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
