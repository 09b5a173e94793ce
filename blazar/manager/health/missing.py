# SPDX-License-Identifier: Apache-2.0
"""Missing resources: recorded on the reservations that lack them, and reported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing_decisions import STABLE_STATES
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.flags import change_notification, derived, lacking
from blazar.model.errors import Contention, NotFound
from blazar.model.lease import Lease, LeaseStatus, ReservationStatus
from blazar.model.resource import Resource

LOG = logging.getLogger(__name__)


class MissingResources:
    """Records that reservations in use lack resources which they hold."""

    def __init__(self, runtime: Runtime, booking: Booking) -> None:
        self._runtime = runtime
        self._booking = booking

    def record(self, host: Resource, reservation_ids: Collection[str]) -> bool:
        """Record that reservations in use lack a host which they hold, so that it is assigned again.

        Return whether that was new for any. No poll may have seen the host fail: it can have been away between two.
        Contention if a lease is busy, after all others are done.
        """
        held = self._runtime.store.calendar.live(host.kind, resource_id=host.id)
        noted, busy = False, []
        for lease_id in sorted({a.lease_id for a in held if a.reservation_id in reservation_ids}):
            try:
                noted |= self._booking.until_it_holds(
                    partial(self._missing, lease_id, host.id, reservation_ids), self._save
                )
            except NotFound:
                # Deleted a moment ago.
                continue
            except Contention:
                busy.append(lease_id)
        if busy:
            raise Contention(f"lease {busy[0]} is being worked on; that it lacks the host is recorded later")
        return noted

    def _missing(self, lease_id: str, host_id: int, reservation_ids: Collection[str], _: int) -> tuple[Lease, Lease]:
        """Return a lease, and the same lease with the host recorded as missing for those of the reservations in use.

        NotFound, Contention.
        """
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in (*STABLE_STATES, LeaseStatus.STARTING, LeaseStatus.UPDATING):
            # The lease is ending: no resource is assigned any more.
            return lease, lease
        if lease.status is LeaseStatus.UPDATING or lifecycle.live_claim(lease, now) is not None:
            # Its allocations or flags are being written at this moment.
            raise Contention(f"lease {lease_id} is being worked on")
        lacks = [
            replace(lacking(r, now), unassigned=r.unassigned | {host_id}, updated_at=now)
            for r in lease.reservations
            if r.id in reservation_ids and r.status is ReservationStatus.ACTIVE and host_id not in r.unassigned
        ]
        return lease, derived(lifecycle.with_reservations(lease, lacks)) if lacks else lease

    def _save(self, change: tuple[Lease, Lease]) -> bool:
        before, after = change
        if after is before:
            return False
        now = self._runtime.clock.now()
        saved = self._runtime.store.leases.save(before, replace(after, updated_at=now), at=now)
        report_flags(self._runtime, before, saved)
        return True


FlagReport = Callable[[Lease, Lease], None]
"""Is told a lease before and after a write that may have changed its flags."""


def report_flags(runtime: Runtime, before: Lease, after: Lease) -> None:
    """Log which resources a lease lacks after a change, and send the notification if its flags have changed."""
    for id_ in sorted(r.id for r in after.reservations if r.missing_resources):
        LOG.info("Reservation %s of lease %s has resources missing", id_, after.id)
    if (notification := change_notification(before, after)) is not None:
        runtime.notifier.notify(notification, after)
