# SPDX-License-Identifier: Apache-2.0
"""The most that leases may cost that recur, or that wait for their turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.enforcement.spend import SpendFilter
from blazar.model.base.clock import zulu
from blazar.model.billing.charges import NANO
from tests.api.billing.test_prices import MEMBER, PRICES, TWO, a_lease, ask, show
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON, World

HOUR = timedelta(hours=1)
MEMBER_1_1 = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
ALL = [{**TWO[0], "min": 3, "max": 3}]
# The first day is a Friday, on which each hour costs more, and the others are of the weekend: 13.00, 11.40, 11.40.
COURSE = {
    "name": "course",
    "rule": "FREQ=DAILY;COUNT=3",
    "start": "2030-04-05T12:00",
    "duration": "PT4H",
    "reservations": TWO,
}
TOO_DEAR = "max_price: the lease would cost 13.00 EUR, and at most 12.00 are allowed; allow more, ask for less, or "


@pytest.fixture
def http(world: World):
    publish(world, **PRICES)
    return client_of(app_of(world.manager))


def change_series(http, made: dict[str, Any], **body: Any) -> Any:
    return http.put(f"/v1/series/{made['id']}", json=body, headers=MEMBER_1_1)


def test_a_series_of_which_one_lease_costs_too_much_is_not_booked(http, world):
    refused = ask(http, "/v1/series", {**COURSE, "max_price": "12.00"})
    (error,) = refused.json["errors"]
    assert (refused.status_code, error["code"]) == (409, "reservation.price_exceeds_maximum")
    assert (error["pointer"], error["detail"]) == ("/max_price", f"{TOO_DEAR}for as many as fit with fit")
    assert world.store.leases.of_project("physics") == ()


def test_of_a_series_that_takes_what_fits_the_dear_ones_are_left_out(http):
    body = {**COURSE, "max_price": "12.00", "fit": "as_many"}
    dry = ask(http, "/v1/series?dry_run=true", body).json["series"]["occurrences"]
    made = ask(http, "/v1/series", body).json["series"]
    assert made["max_price"] == "12.00"
    assert [one["state"] for one in dry] == ["unfit", "planned", "planned"]
    assert [one["state"] for one in made["occurrences"]] == ["unfit", "booked", "booked"]
    assert dry[0]["reason"] == made["occurrences"][0]["reason"]
    assert dry[0]["reason"].startswith(TOO_DEAR)


def test_a_series_that_is_changed_keeps_its_maximum_until_it_is_given_another_one(http):
    made = ask(http, "/v1/series", {**COURSE, "max_price": "13.00"}).json["series"]
    refused = change_series(http, made, reservations=ALL)
    assert (refused.status_code, refused.json["errors"][0]["data"]["price"]) == (409, "17.00")
    more = change_series(http, made, reservations=ALL, max_price="17.00")
    assert (more.status_code, more.json["series"]["max_price"]) == (200, "17.00")
    # What is booked stays, whatever the maximum is then.
    less = change_series(http, more.json["series"], max_price="1.00")
    assert [one["price"]["amount"] for one in less.json["series"]["occurrences"]] == ["17.00", "14.60", "14.60"]
    assert change_series(http, less.json["series"], max_price=None).json["series"]["max_price"] is None


def costs(answer: Any) -> list[str]:
    return [one["price"]["amount"] for one in answer.json["series"]["occurrences"]]


def try_change(http, made: dict[str, Any], **body: Any) -> Any:
    return http.put(f"/v1/series/{made['id']}?dry_run=true", json=body, headers=MEMBER_1_1)


@pytest.mark.parametrize("body", [{"duration": "PT6H"}, {"reservations": ALL}, {"start": "2030-04-05T17:00"}])
def test_a_dry_run_of_a_change_of_a_series_says_what_each_lease_costs_then(http, body):
    made = ask(http, "/v1/series", COURSE)
    tried = try_change(http, made.json["series"], **body)
    assert costs(tried) != costs(made)
    assert costs(http.get(f"/v1/series/{made.json['series']['id']}", headers=MEMBER_1_1)) == costs(made)
    assert costs(tried) == costs(change_series(http, made.json["series"], **body))


def test_a_dry_run_of_a_change_of_a_series_is_denied_as_the_change_is(a_world):
    world = a_world(filters=[SpendFilter(40 * NANO)])
    http = client_of(app_of(world.manager))
    publish(world, **PRICES)
    made = ask(http, "/v1/series", COURSE).json["series"]
    for body in ({"duration": "PT6H"}, {"reservations": ALL}):
        tried, done = try_change(http, made, **body), change_series(http, made, **body)
        assert (tried.status_code, done.status_code) == (403, 403)
        assert tried.json["errors"][0]["detail"] == done.json["errors"][0]["detail"]


def waiting(http, most: str, **more: Any) -> Any:
    return ask(http, "/v1/leases", a_lease(max_price=most, wait={"until": zulu(NOON + 72 * HOUR)}, **more))


def run_list(world: World, hours: float) -> None:
    world.waits = True
    world.run_to(NOON + hours * HOUR)
    world.manager.waiting_list.run_once()


def test_one_that_could_be_booked_and_costs_too_much_does_not_wait(http):
    refused = waiting(http, "12.00")
    assert (refused.status_code, refused.json["errors"][0]["code"]) == (409, "reservation.price_exceeds_maximum")


def test_one_that_waits_goes_on_waiting_while_its_turn_costs_too_much(http, world):
    taken = ask(http, "/v1/leases", a_lease(reservations=ALL)).json["lease"]
    lease = waiting(http, "12.00").json["lease"]
    assert (lease["status"], lease["wait"]["max_price"]) == ("WAITING", "12.00")
    run_list(world, 1)
    http.delete(f"/v1/leases/{taken['id']}", headers=MEMBER)
    run_list(world, 2)
    waits = show(http, lease).json["lease"]
    assert (waits["status"], waits["wait"]["reason"]) == (
        "WAITING",
        "from 2030-04-03 12:00 UTC on it would cost 13.00 EUR, and at most 12.00 are allowed (max_price)",
    )
    # In the evening an hour costs less.
    run_list(world, 54)
    booked = show(http, lease).json["lease"]
    assert (booked["status"], booked["price"]["amount"]) == ("ACTIVE", "11.40")


def test_one_that_costs_no_more_is_booked_at_its_turn(http, world):
    taken = ask(http, "/v1/leases", a_lease(reservations=ALL)).json["lease"]
    lease = waiting(http, "13.00").json["lease"]
    http.delete(f"/v1/leases/{taken['id']}", headers=MEMBER)
    run_list(world, 1)
    assert show(http, lease).json["lease"]["price"]["amount"] == "13.00"
