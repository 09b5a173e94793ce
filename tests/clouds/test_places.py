# SPDX-License-Identifier: Apache-2.0
"""Whatever hangs, calls never take the threads that are kept for others."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.openstack.bulkhead import CallTarget, ThreadLimits, has_room
from blazar.context import Pool

SERVICES = ("Nova", "Neutron", "Cinder")


def filled(pool: Pool, calls: list[tuple[int, int, bool]]) -> Counter[CallTarget]:
    """Return the calls in progress when these come in turn, and none ends."""
    there: Counter[CallTarget] = Counter()
    for region, service, proven in calls:
        target = CallTarget(f"R{region}", SERVICES[service])
        if has_room(ThreadLimits.of(pool), there, target, proven=proven):
            there[target] += 1
    return there


@pytest.mark.parametrize(
    ("threads", "regions", "kept", "own", "common", "first"),
    [(16, 1, 2, 14, 0, 8), (16, 2, 2, 3, 8, 4), (16, 6, 2, 1, 8, 4), (32, 3, 4, 4, 16, 8), (1, 1, 0, 1, 0, 1)],
)
def test_some_threads_are_kept_some_are_of_each_region_and_the_others_are_common(
    threads, regions, kept, own, common, first
):
    assert ThreadLimits.of(Pool("requests", threads, regions)) == ThreadLimits(threads, kept, own, common, first)


@given(
    threads=st.integers(2, 40),
    regions=st.integers(1, 6),
    calls=st.lists(st.tuples(st.integers(2, 6), st.integers(0, 2), st.booleans()), max_size=120),
)
def test_calls_to_other_regions_leave_the_kept_threads_and_those_of_a_region(threads, regions, calls):
    pool = Pool("requests", threads, regions)
    limits = ThreadLimits.of(pool)
    hanging = [each for each in calls if each[0] <= regions]
    there = filled(pool, hanging)
    assert there.total() <= threads - limits.kept
    if threads - limits.kept >= regions:
        assert has_room(limits, there, CallTarget("R1", "Nova"), proven=False)


@given(calls=st.lists(st.integers(0, 2), max_size=60))
def test_calls_to_one_service_leave_some_for_the_other_services_of_its_region(calls):
    pool = Pool("requests", 16, 2)
    there = filled(pool, [(1, service, True) for service in calls if service])
    if len(set(there)) == 1:
        assert has_room(ThreadLimits.of(pool), there, CallTarget("R1", "Nova"), proven=False)


def test_one_region_alone_may_have_all_that_are_common():
    pool = Pool("requests", 16, 2)
    there = filled(pool, [(1, service, True) for service in range(3) for _ in range(16)])
    assert there.total() == ThreadLimits.of(pool).of_region == 11
