# SPDX-License-Identifier: Apache-2.0
"""What is offered in place of a lease that is too dear is booked when it is asked for, whatever else limits it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from blazar.enforcement.limits import MaxLeaseDurationFilter, StartWindowFilter
from blazar.enforcement.spend import SpendFilter
from blazar.model.base.clock import zulu
from blazar.model.base.errors import EnforcementUnavailable
from blazar.model.billing.charges import NANO
from tests.api.billing.test_prices import MEMBER, a_lease, ask
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON

HOUR = timedelta(hours=1)
DEAR_DAYS = [{"days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"], "from": "08:00", "to": "20:00", "factor": "2"}]
PRICES = {"prices": [{"sku": "host", "measure": "host", "per_hour": "1.00"}], "time_zone": "UTC"}
START = NOON + 48 * HOUR
LAST_DAYS = datetime.fromisoformat("2030-04-27T00:00:00Z")


def serve(a_world, *filters: Any, **prices: Any) -> Any:
    """Return a client of a service with six hosts in which these filters count."""
    world = a_world(hosts=6, filters=filters)
    publish(world, **{**PRICES, **prices})
    return client_of(app_of(world.manager))


def hosts(count: int) -> list[dict[str, Any]]:
    return [{"resource_type": "physical:host", "min": count, "max": count}]


def refuse(http, wanted: dict[str, Any], status: int) -> dict[str, Any]:
    """Return the error with which a lease is refused, tried and booked."""
    dry, made = (ask(http, f"/v1/leases{query}", wanted) for query in ("?dry_run=true", ""))
    assert (dry.status_code, made.status_code) == (status, status)
    assert dry.json["errors"][0]["data"] == made.json["errors"][0]["data"]
    return made.json["errors"][0]


def book(http, wanted: dict[str, Any], fit: dict[str, Any]) -> dict[str, Any]:
    """Book what is offered in place of a lease, delete it, and return it."""
    (asked,) = wanted["reservations"]
    (counts,) = fit.get("reservations", [{}])
    dates = {key: fit[key] for key in ("start_date", "end_date")}
    made = ask(http, "/v1/leases", {**wanted, **dates, "reservations": [{**asked, **counts}]})
    assert made.status_code == 201, made.json
    lease = made.json["lease"]
    http.delete(f"/v1/leases/{lease['id']}", headers=MEMBER)
    return lease


@pytest.mark.parametrize("limit", [7, 11])
def test_each_fit_of_a_maximum_is_booked_also_where_less_is_left_of_the_budget(a_world, limit):
    http = serve(a_world, SpendFilter(limit * NANO), hours=DEAR_DAYS)
    for start in (START, LAST_DAYS + 10 * HOUR, LAST_DAYS + 94 * HOUR):
        for most in ("5.00", "11.99"):
            wanted = a_lease(start, 4, reservations=hosts(3), max_price=most)
            fits = refuse(http, wanted, 409)["data"]["fits"]
            assert "duration" in {fit["change"] for fit in fits}
            for fit in fits:
                assert book(http, wanted, fit)["price"]["amount"] == fit["price"]


def test_of_a_budget_below_a_maximum_as_much_is_offered_as_the_budget_has(a_world):
    http = serve(a_world, SpendFilter(100 * NANO))
    wanted = a_lease(START, 20, reservations=hosts(6), max_price="105.00")
    error = refuse(http, wanted, 409)
    assert [(fit["change"], fit["price"]) for fit in error["data"]["fits"]] == [
        ("duration", "100.00"),
        ("count", "100.00"),
    ]
    assert error["detail"].endswith("16 hours 40 minutes cost 100.00, with 5 hosts it costs 100.00")


def test_where_this_month_has_too_little_left_a_start_in_two_months_is_offered(a_world):
    http = serve(a_world, SpendFilter(36 * NANO), hours=DEAR_DAYS)
    for taken in (START, START + 30 * 24 * HOUR):
        assert ask(http, "/v1/leases", a_lease(taken + 8 * HOUR, 10, reservations=hosts(3))).status_code == 201
    wanted = a_lease(START + 24 * HOUR, 10, reservations=hosts(3), max_price="40.00")
    fits = {fit["change"]: fit for fit in refuse(http, wanted, 409)["data"]["fits"]}
    assert datetime.fromisoformat(fits["time"]["end_date"]).month == 6
    for fit in fits.values():
        book(http, wanted, fit)


@pytest.mark.parametrize("rule", [MaxLeaseDurationFilter(2 * HOUR), StartWindowFilter(None, 54 * HOUR)])
def test_what_another_limit_would_deny_is_not_offered(a_world, rule):
    http = serve(a_world, rule, hours=DEAR_DAYS)
    hours = 2 if isinstance(rule, MaxLeaseDurationFilter) else 4
    wanted = a_lease(START, hours, reservations=hosts(3), max_price=f"{3 * hours + 1}.00")
    fits = refuse(http, wanted, 409)["data"]["fits"]
    assert fits
    for fit in fits:
        book(http, wanted, fit)


def test_a_start_that_the_budget_would_allow_is_not_advised_if_it_costs_more_than_the_maximum(a_world):
    """A month later the hours of the day cost twice as much."""
    world = a_world(hosts=6, filters=[SpendFilter(20 * NANO)])
    publish(world, **PRICES)
    may = "2030-05-01T00:00:00Z"
    publish(world, **{**PRICES, "prices": [{"sku": "host", "measure": "host", "per_hour": "1.50"}], "valid_from": may})
    http = client_of(app_of(world.manager))
    assert ask(http, "/v1/leases", a_lease(START, 5, reservations=hosts(3))).status_code == 201
    wanted = a_lease(START + 24 * HOUR, 4, reservations=hosts(3), max_price="12.00")
    assert "start_date" not in refuse(http, wanted, 403)["data"]["fits"]
    free = refuse(http, {**wanted, "max_price": "18.00"}, 403)["data"]["fits"]
    assert free["start_date"] > "2030-04-30"
    book(http, wanted | {"max_price": "18.00"}, free)


def test_a_refusal_stands_without_fits_if_the_limits_cannot_be_read(a_world):
    class Silent(SpendFilter):
        def spend_limit(self, project_id: str) -> None:
            raise EnforcementUnavailable("Keystone does not answer")

    http = serve(a_world, Silent(None))
    refused = ask(http, "/v1/leases", a_lease(START, 4, reservations=hosts(3), max_price="5.00"))
    assert (refused.status_code, refused.json["errors"][0]["data"]["fits"]) == (409, [])


@pytest.mark.parametrize("left", [4, 7, 30])
def test_each_opening_to_which_nobody_objects_is_booked_and_so_is_each_alternative(a_world, left):
    http = serve(a_world, SpendFilter(left * NANO), hours=DEAR_DAYS)
    assert ask(http, "/v1/leases", a_lease(START + 2 * HOUR, 1, reservations=hosts(1))).status_code == 201
    wanted = a_lease(START, 4, reservations=hosts(1))
    for dates in (
        {"start_date": wanted["start_date"], "end_date": wanted["end_date"]},
        {"duration": "PT4H", "earliest": wanted["start_date"], "latest": zulu(START + 40 * 24 * HOUR)},
    ):
        question = {"reservations": hosts(1), **dates}
        found = ask(http, "/v1/availability", question).json["availability"]
        granted = [one for one in found["openings"] if not one["refusals"]]
        for one in granted:
            end = datetime.fromisoformat(one["start_date"]) + 4 * HOUR
            book(http, wanted, {"start_date": one["start_date"], "end_date": zulu(end)})
        for one in found["alternatives"]:
            book(http, wanted, one)
        assert granted or found["alternatives"] or "duration" not in dates
