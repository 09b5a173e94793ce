# SPDX-License-Identifier: Apache-2.0
"""What a plan of the waiting list is made of: the calendar, who waits for what, and what each project has used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from blazar.calendar.queue.overlay import totals_of
from blazar.calendar.queue.plan import Direct, delayed, direct, in_order, plan
from blazar.calendar.queue.usage import Piece, Rates, Usage, given_back, used
from blazar.calendar.queue.values import Calendar, Denies, Grant, Inventory, Limits, Plan, Waiter
from blazar.calendar.timeline import Timeline, second
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import waiting
from blazar.manager.lease.booking import PlacementRequest
from blazar.model.clock import END_OF_TIME
from blazar.model.errors import InvalidInput, NotFound
from blazar.model.lease import Lease
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.resources.regional import in_region
from blazar.store.catalog import ResourceCatalog
from blazar.store.waiting_list import Held

RATES = Rates()
REMEMBERED = timedelta(seconds=4 * RATES.half_life)
"""How long use is remembered: what is older counts for a sixteenth of what it was, and less."""

# An estimate is not a promise: a lease is booked when it starts, or when it gets the start it asked for.
LIMITS = Limits(promises=0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A lease that waits, with what its reservations ask of the calendar."""

    lease: Lease
    requests: tuple[PlacementRequest, ...]

    @property
    def waiter(self) -> Waiter:
        """Return it as a plan needs it."""
        wait = self.lease.wait
        assert wait is not None
        return Waiter(
            self.lease.id,
            self.lease.project_id,
            tuple(request.demand for request in self.requests),
            _length(self.lease.window),
            second(wait.queued_at),
            # One that waits for a start after that gets none later than this.
            max(second(wait.until), second(wait.earliest)),
            second(wait.earliest),
        )


@dataclass(frozen=True, slots=True)
class Board:
    """All that a plan is made of, as of one instant.

    ``hopeless`` are leases that ask for what does not exist any more, for the ``reasons``, both by lease.
    """

    now: datetime
    calendar: Calendar
    wanted: tuple[Wanted, ...]
    usage: Usage
    hopeless: Mapping[str, Lease]
    reasons: Mapping[str, str]

    @property
    def resting(self) -> Mapping[str, str]:
        """The leases of which a try failed a short time ago, and that let others go first, each with the reason."""
        return {
            each.lease.id: waiting.why_it_rests(each.lease)
            for each in self.wanted
            if (until := waiting.rests_until(each.lease)) is not None and until > self.now
        }

    @property
    def _waiters(self) -> list[Waiter]:
        return [each.waiter for each in self.wanted]

    def order(self) -> list[Waiter]:
        """Return the leases in the order in which they are served."""
        return in_order(self._waiters, self.usage, totals_of(self.calendar), second(self.now), LIMITS)

    def plan(self, denies: Denies) -> Plan:
        """Return what each lease gets; ``denies`` is asked about what would be booked now."""
        limits = replace(LIMITS, denies=denies, denied=self.resting)
        totals = totals_of(self.calendar)
        return plan(self.calendar, self._waiters, (), self.usage, totals, second(self.now), limits)

    def is_ready(self, waiter: Waiter, grant: Grant) -> bool:
        """Return whether a lease can be booked: it starts now, or gets the very start it asked for.

        The start of the others may still move.
        """
        return grant.start <= max(second(self.now), waiter.earliest)

    def direct(self, lease: Lease, requests: Sequence[PlacementRequest]) -> Direct:
        """Return what a lease gets that does not wait: nothing that would delay one who does."""
        start = second(lease.window.start)
        demands = tuple(request.demand for request in requests)
        asked = Waiter(
            lease.id,
            lease.project_id,
            demands,
            _length(lease.window),
            second(self.now),
            earliest=start,
            latest=max(start, second(self.now)),
        )
        totals = totals_of(self.calendar)
        return direct(self.calendar, self._waiters, (), self.usage, totals, second(self.now), LIMITS, asked)

    def delayed(self, before: Grant, after: Grant) -> tuple[str, ...]:
        """Return which leases would be delayed if one had ``after`` instead of ``before``, neither of them on it."""
        kinds = {part.kind for part in after.parts}
        waiters = [each for each in self._waiters if any(demand.kind in kinds for demand in each.demands)]
        totals, now = totals_of(self.calendar), second(self.now)
        return delayed(self.calendar, waiters, (), self.usage, totals, now, LIMITS, before=before, after=after)


