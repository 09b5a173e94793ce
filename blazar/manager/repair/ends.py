# SPDX-License-Identifier: Apache-2.0
"""What operators end: a lease, what a lease that is over has left, and what is not on record."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.sweep import begin_clean_up
from blazar.manager.requests.leases import LeaseService
from blazar.model.base.clock import spell
from blazar.model.base.errors import BlazarError, Conflict, InvalidInput, NotFound, StaleLease, WrongState
from blazar.model.base.window import Window
from blazar.model.journal.entries import Verb
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EndReason, LeaseStatus, ReservationStatus
from blazar.model.problems.problems import RepairRequest, unknown_problem
from blazar.model.problems.troubles import CloudFinding
from blazar.store.booking.commit import Commit, LeaseWrite

NOT_ON_RECORD = "not on record"
"""The name, user and project of the lease under which a reservation is put on record that nobody knows."""

YOUNGEST = timedelta(hours=1)
"""How long something must have been found that nobody knows: another Blazar may be making it."""

MOST_NAMED = 20
"""Servers that a dry run names."""


class Ends:
    """Ends leases, and what is left in clouds."""

    def __init__(self, runtime: Runtime, leases: LeaseService) -> None:
        self._runtime = runtime
        self._leases = leases

    def end_lease(self, lease_id: str, request: RepairRequest) -> tuple[str, ...]:
        """Delete a lease without what is done before its end; return what was done, or would be. NotFound."""
        lease = self._runtime.store.leases.one(lease_id)
        servers = tuple(self._describe_servers(lease)) if request.dry_run else ()
        saves = "Nothing is saved of it that its end would have saved."
        if request.dry_run:
            return (f"Lease {lease.name} of project {lease.project_id} would be deleted.", saves, *servers)
        with scope(why=request.reason):
            self._leases.delete(lease_id)
        return (f"Lease {lease.name} of project {lease.project_id} is being deleted.", saves)

    def _describe_servers(self, lease: Lease) -> Iterator[str]:
        """Yield which servers go with a lease, where its types can tell."""
        tasks = self._runtime.tasks(lease, self._runtime.store.calendar.of_lease(lease.id))
        with scope(limit=self._runtime.settings.request_limit):
            for task in tasks:
                if task.reservation.status is not ReservationStatus.ACTIVE:
                    continue
                try:
                    servers = self._runtime.type_of(task.reservation).servers_in_use(task)
                except BlazarError as error:
                    yield f"What runs in reservation {task.reservation.id} is not known: {error.message}."
                    continue
                if servers:
                    names = ", ".join(f"{server.name} ({server.id})" for server in list(servers)[:MOST_NAMED])
                    more = f" and {len(servers) - MOST_NAMED} more" if len(servers) > MOST_NAMED else ""
                    yield f"These servers would be deleted: {names}{more}."

    def end_leftover(self, finding: CloudFinding, request: RepairRequest) -> tuple[str, ...]:
        """Begin a clean-up of what a lease that is over has left; return what was done, or would be. WrongState."""
        while True:
            now = self._runtime.clock.now()
            lease = self._owner(finding)
            after = begin_clean_up(lease, now=now)
            if after is lease:
                raise WrongState("a clean-up of it is in progress")
            if request.dry_run:
                return (f"What lease {lease.name} has left in the cloud would be removed, as the sweep does it.",)
            try:
                with scope(operation=Verb.CLEANED_UP, why=request.reason):
                    self._runtime.store.leases.save(lease, after, at=now)
            except StaleLease:
                continue
            self._runtime.store.findings.count_try(finding, tries=finding.tries + 1, next_at=finding.next_at)
            self._runtime.signals.events_due()
            return (f"Managers remove now what lease {lease.name} has left in the cloud.",)

    def _owner(self, finding: CloudFinding) -> Lease:
        """Return the lease of what is left. NotFound, WrongState if it is not over."""
        owner = self._runtime.store.leases.load_owners([finding.key]).get(finding.key)
        if owner is None:
            raise unknown_problem(finding.problem_id)
        if not owner.over:
            raise WrongState(f"lease {owner.lease_id} is not over")
        return self._runtime.store.leases.one(owner.lease_id, including_deleted=True)

    def end_unknown(self, finding: CloudFinding, request: RepairRequest) -> tuple[str, ...]:
        """Put a reservation on record that nobody knows, as part of a lease that has ended, and have it cleaned up.

        Return what was done, or would be. InvalidInput without its id once more; Conflict if it is too young, is on
        record meanwhile, or its type is not served.
        """
        now = self._runtime.clock.now()
        self._check_unknown(finding, now)
        if request.dry_run:
            return (
                f"All that bears the mark of reservation {finding.key} ({finding.resource_type}) would be removed.",
                "Another Blazar whose reservation it is would lose it.",
            )
        if request.confirm != finding.key:
            raise InvalidInput(
                f"confirm must be the id of the reservation once more, {finding.key}, for all that bears its mark goes",
                at="/confirm",
            )
        lease = begin_clean_up(_ended_lease(finding, now), now=now)
        with scope(why=request.reason):
            self._runtime.store.bookings.commit(Commit([LeaseWrite(None, lease)], at=now))
        self._runtime.store.findings.forget(finding)
        self._runtime.signals.events_due()
        return (f"Managers remove now what reservation {finding.key} has in the cloud.",)

    def _check_unknown(self, finding: CloudFinding, now: datetime) -> None:
        if finding.since > now - YOUNGEST:
            raise Conflict(
                f"it was first seen at {spell(finding.since)}: another Blazar may be making it; end it an hour later",
                code="invalid_state",
            )
        if self._runtime.store.leases.load_owners([finding.key]):
            raise Conflict(f"reservation {finding.key} is on record meanwhile")
        if finding.resource_type not in self._runtime.types:
            raise NotFound(f"resource type {finding.resource_type} is not enabled; enable it, and it can be ended")


def _ended_lease(finding: CloudFinding, now: datetime) -> Lease:
    """Return a lease that was deleted just now, with this reservation alone."""
    moment = now.replace(microsecond=0)
    ended = Reservation(
        finding.key, finding.resource_type, None, ReservationStatus.DELETED, moment, region=finding.region
    )
    return Lease(
        str(uuid.uuid4()),
        NOT_ON_RECORD,
        NOT_ON_RECORD,
        NOT_ON_RECORD,
        Window(moment - timedelta(seconds=1), moment),
        LeaseStatus.DELETING,
        moment,
        deleted_at=moment,
        end_reason=EndReason.DELETED,
        reservations=(ended,),
    )
