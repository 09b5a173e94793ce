# SPDX-License-Identifier: Apache-2.0
"""The calls for surgery on leases, each all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.replanning import Replanner
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.change_decisions import Asked, Change
from blazar.manager.requests.exchanging import Exchanging
from blazar.manager.requests.leases import LeaseService
from blazar.manager.requests.merging import Merging
from blazar.manager.requests.splitting import Splitting
from blazar.manager.requests.swapping import Swapping
from blazar.manager.requests.updates import Updates
from blazar.model.history import Verb
from blazar.model.lease import Lease
from blazar.model.requests import LeaseChange
from blazar.model.surgery import MergeRequest, Operated, SplitRequest, SwapRequest, Terms
from blazar.store.idempotency import KeyTaken
from blazar.store.surgery import Operated as Written


class SurgeryService:
    """Swaps hosts of leases, and splits and merges them."""

    def __init__(
        self,
        runtime: Runtime,
        booking: Booking,
        replanner: Replanner,
        updates: Updates,
        leases: LeaseService,
        outbox: Outbox,
    ) -> None:
        self._runtime = runtime
        self._updates = updates
        self._leases = leases
        self._swapping = Swapping(runtime, replanner)
        self._exchanging = Exchanging(runtime, booking, outbox)
        self._splitting = Splitting(runtime, booking, outbox)
        self._merging = Merging(runtime, booking, outbox)

    def swap(self, lease_id: str, request: SwapRequest, terms: Terms) -> Operated:
        """Give up a host of a reservation for another one; for a dry run return what would come of it."""
        if (known := self._replayed(terms)) is not None:
            return known
        if request.partner is not None:
            return self._exchanged(lease_id, request, terms)
        change = LeaseChange(
            asked_by=terms.asked_by, revisions=terms.revisions, dry_run=terms.dry_run, key=terms.key, exact=True
        )

        def decide(asked: Asked, attempt: int) -> Change:
            return self._swapping.decide(lease_id, request, terms, attempt, asked.avoided)

        def once() -> Lease:
            self._swapping.check_free(lease_id, request, terms)
            with scope(operation=Verb.SWAPPED):
                return self._updates.update(lease_id, change, decide)

        if terms.dry_run:
            self._swapping.check_free(lease_id, request, terms)
            return Operated((self._leases.previewed(*self._updates.preview(lease_id, change, decide)),))
        try:
            saved = self._leases.patience.until_free(once)
        except KeyTaken:
            if (known := self._replayed(terms)) is None:
                raise
            return known
        finally:
            self._runtime.wake()
        return Operated((self._leases.details(saved.id),))

    def split(self, lease_id: str, request: SplitRequest, terms: Terms) -> Operated:
        """Make two leases of one; for a dry run return what would come of it."""
        if (known := self._replayed(terms, lease_id)) is not None:
            return known
        return self._done(lambda: self._splitting.split(lease_id, request, terms), terms, Verb.SPLIT, lease_id)

    def merge(self, lease_id: str, request: MergeRequest, terms: Terms) -> Operated:
        """Make one lease of two; for a dry run return what would come of it."""
        if (known := self._replayed(terms)) is not None:
            return known
        return self._done(lambda: self._merging.merge(lease_id, request, terms), terms, Verb.MERGED)

    def _exchanged(self, lease_id: str, request: SwapRequest, terms: Terms) -> Operated:
        return self._done(lambda: self._exchanging.exchange(lease_id, request, terms), terms, Verb.SWAPPED)

    def _done(
        self, operate: Callable[[], Sequence[Written]], terms: Terms, verb: Verb, lease_id: str | None = None
    ) -> Operated:
        """Return what an operation leaves, done or, if that was done with its key meanwhile, found."""
        try:
            with scope(limit=self._runtime.settings.request_limit, operation=verb):
                written = self._leases.patience.until_free(operate)
        except KeyTaken:
            if (known := self._replayed(terms, lease_id)) is None:
                raise
            return known
        finally:
            self._runtime.wake()
        if terms.dry_run:
            return Operated(tuple(self._leases.previewed(each.after, each.allocations) for each in written))
        return Operated(tuple(self._leases.details(each.after.id) for each in written))

    def _replayed(self, terms: Terms, lease_id: str | None = None) -> Operated | None:
        """Return the leases of an operation that was done with the key before; None if there was none. Conflict.

        ``lease_id``: a lease that the operation changed besides the one that is recorded.
        """
        known = None if terms.key is None or terms.dry_run else self._leases.replay(terms.key)
        if known is None:
            return None
        first = () if lease_id is None else (self._leases.details(lease_id),)
        return Operated((*first, known.details), replayed=True)
