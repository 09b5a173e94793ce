# SPDX-License-Identifier: Apache-2.0
"""Whose event is worked on next."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blazar.manager.events.fairness import FairTurns
from blazar.model.leases.states import EventType
from blazar.store.work.events import DueEvent
from tests.builders import NOON


def due(project: str, number: int = 0, *, empty: bool = False, begun: bool = False) -> DueEvent:
    return DueEvent(f"lease-{project}-{number}", f"{project}-{number}", EventType.START, NOON, project, empty, begun)


def all_taken(turns: FairTurns) -> list[DueEvent]:
    return list(iter(turns.take, None))


def test_projects_take_turns_and_each_its_events_in_order():
    turns = FairTurns(4)
    turns.offer([*[due("many", number) for number in range(9)], due("one"), due("other")])
    assert [event.event_id for event in all_taken(turns)] == ["many-0", "one-0", "other-0", "many-1"]


def test_a_project_leaves_a_thread_for_the_next_one_however_many_events_it_has():
    turns = FairTurns(8)
    turns.offer([due("many", number) for number in range(99)])
    assert len(all_taken(turns)) == 6
    turns.offer([*[due("many", number) for number in range(9, 99)], *[due("more", number) for number in range(99)]])
    assert [event.project_id for event in all_taken(turns)] == ["more", "more"]


def test_a_single_thread_serves_everybody():
    turns = FairTurns(1)
    turns.offer([due("many", 1), due("many", 2), due("one")])
    first = turns.take()
    assert turns.take() is None
    assert turns.waits
    turns.done(first)
    assert turns.take().project_id == "many"


def test_leases_without_reservations_wait_until_nothing_else_does():
    turns = FairTurns(4)
    turns.offer([due("many", 1, empty=True), due("many", 2), due("one", 3, empty=True)])
    assert [event.event_id for event in all_taken(turns)] == ["many-2", "one-3", "many-1"]


@pytest.mark.parametrize("shuffled", [False, True])
def test_what_was_begun_and_what_is_new_alternate_within_a_project(shuffled):
    turns = FairTurns(99)
    new, begun = [due("a", number) for number in range(5)], [due("a", number, begun=True) for number in range(5, 8)]
    turns.offer([*new, *begun, due("b")], shuffled=shuffled)
    of_a = [event for event in all_taken(turns) if event.project_id == "a"]
    assert [event.begun for event in of_a] == [True, False, True, False, True, False, False, False]
    if not shuffled:
        assert [event for event in of_a if event.begun] == begun
        assert [event for event in of_a if not event.begun] == new


def test_what_was_begun_and_what_is_new_alternate_even_if_one_thread_is_free_at_a_time():
    turns = FairTurns(1)
    seen = []
    for number in range(6):
        # Each time as many are due as before.
        turns.offer([*[due("a", number, begun=begun) for begun in (False, True) for _ in range(9)], due("b")])
        event = turns.take()
        seen.append(event.begun)
        turns.done(event)
    assert seen == [True, False] * 3


def test_what_is_offered_later_takes_the_place_of_what_waits():
    turns = FairTurns(4)
    turns.offer([due("a")])
    turns.offer([due("b")], shuffled=True)
    assert [event.event_id for event in all_taken(turns)] == ["b-0"]
    assert not turns.waits
    assert set(turns.running) == {"b-0"}


def test_who_comes_next_is_told_of_every_project():
    turns = FairTurns(1)
    turns.offer([*[due("many", number) for number in range(9)], due("one"), due("empty", empty=True)])
    assert [event.event_id for event in turns.coming(6)] == ["many-0", "many-1", "one-0", "empty-0"]
    assert len(turns.coming(99)) == 11
    turns.offer([])
    assert turns.coming(6) == []


@given(st.integers(1, 9), st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans())), st.data())
def test_every_event_has_its_turn_and_no_more_have_one_than_there_are_threads(threads, wanted, data):
    turns = FairTurns(threads)
    waiting = [due(project, number, empty=e, begun=begun) for number, (project, e, begun) in enumerate(wanted)]
    at_hand, seen = [], []
    while waiting or at_hand:
        turns.offer(waiting, shuffled=data.draw(st.booleans()))
        taken = all_taken(turns)
        assert taken or at_hand
        seen += taken
        at_hand += taken
        waiting = [event for event in waiting if event not in taken]
        assert len(at_hand) <= threads
        assert set(turns.running) == {event.event_id for event in at_hand}
        turns.done(at_hand.pop(data.draw(st.integers(0, len(at_hand) - 1))))
    assert len(set(seen)) == len(seen) == len(wanted)


def test_what_is_put_back_has_its_turn_before_the_rest_of_its_project():
    turns = FairTurns(4)
    turns.offer([due("many", number) for number in range(6)])
    first, *rest = all_taken(turns)
    turns.put_back(rest)
    assert set(turns.running) == {first.event_id}
    assert [event.event_id for event in all_taken(turns)] == ["many-1", "many-2"]
