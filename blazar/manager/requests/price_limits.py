# SPDX-License-Identifier: Apache-2.0
"""The most that a new lease may cost: one that costs more is refused, with what would not, and would be granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import islice
from typing import Protocol

from blazar.manager.billing.quoting import Quoting
from blazar.manager.billing.refusals import (
    PriceFit,
    limit_count,
    refuse_excess,
    refuse_lapsed,
    refuse_price,
    tell_count,
)
from blazar.manager.search.request_places import RequestPlace, ask_for_count
from blazar.model.base.errors import Conflict, EnforcementUnavailable, NotEnoughResources
from blazar.model.base.window import Window
from blazar.model.billing.charges import MOST_NANO, NANO
from blazar.model.billing.fits import JointLimit, LeaseLimit, PriceLimit, find_longest, list_cheaper_starts
from blazar.model.billing.ledger import DEAREST, check_planned, plan_quoted
from blazar.model.billing.prices import LONGEST, LeasePrice, QuotedLease, quote
from blazar.model.billing.spending import SpendRoom, find_affordable_start
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.search.availability import Change

MOST_STARTS = 3
"""Cheaper starts of which it is seen whether there is room then."""


class NearLeases(Protocol):
    """What is known of leases near to a new one: what each would get, and whether its project may have it."""

    def find_instead(self, lease: Lease, counts: Mapping[str, int]) -> Sequence[Allocation]:
        """Find resources for a lease in another window, or with other counts of reservations. NotEnoughResources."""

    def find_spend_room(self) -> SpendRoom | None:
        """Return what the project may still spend; None: any amount. EnforcementUnavailable."""

    def is_granted(self, lease: Lease, allocations: Sequence[Allocation]) -> bool:
        """Return whether our own limits allow a lease with these resources. EnforcementUnavailable."""


class PriceLimits:
    """Checks what new leases cost."""

    def __init__(self, quoting: Quoting) -> None:
        self._quoting = quoting

    def check(
        self,
        lease: Lease,
        allocations: Sequence[Allocation],
        most: str | None,
        near: NearLeases | None = None,
        *,
        lapsed_at: datetime | None = None,
    ) -> LeasePrice | None:
        """Return what a lease costs; Conflict if that is more than the maximum. What fits is sought ``near`` it.

        Conflict, too, if it costs more than by a quote of ``lapsed_at``, which does not hold any more.
        """
        if not (lists := self._quoting.read_lists()):
            return None
        quoted = self._quoting.describe(lease, allocations, lists)
        price = self._quoting.quote(quoted, lists)
        if lapsed_at is not None and price is not None:
            was = quote(self._quoting.describe(replace(lease, quoted_at=lapsed_at), allocations, lists), lists)
            if was is not None and was.value < price.value:
                raise refuse_lapsed(lapsed_at, price)
        if most is None or (price is not None and price.value <= Fraction(most)):
            if price is not None and price.value * NANO * DEAREST > MOST_NANO:
                # Of a dry run: the ledger would refuse it.
                check_planned(plan_quoted(quoted, lists), lists)
            return price
        if price is None:
            if quoted.window.duration > LONGEST:
                raise _refuse_unknown(most)
            return None
        fits: tuple[PriceFit, ...] = ()
        if near is not None:
            # The refusal stands as it is if it cannot be read what else the project may have.
            with suppress(EnforcementUnavailable):
                limit = _make_limit(PriceLimit(Fraction(most), lists), near.find_spend_room())
                fits = tuple(self._list_fits(lease, allocations, quoted, limit, near))
        raise refuse_excess(price, most, fits, "allow more, or ask for less")

    def _list_fits(
        self, lease: Lease, allocations: Sequence[Allocation], quoted: QuotedLease, limit: LeaseLimit, near: NearLeases
    ) -> Iterator[PriceFit]:
        """Yield what would be accepted: its price is that of the resources that it would get."""
        shorter = find_longest(quoted, limit)
        price = None if shorter is None else self._price(replace(lease, window=shorter), {}, limit, near)
        if shorter is not None and price is not None:
            yield PriceFit(Change.DURATION, shorter, price)
        # Nobody can ask for fewer of what a reservation is made of.
        counted = [r.id for r in lease.reservations if r.parent is None and not lease.children(r.id)]
        for reservation_id in counted:
            count = self._find_fewer(lease, allocations, reservation_id, limit)
            price = self._price(lease, {reservation_id: count}, limit, near) if count else None
            if price is not None:
                told = tell_count(allocations, reservation_id, count)
                yield PriceFit(Change.COUNT, lease.window, price, _ask(lease, reservation_id, count), told)
        for later in islice(_list_later(quoted, limit), MOST_STARTS):
            price = self._price(replace(lease, window=later), {}, limit, near)
            if price is not None:
                yield PriceFit(Change.TIME, later, price)
                return

    def _find_fewer(
        self, lease: Lease, allocations: Sequence[Allocation], reservation_id: str, limit: LeaseLimit
    ) -> int:
        """Return the largest smaller count of a reservation for which the lease costs no more; 0: there is none."""
        held = [a for a in allocations if a.reservation_id == reservation_id]
        others = [a for a in allocations if a.reservation_id != reservation_id]
        for count in range(sum(a.count for a in held) - 1, 0, -1):
            kept = [*others, *limit_count(held, count)]
            if limit.allows(self._quoting.describe(lease, kept, limit.lists)):
                return count
        return 0

    def _price(self, lease: Lease, counts: Mapping[str, int], limit: LeaseLimit, near: NearLeases) -> str | None:
        """Return what a lease costs with the resources that it would get; None: it would not be granted."""
        with suppress(NotEnoughResources):
            found = near.find_instead(lease, counts)
            quoted = self._quoting.describe(lease, found, limit.lists)
            price = quote(quoted, limit.lists)
            if price is not None and limit.allows(quoted) and near.is_granted(lease, found):
                return price.amount
        return None


def _make_limit(price: PriceLimit, room: SpendRoom | None) -> LeaseLimit:
    return price if room is None else JointLimit((price, room))


def _list_later(quoted: QuotedLease, limit: LeaseLimit) -> Iterator[Window]:
    """Yield later windows in which a lease keeps a limit: those of the next days, and that in the first month."""
    yield from list_cheaper_starts(quoted, limit)
    if (later := find_affordable_start(quoted, limit)) is not None:
        yield later


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
