# SPDX-License-Identifier: Apache-2.0
"""Plans to empty hosts, against a brute-force oracle: nothing over capacity, nothing moved that may not move."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar.evacuation.plan import make_bundles, pack, plan_evacuation
from blazar.calendar.evacuation.values import (
    EvacuationCandidate,
    EvacuationPlan,
    EvacuationStrategy,
    HostedServer,
    NotEnough,
    Obstacle,
    ObstacleKind,
    Rules,
    TargetHost,
)
from blazar.model.base.amounts import Amounts

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
ALL = Rules(headroom=0, limit=timedelta(days=1))
"""Rules that leave nothing aside."""


def amounts(memory_gib: int) -> Amounts:
    return Amounts.of({"VCPU": 1, "MEMORY_MB": 1024 * memory_gib})


def server(name: str, memory_gib: int = 1, **more) -> HostedServer:
    return HostedServer(name, "physics", amounts(memory_gib), **more)


def host(number: int, *servers: HostedServer, **more) -> EvacuationCandidate:
    return EvacuationCandidate(number, f"h{number}", servers, **more)


def target(name: str, memory_gib: int = 8, **more) -> TargetHost:
    return TargetHost(name, Amounts.of({"VCPU": 8, "MEMORY_MB": 1024 * memory_gib}), **more)


def moves(found: EvacuationPlan | NotEnough) -> Mapping[str, str]:
    assert isinstance(found, EvacuationPlan), found
    return {move.server_id: move.target for move in found.moves}


def obstacles(found: EvacuationPlan | NotEnough) -> Sequence[tuple[str, str]]:
    assert isinstance(found, NotEnough), found
    return [(each.host, str(each.kind)) for each in found.obstacles]


def test_the_host_with_the_fewest_servers_is_emptied():
    found = plan_evacuation([host(1, server("a"), server("b")), host(2, server("c"))], [target("t")], ALL, needed=1)
    assert (found.resource_ids, moves(found)) == ((2,), {"c": "t"})


@pytest.mark.parametrize(
    ("strategy", "first"),
    [(EvacuationStrategy.FEWEST, 1), (EvacuationStrategy.SMALLEST, 2), (EvacuationStrategy.CHEAPEST, 3)],
)
def test_strategies_spare_servers_or_copies_or_owners(strategy, first):
    hosts = [
        host(1, server("large", 6, copied_gib=50)),
        host(2, server("a", copied_gib=1), server("b")),
        host(3, server("off", 4, live=False, copied_gib=4), server("off too", live=False)),
    ]
    assert plan_evacuation(hosts, [target("t")], replace(ALL, strategy=strategy), needed=1).resource_ids == (first,)


def test_an_empty_host_costs_nothing():
    found = plan_evacuation([host(1, server("a")), host(2)], [], ALL, needed=1)
    assert found == EvacuationPlan((2,), (), timedelta(0))


def test_a_host_with_a_server_that_may_not_move_is_no_candidate():
    hosts = [host(1, server("a", obstacle="it is locked")), host(2, server("b"), server("c"), server("d"))]
    assert plan_evacuation(hosts, [target("t")], ALL, needed=1).resource_ids == (2,)
    found = plan_evacuation(hosts, [target("t")], ALL, needed=2)
    assert found == NotEnough(2, 1, (Obstacle("h1", ObstacleKind.SERVER, "a", "it is locked"),))


def test_a_host_where_a_server_is_being_booted_is_no_candidate():
    assert obstacles(plan_evacuation([host(1, building=1)], [target("t")], ALL, needed=1)) == [("h1", "building")]


def test_room_for_each_is_not_room_for_all():
    crowded = host(1, server("a", 5), server("b", 5))
    assert obstacles(plan_evacuation([crowded], [target("t")], ALL, needed=1)) == [("h1", "room")]
    assert set(moves(plan_evacuation([crowded], [target("t"), target("u")], ALL, needed=1)).values()) == {"t", "u"}


def test_a_share_of_each_target_stays_free():
    one = host(1, server("a", 8))
    assert moves(plan_evacuation([one], [target("t")], ALL, needed=1)) == {"a": "t"}
    assert obstacles(plan_evacuation([one], [target("t")], replace(ALL, headroom=10), needed=1)) == [("h1", "room")]


def test_what_is_used_and_what_is_missing_on_a_target_counts():
    needs_gpu = HostedServer("a", "physics", Amounts.of({"VCPU": 1, "VGPU": 1}))
    assert obstacles(plan_evacuation([host(1, needs_gpu)], [target("t")], ALL, needed=1)) == [("h1", "room")]
    full = target("t", used=amounts(8))
    assert obstacles(plan_evacuation([host(1, server("a"))], [full], ALL, needed=1)) == [("h1", "room")]
    avx = server("a", traits=frozenset({"AVX"}))
    found = plan_evacuation([host(1, avx)], [target("t"), target("u", traits=frozenset({"AVX", "SSE"}))], ALL, needed=1)
    assert moves(found) == {"a": "u"}


def test_a_host_that_is_emptied_takes_no_server():
    hosts = [host(1, server("a")), host(2, server("b"))]
    targets = [target("h1"), target("h2"), target("t")]
    assert moves(plan_evacuation(hosts, targets, ALL, needed=2)) == {"a": "t", "b": "t"}
    assert moves(plan_evacuation(hosts, targets, ALL, needed=1)) == {"a": "h2"}


def test_servers_that_keep_apart_stay_apart():
    pair = host(1, server("a", apart="g"), server("b", apart="h"))
    targets = [target("t", groups=frozenset({"g"})), target("u")]
    assert moves(plan_evacuation([pair], targets, ALL, needed=1)) == {"a": "u", "b": "t"}
    two = [host(1, server("a", apart="g")), host(2, server("b", apart="g"))]
    assert set(moves(plan_evacuation(two, [target("t"), target("u")], ALL, needed=2)).values()) == {"t", "u"}


def test_servers_that_keep_together_move_together():
    group = host(1, server("a", 3, together="g"), server("b", 3, together="g"), server("c", 3))
    assert moves(plan_evacuation([group], [target("t"), target("u")], ALL, needed=1)) == {"a": "t", "b": "t", "c": "u"}
    assert obstacles(plan_evacuation([group], [target("t", 5), target("u", 5)], ALL, needed=1)) == [("h1", "room")]


def test_others_are_emptied_where_the_cheapest_takes_their_room():
    targets = [target("t", 4), target("u", 4)]
    hosts = [host(1, server("a", 3)), host(2, server("b", 4)), host(3, server("c", 4))]
    smallest = replace(ALL, strategy=EvacuationStrategy.SMALLEST)
    assert plan_evacuation(hosts, targets, smallest, needed=2).resource_ids == (1, 2)
    hosts = [host(1, server("a", 1), server("b", 1)), host(2, server("c", 4)), host(3, server("d", 4))]
    assert plan_evacuation(hosts, targets, smallest, needed=2).resource_ids == (1, 2)
    hosts = [host(1, server("a", 1), server("b", 4)), host(2, server("c", 4), server("c2", 4)), host(3, server("d", 4))]
    assert obstacles(plan_evacuation(hosts, targets, smallest, needed=2))[0] == ("h1", "room")


def test_what_takes_too_long_is_not_begun():
    one = host(1, server("a", 6, copied_gib=60))
    assert moves(plan_evacuation([one], [target("t")], Rules(), needed=1)) == {"a": "t"}
    assert obstacles(plan_evacuation([one], [target("t")], Rules(rate=10), needed=1)) == [("h1", "time")]


def test_the_time_is_that_of_the_longest_way():
    rules = replace(ALL, rate=1024, per_host=2, in_all=3)
    pair = host(1, server("a", 4), server("b", 2))
    assert plan_evacuation([pair], [target("t")], rules, needed=1).duration == timedelta(seconds=4)
    three = host(1, *(server(name, 2) for name in "abc"))
    assert plan_evacuation([three], [target("t")], rules, needed=1).duration == timedelta(seconds=3)
    every = [host(n, server(f"s{n}", 2)) for n in range(1, 7)]
    assert plan_evacuation(every, [target("t", 16)], rules, needed=6).duration == timedelta(seconds=4)


# Any hosts and targets.

SIZES = st.integers(1, 6)
GROUPS = st.sampled_from(["", "", "", "g", "h"])
SERVERS = st.builds(
    lambda size, together, apart, obstacle: server(
        "", size, together=together, apart="" if together else apart, obstacle=obstacle
    ),
    SIZES,
    st.sampled_from(["", "", "", "p"]),
    GROUPS,
    st.sampled_from(["", "", "", "", "", "it is locked"]),
)
TARGETS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.sets(st.sampled_from(["g", "h"]), max_size=1)),
    min_size=1,
    max_size=3,
)
RULES = st.builds(Rules, strategy=st.sampled_from(EvacuationStrategy), headroom=st.sampled_from([0, 20]))


@st.composite
def clouds(draw):
    numbers = itertools.count()
    hosts = []
    for id_ in range(1, draw(st.integers(1, 3)) + 1):
        servers = [replace(each, id=f"s{next(numbers)}") for each in draw(st.lists(SERVERS, max_size=3))]
        # Each host has a group of its own whose servers keep together.
        servers = [replace(each, together=each.together and f"{each.together}{id_}") for each in servers]
        hosts.append(host(id_, *servers))
    targets = [
        target(f"t{number}", size, used=amounts(min(size, used)), groups=frozenset(groups))
        for number, (size, used, groups) in enumerate(draw(TARGETS))
    ]
    return hosts, [*targets, target("h1", 4)]


def is_in_order(hosts, targets, places: Mapping[str, str], emptied: set[str], headroom: int) -> bool:
    """Tell whether every server of the emptied hosts has a place, and nothing is in the way of anything."""
    servers = [each for one in hosts if one.name in emptied for each in one.occupants]
    if set(places) != {each.id for each in servers} or set(places.values()) & emptied:
        return False
    for one in targets:
        here = [each for each in servers if places[each.id] == one.name]
        for name in ("VCPU", "MEMORY_MB"):
            taken = one.used.get(name) + sum(each.amounts.get(name) for each in here)
            if here and taken > one.capacity.get(name) * (100 - headroom) // 100:
                return False
        apart = [each.apart for each in here if each.apart]
        if len(apart) != len(set(apart)) or set(apart) & one.groups:
            return False
    return all(
        places[one.id] == places[other.id]
        for one, other in itertools.combinations(servers, 2)
        if one.together and one.together == other.together
    )


@settings(max_examples=CASES)
@given(clouds(), RULES, st.integers(1, 3))
def test_a_plan_is_in_order_and_moves_nothing_that_may_not_move(cloud, rules, needed):
    hosts, targets = cloud
    found = plan_evacuation(hosts, targets, rules, needed=needed)
    if isinstance(found, NotEnough):
        assert found.found < found.needed
        return
    emptied = {one.name for one in hosts if one.resource_id in found.resource_ids}
    assert len(emptied) == len(found.resource_ids) == needed
    assert not any(each.obstacle for one in hosts if one.name in emptied for each in one.occupants)
    assert all(move.source in emptied for move in found.moves)
    assert is_in_order(hosts, targets, moves(found), emptied, rules.headroom)


@settings(max_examples=CASES)
@given(clouds(), RULES)
def test_one_host_is_emptied_if_that_is_possible_at_all(cloud, rules):
    hosts, targets = cloud
    free = [one for one in hosts if not any(each.obstacle for each in one.occupants)]
    names = [one.name for one in targets]
    possible = any(
        is_in_order(hosts, targets, {s.id: way for s, way in zip(one.occupants, ways, strict=True)}, {one.name}, room)
        for room in [rules.headroom]
        for one in free
        for ways in itertools.product(names, repeat=len(one.occupants))
    )
    assert isinstance(plan_evacuation(hosts, targets, rules, needed=1), EvacuationPlan) is possible


@pytest.mark.slow
def test_packing_many_servers_ends_in_time():
    full = host(1, *(server(f"s{n}", 3) for n in range(40)))
    assert pack(make_bundles(full), [target(f"t{n}") for n in range(19)], headroom=0, besides=frozenset()) is None
    places = pack(make_bundles(full), [target(f"t{n}") for n in range(20)], headroom=0, besides=frozenset())
    assert places is not None
    assert len(places) == 40
