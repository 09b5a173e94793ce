# SPDX-License-Identifier: Apache-2.0
"""Missing resources: recorded on the reservations that lack them, and reported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing_decisions import STABLE_STATES
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import change_notification, derive_degraded, mark_missing
from blazar.model.base.errors import Contention, NotFound
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)


class MissingResources:
    """Records that reservations in use lack resources which they hold."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker

    def record(self, host: Resource, reservation_ids: Collection[str]) -> bool:
        """Record that reservations in use lack a host which they hold, so that it is assigned again.

        Return whether that was new for any. No poll may have seen the host fail: it can have been away between two.
        Contention if a lease is busy, after all others are done.
        """
        held = self._runtime.store.calendar.load_live(host.kind, resource_id=host.id)
        noted, busy = False, []
        for lease_id in sorted({a.lease_id for a in held if a.reservation_id in reservation_ids}):
            try:
                done = self._booker.book(partial(self._propose, lease_id, host.id, reservation_ids))
            except NotFound:
                # Deleted a moment ago.
                continue
            except Contention:
                busy.append(lease_id)
            else:
                for saved in done.leases:
                    noted = True
                    report_flags(self._runtime, done.found, saved)
        if busy:
            raise Contention(f"lease {busy[0]} is being worked on; that it lacks the host is recorded later")
        return noted

    def _propose(self, lease_id: str, host_id: int, reservation_ids: Collection[str], _: int) -> Proposal[Lease]:
        """Propose a lease with the host recorded as missing for those of the reservations in use.

        NotFound, Contention.
        """
        # Before the lease is read: a claim that had not ended then may have been renewed since.
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id)
        if lease.status not in (*STABLE_STATES, LeaseStatus.STARTING, LeaseStatus.UPDATING):
            # The lease is ending: no resource is assigned any more.
            return Proposal(lease, None)
        if lease.status is LeaseStatus.UPDATING or lifecycle.live_claim(lease, now) is not None:
            # Its allocations or flags are being written at this moment.
            raise Contention(f"lease {lease_id} is being worked on")
        lacks = [
            replace(mark_missing(r, now), unassigned=r.unassigned | {host_id}, updated_at=now)
            for r in lease.reservations
            if r.id in reservation_ids and r.status is ReservationStatus.ACTIVE and host_id not in r.unassigned
        ]
        if not lacks:
            return Proposal(lease, None)
        after = derive_degraded(lifecycle.with_reservations(lease, lacks))
        write = LeaseWrite(lease, replace(after, updated_at=now), keeps=True)
        return Proposal(lease, Commit([write], at=now))


FlagReport = Callable[[Lease, Lease], None]
"""Is told a lease before and after a write that may have changed its flags."""


def report_flags(runtime: Runtime, before: Lease, after: Lease) -> None:
    """Log which resources a lease lacks after a change, and send the notification if its flags have changed."""
    for id_ in sorted(r.id for r in after.reservations if r.missing_resources):
        LOG.info("Reservation %s of lease %s has resources missing", id_, after.id)
    if (notification := change_notification(before, after)) is not None:
        runtime.notifier.notify(notification, after)
