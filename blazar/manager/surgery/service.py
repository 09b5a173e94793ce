# SPDX-License-Identifier: Apache-2.0
"""The calls for surgery on leases, each all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blazar.context import scope
from blazar.manager.billing.booked_prices import BookedPrices, drop_merged
from blazar.manager.booking.booking import Booker
from blazar.manager.booking.lease_changes import DecidedChange, RequestedChange
from blazar.manager.changing.updates import Updates
from blazar.manager.common.request_keys import do_once
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.leases import LeaseService, describe_unwritten
from blazar.manager.surgery.exchange import Exchanger
from blazar.manager.surgery.merge import Merger
from blazar.manager.surgery.split import Splitter
from blazar.manager.surgery.swap import Swapper
from blazar.model.billing.prices import LeasePrice
from blazar.model.journal.entries import Verb
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import IdempotencyKey, LeaseChange
from blazar.model.surgery import MergeRequest, Operated, SplitRequest, SwapRequest, Terms
from blazar.store.booking.commit import Commit


class SurgeryService:
    """Swaps hosts of leases, and splits and merges them."""

    def __init__(self, runtime: Runtime, booker: Booker, updates: Updates, leases: LeaseService) -> None:
        self._runtime = runtime
        self._updates = updates
        self._leases, self._prices = leases, BookedPrices(runtime)
        self._swapper = Swapper(runtime)
        self._exchanger = Exchanger(runtime, booker)
        self._splitter = Splitter(runtime, booker)
        self._merger = Merger(runtime, booker)

    def swap(self, lease_id: str, request: SwapRequest, terms: Terms) -> Operated:
        """Give up a host of a reservation for another one; for a dry run return what would come of it."""
        if request.partner is not None:
            return self._operate(lambda: self._exchanger.exchange(lease_id, request, terms), terms, Verb.SWAPPED)
        return self._once(terms, lambda: self._swap(lease_id, request, terms))

    def _swap(self, lease_id: str, request: SwapRequest, terms: Terms) -> Operated:
        change = LeaseChange(
            asked_by=terms.asked_by, revisions=terms.revisions, dry_run=terms.dry_run, key=terms.key, exact=True
        )

        def decide(asked: RequestedChange, attempt: int) -> DecidedChange:
            return self._swapper.decide(lease_id, request, terms, attempt, asked.avoided)

        def once() -> Lease:
            self._swapper.check_free(lease_id, request, terms)
            with scope(operation=Verb.SWAPPED):
                return self._updates.update(lease_id, change, decide)

        if terms.dry_run:
            self._swapper.check_free(lease_id, request, terms)
            return Operated((describe_unwritten(self._runtime, *self._updates.preview(lease_id, change, decide)),))
        try:
            saved = self._leases.patience.until_free(once)
        finally:
            self._runtime.signals.events_due()
        return Operated((self._leases.details(saved.id),))

    def split(self, lease_id: str, request: SplitRequest, terms: Terms) -> Operated:
        """Make two leases of one; for a dry run return what would come of it."""
        return self._operate(lambda: self._splitter.split(lease_id, request, terms), terms, Verb.SPLIT, lease_id)

    def merge(self, lease_id: str, request: MergeRequest, terms: Terms) -> Operated:
        """Make one lease of two; for a dry run return what would come of it."""
        return self._operate(lambda: self._merger.merge(lease_id, request, terms), terms, Verb.MERGED)

    def _operate(
        self, operate: Callable[[], Commit], terms: Terms, verb: Verb, lease_id: str | None = None
    ) -> Operated:
        """Return the leases that an operation leaves, or those of an earlier request with the same key."""
        return self._once(terms, lambda: self._written(operate, terms, verb), lease_id)

    def _written(self, operate: Callable[[], Commit], terms: Terms, verb: Verb) -> Operated:
        def run() -> tuple[Commit, Mapping[str, LeasePrice]]:
            commit = operate()
            return commit, self._prices.price_operation(commit) if terms.dry_run else {}

        try:
            with scope(limit=self._runtime.settings.request_limit, operation=verb):
                commit, prices = self._leases.patience.until_free(run)
        finally:
            self._runtime.signals.events_due()
        left = drop_merged(commit)
        if terms.dry_run:
            return Operated(
                tuple(describe_unwritten(self._runtime, w.after, w.allocations, prices.get(w.after.id)) for w in left)
            )
        return Operated(tuple(self._leases.details(write.after.id) for write in left))

    def _once(self, terms: Terms, act: Callable[[], Operated], lease_id: str | None = None) -> Operated:
        """Operate once for each key. ``lease_id``: a lease that is changed besides the one that is recorded."""

        def find(key: IdempotencyKey) -> Operated | None:
            if (known := self._leases.replay(key)) is None:
                return None
            first = () if lease_id is None else (self._leases.details(lease_id),)
            return Operated((*first, known.details), replayed=True)

        return do_once(None if terms.dry_run else terms.key, find, act)
