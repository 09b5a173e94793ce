# SPDX-License-Identifier: Apache-2.0
"""The lease service: the operations of users on leases, each all or nothing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from blazar.context import scope
from blazar.enforcement import Occasion
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.worker import Worker
from blazar.manager.health.healing import Healing
from blazar.manager.lease import dates, lifecycle
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.updates import Busy, Updates
from blazar.manager.requests.waiting import Waiting
from blazar.model.clock import monotonic
from blazar.model.demand import Demand, Plan
from blazar.model.errors import InvalidInput, NotFound, StaleLease
from blazar.model.lease import (
    Content,
    Event,
    EventStatus,
    EventType,
    Lease,
    LeaseRevision,
    LeaseStatus,
    Reservation,
    ReservationStatus,
)
from blazar.model.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.usage import OutboxMessage
from blazar.model.window import Window
from blazar.resources.base import Given, Task
from blazar.resources.complete import CompleteType

POLL_SECONDS = 0.1
"""Seconds between two reads of a lease that a request waits for."""


class LeaseService:
    """Creates, changes, deletes and lists leases."""

    def __init__(
        self,
        runtime: Runtime,
        worker: Worker,
        booking: Booking,
        healing: Healing,
        changes: CloudChanges,
        outbox: Outbox,
    ) -> None:
        self._runtime = runtime
        self._worker = worker
        self._changes = changes
        self._booking = booking
        self._healing = healing
        self._enforcement = outbox.enforcement
        self._outbox = outbox
        self._waiting = Waiting()
        self._updates = Updates(runtime, booking, changes, outbox)

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first."""
        return self._runtime.store.leases.of_project(project_id)

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first."""
        return self._runtime.store.leases.revisions(project_id)

    def by_id(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them; deleted ones are left out."""
        return self._runtime.store.leases.by_ids(lease_ids)

    def one(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""
        return self._runtime.store.leases.one(lease_id)

    def create(self, request: LeaseRequest) -> Lease:
        """Book a lease, make the cloud objects it needs before its start, and return it PENDING; or undo all."""
        now = self._runtime.clock.now()
        window = dates.new_window(request.start, request.end, now)
        lead = self._runtime.settings.lead_before_end([r.resource_type for r in request.reservations])
        before_end = dates.new_before_end(window, request.before_end, lead)
        bounds = None if self._enforcement.exempts(request.project_id) else self._runtime.settings.bounds
        if bounds is not None:
            bounds.check_lease(len(request.reservations))
        checked = [(self._type(r.resource_type), r.resource_type, r.parameters) for r in request.reservations]
        with scope(limit=self._runtime.settings.request_limit):
            resolved = [kind.resolve(Given(given), project_id=request.project_id) for kind, _, given in checked]
        parameters = [kind.parameters(given) for (kind, _, _), given in zip(checked, resolved, strict=True)]
        saves = any(kind.action(values).saves_work for (kind, _, _), values in zip(checked, parameters, strict=True))
        if before_end is None and saves:
            # No warning requested, but work to save: save it at the end itself, before anything is deleted.
            before_end = window.end
        claim = self._runtime.claims.new()
        lease = _new_lease(
            request,
            window,
            before_end,
            [(name, values) for (_, name, _), values in zip(checked, parameters, strict=True)],
            token=claim.token,
            now=now,
            until=now + self._runtime.claims.ttl,
        )
        placement_requests = [
            PlacementRequest(reservation.id, self._demand(kind, reservation.parameters, private=request.operator))
            for reservation, (kind, _, _) in zip(lease.reservations, checked, strict=True)
        ]
        with scope(limit=self._runtime.settings.request_limit):
            booked, plan = self._grant(lease, placement_requests, claim)
            with self._runtime.claims.held(claim):
                created = self._prepare(booked, plan, claim)
        self._outbox.wake()
        self._runtime.notifier.notify(CREATED, created)
        self._runtime.wake()
        return created

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease and return it, all or nothing."""
        try:
            lease = self._patiently(lambda: self._updates.update(lease_id, change))
            # The change may have replaced missing resources.
            seen = lease.degraded and self._healing.heal_once(lease_id, in_use=False)
            return self._runtime.store.leases.one(lease_id) if seen else lease
        finally:
            self._runtime.wake()

    def _patiently(self, change: Callable[[], Lease]) -> Lease:
        """Make a change; while other work on the lease is in progress, wait up to ``patience`` for it to finish."""
        end = monotonic() + self._runtime.settings.patience.total_seconds()
        try:
            return change()
        except Busy as busy:
            with self._waiting.place(busy.project_id) as waits:
                if not waits:
                    raise
                while monotonic() < end:
                    time.sleep(POLL_SECONDS)
                    with suppress(Busy):
                        return change()
                raise

    def _wait_until_gone(self, lease: Lease) -> None:
        """Wait up to ``patience`` for a deletion that others finish, so that its resources can be booked again."""
        end = monotonic() + self._runtime.settings.patience.total_seconds()
        with self._waiting.place(lease.project_id) as waits:
            while waits and monotonic() < end:
                try:
                    self._runtime.store.leases.one(lease.id)
                except NotFound:
                    return
                time.sleep(POLL_SECONDS)

    def delete(self, lease_id: str) -> None:
        """Delete a lease, ending it now.

        Resources that can be returned at once are returned before this method returns; the rest (slow servers, a cloud
        that does not answer) follows in the background while the lease is DELETING. Work in progress, as a start, is
        waited for up to ``patience``.
        """
        while True:
            # Before the lease is read: a claim that had not ended then may have been renewed since.
            now = self._runtime.clock.now()
            lease = self._runtime.store.leases.one(lease_id)
            if lease.status is LeaseStatus.DELETING:
                return
            going = lifecycle.begin_deletion(lease, event_id=str(uuid.uuid4()), now=now)
            deletion = going.events[-1]
            free = lifecycle.live_claim(lease, now) is None
            claim = self._runtime.claims.new()
            if free:
                going = lifecycle.claim(
                    going, deletion, token=claim.token, now=now, until=self._runtime.claims.begin(claim)
                )
            try:
                saved = self._runtime.store.leases.save(
                    lease,
                    going,
                    at=now,
                    messages=self._outbox.of_end(lease, going),
                )
            except StaleLease:
                continue
            self._outbox.wake()
            if free:
                with scope(limit=self._runtime.settings.request_limit):
                    self._worker.perform(saved, deletion.id, claim)
            self._runtime.wake()
            if not free:
                self._wait_until_gone(lease)
            return

    def _demand(self, kind: CompleteType, parameters: Content, *, private: bool) -> Demand:
        try:
            return kind.demand(
                parameters, known=self._runtime.store.resources.known_properties(kind.kind, private=private)
            )
        except InvalidInput:
            # It may ask for a property that is newer than what this process has read.
            return kind.demand(parameters, known=self._runtime.store.resources.catalog(kind.kind).keys(private=private))

    def _type(self, resource_type: str) -> CompleteType:
        if resource_type not in self._runtime.types:
            known = ", ".join(sorted(self._runtime.types))
            raise InvalidInput(f"resource_type {resource_type[:80]!r} is not available; use one of: {known}")
        return self._runtime.types[resource_type]

    def _grant(self, lease: Lease, placement_requests: list[PlacementRequest], claim: Claim) -> tuple[Lease, Plan]:
        """Find resources, check the limits of the project, and book them."""
        enforcement_check = EnforcementCheck(self._enforcement, self._runtime.store, self._runtime.clock)
        actor = Actor(lease.user_id, lease.project_id)
        asked: list[Plan] = []

        def prepare(attempt: int) -> Plan:
            # Prefer the resources that the check has accepted, so that it need not be repeated.
            again = _preferring(placement_requests, asked[-1]) if asked else placement_requests
            return self._booking.plan(
                lease.id,
                lease.window,
                again,
                now=self._runtime.clock.now(),
                attempt=attempt,
                project_id=lease.project_id,
                is_new=True,
            )

        def check(plan: Plan) -> None:
            enforcement_check.check(actor, lease, plan.allocations)
            asked.append(plan)

        return self._booking.until_it_holds(
            prepare,
            lambda plan: (self._book(lease, plan, enforcement_check, claim), plan),
            check if self._enforcement.enabled else None,
        )

    def _book(self, lease: Lease, plan: Plan, enforcement_check: EnforcementCheck, claim: Claim) -> Lease:
        # The claim starts here: earlier attempts may have taken a while.
        until = self._runtime.claims.begin(claim)
        claimed = lifecycle.with_event(lease, replace(lease.events[-1], due_at=until))
        return self._runtime.store.calendar.book(
            claimed,
            plan,
            use=enforcement_check.use,
            bounds=None if self._enforcement.exempts(lease.project_id) else self._runtime.settings.bounds,
            now=self._runtime.clock.now(),
        )

    def _prepare(self, booked: Lease, plan: Plan, claim: Claim) -> Lease:
        """Make the cloud objects that the lease needs before its start; undo the booking if that fails."""
        creation = booked.events[-1]
        prepared = []
        with self._changes.undone_on_failure(booked, creation, claim):
            for reservation in booked.reservations:
                kind = self._runtime.types[reservation.resource_type]
                # No resources are read: objects from before the start belong to the reservation as a whole.
                cloud_ids = kind.prepare(Task(booked, reservation, ()))
                prepared.append(replace(reservation, cloud_ids=cloud_ids))
        now = self._runtime.clock.now()
        ready = lifecycle.settle(lifecycle.with_reservations(booked, prepared), creation, now=now)
        armed = lifecycle.arm(ready, now=now)
        by = Actor(booked.user_id, booked.project_id)
        messages = self._outbox.planned(Occasion.CREATED, armed, plan.allocations, by=by)
        try:
            if any(message.held for message in messages):
                booked, messages = self._accepted(booked, messages, claim)
            return self._runtime.store.leases.save(booked, armed, at=now, messages=messages)
        except StaleLease:
            # A user found the lease in a list and deleted it already: the deletion continues from here.
            raise self._changes.lost(booked.id, creation.id, claim, "created") from None

    def _accepted(
        self, booked: Lease, held: tuple[OutboxMessage, ...], claim: Claim
    ) -> tuple[Lease, tuple[OutboxMessage, ...]]:
        """Send the lease to the filters that must accept it, or undo the booking if they do not. StaleLease.

        Return the lease as saved, and the outbox messages to write with it. The messages are written before they are
        sent: so a manager that undoes the creation knows that it may have been accepted.
        """
        creation = booked.events[-1]
        now = self._runtime.clock.now()
        booked = self._runtime.store.leases.save(booked, booked, at=now, messages=held)
        with self._changes.undone_on_failure(booked, creation, claim):
            return booked, self._outbox.commit(held)


def _preferring(placement_requests: list[PlacementRequest], plan: Plan) -> list[PlacementRequest]:
    """Return the placement requests with the resources of a plan preferred."""
    chosen = {
        placement_request.reservation_id: {
            a.resource_id for a in plan.allocations if a.reservation_id == placement_request.reservation_id
        }
        for placement_request in placement_requests
    }
    return [
        replace(
            placement_request,
            demand=replace(
                placement_request.demand,
                preferred=placement_request.demand.preferred | chosen[placement_request.reservation_id],
            ),
        )
        for placement_request in placement_requests
    ]


def _new_lease(
    request: LeaseRequest,
    window: Window,
    before_end: datetime | None,
    reservations: list[tuple[str, Content]],
    *,
    token: str,
    now: datetime,
    until: datetime,
) -> Lease:
    times = {EventType.START: window.start, EventType.END: window.end, EventType.BEFORE_END: before_end}
    timetable = tuple(
        Event(id=str(uuid.uuid4()), event_type=kind, time=time, status=EventStatus.UNDONE, created_at=now)
        for kind, time in times.items()
        if time is not None
    )
    theirs = tuple(
        Event(id=str(uuid.uuid4()), event_type=e.event_type, time=e.time, status=None, created_at=now)
        for e in request.events
    )
    creation = Event(
        id=str(uuid.uuid4()),
        event_type=EventType.CREATE,
        time=now.replace(microsecond=0),
        status=EventStatus.IN_PROGRESS,
        created_at=now,
        due_at=until,
        claimed_by=token,
        claimed_at=now,
    )
    return Lease(
        id=str(uuid.uuid4()),
        name=request.name,
        user_id=request.user_id,
        project_id=request.project_id,
        window=window,
        status=LeaseStatus.CREATING,
        created_at=now,
        reservations=tuple(
            Reservation(
                id=str(uuid.uuid4()),
                resource_type=name,
                resource_id=str(uuid.uuid4()),
                status=ReservationStatus.PENDING,
                created_at=now,
                parameters=values,
            )
            for name, values in reservations
        ),
        events=(*theirs, *timetable, creation),
    )
