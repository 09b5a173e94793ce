# SPDX-License-Identifier: Apache-2.0
"""What a plan of the waiting list is made of: the calendar, who waits for what, and what each project has used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from blazar.calendar.fits import NEVER
from blazar.calendar.queue.expected import expected_start, foreseen
from blazar.calendar.queue.overlay import Candidates, totals_of
from blazar.calendar.queue.plan import Delay, Direct, delayed, direct, in_order, plan
from blazar.calendar.queue.usage import Piece, Rates, Usage, given_back, used
from blazar.calendar.queue.values import Calendar, Denies, Grant, Inventory, Limits, Part, Plan, Promise, Waiter
from blazar.calendar.timeline import Timeline, Use, second
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

PROTECT = timedelta(seconds=Limits().protect)
"""What begins later than this from now is not measured against those that wait."""


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
            _length(self.lease.window) if wait.longest is None else int(wait.longest.total_seconds()),
            wait.queued_at.timestamp(),
            # One that waits for a start after that gets none later than this.
            max(second(wait.until), second(wait.earliest)),
            second(wait.earliest),
            NEVER if wait.latest is None else second(wait.latest),
            None if wait.shortest is None else int(wait.shortest.total_seconds()),
        )


@dataclass(frozen=True, slots=True)
class Promised:
    """A lease that was promised a start, with what its reservations ask of the calendar, and what it has.

    An earlier start must be at least ``notice`` seconds ahead.
    """

    lease: Lease
    requests: tuple[PlacementRequest, ...]
    grant: Grant
    notice: int

    @property
    def promise(self) -> Promise:
        """Return it as a plan needs it."""
        wait = self.lease.wait
        assert wait is not None
        demands = tuple(request.demand for request in self.requests)
        waiter = Waiter(
            self.lease.id,
            self.lease.project_id,
            demands,
            self.grant.end - self.grant.start,
            wait.queued_at.timestamp(),
            earliest=second(wait.earliest),
            notice=self.notice,
        )
        return Promise(waiter, self.grant)


@dataclass(frozen=True, slots=True)
class Board:
    """All that a plan is made of, as of one instant.

    ``hopeless`` are leases that ask for what does not exist any more, for the ``reasons``, both by lease. ``promised``
    are those whose start may become earlier; the calendar does not have what they hold. ``foreseen`` is the part of
    late of what became free as it was booked, and not by an early end.
    """

    now: datetime
    calendar: Calendar
    wanted: tuple[Wanted, ...]
    usage: Usage
    hopeless: Mapping[str, Lease]
    reasons: Mapping[str, str]
    promised: tuple[Promised, ...] = ()
    limits: Limits = Limits()
    foreseen: float = 1.0

    def expected(self, lease: Lease, start: int) -> int:
        """Return when a lease will probably start that can at ``start`` if all leases end as they are booked."""
        assert lease.wait is not None
        wish = max(second(lease.wait.queued_at), second(lease.wait.earliest))
        found = expected_start(wish, start, self.foreseen)
        # What has not become free by then will probably do so as it is booked.
        return found if found > second(self.now) else start

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
        return in_order(self._waiters, self.usage, totals_of(self.calendar), second(self.now), self.limits)

    def plan(self, denies: Denies) -> Plan:
        """Return what each lease gets; ``denies`` is asked about what would be booked now."""
        limits = replace(self.limits, denies=denies, denied=self.resting)
        totals = totals_of(self.calendar)
        return plan(self.calendar, self._waiters, self._promises, self.usage, totals, second(self.now), limits)

    @property
    def _promises(self) -> list[Promise]:
        return [each.promise for each in self.promised]

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
        promises, now = self._promises, second(self.now)
        return direct(self.calendar, self._waiters, promises, self.usage, totals, now, self.limits, asked)

    def awaited(self) -> frozenset[tuple[ResourceKind, int]]:
        """Return the resources that somebody waits for who can have them in time: each as its kind and id.

        Of those that wait for what does not exist, or is not free in their time, nothing counts.
        """
        found = self.plan(lambda *_: None)
        served = {grant.lease_id for grant in found.placed} | {each.lease_id for each in found.estimates if each.rough}
        candidates = Candidates(self.calendar)
        return frozenset(
            (kind, id_)
            for waiter in self._waiters
            if waiter.lease_id in served
            for kind, ids in candidates.wanted(waiter)
            for id_ in ids
        )

    def delayed(self, before: Sequence[Grant], after: Sequence[Grant]) -> Delay:
        """Return which leases would be delayed if others had ``after`` instead of ``before``, none of them on it."""
        kinds = {part.kind for grant in after for part in grant.parts}
        waiters = [each for each in self._waiters if any(demand.kind in kinds for demand in each.demands)]
        totals, now = totals_of(self.calendar), second(self.now)
        promises = self._promises
        return delayed(
            self.calendar, waiters, promises, self.usage, totals, now, self.limits, before=before, after=after
        )


class Boards:
    """Reads boards: in a number of statements that grows with neither leases nor resources."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def board(self, besides: Collection[PlacementRequest] = (), *, without: Collection[str] = ()) -> Board:
        """Return the board of now; ``besides`` are demands of kinds that are read as well.

        Its calendar is ``without`` what the leases with these ids have.
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
        # Read before the calendar: what has changed in between is not found there, and stays where it is.
        promised = [each for each in self._promised(read_again) if each.lease.id not in without]
        requests = [each.requests for each in wanted] + [each.requests for each in promised]
        demands = [request.demand for some in (*requests, besides) for request in some]
        calendar, promised = _apart(self._calendar({demand.kind for demand in demands}, now, without), promised)
        held = store.waiting_list.held(calendar.keys(), now - REMEMBERED) if wanted else ()
        pieces = tuple(_pieces(held, calendar))
        rates = replace(RATES, project_weights=self._runtime.settings.project_weights)
        usage = Usage(_uses(pieces, now), rates)
        limits = Limits(promises=self._runtime.settings.promises)
        known = _foreseen(pieces, now)
        return Board(now, calendar, tuple(wanted), usage, hopeless, reasons, tuple(promised), limits, known)

    def _promised(self, read_again: Callable[[ResourceKind], ResourceCatalog]) -> Iterator[Promised]:
        notice = int(self._runtime.settings.promise_notice.total_seconds())
        for lease, held in self._runtime.store.waiting_list.promised():
            try:
                requests = tuple(self._requests(lease, read_again))
            except (InvalidInput, NotFound):
                # It asks for what does not exist any more: it stays where it is.
                continue
            numbers = {request.reservation_id: number for number, request in enumerate(requests)}
            parts = tuple(
                Part(numbers[each.reservation_id], each.kind, each.resource_id, each.count, each.per_instance)
                for each in held
            )
            grant = Grant(lease.id, second(lease.window.start), second(lease.window.end), parts)
            yield Promised(lease, requests, grant, notice)

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

    def _calendar(self, kinds: Collection[ResourceKind], now: datetime, without: Collection[str]) -> Calendar:
        ahead = Window(now.replace(microsecond=0), END_OF_TIME)
        view = self._runtime.store.calendar.range(
            dict.fromkeys(sorted(kinds), False), ahead, now=now, besides=None, without=without
        )
        return {kind: _inventory(view.catalogs[kind], timeline) for kind, timeline in view.timelines.items()}


def _apart(calendar: Calendar, promised: Sequence[Promised]) -> tuple[Calendar, list[Promised]]:
    """Return a calendar without what is promised, and the promises of which all was found in it."""
    uses: dict[ResourceKind, dict[int, list[Use]]] = {kind: {} for kind in calendar}
    found = []
    for each in promised:
        taken: list[tuple[list[Use], Use]] = []
        for part in each.grant.parts:
            inventory = calendar[part.kind]
            here = uses[part.kind].setdefault(part.resource_id, list(inventory.uses.get(part.resource_id, ())))
            use = (each.grant.start, each.grant.end + inventory.cleaning, part.count, part.per_instance)
            if use not in here:
                break
            here.remove(use)
            taken.append((here, use))
        else:
            found.append(each)
            continue
        for here, use in taken:
            here.append(use)
    without = {kind: replace(inventory, uses={**inventory.uses, **uses[kind]}) for kind, inventory in calendar.items()}
    return without, found


def _inventory(catalog: ResourceCatalog, timeline: Timeline) -> Inventory:
    return Inventory(catalog.resources, timeline.uses, timeline.cleaning, timeline.late, catalog.matching)


def _pieces(held: Collection[Held], calendar: Calendar) -> Iterator[tuple[Held, Piece, int]]:
    """Yield what was booked, each with the instant of its end, which may be before that of its booking."""
    totals = {kind: Counter[str]() for kind in calendar}
    for kind, inventory in calendar.items():
        for resource in inventory.resources:
            totals[kind].update(dict(resource.capacity))
    for each in held:
        piece = Piece(_share(each, calendar[each.kind], totals[each.kind]), second(each.begin), second(each.end))
        yield each, piece, piece.end if each.released_at is None else min(second(each.released_at), piece.end)


def _uses(pieces: Iterable[tuple[Held, Piece, int]], now: datetime) -> Mapping[str, float]:
    """Return the use of each project in share-seconds."""
    charged: dict[str, list[Piece]] = defaultdict(list)
    for held, piece, end in pieces:
        charged[held.project_id] += given_back(piece, end, RATES)
    return {project: used(found, second(now), RATES) for project, found in charged.items()}


def _foreseen(pieces: Iterable[tuple[Held, Piece, int]], now: datetime) -> float:
    """Return which part of what became free did so as booked, lease by lease: one may have had many resources."""
    leases: dict[str, tuple[Piece, int]] = {}
    for held, piece, end in pieces:
        known, last = leases.get(held.lease_id, (Piece(0.0, piece.begin, piece.end), end))
        whole = Piece(known.share + piece.share, min(known.begin, piece.begin), max(known.end, piece.end))
        leases[held.lease_id] = whole, max(last, end)
    return foreseen((piece, end) for piece, end in leases.values() if end <= second(now))


def _share(held: Held, inventory: Inventory, totals: Mapping[str, int]) -> float:
    """Return the dominant share of a kind that an allocation takes."""
    if held.per_instance is None:
        return held.count / max(len(inventory.resources), 1)
    return max((held.count * amount / max(totals.get(name, 0), 1) for name, amount in held.per_instance), default=0.0)


def _length(window: Window) -> int:
    return second(window.end) - second(window.start)
