# SPDX-License-Identifier: Apache-2.0
"""Starts with resources that cannot be assigned: they are replaced, or the start goes on without them."""

from __future__ import annotations

import time
from dataclasses import replace

from blazar.context import current
from blazar.manager import lifecycle
from blazar.manager.booking import Booking
from blazar.manager.claims import Claim
from blazar.manager.flags import flagged, news
from blazar.manager.notifications import Notifier
from blazar.manager.replanning import Lost, Replanner
from blazar.manager.settings import Settings
from blazar.manager.works import works_with
from blazar.model.clock import Clock
from blazar.model.errors import ClaimLost, CloudUnavailable
from blazar.model.lease import Lease
from blazar.resources.base import NotYet, ResourceType, Work
from blazar.store.store import Store

MOST_TURNS = 5
"""Rounds in one attempt of a start: each retries with replacements for resources that could not be assigned."""


class Substitutes:
    """Replaces failed resources of a lease whose start event we have claimed."""

    def __init__(
        self,
        store: Store,
        replanner: Replanner,
        booking: Booking,
        notifier: Notifier,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._store = store
        self._replanner = replanner
        self._booking = booking
        self._notifier = notifier
        self._clock = clock
        self._settings = settings

    def instead_of(self, lease_id: str, lost: Lost, claim: Claim) -> Lease:
        """Replace the resources in ``lost``, as far as there are others; return the lease as saved.

        ClaimLost if another manager has taken over the start.
        """
        before, after = self._booking.until_it_holds(
            lambda attempt: self._decide(lease_id, lost, claim, attempt), lambda found: found
        )
        if (notification := news(before, after)) is not None:
            self._notifier.notify(notification, after)
        return after

    def _decide(self, lease_id: str, lost: Lost, claim: Claim, attempt: int) -> tuple[Lease, Lease]:
        lease = self._store.lease(lease_id, including_deleted=True)
        now = self._clock.now()
        claimed = lifecycle.live_claim(lease, now)
        if claimed is None or claimed.claimed_by != claim.token:
            raise ClaimLost(f"this manager no longer has the claim on the start of lease {lease_id}")
        allocations = self._store.lease_allocations(lease_id)
        works = works_with(self._store, lease, allocations)
        exchange = self._replanner.exchange(works, allocations, lost, now=now, attempt=attempt)
        after = flagged(lease, exchange.plan.allocations, works, now=now)
        if after is lease and not exchange.touched:
            return lease, lease
        saved = self._store.rebook(lease, after, exchange.plan, at=now)
        return lease, saved


def patiently(kind: ResourceType, work: Work) -> None:
    """Assign resources, waiting until they are ready as long as the deadline allows. CloudUnavailable, Unusable."""
    while isinstance(progress := kind.start(work), NotYet):
        left, pause = current().remaining(), progress.after.total_seconds()
        if left is None or left <= pause:
            raise CloudUnavailable(f"the new resources are not ready: {progress.reason}; retry later")
        time.sleep(pause)


def doing_without(work: Work, ids: frozenset[int]) -> Work:
    """Return a reservation to start without these of its resources."""
    return replace(
        work,
        resources=tuple(resource for resource in work.resources if resource.id not in ids),
        counts={id_: count for id_, count in work.counts.items() if id_ not in ids},
    )
