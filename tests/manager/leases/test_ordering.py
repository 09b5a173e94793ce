# SPDX-License-Identifier: Apache-2.0
"""The order in which reservations of a lease start and end, from what they refer to and from their ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blazar.manager.leases.ordering import cycle_in, sort_by_waits, waits_at_end
from blazar.resources.contract.values import Rank

NAMES = "abcdefg"


@st.composite
def references(draw, *, cycles):
    """What each of a few reservations refers to; without cycles, only to those of a hidden order before it."""
    names = draw(st.permutations(NAMES[: draw(st.integers(0, len(NAMES)))]))
    allowed = {name: names if cycles else names[:place] for place, name in enumerate(names)}
    shown = draw(st.permutations(names))
    return {
        name: draw(st.frozensets(st.sampled_from(allowed[name]))) if allowed[name] else frozenset() for name in shown
    }


@given(references(cycles=False))
def test_each_comes_after_all_that_it_waits_for(waits):
    order = sort_by_waits(waits)
    assert sorted(order) == sorted(waits)
    assert all(order.index(other) < order.index(id_) for id_, others in waits.items() for other in others)


@given(st.permutations(NAMES))
def test_what_waits_for_nothing_keeps_its_order(names):
    assert sort_by_waits(dict.fromkeys(names, frozenset())) == tuple(names)
    assert sort_by_waits(dict.fromkeys(names, frozenset({"elsewhere"}))) == tuple(names)


@given(references(cycles=True))
def test_a_cycle_is_found_where_there_is_one_and_nothing_is_lost_by_it(waits):
    cycle, order = cycle_in(waits), sort_by_waits(waits)
    assert sorted(order) == sorted(waits)
    steps = zip(cycle, (*cycle[1:], *cycle[:1]), strict=True)
    assert all(other in waits[id_] for id_, other in steps)
    sorted_out = all(order.index(other) < order.index(id_) for id_, others in waits.items() for other in others)
    assert bool(cycle) is not sorted_out


@given(references(cycles=False), st.data())
def test_every_reservation_can_end_and_no_sooner_than_what_refers_to_it(refers, data):
    ranks = {id_: data.draw(st.sampled_from(Rank)) for id_ in refers}
    waits = waits_at_end(refers, ranks)
    assert not cycle_in(waits)
    assert all(id_ in waits[other] for id_, others in refers.items() for other in others)


@given(references(cycles=False), st.data())
def test_no_reservation_waits_for_one_of_its_own_or_a_higher_rank_but_by_references(refers, data):
    ranks = {id_: data.draw(st.sampled_from(Rank)) for id_ in refers}
    waits = waits_at_end(refers, ranks)
    for id_, others in waits.items():
        for other in others:
            by_rank = ranks[other] < ranks[id_]
            # What refers to something of a low rank has to go before it, and so before all of higher ranks.
            drawn = any(ranks[each] < ranks[id_] for each in reached(other, refers))
            assert by_rank or drawn or id_ in refers[other]


@given(st.permutations([*Rank, *Rank]))
def test_without_references_ranks_alone_decide(ranks):
    by_name = dict(zip("abcdefgh", ranks, strict=True))
    waits = waits_at_end(dict.fromkeys(by_name, frozenset()), by_name)
    assert waits == {id_: {o for o, theirs in by_name.items() if theirs < rank} for id_, rank in by_name.items()}


def test_a_volume_that_is_attached_to_a_server_ends_before_it_and_other_volumes_after_it():
    refers = {"server": frozenset(), "attached": frozenset({"server"}), "volume": frozenset()}
    ranks = {"server": Rank.COMPUTE, "attached": Rank.ATTACHED, "volume": Rank.ATTACHED}
    assert waits_at_end(refers, ranks) == {
        "server": {"attached"},
        "attached": frozenset(),
        "volume": {"server", "attached"},
    }


def reached(id_, refers):
    found, new = set(), {id_}
    while new:
        found |= new
        new = {other for each in new for other in refers[each]} - found
    return found
