# SPDX-License-Identifier: Apache-2.0
"""What a lease is charged for, from the facts of it: what it had, when, and what became of that. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import PricedUse, sum_uses
from blazar.model.energy.book import EnergyHost
from blazar.model.resources.resource import HOST, Resource
from blazar.model.use.resource_hours import KWH, VCPU

CPUS = ("VCPU", "PCPU")
Skus = Mapping[str, int]
"""The prices by which something is charged, each with how many of its measure its reservation was booked with.

That of energy has the milliwatts of a host, or of one of its VCPUs, by its data sheet then.
"""


@dataclass(frozen=True, slots=True)
class BookedUse:
    """What a reservation has of a resource for a window, by measure.

    ``skus`` is None if there were no prices when it was booked; ``booked_at``: None if that was with its lease.
    ``is_live``: it is not returned yet.
    """

    reservation_id: str
    resource_id: int
    window: Window
    amounts: Mapping[str, int]
    skus: Skus | None = None
    booked_at: datetime | None = None
    is_live: bool = True


@dataclass(frozen=True, slots=True)
class ReservationStart:
    """When a reservation was handed over, None if it was not, and whether that may still be done."""

    at: datetime | None = None
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """All that is known of what a lease has had, and of the starts of its reservations.

    ``outages`` are by reservation and resource; in ``unused`` spans nobody used the lease. ``regions`` are those of
    reservations.
    """

    uses: tuple[BookedUse, ...] = ()
    starts: Mapping[str, ReservationStart] = field(default_factory=dict)
    outages: Mapping[tuple[str, int], tuple[Window, ...]] = field(default_factory=dict)
    unused: tuple[Window, ...] = ()
    regions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_handed_over(self) -> bool:
        """Return whether a part of the lease was handed over."""
        return any(one.at is not None for one in self.starts.values())

    @property
    def is_awaited(self) -> bool:
        """Return whether a start is still to come, or to be done."""
        return any(one.is_awaited for one in self.starts.values())


def choose_skus(
    booked: Sequence[tuple[str, Mapping[str, int]]],
    resources: Sequence[Resource | None],
    prices: PriceList,
) -> list[Skus]:
    """Return by which prices each of some things is charged, that reservations get with these measures of them.

    ``resources`` are those of which they are; None: nothing is known of it.
    """
    totals: dict[tuple[str, str], int] = defaultdict(int)
    for reservation_id, amounts in booked:
        for measure, amount in amounts.items():
            totals[reservation_id, measure] += amount
    found: list[Skus] = []
    for (reservation_id, amounts), resource in zip(booked, resources, strict=True):
        skus: dict[str, int] = {}
        for measure in amounts:
            if (price := prices.choose_price_of(measure, resource)) is not None:
                skus[price.sku] = totals[reservation_id, measure]
        if prices.power_skus and (str(HOST) in amounts or VCPU in amounts):
            power = prices.choose_price_of(KWH, resource)
            skus |= {} if power is None else {power.sku: _rate_power(resource, str(HOST) in amounts, prices)}
        found.append(skus)
    return found


def _rate_power(resource: Resource | None, is_whole: bool, prices: PriceList) -> int:
    """Return the milliwatts of a host, or of one of its VCPUs, by its data sheet; 0 if that tells nothing."""
    if resource is None:
        return 0
    host = EnergyHost.of(resource.capabilities, {}, sum(map(resource.capacity.get, CPUS)), prices.load)
    drawn = host.meter.steady_draw
    if drawn is None:
        return 0
    return drawn if is_whole else round(drawn * host.take_share(1))


def list_power_skus(lists: Iterable[PriceList]) -> frozenset[str]:
    """Return the prices of what hosts draw."""
    return frozenset(sku for prices in lists for sku in prices.power_skus)


def find_power_sku(use: BookedUse, skus: frozenset[str]) -> str | None:
    """Return which of these prices what the host of a use draws has; None: it has none."""
    return next((sku for sku in use.skus or () if sku in skus), None) if skus else None


def size_power(amounts: Mapping[str, int]) -> int:
    """Return of how many hosts, or VCPUs, the power is counted of what a reservation has, by measure."""
    return amounts.get(KWH) or amounts.get(str(HOST)) or amounts.get(VCPU, 0)


def make_power_use(facts: LeaseFacts, use: BookedUse, window: Window, sku: str) -> PricedUse:
    """Return a use as one of power in a window of it, by the milliwatts that were known when it was booked."""
    return PricedUse(
        reservation_id=use.reservation_id,
        sku=sku,
        amount=size_power(use.amounts) * (use.skus or {})[sku],
        booked_amount=1,
        window=window,
        added_at=use.booked_at,
        handed_over_at=facts.starts.get(use.reservation_id, ReservationStart()).at,
        outages=_list_outages(facts, use, window),
    )


def list_powers(facts: LeaseFacts, span: Window, lists: Sequence[PriceList]) -> list[PricedUse]:
    """Return the uses of power of a lease in a span that is not over."""
    if not (skus := list_power_skus(lists)):
        return []
    met = ((use, _meet(use.window, span), find_power_sku(use, skus)) for use in facts.uses)
    return [make_power_use(facts, use, window, sku) for use, window, sku in met if window and sku is not None]


def list_priced(facts: LeaseFacts, span: Window, lists: Sequence[PriceList], *, is_quote: bool) -> list[PricedUse]:
    """Return what of the uses of a lease lies in a span, priced; what differs by its amount only is one use.

    ``is_quote``: it is not over, and taken to go as promised. Else what was never handed over is left out, and what is
    missing or late is said so.
    """
    measures = _map_measures(lists)
    firsts, lasts = _find_ends(facts.uses)
    found: list[tuple[tuple[Any, ...], int]] = []
    for use in facts.uses:
        start = facts.starts.get(use.reservation_id, ReservationStart())
        if not (window := _meet(use.window, span)) or (start.at is None and not is_quote):
            continue
        rounded_from = firsts[use.reservation_id] if window.end == lasts[use.reservation_id] else None
        of_all = window, use.booked_at, start.at, _list_outages(facts, use, window), rounded_from
        for sku, booked in (use.skus or {}).items():
            measure = measures.get(sku, "")
            if measure == KWH or not (amount := use.amounts.get(measure, 0)):
                continue
            found.append(((use.reservation_id, sku, booked, *of_all), amount))
    return sum_uses(found)


def list_given_back(
    before: Sequence[BookedUse],
    after: Sequence[BookedUse],
    lists: Sequence[PriceList],
    *,
    whole: Sequence[BookedUse] = (),
    since: datetime,
    at: datetime,
) -> list[PricedUse]:
    """Return what a lease had from an instant on, and has no more: it was given back ``at``.

    What a reservation gets of the same measure at the same time instead makes up for it, whatever its price. ``whole``
    is all that it has ever had: the time of a reservation begins with that, also if something has taken its place.
    """
    firsts = _find_ends((*whole, *before))[0]
    kept = _map_rest(firsts, after, since)
    measures, rounded = _map_measures(lists), _map_rounded(firsts, before, after, since)
    had, has = _group_priced(before, measures, since), _group_priced(after, measures, since)
    found: list[tuple[tuple[Any, ...], int]] = []
    for (reservation_id, measure), parts in had.items():
        others = _list_amounts(after, reservation_id, measure)
        end = max(part.window.end for part in parts)
        for window, part, amount in _list_less(parts, has[reservation_id, measure], others):
            rounded_from = rounded.get(reservation_id) if window.end == end else None
            rest = mine if (mine := kept.get(reservation_id)) and mine.end <= window.start else None
            of_part = part.sku, part.booked, window, part.booked_at
            found.append(((reservation_id, *of_part, None, (), rounded_from, at, rest), amount))
    return sum_uses(found)


def _list_amounts(uses: Iterable[BookedUse], reservation_id: str, measure: str) -> list[tuple[Window, int]]:
    """Return how much a reservation has of a measure, and when."""
    mine = (use for use in uses if use.reservation_id == reservation_id)
    return [(use.window, use.amounts[measure]) for use in mine if measure in use.amounts]


def _map_rounded(
    firsts: Mapping[str, datetime], before: Iterable[BookedUse], after: Iterable[BookedUse], since: datetime
) -> Mapping[str, datetime]:
    """Return the start of each reservation that is still to come, and keeps its end if anything is left of it.

    With what such a one gives back goes the time by which that would have been rounded up.
    """
    ends, lasts = _find_ends(before)[1], _find_ends(after)[1]
    return {id_: firsts[id_] for id_, end in ends.items() if firsts[id_] >= since and lasts.get(id_, end) == end}


def _map_rest(firsts: Mapping[str, datetime], after: Iterable[BookedUse], since: datetime) -> Mapping[str, Window]:
    """Return from when until when each reservation has something still, or had it until an instant."""
    ends = _find_ends(after)[1]
    kept = {id_: (first, ends.get(id_, since)) for id_, first in firsts.items()}
    return {id_: Window(first, end) for id_, (first, end) in kept.items() if first < end}


@dataclass(frozen=True, slots=True)
class _PricedPart:
    """An amount of a measure that a reservation has for a window, and by which price; the rest is as in BookedUse."""

    window: Window
    sku: str
    amount: int
    booked: int
    booked_at: datetime | None

    @property
    def tag(self) -> tuple[str, int, datetime | None]:
        """Return by what it is charged."""
        return self.sku, self.booked, self.booked_at


def _group_priced(
    uses: Iterable[BookedUse], measures: Mapping[str, str], since: datetime
) -> dict[tuple[str, str], list[_PricedPart]]:
    """Return the parts of uses from an instant on, by reservation and measure."""
    found: dict[tuple[str, str], list[_PricedPart]] = defaultdict(list)
    for use in uses:
        if use.window.end <= since:
            continue
        rest = Window(max(since, use.window.start), use.window.end)
        for sku, booked in (use.skus or {}).items():
            measure = measures.get(sku, "")
            if amount := use.amounts.get(measure, 0):
                found[use.reservation_id, measure].append(_PricedPart(rest, sku, amount, booked, use.booked_at))
    return found


def _list_less(
    had: Sequence[_PricedPart], has: Sequence[_PricedPart], every: Sequence[tuple[Window, int]]
) -> Iterator[tuple[Window, _PricedPart, int]]:
    """Yield windows, and how much less there is of what part in them: of what was booked last first.

    ``every`` is how much there is, whatever its price: no more is missing than that makes up for.
    """
    windows = [*(part.window for part in had), *(window for window, _ in every)]
    edges = {edge for window in windows for edge in (window.start, window.end)}
    latest = sorted(had, key=lambda part: (part.booked_at is not None, part.booked_at), reverse=True)
    for start, end in pairwise(sorted(edges)):
        less = sum(part.amount for part in had if part.window.contains(start))
        less -= sum(amount for window, amount in every if window.contains(start))
        kept: Counter[tuple[str, int, datetime | None]] = Counter()
        for part in has:
            if part.window.contains(start):
                kept[part.tag] += part.amount
        for part in latest:
            if less > 0 and part.window.contains(start):
                stays = min(part.amount, kept[part.tag])
                kept[part.tag] -= stays
                if amount := min(less, part.amount - stays):
                    yield Window(start, end), part, amount
                    less -= amount


def _find_ends(uses: Iterable[BookedUse]) -> tuple[Mapping[str, datetime], Mapping[str, datetime]]:
    """Return the start and the end of what each reservation has had."""
    firsts: dict[str, datetime] = {}
    lasts: dict[str, datetime] = {}
    for use in uses:
        firsts[use.reservation_id] = min(firsts.get(use.reservation_id, use.window.start), use.window.start)
        lasts[use.reservation_id] = max(lasts.get(use.reservation_id, use.window.end), use.window.end)
    return firsts, lasts


def _map_measures(lists: Sequence[PriceList]) -> Mapping[str, str]:
    """Return what each price is of; a later list says it."""
    if len(lists) == 1:
        return lists[0].measures
    return {sku: measure for prices in lists for sku, measure in prices.measures.items()}


def _list_outages(facts: LeaseFacts, use: BookedUse, window: Window) -> tuple[Window, ...]:
    spans = facts.outages.get((use.reservation_id, use.resource_id), ()) if facts.outages else ()
    return tuple(met for span in spans if (met := _meet(span, window)))


def _meet(one: Window, other: Window) -> Window | None:
    """Return what two windows share."""
    if other.covers(one):
        return one
    start, end = max(one.start, other.start), min(one.end, other.end)
    return Window(start, end) if start < end else None
