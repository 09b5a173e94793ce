# SPDX-License-Identifier: Apache-2.0
"""Starts with resources that cannot be assigned: they are replaced, or the start goes on without them."""

from __future__ import annotations

import time
from dataclasses import replace

from blazar.context import current
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.flags import change_notification, flagged
from blazar.manager.lease.replanning import Replanner, ToReplace
from blazar.manager.lease.tasks import tasks_with
from blazar.model.errors import ClaimLost, CloudUnavailable
from blazar.model.lease import Lease
from blazar.resources.base import NotYet, Task
from blazar.resources.complete import CompleteType

MOST_TURNS = 5
"""Rounds in one attempt of a start: each retries with replacements for resources that could not be assigned."""


class StartReplacements:
    """Replaces failed resources of a lease whose start event we have claimed."""

    def __init__(self, runtime: Runtime, replanner: Replanner, booking: Booking) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._settings = runtime.settings
        self._notifier = runtime.notifier
        self._replanner = replanner
        self._booking = booking

    def replace_failed(self, lease_id: str, to_replace: ToReplace, claim: Claim) -> Lease:
        """Replace the resources in ``to_replace``, as far as there are others; return the lease as saved.

        ClaimLost if another manager has taken over the start.
        """
        before, after = self._booking.until_it_holds(
            lambda attempt: self._decide(lease_id, to_replace, claim, attempt), lambda found: found
        )
        if (notification := change_notification(before, after)) is not None:
            self._notifier.notify(notification, after)
        return after

    def _decide(self, lease_id: str, to_replace: ToReplace, claim: Claim, attempt: int) -> tuple[Lease, Lease]:
        lease = self._store.leases.one(lease_id, including_deleted=True)
        now = self._clock.now()
        claimed = lifecycle.live_claim(lease, now)
        if claimed is None or claimed.claimed_by != claim.token:
            raise ClaimLost(f"this manager no longer has the claim on the start of lease {lease_id}")
        allocations = self._store.calendar.of_lease(lease_id)
        tasks = tasks_with(self._store, lease, allocations)
        replan = self._replanner.replan(tasks, allocations, to_replace, now=now, attempt=attempt)
        after = flagged(lease, replan.plan.allocations, tasks, now=now)
        if after is lease and not replan.replanned:
            return lease, lease
        saved = self._store.calendar.rebook(lease, after, replan.plan, at=now)
        return lease, saved


def start_and_wait(kind: CompleteType, task: Task) -> None:
    """Assign resources, waiting until they are ready as long as the deadline allows. CloudUnavailable, Unusable."""
    while isinstance(progress := kind.start(task), NotYet):
        left, pause = current().remaining(), progress.after.total_seconds()
        if left is None or left <= pause:
            raise CloudUnavailable(f"the new resources are not ready: {progress.reason}; retry later")
        time.sleep(pause)


def without(task: Task, ids: frozenset[int]) -> Task:
    """Return a reservation to start without these of its resources."""
    return replace(
        task,
        resources=tuple(resource for resource in task.resources if resource.id not in ids),
        counts={id_: count for id_, count in task.counts.items() if id_ not in ids},
    )
