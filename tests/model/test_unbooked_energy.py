# SPDX-License-Identifier: Apache-2.0
"""What hosts draw that no lease has: with what leases have it is all that they draw, whatever the times."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyBook, EnergyHost
from blazar.model.energy.carbon import HourlyCurve
from blazar.model.energy.consumption import WATT_HOUR, HostMeter, HostShare, PowerRating
from blazar.model.energy.unbooked import HostTimes, UnbookedPart, find_unbooked

HOUR = 3600
DAY = 24 * HOUR
RATING = PowerRating(100_000, 500_000)


def window(start: int, end: int) -> Window:
    return Window(*(datetime.fromtimestamp(at, UTC) for at in (start, end)))


def book(measured: dict[int, int], rating: PowerRating | None = RATING, **more) -> EnergyBook:
    return EnergyBook({1: EnergyHost(HostMeter(measured, rating))}, **more)


def test_a_host_without_leases_and_sleep_is_idle_by_its_rating():
    found = find_unbooked(HostTimes({1: (0, 10 * HOUR)}), (), book({}))
    assert found.idle == UnbookedPart(10 * HOUR, 1000, "rated", 0, None)
    assert found.asleep == UnbookedPart()


def test_of_a_host_that_sleeps_only_a_measurement_tells():
    times = HostTimes({1: (0, 10 * HOUR)}, {1: [(2 * HOUR, 4 * HOUR)]})
    found = find_unbooked(times, (), book({2 * HOUR: 8000}, curve=HourlyCurve({2 * HOUR: Fraction(500)})))
    assert found.asleep == UnbookedPart(2 * HOUR, 8, "mixed", HOUR, 4)
    assert (found.idle.resource_seconds, found.idle.energy_wh) == (8 * HOUR, 800)


def test_a_host_that_is_shared_is_idle_by_what_is_left_of_it():
    had = [
        HostShare("1", window(0, 4 * HOUR), Fraction(1, 4)),
        HostShare("1", window(2 * HOUR, 3 * HOUR), Fraction(3, 4)),
    ]
    found = find_unbooked(HostTimes({1: (0, 4 * HOUR)}), had, book({}))
    assert (found.idle.resource_seconds, found.idle.energy_wh) == (3 * 2700, 225)


def test_a_host_of_which_nothing_is_known_is_not_in_the_sum():
    found = find_unbooked(HostTimes({2: (0, HOUR)}), (), book({}))
    assert found.idle == UnbookedPart(HOUR, None, None, HOUR, None)


spans = st.tuples(st.integers(-HOUR, DAY + HOUR), st.integers(1, DAY)).map(lambda one: (one[0], one[0] + one[1]))


@given(st.lists(st.tuples(spans, st.integers(1, 3)), max_size=3), st.lists(spans, max_size=2), spans)
def test_what_is_booked_idle_and_asleep_is_all_that_a_host_draws(had, slept, registered):
    first, last = max(0, registered[0]), min(DAY, registered[1])
    if first >= last:
        return
    measured = {hour * HOUR: 1000 * hour for hour in range(-2, 60)}
    shares = [HostShare("1", window(*span), Fraction(thirds, 9)) for span, thirds in had]
    found = find_unbooked(HostTimes({1: (first, last)}, {1: slept}), shares, book(measured))
    total = sum(
        Fraction(measured[at // HOUR * HOUR], WATT_HOUR) * (min(last, at // HOUR * HOUR + HOUR) - at)
        for at in [first, *range((first // HOUR + 1) * HOUR, last, HOUR)]
    )
    of_leases = Fraction(0)
    for (start, end), thirds in had:
        at, stop = max(start, first), min(end, last)
        while at < stop:
            until = min(stop, at // HOUR * HOUR + HOUR)
            of_leases += Fraction(measured[at // HOUR * HOUR], WATT_HOUR) * (until - at) * Fraction(thirds, 9)
            at = until
    parts = (found.idle, found.asleep)
    assert abs(sum(part.energy_wh or 0 for part in parts) - (total - of_leases)) <= 1
    assert {part.unknown_seconds for part in parts} == {0}
