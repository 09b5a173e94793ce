# SPDX-License-Identifier: Apache-2.0
"""Scarce last: who needs any resource gets one that nobody else looks for, and nobody is refused for it."""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.calendar.scarcity import Sought, rank_resources, read_factor
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import Anything, Membership, matches
from blazar.model.resources.resource import HOST
from tests.builders import a_host, hours, promised

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
WINDOW = hours(4, 8)
PUBLIC = frozenset({"gpu", "scarcity"})


def rank(hosts, *sought):
    find = lambda requirement: [h for h in hosts if matches(requirement, h.properties)]  # noqa: E731
    return rank_resources(hosts, sought, matching=find, public=PUBLIC)


def ask(count=1, *, zones=None, vcpus=None):
    requirement = Anything() if zones is None else Membership("availability_zone", tuple(zones))
    return Demand(HOST, count, count, requirement, Amounts.of({"VCPU": vcpus}) if vcpus else None)


def order(hosts):
    return tuple(sorted(hosts, key=lambda host: (host.tier, host.id)))


def test_hosts_that_are_alike_are_of_one_tier():
    assert set(rank([a_host(n) for n in range(5)], Sought(ask(), 1000)).values()) == {0}


def test_what_few_have_is_scarce_before_anybody_has_asked_for_it():
    tiers = rank([a_host(1, gpu="A100"), *(a_host(n) for n in range(2, 20))])
    assert tiers[1] > 0 == max(tiers[n] for n in range(2, 20))


def test_what_is_asked_for_much_is_scarcer_than_what_is_rare():
    hosts = [a_host(1, zone="a"), a_host(2, zone="a"), a_host(3, zone="b"), *(a_host(n) for n in range(4, 20))]
    tiers = rank(hosts, Sought(ask(zones="a"), 10_000), Sought(ask(), 10_000))
    assert tiers[1] == tiers[2] > tiers[3] == tiers[4] == 0


def test_the_score_is_the_demand_that_each_would_carry():
    # Of 4 hosts: 8 hours of any are 2 each, and 6 hours of one of two are 3 each more; all have a share of the usual
    # request (7 hours) besides, and so scores are 3.75 and 6.75: twice the binary logarithm of 1.8 is 1.7.
    hosts = [a_host(n, zone="ab"[n > 2]) for n in range(1, 5)]
    assert rank(hosts, Sought(ask(), 8), Sought(ask(zones="b"), 6)) == {1: 0, 2: 0, 3: 2, 4: 2}


def test_a_slice_counts_as_the_part_of_a_host_that_it_is():
    hosts = [a_host(1, vcpus=16), a_host(2, vcpus=4), a_host(3, vcpus=2)]
    tiers = rank(hosts, Sought(ask(vcpus=4), 1000))
    assert tiers[3] == 0 < tiers[1] < tiers[2]


def test_an_operator_makes_a_host_scarcer_or_less_so():
    tiers = rank([a_host(1), a_host(2, scarcity="16"), a_host(3, scarcity="0.25")])
    assert tiers == {1: 4, 2: 12, 3: 0}


def test_leases_that_were_ended_before_they_began_count_as_none():
    assert rank([a_host(1), a_host(2)], Sought(ask(), 0)) == {1: 0, 2: 0}


@pytest.mark.parametrize("text", ["much", "", "nan", "inf", "-1", "0", "1e9"])
def test_a_factor_that_is_no_number_in_the_bounds_changes_nothing(text):
    assert read_factor(a_host(1, scarcity=text)) == 1


def test_what_members_cannot_ask_for_makes_nothing_scarce():
    assert set(rank([a_host(1, rack="r1"), a_host(2), a_host(3)]).values()) == {0}


