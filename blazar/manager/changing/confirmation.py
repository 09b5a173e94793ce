# SPDX-License-Identifier: Apache-2.0
"""Confirmation of an unconfirmed lease: it is firm from then on.

At its last second a manager may be about to delete it. Who writes first wins, and the other one reads it once more.
"""

from __future__ import annotations

from dataclasses import replace

from blazar.manager.changing.change_decisions import busy_error
from blazar.manager.common.notifications import CONFIRMED
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import confirming
from blazar.model.base.errors import StaleLease
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, LeaseStatus

_BUSY = (LeaseStatus.CREATING, LeaseStatus.UPDATING, LeaseStatus.DELETING)


class Confirmation:
    """Confirms leases."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def confirm(self, lease_id: str) -> Lease:
        """Confirm a lease, and return it; one that is confirmed already stays so. NotFound, Conflict."""
        while True:
            lease = self._runtime.store.leases.one(lease_id)
            confirmed = self._confirmed(lease)
            if confirmed is lease:
                return lease
            now = confirmed.updated_at or lease.created_at
            try:
                saved = self._runtime.store.leases.save(lease, confirmed, at=now)
            except StaleLease:
                continue
            self._runtime.notifier.notify(CONFIRMED, saved)
            return saved

    def _confirmed(self, lease: Lease) -> Lease:
        """Return a lease confirmed, or as it is if it is already. Conflict."""
        # After the lease was read: one that is not confirmed by its last second never is.
        now = self._runtime.clock.now()
        if lease.end_reason is EndReason.UNCONFIRMED:
            raise confirming.refuse_late(lease.confirm_by)
        if lease.status in _BUSY:
            raise busy_error(lease)
        confirmed = confirming.confirm(lease, now=now)
        return lease if confirmed is lease else replace(confirmed, updated_at=now)
