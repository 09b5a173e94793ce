# SPDX-License-Identifier: Apache-2.0
"""When a request will probably start, as some leases end early."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from blazar.calendar.queue.usage import UsedShare, expected_start, foresee_part
from blazar.calendar.queue.values import HOUR

ON_TIME = UsedShare(0.1, 0, 10 * HOUR), 10 * HOUR
EARLY = UsedShare(0.1, 0, 10 * HOUR), 5 * HOUR


def test_a_part_of_what_becomes_free_does_so_by_early_ends():
    assert foresee_part([*[ON_TIME] * 18, *[EARLY] * 2]) == 0.9


def test_large_leases_count_more():
    large = UsedShare(0.2, 0, 10 * HOUR), 5 * HOUR
    assert foresee_part([*[ON_TIME] * 27, large]) == 0.93


def test_no_start_is_told_more_than_a_tenth_of_the_wait_earlier():
    assert foresee_part([*[ON_TIME] * 10, *[EARLY] * 10]) == 0.9


def test_an_end_a_little_early_is_an_ordinary_one():
    assert foresee_part([*[ON_TIME] * 19, (ON_TIME[0], 9 * HOUR)]) == 1
    assert foresee_part([*[ON_TIME] * 19, (ON_TIME[0], 9 * HOUR - 1)]) == 0.95


def test_from_a_few_ends_nothing_is_concluded():
    assert foresee_part([EARLY] * 19) == 1
    assert foresee_part([EARLY] * 20) == 0.9
    assert foresee_part([]) == 1


def test_as_much_ends_in_nine_hours_as_is_booked_to_end_in_ten():
    assert expected_start(HOUR, 11 * HOUR, 0.9) == 10 * HOUR
    assert expected_start(HOUR, 11 * HOUR, 1.0) == 11 * HOUR


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1))
def test_it_is_expected_between_its_wish_and_the_start_if_all_end_as_booked(wish, latest, part):
    found = expected_start(wish, latest, part)
    assert min(wish, latest) <= found <= latest
    assert abs(found - (wish + (latest - wish) * part)) <= 30 or latest < wish or found == wish
