# SPDX-License-Identifier: Apache-2.0
"""What leases would cost that are split, merged or exchange hosts is said by a dry run, and by nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.api.billing.test_prices import PRICES, TWO, a_lease, ask, show
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON, World

HOUR = timedelta(hours=1)


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


@pytest.fixture
def http(world):
    publish(world, **PRICES)
    return client_of(app_of(world.manager))


def operate(http, lease: dict[str, Any], what: str, body: Any) -> list[dict[str, Any]]:
    """Return the prices that a dry run says, after comparing them with what is done then."""
    path, before = f"/v1/leases/{lease['id']}/{what}", show(http, lease).json["lease"]
    dry = ask(http, f"{path}?dry_run=true", body).json["leases"]
    assert show(http, lease).json["lease"] == before
    done = ask(http, path, body)
    assert done.status_code in (200, 201), done.json
    prices = [one["price"] for one in dry]
    without = [{key: value for key, value in price.items() if key != "difference"} for price in prices]
    assert without == [one["price"] for one in done.json["leases"]]
    return prices


def amounts(prices: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(price["amount"], price["difference"]) for price in prices]


def book(http, **more: Any) -> dict[str, Any]:
    made = ask(http, "/v1/leases", a_lease(**more))
    assert made.status_code == 201, made.json
    return made.json["lease"]


def test_both_parts_of_a_lease_that_is_split_have_a_price_and_cost_no_more_together(http):
    lease = book(http)
    part = {"reservations": [{"id": lease["reservations"][0]["id"], "count": 1}]}
    assert amounts(operate(http, lease, "split", part)) == [("9.00", "0.00"), ("4.00", "0.00")]


def test_of_a_lease_that_is_split_in_use_what_was_charged_stays(http, world):
    lease = book(http, start=NOON + HOUR, reservations=[*TWO, *TWO])
    world.run_to(NOON + 2 * HOUR)
    part = {"reservations": [{"id": lease["reservations"][1]["id"]}]}
    prices = operate(http, lease, "split", part)
    assert [price["charged"] for price in prices] == ["9.00", "0.00"]
    assert {price["difference"] for price in prices} == {"0.00"}


def test_two_leases_that_become_one_pay_one_fee(http):
    one, other = book(http), book(http, reservations=[{**TWO[0], "min": 1, "max": 1}])
    assert amounts(operate(http, one, "merge", {"with": other["id"]})) == [("17.00", "-5.00")]


def test_without_a_list_no_part_has_a_price(world):
    http = client_of(app_of(world.manager))
    lease = book(http)
    part = {"reservations": [{"id": lease["reservations"][0]["id"], "count": 1}]}
    dry = ask(http, f"/v1/leases/{lease['id']}/split?dry_run=true", part).json["leases"]
    assert [one["price"] for one in dry] == [None, None]
