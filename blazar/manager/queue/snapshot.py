# SPDX-License-Identifier: Apache-2.0
"""What a plan of the waiting list is made of: the calendar, who waits for what, and what each project has used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache

from blazar.calendar.fits import NEVER
from blazar.calendar.queue.overlay import Candidates, count_totals
from blazar.calendar.queue.plan import Delay, ImmediateAnswer, answer_now, find_delayed, order_waiters, plan_queue
from blazar.calendar.queue.usage import (
    ProjectUsage,
    Rates,
    UsedShare,
    charge_for_returned,
    expected_start,
    foresee_part,
    sum_use,
)
from blazar.calendar.queue.values import (
    Calendar,
    Denies,
    Grant,
    GrantPart,
    Inventory,
    PlanBounds,
    Promise,
    QueuePlan,
    Waiter,
)
from blazar.calendar.timeline import Use, epoch
from blazar.manager.booking.asleep import read_asleep
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.common.runtime import Runtime
from blazar.manager.queue import waiting_leases
from blazar.model.base.clock import END_OF_TIME
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.power.states import ALL_AWAKE
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.resources.contract.regional import in_region
from blazar.store.queue.waiting_list import Held
from blazar.store.resources.catalog import ResourceCatalog

RATES = Rates()
REMEMBERED = timedelta(seconds=4 * RATES.half_life)
"""How long use is remembered: what is older counts for a sixteenth of what it was, and less."""

PROTECT = timedelta(seconds=PlanBounds().protect)
"""What begins later than this from now is not measured against those that wait."""


@dataclass(frozen=True, slots=True)
class WaitingLease:
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
            max(epoch(wait.until), epoch(wait.earliest)),
            epoch(wait.earliest),
            NEVER if wait.latest is None else epoch(wait.latest),
            None if wait.shortest is None else int(wait.shortest.total_seconds()),
        )


@dataclass(frozen=True, slots=True)
class PromisedLease:
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
            earliest=epoch(wait.earliest),
            notice=self.notice,
        )
        return Promise(waiter, self.grant)


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """All that a plan is made of, as of one instant.

    ``impossible`` are leases that ask for what does not exist any more, for the ``reasons``, both by lease.
    ``promised`` are those whose start may become earlier; the calendar does not have what they hold. ``foreseen`` is
    the part of late of what became free as it was booked, and not by an early end.
    """

    now: datetime
    calendar: Calendar
    wanted: tuple[WaitingLease, ...]
    usage: ProjectUsage
    impossible: Mapping[str, Lease]
    reasons: Mapping[str, str]
    promised: tuple[PromisedLease, ...] = ()
    limits: PlanBounds = PlanBounds()
    foreseen: float = 1.0

    def expected(self, lease: Lease, start: int) -> int:
        """Return when a lease will probably start that can at ``start`` if all leases end as they are booked."""
        assert lease.wait is not None
        wish = max(epoch(lease.wait.queued_at), epoch(lease.wait.earliest))
        found = expected_start(wish, start, self.foreseen)
        # What has not become free by then will probably do so as it is booked.
        return found if found > epoch(self.now) else start

    @property
    def backing_off(self) -> Mapping[str, str]:
        """The leases of which a try failed a short time ago, and that let others go first, each with the reason."""
        return {
            waiting.lease.id: waiting_leases.backoff_reason(waiting.lease)
            for waiting in self.wanted
            if (until := waiting_leases.backoff_until(waiting.lease)) is not None and until > self.now
        }

    @property
    def _waiters(self) -> list[Waiter]:
        return [waiting.waiter for waiting in self.wanted]

    def order(self) -> list[Waiter]:
        """Return the leases in the order in which they are served."""
        return order_waiters(self._waiters, self.usage, count_totals(self.calendar), epoch(self.now), self.limits)

    def plan(self, denies: Denies) -> QueuePlan:
        """Return what each lease gets; ``denies`` is asked about what would be booked now."""
        limits = replace(self.limits, denies=denies, denied=self.backing_off)
        totals = count_totals(self.calendar)
        return plan_queue(self.calendar, self._waiters, self._promises, self.usage, totals, epoch(self.now), limits)

    @property
    def _promises(self) -> list[Promise]:
        return [promised.promise for promised in self.promised]

    def answer_now(self, lease: Lease, requests: Sequence[PlacementRequest]) -> ImmediateAnswer:
        """Return what a lease gets that does not wait: nothing that would delay one who does."""
        start = epoch(lease.window.start)
        demands = tuple(request.demand for request in requests)
        asked = Waiter(
            lease.id,
            lease.project_id,
            demands,
            _length(lease.window),
            epoch(self.now),
            earliest=start,
            latest=max(start, epoch(self.now)),
        )
        totals = count_totals(self.calendar)
        promises, now = self._promises, epoch(self.now)
        return answer_now(self.calendar, self._waiters, promises, self.usage, totals, now, self.limits, asked)

    def awaited(self) -> frozenset[tuple[ResourceKind, int]]:
        """Return the resources that somebody waits for who can have them in time: each as its kind and id.

        Of those that wait for what does not exist, or is not free in their time, nothing counts.
        """
        found = self.plan(lambda *_: None)
        served = {grant.lease_id for grant in found.placed} | {e.lease_id for e in found.estimates if e.rough}
        candidates = Candidates(self.calendar)
        return frozenset(
            (kind, id_)
            for waiter in self._waiters
            if waiter.lease_id in served
            for kind, ids in candidates.ids_by_kind(waiter)
            for id_ in ids
        )

    def delayed(self, before: Sequence[Grant], after: Sequence[Grant]) -> Delay:
        """Return which leases would be delayed if others had ``after`` instead of ``before``, none of them on it."""
        kinds = {part.kind for grant in after for part in grant.parts}
        waiters = [waiter for waiter in self._waiters if any(demand.kind in kinds for demand in waiter.demands)]
        totals, now = count_totals(self.calendar), epoch(self.now)
        promises = self._promises
        return find_delayed(
            self.calendar, waiters, promises, self.usage, totals, now, self.limits, before=before, after=after
        )


class SnapshotReader:
    """Reads snapshots: in a number of statements that grows with neither leases nor resources."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def read(self, besides: Collection[PlacementRequest] = (), *, without: Collection[str] = ()) -> QueueSnapshot:
        """Return the snapshot of now; ``besides`` are demands of kinds that are read as well.

        Its calendar is ``without`` what the leases with these ids have.
        """
        store, now = self._runtime.store, self._runtime.clock.now()
        wanted: list[WaitingLease] = []
        impossible: dict[str, Lease] = {}
        reasons: dict[str, str] = {}
        read_again = cache(store.resources.catalog)
        for lease in store.waiting_list.load_waiting():
            try:
                wanted.append(WaitingLease(lease, tuple(self._requests(lease, read_again))))
            except (InvalidInput, NotFound) as error:
                impossible[lease.id], reasons[lease.id] = lease, error.message
        # Read before the calendar: what has changed in between is not found there, and stays where it is.
        promised = [lease for lease in self._promised(read_again) if lease.lease.id not in without]
        requests = [waiting.requests for waiting in wanted] + [promised_lease.requests for promised_lease in promised]
        demands = [request.demand for some in (*requests, besides) for request in some]
        calendar, promised = _take_out_promised(
            self._calendar({demand.kind for demand in demands}, now, without), promised
        )
        held = store.waiting_list.load_booked_uses(calendar.keys(), now - REMEMBERED) if wanted else ()
        pieces = tuple(_read_pieces(held, calendar))
        rates = replace(RATES, project_weights=self._runtime.settings.project_weights)
        usage = ProjectUsage(_sum_uses(pieces, now), rates)
        limits = PlanBounds(promises=self._runtime.settings.promises)
        known = _measure_foreseen(pieces, now)
        return QueueSnapshot(now, calendar, tuple(wanted), usage, impossible, reasons, tuple(promised), limits, known)

    def _promised(self, read_again: Callable[[ResourceKind], ResourceCatalog]) -> Iterator[PromisedLease]:
        notice = int(self._runtime.settings.promise_notice.total_seconds())
        for lease, held in self._runtime.store.waiting_list.load_promised():
            try:
                requests = tuple(self._requests(lease, read_again))
            except (InvalidInput, NotFound):
                # It asks for what does not exist any more: it stays where it is.
                continue
            numbers = {request.reservation_id: number for number, request in enumerate(requests)}
            parts = tuple(
                GrantPart(numbers[a.reservation_id], a.kind, a.resource_id, a.count, a.per_instance) for a in held
            )
            grant = Grant(lease.id, epoch(lease.window.start), epoch(lease.window.end), parts)
            yield PromisedLease(lease, requests, grant, notice)

    def _requests(
        self, lease: Lease, read_again: Callable[[ResourceKind], ResourceCatalog]
    ) -> Iterator[PlacementRequest]:
        for reservation in lease.reservations:
            kind = self._runtime.type_of(reservation)
            if kind.has("children"):
                continue
            latest = self._runtime.store.resources.latest_catalog(kind.kind) or read_again(kind.kind)
            try:
                demand = kind.demand(reservation.parameters, known=latest.property_names())
            except InvalidInput:
                # It may ask for a property that is newer than what this process has read.
                demand = kind.demand(reservation.parameters, known=read_again(kind.kind).property_names())
            yield PlacementRequest(
                reservation.id, in_region(demand, reservation.region) if reservation.region else demand
            )

    def _calendar(self, kinds: Collection[ResourceKind], now: datetime, without: Collection[str]) -> Calendar:
        ahead = Window(now.replace(microsecond=0), END_OF_TIME)
        view = self._runtime.store.calendar.view_range(
            dict.fromkeys(sorted(kinds), False), ahead, now=now, besides=None, without=without
        )
        asleep = read_asleep(self._runtime, ahead.start, now) if HOST in view.timelines else ALL_AWAKE
        return {
            kind: Inventory(
                view.catalogs[kind].resources,
                timeline.uses,
                timeline.cleaning,
                timeline.late,
                view.catalogs[kind].matching,
                self._runtime.settings.strategy_of(kind),
                asleep if kind == HOST else ALL_AWAKE,
            )
            for kind, timeline in view.timelines.items()
        }


