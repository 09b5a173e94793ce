# SPDX-License-Identifier: Apache-2.0
"""The most that a new lease may cost: one that costs more is refused, with what would not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from blazar.manager.billing.quoting import Quoting
from blazar.manager.billing.refusals import PriceFit, limit_count, refuse_excess, refuse_price, tell_count
from blazar.manager.search.free_time import RequestPlace, ask_for_count
from blazar.model.base.errors import Conflict, NotEnoughResources
from blazar.model.billing.fits import PriceLimit, find_longest, list_cheaper_starts
from blazar.model.billing.prices import LONGEST, LeasePrice, QuotedLease, quote
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.search.availability import Change

MOST_STARTS = 3
"""Cheaper starts of which it is seen whether there is room then."""

Find = Callable[[Lease, Mapping[str, int]], Sequence[Allocation]]
"""Finds resources for a lease in another window, or with other counts of reservations. NotEnoughResources."""


class PriceLimits:
    """Checks what new leases cost."""

    def __init__(self, quoting: Quoting) -> None:
        self._quoting = quoting

    def check(
        self, lease: Lease, allocations: Sequence[Allocation], most: str | None, find: Find | None = None
    ) -> LeasePrice | None:
        """Return what a lease costs; Conflict if that is more than the maximum. What fits is sought with ``find``."""
        if not (lists := self._quoting.read_lists()):
            return None
        quoted = self._quoting.describe(lease, allocations, lists)
        price = quote(quoted, lists)
        if most is None or (price is not None and price.value <= Fraction(most)):
            return price
        if price is None:
            if quoted.window.duration > LONGEST:
                raise _refuse_unknown(most)
            return None
        limit = PriceLimit(Fraction(most), lists)
        fits = () if find is None else tuple(self._list_fits(lease, allocations, quoted, limit, find))
        raise refuse_excess(price, most, fits, "allow more, or ask for less")

    def _list_fits(
        self, lease: Lease, allocations: Sequence[Allocation], quoted: QuotedLease, limit: PriceLimit, find: Find
    ) -> Iterator[PriceFit]:
        """Yield what would be accepted: its price is that of the resources that it would get."""
        shorter = find_longest(quoted, limit)
        price = None if shorter is None else self._price(replace(lease, window=shorter), {}, limit, find)
        if shorter is not None and price is not None:
            yield PriceFit(Change.DURATION, shorter, price)
        # Nobody can ask for fewer of what a reservation is made of.
        counted = [r.id for r in lease.reservations if r.parent is None and not lease.children(r.id)]
        for reservation_id in counted:
            count = self._find_fewer(lease, allocations, reservation_id, limit)
            price = self._price(lease, {reservation_id: count}, limit, find) if count else None
            if price is not None:
                told = tell_count(allocations, reservation_id, count)
                yield PriceFit(Change.COUNT, lease.window, price, _ask(lease, reservation_id, count), told)
        for later in islice(list_cheaper_starts(quoted, limit), MOST_STARTS):
            price = self._price(replace(lease, window=later), {}, limit, find)
            if price is not None:
                yield PriceFit(Change.TIME, later, price)
                return

    def _find_fewer(
        self, lease: Lease, allocations: Sequence[Allocation], reservation_id: str, limit: PriceLimit
    ) -> int:
        """Return the largest smaller count of a reservation for which the lease costs no more; 0: there is none."""
        held = [a for a in allocations if a.reservation_id == reservation_id]
        others = [a for a in allocations if a.reservation_id != reservation_id]
        for count in range(sum(a.count for a in held) - 1, 0, -1):
            kept = [*others, *limit_count(held, count)]
            if limit.allows(self._quoting.describe(lease, kept, limit.lists)):
                return count
        return 0

    def _price(self, lease: Lease, counts: Mapping[str, int], limit: PriceLimit, find: Find) -> str | None:
        """Return what a lease costs with the resources that it would get; None: too much, or there is no room."""
        with suppress(NotEnoughResources):
            quoted = self._quoting.describe(lease, find(lease, counts), limit.lists)
            price = quote(quoted, limit.lists)
            if limit.allows(quoted) and price is not None:
                return price.amount
        return None


def _ask(lease: Lease, reservation_id: str, count: int) -> tuple[Mapping[str, int | str], ...]:
    return tuple(
        ask_for_count(r.parameters, RequestPlace(number), count) if r.id == reservation_id else {}
        for number, r in enumerate(lease.asked_for)
    )


def _refuse_unknown(most: str) -> Conflict:
    return refuse_price(
        f"at most {most} are allowed, and what a lease of more than 20 years costs is not computed; ask for a shorter "
        "one, or leave max_price out",
        None,
        most,
    )
