# SPDX-License-Identifier: Apache-2.0
"""Booking: read the calendar, place, write; all or nothing, and retried after a lost race.

The scheme is Placement's: every resource has a generation, and a booking raises the generations of what it takes
only where they are still those that were read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar

from blazar.calendar.placement import Assignment, Matching, Placement, Strategy, place
from blazar.context import check_awaited, drop_deadline
from blazar.manager.booking.asleep import read_asleep, refuse_sleepers
from blazar.manager.booking.turns import BookingTurn, BookingTurns
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import EnforcementCheck, Examined
from blazar.manager.outbox.outbox import Outbox
from blazar.model.base.errors import (
    ClaimedLease,
    Contention,
    InvalidInput,
    NotEnoughResources,
    StaleCalendar,
    StaleLease,
    UsageDenied,
)
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Lease
from blazar.model.power.classes import POWERED
from blazar.model.power.states import ALL_AWAKE, AsleepHosts
from blazar.model.resources.resource import ResourceKind
from blazar.model.use.resource_hours import OutboxMessage
from blazar.observe import metrics
from blazar.observe.spans import span
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.calendar.views import CalendarView
from blazar.store.resources.catalog import ResourceCatalog

F = TypeVar("F")

SCARCE_LAST = 2
"""Attempts in which scarce resources are taken last; who still loses races takes any, as one that others leave."""

_OTHERS_FASTER = "other requests for the same resources were faster at every attempt"


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """What one reservation asks of the calendar."""

    reservation_id: str
    demand: Demand


@dataclass(frozen=True, slots=True)
class Selectable:
    """Which resources a lease of a project may get: those that are open to it, and not ``excluded``.

    ``only`` are the resources to choose from; None: all. Hosts that can be emptied are left out, but for those that are
    ``emptied`` for the lease: these are reservable for it. ``awake``: hosts that sleep are left out, too.
    ``if_none_waits``: none may be chosen if a lease waits for its turn; SomebodyWaits. Those ``in_flight`` are being
    promised to others at the moment: they count as taken.
    """

    project_id: str
    excluded: frozenset[int] = frozenset()
    only: frozenset[int] | None = None
    emptied: frozenset[int] = frozenset()
    awake: bool = False
    if_none_waits: bool = False
    in_flight: frozenset[int] = frozenset()


class SomebodyWaits(Exception):
    """A lease waits for its turn: who comes later may have only what it leaves."""


def plan_allocations(
    runtime: Runtime,
    lease_id: str,
    window: Window,
    requests: Sequence[PlacementRequest],
    *,
    selectable: Selectable,
    now: datetime,
    attempt: int,
    is_new: bool = False,
) -> AllocationPlan:
    """Find resources for all placement requests of a lease together. NotEnoughResources says what is missing.

    Resources that the lease itself holds count as free. After a lost race the choice is random, so that competing
    requests choose differently. Hosts that sleep when they are needed are taken last. SomebodyWaits if that matters.
    """
    allocations: list[Allocation] = []
    generations: dict[int, int] = {}
    kinds = sorted({request.demand.kind for request in requests})
    asleep = read_asleep(runtime, window.start, now) if set(kinds) & set(POWERED) else ALL_AWAKE
    for kind in kinds:
        strategy = runtime.settings.strategy_of(kind)
        if attempt > 0 and strategy is not Strategy.RANDOM:
            strategy = Strategy.SCATTER
        mine = [request for request in requests if request.demand.kind == kind]
        demands = [request.demand for request in mine]
        without_amounts, besides = all(demand.whole for demand in demands), None if is_new else lease_id
        with runtime.store.calendar.view_window(
            kind, window, without_amounts=without_amounts, now=now, besides=besides
        ) as view:
            seed, scarce_last = runtime.settings.seed(), attempt < SCARCE_LAST
            choose = partial(place, demands, strategy=strategy, seed=seed, scarce_last=scarce_last)
            with _tell_kind(kind):
                placement = _choose_awake(
                    choose, view, selectable, asleep if kind in POWERED else ALL_AWAKE, window, now
                )
            generations.update(view.generations(placement.resource_ids))
        for request, assignments in zip(mine, placement.assignments, strict=True):
            allocations += [_allocation(lease_id, window, request, assignment) for assignment in assignments]
    return AllocationPlan(tuple(allocations), generations)


def _choose_awake(
    choose: Callable[..., Placement],
    view: CalendarView,
    selectable: Selectable,
    asleep: AsleepHosts,
    window: Window,
    now: datetime,
) -> Placement:
    """Choose resources, hosts that sleep last, or none of these if they must be awake.

    NotEnoughResources, SomebodyWaits.
    """
    if selectable.if_none_waits and view.is_anybody_waiting():
        raise SomebodyWaits
    snapshot = replace(view.snapshot, asleep=asleep.find_asleep(window.start))
    if selectable.in_flight:
        occupancy = snapshot.occupancy
        snapshot = replace(snapshot, occupancy=replace(occupancy, taken=occupancy.taken | selectable.in_flight))
    if not (selectable.awake and asleep.ids):
        return choose(snapshot, matching=match_visible(view.catalog, selectable))
    awake = replace(selectable, excluded=selectable.excluded | asleep.ids)
    try:
        return choose(snapshot, matching=match_visible(view.catalog, awake))
    except (NotEnoughResources, InvalidInput) as error:
        # If there is not enough at all, this says so: also that a host that is required is not there.
        taken = choose(snapshot, matching=match_visible(view.catalog, selectable)).resource_ids
        raise refuse_sleepers(taken & asleep.ids, asleep, now) from error


@contextmanager
def _tell_kind(kind: ResourceKind) -> Iterator[None]:
    """Let an error say of which kind there is not enough."""
    try:
        yield
    except NotEnoughResources as error:
        error.kinds = (kind,)
        raise


@dataclass(frozen=True, slots=True)
class Proposal(Generic[F]):
    """What would be written of leases, as the calendar was at one attempt; ``found`` is what its maker knows of it.

    Enforcement has to allow all that is ``examined``. A ``claim`` on an event in the commit begins with its write, and
    ``messages`` makes what filters are told of it then: not before they have allowed it.
    """

    found: F
    commit: Commit | None
    examined: tuple[Examined, ...] = ()
    claim: Claim | None = None
    messages: Callable[[], Collection[OutboxMessage]] | None = None

    @property
    def leases(self) -> tuple[Lease, ...]:
        """The leases as they would be; of what is booked, as they are."""
        return tuple(write.after for write in self.writes)

    @property
    def writes(self) -> Sequence[LeaseWrite]:
        """The leases with what they get; none if there is nothing to write."""
        return () if self.commit is None else self.commit.leases


class Booker:
    """Books for one request after the other: proposes, checks and writes until no race is lost."""

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        self._runtime = runtime
        self._outbox = outbox
        self._turns = BookingTurns()

    def book(
        self,
        propose: Callable[[int], Proposal[F]],
        *,
        beside: Callable[[frozenset[int]], Proposal[F]] | None = None,
        check: Callable[[Proposal[F]], Proposal[F]] | None = None,
        checks: Collection[EnforcementCheck] = (),
        write: Callable[[Proposal[F], Commit], Sequence[Lease]] | None = None,
        dry_run: bool = False,
    ) -> Proposal[F]:
        """Book what is proposed at an attempt (0, 1, …), and return it with its leases as saved.

        No other request waits while a proposal is checked, which may be slow; if it is outdated by then, another one is
        made and checked. Who only takes whole resources for a new lease proposes some ``beside`` what is being written
        for others, if it can: then none of them waits for the write of another one. A ``check`` of the caller comes
        instead of that by enforcement, and says what is left of the proposal; ``checks`` are those of an earlier look
        at the same. A feature with rows of its own has its ``write`` of the commit. For a ``dry_run`` nothing is
        written. Contention when the attempts are spent, UsageDenied, and the errors of ``BookingStore.commit``.
        """
        mine, reason, tried = list(checks), _OTHERS_FASTER, list[Proposal[F]]()
        with nullcontext() if dry_run else _count_booking(tried):
            for attempt in range(self._runtime.settings.booking_attempts):
                try:
                    with span("book", attempt=attempt + 1) as note, BookingTurn(self._turns) as turn:
                        tried[:] = [_propose(turn.turns, propose, beside, attempt)]
                        proposal = self._examine(turn, tried[0], check, mine)
                        check_awaited()
                        if proposal.commit is not None and not dry_run:
                            commit = self._complete(proposal, proposal.commit, mine)
                            if beside is not None and _only_takes(commit):
                                turn.pass_on(commit.generations)
                            saved = write(proposal, commit) if write else self._runtime.store.bookings.commit(commit)
                            proposal = replace(proposal, commit=_with_saved(commit, saved))
                            note.add(lease_id=",".join(lease.id for lease in saved[:10]))
                        drop_deadline()
                        return proposal
                except (StaleCalendar, StaleLease) as lost:
                    reason = _lose_race(lost, attempt)
            raise Contention(f"{reason}; please retry")

    def _examine(
        self,
        turn: BookingTurn,
        proposal: Proposal[F],
        check: Callable[[Proposal[F]], Proposal[F]] | None,
        checks: list[EnforcementCheck],
    ) -> Proposal[F]:
        """Return what a check, of the caller or by enforcement, leaves of a proposal, while others have their turn."""
        if check is None and not (self._runtime.enforcement.enabled and proposal.examined):
            return proposal
        with turn.interrupted():
            return self._check(proposal, checks) if check is None else check(proposal)

    def _check(self, proposal: Proposal[F], checks: list[EnforcementCheck]) -> Proposal[F]:
        """Return the proposal if enforcement allows each part, by a check of its own; UsageDenied, or another error."""
        for examined in proposal.examined:
            for lease_id in examined.known_leases:
                self._outbox.catch_up(lease_id)
        # What an earlier attempt has examined besides is not written.
        del checks[len(proposal.examined) :]
        checks += [EnforcementCheck(self._runtime) for _ in proposal.examined[len(checks) :]]
        for examined, check in zip(proposal.examined, checks, strict=True):
            try:
                check.check(examined)
            except UsageDenied as error:
                error.pointer = examined.pointer or error.pointer
                raise
        return proposal

    def _complete(self, proposal: Proposal[F], commit: Commit, checks: Sequence[EnforcementCheck]) -> Commit:
        """Return the commit with what the checks have read, and the claim as of now: the checks may have taken long."""
        # Both parts of an operation may be of one project.
        uses = {use.project_id: use for use in commit.uses}
        uses |= {use.project_id: use for check in checks for use in check.uses}
        commit = replace(commit, at=self._runtime.clock.now(), uses=tuple(uses.values()))
        if proposal.messages is not None:
            commit = replace(commit, messages=proposal.messages())
        if proposal.claim is None:
            return commit
        until, token = self._runtime.claims.begin(proposal.claim), proposal.claim.token
        return replace(commit, leases=[write.with_claim(token, until) for write in commit.leases])


def _propose(
    turns: BookingTurns,
    propose: Callable[[int], Proposal[F]],
    beside: Callable[[frozenset[int]], Proposal[F]] | None,
    attempt: int,
) -> Proposal[F]:
    """Return a proposal beside what is being written, if that is enough; else one once it is written."""
    if turns.writing:
        if beside is not None and (in_flight := turns.in_flight):
            with suppress(NotEnoughResources):
                return beside(in_flight)
        turns.wait_for_writes()
    return propose(attempt)


def _only_takes(commit: Commit) -> bool:
    """Return whether a commit does nothing but take resources for new leases, whatever else their project has."""
    takes_only = all(write.before is None for write in commit.leases)
    return takes_only and not (commit.uses or commit.evacuates or commit.bounds.depends_on_project)


@contextmanager
def _count_booking(tried: Sequence[Proposal[Any]]) -> Iterator[None]:
    """Count a booking, once for each kind in it; ``tried`` has its last proposal. What takes nothing is no booking."""
    begin, outcome = time.perf_counter(), ""
    missing: tuple[str, ...] = ()
    try:
        yield
        outcome = "booked"
    except NotEnoughResources as error:
        outcome, missing = "no_room", error.kinds
        raise
    except UsageDenied:
        outcome = "denied"
        raise
    except Contention:
        outcome = "contended"
        raise
    finally:
        kinds = missing or {
            part.kind for proposal in tried for write in proposal.writes for part in write.allocations or ()
        }
        for kind in kinds if outcome else ():
            metrics.BOOKINGS.add(kind, outcome)
        if kinds:
            metrics.BOOKING_DURATION.note(time.perf_counter() - begin)


def _lose_race(lost: StaleCalendar | StaleLease, attempt: int) -> str:
    """Pause after an attempt that others were faster than; return why it failed, as a user may read it."""
    metrics.BOOKING_RETRIES.add("lease" if isinstance(lost, StaleLease) else "calendar")
    # Full jitter: requests that collided once should not collide again.
    time.sleep(random.uniform(0, min(0.5, 0.01 * 2**attempt)))
    return f"{lost.message} at the moment" if isinstance(lost, ClaimedLease) else _OTHERS_FASTER


def _with_saved(commit: Commit, saved: Sequence[Lease]) -> Commit:
    pairs = list(zip(commit.leases, saved, strict=True))
    if all(write.after is lease for write, lease in pairs):
        return commit
    return replace(commit, leases=[replace(write, after=lease) for write, lease in pairs])


def _allocation(lease_id: str, window: Window, request: PlacementRequest, assignment: Assignment) -> Allocation:
    return Allocation(
        kind=request.demand.kind,
        resource_id=assignment.resource_id,
        lease_id=lease_id,
        reservation_id=request.reservation_id,
        window=window,
        count=assignment.count,
        per_instance=request.demand.per_instance,
    )


def find_whole_kinds(requests: Iterable[PlacementRequest]) -> Mapping[ResourceKind, bool]:
    """Return the kinds that are asked for, in order, and whether all that is asked of one are whole resources."""
    whole: dict[ResourceKind, bool] = {}
    for request in requests:
        whole[request.demand.kind] = whole.get(request.demand.kind, True) and request.demand.whole
    return dict(sorted(whole.items()))


def match_visible(catalog: ResourceCatalog, selectable: Selectable) -> Matching:
    """Return what finds the resources that meet a requirement, of those that a lease may get."""
    excluded, only = selectable.excluded, selectable.only
    if not excluded and only is None and not catalog.restricted and not catalog.has_evacuable:
        return catalog.matching
    return lambda requirement: [
        replace(r, reservable=True) if r.evacuable else r
        for r in catalog.matching(requirement)
        if r.id not in excluded
        and (only is None or r.id in only)
        and r.is_open_to(selectable.project_id)
        and (not r.evacuable or r.id in selectable.emptied)
    ]
