# SPDX-License-Identifier: Apache-2.0
"""What operators do about events: try one again, end a claim that lasts too long, go on without one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.worker import Worker
from blazar.manager.repair import decisions
from blazar.manager.repair.explanations import describe_holder
from blazar.manager.requests.resources import ResourceService
from blazar.model.base.clock import spell
from blazar.model.base.errors import NotFound, StaleLease
from blazar.model.base.reasons import ReasonCode, reason
from blazar.model.journal.entries import Verb
from blazar.model.leases.lease import Event, Lease
from blazar.model.problems.problems import RepairRequest, unknown_problem
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import Resource
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)


class EventRepairs:
    """Acts on events in trouble. Every write is against the revision of the lease that it was decided on."""

    def __init__(self, runtime: Runtime, worker: Worker, resources: ResourceService) -> None:
        self._runtime = runtime
        self._worker = worker
        self._resources = resources

    def retry(self, lease_id: str, event_id: str, request: RepairRequest) -> tuple[str, ...]:
        """Make an event due at once; return what was done, or would be. Conflict, NotFound."""
        while True:
            lease, event, now = self._read(lease_id, event_id)
            after = decisions.retry_event(lease, event, now)
            if request.dry_run:
                return (f"{event.event_type} of lease {lease.name} would be tried again at once.",)
            try:
                with scope(operation=Verb.RETRIED, why=request.reason):
                    self._runtime.store.leases.save(lease, after, at=now)
            except StaleLease:
                continue
            self._runtime.signals.events_due()
            return (f"{event.event_type} of lease {lease.name} is tried again now.",)

    def release(self, lease_id: str, event_id: str, request: RepairRequest) -> tuple[str, ...]:
        """Let a claim that lasts too long end after the time of a claim; return what was done, or would be.

        Never earlier: its holder, if it lives, relies on it for no longer than that. Conflict, NotFound.
        """
        while True:
            lease, event, now = self._read(lease_id, event_id)
            until = decisions.check_release(event, now, self._runtime.settings.claim_ttl)
            said = f"its claim on {event.event_type} of lease {lease.name} until {spell(until)}, unless it renews it."
            holder = describe_holder(event.claimed_by)
            if request.dry_run:
                return (f"{holder} would keep {said}",)
            assert event.due_at is not None
            rows = self._runtime.store.troubles.shorten_claim(event.id, event.claimed_by or "", event.due_at, until)
            try:
                with scope(operation=Verb.CLAIM_ENDED, why=request.reason):
                    self._runtime.store.bookings.commit(
                        Commit([LeaseWrite(lease, lease, keeps=True)], at=now), rows=rows
                    )
            except StaleLease:
                continue
            self._runtime.signals.events_due()
            return (f"{holder} keeps {said}",)

    def give_up(self, lease_id: str, event_id: str, request: RepairRequest) -> tuple[str, ...]:
        """Settle an event without what it does; return what was done, or would be. Conflict, NotFound.

        What an end leaves on resources is somebody's: they are disabled before anybody else can have them.
        """
        why = reason(f"given up by an operator: {request.reason}", ReasonCode.GIVEN_UP)
        while True:
            lease, event, now = self._read(lease_id, event_id)
            decisions.check_give_up(lease, event, now)
            touched = self._touched(lease, decisions.list_handed_over(lease, event))
            said = [decisions.describe_give_up(event)]
            if touched:
                names = ", ".join(sorted(resource.name for resource in touched))
                said.append(f"Its resources are disabled until somebody has looked at them: {names}.")
            if request.dry_run:
                return tuple(said)
            try:
                claimed, claim = self._worker.take(lease, event)
            except StaleLease:
                continue
            result = decisions.give_up_event(claimed, event, why, now)
            # Many resources take their time: nobody else may work on the event meanwhile.
            with self._runtime.claims.held(claim):
                self._disable(touched, f"the {event.event_type} of lease {lease.id} was given up: {request.reason}")
                with scope(operation=Verb.GIVEN_UP, why=request.reason):
                    self._worker.conclude(claimed, event.id, result, claim)
            self._runtime.signals.events_due()
            return tuple(said)

    def _disable(self, resources: Collection[Resource], why: str) -> None:
        """Disable resources; those that were unregistered meanwhile are nobody's."""
        change = ResourceChange({}, disabled=True, disabling=Disabling(why))
        for resource in resources:
            try:
                self._resources.change(resource.kind, resource.external_id, change)
            except NotFound:
                LOG.info("%s is not registered any more, and is not disabled", resource.name)

    def list_events(self, lease_id: str) -> tuple[Event, ...]:
        """Return all events of a lease, also those that users do not see. NotFound."""
        return self._runtime.store.leases.one(lease_id, including_deleted=True).events

    def _read(self, lease_id: str, event_id: str) -> tuple[Lease, Event, datetime]:
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id, including_deleted=True)
        event = lease.event_with(event_id)
        if event is None:
            raise unknown_problem(f"event:{event_id}")
        return lease, event, now

    def _touched(self, lease: Lease, reservation_ids: Collection[str]) -> tuple[Resource, ...]:
        """Return the resources of these reservations."""
        held = self._runtime.store.calendar.of_lease(lease.id) if reservation_ids else ()
        ids = {allocation.resource_id for allocation in held if allocation.reservation_id in reservation_ids}
        return tuple(self._runtime.store.resources.by_ids(ids).values()) if ids else ()
