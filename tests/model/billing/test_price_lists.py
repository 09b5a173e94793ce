# SPDX-License-Identifier: Apache-2.0
"""Price lists: what their documents say, and how wrong ones are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base import dates
from blazar.model.base.errors import InvalidInput
from blazar.model.billing.hours import HoursFactor
from blazar.model.billing.price_lists import PriceList, check_currency, check_privacy, find_list, parse_price_list
from blazar.model.use.resource_hours import measures
from tests.builders import a_host
from tests.cases import cases

PUBLISHED = datetime(2030, 3, 1, tzinfo=UTC)
EXAMPLE = json.loads("""
{"currency": "EUR", "decimals": 2, "valid_from": "2030-04-01T00:00:00Z", "time_zone": "Europe/Berlin",
 "prices": [{"sku": "host-a100", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "3.20"},
            {"sku": "host", "measure": "host", "per_hour": "0.80"},
            {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.013"}],
 "fee": "5.00",
 "hours": [{"days": ["MO","TU","WE","TH","FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}],
 "lead": [{"below": "PT24H", "factor": "1.10"}], "amount": [{"above": 16, "factor": "1.20"}],
 "unused": "1.00", "projects": [{"project_id": "5f0c", "factor": "0.80"}], "minimum": "PT1H", "round_up": "PT1M",
 "cancellation": [{"before_start": "P7D", "share": "0"}, {"before_start": "PT24H", "share": "0.25"}, {"share": "0.50"}],
 "early_return": "0", "late": "free", "lost": "charge"}
""")
NEEDED = "currency, decimals, valid_from, time_zone, prices"


def a_list(version: int = 1, published_at: datetime = PUBLISHED, **changes: Any) -> PriceList:
    return parse_price_list({**EXAMPLE, **changes}, version=version, published_at=published_at)


def a_price(**changes: Any) -> dict[str, Any]:
    return {"sku": "host", "measure": "host", "per_hour": "0.80", **changes}


def refusal(**changes: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        a_list(**changes)
    return caught.value


def test_the_example_is_read_to_the_last_digit():
    found = a_list()
    assert [(price.sku, price.unit_nano) for price in found.prices] == [
        ("host-a100", 3_200_000_000),
        ("host", 800_000_000),
        ("vcpu", 13_000_000),
    ]
    assert (found.fee, found.minimum, found.round_up, found.decimals) == (5_000_000_000, 3600, 60, 2)
    assert found.hours == (HoursFactor(frozenset(range(5)), 9 * 3600, 18 * 3600, Fraction(5, 4)),)
    assert (found.late_is_free, found.lost_is_free) == (True, False)
    assert found.valid_from == datetime(2030, 4, 1, tzinfo=UTC)


def test_what_may_be_left_out_changes_nothing():
    found = parse_price_list({key: EXAMPLE[key] for key in NEEDED.split(", ")}, version=1, published_at=PUBLISHED)
    assert found.find_booking_factor("5f0c", 0, 1000) == 1
    assert (found.fee, found.round_time(1), found.find_share(1), found.find_share(0)) == (0, 1, 0, 0)
    assert (found.unused, found.late_is_free, found.lost_is_free) == (1, True, True)


def test_the_first_price_that_fits_wins():
    prices = a_list()
    for properties, sku in (({"gpu": "A100"}, "host-a100"), ({"gpu": "H100"}, "host"), ({}, "host")):
        found = prices.choose_price("host", properties)
        assert found is not None
        assert found.sku == sku
    assert prices.choose_price("gigabyte", {}) is None
    assert prices.find_price("gigabyte") is None


@settings(max_examples=cases(500))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["==", "!=", ">="]), st.sampled_from(["$tier", "$id"]), st.sampled_from(["1", "true"])
        ),
        max_size=3,
    ),
    st.lists(st.none() | st.sampled_from([1, True, 1.0, "1", "true", 0, False, "x"]), min_size=1, max_size=6),
)
def test_the_price_of_a_resource_is_the_one_that_fits_all_that_is_known_of_it(requirements, values):
    prices = a_list(prices=[a_price(sku=f"p{n}", requirement=list(one)) for n, one in enumerate(requirements)])
    for value in values:
        host = replace(a_host(1), attributes={} if value is None else {"tier": value})
        assert prices.choose_price_of("host", host) == prices.choose_price("host", host.properties)
    assert prices.choose_price_of("host", None) == prices.choose_price("host", {})


@pytest.mark.parametrize(
    ("before_start", "share"),
    [(7 * 86400 + 1, "0"), (7 * 86400, "0.25"), (86401, "0.25"), (86400, "0.5"), (1, "0.5"), (0, "0.1"), (-9, "0.1")],
)
def test_the_share_of_what_is_given_back_grows_towards_the_start(before_start, share):
    assert a_list(early_return="0.1").find_share(before_start) == Fraction(share)


AMOUNT = 'an amount as a string, such as "3.20", with at most 9 digits and 6 decimals'
FACTOR = 'a factor as a string, such as "1.25", more than 0 and below 1000, with at most 6 decimals'
SHARE = 'a share from "0" to "1" as a string, such as "0.25", with at most 6 decimals'
TIME = "a time of day from 00:00 to 24:00, such as 09:00"
DAYS = "MO, TU, WE, TH, FR, SA, SU"


def named(pointer: str) -> str:
    """Return the name of a field in sentences, as ``hours[0].days[1]``."""
    return re.sub(r"/(\d+)", r"[\1]", pointer).replace("/", ".").removeprefix(".")


@pytest.mark.parametrize(
    ("changes", "pointer", "shown", "wanted"),
    [
        ({"currency": "eur"}, "/currency", "eur", "an ISO 4217 code such as EUR, or a word in capitals such as SU"),
        ({"decimals": 10}, "/decimals", "10", "a whole number from 0 to 9, without quotes"),
        ({"decimals": True}, "/decimals", "true", "a whole number from 0 to 9, without quotes"),
        ({"valid_from": 7}, "/valid_from", "7 (no string)", "a string"),
        ({"valid_from": "soon"}, "/valid_from", "soon", f"{dates.DATE_ONLY}, or a day such as 2030-04-01"),
        ({"time_zone": "Mars"}, "/time_zone", "Mars", "the name of a time zone such as Europe/Paris, or UTC"),
        ({"prices": {}}, "/prices", "an object", "a list of at most 200 entries"),
        ({"prices": [3]}, "/prices/0", "3 (no string)", "an object with sku, measure, per_hour, per_kwh, requirement"),
        (
            *({"prices": [a_price(sku="a b")]}, "/prices/0/sku", "a b"),
            "a name of letters, digits and ._- such as host-a100",
        ),
        (
            *({"prices": [a_price(), a_price()]}, "/prices/1/sku", "host"),
            "another name: a price before it has this one",
        ),
        ({"prices": [a_price(measure="core")]}, "/prices/0/measure", "core", f"one of {', '.join(measures())}, kwh"),
        ({"pue": "0.9"}, "/pue", "0.9", FACTOR.replace("more than 0", "at least 1")),
        ({"load": "1.5"}, "/load", "1.5", SHARE),
        ({"prices": [a_price(per_hour=0.8)]}, "/prices/0/per_hour", "0.8 (no string)", AMOUNT),
        ({"prices": [a_price(per_hour="-1")]}, "/prices/0/per_hour", "-1", AMOUNT),
        ({"prices": [a_price(per_hour="0.0000001")]}, "/prices/0/per_hour", "0.0000001", AMOUNT),
        ({"fee": "1e3"}, "/fee", "1e3", AMOUNT),
        ({"hours": [{"factor": "0"}]}, "/hours/0/factor", "0", FACTOR),
        ({"hours": [{"factor": "1000"}]}, "/hours/0/factor", "1000", FACTOR),
        ({"hours": [{"days": ["MO", "XX"], "factor": "2"}]}, "/hours/0/days/1", "XX", f"one of {DAYS}"),
        (
            *({"hours": [{"days": [], "factor": "2"}]}, "/hours/0/days", "a list"),
            f"some of {DAYS}, or leave it out for all days",
        ),
        ({"hours": [{"from": "9:00", "factor": "2"}]}, "/hours/0/from", "9:00", TIME),
        (
            *({"hours": [{"days": ["MO"], "from": "24:00", "factor": "2"}]}, "/hours/0/from", "24:00"),
            "00:00, on the days after these",
        ),
        ({"hours": [{"to": "24:01", "factor": "2"}]}, "/hours/0/to", "24:01", TIME),
        ({"hours": [{"factor": "2"}] * 21}, "/hours", "a list", "a list of at most 20 entries"),
        (
            *({"lead": [{"below": "P1M", "factor": "2"}]}, "/lead/0/below", "P1M"),
            "a duration without years and months, such as P7D, PT24H or PT1M",
        ),
        (
            *({"lead": [{"below": "PT24H", "factor": "2"}, {"below": "P1D", "factor": "3"}]}, "/lead/1/below", "P1D"),
            "a longer one than in the entry before it",
        ),
        (
            *({"amount": [{"above": 0, "factor": "2"}]}, "/amount/0/above", "0"),
            "a whole number from 1 to 1000000000, without quotes",
        ),
        (
            *({"amount": [{"above": 16, "factor": "2"}] * 2}, "/amount/1/above", "16"),
            "a larger one than in the entry before it",
        ),
        ({"unused": "-0.5"}, "/unused", "-0.5", FACTOR.replace("more than 0", "at least 0")),
        (
            *({"projects": [{"project_id": "p", "factor": "0.8"}] * 2}, "/projects/1/project_id", "p"),
            "each project once: an entry before it has this one",
        ),
        ({"minimum": "PT0S"}, "/minimum", "PT0S", "a duration of more than 0 and at most 5 years"),
        ({"round_up": "a minute"}, "/round_up", "a minute", dates.DURATION_FORMAT),
        (
            {
                "cancellation": [{"before_start": before, "share": "0"} for before in ("P1D", "P7D")]
                + [{"share": "0.5"}]
            },
            *("/cancellation/1/before_start", "P7D", "a shorter one than in the entry before it"),
        ),
        ({"cancellation": [{"share": "1.1"}]}, "/cancellation/0/share", "1.1", SHARE),
        ({"early_return": "2"}, "/early_return", "2", SHARE),
        ({"late": "paid"}, "/late", "paid", "one of free, charge"),
        ({"lost": None}, "/lost", "null (no string)", "one of free, charge"),
    ],
)
def test_a_wrong_value_is_refused_by_a_sentence_and_a_pointer(changes, pointer, shown, wanted):
    error = refusal(**changes)
    assert error.message == f"{named(pointer)} is {shown!r}, which is invalid; give {wanted}"
    assert error.pointer == pointer


WITHOUT_END = "is malformed; give before_start in all entries but the last one, which is for the rest"


@pytest.mark.parametrize(
    ("changes", "pointer", "sentence"),
    [
        (
            *({"prices": [{"sku": "a", "measure": "host"}]}, "/prices/0/per_hour"),
            "is missing; the needed fields are: sku, measure, per_hour",
        ),
        (
            *({"hours": [{"factor": "2", "until": "18:00"}]}, "/hours/0/until"),
            "is unknown; the allowed fields are: factor, days, from, to",
        ),
        ({"discount": "1"}, "/discount", f"is unknown; the allowed fields are: {NEEDED}, fee, hours, "),
        (
            *({"prices": [a_price(requirement=["=="])]}, "/prices/0/requirement"),
            'is malformed: "==" takes a $key and a value. Example: ',
        ),
        ({"cancellation": [{"before_start": "P7D", "share": "0"}]}, "/cancellation/0", WITHOUT_END),
        ({"cancellation": [{"share": "0"}, {"share": "0.5"}]}, "/cancellation/0", WITHOUT_END),
    ],
)
def test_a_list_of_another_form_is_refused_by_a_sentence_and_a_pointer(changes, pointer, sentence):
    error = refusal(**changes)
    assert error.message.startswith(f"{named(pointer)} {sentence}")
    assert error.pointer == pointer


@pytest.mark.parametrize("key", NEEDED.split(", "))
def test_what_is_needed_is_missed(key):
    with pytest.raises(InvalidInput, match=f"^{key} is missing; the needed fields are: {NEEDED}$") as caught:
        parse_price_list({k: v for k, v in EXAMPLE.items() if k != key}, version=1, published_at=PUBLISHED)
    assert (caught.value.pointer, caught.value.code) == (f"/{key}", "missing_field")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all that is in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_json_in_any_place_is_read_or_refused_with_a_pointer(value):
    for path in places(EXAMPLE):
        changed = part = deepcopy(EXAMPLE)
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        pointer = pointer_of_refusal(changed)
        assert pointer is None or pointer.startswith(f"/{path[0]}")


def pointer_of_refusal(document: Any) -> str | None:
    try:
        parse_price_list(document, version=1, published_at=PUBLISHED)
    except InvalidInput as error:
        return error.pointer or ""
    return None


@pytest.mark.parametrize("document", [None, [], "EUR", 3])
def test_what_is_no_object_is_refused(document):
    with pytest.raises(InvalidInput, match="^the price list is .* give an object with currency, decimals") as caught:
        parse_price_list(document, version=1, published_at=PUBLISHED)
    assert caught.value.pointer == ""


def test_all_lists_of_a_site_have_one_currency():
    check_currency(a_list(2), a_list())
    for changes, sentence in (
        ({"currency": "USD"}, "currency is 'USD', which is invalid; give EUR, which all price lists here have"),
        ({"decimals": 3}, "decimals is '3', which is invalid; give 2, which all price lists here have"),
    ):
        with pytest.raises(InvalidInput) as caught:
            check_currency(a_list(2, **changes), a_list())
        assert caught.value.message == sentence
        assert caught.value.pointer == f"/{next(iter(changes))}"


@pytest.mark.parametrize(
    ("measure", "kind"),
    [("host", "host"), ("vcpu", "host"), ("card", "host"), ("gigabyte", "volume"), ("network",) * 2],
)
def test_a_requirement_on_a_private_property_is_refused(measure, kind):
    prices = a_list(prices=[a_price(), a_price(sku="b", measure=measure, requirement=["not", ["==", "$rack", "7"]])])
    check_privacy(prices, {})
    check_privacy(prices, {kind: ["other"], "other": ["rack"]})
    with pytest.raises(InvalidInput) as caught:
        check_privacy(prices, {kind: ["rack"]})
    assert caught.value.pointer == "/prices/1/requirement"
    assert caught.value.message.startswith(
        "prices[1].requirement uses the property rack, which is private, and all mem"
    )


def test_the_latest_valid_list_counts_of_those_that_were_published_and_not_replaced():
    def at(day: int) -> datetime:
        return datetime(2030, 4, day, tzinfo=UTC)

    def published(version: int, day: int, valid_from: int) -> PriceList:
        return a_list(version, at(day), valid_from=at(valid_from).isoformat())

    lists = [published(1, 1, 1), published(2, 2, 20), published(3, 4, 10)]

    def version(booked: int, day: int) -> int | None:
        found = find_list(lists, at(booked), at(day))
        return None if found is None else found.version

    assert find_list(lists, at(1).replace(month=3), at(25)) is None, "none was published"
    assert [version(1, day) for day in (1, 25)] == [1, 1]
    assert [version(2, day) for day in (19, 20)] == [1, 2]
    assert [version(4, day) for day in (9, 10, 25)] == [1, 3, 3], "the third has replaced the second"
    assert find_list(lists[1:], at(4), at(5)) is None, "none is valid"


def test_a_day_alone_begins_at_midnight_of_the_zone_of_the_list():
    assert a_list(valid_from="2030-04-01").valid_from == datetime(2030, 3, 31, 22, tzinfo=UTC)
    assert a_list(valid_from="2030-04-01", time_zone="UTC").valid_from == datetime(2030, 4, 1, tzinfo=UTC)
    error = refusal(valid_from="2030-02-30")
    assert error.pointer == "/valid_from"
