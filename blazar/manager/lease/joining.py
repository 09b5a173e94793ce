# SPDX-License-Identifier: Apache-2.0
"""Two leases made one: what it has. Pure.

Of leases with the same window, the reservations of the second join the first with their ids. Like ones of whole hosts
that have not started become one. Of leases that touch, the first has its resources for longer, and those of the second
are not handed over at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from blazar.model.demand import Allocation
from blazar.model.lease import Content, Lease
from blazar.model.window import Window


@dataclass(frozen=True, slots=True)
class Joined:
    """The first lease with what it has after it was joined, and the reservations that are ``left`` of the second.

    ``moved`` are the reservations that it has from the second; ``into`` says which of its reservations has what one of
    the second had.
    """

    lease: Lease
    allocations: tuple[Allocation, ...]
    moved: frozenset[str]
    into: Mapping[str, str]


def side_by_side(
    first: Lease,
    second: Lease,
    held: Collection[Allocation],
    added: Collection[Allocation],
    into: Mapping[str, str],
    parameters: Mapping[str, Content],
    now: datetime,
) -> Joined:
    """Return two leases of one window as one; ``into`` and ``parameters`` are of the reservations that become one."""
    merged = {
        r.id: replace(r, parameters=parameters[r.id], updated_at=now) for r in first.reservations if r.id in parameters
    }
    joining = {into[r.id]: r for r in second.reservations if r.id in into}
    kept = tuple(
        replace(each, unassigned=each.unassigned | other.unassigned, failed=each.failed | other.failed)
        if (other := joining.get(r.id)) is not None and (each := merged.get(r.id, r))
        else merged.get(r.id, r)
        for r in first.reservations
    )
    moved = tuple(r for r in second.reservations if r.id not in into)
    lease = replace(first, reservations=(*kept, *moved), updated_at=now)
    gained = tuple(
        replace(each, lease_id=first.id, reservation_id=into.get(each.reservation_id, each.reservation_id))
        for each in added
    )
    return Joined(lease, (*held, *gained), frozenset(r.id for r in moved), dict(into))


def one_after_the_other(
    first: Lease, second: Lease, held: Collection[Allocation], into: Mapping[str, str], now: datetime
) -> Joined:
    """Return a lease with the time of another one that begins where it ends, with the same resources."""
    window = Window(first.window.start, second.window.end)
    return Joined(
        replace(first, window=window, updated_at=now),
        tuple(replace(each, window=window) for each in held),
        frozenset(),
        dict(into),
    )
