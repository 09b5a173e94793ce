# SPDX-License-Identifier: Apache-2.0
"""What hosts draw while no lease has them: idle, or asleep. It belongs to nobody. Pure.

Instants are whole seconds since the epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction

from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyBook, EnergyHost
from blazar.model.energy.consumption import EnergySource, HostShare, PowerRating

Span = tuple[int, int]
"""A begin and an end."""


@dataclass(frozen=True, slots=True)
class HostTimes:
    """When hosts were registered in a period, and when they slept, by the ids of their resources.

    ``is_whole`` is False where leases of the period were purged: what these had would pass for idle.
    """

    registered: Mapping[int, Span] = field(default_factory=dict)
    asleep: Mapping[int, Collection[Span]] = field(default_factory=dict)
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class UnbookedPart:
    """What hosts drew in ``resource_seconds`` of theirs, in watt-hours, and grams of CO2e of that.

    Of ``unknown_seconds`` of these nothing is known. ``energy_wh`` and ``source`` are None if nothing is known at all,
    ``gco2`` if the site tells no carbon.
    """

    resource_seconds: int = 0
    energy_wh: int | None = None
    source: EnergySource | None = None
    unknown_seconds: int = 0
    gco2: int | None = None


@dataclass(frozen=True, slots=True)
class UnbookedEnergy:
    """What hosts drew that no lease had: ``idle`` while they were on, or on their way, and ``asleep``."""

    idle: UnbookedPart
    asleep: UnbookedPart


def find_unbooked(times: HostTimes, booked: Iterable[HostShare], book: EnergyBook) -> UnbookedEnergy:
    """Return what hosts drew that were registered, apart from the shares of them that leases had.

    What was not measured is that of an idle host by its rating; of a host that sleeps no rating tells anything.
    """
    had: dict[int, list[tuple[Span, Fraction]]] = defaultdict(list)
    for one in booked:
        had[int(one.host)].append((_span_of(one.window), one.share))
    idle: list[HostShare] = []
    asleep: list[HostShare] = []
    for id_, span in times.registered.items():
        for start, end, share, sleeps in _cut(span, had.get(id_, ()), times.asleep.get(id_, ())):
            window = Window(*(datetime.fromtimestamp(at, UTC) for at in (start, end)))
            (asleep if sleeps else idle).append(HostShare(str(id_), window, share))
    return UnbookedEnergy(_measure(idle, _rate(book, _rate_idle)), _measure(asleep, _rate(book, lambda _: None)))


def _cut(
    span: Span, had: Iterable[tuple[Span, Fraction]], slept: Iterable[Span]
) -> Iterator[tuple[int, int, Fraction, bool]]:
    """Yield the parts of a span of which not all is had, with the share that is left, and whether the host slept."""
    first, last = span
    steps: dict[int, list[tuple[Fraction, int]]] = defaultdict(list)
    changes = [*((begin, end, share, 0) for (begin, end), share in had), *((*one, Fraction(0), 1) for one in slept)]
    for begin, end, share, sleeps in changes:
        start, stop = max(begin, first), min(end, last)
        if start < stop:
            steps[start].append((share, sleeps))
            steps[stop].append((-share, -sleeps))
    taken, asleep, since = Fraction(0), 0, first
    for at in sorted({*steps, last}):
        if since < at and taken < 1:
            yield since, at, 1 - taken, asleep > 0
        since = at
        for share, sleeps in steps.get(at, ()):
            taken += share
            asleep += sleeps


def _rate_idle(rating: PowerRating) -> PowerRating:
    return PowerRating(rating.idle, rating.idle)


def _rate(book: EnergyBook, rate: Callable[[PowerRating], PowerRating | None]) -> EnergyBook:
    """Return what is known of hosts by other ratings."""

    def change(host: EnergyHost) -> EnergyHost:
        if host.meter.rating is None:
            return host
        return replace(host, meter=replace(host.meter, rating=rate(host.meter.rating)))

    return replace(book, hosts={id_: change(host) for id_, host in book.hosts.items()})


def _measure(shares: Collection[HostShare], book: EnergyBook) -> UnbookedPart:
    energy, footprint = book.measure(shares)
    seconds = sum((_length(one.window) * one.share for one in shares), Fraction(0))
    return UnbookedPart(
        round(seconds),
        None if energy.source is None else energy.watt_hours,
        energy.source,
        round(energy.unknown),
        None if footprint is None else footprint.grams,
    )


def _span_of(window: Window) -> Span:
    return int(window.start.timestamp()), int(window.end.timestamp())


def _length(window: Window) -> int:
    start, end = _span_of(window)
    return end - start
