# SPDX-License-Identifier: Apache-2.0
"""What is offered in place of something that does not fit says what it costs: as a dry run of it does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.model.base.clock import zulu
from tests.api.billing.test_prices import PRICES, a_lease, ask
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.statements import counted
from tests.world import NOON, World

HOUR = timedelta(hours=1)
BIG = {"resource_type": "physical:host", "min": 1, "max": 1}


def hosts(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{**BIG, "min": count, "max": count, **more}]


@pytest.fixture
def http(world: World):
    """Of three hosts one is taken in the last of the hours that are asked for."""
    publish(world, **PRICES)
    http = client_of(app_of(world.manager))
    assert ask(http, "/v1/leases", a_lease(NOON + 51 * HOUR, 1, reservations=hosts(1))).status_code == 201
    return http


def refused(http, **more: Any) -> dict[str, dict[str, Any]]:
    answer = ask(http, "/v1/leases", a_lease(**more))
    assert answer.status_code == 409
    return {one["change"]: one for one in answer.json["errors"][0]["data"]["alternatives"]}


def test_each_alternative_says_its_price_and_that_is_what_it_costs(http):
    found = refused(http, reservations=hosts(3))
    assert set(found) == {"time", "count", "duration"}
    for one in found.values():
        asked = {key: one[key] for key in ("start_date", "end_date")}
        counts = one.get("reservations", hosts(3))
        dry = ask(http, "/v1/leases?dry_run=true", {**a_lease(), **asked, "reservations": [{**BIG, **counts[0]}]})
        assert (one["price"], one["currency"]) == (dry.json["lease"]["price"]["amount"], "EUR")


def test_what_fits_without_a_part_of_the_requirement_says_its_price(http):
    big = hosts(1, hypervisor_properties=["and", [">=", "$vcpus", "1"], ["==", "$hypervisor_type", "none"]])
    assert refused(http, start=NOON + 96 * HOUR, reservations=big)["requirement"]["price"] == "9.00"


def test_an_answer_about_free_time_has_the_prices_too_and_asks_nothing_more_for_them(http, world):
    window = {"start_date": zulu(NOON + 48 * HOUR), "end_date": zulu(NOON + 52 * HOUR)}
    # The first question reads what the leases of before have changed.
    ask(http, "/v1/availability", {"reservations": hosts(3), **window})
    with counted(world.engine) as with_prices:
        found = ask(http, "/v1/availability", {"reservations": hosts(3), **window}).json["availability"]
    assert all("price" in one for one in found["alternatives"])
    with counted(world.engine) as without:
        ask(http, "/v1/availability", {"reservations": hosts(3), **window, "alternatives": False})
    # Whether there would be more if others got other hosts is read for alternatives, in four statements.
    assert with_prices.count == without.count + 4


def test_without_a_list_nothing_that_fits_has_a_price(world):
    http = client_of(app_of(world.manager))
    ask(http, "/v1/leases", a_lease(reservations=hosts(2)))
    assert not any("price" in one for one in refused(http, reservations=hosts(3)).values())
