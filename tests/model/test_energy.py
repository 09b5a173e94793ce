# SPDX-License-Identifier: Apache-2.0
"""Energy and carbon of leases: against sums of what each has of each hour."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.energy.book import check_properties
from blazar.model.energy.carbon import DAY, Embodied, HourlyCurve, Site, parse_curve, weigh_carbon
from blazar.model.energy.consumption import (
    HOUR,
    Energy,
    EnergySource,
    HostMeter,
    HostShare,
    HourEnergy,
    PowerRating,
    sum_energy,
)

ORIGIN = datetime(2030, 4, 1, tzinfo=UTC)
BEGIN = int(ORIGIN.timestamp())
RATING = PowerRating(180_000, 420_000)


def window(start, end):
    return Window(ORIGIN + timedelta(seconds=start), ORIGIN + timedelta(seconds=end))


def hours(**values):
    return {BEGIN + int(key[1:]) * HOUR: value for key, value in values.items()}


# Four hours, in seconds.
windows = st.tuples(st.integers(0, 4 * HOUR - 1), st.integers(1, 4 * HOUR)).filter(lambda pair: pair[0] < pair[1])
shares = st.lists(
    st.builds(
        lambda host, span, part: HostShare(host, window(*span), Fraction(part, 8)),
        st.sampled_from("ab"),
        windows,
        st.integers(1, 8),
    ),
    max_size=4,
)
by_hour = st.dictionaries(st.integers(0, 3).map(lambda hour: BEGIN + hour * HOUR), st.integers(0, 10**6), max_size=4)
loads = st.dictionaries(st.integers(0, 3).map(lambda hour: BEGIN + hour * HOUR), st.fractions(0, 1, max_denominator=9))
meters = st.dictionaries(
    st.sampled_from("ab"), st.builds(HostMeter, by_hour, st.sampled_from([None, RATING]), st.none() | loads)
)


@given(shares, meters)
def test_energy_is_the_sum_of_what_each_share_has_of_each_hour(shares, meters):
    measured, rated, unknown = {}, {}, Fraction(0)
    for one in shares:
        start, end = (int(at.timestamp()) for at in (one.window.start, one.window.end))
        meter = meters.get(one.host)
        for hour in range(BEGIN, BEGIN + 4 * HOUR, HOUR):
            seconds = max(0, min(end, hour + HOUR) - max(start, hour))
            if meter is not None and hour in meter.measured:
                measured[hour] = measured.get(hour, 0) + seconds * meter.measured[hour] * one.share
            elif meter is not None and meter.rating is not None:
                load = (meter.loads or {}).get(hour, Fraction(1, 2))
                draw = round(meter.rating.idle + (meter.rating.most - meter.rating.idle) * load)
                rated[hour] = rated.get(hour, 0) + seconds * draw * one.share
            else:
                unknown += seconds * one.share
    found = sum_energy(shares, meters)
    assert {h.hour: h.measured for h in found.hours if h.measured} == {h: e for h, e in measured.items() if e}
    assert {h.hour: h.rated for h in found.hours if h.rated} == {h: e for h, e in rated.items() if e}
    assert found.unknown == unknown
    assert found.watt_hours == round(sum((*measured.values(), *rated.values()), Fraction(0)) / 3_600_000)


@given(windows, st.integers(1, 4 * HOUR), meters)
def test_a_cut_of_a_window_changes_no_sum(span, cut, meters):
    start, end = span
    whole = sum_energy([HostShare("a", window(start, end))], meters)
    if start < cut < end:
        parts = [HostShare("a", window(start, cut)), HostShare("a", window(cut, end))]
        assert sum_energy(parts, meters) == whole


def test_an_hour_that_is_not_measured_is_rated_and_not_zero():
    meter = HostMeter(hours(h0=200_000), RATING, hours(h1=Fraction(0)))
    found = sum_energy([HostShare("a", window(0, 3 * HOUR))], {"a": meter})
    # 200 Wh measured, 180 Wh idle, and 300 Wh at half of the load.
    assert (found.watt_hours, found.source) == (680, EnergySource.MIXED)


@pytest.mark.parametrize(
    ("meter", "source", "watt_hours"),
    [
        (HostMeter(hours(h0=200_000)), EnergySource.MEASURED, 200),
        (HostMeter({}, RATING), EnergySource.RATED, 300),
        (HostMeter({}), None, 0),
    ],
)
def test_each_figure_says_how_it_is_known(meter, source, watt_hours):
    found = sum_energy([HostShare("a", window(0, HOUR))], {"a": meter})
    assert (found.source, found.watt_hours) == (source, watt_hours)
    assert found.unknown == (HOUR if source is None else 0)


def test_a_lease_of_many_hosts_for_years_is_cut_to_hours_once():
    years = window(0, 5 * 365 * DAY)
    shares = [HostShare(str(number), years) for number in range(1000)]
    begun_at = time.process_time()
    energy = sum_energy(shares, {str(number): HostMeter({}, RATING) for number in range(900)})
    assert time.process_time() - begun_at < 2
    assert energy.watt_hours == 900 * 300 * 5 * 365 * 24
    assert energy.unknown == 100 * 5 * 365 * DAY


def test_a_shared_host_counts_by_its_share():
    energy = sum_energy([HostShare("a", window(0, HOUR), Fraction(1, 4))], {"a": HostMeter({}, RATING)})
    assert energy.watt_hours == 75


def test_a_load_beyond_its_bounds_is_at_them():
    assert [RATING.draw(Fraction(load)) for load in (-1, 0, 1, 7)] == [180_000, 180_000, 420_000, 420_000]


@pytest.mark.parametrize(
    ("properties", "rating"),
    [
        ({"power_idle_w": "180", "power_max_w": 420.5}, PowerRating(180_000, 420_500)),
        ({"power_idle_w": "180"}, None),
        ({}, None),
    ],
)
def test_a_rating_is_two_properties_of_a_host(properties, rating):
    assert PowerRating.of_properties(properties) == rating


@pytest.mark.parametrize("most", ["100", "-1", "x", "1e999999999", "1/3", "nan", "9" * 5000])
def test_a_rating_that_cannot_be_is_refused_at_once(most):
    with pytest.raises(InvalidInput, match="power_idle_w and power_max_w are watts"):
        PowerRating.of_properties({"power_idle_w": "180", "power_max_w": most})


def mean_of_week(values, hour):
    known = [values[hour - days * DAY] for days in range(1, 8) if hour - days * DAY in values]
    return sum(known, Fraction(0)) / len(known) if known else None


days = st.dictionaries(
    st.integers(0, 20 * 24).map(lambda hour: BEGIN + hour * HOUR), st.fractions(0, 900, max_denominator=10), max_size=60
)


@given(days, st.integers(0, 21 * 24).map(lambda hour: BEGIN + hour * HOUR))
def test_a_missing_hour_has_the_mean_of_that_hour_in_the_last_week(values, hour):
    found = HourlyCurve(values).read(hour)
    if hour in values:
        assert found == (values[hour], False)
    else:
        mean = mean_of_week(values, hour)
        assert found == (None if mean is None else (mean, True))


@given(
    st.dictionaries(st.integers(0, 47), st.fractions(0, 10**7, max_denominator=7), max_size=8),
    days,
    st.fractions(1, 2, max_denominator=10),
)
def test_carbon_is_the_sum_of_hours_by_their_intensity(energies, values, pue):
    by_hour = {BEGIN + hour * HOUR: energy for hour, energy in energies.items()}
    energy = Energy(tuple(HourEnergy(hour, rated=by_hour[hour]) for hour in sorted(by_hour)))
    expected, whole = Fraction(0), True
    for hour, joules in by_hour.items():
        intensity = values.get(hour, mean_of_week(values, hour))
        whole &= intensity is not None
        # Milliwatt-seconds to kilowatt-hours.
        expected += joules / Fraction(10**6 * 3600) * pue * (intensity or 0)
    found = weigh_carbon(energy, [], Site(HourlyCurve(values), pue))
    assert (found.operational, found.complete) == (expected, whole)


def test_the_intensity_of_software_has_the_hosts_in_it():
    # 1 kWh at 400 g, PUE 1.5; 1 314.9 kg over five years, of which a host has ten hours: 300 g.
    share = HostShare("a", window(0, 10 * HOUR))
    energy = sum_energy([share], {"a": HostMeter(dict.fromkeys(range(BEGIN, BEGIN + 10 * HOUR, HOUR), 100_000))})
    curve = HourlyCurve(dict.fromkeys(range(BEGIN, BEGIN + 10 * HOUR, HOUR), Fraction(400)))
    made = Embodied.of_properties({"embodied_kg": "1314.9", "lifespan_years": "5"})
    found = weigh_carbon(energy, [share], Site(curve, Fraction("1.5"), {"a": made}))
    assert (found.operational, found.embodied, found.grams) == (600, 300, 900)
    # Per hour of a host.
    assert found.intensity == 90
    assert (found.complete, found.embodied_complete, found.estimated) == (True, True, False)


def test_what_is_not_known_is_said():
    share = HostShare("a", window(0, HOUR))
    energy = sum_energy([share], {})
    found = weigh_carbon(energy, [share], Site(HourlyCurve({})))
    assert (found.grams, found.complete, found.embodied_complete) == (0, False, False)
    assert weigh_carbon(Energy(), [], Site(HourlyCurve({}))).intensity is None


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"embodied_kg": "x", "lifespan_years": "5"}, "embodied_kg is 'x'; it is kilograms of CO2e"),
        ({"embodied_kg": "1000001", "lifespan_years": "5"}, "embodied_kg is '1000001'"),
        ({"embodied_kg": "1", "lifespan_years": "0"}, "lifespan_years is '0'; it is years, as 5, from 0.1 to 100"),
        ({"embodied_kg": "1", "lifespan_years": "0.00000001"}, "lifespan_years is"),
    ],
    ids=["no number", "units", "no life", "a second"],
)
def test_a_life_that_cannot_be_is_refused(properties, sentence):
    assert Embodied.of_properties({"embodied_kg": "1"}) is None
    with pytest.raises(InvalidInput, match="are kilograms and years"):
        Embodied.of_properties(properties)
    with pytest.raises(InvalidInput, match=sentence):
        check_properties(properties)


@pytest.mark.parametrize(
    ("idle", "most", "sentence"),
    [
        ("180 W", "420", "power_idle_w is '180 W'; it is watts"),
        ("-5", "420", "power_idle_w is '-5'"),
        ("180", "420000000", "power_max_w is '420000000'; it is watts, as 180, and at most 1000000"),
        ("500", "420", "power_idle_w and power_max_w are watts, as 180 and 420, the second not less"),
    ],
    ids=["a unit", "below 0", "milliwatts", "swapped"],
)
def test_a_data_sheet_that_would_count_for_nothing_is_refused(idle, most, sentence):
    check_properties({"power_idle_w": "180", "embodied_kg": "1300", "color": "red"})
    with pytest.raises(InvalidInput, match=sentence) as refused:
        check_properties({"power_idle_w": idle, "power_max_w": most})
    assert str(refused.value.pointer).startswith("/properties/power_")


def test_a_curve_is_read_from_a_table():
    text = "start,value\n2030-04-01T00:00:00Z,320.5\n\n2030-04-01T03:00:00+02:00,0\n"
    assert parse_curve(text, named="curve").values == hours(h0=Fraction("320.5"), h1=Fraction(0))
    # As spreadsheets write it; and hours that UTC has no date for, which nobody asks for.
    ends = "0001-01-01T00:00:00+14:00,1\n9999-12-31T23:00:00-05:00,1\n"
    assert parse_curve(f"\ufeff{text}{ends}", named="curve").read(BEGIN) == (Fraction("320.5"), False)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("2030-04-01T00:00:00,1", "line 2: the instant has no offset"),
        ("2030-04-01T00:30:00Z,1", "line 2: 2030-04-01T00:30:00Z is not the beginning of an hour"),
        ("2030-04-01T00:00:00.5Z,1", "is not the beginning"),
        ("2030-04-01T00:00:00Z,-1", "line 2 is not an instant and a number"),
        ("2030-04-01T00:00:00Z,1e400000000", "line 2 is not an instant and a number"),
        ("2030-04-01T00:00:00Z,320500", "from 0 to 10000 grams"),
        ("2030-04-01T00:00:00Z", "line 2 is not an instant and a number"),
        ("x,1,2", "line 2 is not an instant and a number"),
        ("9999-12-31T23:00:00-05:00,x", "line 2 is not an instant and a number"),
        (
            "2030-04-01T00:00:00Z,1\n\n2030-04-01T02:00:00+02:00,1",
            r"line 4: the hour 2030-04-01T02:00:00\+02:00 is there twice",
        ),
        (f"2030-04-01T00:00:00Z,{'1' * 200_000}", "curve, line 2 is not one of a table in CSV"),
    ],
)
def test_a_line_that_cannot_be_is_named(row, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        parse_curve(f"start,value\n{row}\n", named="curve")
    with pytest.raises(InvalidInput, match="the first line must be start,value"):
        parse_curve("", named="curve")


def test_a_curve_whose_end_is_more_than_a_day_ago_does_not_go_on():
    curve = HourlyCurve({BEGIN: Fraction(1), BEGIN + 99 * DAY: Fraction(1)})
    assert curve.explain_gap(BEGIN + DAY - 1) is None
    assert curve.explain_gap(BEGIN + DAY) == "the last hour of the curve before now is 2030-04-01T00:00:00Z"
    assert curve.explain_gap(BEGIN - 1) == "the curve has no hour before now"
