# SPDX-License-Identifier: Apache-2.0
"""Units of several classes beside whole resources, against a brute-force oracle."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.demand import Affinity, Demand, TraitRequirements
from blazar.model.resources.pools import UnitLimits
from blazar.model.resources.requirements import Comparison
from blazar.model.resources.resource import HOST, Resource
from tests.builders import a_host, hours

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
WINDOW = hours(4, 8)
HOURS = range(4, 8)


def amounts(vcpus: int, memory_mb: int) -> Amounts:
    return Amounts.of({"VCPU": vcpus, "MEMORY_MB": memory_mb})


def a_sized_host(id: int, vcpus: int, memory_mb: int) -> Resource:
    return replace(a_host(id, vcpus=vcpus), capacity=amounts(vcpus, memory_mb))


def promised(resource: int, window, per_instance: Amounts | None, count: int = 1, lease: str = "other") -> Allocation:
    return Allocation(HOST, resource, lease, f"{lease}-r", window, count, per_instance)


def ask(count: int, per_instance: Amounts | None, **more) -> Demand:
    return Demand(HOST, count, more.pop("most", count), per_instance=per_instance, **more)


def a_snapshot(hosts, allocations=(), window=WINDOW) -> Snapshot:
    return Snapshot(tuple(hosts), Occupancy.of_allocations(window, allocations))


def counts_of(placement, hosts):
    return [
        [sum(share.count for share in assignments if share.resource_id == host.id) for host in hosts]
        for assignments in placement.assignments
    ]


def test_each_class_counts_for_itself():
    hosts = [a_sized_host(1, 8, 4)]
    assert len(place([ask(4, amounts(1, 1))], a_snapshot(hosts)).assignments[0]) == 1
    with pytest.raises(NotEnoughResources, match="4 instances fit"):
        place([ask(5, amounts(1, 1))], a_snapshot(hosts))


def test_what_is_in_use_stays_and_more_comes_beside_it():
    hosts = [a_sized_host(n, 4, 4) for n in (1, 2)]
    placement = place([ask(5, amounts(1, 1), kept={2: 3})], a_snapshot(hosts))
    assert counts_of(placement, hosts)[0][1] >= 3
    assert sum(counts_of(placement, hosts)[0]) == 5


def test_what_is_in_use_and_promised_to_others_is_named():
    hosts = [a_sized_host(1, 4, 4), a_sized_host(2, 4, 4)]
    with pytest.raises(NotEnoughResources, match="node-1 is in use"):
        place([ask(2, amounts(1, 1), kept={1: 2})], a_snapshot(hosts, [promised(1, WINDOW, amounts(3, 1))]))


def test_what_several_demands_keep_on_a_host_counts_together():
    hosts = [a_sized_host(1, 4, 4)]
    kept = [ask(1, amounts(2, 1), kept={1: 1}), ask(1, amounts(2, 1), kept={1: 1})]
    assert counts_of(place(kept, a_snapshot(hosts)), hosts) == [[1], [1]]
    with pytest.raises(NotEnoughResources, match="node-1 is in use"):
        place(kept, a_snapshot(hosts, [promised(1, WINDOW, amounts(1, 1))]))


def test_what_stays_although_it_no_longer_fits_does_not_hide_that_others_fit():
    hosts = [a_sized_host(1, 1, 1), a_sized_host(2, 4, 4), a_sized_host(3, 2, 2)]
    stays = ask(1, amounts(2, 2), kept={1: 1}, entitled=True)
    # Greedily the small ones would take the host that the large one needs.
    demands = [stays, ask(2, amounts(1, 1)), ask(1, amounts(4, 4))]
    assert counts_of(place(demands, a_snapshot(hosts)), hosts) == [[1, 0, 0], [0, 0, 2], [0, 1, 0]]


def test_thousands_of_servers_more_than_the_minimum_cost_one_pass():
    hosts = [a_sized_host(n, 8, 8) for n in range(1, 2001)]
    demands = [ask(1, amounts(1, 1), most=9000), ask(1, amounts(2, 1), most=500)]
    placement = place(demands, a_snapshot(hosts))
    assert [sum(share.count for share in each) for each in placement.assignments] == [9000, 500]


def test_shared_hosts_are_filled_before_others_are_begun():
    hosts = [a_sized_host(1, 4, 4), a_sized_host(2, 16, 16)]
    placement = place([ask(2, amounts(1, 1))], a_snapshot(hosts, [promised(2, WINDOW, amounts(1, 1))]))
    assert placement.resource_ids == {2}
    spread = place([ask(2, amounts(1, 1))], a_snapshot(hosts), strategy=Strategy.SPREAD)
    assert spread.resource_ids == {2}


@pytest.mark.sample(1)
@pytest.mark.parametrize("affinity", Affinity)
def test_thousands_of_hosts_and_of_units_are_placed(affinity):
    hosts = [a_sized_host(n, 8, 8) for n in range(1, 3001)]
    full = [promised(n, WINDOW, amounts(8, 1)) for n in range(1, 2001)]
    count = 8 if affinity is Affinity.TOGETHER else 900
    demand = ask(count, amounts(1, 1), affinity=affinity)
    placement = place([demand, ask(50, None)], a_snapshot(hosts, full))
    assert [sum(share.count for share in assignments) for assignments in placement.assignments] == [count, 50]
    with pytest.raises(NotEnoughResources):
        place([replace(demand, min_count=10**9, max_count=10**9)], a_snapshot(hosts, full))


def test_who_takes_anything_leaves_room_for_who_does_not():
    hosts = [a_sized_host(n, 4, 4) for n in range(1, 201)]
    demands = [ask(600, amounts(1, 1)), ask(4, amounts(1, 1), affinity=Affinity.TOGETHER), ask(40, None)]
    placement = place(demands, a_snapshot(hosts))
    assert [sum(share.count for share in assignments) for assignments in placement.assignments] == [600, 4, 40]


def test_whole_hosts_are_taken_where_no_server_of_the_lease_could_be():
    # Smallest first, the whole hosts would take all that have the property.
    hosts = [*(replace(a_host(n), capabilities={"gpu": "A100"}) for n in range(1, 13)), *map(a_host, range(13, 41))]
    server = ask(1, Amounts.of({"VCPU": 1}), requirement=Comparison("==", "gpu", "A100"))
    placement = place([ask(24, None), server], a_snapshot(hosts))
    whole, servers = ([share.resource_id for share in assignments] for assignments in placement.assignments)
    assert len(whole) == 24
    assert max(servers) <= 12


def test_whole_hosts_leave_as_many_as_the_servers_of_the_lease_need():
    plain = [a_sized_host(n, 16, 64) for n in range(4, 40)]
    wanted = [replace(a_sized_host(n, 16, 4), capabilities={"gpu": "H100"}) for n in range(1, 4)]
    fast = Comparison("==", "gpu", "H100")
    server = ask(1, amounts(16, 1), requirement=fast)
    for whole in (20, 38):
        placement = place([ask(whole, None), server], a_snapshot([*wanted, *plain]))
        assert [sum(share.count for share in shares) for shares in placement.assignments] == [whole, 1]
    with pytest.raises(NotEnoughResources, match="39 of them free in that time without the lease's other reservations"):
        place([ask(39, None), server], a_snapshot([*wanted, *plain]))
    apart = ask(2, amounts(1, 1), affinity=Affinity.APART, requirement=fast)
    together = ask(8, amounts(1, 0), affinity=Affinity.TOGETHER, requirement=fast)
    assert place([ask(36, None), server, apart, together], a_snapshot([*wanted, *plain]))


# Against brute force

sizes = st.builds(amounts, st.integers(1, 3), st.integers(1, 3))
limits = st.dictionaries(
    st.just("VCPU"), st.builds(UnitLimits, st.integers(1, 2), st.integers(2, 3), st.integers(1, 2))
)
traits = st.frozensets(st.just("FAST"))
needs = st.sampled_from(
    [TraitRequirements()] * 4
    + [TraitRequirements(frozenset({"FAST"})), TraitRequirements(forbidden=frozenset({"FAST"}))]
)
spans = st.tuples(st.integers(0, 11), st.integers(1, 5)).map(lambda t: (t[0], t[0] + t[1]))
# Strategies are made once, not in every case: Hypothesis finds out about each new one.
some_spans = st.lists(spans, max_size=3)
sizes_or_none = st.one_of(st.none(), sizes)
affinities = st.sampled_from(list(Affinity))


@st.composite
def cases(draw):
    plain = [
        a_sized_host(n, draw(st.integers(1, 5)), draw(st.integers(1, 5))) for n in range(1, draw(st.integers(1, 3)) + 1)
    ]
    hosts = [replace(host, limits=draw(limits), traits=draw(traits)) for host in plain]
    allocations = [
        promised(draw(st.integers(1, len(hosts))), hours(*span), draw(sizes_or_none)) for span in draw(some_spans)
    ]
    demands = []
    for _ in range(draw(st.integers(1, 3))):
        per_instance = draw(sizes_or_none)
        least = draw(st.integers(1, 3))
        kept = {}
        affinity = Affinity.ANY if per_instance is None else draw(affinities)
        if per_instance is not None and draw(st.integers(0, 3)) == 0:
            most = 1 if affinity is Affinity.APART else least
            kept = {draw(st.integers(1, len(hosts))): draw(st.integers(1, most))}
        most = least + draw(st.integers(0, 1))
        demands.append(ask(least, per_instance, most=most, affinity=affinity, kept=kept, traits=draw(needs)))
    return hosts, allocations, demands


def taken(host, allocations, hour):
    """What is taken of a host in an hour, and whether all of it is."""
    total: dict[str, int] = defaultdict(int)
    whole = False
    for a in allocations:
        if a.resource_id == host.id and a.window.overlaps(hours(hour, hour + 1)):
            whole = whole or a.per_instance is None
            for name, amount in a.amounts or ():
                total[name] += amount
    return total, whole


def fits(demands, hosts, allocations, counts) -> bool:
    """Whether counts[demand][host] units lie well in every hour and every class."""
    for index, host in enumerate(hosts):
        column = [row[index] for row in counts]
        wholes = sum(n for d, n in zip(demands, column, strict=True) if d.per_instance is None)
        shared = sum(n for d, n in zip(demands, column, strict=True) if d.per_instance)
        if wholes > 1 or (wholes and shared):
            return False
        # A class is held against its own fullest hour: that is what the calendar promises.
        peak: dict[str, int] = defaultdict(int)
        for hour in HOURS:
            total, whole = taken(host, allocations, hour)
            if (whole or total) and wholes:
                return False
            if whole and shared:
                return False
            for name, amount in total.items():
                peak[name] = max(peak[name], amount)
        for name in ("VCPU", "MEMORY_MB"):
            mine = sum(d.per_instance.get(name) * n for d, n in zip(demands, column, strict=True) if d.per_instance)
            if shared and mine + peak[name] > host.capacity.get(name):
                return False
    for demand, row in zip(demands, counts, strict=True):
        if demand.per_instance is None and max(row) > 1:
            return False
        if demand.affinity is Affinity.APART and max(row) > 1:
            return False
        if demand.affinity is Affinity.TOGETHER and sum(1 for n in row if n) > 1:
            return False
        if any(row[id_ - 1] < n for id_, n in demand.kept.items()):
            return False
        for host, n in zip(hosts, row, strict=True):
            if n > demand.kept.get(host.id, 0) and not demand.traits.met_by(host.traits):
                return False
            if (
                n
                and demand.per_instance
                and not all(host.limits[c].allows(m) for c, m in demand.per_instance if c in host.limits)
            ):
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
@given(cases(), st.sampled_from(list(Strategy)), st.integers(0, 5))
def test_hosts_and_units_are_placed_wherever_there_is_a_way(case, strategy, seed):
    hosts, allocations, demands = case
    ways = itertools.product(*(list(rows(demand.min_count, len(hosts))) for demand in demands))
    possible = any(fits(demands, hosts, allocations, counts) for counts in ways)
    try:
        placement = place(demands, a_snapshot(hosts, allocations), strategy=strategy, seed=seed)
    except NotEnoughResources:
        assert not possible
        return
    assert possible
    counts = counts_of(placement, hosts)
    assert fits(demands, hosts, allocations, counts)
    for demand, row in zip(demands, counts, strict=True):
        assert demand.min_count <= sum(row) <= demand.max_count


@settings(max_examples=CASES)
@given(
    st.lists(st.builds(a_sized_host, st.just(0), st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=3),
    st.lists(
        st.tuples(spans, st.one_of(st.none(), sizes), st.integers(1, 3), st.sampled_from(list(Affinity))), max_size=12
    ),
    st.sampled_from(list(Strategy)),
)
def test_no_sequence_of_bookings_promises_more_than_there_is_at_any_moment(raw, requests, strategy):
    hosts = [replace(host, id=n, name=f"node-{n}") for n, host in enumerate(raw, start=1)]
    booked: list[Allocation] = []
    for number, (span, per_instance, count, affinity) in enumerate(requests):
        demand = ask(count, per_instance, affinity=Affinity.ANY if per_instance is None else affinity)
        assume(demand.min_count >= 1)
        try:
            placement = place([demand], a_snapshot(hosts, booked, hours(*span)), strategy=strategy, seed=number)
        except NotEnoughResources:
            continue
        for share in placement.assignments[0]:
            booked.append(promised(share.resource_id, hours(*span), per_instance, share.count, lease=str(number)))
    for host in hosts:
        for hour in range(17):
            here = [a for a in booked if a.resource_id == host.id and a.window.overlaps(hours(hour, hour + 1))]
            assert len(here) == 1 or all(a.per_instance is not None for a in here)
            total, _ = taken(host, booked, hour)
            assert all(amount <= host.capacity.get(name) for name, amount in total.items())