class Boards:
    """Reads boards: in a number of statements that grows with neither leases nor resources."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def board(self, besides: Collection[PlacementRequest] = (), *, without: str | None = None) -> Board:
        """Return the board of now; ``besides`` are demands of kinds that are read as well.

        Its calendar is ``without`` what the lease with this id has.
        """
        store, now = self._runtime.store, self._runtime.clock.now()
        wanted: list[Wanted] = []
        hopeless: dict[str, Lease] = {}
        reasons: dict[str, str] = {}
        read_again = cache(store.resources.catalog)
        for lease in store.waiting_list.waiting():
            try:
                wanted.append(Wanted(lease, tuple(self._requests(lease, read_again))))
            except (InvalidInput, NotFound) as error:
                hopeless[lease.id], reasons[lease.id] = lease, error.message
        demands = [request.demand for each in wanted for request in each.requests]
        demands += [request.demand for request in besides]
        calendar = self._calendar({demand.kind for demand in demands}, now, without)
        held = store.waiting_list.held(calendar.keys(), now - REMEMBERED) if wanted else ()
        return Board(now, calendar, tuple(wanted), Usage(_uses(held, calendar, now), RATES), hopeless, reasons)

    def _requests(
        self, lease: Lease, read_again: Callable[[ResourceKind], ResourceCatalog]
    ) -> Iterator[PlacementRequest]:
        for reservation in lease.reservations:
            kind = self._runtime.type_of(reservation)
            if kind.expands:
                continue
            latest = self._runtime.store.resources.latest_catalog(kind.kind) or read_again(kind.kind)
            try:
                demand = kind.demand(reservation.parameters, known=latest.keys())
            except InvalidInput:
                # It may ask for a property that is newer than what this process has read.
                demand = kind.demand(reservation.parameters, known=read_again(kind.kind).keys())
            yield PlacementRequest(
                reservation.id, in_region(demand, reservation.region) if reservation.region else demand
            )

    def _calendar(self, kinds: Collection[ResourceKind], now: datetime, without: str | None) -> Calendar:
        ahead = Window(now.replace(microsecond=0), END_OF_TIME)
        view = self._runtime.store.calendar.range(dict.fromkeys(sorted(kinds), False), ahead, now=now, besides=without)
        return {kind: _inventory(view.catalogs[kind], timeline) for kind, timeline in view.timelines.items()}


def _inventory(catalog: ResourceCatalog, timeline: Timeline) -> Inventory:
    return Inventory(catalog.resources, timeline.uses, timeline.cleaning, timeline.late, catalog.matching)


def _uses(held: Collection[Held], calendar: Calendar, now: datetime) -> Mapping[str, float]:
    """Return the use of each project in share-seconds."""
    pieces: dict[str, list[Piece]] = defaultdict(list)
    totals = {kind: Counter[str]() for kind in calendar}
    for kind, inventory in calendar.items():
        for resource in inventory.resources:
            totals[kind].update(dict(resource.capacity))
    for each in held:
        whole = Piece(_share(each, calendar[each.kind], totals[each.kind]), second(each.begin), second(each.end))
        back = None if each.released_at is None else second(each.released_at)
        pieces[each.project_id] += (whole,) if back is None else given_back(whole, back, RATES)
    return {project: used(found, second(now), RATES) for project, found in pieces.items()}


def _share(held: Held, inventory: Inventory, totals: Mapping[str, int]) -> float:
    """Return the dominant share of a kind that an allocation takes."""
    if held.per_instance is None:
        return held.count / max(len(inventory.resources), 1)
    return max((held.count * amount / max(totals.get(name, 0), 1) for name, amount in held.per_instance), default=0.0)


def _length(window: Window) -> int:
    return second(window.end) - second(window.start)
