# SPDX-License-Identifier: Apache-2.0
"""A change that is refused says what would be granted in its place: each offer is taken as it is, and costs that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.limits import MaxLeaseDurationFilter
from blazar.enforcement.spend import SpendFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.clock import zulu
from blazar.model.billing.charges import NANO
from tests.api.billing.test_fits_of_changes import deny
from tests.api.billing.test_prices import a_lease, ask, change, hosts
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
START = NOON + 48 * HOUR
MAY = datetime(2030, 5, 1, tzinfo=UTC)
PRICES = {"prices": [{"sku": "host", "measure": "host", "per_hour": "1.00"}]}
BUDGETS = {
    "hours": lambda: ResourceHoursFilter({"host": 100}, PeriodCalendar()),
    "money": lambda: SpendFilter(100 * NANO),
}


def serve(world: World) -> Any:
    publish(world, **PRICES)
    return client_of(app_of(world.manager))


def offers_of(error: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a refusal offers, by what it changes."""
    return {one["change"]: one for one in error["data"].get("alternatives", ())}


def take(http, lease: dict[str, Any], body: dict[str, Any], offer: dict[str, Any]) -> None:
    """Make the change that is offered in place of another one, which costs what it says; and undo it."""
    dates = {"end_date": offer["end_date"]} if offer["change"] != "count" else {}
    dates |= {"start_date": offer["start_date"]} if offer["change"] == "time" else {}
    counts = {"reservations": offer["reservations"]} if "reservations" in offer else {}
    taken = change(http, lease, **{**body, **dates, **counts})
    assert taken.status_code == 200, taken.json
    assert taken.json["lease"]["price"]["amount"] == offer["price"]
    before = {"end_date": lease["end_date"]} | ({"start_date": lease["start_date"]} if "start_date" in dates else {})
    assert change(http, lease, **before, reservations=hosts(lease, 2)).status_code == 200


@pytest.fixture(params=BUDGETS)
def http(request, engine):
    """A member has 80 of 100 left in April, in hours or money; others have 3 of 4 hosts in the first hours of May."""
    world = World(engine, hosts=4, filters=[BUDGETS[request.param]()], exempt=["others"])
    http = serve(world)
    world.lease(a_host(1), start=HOUR, hours=20)
    world.lease(a_host(3), start=MAY - NOON, hours=30, project="others")
    return http


def test_of_a_longer_lease_than_a_budget_allows_an_earlier_end_and_the_next_month_are_offered(http):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    body = {"end_date": zulu(START + 45 * HOUR)}
    error = deny(http, lease, **body)
    offers = offers_of(error)
    assert (offers["duration"]["end_date"], offers["duration"]["price"]) == (zulu(START + 40 * HOUR), "80.00")
    assert (offers["time"]["start_date"], offers["time"]["price"]) == (zulu(MAY + 30 * HOUR), "90.00")
    assert error["data"]["as_of"] == zulu(NOON)
    assert "What is free and within all limits: a start at 2030-05-02 06:00 UTC" in error["detail"]
    for offer in offers.values():
        take(http, lease, body, offer)


def test_of_more_hosts_than_a_budget_allows_fewer_and_the_next_month_are_offered(http):
    lease = ask(http, "/v1/leases", a_lease(hours=24)).json["lease"]
    body = {"reservations": hosts(lease, 4)}
    offers = offers_of(deny(http, lease, **body))
    assert (offers["count"]["reservations"], offers["count"]["price"]) == (hosts(lease, 3), "72.00")
    assert (offers["time"]["start_date"], offers["time"]["price"]) == (zulu(MAY + 30 * HOUR), "96.00")
    for offer in offers.values():
        take(http, lease, body, offer)


@pytest.mark.parametrize(
    ("budget", "most", "offered"),
    [
        (100, None, {"duration": "24.00", "time": "32.00", "count": "16.00"}),
        (30, None, {"duration": "24.00", "count": "16.00"}),
        (100, "20.00", {"count": "16.00"}),
        (10, None, {}),
    ],
)
def test_what_is_free_and_cannot_be_paid_for_is_not_offered(engine, budget, most, offered):
    world = World(engine, hosts=4, filters=[SpendFilter(budget * NANO)], exempt=["others"])
    http = serve(world)
    world.lease(a_host(3), start=60 * HOUR, hours=5, project="others")
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    body = {"end_date": zulu(START + 16 * HOUR), **({"max_price": most} if most else {})}
    refused = change(http, lease, **body)
    assert refused.status_code == 409
    offers = offers_of(refused.json["errors"][0])
    assert {name: offer["price"] for name, offer in offers.items()} == offered
    for offer in offers.values():
        take(http, lease, body, offer)


def test_what_another_limit_denies_is_not_offered(engine):
    filters = [SpendFilter(20 * NANO), MaxLeaseDurationFilter(8 * HOUR)]
    http = serve(World(engine, hosts=6, filters=filters))
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    error = deny(http, lease, end_date=zulu(NOON + 60 * HOUR))
    offers = offers_of(error)
    assert offers["duration"]["end_date"] == zulu(NOON + 56 * HOUR)
    take(http, lease, {}, offers["duration"])


def test_a_lease_in_use_is_not_offered_another_start(engine):
    world = World(engine, hosts=4, filters=[BUDGETS["money"]()])
    http = serve(world)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    world.run_to(NOON + 49 * HOUR)
    error = deny(http, lease, end_date=zulu(NOON + 200 * HOUR))
    assert offers_of(error).keys() == {"duration"}
    take(http, lease, {}, offers_of(error)["duration"])


def test_where_refusals_are_not_explained_nothing_is_tried(engine):
    world = World(engine, hosts=4, filters=[BUDGETS["money"]()], settings=Settings(explain_refusals=False))
    http = serve(world)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    error = deny(http, lease, end_date=zulu(NOON + 200 * HOUR))
    assert "alternatives" not in error["data"]
    assert error["data"]["fits"] == {"duration_seconds": 50 * 3600}
