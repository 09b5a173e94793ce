# SPDX-License-Identifier: Apache-2.0
"""Capacity over time, against an oracle that counts minute by minute."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.calendar.blocks import Use
from blazar.calendar.capacity import Steps, Supply, compute_series, join_series
from blazar.calendar.timeline import epoch
from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from tests.builders import NOON

CASES = max(150, int(os.environ.get("BLAZAR_CASES", "150")) // 10)
MINUTE = timedelta(minutes=1)
SIZES = (None, Amounts.of({"VCPU": 1}), Amounts.of({"VCPU": 3}), Amounts.of({"MEMORY_MB": 512}))
CAPACITY = 4


def at(minute):
    return NOON + minute * MINUTE


@dataclass(frozen=True)
class Resource:
    """What is counted of a resource, and when it is out of use."""

    id: int
    group: tuple[str | None, ...]
    amount: int
    out: Sequence[tuple[datetime, datetime]] = ()


def series(resources, uses, window, step, *, keys, measure):
    """The series of resources; with a second border in the range, what is joined there."""
    out = {one.id: [(epoch(start), epoch(end)) for start, end in one.out] for one in resources}
    counted = {one.id: (one.group, one.amount) for one in resources}
    supply = Supply.of_uses(counted, out, uses, measure, by_project="project_id" in keys)
    steps = Steps(epoch(window.start), epoch(window.end), int(step.total_seconds()))
    found = compute_series(supply, steps, keys)
    if "project_id" not in keys:
        for minute in range(-3, 30):
            before, after = steps.split(epoch(at(minute)))
            parts = [compute_series(supply, part, keys) for part in (before, after) if part is not None]
            assert found == (join_series(*parts) if len(parts) == 2 else parts[0])
    return found


spans = st.tuples(st.integers(-3, 22), st.integers(1, 9)).map(lambda pair: (at(pair[0]), at(sum(pair))))


@st.composite
def questions(draw):
    measure = draw(st.sampled_from([None, "VCPU"]))
    supplies = [
        Resource(
            number,
            (draw(st.sampled_from(["A100", None])),),
            1 if measure is None else CAPACITY,
            tuple(draw(st.lists(spans, max_size=2))),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    uses = {
        supply.id: [
            Use(
                supply.id,
                start,
                end,
                end + draw(st.integers(0, 2)) * MINUTE,
                draw(st.sampled_from(SIZES)),
                project_id=draw(st.sampled_from("pq")),
            )
            for start, end in draw(st.lists(spans, max_size=4))
        ]
        for supply in supplies
    }
    start = draw(st.integers(-2, 10))
    window = Window(at(start), at(start + draw(st.integers(1, 18))))
    return measure, supplies, uses, window, draw(st.integers(1, 7)) * MINUTE


def taken(uses, supply, measure, minute):
    """How much of a resource is promised at a minute, at most all of it."""
    then = [use.amounts for use in uses if use.start <= minute < use.clean_at]
    if None in then or (then and measure is None):
        return supply.amount
    return min(supply.amount, sum(amounts.get(measure) for amounts in then))


def state(supplies, uses, measure, minute):
    """What is free, promised and out of use at a minute."""
    promised = [taken(uses[supply.id], supply, measure, minute) for supply in supplies]
    out = sum(
        supply.amount - used
        for supply, used in zip(supplies, promised, strict=True)
        if any(start <= minute < end for start, end in supply.out)
    )
    total = sum(supply.amount for supply in supplies)
    return total - sum(promised) - out, sum(promised), out


def promised_of(supplies, uses, measure, minute):
    """How much of all resources is promised at a minute."""
    return sum(taken(uses[supply.id], supply, measure, minute) for supply in supplies)


def worst(window, step, states):
    """The first minute of each step at which the fewest are free."""
    found = []
    start = window.start
    while start < window.end:
        end = min(start + step, window.end)
        minutes = [start + number * MINUTE for number in range(int((end - start) / MINUTE))]
        found.append(min(minutes, key=lambda minute: states(minute)[0]))
        start = end
    return found


@settings(max_examples=CASES)
@given(questions())
def test_a_point_is_the_first_instant_of_its_step_at_which_the_fewest_are_free(question):
    measure, supplies, uses, window, step = question
    found = series(supplies, uses, window, step, keys=("gpu",), measure=measure)
    values = sorted({supply.group[0] for supply in supplies}, key=lambda value: (value is None, value))
    assert [one.group for one in found] == [{"gpu": value} for value in values]
    for one in found:
        mine = [supply for supply in supplies if supply.group == (one.group["gpu"],)]
        states = partial(state, mine, uses, measure)
        points = [states(minute) for minute in worst(window, step, states)]
        assert list(zip(one.free, one.promised, one.out_of_use, strict=True)) == points
        assert one.total == (sum(supply.amount for supply in mine),) * len(points)
        begin = one.at_start
        assert (begin.free, begin.promised, begin.out_of_use) == states(window.start)
        assert begin.total == one.total[0]


@settings(max_examples=CASES)
@given(questions())
def test_operators_see_to_which_projects_it_is_promised_at_the_same_instants(question):
    measure, supplies, uses, window, step = question
    supplies = [Resource(supply.id, (), supply.amount, supply.out) for supply in supplies]
    *projects, rest = series(supplies, uses, window, step, keys=("project_id",), measure=measure)
    instants = worst(window, step, lambda minute: state(supplies, uses, measure, minute))
    states = [state(supplies, uses, measure, minute) for minute in instants]
    assert rest.group == {"project_id": None}
    assert list(zip(rest.free, rest.out_of_use, strict=True)) == [(free, out) for free, _, out in states]
    assert set(rest.promised) == {0}
    begin = state(supplies, uses, measure, window.start)
    assert (rest.at_start.free, rest.at_start.out_of_use) == (begin[0], begin[2])
    for project in "pq":
        theirs = {id_: [use for use in some if use.project_id == project] for id_, some in uses.items()}
        promised = partial(promised_of, supplies, theirs, measure)
        expected = tuple(map(promised, instants))
        shown = [one for one in projects if one.group == {"project_id": project}]
        assert [one.promised for one in shown] == ([expected] if any(expected) else [])
        # Which may be more than at any of these instants, where more is out of use.
        assert all(one.at_start.promised == promised(window.start) for one in shown)
        assert all(one.total == one.promised for one in shown)


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_the_example_of_the_contract(steps):
    supplies = [Resource(number, ("A100",), 1, ((at(-9), at(999)),) if number < 3 else ()) for number in range(8)]
    uses = {number: [Use(number, at(-5), at(120 if number == 3 else 999), at(0))] for number in range(3, 7)}
    window = Window(at(0), at(180))
    (one,) = series(supplies, uses, window, window.duration / steps, keys=("gpu",), measure=None)
    if steps == 3:
        assert (one.total, one.free, one.promised, one.out_of_use) == ((8,) * 3, (1, 1, 2), (4, 4, 3), (3,) * 3)
    assert len(one.free) == steps
    assert one.free[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "comparison",
    [
        test_a_point_is_the_first_instant_of_its_step_at_which_the_fewest_are_free,
        test_operators_see_to_which_projects_it_is_promised_at_the_same_instants,
    ],
)
def test_a_thousand_cases(comparison):
    """With BLAZAR_CASES=10000, as .ci/nightly runs it, each comparison above tries a thousand."""
    comparison()
