# SPDX-License-Identifier: Apache-2.0
"""Together and spread, against brute force: what can lie as it is asked for is placed so, and nothing else is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar import placement, topology
from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import SpreadOver, Together, Topology, value_of
from blazar.model.resources.requirements import parse_requirement
from blazar.model.resources.resource import HOST
from tests.builders import a_host, hours, promised

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
WINDOW = hours(4, 8)


def ask(least, most=None, *, together=None, spread=None, **more):
    topology = Topology(
        Together(together) if isinstance(together, str) else together,
        SpreadOver(spread) if isinstance(spread, str) else spread,
    )
    return Demand(HOST, least, most or least, topology=topology, **more)


def racks(**rooms):
    """Hosts numbered from 1: so many in each rack."""
    names = [name for name, count in rooms.items() for _ in range(count)]
    return [a_host(number, rack=name) for number, name in enumerate(names, 1)]


def placed(hosts, *demands, taken=(), **how):
    snapshot = Snapshot(tuple(hosts), Occupancy.of_allocations(WINDOW, [promised(id_, WINDOW) for id_ in taken]))
    by_id = {host.id: host for host in hosts}
    found = place(demands, snapshot, **how)
    return [[by_id[one.resource_id] for one in assignments] for assignments in found.assignments]


def in_racks(hosts, *demands, **how):
    return [Counter(value_of(host, "rack") for host in some) for some in placed(hosts, *demands, **how)]


def test_all_units_are_in_one_rack():
    assert in_racks(racks(a=2, b=3, c=2), ask(3, together="rack")) == [{"b": 3}]
    with pytest.raises(NotEnoughResources, match="3 requested, 7 match, 6 of them free in that time, 2 of these of on"):
        in_racks(racks(a=2, b=3, c=2), ask(3, together="rack"), taken=[3])


def test_the_rack_that_gives_most_is_taken_and_of_these_the_one_of_which_least_is_left():
    assert in_racks(racks(a=6, b=4, c=5), ask(2, 4, together="rack")) == [{"b": 4}]
    assert in_racks(racks(a=3, b=4), ask(2, 9, together="rack")) == [{"b": 4}]


def test_hosts_of_no_rack_are_in_none():
    with pytest.raises(NotEnoughResources):
        in_racks([a_host(1), a_host(2)], ask(2, together="rack"))
    with pytest.raises(NotEnoughResources):
        in_racks([a_host(1), a_host(2)], ask(2, spread="rack"))


def test_as_few_racks_as_possible_where_one_is_not_enough():
    preferred = Together("rack", prefer=True)
    assert in_racks(racks(a=2, b=3, c=4), ask(3, together=preferred)) == [{"b": 3}]
    assert in_racks(racks(a=2, b=3, c=4), ask(6, together=preferred)) == [{"b": 2, "c": 4}]


def test_groups_each_in_one_rack_leave_large_racks_whole():
    pairs = Together("rack", size=2)
    assert in_racks(racks(a=5, b=3, c=2), ask(4, together=pairs)) == [{"b": 2, "c": 2}]
    with pytest.raises(NotEnoughResources, match="10 of them free in that time, 8 of these in groups of 2 of one rack"):
        in_racks(racks(a=5, b=3, c=2), ask(10, together=pairs))


def test_groups_are_spread_over_what_several_of_their_rooms_share():
    hosts = [a_host(n, rack=f"domain {n // 4}", feed=f"feed {n // 16}") for n in range(64)]
    apart = ask(16, together=Together("rack", size=4), spread=SpreadOver("feed", 4))
    assert Counter(value_of(h, "feed") for h in placed(hosts, apart)[0]) == {f"feed {n}": 4 for n in range(4)}
    with pytest.raises(NotEnoughResources, match="64 of them free in that time, 16 of these in groups of 4 of one ra"):
        placed(hosts, replace(apart, min_count=20, max_count=20))
    mixed = [a_host(n, rack="a", feed="x" if n < 3 else "y") for n in range(5)]
    assert len(placed(mixed, ask(4, together=Together("rack", size=2), spread=SpreadOver("feed", 2)))[0]) == 4


def test_a_group_in_use_is_completed_by_what_may_be_beside_it():
    hosts = [a_host(1, rack="a", feed="x"), a_host(2, rack="a", feed="x"), a_host(3, rack="a", feed="y")]
    grown = ask(2, together=Together("rack", size=2), spread="feed", pinned=frozenset({1}))
    assert sorted(h.id for h in placed(hosts, grown)[0]) == [1, 3]


def test_a_refusal_of_as_few_racks_as_possible_counts_what_is_in_racks():
    with pytest.raises(NotEnoughResources, match="4 match, 4 of them free in that time, 3 of these of one rack"):
        placed([*racks(a=2, b=1), a_host(9)], ask(4, together=Together("rack", prefer=True)))


@pytest.mark.parametrize("count", [2, 4, 12])
def test_many_reservations_that_each_fill_a_rack_are_given_one_each(count):
    hosts = racks(**{f"r{n:02}": 5 for n in range(30)})
    found = in_racks(hosts, *[ask(4, together="rack")] * count)
    assert [*map(len, found)] == [1] * count
    assert len({rack for some in found for rack in some}) == count


def test_what_one_reservation_can_have_only_is_left_to_it_by_many_others():
    hosts = racks(**{f"r{n:02}": 3 for n in range(12)})
    only = ask(3, together="rack", requirement=parse_requirement(["==", "$rack", "r00"], field="x"))
    assert in_racks(hosts, *[ask(3, together="rack")] * 11, only)[-1] == {"r00": 3}


def test_what_is_looked_at_is_bounded_in_a_large_calendar(monkeypatch):
    trials = []
    really = placement._can_have
    monkeypatch.setattr(placement, "_can_have", lambda *some: trials.append(1) or really(*some))
    hosts = racks(**{f"r{n:03}": 30 for n in range(300)})
    with pytest.raises(NotEnoughResources, match="beside the lease's other"):
        placed(hosts, ask(20, together="rack"), ask(8981))
    assert len(trials) <= 2 * (topology.MOST_LOOKED_AT // len(hosts) + 1)


def test_each_in_another_rack_or_so_many_of_each():
    assert in_racks(racks(a=3, b=1, c=1), ask(3, spread="rack")) == [{"a": 1, "b": 1, "c": 1}]
    assert in_racks(racks(a=3, b=1), ask(2, 9, spread=SpreadOver("rack", 2))) == [{"a": 2, "b": 1}]
    with pytest.raises(NotEnoughResources, match="3 of these of a different rack apiece"):
        in_racks(racks(a=3, b=1, c=1), ask(4, spread="rack"))


def test_within_one_rack_on_different_feeds():
    hosts = [a_host(n, rack="ab"[n > 3], feed=feed) for n, feed in enumerate("xxxxy", 1)]
    assert [h.id for h in placed(hosts, ask(2, together="rack", spread="feed"))[0]] == [4, 5]


def test_two_reservations_share_the_racks_so_that_both_lie_as_they_ask():
    hosts = racks(a=3, b=2)
    assert in_racks(hosts, ask(2, together="rack"), ask(3, together="rack")) == [{"b": 2}, {"a": 3}]
    assert in_racks(hosts, ask(2, spread="rack"), ask(3, spread=SpreadOver("rack", 2))) == [
        {"a": 1, "b": 1},
        {"a": 2, "b": 1},
    ]


def test_what_is_in_use_stays_and_grows_where_it_is():
    hosts = racks(a=4, b=6)
    grown = ask(3, together="rack", pinned=frozenset({1, 2}))
    assert in_racks(hosts, grown) == [{"a": 3}]
    with pytest.raises(NotEnoughResources):
        in_racks(hosts, replace(grown, min_count=5, max_count=5))
    broken = ask(2, together="rack", pinned=frozenset({1, 5}))
    assert in_racks(hosts, broken) == [{"a": 1, "b": 1}]


def test_a_group_in_use_is_completed_where_it_is():
    hosts = racks(a=4, b=6)
    assert in_racks(hosts, ask(4, together=Together("rack", size=4), pinned=frozenset({1, 2, 3}))) == [{"a": 4}]


def test_before_the_start_what_it_has_is_preferred():
    hosts = racks(a=3, b=3)
    assert in_racks(hosts, ask(2, together="rack", preferred=frozenset({5, 6}))) == [{"b": 2}]


def test_the_rack_with_the_least_scarce_hosts_is_taken():
    hosts = sorted((replace(h, tier=3 * (h.id <= 2)) for h in racks(a=2, b=2)), key=lambda h: h.tier)
    assert in_racks(hosts, ask(2, together="rack")) == [{"b": 2}]


def test_beside_instances_on_shared_hosts():
    servers = Demand(HOST, 2, 2, per_instance=Amounts.of({"VCPU": 8}))
    assert in_racks(racks(a=1, b=3), ask(2, together="rack"), servers)[0] == {"b": 2}


def test_a_topology_is_for_whole_resources():
    with pytest.raises(ValueError, match="whole resources only"):
        Demand(HOST, 1, 1, per_instance=Amounts.of({"VCPU": 1}), topology=Topology(Together("rack")))


def lies_well(demand, hosts) -> bool:
    together, spread = demand.topology.together, demand.topology.spread
    if together and not together.prefer:
        values = Counter(value_of(host, together.key) for host in hosts)
        if None in values or (together.size and any(n % together.size for n in values.values())):
            return False
        if not together.size and len(values) > 1:
            return False
    if together and together.prefer and any(value_of(host, together.key) is None for host in hosts):
        return False
    if spread:
        values = Counter(value_of(host, spread.key) for host in hosts)
        return None not in values and max(values.values()) <= spread.most
    return True


def arrangements(demands, hosts) -> Iterator[tuple[int, ...]]:
    """Yield how many each demand gets, for all that is possible."""
    if not demands:
        yield ()
        return
    for count in range(demands[0].min_count, demands[0].max_count + 1):
        for some in combinations(hosts, count):
            if lies_well(demands[0], some):
                left = [host for host in hosts if host not in some]
                for rest in arrangements(demands[1:], left):
                    yield count, *rest


@st.composite
def calendars(draw, most_demands=2, *, groups=False):
    hosts = [
        a_host(
            n,
            **{
                key: value
                for key, value in (("rack", draw(st.sampled_from("abc-"))), ("feed", draw(st.sampled_from("xy"))))
                if value != "-"
            },
        )
        for n in range(1, draw(st.integers(3, 7)))
    ]
    togethers = [None, Together("rack"), Together("rack", prefer=True), *([Together("rack", size=2)] if groups else [])]
    spreads = [None, SpreadOver("feed"), SpreadOver("feed", 2), SpreadOver("rack"), SpreadOver("rack", 2)]
    demands = []
    for _ in range(draw(st.integers(1, most_demands))):
        together = draw(st.sampled_from(togethers))
        size = together.size if together else 0
        least = draw(st.integers(1, 3)) * (size or 1)
        spread = draw(st.sampled_from(spreads))
        demands.append(ask(least, least + draw(st.integers(0, 2)) * (size or 1), together=together, spread=spread))
    return demands, hosts


@settings(max_examples=CASES, deadline=None)
@given(calendars(), st.sampled_from([*Strategy]), st.integers(0, 3))
def test_what_can_lie_as_it_is_asked_for_is_placed_so(calendar, strategy, seed):
    demands, hosts = calendar
    possible = next(arrangements(demands, hosts), None)
    try:
        found = placed(hosts, *demands, strategy=strategy, seed=seed)
    except NotEnoughResources:
        assert possible is None
        return
    taken = [host.id for some in found for host in some]
    assert len(taken) == len(set(taken))
    for demand, some in zip(demands, found, strict=True):
        assert demand.min_count <= len(some) <= demand.max_count
        assert lies_well(demand, some)


@settings(max_examples=CASES, deadline=None)
@given(calendars(1, groups=True))
def test_one_demand_gets_as_many_as_can_lie_so_and_in_as_few_values(calendar):
    [demand], hosts = calendar
    possible = max(arrangements([demand], hosts), default=None)
    try:
        [found] = placed(hosts, demand)
    except NotEnoughResources:
        # Groups that are spread are not found in every case.
        assert possible is None or demand.topology.spread
        return
    together = demand.topology.together
    assert lies_well(demand, found)
    if together is None or not together.prefer:
        assert (len(found),) == possible or (together and together.size and demand.topology.spread)
        return
    fewest = min(
        len({value_of(host, "rack") for host in some})
        for some in combinations(hosts, len(found))
        if lies_well(demand, some)
    )
    assert demand.topology.spread or len({value_of(host, "rack") for host in found}) == fewest
