# SPDX-License-Identifier: Apache-2.0
"""Requests about leases that nobody uses: to keep one, and to hold one for good."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import lifecycle, watching
from blazar.manager.requests.waiting import Busy
from blazar.model.errors import Conflict, StaleLease
from blazar.model.lease import EventType, Lease, LeaseStatus


class Keeping:
    """Keeps leases from being released."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def keep(self, lease_id: str, *, again: bool) -> Lease:
        """Count the time without use from now on. NotFound; Conflict: nothing to keep it from, or kept already."""
        return self._changed(lease_id, lambda lease, now: watching.kept(lease, now, again=again))

    def hold(self, lease_id: str, *, held: bool) -> Lease:
        """Never release a lease, or no longer hold it. NotFound; Conflict if nobody looks at it."""

        def change(lease: Lease, now: datetime) -> Lease:
            if watching.watch_of(lease) is None:
                raise Conflict(
                    "nobody looks whether the lease is used; there is nothing to hold", code="not_threatened"
                )
            return watching.held(lease, now, held=held)

        return self._changed(lease_id, change)

    def _changed(self, lease_id: str, change: Callable[[Lease, datetime], Lease]) -> Lease:
        while True:
            now = self._runtime.clock.now()
            lease = self._runtime.store.leases.one(lease_id)
            if lease.status is not LeaseStatus.ACTIVE:
                status = str(lease.status)
                raise Conflict(f"the lease is {status}, not ACTIVE", code="not_threatened", data={"status": status})
            claimed = lifecycle.live_claim(lease, now)
            if claimed is not None:
                what = "its use is being looked at" if claimed.event_type == EventType.USAGE_CHECK else "it is changing"
                raise Busy(f"{what}; retry in a moment", lease.project_id)
            changed = change(lease, now)
            if changed is lease:
                return lease
            try:
                return self._runtime.store.leases.save(lease, changed, at=now)
            except StaleLease:
                continue