def _take_out_promised(calendar: Calendar, promised: Sequence[PromisedLease]) -> tuple[Calendar, list[PromisedLease]]:
    """Return a calendar without what is promised, and the promises of which all was found in it."""
    uses: dict[ResourceKind, dict[int, list[Use]]] = {kind: {} for kind in calendar}
    found = []
    for lease in promised:
        taken: list[tuple[list[Use], Use]] = []
        for part in lease.grant.parts:
            inventory = calendar[part.kind]
            here = uses[part.kind].setdefault(part.resource_id, list(inventory.uses.get(part.resource_id, ())))
            use = (lease.grant.start, lease.grant.end + inventory.cleaning, part.count, part.per_instance)
            if use not in here:
                break
            here.remove(use)
            taken.append((here, use))
        else:
            found.append(lease)
            continue
        for here, use in taken:
            here.append(use)
    without = {kind: replace(inventory, uses={**inventory.uses, **uses[kind]}) for kind, inventory in calendar.items()}
    return without, found


def _read_pieces(held: Collection[Held], calendar: Calendar) -> Iterator[tuple[Held, UsedShare, int]]:
    """Yield what was booked, each with the instant of its end, which may be before that of its booking."""
    totals = {kind: Counter[str]() for kind in calendar}
    for kind, inventory in calendar.items():
        for resource in inventory.resources:
            totals[kind].update(dict(resource.capacity))
    for use in held:
        piece = UsedShare(_share(use, calendar[use.kind], totals[use.kind]), epoch(use.begin), epoch(use.end))
        yield use, piece, piece.end if use.released_at is None else min(epoch(use.released_at), piece.end)


