# SPDX-License-Identifier: Apache-2.0
"""What a lease is promised while it is not known whether its change succeeds."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from blazar.calendar.changing import union
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.allocations import Allocation
from blazar.model.resources.resource import HOST
from tests.builders import hours

CPU = Amounts.of({"VCPU": 1})
HOURS = range(8)


def has(
    reservation: str, window, *, count: int = 1, per_instance: Amounts | None = CPU, resource: int = 1
) -> Allocation:
    return Allocation(HOST, resource, "lease", reservation, window, count, per_instance)


def whole(reservation: str, window, *, resource: int = 1) -> Allocation:
    return has(reservation, window, per_instance=None, resource=resource)


def test_what_goes_on_unchanged_is_one_allocation_for_both_windows():
    assert union([has("a", hours(0, 4), count=3)], [has("a", hours(0, 6), count=3)]) == (
        has("a", hours(0, 6), count=3),
    )
    assert union([whole("a", hours(0, 4))], [whole("a", hours(1, 3))]) == (whole("a", hours(0, 4)),)


def test_less_for_longer_does_not_promise_more_for_longer():
    assert set(union([has("a", hours(0, 4), count=5)], [has("a", hours(0, 6), count=2)])) == {
        has("a", hours(0, 6), count=2),
        has("a", hours(0, 4), count=3),
    }


def test_more_for_shorter_does_not_promise_more_for_longer():
    assert set(union([has("a", hours(0, 6), count=2)], [has("a", hours(0, 4), count=5)])) == {
        has("a", hours(0, 6), count=2),
        has("a", hours(0, 4), count=3),
    }


def test_what_reservations_exchange_is_promised_once_and_known_of_the_one_that_gets_it():
    assert union([has("a", hours(0, 4), count=4)], [has("b", hours(0, 4), count=4)]) == (
        has("b", hours(0, 4), count=4),
    )
    assert union([whole("a", hours(0, 4))], [whole("b", hours(0, 5))]) == (whole("b", hours(0, 5)),)


def test_windows_apart_from_each_other_share_nothing():
    held, planned = has("a", hours(0, 2)), has("a", hours(4, 6))
    assert union([held], [planned]) == (held, planned)
    assert union([held], []) == (held,)
    assert union([], [planned]) == (planned,)


windows = st.tuples(st.integers(0, 5), st.integers(1, 3)).map(lambda w: hours(w[0], w[0] + w[1]))
count = st.builds(lambda vcpu, memory: Amounts.of({"VCPU": vcpu, "MEMORY_MB": memory}), *[st.integers(1, 2)] * 2)


@st.composite
def sides(draw):
    """What each of two reservations has on each of two hosts in one window: nothing, units, or one of them all."""
    window, found = draw(windows), []
    for resource in (1, 2):
        if draw(st.integers(0, 3)) == 0:
            found.append(whole(draw(st.sampled_from("ab")), window, resource=resource))
            continue
        for reservation in "ab":
            if number := draw(st.integers(0, 3)):
                found.append(has(reservation, window, count=number, per_instance=draw(count), resource=resource))
    return found


def taken(allocations, resource: int, hour: int) -> Counter | None:
    """What is taken in an hour; None is all of it."""
    here = [a for a in allocations if a.resource_id == resource and a.window.overlaps(hours(hour, hour + 1))]
    if any(a.per_instance is None for a in here):
        assert len(here) == 1, "something is promised beside the whole"
        return None
    return sum((Counter(dict(a.amounts)) for a in here), Counter())


@given(sides(), sides())
def test_at_every_instant_the_larger_of_both_is_promised_and_no_more(held, planned):
    both = union(held, planned)
    for resource in (1, 2):
        for hour in HOURS:
            old, new = taken(held, resource, hour), taken(planned, resource, hour)
            expected = None if old is None or new is None else old | new
            assert taken(both, resource, hour) == expected
    wholes = {a.resource_id for a in held if a.per_instance is None}
    known = {(a.reservation_id, a.resource_id) for a in both}
    own = [a for a in planned if a.per_instance is None or a.resource_id not in wholes]
    assert {(a.reservation_id, a.resource_id) for a in own} <= known
    assert len(both) <= 3 * (len(held) + len(planned))


@given(sides())
def test_what_does_not_change_stays_as_it_is(held):
    assert sorted(map(str, union(held, held))) == sorted(map(str, held))
