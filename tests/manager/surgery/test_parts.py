# SPDX-License-Identifier: Apache-2.0
"""However a lease is cut, no resource and no second of it is lost or doubled, and joining gives back what was cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import hypothesis.strategies as st
from hypothesis import given

from blazar.manager.surgery.merge import join_one_after_the_other, join_side_by_side
from blazar.manager.surgery.parts import Parts, ReservationCut, divide_by_time, divide_by_units
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST

NOW = datetime(2030, 4, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@st.composite
def leases(draw: st.DrawFn) -> tuple[Lease, tuple[Allocation, ...]]:
    """Draw a lease of several reservations, each with hosts of its own."""
    start = NOW + draw(st.integers(1, 100)) * SECOND
    window = Window(start, start + draw(st.integers(2, 10_000)) * SECOND)
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    ids = count(1)
    reservations, held = [], []
    for number, size in enumerate(sizes):
        content = Content({"min": draw(st.integers(1, size)), "max": size})
        reservations.append(
            Reservation(f"r{number}", "physical:host", None, ReservationStatus.PENDING, NOW, parameters=content)
        )
        held += [Allocation(HOST, next(ids), "first", f"r{number}", window) for _ in range(size)]
    lease = Lease("first", "a lease", "u", "p", window, LeaseStatus.PENDING, NOW, reservations=tuple(reservations))
    return lease, tuple(held)


def booked(allocations: Iterable[Allocation]) -> Counter[int]:
    found: Counter[int] = Counter()
    for each in allocations:
        found[each.resource_id] += each.count * int(each.window.duration.total_seconds())
    return found


def new_ids() -> Iterable[str]:
    return (f"new{number}" for number in count())


def check_each_has_its_own(parts: Parts) -> None:
    for lease, allocations in ((parts.first, parts.first_allocations), (parts.second, parts.second_allocations)):
        ids = {r.id for r in lease.reservations}
        assert {a.lease_id for a in allocations} <= {lease.id}
        assert {a.reservation_id for a in allocations} <= ids
        assert {a.window for a in allocations} <= {lease.window}
    assert not {r.id for r in parts.first.reservations} & {r.id for r in parts.second.reservations}


@given(leases(), st.data())
def test_by_units_each_resource_goes_to_exactly_one_part(given_lease, data) -> None:
    lease, held = given_lease
    whole = data.draw(st.sets(st.sampled_from([r.id for r in lease.reservations])))
    cuts = {}
    for each in lease.reservations:
        mine = [a.resource_id for a in held if a.reservation_id == each.id]
        if each.id not in whole and len(mine) > 1:
            gone = data.draw(st.sets(st.sampled_from(mine), max_size=len(mine) - 1))
            if gone:
                cuts[each.id] = ReservationCut(frozenset(gone), each.parameters, each.parameters)
    ids = iter(new_ids())
    parts = divide_by_units(lease, held, whole, cuts, name="second", new_id=lambda: next(ids), now=NOW)
    check_each_has_its_own(parts)
    both = (*parts.first_allocations, *parts.second_allocations)
    assert booked(both) == booked(held)
    assert len({a.resource_id for a in both}) == len(both)
    into = {renamed: origin for origin, renamed in parts.renamed.items()}
    joined = join_side_by_side(
        parts.first, parts.second, parts.first_allocations, parts.second_allocations, into, {}, NOW
    )
    assert Counter(joined.allocations) == Counter(held)
    assert {r.id for r in joined.lease.reservations} == {r.id for r in lease.reservations}


@given(leases(), st.data())
def test_by_time_each_second_belongs_to_exactly_one_part(given_lease, data) -> None:
    lease, held = given_lease
    length = int(lease.window.duration.total_seconds())
    at = lease.window.start + data.draw(st.integers(1, length - 1)) * SECOND
    ids = iter(new_ids())
    parts = divide_by_time(lease, held, at, name="second", lead=timedelta(hours=1), new_id=lambda: next(ids), now=NOW)
    check_each_has_its_own(parts)
    assert parts.first.window.end == parts.second.window.start == at
    assert booked((*parts.first_allocations, *parts.second_allocations)) == booked(held)
    into = {renamed: origin for origin, renamed in parts.renamed.items()}
    joined = join_one_after_the_other(parts.first, parts.second, parts.first_allocations, into, NOW)
    assert (replace(joined.lease, updated_at=None), joined.allocations) == (lease, held)
