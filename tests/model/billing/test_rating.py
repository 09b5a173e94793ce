# SPDX-License-Identifier: Apache-2.0
"""Rating: what a lease costs, as the page of prices says, and as an independent sum finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from blazar.model.base.window import Window
from blazar.model.billing.charges import NANO, ChargeCategory, ChargeLine, adjust, sum_lines
from blazar.model.billing.price_lists import PriceList, parse_price_list
from blazar.model.billing.rating import BookedPart, ChargeTerms, PricedUse, rate, rate_fee
from blazar.model.billing.uses import BookedUse, list_given_back

HOUR = timedelta(hours=1)
END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
BOOKED = datetime(2029, 6, 1, tzinfo=UTC)
BERLIN = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2029-01-01T00:00:00Z",
    "time_zone": "Europe/Berlin",
    "prices": [
        {"sku": "host-a100", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "3.20"},
        {"sku": "host", "measure": "host", "per_hour": "0.80"},
    ],
    "fee": "5.00",
}
WORKING_HOURS = {"days": ["MO", "TU", "WE", "TH", "FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_list(version: int = 1, published_at: datetime = datetime(2029, 1, 1, tzinfo=UTC), **changes: Any) -> PriceList:
    return parse_price_list({**BERLIN, **changes}, version=version, published_at=published_at)


def booked(start: str, booked_at: datetime = BOOKED, project: str = "p", **changes: Any) -> ChargeTerms:
    return ChargeTerms(project, (BookedPart(utc(start), booked_at),), **changes)


def a_use(start: str, end: str, **changes: Any) -> PricedUse:
    usual = {"reservation_id": "r", "sku": "host", "amount": 1, "booked_amount": 1, "window": window(start, end)}
    return PricedUse(**{**usual, **changes})


def window(start: str, end: str) -> Window:
    return Window(utc(start), utc(end))


def short(lines: Sequence[ChargeLine]) -> list[tuple[str, str, str, str]]:
    """Return of each line its category, status, resource-hours with the factor, and amount."""
    return [
        (
            line.category,
            line.status,
            f"{line.resource_seconds / 3600:g} x {float(line.factor):g}",
            f"{line.nano / NANO:g}",
        )
        for line in lines
    ]


def test_the_example_of_four_hosts_for_two_days():
    prices = a_list(
        hours=[WORKING_HOURS],
        cancellation=[
            {"before_start": "P7D", "share": "0"},
            {"before_start": "PT24H", "share": "0.25"},
            {"share": "0.5"},
        ],
    )
    terms = booked("2030-05-02T08:00", utc("2030-04-18T08:00"))
    use = a_use("2030-05-02T08:00", "2030-05-04T08:00", sku="host-a100", amount=4, booked_amount=4)
    lines, fee = rate([use], [prices], terms), rate_fee([prices], terms)
    assert fee is not None
    assert sorted(short(lines)) == [("usage", "used", "124 x 1", "396.8"), ("usage", "used", "68 x 1.25", "272")]
    assert sum_lines([fee, *lines]) == 673_800_000_000

    def cancel(at: str) -> int:
        fee = rate_fee([prices], terms, given_back_at=utc(at))
        return sum_lines([*rate([replace(use, given_back_at=utc(at))], [prices], terms), *([fee] if fee else [])])

    assert cancel("2030-04-25T07:59:59") == 0
    assert cancel("2030-04-25T08:00") == cancel("2030-05-01T07:59:59") == 168_450_000_000
    assert cancel("2030-05-01T08:00") == 336_900_000_000


@pytest.mark.parametrize(
    ("day", "begin", "end", "hours"),
    [
        # 02:00 to 03:00 comes twice, and so does each half of it.
        ("2030-10-27", "02:00", "02:30", 1),
        ("2030-10-27", "02:30", "03:00", 1),
        ("2030-10-27", "01:30", "02:30", 1.5),
        ("2030-10-27", "02:30", "03:30", 1.5),
        # It is skipped: what would begin in it begins at 03:00.
        ("2030-03-31", "02:00", "02:30", 0),
        ("2030-03-31", "02:30", "03:30", 0.5),
        ("2030-03-31", "01:30", "02:30", 0.5),
    ],
)
def test_hours_at_a_change_of_clocks_are_those_that_clocks_show(day, begin, end, hours):
    prices = a_list(hours=[{"days": ["SU"], "from": begin, "to": end, "factor": "2"}])
    use = a_use("2030-01-01", "2030-01-02", window=Window(utc(day) - 12 * HOUR, utc(day) + 12 * HOUR))
    found = {line.factor: line.resource_seconds for line in rate([use], [prices], booked(f"{day}T00:00"))}
    assert found.get(Fraction(2), 0) == hours * 3600
    assert sum(found.values()) == 24 * 3600


def test_hours_that_end_before_they_begin_end_on_the_next_day():
    prices = a_list(time_zone="UTC", hours=[{"days": ["SU"], "from": "22:00", "to": "06:00", "factor": "0.5"}])
    lines = rate([a_use("2030-04-07T00:00", "2030-04-09T00:00")], [prices], booked("2030-04-07T00:00"))
    (night,) = (line for line in lines if line.factor == Fraction(1, 2))
    assert night.window == window("2030-04-07T22:00", "2030-04-08T06:00")
    assert night.resource_seconds == 8 * 3600


def test_several_hours_that_fit_multiply():
    prices = a_list(hours=[{"factor": "1.5"}, {"from": "00:00", "to": "24:00", "factor": "1.1"}])
    (line,) = rate([a_use("2030-04-02T00:00", "2030-04-02T10:00")], [prices], booked("2030-04-02T00:00"))
    assert (line.factor, line.nano) == (Fraction("1.65"), 13_200_000_000)


def test_a_lease_is_charged_by_the_lists_that_were_published_when_it_was_booked():
    usual = a_list()
    announced = a_list(2, utc("2029-05-01"), valid_from="2030-04-02T00:00:00Z", prices=[price("1")])
    dearer = a_list(3, utc("2029-07-01"), valid_from="2030-04-01T00:00:00Z", prices=[price("9")])
    lists, use = [usual, announced, dearer], a_use("2030-04-01T00:00", "2030-04-03T00:00")
    lines = rate([use], lists, booked("2030-04-01T00:00"))
    assert [(line.version, line.nano) for line in lines] == [(1, 19_200_000_000), (2, 24_000_000_000)]
    # A list replaces those that would become valid later, but only for what is booked from then on.
    (line,) = rate([use], lists, booked("2030-04-01T00:00", utc("2029-07-01")))
    assert (line.version, line.unit_nano) == (3, 9 * NANO)


def price(per_hour: str, sku: str = "host") -> dict[str, str]:
    return {"sku": sku, "measure": "host", "per_hour": per_hour}


def test_an_extension_has_the_prices_and_the_lead_of_its_own_booking():
    lists = [a_list(lead=[{"below": "PT24H", "factor": "1.1"}]), a_list(2, utc("2030-04-02"), prices=[price("1")])]
    parts = (
        BookedPart(utc("2030-04-01T00:00"), BOOKED),
        BookedPart(utc("2030-04-02T00:00"), utc("2030-04-01T20:00")),
        BookedPart(utc("2030-04-04T00:00"), utc("2030-04-02T00:00")),
    )
    lines = rate([a_use("2030-04-01T00:00", "2030-04-05T00:00")], lists, ChargeTerms("p", parts))
    assert [(line.version, float(line.factor), line.resource_seconds // 3600) for line in lines] == [
        (1, 1.0, 24),
        (1, 1.1, 48),
        (2, 1.0, 24),
    ]


def test_what_was_added_has_the_prices_and_the_lead_of_then():
    lists = [a_list(lead=[{"below": "PT24H", "factor": "1.1"}]), a_list(2, utc("2030-03-20"), prices=[price("1")])]
    use = a_use("2030-04-01T00:00", "2030-04-02T00:00", added_at=utc("2030-03-31T12:00"))
    (line,) = rate([use], lists, booked("2030-04-01T00:00"))
    assert (line.version, line.factor) == (2, 1)
    (line,) = rate([use], lists[:1], booked("2030-04-01T00:00"))
    assert (line.version, line.factor) == (1, Fraction("1.1"))


def test_what_was_added_to_a_lease_that_was_extended_has_the_lead_to_the_begin_of_all_of_it():
    lists = [a_list(lead=[{"below": "PT24H", "factor": "1.1"}])]
    parts = (BookedPart(utc("2030-04-01T00:00"), BOOKED), BookedPart(utc("2030-04-03T00:00"), BOOKED))
    use = a_use("2030-04-01T00:00", "2030-04-04T00:00", added_at=utc("2030-03-31T12:00"))
    lines = rate([use], lists, ChargeTerms("p", parts))
    assert {line.factor for line in lines} == {Fraction("1.1")}
    # An extension that is booked later has the lead to its own begin.
    later = BookedPart(utc("2030-04-03T00:00"), utc("2030-03-31T13:00"))
    lines = rate([use], lists, ChargeTerms("p", (parts[0], later)))
    assert sorted((line.factor, line.resource_seconds) for line in lines) == [(1, 86400), (Fraction("1.1"), 172800)]


def test_what_is_given_back_is_rounded_from_the_begin_of_its_reservation_whatever_has_taken_its_place():
    begin, now, end = utc("2030-04-01T10:00"), utc("2030-04-01T11:05"), utc("2030-04-01T12:00")
    replaced_at = begin + timedelta(seconds=61)
    gone = BookedUse("r", 1, Window(begin, replaced_at), {"host": 1}, {"host": 1}, is_live=False)
    has = BookedUse("r", 2, Window(replaced_at, end), {"host": 1}, {"host": 1})
    (use,) = list_given_back([has], [], [a_list()], whole=[gone, has], since=now, at=now)
    assert (use.window, use.kept) == (Window(now, end), Window(begin, now))


def test_after_a_transfer_the_lists_of_then_count_and_the_lead_of_the_booking():
    lists = [a_list(), a_list(2, utc("2030-03-01"), lead=[{"below": "PT24H", "factor": "3"}], prices=[price("1")])]
    part = BookedPart(utc("2030-04-01T00:00"), BOOKED, utc("2030-03-31T23:00"))
    (line,) = rate([a_use("2030-04-01T00:00", "2030-04-02T00:00")], lists, ChargeTerms("q", (part,)))
    assert (line.version, line.factor) == (2, 1)


@pytest.mark.parametrize(("amount", "factor"), [(16, "1"), (17, "1.2"), (64, "1.2"), (65, "1.5")])
def test_many_cost_more(amount, factor):
    prices = a_list(amount=[{"above": 16, "factor": "1.2"}, {"above": 64, "factor": "1.5"}])
    use = a_use("2030-04-01T00:00", "2030-04-02T00:00", amount=3, booked_amount=amount)
    (line,) = rate([use], [prices], booked("2030-04-01T00:00"))
    assert line.factor == Fraction(factor)
    assert line.resource_seconds == 3 * 86400


def test_a_project_has_its_discount_on_hours_and_not_on_the_fee():
    prices = a_list(projects=[{"project_id": "p", "factor": "0.8"}])
    use = a_use("2030-04-01T00:00", "2030-04-01T10:00")
    for project, hours in (("p", 6_400_000_000), ("q", 8_000_000_000)):
        terms = booked("2030-04-01T00:00", project=project)
        fee = rate_fee([prices], terms)
        assert fee is not None
        assert (sum_lines(rate([use], [prices], terms)), fee.nano) == (hours, 5 * NANO)


def test_unused_late_and_lost_time_has_lines_of_its_own():
    prices = a_list(unused="0.5")
    terms = booked("2030-04-01T00:00", unused=(window("2030-04-01T04:00", "2030-04-01T08:00"),))
    use = a_use(
        *("2030-04-01T00:00", "2030-04-01T10:00"),
        handed_over_at=utc("2030-04-01T01:00"),
        outages=(window("2030-04-01T07:00", "2030-04-01T09:00"),),
    )
    assert short(rate([use], [prices], terms)) == [
        ("free", "late", "1 x 1", "0"),
        ("usage", "used", "4 x 1", "3.2"),
        ("usage", "unused", "3 x 0.5", "1.2"),
        ("free", "lost", "2 x 1", "0"),
    ]
    charged = a_list(late="charge", lost="charge")
    assert sum_lines(rate([use], [charged], terms)) == 8 * NANO


@pytest.mark.parametrize(("end", "more"), [("00:10", 50 * 60), ("01:00", 0), ("01:07:30", 150)])
def test_the_time_of_a_reservation_is_rounded_up_at_its_end_by_a_line_at_the_last_price(end, more):
    prices = a_list(
        minimum="PT1H", round_up="PT5M", time_zone="UTC", hours=[{"from": "00:00", "to": "00:05", "factor": "3"}]
    )
    use = a_use("2030-04-01T00:00", f"2030-04-01T{end}", amount=2, rounded_from=utc("2030-04-01T00:00"))
    lines = rate([use], [prices], booked("2030-04-01T00:00"))
    added = [line for line in lines if line.category is ChargeCategory.ROUNDING_UP]
    assert [(line.resource_seconds, line.factor) for line in added] == ([(2 * more, 1)] if more else [])
    # Without an end there is nothing to round.
    assert len(rate([replace(use, rounded_from=None)], [prices], booked("2030-04-01T00:00"))) == 2


def test_what_is_returned_early_costs_its_share():
    use = a_use("2030-04-01T12:00", "2030-04-02T00:00", given_back_at=utc("2030-04-01T12:00"))
    terms = booked("2030-04-01T00:00")
    assert rate([use], [a_list()], terms) == ()
    lines = rate([use], [a_list(early_return="0.25")], terms)
    assert short(lines) == [("early_return", "unused", "12 x 0.25", "2.4")]


def test_what_has_no_price_is_free_and_said_to_be():
    terms = booked("2030-04-01T00:00")
    use = a_use("2030-04-01T00:00", "2030-04-02T00:00", sku="vcpu")
    for lists, version in (([], None), ([a_list()], 1)):
        (line,) = rate([use], lists, terms)
        assert (line.category, line.status, line.version, line.nano) == ("free", "unpriced", version, 0)
    assert rate_fee([], terms) is None


def test_each_month_of_utc_has_its_lines():
    lines = rate([a_use("2029-12-31T00:00", "2030-02-02T00:00")], [a_list()], booked("2029-12-31T00:00"))
    assert [(line.month, line.resource_seconds // 86400) for line in lines] == [
        (date(2029, 12, 1), 1),
        (date(2030, 1, 1), 31),
        (date(2030, 2, 1), 1),
    ]


def test_a_line_is_rounded_once_half_to_even():
    # 0.000001 an hour for a second: 277.777… of 10⁻⁹ for a thousand hosts.
    prices, terms = a_list(prices=[price("0.000001")]), booked("2030-04-01T00:00")
    seconds = [a_use(f"2030-04-01T00:00:{n:02}", f"2030-04-01T00:00:{n + 1:02}", amount=1000) for n in range(50)]
    (line,) = rate(seconds, [prices], terms)
    assert line.nano == round(Fraction(1000 * 1000 * 50, 3600)) == 13889
    (half,) = rate(
        [a_use("2030-04-01T00:00", "2030-04-01T00:00:09", amount=5)], [a_list(prices=[price("0.00001")])], terms
    )
    assert half.nano == 125 == round(Fraction(10_000 * 45, 3600))
    (even,) = rate([a_use("2030-04-01T00:00", "2030-04-01T00:00:09")], [a_list(prices=[price("0.000001")])], terms)
    assert even.nano == 2, "2.5 is rounded to the even one"


@pytest.mark.parametrize(("per_hour", "missing"), [("0.005", -5_000_000), ("0.015", 5_000_000), ("0.01", None)])
def test_a_total_is_rounded_to_the_decimals_by_a_line_of_its_own(per_hour, missing):
    lines = rate(
        [a_use("2030-04-01T00:00", "2030-04-01T01:00")], [a_list(prices=[price(per_hour)])], booked("2030-04-01T00:00")
    )
    line = adjust(lines, date(2030, 4, 1), 2)
    assert (line and line.nano) == missing
    assert line is None or (line.category, line.window) == (
        "adjustment",
        window("2030-04-01T00:00", "2030-05-01T00:00"),
    )


def test_a_lease_for_ever_has_a_price():
    prices = a_list(hours=[WORKING_HOURS])
    use = PricedUse(reservation_id="r", sku="host", amount=1, booked_amount=1, window=Window(utc("9999-11-30"), END))
    lines = rate([use], [prices], booked("9999-11-30"))
    assert sum(line.resource_seconds for line in lines) == (END - utc("9999-11-30")).total_seconds()
