# SPDX-License-Identifier: Apache-2.0
"""The time that each factor has of a span of the week is what a walk through its minutes finds."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.week_hours import DAY, WEEK
from blazar.model.billing.hours import FactorWeek, HoursFactor, split_by_hours
from tests.cases import cases

QUARTER = 900
quarters = st.integers(0, DAY // QUARTER - 1).map(lambda number: number * QUARTER)
bands = st.builds(
    HoursFactor,
    st.frozensets(st.integers(0, 6), min_size=1),
    quarters,
    quarters,
    st.sampled_from([Fraction(1), Fraction(5, 4), Fraction(4, 5), Fraction(2)]),
)


@settings(max_examples=cases(2000))
@given(st.lists(bands, max_size=4), st.integers(0, 3 * WEEK // QUARTER), st.integers(1, 3 * WEEK // QUARTER))
def test_a_span_has_the_time_of_each_factor_that_its_quarters_have(hours, start, length):
    start, end = start * QUARTER, (start + length) * QUARTER
    walked: dict[Fraction, list[int]] = {}
    for quarter in range(start, end, QUARTER):
        factor = Fraction(1)
        for band in hours:
            factor *= band.factor if band.holds_at(quarter % WEEK) else 1
        walked.setdefault(factor, []).append(quarter)
    found = {factor: times for factor, *times in FactorWeek.of(hours).split(start, end)}
    assert found == {
        factor: [QUARTER * len(quarters), quarters[0], quarters[-1] + QUARTER] for factor, quarters in walked.items()
    }


@settings(max_examples=cases(500))
@given(st.lists(bands, max_size=3), st.integers(0, 10**9), st.integers(1, 10**6), st.integers(1, 10**6))
def test_two_spans_have_together_what_the_one_of_both_has(hours, start, first, second):
    week, zone = FactorWeek.of(hours), "Australia/Lord_Howe"

    def seconds(begin: int, end: int) -> dict[Fraction, int]:
        found: dict[Fraction, int] = {}
        for factor, time, earliest, latest in split_by_hours(week, zone, begin, end):
            assert begin <= earliest < latest <= end
            found[factor] = found.get(factor, 0) + time
        return found

    middle, end = start + first, start + first + second
    before, after, both = seconds(start, middle), seconds(middle, end), seconds(start, end)
    assert {factor: before.get(factor, 0) + after.get(factor, 0) for factor in before | after} == both
    assert sum(both.values()) == end - start
