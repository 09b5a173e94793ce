# SPDX-License-Identifier: Apache-2.0
"""Creation of a lease: its resources are granted, and what it needs before its start is made, or all is undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blazar.enforcement import Occasion
from blazar.manager.booking.booking import PlacementRequest, Proposal, Selectable, plan_allocations
from blazar.manager.booking.host_search import RepackedPlan
from blazar.manager.booking.repacking import plan_moves
from blazar.manager.booking.unique_names import check_names
from blazar.manager.changing.evacuated_hosts import EvacuatedHosts
from blazar.manager.changing.new_leases import NewLease, NewLeases, Turn
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges, prepare_reservations
from blazar.manager.events.evacuation import add_evacuation
from blazar.manager.leases import lifecycle
from blazar.manager.outbox.enforcement_check import EnforcementCheck, Examined
from blazar.manager.outbox.messages import call_commit_hooks, plan_messages
from blazar.model.base.errors import NotEnoughResources, StaleLease
from blazar.model.billing.booked_prices import AccountTotals
from blazar.model.billing.prices import LeasePrice
from blazar.model.billing.spending import SpendRoom
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.requests import Actor, LeaseRequest
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices


class CreationGrant:
    """The resources for one new lease: found, and proposed to be booked."""

    def __init__(self, runtime: Runtime, new: NewLease, claim: Claim) -> None:
        self.claim = claim
        self._runtime = runtime
        # Until resources are found: the lease in the first region that may be tried.
        self.options = new.options()
        """The lease in each of the regions that may be tried."""
        self._turns: Sequence[Turn] = [Turn(option) for option in self.options]
        self._new = self.options[0]
        self._turn = self._turns[0]
        self._expects_nobody = False
        self.price: LeasePrice | None = None
        """What it costs, once that is known."""
        self.totals: dict[tuple[str, str], AccountTotals] = {}
        """What it costs once it is booked, by lease and project."""
        self._has_names = any(runtime.types[r.resource_type].unique is not None for r in new.lease.reservations)
        self.enforcement_checks: tuple[EnforcementCheck, ...] = ()
        """The check that enforcement makes of it, if there is any filter."""
        if runtime.enforcement.enabled:
            self.enforcement_checks = (EnforcementCheck(runtime),)
        self.moved: tuple[LeaseWrite, ...] = ()
        """Leases of others that make room for it."""
        self._examined: AllocationPlan | None = None
        self._evacuated: EvacuatedHosts | None = None

    @property
    def lease(self) -> Lease:
        """The lease that is to be booked."""
        return self._new.lease

    @property
    def new(self) -> NewLease:
        """The lease that is to be booked, with what it asks of the calendar."""
        return self._new

    def take(self, turns: Sequence[Turn] | None) -> None:
        """Try only these regions, and in each choose only the resources that are left to the lease there.

        None: as if nobody waited.
        """
        self._expects_nobody = False
        self._turns = [Turn(option) for option in self.options] if turns is None else turns

    def expect_nobody(self) -> None:
        """Find resources only if nobody waits, before regions were taken; SomebodyWaits else. It costs no statement."""
        self._expects_nobody = True

    def evacuate(self, hosts: EvacuatedHosts) -> None:
        """Let the lease have hosts that are evacuated for it; it gets no more hosts than its least number."""
        self._evacuated = hosts
        self._turns = [replace(turn, new=_ask_for_least(turn.new)) for turn in self._turns]

    @property
    def planned(self) -> Lease:
        """The lease as it would be once it is booked."""
        status = LeaseStatus.PENDING if self._evacuated is None else LeaseStatus.IN_PROGRESS
        return lifecycle.move(self.lease, status)

    @property
    def confined(self) -> bool:
        """Tell whether only some resources may be chosen, as others wait for the rest."""
        return any(turn.only is not None for turn in self._turns)

    @property
    def takes_only_whole(self) -> bool:
        """Whether it asks for whole resources only, and for nothing besides that others may ask for."""
        whole = all(request.demand.per_instance is None for request in self._new.placement_requests)
        is_priced = self._new.max_price or self._new.lapsed_at
        return whole and not (self._has_names or self.enforcement_checks or self._evacuated or is_priced)

    def find(self, attempt: int) -> AllocationPlan:
        """Find resources, in the first region that has enough, or else in which others that have not started make room.

        NotEnoughResources says what the first one lacks. SomebodyWaits if nobody was expected to.
        """
        refused: list[tuple[Turn, NotEnoughResources]] = []
        self.moved = ()
        for turn in self._turns:
            try:
                plan = self._found(turn, attempt)
            except NotEnoughResources as error:
                refused.append((turn, error))
            else:
                self._new, self._turn = turn.new, turn
                return plan
        for turn, missing in refused:
            found = self._find_by_moves(turn, missing, attempt)
            if found is not None:
                self._new, self._turn, self.moved = turn.new, turn, found.moved
                return found.plan
        raise refused[0][1]

    def find_beside(self, in_flight: frozenset[int]) -> AllocationPlan:
        """Find all that is asked for in the first region, while resources are ``in_flight``: these count as taken.

        What is less, or elsewhere, may be for want of what is in flight for another time. NotEnoughResources,
        SomebodyWaits if nobody was expected to.
        """
        turn, self.moved = self._turns[0], ()
        plan = self._found(turn, 0, in_flight)
        if len(plan.allocations) < sum(request.demand.max_count for request in turn.new.placement_requests):
            raise NotEnoughResources("there may be more once others are written")
        self._new, self._turn = turn.new, turn
        return plan

    def _find_by_moves(self, turn: Turn, refused: NotEnoughResources, attempt: int) -> RepackedPlan | None:
        lease, requests = turn.new.lease, turn.new.placement_requests
        if lease.kind is not LeaseKind.SCHEDULED:
            return None
        select, now = Selectable(lease.project_id, only=turn.only), self._runtime.clock.now()
        return plan_moves(
            self._runtime, lease, lease.window, requests, refused, selectable=select, now=now, attempt=attempt
        )

    def find_instead(self, lease: Lease, counts: Mapping[str, int]) -> Sequence[Allocation]:
        """Find resources for the lease in another window, or with other counts of reservations. NotEnoughResources."""
        requests = tuple(
            replace(request, demand=replace(request.demand, min_count=count, max_count=count))
            if (count := counts.get(request.reservation_id))
            else request
            for request in self._new.placement_requests
        )
        return self._found(
            replace(self._turn, new=replace(self._new, lease=lease, placement_requests=requests)), 0
        ).allocations

    def find_spend_room(self) -> SpendRoom | None:
        """Return what the project may still spend; None: any amount. EnforcementUnavailable."""
        rooms = (check.find_spend_room(self.lease) for check in self.enforcement_checks)
        return next(rooms, None)

    def is_granted(self, lease: Lease, allocations: Sequence[Allocation]) -> bool:
        """Return whether our own limits allow a lease with these resources. EnforcementUnavailable."""
        examined = self._examine(lease, allocations)
        return not any(check.list_objections(examined) for check in self.enforcement_checks)

    def _found(self, turn: Turn, attempt: int, in_flight: frozenset[int] = frozenset()) -> AllocationPlan:
        lease, placement_requests = turn.new.lease, turn.new.placement_requests
        if self._has_names:
            check_names(self._runtime, lease)
        if self._examined is not None:
            # Prefer the resources that the check has accepted, so that it need not be repeated.
            placement_requests = _prefer(placement_requests, self._examined)
        return plan_allocations(
            self._runtime,
            lease.id,
            lease.window,
            placement_requests,
            selectable=Selectable(
                lease.project_id,
                only=turn.only,
                emptied=frozenset() if self._evacuated is None else self._evacuated.resource_ids,
                awake=lease.kind is LeaseKind.IMMEDIATE,
                if_none_waits=self._expects_nobody,
                in_flight=in_flight,
            ),
            now=self._runtime.clock.now(),
            attempt=attempt,
            is_new=True,
        )

    def check(self, plan: AllocationPlan) -> None:
        """Check the limits of the project. UsageDenied."""
        # Rules may have been read since, with the catalogs.
        late = [EnforcementCheck(self._runtime)] if self._runtime.enforcement.enabled else []
        for check in self.enforcement_checks or late:
            check.check(self._examine(self._new.lease, plan.allocations))

    def check_bounds(self) -> None:
        """Check the bounds of the project as a booking does; nothing is booked. UsageDenied."""
        lease, runtime = self._new.lease, self._runtime
        bounds = runtime.bounds_of(lease.project_id)
        if bounds.depends_on_project:
            so_far = runtime.store.calendar.count_leases(lease.project_id, runtime.clock.now())
            bounds.check_project(*so_far, more=len(lease.reservations))

    def propose(self, plan: AllocationPlan) -> Proposal[AllocationPlan]:
        """Return the booking of the lease with what was found for it, its creation claimed."""
        lease, evacuated = self._new.lease, self._evacuated
        evacuates = evacuated is not None and any(a.resource_id in evacuated.resource_ids for a in plan.allocations)
        if evacuated is not None and evacuates:
            lease = add_evacuation(lease, evacuated.limit, self._runtime.clock.now())
        if self.enforcement_checks:
            self._examined = plan
        commit = Commit(
            [LeaseWrite(None, lease, plan.allocations), *self.moved],
            at=lease.created_at,
            generations=plan.generations,
            bounds=self._runtime.bounds_of(lease.project_id),
            evacuates=evacuates,
            most=limit_prices([lease.id], self._new.max_price),
            key=self._new.key,
        )
        return Proposal(plan, commit, (self._examine(self._new.lease, plan.allocations),), self.claim)

    def _examine(self, lease: Lease, allocations: Sequence[Allocation]) -> Examined:
        actor = Actor(lease.user_id, lease.project_id)
        return Examined(actor, lease, allocations, max_price=self._new.max_price)


class Creation:
    """Creates leases, all or nothing."""

    def __init__(self, runtime: Runtime, changes: CloudChanges) -> None:
        self._runtime = runtime
        self._changes = changes
        self._new_leases = NewLeases(runtime)

    def grant(self, request: LeaseRequest) -> CreationGrant:
        """Return the grant for a request, with nothing found or written yet. InvalidInput, UsageDenied, CloudError."""
        claim = self._runtime.claims.new()
        new = self._new_leases.make(request, claim)
        return CreationGrant(self._runtime, new, claim)

    def prepare(self, booked: Lease, plan: AllocationPlan, claim: Claim) -> Lease:
        """Make the cloud objects that the lease needs before its start; undo the booking if that fails.

        One that has waited for its turn goes on waiting then.
        """
        creation = _creation_of(booked)
        with self._changes.undone_on_failure(booked, creation, claim):
            ready = prepare_reservations(self._runtime, booked, {r.id for r in booked.reservations})
        now = self._runtime.clock.now()
        armed = lifecycle.arm(lifecycle.settle(ready, creation, now=now), now=now)
        messages: tuple[OutboxMessage, ...] = ()
        if self._runtime.enforcement.enabled:
            by = Actor(booked.user_id, booked.project_id)
            messages = plan_messages(self._runtime, Occasion.CREATED, armed, plan.allocations, by=by)
        try:
            if any(message.is_held_by_request for message in messages):
                booked, messages = self._accepted(booked, messages, claim)
            saved = self._runtime.store.leases.save(booked, armed, at=now, messages=messages)
        except StaleLease:
            # A user found the lease in a list and deleted it already: the deletion continues from here.
            raise self._changes.lost(booked.id, creation.id, claim, "created") from None
        if messages:
            self._runtime.signals.messages_written()
        return saved

    def _accepted(
        self, booked: Lease, held: tuple[OutboxMessage, ...], claim: Claim
    ) -> tuple[Lease, tuple[OutboxMessage, ...]]:
        """Send the lease to the filters that must accept it, or undo the booking if they do not. StaleLease.

        Return the lease as saved, and the outbox messages to write with it. The messages are written before they are
        sent: so a manager that undoes the creation knows that it may have been accepted.
        """
        creation = _creation_of(booked)
        booked = self._runtime.store.leases.save(booked, booked, at=self._runtime.clock.now(), messages=held)
        with self._changes.undone_on_failure(booked, creation, claim):
            return booked, call_commit_hooks(self._runtime, held)


def _creation_of(lease: Lease) -> Event:
    creation = lease.event(EventType.CREATE)
    assert creation is not None
    return creation


def _ask_for_least(new: NewLease) -> NewLease:
    """Return a lease that asks for no more than its least number of hosts."""
    return replace(
        new,
        placement_requests=tuple(
            replace(request, demand=replace(request.demand, max_count=request.demand.min_count))
            for request in new.placement_requests
        ),
    )


def _prefer(placement_requests: Sequence[PlacementRequest], plan: AllocationPlan) -> tuple[PlacementRequest, ...]:
    """Return the placement requests with the resources of a plan preferred."""
    return tuple(_set_preferred(request, plan) for request in placement_requests)


def _set_preferred(placement_request: PlacementRequest, plan: AllocationPlan) -> PlacementRequest:
    chosen = {a.resource_id for a in plan.allocations if a.reservation_id == placement_request.reservation_id}
    demand = placement_request.demand
    return replace(placement_request, demand=replace(demand, preferred=demand.preferred | chosen))
