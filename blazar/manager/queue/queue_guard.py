# SPDX-License-Identifier: Apache-2.0
"""Measures changes of leases against the waiting list: what a lease gets more must delay nobody who waits.

Otherwise who does not want to wait would book what is free for a minute, and prolong that. If other resources delay
nobody, the lease gets these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from blazar.calendar.queue.plan import Delay
from blazar.calendar.queue.values import Grant, GrantPart
from blazar.calendar.timeline import epoch
from blazar.manager.booking.lease_changes import DecidedChange, Unchanged
from blazar.manager.common.runtime import Runtime
from blazar.manager.queue.snapshot import PROTECT, SnapshotReader
from blazar.model.base.errors import NotEnoughResources, OthersWait
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease

Allocations = Collection[Allocation]


class QueueGuard:
    """The line of those that wait, as a change of a lease meets it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._snapshots = SnapshotReader(runtime)

    def without_delaying(
        self, decide: Callable[[frozenset[int]], DecidedChange | Unchanged]
    ) -> DecidedChange | Unchanged:
        """Return what a change leads to if it delays nobody who waits. OthersWait, or what ``decide`` raises.

        ``decide`` decides on it without some resources: if one that waits would be delayed, without those that they
        get. One statement if nobody waits, and none if the lease gets no more.
        """
        found = decide(frozenset())
        delay = self._delay(found)
        if delay is None:
            return found
        refused = _refusal(delay, "change", "ask for less")
        try:
            found = decide(delay.resources)
        except NotEnoughResources:
            raise refused from None
        if self._delay(found) is not None:
            raise refused
        return found

    def _delay(self, found: DecidedChange | Unchanged) -> Delay | None:
        """Return who would be delayed by a change; None if that is nobody."""
        if not isinstance(found, DecidedChange) or not self._takes_more(found):
            return None
        if not self._runtime.store.waiting_list.is_anybody_waiting():
            return None
        after = found.draft.after
        snapshot = self._snapshots.read(without=[after.id])
        delay = snapshot.delayed(
            [_make_grant(found.lease, found.allocations)], [_make_grant(after, found.plan.allocations)]
        )
        return delay if delay.leases else None

    def check_exchange(
        self, leases: Sequence[Lease], before: Sequence[Allocations], after: Sequence[Allocations]
    ) -> None:
        """Raise OthersWait if leases that had ``after`` instead of ``before``, each at its time, would delay others.

        One statement if nobody waits, and none if all have the same time, or begin so late that it does not count.
        """
        now = self._runtime.clock.now()
        if len({lease.window for lease in leases}) == 1 or all(lease.window.start > now + PROTECT for lease in leases):
            return
        if not self._runtime.store.waiting_list.is_anybody_waiting():
            return
        snapshot = self._snapshots.read(without=[lease.id for lease in leases])
        are, would_be = (list(map(_make_grant, leases, allocations)) for allocations in (before, after))
        delay = snapshot.delayed(are, would_be)
        if delay.leases:
            raise _refusal(delay, "exchange", "exchange other hosts")

    def _takes_more(self, found: DecidedChange) -> bool:
        window = found.draft.after.window
        if not found.draft.replan or window.start > self._runtime.clock.now() + PROTECT:
            return False
        return not found.lease.window.covers(window) or not _is_contained(found.plan.allocations, found.allocations)


def _refusal(delay: Delay, what: str, instead: str) -> OthersWait:
    count = len(delay.leases)
    return OthersWait(
        f"{count} {'lease waits' if count == 1 else 'leases wait'} for the same resources and would be delayed by this "
        f"{what}; {instead}, or retry later",
        data={"before": count, "opening": None},
    )


def _is_contained(some: Collection[Allocation], others: Collection[Allocation]) -> bool:
    """Return whether others have all that some have, whenever that is."""
    known = {(a.reservation_id, a.resource_id, a.per_instance): a.count for a in others}
    return all(a.count <= known.get((a.reservation_id, a.resource_id, a.per_instance), 0) for a in some)


def _make_grant(lease: Lease, allocations: Collection[Allocation]) -> Grant:
    parts = tuple(GrantPart(0, a.kind, a.resource_id, a.count, a.per_instance) for a in allocations)
    return Grant(lease.id, epoch(lease.window.start), epoch(lease.window.end), parts)
