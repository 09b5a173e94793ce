# SPDX-License-Identifier: Apache-2.0
"""Placement against a brute-force oracle: nothing that fits is refused, nothing is promised twice."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place, take_roomiest
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.resources.requirements import Membership
from blazar.model.resources.resource import HOST
from tests.builders import a_host, hours, promised

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
WINDOW = hours(4, 8)


def ask(minimum, maximum=None, *, zones=None, vcpus=None, **more) -> Demand:
    requirement = {} if zones is None else {"requirement": Membership("availability_zone", tuple(sorted(zones)))}
    per_instance = None if vcpus is None else Amounts.of({"VCPU": vcpus})
    return Demand(HOST, minimum, maximum or minimum, per_instance=per_instance, **requirement, **more)


def a_snapshot(hosts, allocations=()) -> Snapshot:
    return Snapshot(tuple(hosts), Occupancy.of_allocations(WINDOW, allocations))


def counts(placement) -> list[int]:
    return [sum(share.count for share in assignments) for assignments in placement.assignments]


def test_min_one_max_three_with_three_free_hosts_gets_three():
    assert counts(place([ask(1, 3)], a_snapshot([a_host(1), a_host(2), a_host(3)]))) == [3]


def test_two_demands_never_share_the_last_host():
    hosts = a_snapshot([a_host(1)])
    with pytest.raises(NotEnoughResources, match="number 2 of the 2 reservations of them"):
        place([ask(1), ask(1)], hosts)


def test_the_choosy_demand_gets_what_only_it_can_use():
    hosts = a_snapshot([a_host(1, zone="a"), a_host(2, zone="b")])
    placement = place([ask(1), ask(1, zones="a")], hosts)
    assert [assignments[0].resource_id for assignments in placement.assignments] == [2, 1]


def test_a_demand_that_could_take_all_leaves_the_others_their_minimum():
    hosts = a_snapshot([a_host(n, zone="a") for n in (1, 2)] + [a_host(3, zone="b")])
    assert counts(place([ask(1, 9), ask(1, zones="a"), ask(1, zones="a")], hosts)) == [1, 1, 1]


def test_the_smallest_host_that_fits_is_taken_first_or_the_largest():
    hosts = a_snapshot([a_host(3, vcpus=4), a_host(1, vcpus=16), a_host(2, vcpus=64)])
    assert place([ask(1)], hosts).resource_ids == {3}
    assert place([ask(1)], hosts, strategy=Strategy.SPREAD).resource_ids == {2}


def test_a_random_choice_is_the_same_under_the_same_seed():
    hosts = a_snapshot([a_host(n) for n in range(1, 50)])
    chosen = {seed: place([ask(3)], hosts, strategy=Strategy.RANDOM, seed=seed) for seed in range(20)}
    assert all(place([ask(3)], hosts, strategy=Strategy.RANDOM, seed=seed) == p for seed, p in chosen.items())
    assert len({p.resource_ids for p in chosen.values()}) > 10


def test_a_host_that_is_not_reservable_is_taken_only_if_it_is_pinned():
    broken = a_host(1, reservable=False)
    with pytest.raises(NotEnoughResources):
        place([ask(1)], a_snapshot([broken]))
    assert place([ask(1, pinned=frozenset({1}))], a_snapshot([broken])).resource_ids == {1}


def test_what_is_pinned_and_promised_to_others_is_named():
    with pytest.raises(NotEnoughResources, match="node-1 is in use"):
        place([ask(1, pinned=frozenset({1}))], a_snapshot([a_host(1), a_host(2)], [promised(1, WINDOW)]))


def test_the_refusal_counts_the_candidates():
    hosts = [a_host(1, zone="a"), a_host(2, zone="a"), a_host(3, zone="b")]
    with pytest.raises(NotEnoughResources, match="at least 2 requested, 2 match, 1 of them free"):
        place([ask(2, zones="a")], a_snapshot(hosts, [promised(1, WINDOW)]))


def test_units_together_and_apart():
    hosts = a_snapshot([a_host(1, vcpus=4), a_host(2, vcpus=8)])
    assert place([ask(4, vcpus=2, affinity=Affinity.TOGETHER)], hosts).resource_ids == {2}
    apart = place([ask(2, vcpus=2, affinity=Affinity.APART)], hosts)
    assert sorted((share.resource_id, share.count) for share in apart.assignments[0]) == [(1, 1), (2, 1)]
    with pytest.raises(NotEnoughResources):
        place([ask(3, vcpus=2, affinity=Affinity.APART)], hosts)


def names(*numbers: int) -> frozenset[str]:
    return frozenset(f"node-{number}" for number in numbers)


def test_required_resources_are_among_the_chosen_ones():
    hosts = a_snapshot([a_host(n) for n in range(1, 6)])
    assert place([ask(3, required=names(4, 5))], hosts).resource_ids > {4, 5}
    assert place([ask(2, required=names(4, 5))], hosts, strategy=Strategy.RANDOM).resource_ids == {4, 5}
    placement = place([ask(1, 9), ask(2, required=names(1, 2)), ask(1)], hosts)
    assert {share.resource_id for share in placement.assignments[1]} == {1, 2}


def test_required_resources_are_left_to_those_who_require_them_beside_shared_ones():
    hosts = a_snapshot([a_host(1, vcpus=8), a_host(2, vcpus=8)])
    placement = place([ask(1, vcpus=1), ask(1, required=names(1))], hosts)
    assert [assignments[0].resource_id for assignments in placement.assignments] == [2, 1]
    with pytest.raises(NotEnoughResources):
        place([ask(2, vcpus=1, affinity=Affinity.APART), ask(1, required=names(1))], hosts)


@pytest.mark.parametrize(
    ("demands", "error", "says"),
    [
        ([ask(3, required=names(3, 8, 9))], InvalidInput, "node-8, node-9: no such host is registered"),
        ([ask(1, zones="b", required=names(1))], InvalidInput, "node-1: no such host"),
        ([ask(1, required=names(2))], NotEnoughResources, "node-2 is promised to another lease in that time"),
        ([ask(1, required=names(4))], NotEnoughResources, "node-4 is not reservable at present"),
        (
            [ask(1, required=names(1)), ask(1, required=names(1))],
            NotEnoughResources,
            "another reservation of the lease",
        ),
        ([ask(1, required=names(1)), ask(1, pinned=frozenset({1}))], NotEnoughResources, "another reservation"),
    ],
)
def test_what_is_required_and_cannot_be_had_is_named(demands, error, says):
    hosts = [a_host(1), a_host(2), a_host(3), a_host(4, reservable=False)]
    with pytest.raises(error, match=says):
        place(demands, a_snapshot(hosts, [promised(2, WINDOW)]))


def test_a_demand_requires_no_more_than_it_takes_and_only_whole_resources():
    with pytest.raises(ValueError, match="with pinned at most min_count"):
        ask(1, 5, required=names(1, 2))
    with pytest.raises(ValueError, match="with pinned at most min_count"):
        ask(2, required=names(1), pinned=frozenset({2, 3}))
    with pytest.raises(ValueError, match="required is for whole resources only"):
        ask(1, vcpus=1, required=names(1))


# Strategies are made once, not in every case: Hypothesis finds out about each new one.
zones = st.sampled_from(["a", "b", "c"])
some_zones = st.one_of(st.none(), st.sets(zones, min_size=1))
some_spans = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 5)), max_size=5)
sizes_or_none = st.one_of(st.none(), st.integers(1, 3))
affinities = st.sampled_from(list(Affinity))


@st.composite
def whole_cases(draw):
    hosts = [
        a_host(n, zone=draw(zones), vcpus=draw(st.integers(1, 3)), reservable=draw(st.integers(0, 9)) > 0)
        for n in range(1, draw(st.integers(1, 6)) + 1)
    ]
    allocations = [
        promised(draw(st.integers(1, len(hosts))), hours(begin, begin + length)) for begin, length in draw(some_spans)
    ]
    demands = []
    for _ in range(draw(st.integers(1, 3))):
        least = draw(st.integers(1, 3))
        demands.append(ask(least, least + draw(st.integers(0, 3)), zones=draw(some_zones)))
    return hosts, allocations, demands


def usable(hosts, allocations, demand) -> set[int]:
    """The obvious way: every host that matches, can be reserved and is free at every hour of the window."""
    found = set()
    for host in hosts:
        fits = (
            demand.requirement == ask(1).requirement
            or host.attributes["availability_zone"] in demand.requirement.values
        )
        busy = any(a.resource_id == host.id and a.window.overlaps(WINDOW) for a in allocations)
        if fits and host.reservable and not busy:
            found.add(host.id)
    return found


def best(demands, able, required=()) -> int | None:
    """The most units that any way of giving every host to one demand, or to none, yields; None if no way will do."""
    hosts = sorted(set().union(*able))
    if any(not wanted <= set(hosts) for wanted in required):
        return None
    most = None
    for owners in itertools.product(range(-1, len(demands)), repeat=len(hosts)):
        counts = [0] * len(demands)
        for host, owner in zip(hosts, owners, strict=True):
            if owner >= 0:
                if host not in able[owner]:
                    break
                counts[owner] += 1
        else:
            own = [{h for h, o in zip(hosts, owners, strict=True) if o == n} for n in range(len(demands))]
            if any(not wanted <= mine for wanted, mine in zip(required, own, strict=False)):
                continue
            if all(d.min_count <= c <= d.max_count for d, c in zip(demands, counts, strict=True)):
                most = max(most or 0, sum(counts))
    return most


@settings(max_examples=CASES)
@given(whole_cases(), st.sampled_from(list(Strategy)), st.integers(0, 5))
def test_whole_resources_are_placed_as_well_as_can_be(case, strategy, seed):
    hosts, allocations, demands = case
    able = [usable(hosts, allocations, demand) for demand in demands]
    most = best(demands, able)
    try:
        placement = place(demands, a_snapshot(hosts, allocations), strategy=strategy, seed=seed)
    except NotEnoughResources:
        assert most is None
        return
    assert sum(counts(placement)) == most
    given_ = [share.resource_id for assignments in placement.assignments for share in assignments]
    assert len(given_) == len(set(given_)), "a host is given twice"
    for demand, assignments, can in zip(demands, placement.assignments, able, strict=True):
        assert demand.min_count <= len(assignments) <= demand.max_count
        assert {share.resource_id for share in assignments} <= can


@settings(max_examples=CASES)
@given(whole_cases(), st.sets(st.integers(1, 6), max_size=4), st.integers(0, 5))
def test_preferred_hosts_are_kept_and_cost_nothing(case, preferred, seed):
    hosts, allocations, demands = case
    demand = replace(demands[0], preferred=frozenset(preferred))
    can = usable(hosts, allocations, demand)
    assume(len(can) >= demand.min_count)
    placement = place([demand], a_snapshot(hosts, allocations), strategy=Strategy.RANDOM, seed=seed)
    count = min(len(can), demand.max_count)
    assert counts(placement) == [count]
    assert len(placement.resource_ids & preferred) == min(count, len(can & preferred))


@settings(max_examples=CASES)
@given(whole_cases(), st.data(), st.sampled_from(list(Strategy)), st.integers(0, 5))
def test_required_resources_are_placed_wherever_there_is_a_way(case, data, strategy, seed):
    hosts, allocations, demands = case
    some = st.sets(st.integers(1, len(hosts)))
    required = [set(sorted(data.draw(some))[: demand.min_count]) for demand in demands]
    demands = [replace(d, required=names(*wanted)) for d, wanted in zip(demands, required, strict=True)]
    able = [usable(hosts, allocations, demand) for demand in demands]
    most = best(demands, able, required)
    try:
        placement = place(demands, a_snapshot(hosts, allocations), strategy=strategy, seed=seed)
    except (NotEnoughResources, InvalidInput):
        assert most is None
        return
    assert sum(counts(placement)) == most
    chosen = [{share.resource_id for share in assignments} for assignments in placement.assignments]
    assert sum(map(len, chosen)) == len(set().union(*chosen)), "a host is given twice"
    for demand, mine, wanted, can in zip(demands, chosen, required, able, strict=True):
        assert wanted <= mine <= can
        assert demand.min_count <= len(mine) <= demand.max_count


def test_what_nobody_uses_is_taken_before_what_is_used_before_or_after():
    hosts = [a_host(1, vcpus=2), a_host(2, vcpus=4), a_host(3, vcpus=8), a_host(4, vcpus=16)]
    used = [promised(1, hours(0, 3)), promised(2, hours(9, 10)), promised(2, hours(0, 1)), promised(4, hours(0, 4))]
    order = [3, 1, 2, 4]
    for count in range(1, 5):
        assert place([ask(count)], a_snapshot(hosts, used)).resource_ids == set(order[:count])
    assert place([ask(1, preferred=frozenset({4}))], a_snapshot(hosts, used)).resource_ids == {4}


@settings(max_examples=CASES)
@given(whole_cases(), st.sampled_from(sorted({*Strategy} - {Strategy.RANDOM, Strategy.COMPACT})), st.integers(0, 5))
def test_no_resource_is_taken_beside_another_use_while_one_is_free_all_the_time(case, strategy, seed):
    hosts, allocations, demands = case
    demand = demands[0]
    can = usable(hosts, allocations, demand)
    assume(len(can) >= demand.min_count)
    idle = can - {a.resource_id for a in allocations}
    placement = place([demand], a_snapshot(hosts, allocations), strategy=strategy, seed=seed)
    assert placement.resource_ids <= idle or placement.resource_ids >= idle


@settings(max_examples=CASES)
@given(whole_cases(), st.sampled_from(list(Strategy)), st.integers(0, 5), st.sets(st.integers(1, 6), max_size=3))
def test_to_leave_the_rest_unsorted_changes_nothing(case, strategy, seed, preferred):
    hosts, allocations, demands = case
    demands = [replace(demands[0], preferred=frozenset(preferred)), *demands[1:]]

    def outcome():
        try:
            return place(demands, a_snapshot(hosts, allocations), strategy=strategy, seed=seed)
        except NotEnoughResources as error:
            return str(error)

    def all_sorted(ordered, occupancy, enough):
        return take_roomiest(ordered, occupancy, None)

    with patch("blazar.calendar.placement.take_roomiest", all_sorted):
        expected = outcome()
    assert outcome() == expected


def test_servers_are_packed_beside_others_rather_than_on_a_host_that_a_lease_has_just_left():
    hosts = [a_host(1, vcpus=4), a_host(2, vcpus=8), a_host(3, vcpus=8)]
    used = [promised(1, hours(0, 4)), promised(3, WINDOW, vcpus=2)]
    assert place([ask(1, vcpus=2)], a_snapshot(hosts, used)).resource_ids == {3}
    assert place([ask(1, vcpus=8)], a_snapshot(hosts, used)).resource_ids == {2}


def test_reservations_of_many_hosts_are_placed_however_many_change_hands():
    hosts = a_snapshot([a_host(n, zone="a" if n <= 500 else "b") for n in range(1, 1001)])
    assert sum(counts(place([ask(1, 1000), ask(1, 1000)], hosts))) == 1000
    assert counts(place([ask(400, zones="ab"), ask(500, zones="a"), ask(1, 1000)], hosts)) == [400, 500, 100]
    with pytest.raises(NotEnoughResources, match="number 3 of the 3 reservations of them"):
        place([ask(400, 1000), ask(400, 1000), ask(201, 1000)], hosts)


def test_a_chain_of_many_reservations_moves_up_by_one():
    count = 200
    hosts = a_snapshot([a_host(n, zone=f"z{n}") for n in range(1, count + 1)])
    chain = [ask(1, zones=[f"z{n}", f"z{n + 1}"]) for n in range(1, count)]
    # Each would take the first of its two; the last one wants the first of all.
    placement = place([*chain, ask(1, zones=["z1"])], hosts)
    assert [assignments[0].resource_id for assignments in placement.assignments] == [*range(2, count + 1), 1]


@settings(max_examples=CASES)
@given(whole_cases(), st.data())
def test_pinned_resources_stay_wherever_there_is_a_way(case, data):
    hosts, allocations, demands = case
    free = [h.id for h in hosts if h.reservable and not any(a.resource_id == h.id for a in allocations)]
    own = data.draw(st.sets(st.sampled_from(free)) if free else st.just(set()))
    index = data.draw(st.integers(0, len(demands) - 1))
    assume(len(own) <= demands[index].min_count)
    demands[index] = replace(demands[index], pinned=frozenset(own))
    able = [usable(hosts, allocations, demand) | (own if n == index else set()) for n, demand in enumerate(demands)]
    most = best(demands, able, [own if n == index else set() for n in range(len(demands))])
    try:
        placement = place(demands, a_snapshot(hosts, allocations))
    except NotEnoughResources:
        assert most is None
        return
    assert sum(counts(placement)) == most
    assert {share.resource_id for share in placement.assignments[index]} >= own


@st.composite
def mixed_cases(draw):
    hosts = [a_host(n, vcpus=draw(st.integers(1, 6))) for n in range(1, draw(st.integers(1, 3)) + 1)]
    allocations = []
    for host in hosts:
        if draw(st.booleans()):
            vcpus = draw(st.integers(1, host.attributes["vcpus"]))
            begin = draw(st.integers(0, 9))
            allocations.append(promised(host.id, hours(begin, begin + draw(st.integers(1, 4))), vcpus=vcpus))
    demands = []
    for _ in range(draw(st.integers(1, 3))):
        vcpus = draw(sizes_or_none)
        affinity = Affinity.ANY if vcpus is None else draw(affinities)
        least = draw(st.integers(1, 3))
        demands.append(ask(least, least + draw(st.integers(0, 1)), vcpus=vcpus, affinity=affinity))
    assume(any(d.per_instance is not None for d in demands))
    return hosts, allocations, demands


def room(host, allocations) -> int:
    """What is left of a host at its fullest hour of the window."""
    hourly = [
        sum(
            a.per_instance.get("VCPU") * a.count
            for a in allocations
            if a.resource_id == host.id and a.window.overlaps(hours(h, h + 1))
        )
        for h in range(4, 8)
    ]
    return host.attributes["vcpus"] - max(hourly)


def fits(demands, hosts, allocations, counts) -> bool:
    """Whether counts[demand][host] units lie well."""
    for index, host in enumerate(hosts):
        column = [row[index] for row in counts]
        wholes = sum(n for d, n in zip(demands, column, strict=True) if d.per_instance is None)
        shared = sum(d.per_instance.get("VCPU") * n for d, n in zip(demands, column, strict=True) if d.per_instance)
        if wholes > 1 or (wholes and (shared or room(host, allocations) < host.attributes["vcpus"])):
            return False
        if shared > room(host, allocations):
            return False
    for demand, row in zip(demands, counts, strict=True):
        if demand.per_instance is None and max(row) > 1:
            return False
        if demand.affinity is Affinity.APART and max(row) > 1:
            return False
        if demand.affinity is Affinity.TOGETHER and demand.per_instance is not None and sum(1 for n in row if n) > 1:
            return False
    return True


def rows(total, width):
    if width == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in rows(total - first, width - 1):
            yield (first, *rest)


@settings(max_examples=CASES)
@given(mixed_cases())
def test_units_and_wholes_are_placed_wherever_there_is_a_way(case):
    hosts, allocations, demands = case
    ways = itertools.product(*(list(rows(demand.min_count, len(hosts))) for demand in demands))
    possible = any(fits(demands, hosts, allocations, counts) for counts in ways)
    try:
        placement = place(demands, a_snapshot(hosts, allocations))
    except NotEnoughResources:
        assert not possible
        return
    assert possible
    counts = [
        [sum(share.count for share in assignments if share.resource_id == host.id) for host in hosts]
        for assignments in placement.assignments
    ]
    assert fits(demands, hosts, allocations, counts)
    for demand, row in zip(demands, counts, strict=True):
        assert demand.min_count <= sum(row) <= demand.max_count
