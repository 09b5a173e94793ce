# SPDX-License-Identifier: Apache-2.0
"""The lease service: the operations of users on leases, each all or nothing."""

from __future__ import annotations

from collections.abc import Collection

from blazar.context import scope
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease.booking import Booking
from blazar.manager.requests.creation import Creation
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.updates import Updates
from blazar.manager.requests.waiting import Patience
from blazar.model.lease import Lease, LeaseRevision
from blazar.model.requests import LeaseChange, LeaseRequest


class LeaseService:
    """Creates, changes, deletes and lists leases."""

    def __init__(
        self, runtime: Runtime, booking: Booking, creation: Creation, updates: Updates, deletion: Deletion
    ) -> None:
        self._runtime = runtime
        self._booking = booking
        self._creation = creation
        self._updates = updates
        self._deletion = deletion
        self.patience = Patience(runtime)

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
        grant = self._creation.grant(request)
        with scope(limit=self._runtime.settings.request_limit):
            booked, plan = self._booking.until_it_holds(grant.find, grant.book, grant.check if grant.checked else None)
            with self._runtime.claims.held(grant.claim):
                created = self._creation.prepare(booked, plan, grant.claim)
        self._runtime.notifier.notify(CREATED, created)
        self._runtime.wake()
        return created

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease and return it, all or nothing; while other work on it is in progress, wait for a moment."""
        try:
            return self.patience.until_free(lambda: self._updates.update(lease_id, change))
        finally:
            self._runtime.wake()

    def delete(self, lease_id: str) -> None:
        """Delete a lease, ending it now.

        Resources that can be returned at once are returned before this method returns; the rest (slow servers, a cloud
        that does not answer) follows in the background while the lease is DELETING. Work in progress, as a start, is
        waited for up to ``patience``.
        """
        if (left := self._deletion.delete(lease_id)) is not None:
            self.patience.until_gone(left)
