# SPDX-License-Identifier: Apache-2.0
"""A change that would make a lease too dear is refused with what would not: it is accepted, and a step more is not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from blazar.enforcement.spend import SpendFilter
from blazar.model.base.clock import zulu
from blazar.model.billing.charges import NANO
from tests.api.billing.test_prices import PRICES, a_lease, ask, change, hosts, show
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON, World

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=6)


@pytest.fixture
def http(world):
    publish(world, **PRICES)
    return client_of(app_of(world.manager))


def refuse(http, lease: dict[str, Any], **body: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the sentence and the fits with which a change is refused, tried and made."""
    dry, made = (change(http, lease, dry_run=is_dry, **body) for is_dry in (True, False))
    assert (dry.status_code, made.status_code) == (409, 409)
    assert dry.json["errors"][0]["data"] == made.json["errors"][0]["data"]
    return made.json["errors"][0]["detail"], made.json["errors"][0]["data"]["fits"]


@pytest.mark.parametrize("hours", [0, 49])
def test_for_a_later_end_that_costs_too_much_an_earlier_one_is_offered(http, world, hours):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    world.run_to(NOON + hours * HOUR)
    sentence, (fit,) = refuse(http, lease, end_date=zulu(NOON + 72 * HOUR), max_price="15.00")
    end = datetime.fromisoformat(fit["end_date"])
    assert (fit["change"], fit["start_date"], fit["price"]) == ("duration", zulu(NOON + 48 * HOUR), "15.00")
    assert sentence.endswith(
        f"at most 15.00 are allowed; {(end - NOON - 48 * HOUR) // MINUTE // 60} hours 15 minutes cost 15.00"
    )
    one_more = {"end_date": zulu(end + MINUTE), "max_price": "15.00"}
    assert change(http, lease, **one_more).status_code == 409
    taken = change(http, lease, end_date=fit["end_date"], max_price="15.00")
    assert taken.json["lease"]["price"]["amount"] == "15.00"


def test_for_more_hosts_that_cost_too_much_fewer_are_offered(http):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    sentence, (fit,) = refuse(http, lease, reservations=hosts(lease, 6), max_price="22.00")
    assert (fit["change"], fit["reservations"], fit["price"]) == ("count", hosts(lease, 4), "21.00")
    assert sentence == (
        "max_price: the lease would cost 29.00 EUR, 16.00 more than now, and at most 22.00 are allowed; with 4 hosts "
        "it costs 21.00"
    )
    assert change(http, lease, reservations=hosts(lease, 5), max_price="22.00").status_code == 409
    assert change(http, lease, reservations=fit["reservations"], max_price="22.00").status_code == 200


def test_where_no_part_of_a_change_costs_less_nothing_is_offered(http):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    sentence, fits = refuse(http, lease, end_date=zulu(NOON + 72 * HOUR), max_price="13.00")
    assert (sentence.endswith("allow more, or change less"), fits) == (True, [])
    assert show(http, lease).json["lease"]["price"]["amount"] == "13.00"


def limited(a_world, most: int) -> Any:
    """Return a client of a service in which a project may have to pay so much for a month."""
    world = a_world(hosts=6, filters=[SpendFilter(most * NANO)])
    publish(world, **PRICES)
    return client_of(app_of(world.manager))


def deny(http, lease: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Return the error with which a change is denied, tried and made."""
    dry, made = (change(http, lease, dry_run=is_dry, **body) for is_dry in (True, False))
    assert (dry.status_code, made.status_code) == (403, 403)
    assert dry.json["errors"][0]["detail"] == made.json["errors"][0]["detail"]
    assert dry.json["errors"][0]["data"] == made.json["errors"][0]["data"]
    return made.json["errors"][0]


def test_for_a_later_end_that_the_budget_does_not_allow_an_earlier_one_is_offered(a_world):
    http = limited(a_world, 15)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    error = deny(http, lease, end_date=zulu(NOON + 72 * HOUR))
    assert error["data"]["fits"] == {"duration_seconds": 5 * 3600 + 15 * 60}
    assert error["detail"].endswith("are left; ask for at most 5 hours 15 minutes in all, or for another time")
    end = NOON + 53 * HOUR + 15 * MINUTE
    assert change(http, lease, end_date=zulu(end + MINUTE)).status_code == 403
    assert change(http, lease, end_date=zulu(end)).status_code == 200


def test_for_more_hosts_than_the_budget_allows_fewer_are_offered(a_world):
    http = limited(a_world, 22)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    error = deny(http, lease, reservations=hosts(lease, 6))
    assert error["data"]["fits"] == {"amount": 4}
    assert error["detail"].endswith("are left; ask for at most 4 hosts, or for another time")
    assert change(http, lease, reservations=hosts(lease, 5)).status_code == 403
    assert change(http, lease, reservations=hosts(lease, 4)).status_code == 200


def test_where_the_budget_allows_no_part_of_a_change_nothing_is_offered(a_world):
    http = limited(a_world, 13)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    error = deny(http, lease, end_date=zulu(NOON + 72 * HOUR))
    assert error["data"]["fits"] == {}
    assert error["detail"].endswith("0.00 are left; ask for less, or for another time")


def test_a_lease_that_would_cost_as_much_as_now_says_so(http):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    sentence, fits = refuse(http, lease, name="another", max_price="1.00")
    assert sentence.startswith("max_price: the lease would cost 13.00 EUR, as much as now, and at most 1.00 are")
    assert fits == []
