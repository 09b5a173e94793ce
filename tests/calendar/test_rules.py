# SPDX-License-Identifier: Apache-2.0
"""Which windows rules allow: openings begin at the first minute that passes, and nowhere else."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.calendar.rules import (
    HoursFault,
    find_fault,
    find_last_end,
    follows_too_soon,
    list_allowed_starts,
    list_starts_apart,
)
from blazar.model.base.week_hours import DAY, WeekHours
from blazar.model.rules.open_time import OpenTime, Span
from blazar.model.rules.values import Gap, Hours, OpenAt
from tests.cases import cases

HOUR = 3600
BEFORE_CHANGES = [datetime(2030, 3, 29), datetime(2030, 10, 5), datetime(2030, 10, 26), datetime(2030, 9, 7)]
WEEKDAYS = frozenset(range(5))
DAYTIME = OpenTime("Europe/Berlin", (WeekHours(WEEKDAYS, 8 * HOUR, 20 * HOUR),), frozenset({date(2030, 4, 22)}))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def window(start: str, end: str) -> Span:
    return at(start), at(end)


class TestHours:
    # In the summer of 2030 it is 06:00 to 18:00 in UTC; the first of April is a Monday.
    @pytest.mark.parametrize(
        ("apply", "across", "of", "fault"),
        [
            (OpenAt.START, 0, window("2030-04-01T06:00", "2030-04-01T23:00"), None),
            (OpenAt.START, 0, window("2030-04-01T05:59", "2030-04-01T23:00"), HoursFault.START),
            (OpenAt.START, 0, window("2030-04-01T18:00", "2030-04-01T23:00"), HoursFault.START),
            (OpenAt.START_END, 0, window("2030-04-01T06:00", "2030-04-01T18:00"), None),
            (OpenAt.START_END, 0, window("2030-04-01T06:00", "2030-04-01T18:01"), HoursFault.END),
            (OpenAt.START_END, 0, window("2030-04-01T06:00", "2030-04-04T12:00"), None),
            (OpenAt.ALL, 0, window("2030-04-01T06:00", "2030-04-01T18:00"), None),
            (OpenAt.ALL, 0, window("2030-04-01T06:00", "2030-04-02T12:00"), HoursFault.BETWEEN),
            (OpenAt.ALL, 12 * HOUR, window("2030-04-01T06:00", "2030-04-05T12:00"), None),
            (OpenAt.ALL, 12 * HOUR, window("2030-04-04T06:00", "2030-04-08T12:00"), HoursFault.BETWEEN),
        ],
    )
    def test_faults(self, apply, across, of, fault):
        assert find_fault(Hours(DAYTIME, apply, across), of) is fault

    def test_what_was_there_before_a_change_is_no_fault(self):
        old = window("2030-04-01T20:00", "2030-04-02T03:00")
        assert find_fault(Hours(DAYTIME, OpenAt.START_END), (old[0], at("2030-04-02T10:00")), old) is None
        assert find_fault(Hours(DAYTIME, OpenAt.START_END), (old[0], at("2030-04-02T19:00")), old) is HoursFault.END
        assert find_fault(Hours(DAYTIME), (at("2030-04-01T21:00"), old[1]), old) is HoursFault.START
        longer = old[0], at("2030-04-02T10:00")
        assert find_fault(Hours(DAYTIME, OpenAt.ALL), longer, old) is HoursFault.BETWEEN
        assert find_fault(Hours(DAYTIME, OpenAt.ALL, 3 * HOUR), longer, old) is None

    def test_the_last_end_that_is_allowed(self):
        start, after, until = at("2030-04-01T08:00"), at("2030-04-01T10:00"), at("2030-04-01T22:00")
        assert find_last_end(Hours(DAYTIME, OpenAt.ALL), start, after, until) == at("2030-04-01T18:00")
        assert find_last_end(Hours(DAYTIME, OpenAt.ALL), start, at("2030-04-01T18:00"), until) is None

    @settings(max_examples=cases(10_000), deadline=None)
    @given(data=st.data())
    def test_starts_are_those_without_a_fault(self, data):
        quarter = 15 * 60
        moments = st.integers(0, DAY // quarter - 1).map(lambda number: number * quarter)
        some = st.builds(WeekHours, st.frozensets(st.integers(0, 6), min_size=1), moments, moments)
        zone = data.draw(st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"]))
        begin = data.draw(
            st.sampled_from(
                [datetime(2030, 3, 29), datetime(2030, 10, 5), datetime(2030, 10, 26), datetime(2030, 9, 7)]
            )
        ).replace(tzinfo=UTC)
        closed = data.draw(st.frozensets(st.just((begin + timedelta(days=1)).date())))
        hours = Hours(
            OpenTime(zone, tuple(data.draw(st.lists(some, min_size=1, max_size=2))), closed),
            data.draw(st.sampled_from(OpenAt)),
            data.draw(st.sampled_from([0, HOUR, 12 * HOUR, 2 * DAY])),
        )
        first = int(begin.timestamp())
        last, length = first + 3 * DAY, data.draw(st.integers(1, 200)) * quarter
        runs = list_allowed_starts(hours, length, first, last)
        assert all(one[1] < other[0] for one, other in zip(runs, runs[1:], strict=False))
        edges = [instant for run in runs for edge in run for instant in (edge - 1, edge, edge + 1)]
        for start in [*range(first, last + 1, 4 * quarter), *(edge for edge in edges if first <= edge <= last)]:
            allowed = any(begun <= start <= until for begun, until in runs)
            assert allowed is (find_fault(hours, (start, start + length)) is None), start


class TestGaps:
    LONG = Gap(12 * HOUR, 6 * HOUR)

    @pytest.mark.parametrize(
        ("one", "other", "too_soon"),
        [
            ((0, 7), (18, 20), True),
            ((0, 7), (19, 20), False),
            # A short one is followed at once.
            ((0, 6), (6, 20), False),
            # Within the time of another one, and with it: not the next one after it.
            ((0, 20), (5, 10), False),
            ((0, 20), (0, 30), False),
            ((0, 20), (5, 20), False),
            ((0, 20), (19, 40), True),
        ],
    )
    def test_the_next_lease(self, one, other, too_soon):
        spans = [(start * HOUR, end * HOUR) for start, end in (one, other)]
        assert follows_too_soon(self.LONG, *spans) is too_soon
        assert follows_too_soon(self.LONG, *reversed(spans)) is too_soon

    @settings(max_examples=cases(10_000), deadline=None)
    @given(
        gap=st.builds(Gap, st.integers(1, 12), st.integers(0, 8)),
        others=st.lists(st.tuples(st.integers(-20, 40), st.integers(1, 15)), max_size=4),
        length=st.integers(1, 20),
    )
    def test_starts_are_those_that_are_far_enough_from_all(self, gap, others, length):
        spans = [(start, start + long) for start, long in others]
        runs = list_starts_apart(gap, spans, length, 0, 30)
        for start in range(31):
            allowed = any(first <= start <= last for first, last in runs)
            assert allowed is not any(follows_too_soon(gap, (start, start + length), span) for span in spans)
        assert all(one[1] + 1 < other[0] for one, other in zip(runs, runs[1:], strict=False))