def _sum_uses(pieces: Iterable[tuple[Held, UsedShare, int]], now: datetime) -> Mapping[str, float]:
    """Return the use of each project in share-seconds."""
    charged: dict[str, list[UsedShare]] = defaultdict(list)
    for held, piece, end in pieces:
        charged[held.project_id] += charge_for_returned(piece, end, RATES)
    return {project: sum_use(found, epoch(now), RATES) for project, found in charged.items()}


def _measure_foreseen(pieces: Iterable[tuple[Held, UsedShare, int]], now: datetime) -> float:
    """Return which part of what became free did so as booked, lease by lease: one may have had many resources."""
    leases: dict[str, tuple[UsedShare, int]] = {}
    for held, piece, end in pieces:
        known, last = leases.get(held.lease_id, (UsedShare(0.0, piece.begin, piece.end), end))
        whole = UsedShare(known.share + piece.share, min(known.begin, piece.begin), max(known.end, piece.end))
        leases[held.lease_id] = whole, max(last, end)
    return foresee_part((piece, end) for piece, end in leases.values() if end <= epoch(now))


def _share(held: Held, inventory: Inventory, totals: Mapping[str, int]) -> float:
    """Return the dominant share of a kind that an allocation takes."""
    if held.per_instance is None:
        return held.count / max(len(inventory.resources), 1)
    return max((held.count * amount / max(totals.get(name, 0), 1) for name, amount in held.per_instance), default=0.0)


def _length(window: Window) -> int:
    return epoch(window.end) - epoch(window.start)
