# SPDX-License-Identifier: Apache-2.0
"""What of a change that makes a lease too dear would not: a nearer end, or fewer of what it gets more of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction

from blazar.manager.billing.refusals import PriceFit, limit_count, tell_count
from blazar.manager.booking.lease_changes import DecidedChange
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.fits import find_most
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.search.availability import Change, name_count

STEP = timedelta(minutes=1)
"""Ends are tried by the minute: each try is a transaction."""

PriceOf = Callable[[Lease, Sequence[Allocation]], LeasePrice | None]
"""Returns what the lease would cost if it were so, and had that; None: its project cannot pay for it."""


@dataclass(frozen=True, slots=True)
class ChangeFits:
    """Seeks what is less than a change, and after which the lease costs no more than a maximum, and than is left."""

    found: DecidedChange
    price_of: PriceOf

    def list_fits(self, most: Fraction | None) -> Iterator[PriceFit]:
        """Yield what would be accepted; None: whatever it costs. There is room for it, as there is for more."""
        before, after = self.found.lease.window, self.found.draft.after.window
        if after.start == before.start and after.end > before.end:
            yield from self._list_shorter(before, after, most)
        elif after == before:
            for reservation in self.found.draft.after.asked_for:
                if not self.found.draft.after.children(reservation.id):
                    yield from self._list_fewer(reservation, most)

    def _list_shorter(self, before: Window, after: Window, limit: Fraction | None) -> Iterator[PriceFit]:
        def shorten(steps: int) -> Window:
            return Window(after.start, before.end + steps * STEP)

        steps = find_most(
            -(-(after.end - before.end) // STEP), lambda steps: self._is_low(limit, *self._cut(shorten(steps)))
        )
        if steps and (price := self.price_of(*self._cut(shorten(steps)))) is not None:
            yield PriceFit(Change.DURATION, shorten(steps), price.amount)

    def _list_fewer(self, reservation: Reservation, limit: Fraction | None) -> Iterator[PriceFit]:
        had, wanted = (
            [a for a in some if a.reservation_id == reservation.id]
            for some in (self.found.allocations, self.found.plan.allocations)
        )
        least, most = (sum(a.count for a in some) for some in (had, wanted))
        known = {a.resource_id for a in had}
        kept_first = sorted(wanted, key=lambda a: a.resource_id not in known)
        others = [a for a in self.found.plan.allocations if a.reservation_id != reservation.id]

        def keep(more: int) -> Sequence[Allocation]:
            return [*others, *limit_count(kept_first, least + more)]

        after = self.found.draft.after
        more = find_most(most - least, lambda more: self._is_low(limit, after, keep(more))) if most > least + 1 else 0
        if more and (price := self.price_of(after, keep(more))) is not None:
            count = least + more
            asked: Mapping[str, int | str] = {"id": reservation.id, **name_count(reservation.parameters.values, count)}
            told = tell_count(wanted, reservation.id, count)
            yield PriceFit(Change.COUNT, after.window, price.amount, (asked,), told, count)

    def _cut(self, window: Window) -> tuple[Lease, Sequence[Allocation]]:
        """Return the lease in a shorter window, and what it has then."""
        held = [replace(allocation, window=window) for allocation in self.found.plan.allocations]
        return replace(self.found.draft.after, window=window), held

    def _is_low(self, limit: Fraction | None, lease: Lease, held: Sequence[Allocation]) -> bool:
        price = self.price_of(lease, held)
        return price is not None and (limit is None or price.value <= limit)
