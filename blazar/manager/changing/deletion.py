# SPDX-License-Identifier: Apache-2.0
"""Deletion of a lease: it ends now, and leaves the API when all its resources are returned."""

from __future__ import annotations

from collections.abc import Collection

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.worker import Worker
from blazar.manager.leases import lifecycle
from blazar.manager.outbox.messages import make_end_messages
from blazar.manager.queue.waiting_leases import note_wait
from blazar.model.base.errors import StaleLease
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus


class Deletion:
    """Deletes leases: begins the deletion, and does at once what can be done at once."""

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._worker = worker

    def delete(self, lease_id: str, revisions: Collection[int] | None = None) -> Lease | None:
        """Begin the deletion of a lease, and finish it if that is possible now. NotFound.

        PreconditionFailed if the lease has none of these revisions, unless they are None.
        Return the lease if other work on it is in progress, whose worker finishes the deletion; else None.
        """
        while True:
            # Before the lease is read: a claim that had not ended then may have been renewed since.
            now = self._runtime.clock.now()
            lease = self._runtime.store.leases.one(lease_id)
            if lease.status is LeaseStatus.DELETING:
                return None
            lease.check_revision(revisions)
            going = lifecycle.begin_deletion(lease, now=now)
            deletion = going.events[-1]
            free = lifecycle.live_claim(lease, now) is None
            claim = self._runtime.claims.new()
            if free:
                until = self._runtime.claims.begin(claim)
                going = lifecycle.claim(going, deletion, token=claim.token, now=now, until=until)
            messages = make_end_messages(self._runtime, lease, going)
            try:
                saved = self._runtime.store.leases.save(lease, going, at=now, messages=messages)
            except StaleLease:
                continue
            self._runtime.signals.messages_written()
            if lease.status is LeaseStatus.WAITING:
                note_wait(lease, "withdrawn", now)
            if free:
                with scope(limit=self._runtime.settings.request_limit):
                    self._worker.perform(saved, deletion.id, claim)
            self._runtime.signals.events_due()
            return None if free else lease
