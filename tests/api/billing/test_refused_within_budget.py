# SPDX-License-Identifier: Apache-2.0
"""Of a lease of fixed dates that a budget denies, the refusal has what is free and would be granted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.limits import MaxUnitsFilter
from blazar.enforcement.spend import SpendFilter
from blazar.manager.common.settings import Settings
from blazar.model.billing.charges import NANO
from tests.api.billing.test_fits_within_limits import PRICES, book, hosts
from tests.api.billing.test_prices import MEMBER, a_lease, ask
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.statements import counted
from tests.world import NOON, World, a_host

DAY = timedelta(days=1)
MEMBER_OF_1_0 = {key: value for key, value in MEMBER.items() if key != "OpenStack-API-Version"}
MAY = datetime.fromisoformat("2030-05-01T00:00:00Z")
BUDGETS = {
    "hours": ResourceHoursFilter({"host": 100}, PeriodCalendar()),
    "money": SpendFilter(100 * NANO),
}


@pytest.fixture(params=BUDGETS)
def http(request, engine):
    """A member has 40 of 100 left in April, in hours or money; others have all hosts on the first two days of May."""
    world = World(engine, hosts=4, filters=[BUDGETS[request.param]], exempt=["others"])
    publish(world, **PRICES)
    world.lease(a_host(2), start=DAY, hours=30)
    world.lease(a_host(4), start=MAY - NOON, hours=48, project="others")
    return client_of(app_of(world.manager))


def refuse(http, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the error with which a lease is refused, tried and booked alike."""
    dry, made = (ask(http, f"/v1/leases{query}", wanted) for query in ("?dry_run=true", ""))
    assert (dry.status_code, made.status_code) == (403, 403)
    assert dry.json["errors"][0]["data"] == made.json["errors"][0]["data"]
    assert dry.json["errors"][0]["detail"] == made.json["errors"][0]["detail"]
    return made.json["errors"][0]


def test_the_next_month_fewer_and_shorter_are_offered_where_they_are_free(http):
    wanted = a_lease(NOON + 5 * DAY, 20, reservations=hosts(3))
    error = refuse(http, wanted)
    offers = {one["change"]: one for one in error["data"]["alternatives"]}
    assert offers["time"]["start_date"] == "2030-05-03T00:00:00Z"
    assert offers["count"]["reservations"] == [{"min": 2, "max": 2}]
    assert offers["duration"]["end_date"] == "2030-04-07T01:20:00Z"
    assert error["detail"].endswith("What is free and within all limits: a start at 2030-05-03 00:00 UTC.")
    for offer in offers.values():
        assert book(http, wanted, offer)["price"]["amount"] == offer["price"]


def test_what_another_limit_denies_is_not_offered(engine):
    world = World(engine, hosts=4, filters=[ResourceHoursFilter({"host": 100}, PeriodCalendar()), MaxUnitsFilter(2)])
    world.lease(a_host(1), start=10 * DAY, hours=20)
    world.lease(a_host(2), start=MAY - NOON, hours=5)
    http = client_of(app_of(world.manager))
    wanted = a_lease(NOON + DAY, 45, reservations=hosts(2))
    error = refuse(http, wanted)
    offers = {one["change"]: one for one in error["data"]["alternatives"]}
    assert offers.keys() == {"time", "count", "duration"}
    assert offers["time"]["start_date"] == "2030-05-01T05:00:00Z"
    for offer in offers.values():
        book(http, wanted, offer)


def test_nothing_dearer_than_the_maximum_is_offered(engine):
    world = World(engine, hosts=4, filters=[ResourceHoursFilter({"host": 10}, PeriodCalendar())])
    publish(world, **PRICES)
    publish(world, **{**PRICES, "valid_from": "2030-05-01T00:00:00Z", "prices": [
        {"sku": "host", "measure": "host", "per_hour": "9.00"}]})  # fmt: skip
    http = client_of(app_of(world.manager))
    world.lease(a_host(), start=DAY, hours=8)
    wanted = a_lease(NOON + 5 * DAY, 4, reservations=hosts(1), max_price="4.00")
    offers = {one["change"]: one for one in refuse(http, wanted)["data"]["alternatives"]}
    assert offers.keys() == {"duration"}
    dear = {one["change"]: one for one in refuse(http, {**wanted, "max_price": "40.00"})["data"]["alternatives"]}
    assert dear.keys() == {"time", "duration"}
    book(http, {**wanted, "max_price": "40.00"}, dear["time"])


def test_where_refusals_are_not_explained_nothing_is_searched(sqlite):
    counts = []
    for explains in (True, False):
        filters = [ResourceHoursFilter({"host": 10}, PeriodCalendar())]
        world = World(sqlite, hosts=2, filters=filters, settings=Settings(explain_refusals=explains), register=explains)
        http = client_of(app_of(world.manager))
        with counted(sqlite) as statements:
            answer = ask(http, "/v1/leases", a_lease(NOON + DAY, 20, reservations=hosts(1)))
        assert ("alternatives" in answer.json["errors"][0]["data"]) is explains
        counts.append(statements.count)
    assert counts[0] > counts[1]


def test_clients_of_1_0_read_it_in_the_sentence(http):
    host = {
        "resource_type": "physical:host",
        "min": 3,
        "max": 3,
        "hypervisor_properties": "",
        "resource_properties": "",
    }
    dates = {"start_date": "2030-04-06 12:00", "end_date": "2030-04-07 08:00"}
    body = {"name": "old", **dates, "reservations": [host], "events": []}
    answer = http.post("/v1/leases", json=body, headers=MEMBER_OF_1_0)
    assert answer.status_code == 403, answer.text
    assert "a start at 2030-05-03 00:00 UTC" in answer.json["error_message"]
