# SPDX-License-Identifier: Apache-2.0
"""What looks at the use of the demo's leases have found: most are used, some for a part of their time, some never."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta

from blazar.cmd.demo.stage import Stage
from blazar.manager.use import watch
from blazar.manager.use.watch import UsageFinding
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.use.policy import Usage, UseMode, UsePolicy

POLICY = UsePolicy(UseMode.DRY_RUN, idle_after=timedelta(hours=12))
"""Nothing is released: the demo shows what was so, and what came of its leases."""

FIRST = timedelta(minutes=10)
"""How long after a start the first look is."""

LOOKED_AT = frozenset({"physical:host", "virtual:instance"})
"""Types whose use the service can tell from servers."""

_WORDS = {
    Usage.USED: "1 of 1 servers runs",
    Usage.IDLE: "all servers are stopped",
    Usage.UNUSED: "there is no server",
}


def look(stage: Stage) -> None:
    """Look at all leases in use as the service does, and record what was not found before."""
    now = stage.clock.now()
    leases = stage.store.leases.by_ids(stage.store.troubles.list_active_leases())
    for lease in leases:
        found = _find_usage(lease, now)
        known = None if lease.use is None else lease.use.usage
        if lease.status is LeaseStatus.ACTIVE and found is not None and found is not known:
            stage.store.leases.save(lease, _record(lease, found, now), at=now)


def _find_usage(lease: Lease, now: datetime) -> Usage | None:
    """Return what is found of a lease: it depends on its name and its time alone; None if nobody looks, or not yet."""
    passed = now - lease.window.start
    if passed < FIRST or not all(one.resource_type in LOOKED_AT for one in lease.reservations):
        return None
    dice = zlib.crc32(lease.name.encode()) % 10
    late = passed > (lease.window.end - lease.window.start) * 0.6
    if dice == 0:
        return Usage.UNUSED
    if dice in (1, 2):
        return Usage.IDLE if late else Usage.USED
    return Usage.UNUSED if dice == 3 and not late else Usage.USED


def _record(lease: Lease, found: Usage, now: datetime) -> Lease:
    watched = lease if watch.watch_of(lease) is not None else watch.arm(lease, POLICY, now)
    event = watched.event(EventType.USAGE_CHECK)
    if event is None:
        return lease
    seen = watch.apply_finding(watched, event, POLICY, UsageFinding(found, _WORDS[found]), now)
    # The manager of the demo does not look: it would ask the cloud, which has no servers of the past.
    return watch.end_watch(seen)
