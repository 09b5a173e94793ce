# SPDX-License-Identifier: Apache-2.0
"""Plans of maintenance windows against a brute-force oracle: nothing is promised twice, and no place is missed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence

import hypothesis.strategies as st
from hypothesis import given, settings

from blazar.calendar.maintenance import MovePlan, PieceMove, PromisedPiece, plan_moves
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.demand import Affinity
from tests.builders import a_host

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
HOSTS = {id_: a_host(id_) for id_ in range(1, 7)}
WINDOW = 100, 200


def a_piece(name: str, host: int, start: int = 110, end: int = 190, *, movable: bool = True, **more) -> PromisedPiece:
    return PromisedPiece(f"l-{name}", f"r-{name}", host, start, end, movable=movable, **more)


def anywhere(piece: PromisedPiece) -> Sequence:
    return list(HOSTS.values())


def only(**ids: Iterable[int]):
    return lambda piece: [HOSTS[id_] for id_ in ids.get(piece.lease_id.removeprefix("l-"), HOSTS)]


def planned(pieces, closed_hosts=(1,), candidates=anywhere, others=None, **more) -> MovePlan:
    return plan_moves(pieces, candidates, others or {}, WINDOW, frozenset(closed_hosts), **more)


def where(found: MovePlan) -> dict[str, tuple]:
    return {move.piece.lease_id.removeprefix("l-"): move.targets for move in found.moves}


def test_what_is_on_the_hosts_in_the_window_moves_and_nothing_else():
    pieces = [a_piece("a", 1), a_piece("before", 1, 50, 100), a_piece("after", 1, 200, 300), a_piece("b", 2)]
    assert where(planned(pieces)) == {"a": ((3, 1),)}


def test_the_cleaning_before_a_window_counts():
    assert where(planned([a_piece("a", 1, 50, 101)])) == {"a": ((2, 1),)}


def test_leases_that_have_started_stay_and_so_do_all_if_the_operator_wants():
    started, waits = a_piece("a", 1, 50, 120, movable=False), a_piece("b", 1, 120, 190)
    found = planned([started, waits])
    assert (where(found), found.fixed) == ({"b": ((2, 1),)}, (started,))
    assert planned([started, waits], move=False) == MovePlan(fixed=(started, waits))


def test_no_lease_moves_to_a_host_in_maintenance():
    found = planned([a_piece("a", 1), a_piece("b", 2)], (1, 2), others={3: [(0, 115)], 4: [(185, 400)], 5: [(0, 110)]})
    assert where(found) == {"a": ((5, 1),), "b": ((6, 1),)}


def test_the_one_with_fewer_places_goes_first_and_others_move_on_for_it():
    found = planned([a_piece("a", 1), a_piece("b", 2)], (1, 2), only(a=(3, 4), b=(3,)))
    assert where(found) == {"a": ((4, 1),), "b": ((3, 1),)}


def test_two_leases_at_different_times_share_a_host():
    pieces = [a_piece("a", 1, 110, 140), a_piece("b", 1, 140, 190)]
    assert where(planned(pieces, candidates=only(a=(2,), b=(2,)))) == {"a": ((2, 1),), "b": ((2, 1),)}


def test_another_lease_makes_room_first_if_nothing_else_helps():
    pieces = [a_piece("a", 1), a_piece("b", 2)]
    found = planned(pieces, candidates=only(a=(2,), b=(2, 3)))
    assert found.moves == (PieceMove(pieces[1], ((3, 1),), makes_room=True), PieceMove(pieces[0], ((2, 1),)))
    free = planned(pieces, candidates=only(a=(2, 4), b=(2, 3)))
    assert where(free) == {"a": ((4, 1),)}
    started = [a_piece("a", 1), a_piece("b", 2, movable=False)]
    assert planned(started, candidates=only(a=(2,), b=(2, 3))).left == (started[0],)
    kept = [a_piece("a", 1), a_piece("b", 2, stays_for_others=True)]
    assert planned(kept, candidates=only(a=(2,), b=(2, 3))).left == (kept[0],)
    # Its own host in maintenance it leaves all the same.
    assert where(planned(kept, (1, 2), only(a=(3,), b=(4,)))) == {"a": ((3, 1),), "b": ((4, 1),)}


def test_instances_are_packed_beside_others_and_kept_together_or_apart():
    four = Amounts.of({"VCPU": 4})
    beside = a_piece("beside", 2, per_instance=four, movable=False)
    shared = a_piece("a", 1, count=3, per_instance=four)
    assert where(planned([shared, beside])) == {"a": ((2, 1), (3, 2))}
    together = a_piece("a", 1, count=2, per_instance=four, affinity=Affinity.TOGETHER)
    assert where(planned([together, beside])) == {"a": ((3, 2),)}
    apart = [a_piece("a", id_, per_instance=four, affinity=Affinity.APART) for id_ in (1, 2)]
    assert where(planned(apart)) == {"a": ((3, 1),)}
    assert planned([a_piece("a", 1, count=3, per_instance=four, affinity=Affinity.TOGETHER)]).moves == ()


@st.composite
def a_situation(draw, *, same_time: bool = False):
    """Draw pieces that do not overlap on a host, where each may go, and hosts for maintenance."""
    pieces, allowed = [], {}
    kinds = draw(st.lists(st.sets(st.integers(1, 6), min_size=1), min_size=1, max_size=4))
    for number in range(draw(st.integers(1, 10))):
        start = 100 if same_time else draw(st.integers(9, 20)) * 10
        end = 200 if same_time else start + draw(st.integers(1, 8)) * 10
        ids, movable = draw(st.sampled_from(kinds)), draw(st.sampled_from((True, True, False)))
        group = str(sorted(ids))
        piece = a_piece(str(number), draw(st.integers(1, 6)), start, end, movable=movable, group=group)
        if all(p.resource_id != piece.resource_id or not p.meets((start, end)) for p in pieces):
            pieces.append(piece)
            allowed[piece.lease_id] = ids
    hosts = draw(st.sets(st.integers(1, 6), min_size=1, max_size=3))
    return pieces, lambda piece: [HOSTS[id_] for id_ in sorted(allowed[piece.lease_id])], frozenset(hosts)


def settled(pieces: Sequence[PromisedPiece], found: MovePlan) -> dict[str, int]:
    """Return where each piece is after the moves, made one after the other; each must be possible in its turn."""
    place = {piece.lease_id: piece.resource_id for piece in pieces}
    by_id = {piece.lease_id: piece for piece in pieces}
    for move in found.moves:
        ((target, _),) = move.targets
        span = move.piece.start, move.piece.end
        for other, host in place.items():
            assert host != target or other == move.piece.lease_id or not by_id[other].meets(span), (found, other)
        place[move.piece.lease_id] = target
    return place


@given(a_situation())
@settings(max_examples=CASES, deadline=None)
def test_no_plan_promises_anything_twice_or_moves_more_than_it_must(situation):
    pieces, candidates, hosts = situation
    found = plan_moves(pieces, candidates, {}, WINDOW, hosts)
    settled(pieces, found)
    affected = {p.lease_id for p in pieces if p.resource_id in hosts and p.meets(WINDOW)}
    moved = [move.piece.lease_id for move in found.moves]
    assert len(moved) == len(set(moved))
    for move in found.moves:
        ((target, _),) = move.targets
        assert move.piece.movable
        assert HOSTS[target] in candidates(move.piece)
        assert not (target in hosts and move.piece.meets(WINDOW))
        assert move.makes_room == (move.piece.lease_id not in affected)
    assert sum(move.makes_room for move in found.moves) <= sum(not move.makes_room for move in found.moves)
    stays = {p.lease_id for p in (*found.fixed, *found.left)}
    assert stays | {id_ for id_ in moved if id_ in affected} == affected
    assert all(p.movable for p in found.left)
    assert plan_moves(pieces, candidates, {}, WINDOW, hosts) == found


@given(a_situation())
@settings(max_examples=CASES, deadline=None)
def test_what_is_left_has_no_free_place_and_none_that_one_other_lease_could_make(situation):
    pieces, candidates, hosts = situation
    found = plan_moves(pieces, candidates, {}, WINDOW, hosts)
    place = settled(pieces, found)
    by_id = {p.lease_id: p for p in pieces}
    touched = {move.piece.lease_id for move in found.moves}

    def met(piece: PromisedPiece, host: int) -> list[str]:
        span = piece.start, piece.end
        return [id_ for id_, at in place.items() if at == host and id_ != piece.lease_id and by_id[id_].meets(span)]

    def open_to(piece: PromisedPiece) -> list[int]:
        return [r.id for r in candidates(piece) if not (r.id in hosts and piece.meets(WINDOW))]

    for piece in found.left:
        for host in open_to(piece):
            others = met(piece, host)
            assert others, "a free place was missed"
            if len(others) == 1 and by_id[others[0]].movable and others[0] not in touched:
                other = by_id[others[0]]
                elsewhere = [h for h in open_to(other) if h != host and h not in hosts and not met(other, h)]
                assert not elsewhere, "nobody made room"


@given(a_situation(same_time=True))
@settings(max_examples=CASES, deadline=None)
def test_at_one_time_as_many_find_a_place_as_can(situation):
    """The oracle: all ways to give the affected pieces different free hosts."""
    pieces, candidates, hosts = situation
    found = plan_moves(pieces, candidates, {}, WINDOW, hosts)
    moving = [p for p in pieces if p.resource_id in hosts and p.movable]
    taken = {p.resource_id for p in pieces if p not in moving}
    free = [{None, *(r.id for r in candidates(p) if r.id not in hosts and r.id not in taken)} for p in moving]
    most = max(
        sum(h is not None for h in way)
        for way in itertools.product(*free)
        if len({h for h in way if h is not None}) == sum(h is not None for h in way)
    )
    placed = len(moving) - len(found.left)
    room = sum(move.makes_room for move in found.moves)
    # Others make room only for what finds no place without them.
    assert placed - room == most or (placed >= most and room <= placed - most)
