# SPDX-License-Identifier: Apache-2.0
"""Starts when something that was promised can not be handed over: others take its place, or the start does without."""

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
"""How often one try of a start goes through what is left after some could not be handed over."""


class Substitutes:
    """Gives a lease whose start we have in our hands other resources."""

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
        """Book others in the place of what is lost, as far as there are any; return the lease as it is then.

        ClaimLost if the start is somebody else's by now.
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
            raise ClaimLost(f"the start of lease {lease_id} is not ours any more")
        allocations = self._store.lease_allocations(lease_id)
        works = works_with(self._store, lease, allocations)
        exchange = self._replanner.exchange(works, allocations, lost, now=now, attempt=attempt)
        after = flagged(lease, exchange.plan.allocations, works, now=now)
        if after is lease and not exchange.touched:
            return lease, lease
        saved = self._store.rebook(lease, after, exchange.plan, at=now)
        return lease, saved


def patiently(kind: ResourceType, work: Work) -> None:
    """Hand resources over, and wait for what is in the way as long as our caller may. CloudUnavailable, Unusable."""
    while isinstance(progress := kind.start(work), NotYet):
        left, pause = current().remaining(), progress.after.total_seconds()
        if left is None or left <= pause:
            raise CloudUnavailable(f"the new resources are not ready: {progress.reason}; try again later")
        time.sleep(pause)


def doing_without(work: Work, ids: frozenset[int]) -> Work:
    """Return a reservation to be started without some of what is promised to it."""
    return replace(
        work,
        resources=tuple(resource for resource in work.resources if resource.id not in ids),
        counts={id_: count for id_, count in work.counts.items() if id_ not in ids},
    )
