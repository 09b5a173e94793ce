# SPDX-License-Identifier: Apache-2.0
"""What is promised of a resource inside a window."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from blazar.calendar.occupancy import Occupancy
from blazar.model.base.amounts import Amounts
from tests.builders import a_host, hours, promised

TWO = Amounts.of({"VCPU": 2})


def test_touching_leases_share_a_host():
    occupancy = Occupancy.of_allocations(hours(2, 4), [promised(1, hours(0, 2)), promised(1, hours(4, 6))])
    assert occupancy.is_free(1)
    assert occupancy.count_free(a_host(1, vcpus=8), TWO) == 4


def test_a_host_that_is_taken_whole_has_no_room():
    occupancy = Occupancy.of_allocations(hours(1, 3), [promised(1, hours(0, 2))])
    assert not occupancy.is_free(1)
    assert occupancy.count_free(a_host(1), TWO) == 0
    assert occupancy.is_free(2)


def test_units_that_touch_do_not_add_up_and_a_peak_outside_does_not_count():
    allocations = [
        promised(1, hours(0, 2), vcpus=4),
        promised(1, hours(2, 4), vcpus=4),
        promised(1, hours(8, 9), vcpus=8),
    ]
    occupancy = Occupancy.of_allocations(hours(1, 5), allocations)
    assert occupancy.count_free(a_host(1, vcpus=8), TWO) == 2
    assert not occupancy.is_free(1)


def test_units_count_as_often_as_they_are_promised():
    occupancy = Occupancy.of_allocations(hours(0, 2), [promised(1, hours(0, 2), vcpus=2, count=3)])
    assert occupancy.count_free(a_host(1, vcpus=8), TWO) == 1


def test_only_the_resources_that_are_asked_about_are_read_and_those_once():
    read = []

    class Noted(dict):
        def __getitem__(self, host):
            read.append(host)
            return super().__getitem__(host)

    uses = Noted({host: [(hour, hour + 2, 1, TWO) for hour in (0, 1)] for host in (1, 2, 3)})
    occupancy = Occupancy.of_uses({4}, uses)
    assert not any(occupancy.is_free(host) for host in (1, 2, 3, 4))
    assert occupancy.is_free(5)
    assert read == []
    assert [occupancy.count_free(a_host(2, vcpus=8), TWO) for _ in range(2)] == [2, 2]
    assert read == [2]
    assert occupancy.peaks == dict.fromkeys((1, 2, 3), TWO.times(2))
    assert len(occupancy.peaks) == 3


spans = st.tuples(st.integers(0, 11), st.integers(1, 6)).map(lambda t: (t[0], t[0] + t[1]))


@given(spans, st.lists(st.tuples(spans, st.one_of(st.none(), st.integers(1, 3)), st.integers(1, 2)), max_size=6))
def test_the_room_is_what_is_left_at_the_fullest_moment(span, uses):
    host = a_host(1, vcpus=8)
    allocations = [
        promised(1, hours(*use), vcpus=vcpus, count=1 if vcpus is None else count) for use, vcpus, count in uses
    ]
    taken = [
        sum(8 if vcpus is None else vcpus * count for use, vcpus, count in uses if use[0] <= hour < use[1])
        for hour in range(*span)
    ]
    whole = any(vcpus is None and use[0] < span[1] and span[0] < use[1] for use, vcpus, _ in uses)
    occupancy = Occupancy.of_allocations(hours(*span), allocations)
    assert occupancy.is_free(1) is (max(taken) == 0)
    assert occupancy.count_free(host, TWO) == (0 if whole else max(0, (8 - max(taken)) // 2))