def test_a_custom_trait_and_a_class_that_few_have_make_scarce():
    plain = [a_host(n) for n in range(3, 9)]
    marked = replace(a_host(1), traits=frozenset({"CUSTOM_NVLINK", "HW_CPU_X86_AVX"}))
    carded = replace(a_host(2), capacity=Amounts.of({"VCPU": 8, "VGPU": 4}))
    tiers = rank([marked, carded, *plain])
    assert tiers[1] == tiers[2] > 0 == tiers[3]


def test_no_hosts_have_no_tiers():
    assert rank([], Sought(ask(), 5)) == {}


def a_snapshot(hosts, allocations=()):
    return Snapshot(order(hosts), Occupancy.of_allocations(WINDOW, allocations))


@pytest.mark.parametrize("strategy", [*Strategy])
@pytest.mark.parametrize("vcpus", [None, 8])
def test_every_strategy_takes_the_scarce_host_last(strategy, vcpus):
    hosts = [a_host(1), replace(a_host(2), tier=3), a_host(3), replace(a_host(4), tier=1)]
    for seed in range(12):
        for count, taken in ((2, {1, 3}), (3, {1, 3, 4}), (4, {1, 2, 3, 4})):
            placement = place([ask(count, vcpus=vcpus)], a_snapshot(hosts), strategy=strategy, seed=seed)
            assert placement.resource_ids == taken


def test_the_roomiest_of_a_tier_is_taken_first():
    hosts = [a_host(1), a_host(2), replace(a_host(3), tier=1)]
    before = [promised(1, hours(0, 3))]
    assert place([ask()], a_snapshot(hosts, before)).resource_ids == {2}
    assert place([ask(2)], a_snapshot(hosts, before)).resource_ids == {1, 2}


def test_who_loses_races_takes_any():
    hosts = [replace(a_host(n), tier=n) for n in range(1, 9)]
    chosen = {
        one
        for seed in range(40)
        for one in place(
            [ask()], a_snapshot(hosts), strategy=Strategy.SCATTER, seed=seed, scarce_last=False
        ).resource_ids
    }
    assert len(chosen) > 4


def try_to_place(demands, snapshot, **how):
    try:
        placement = place(demands, snapshot, **how)
    except NotEnoughResources as error:
        return str(error)
    return [sum(one.count for one in assignments) for assignments in placement.assignments]


@st.composite
def calendars(draw):
    zones = st.sampled_from("abc")
    hosts = [
        replace(a_host(n, zone=draw(zones), vcpus=draw(st.sampled_from([2, 4, 8]))), tier=draw(st.integers(0, 2)))
        for n in range(1, draw(st.integers(2, 7)))
    ]
    taken = draw(st.lists(st.sampled_from([h.id for h in hosts]), max_size=3, unique=True))
    whole = draw(st.booleans())
    demands = [
        ask(
            draw(st.integers(1, 3)),
            zones=draw(st.one_of(st.none(), st.sets(zones, min_size=1).map(sorted))),
            vcpus=None if whole else draw(st.sampled_from([1, 2, 4])),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return demands, a_snapshot(hosts, [promised(id_, WINDOW) for id_ in taken])


@settings(max_examples=CASES, deadline=None)
@given(calendars(), st.sampled_from([*Strategy]))
def test_the_order_of_tiers_refuses_nothing_and_gives_as_many(calendar, strategy):
    demands, snapshot = calendar
    told = try_to_place(demands, snapshot, strategy=strategy)
    assert told == try_to_place(demands, snapshot, strategy=strategy, scarce_last=False)


@settings(max_examples=CASES, deadline=None)
@given(calendars(), st.sampled_from([*Strategy]), st.integers(0, 5))
def test_one_demand_for_whole_hosts_gets_those_of_the_lowest_tiers(calendar, strategy, seed):
    _, snapshot = calendar
    free = sorted(host.tier for host in snapshot.resources if snapshot.occupancy.is_free(host.id))
    for count in range(1, len(free) + 1):
        ids = place([ask(count)], snapshot, strategy=strategy, seed=seed).resource_ids
        assert sorted(host.tier for host in snapshot.resources if host.id in ids) == free[:count]
