# SPDX-License-Identifier: Apache-2.0
"""``lease create --max-price``: what is sent, and what a dry run says of the price."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from blazarclient.commands.prices import describe_price, list_costs
from blazarclient.library.decoding import decode
from blazarclient.library.values import Price

from tests.blazarclient.commands.conftest import NEW, URL, Run, sent

PRICE: dict[str, Any] = {
    "amount": "673.80",
    "currency": "EUR",
    "price_list": 3,
    "fee": "5.00",
    "parts": [],
    "if_cancelled": [
        {"until": "2030-04-25T08:00:00Z", "amount": "0.00"},
        {"until": "2030-05-01T08:00:00Z", "amount": "168.45"},
    ],
}


def test_a_price_is_said_with_what_a_cancellation_costs() -> None:
    told = describe_price(decode(Price, PRICE), ZoneInfo("Europe/Berlin"))
    assert told == (
        "673.80 EUR; free to cancel until 2030-04-25 10:00+02:00; 168.45 to cancel until 2030-05-01 10:00+02:00"
    )


def test_the_maximum_is_sent_as_it_is_given(run: Run, service: Any) -> None:
    run("lease", "create", "training", "--physical-reservation", "min=1", "--max-price", "640.00", "--dry-run")
    assert sent(service, "POST")[-1].json()["max_price"] == "640.00"


@pytest.mark.parametrize(
    "option",
    [
        *("--max-price", "--duration", "--start", "--end", "--before-end", "--kind", "--queue-until"),
        *("--latest-start", "--at-least", "--if-free-until"),
    ],
)
def test_an_option_that_says_nothing_books_nothing(run: Run, service: Any, option: str) -> None:
    code, _, err = run("lease", "create", "training", "--physical-reservation", "min=1", option, "")
    assert code != 0
    assert f"{option}: it is empty; give a value, or leave the option out" in err
    assert not sent(service, "POST")


def test_nothing_is_changed_and_no_series_is_booked_at_any_price(run: Run, service: Any) -> None:
    series = (
        "series",
        "create",
        "course",
        "--rule",
        "FREQ=DAILY;COUNT=2",
        "--start",
        "2030-04-01T09:00",
        "--duration",
        "4h",
    )
    for command in (("lease", "update", "1", "--name", "other"), (*series, "--physical-reservation", "min=1")):
        code, _, err = run(*command, "--max-price", " ")
        assert code != 0
        assert "--max-price: it is empty" in err
    assert not sent(service, "POST")
    assert not sent(service, "PUT")


def test_what_was_charged_of_a_price_is_said_if_anything_was() -> None:
    booked = {"amount": "13.00", "currency": "EUR", "charged": "2.00"}
    assert describe_price(decode(Price, booked), ZoneInfo("UTC")) == "13.00 EUR, of which 2.00 were charged"
    assert describe_price(decode(Price, {**booked, "charged": "0.00"}), ZoneInfo("UTC")) == "13.00 EUR"
    with_energy = describe_price(decode(Price, {**booked, "estimated": "0.90"}), ZoneInfo("UTC"))
    assert with_energy == "13.00 EUR, of which 2.00 were charged and 0.90 are for energy, by an estimate"


def test_a_list_has_prices_on_demand(run: Run, service: Any) -> None:
    leases = [
        {"id": "1", "name": "gan", "price": {"amount": "13.00", "currency": "EUR", "charged": "0.00"}},
        {"id": "2", "name": "cnn", "price": None},
    ]
    service.get(f"{URL}/leases", json={"leases": leases, "links": []}, headers=NEW)
    code, out, err = run("lease", "list", "-f", "json", "-c", "name", "-c", "price")
    assert code == 0, err
    assert json.loads(out) == [{"name": "gan", "price": "13.00 EUR"}, {"name": "cnn", "price": None}]
    assert sent(service, "GET")[-1].qs["fields"] == ["name,price"]


def test_a_quote_is_told_part_by_part() -> None:
    part = {"reservation": 0, "sku": "a100", "measure": "host", "count": 4, "hours": "17", "per_hour": "3.20"}
    quoted = {**PRICE, "parts": [{**part, "factor": "1.25", "amount": "272.00"}], "if_cancelled": []}
    told = list(list_costs(decode(Price, quoted), ZoneInfo("UTC")))
    assert told == ["673.80 EUR", "  fee: 5.00", "  a100: 4 × 17 h × 3.20 × 1.25 = 272.00"]


def test_energy_is_told_as_an_estimate() -> None:
    part = {"reservation": 0, "sku": "power", "measure": "kwh", "kwh": "14.4", "per_kwh": "0.30", "factor": "1.5"}
    quoted = {**PRICE, "parts": [{**part, "amount": "6.48"}], "if_cancelled": [], "estimated": "6.48"}
    assert list(list_costs(decode(Price, quoted), ZoneInfo("UTC"))) == [
        "673.80 EUR, of which 6.48 are for energy, by an estimate",
        "  fee: 5.00",
        "  power: 14.4 kWh × 0.30 × 1.5 = 6.48, by an estimate",
    ]


def test_the_maximum_of_a_change_is_sent_as_it_is_given(run: Run, service: Any) -> None:
    run("lease", "update", "1", "--max-price", "20.00", "--name", "other")
    assert sent(service, "PUT")[-1].json() == {"name": "other", "max_price": "20.00"}


def test_a_change_says_how_much_more_it_costs() -> None:
    more = {"amount": "17.00", "currency": "EUR", "charged": "0.00", "difference": "4.00"}
    assert describe_price(decode(Price, more), ZoneInfo("UTC")) == "17.00 EUR, 4.00 more than now"
    less = {**more, "difference": "-4.00"}
    assert describe_price(decode(Price, less), ZoneInfo("UTC")) == "17.00 EUR, 4.00 less than now"
