# SPDX-License-Identifier: Apache-2.0
"""What leases would cost: quotes of what is found for them, by the lists that are published now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

from blazar.enforcement import AllocatedResource
from blazar.enforcement.pricing import describe_lease
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import spell
from blazar.model.base.window import Window
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import LeasePrice, QuotedLease, quote
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease

QuoteWindow = Callable[[Window, Callable[[], Iterable[AllocatedResource]]], LeasePrice | None]
"""Returns what a lease would cost in a window with these resources."""


def price_nothing(window: Window, find: Callable[[], Iterable[AllocatedResource]]) -> None:
    """Return that nothing has a price."""


class Quoting:
    """Quotes leases. It costs no statement if a catalog was read before, and no list was published since."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def read_lists(self) -> tuple[PriceList, ...]:
        """Return the lists that are published."""
        return self._runtime.store.price_lists.known()

    def quote_new(self, lease: Lease, allocations: Collection[Allocation]) -> LeasePrice | None:
        """Return what a lease will cost that is booked now with these resources; None: nothing has a price."""
        if not (lists := self.read_lists()):
            return None
        return self.quote(self.describe(lease, allocations, lists), lists)

    def quote(self, quoted: QuotedLease, lists: Sequence[PriceList]) -> LeasePrice | None:
        """Return what a lease will cost, and until when that holds; None: nothing has a price."""
        return quote(quoted, lists, self._runtime.settings.quote_holds)

    def quote_windows(self, lease: Lease, now: datetime) -> QuoteWindow:
        """Return what quotes a new lease in one window after the other."""
        if not (lists := self.read_lists()):
            return price_nothing
        return lambda window, find: self.quote(describe_lease(lease, window, find(), lists, now=now), lists)

    def find_excess(self, lease: Lease, window: Window, allocations: Collection[Allocation], most: str) -> str | None:
        """Return that a lease that is booked now for a window costs more than a maximum; None if it does not."""
        price = self.quote_new(replace(lease, window=window), allocations)
        if price is None or price.value <= Fraction(most):
            return None
        return (
            f"from {spell(window.start)} UTC on it would cost {price.amount} {price.currency}, and at most {most} are "
            "allowed (max_price)"
        )

    def describe(self, lease: Lease, allocations: Collection[Allocation], lists: Sequence[PriceList]) -> QuotedLease:
        """Return what is priced of a lease that is booked now with these resources."""
        found = tuple(self._list_resources(allocations))
        # Another attempt to book it may be some time after the request: the lists then count.
        return describe_lease(lease, lease.window, found, lists, now=self._runtime.clock.now())

    def _list_resources(self, allocations: Collection[Allocation]) -> Iterator[AllocatedResource]:
        resources = self._runtime.store.resources
        for kind in sorted({allocation.kind for allocation in allocations}):
            mine = [allocation for allocation in allocations if allocation.kind == kind]
            wanted = {allocation.resource_id for allocation in mine}
            catalog = resources.latest_catalog(kind) or resources.catalog(kind)
            known = catalog.by_id
            if gone := wanted - known.keys():
                known = {**known, **resources.by_ids(gone)}
            for a in mine:
                whole = a.per_instance is None
                yield AllocatedResource(a.reservation_id, known[a.resource_id], a.count, whole, a.per_instance)
