# SPDX-License-Identifier: Apache-2.0
"""Creation of a lease: its resources are granted, and what it needs before its start is made, or all is undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blazar.enforcement import Enforcement, Occasion
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.lease.making_room import with_room_to_make
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.making_room import Emptied
from blazar.manager.requests.names import check_names
from blazar.manager.requests.new_leases import NewLease, NewLeases, Turn
from blazar.manager.requests.preparing import prepared
from blazar.model.bounds import Bounds
from blazar.model.demand import Plan
from blazar.model.errors import NotEnoughResources, StaleLease
from blazar.model.lease import Event, EventType, Lease, LeaseStatus
from blazar.model.requests import Actor, LeaseRequest
from blazar.model.usage import OutboxMessage


@dataclass(frozen=True, slots=True)
class _Option:
    """A lease in one region; ``only`` are the resources that may be chosen, by calendar id, None: any."""

    new: NewLease
    only: frozenset[int] | None = None


class Grant:
    """The resources for one new lease: found, checked by enforcement, and booked."""

    def __init__(
        self, runtime: Runtime, booking: Booking, enforcement: Enforcement, new: NewLease, claim: Claim
    ) -> None:
        self.claim = claim
        self._runtime = runtime
        self._booking = booking
        self._enforcement = enforcement
        # Until resources are found: the lease in the first region that may be tried.
        self._every = tuple(new.options())
        self._options = tuple(_Option(option) for option in self._every)
        self._new = self._every[0]
        self._enforcement_check = EnforcementCheck(enforcement, runtime.store, runtime.clock)
        self._accepted: Plan | None = None
        self._emptied: Emptied | None = None

    @property
    def lease(self) -> Lease:
        """The lease that is to be booked."""
        return self._new.lease

    @property
    def new(self) -> NewLease:
        """The lease that is to be booked, with what it asks of the calendar."""
        return self._new

    @property
    def options(self) -> Sequence[NewLease]:
        """The lease in each of the regions that may be tried."""
        return self._every

    def take(self, turns: Sequence[Turn]) -> None:
        """Try only these regions, and in each choose only the resources that are left to the lease there."""
        self._options = tuple(
            _Option(turn.new)
            if turn.resources is None
            else _Option(turn.new.preferring(turn.resources), frozenset[int]().union(*turn.resources.values()))
            for turn in turns
        )

    def empty(self, emptied: Emptied) -> None:
        """Let the lease have hosts that are emptied for it; it gets no more hosts than its least number."""
        self._emptied = emptied
        self._options = tuple(_Option(_least(option.new), option.only) for option in self._options)

    @property
    def planned(self) -> Lease:
        """The lease as it would be once it is booked."""
        status = LeaseStatus.PENDING if self._emptied is None else LeaseStatus.IN_PROGRESS
        return lifecycle.move(self.lease, status)

    @property
    def confined(self) -> bool:
        """Tell whether only some resources may be chosen, as others wait for the rest."""
        return any(option.only is not None for option in self._options)

    @property
    def checked(self) -> bool:
        """Tell whether filters have to check what was found."""
        return self._enforcement.enabled

    def find(self, attempt: int) -> Plan:
        """Find resources, in the first region that has enough. NotEnoughResources says what the first one lacks."""
        refused: NotEnoughResources | None = None
        for option in self._options:
            try:
                plan = self._found(option, attempt)
            except NotEnoughResources as error:
                refused = refused or error
            else:
                self._new = option.new
                return plan
        assert refused is not None
        raise refused

    def _found(self, option: _Option, attempt: int) -> Plan:
        lease, placement_requests = option.new.lease, option.new.placement_requests
        check_names(self._runtime, lease)
        if self._accepted is not None:
            # Prefer the resources that the check has accepted, so that it need not be repeated.
            placement_requests = _preferring(placement_requests, self._accepted)
        return self._booking.plan(
            lease.id,
            lease.window,
            placement_requests,
            now=self._runtime.clock.now(),
            attempt=attempt,
            project_id=lease.project_id,
            is_new=True,
            only=option.only,
            emptied=frozenset() if self._emptied is None else self._emptied.resource_ids,
        )

    def check(self, plan: Plan) -> None:
        """Check the limits of the project. UsageDenied."""
        lease = self._new.lease
        self._enforcement_check.check(Actor(lease.user_id, lease.project_id), lease, plan.allocations)
        self._accepted = plan

    def check_bounds(self) -> None:
        """Check the bounds of the project as a booking does; nothing is booked. UsageDenied."""
        lease, bounds, now = self._new.lease, self._bounds, self._runtime.clock.now()
        if bounds is not None and bounds.of_project:
            so_far = self._runtime.store.calendar.so_far(lease.project_id, now)
            bounds.check_project(*so_far, more=len(lease.reservations))

    def book(self, plan: Plan) -> tuple[Lease, Plan]:
        """Write the lease with its resources, its creation claimed. StaleCalendar, UsageDenied, NotEnoughResources."""
        lease = self._new.lease
        makes_room = False
        if self._emptied is not None and any(a.resource_id in self._emptied.resource_ids for a in plan.allocations):
            lease, makes_room = with_room_to_make(lease, self._emptied.limit, self._runtime.clock.now()), True
        # The claim starts here: earlier attempts may have taken a while.
        until = self._runtime.claims.begin(self.claim)
        claimed = lifecycle.with_event(lease, replace(lease.events[-1], due_at=until))
        now, use = self._runtime.clock.now(), self._enforcement_check.use
        book = self._runtime.store.calendar.book
        key, bounds = self._new.key, self._bounds
        return book(claimed, plan, use=use, bounds=bounds, now=now, key=key, makes_room=makes_room), plan

    @property
    def _bounds(self) -> Bounds | None:
        return None if self._enforcement.exempts(self._new.lease.project_id) else self._runtime.settings.bounds


class Creation:
    """Creates leases, all or nothing."""

    def __init__(self, runtime: Runtime, booking: Booking, changes: CloudChanges, outbox: Outbox) -> None:
        self._runtime = runtime
        self._booking = booking
        self._changes = changes
        self._outbox = outbox
        self._new_leases = NewLeases(runtime, outbox.enforcement)

    def grant(self, request: LeaseRequest) -> Grant:
        """Return the grant for a request, with nothing found or written yet. InvalidInput, UsageDenied, CloudError."""
        claim = self._runtime.claims.new()
        new = self._new_leases.of(request, claim)
        return Grant(self._runtime, self._booking, self._outbox.enforcement, new, claim)

    def prepare(self, booked: Lease, plan: Plan, claim: Claim) -> Lease:
        """Make the cloud objects that the lease needs before its start; undo the booking if that fails.

        One that has waited for its turn goes on waiting then.
        """
        creation = _creation_of(booked)
        with self._changes.undone_on_failure(booked, creation, claim):
            ready = prepared(self._runtime, booked, {r.id for r in booked.reservations})
        now = self._runtime.clock.now()
        armed = lifecycle.arm(lifecycle.settle(ready, creation, now=now), now=now)
        by = Actor(booked.user_id, booked.project_id)
        messages = self._outbox.planned(Occasion.CREATED, armed, plan.allocations, by=by)
        try:
            if any(message.held for message in messages):
                booked, messages = self._accepted(booked, messages, claim)
            saved = self._runtime.store.leases.save(booked, armed, at=now, messages=messages)
        except StaleLease:
            # A user found the lease in a list and deleted it already: the deletion continues from here.
            raise self._changes.lost(booked.id, creation.id, claim, "created") from None
        self._outbox.wake()
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
            return booked, self._outbox.commit(held)


def _creation_of(lease: Lease) -> Event:
    creation = lease.event(EventType.CREATE)
    assert creation is not None
    return creation


def _least(new: NewLease) -> NewLease:
    """Return a lease that asks for no more than its least number of hosts."""
    return replace(
        new,
        placement_requests=tuple(
            replace(each, demand=replace(each.demand, max_count=each.demand.min_count))
            for each in new.placement_requests
        ),
    )


def _preferring(placement_requests: Sequence[PlacementRequest], plan: Plan) -> tuple[PlacementRequest, ...]:
    """Return the placement requests with the resources of a plan preferred."""
    return tuple(_with_preferred(each, plan) for each in placement_requests)


def _with_preferred(placement_request: PlacementRequest, plan: Plan) -> PlacementRequest:
    chosen = {a.resource_id for a in plan.allocations if a.reservation_id == placement_request.reservation_id}
    demand = placement_request.demand
    return replace(placement_request, demand=replace(demand, preferred=demand.preferred | chosen))
