# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: leases that are booked to be confirmed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import token
from tests.api.leases.test_waiting import ask, fault
from tests.prices import publish
from tests.world import NOON

BY = NOON + timedelta(minutes=10)
HOST = {"resource_type": "physical:host", "min": 1}
LEASE = {
    "name": "ours",
    "start_date": "2030-04-03T12:00:00Z",
    "end_date": "+10h",
    "confirm_within": "PT10M",
    "reservations": [HOST],
}


def made(http, **more):
    answer = ask(http, body={**LEASE, **more})
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


def confirm(http, lease, **headers):
    return ask(http, path=f"/v1/leases/{lease['id']}/confirm", **headers)


def shown(http, lease):
    return ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]


def test_it_says_by_when_it_is_to_be_confirmed_and_is_firm_then(http):
    lease = made(http)
    assert (lease["status"], lease["confirm_by"]) == ("PENDING", "2030-04-01T12:10:00Z")
    # What it is deleted by is no step of its timetable.
    assert {event["event_type"] for event in lease["events"]} == {"start_lease", "before_end_lease", "end_lease"}
    assert shown(http, lease) == {**lease, "price": None}
    answer = confirm(http, lease)
    firm = answer.json["lease"]
    assert (answer.status_code, firm["confirm_by"], firm["status"]) == (200, None, "PENDING")
    assert answer.headers["ETag"] == f'"{firm["revision"]}.1.m"'
    assert confirm(http, lease).json["lease"] == firm


def test_lists_have_it_too(http):
    lease = made(http)
    (listed,) = ask(http, "GET", "/v1/leases?fields=confirm_by").json["leases"]
    assert listed == {"id": lease["id"], "confirm_by": "2030-04-01T12:10:00Z"}
    confirm(http, lease)
    (listed,) = ask(http, "GET", "/v1/leases").json["leases"]
    assert listed["confirm_by"] is None


def test_a_dry_run_shows_it(http):
    planned = ask(http, path="/v1/leases?dry_run=true", body=LEASE)
    assert (planned.status_code, planned.json["lease"]["confirm_by"]) == (200, "2030-04-01T12:10:00Z")


def test_what_nobody_confirms_is_past_and_says_why(http, world):
    lease = made(http)
    world.run_to(BY)
    gone = shown(http, lease)
    assert (gone["status"], gone["end_reason"]) == ("TERMINATED", "unconfirmed")
    answer = confirm(http, lease)
    assert fault(answer) == (409, "lease_ended", None)
    entries = ask(http, "GET", f"/v1/leases/{lease['id']}/history").json["history"]
    assert [(entry["verb"], entry["reason"]) for entry in entries][-1] == ("lapsed", "unconfirmed")


def test_it_is_not_changed_before_it_is_confirmed(http):
    lease = made(http)
    for version, key in (("1.1", "code"), ("1.0", None)):
        answer = ask(http, "PUT", f"/v1/leases/{lease['id']}", {"name": "other"}, version=version)
        assert answer.status_code == 409
        assert key is None or fault(answer)[1] == "lease_unconfirmed"
    confirm(http, lease)
    assert ask(http, "PUT", f"/v1/leases/{lease['id']}", {"name": "other"}).status_code == 200


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"confirm_within": "PT16M"}, "give PT15M or less"),
        ({"confirm_within": "P4Y"}, "give PT15M or less"),
        ({"start_date": "now"}, "give a start_date"),
        ({"start_date": "2030-04-01T12:09:59Z"}, "give a shorter time, or a later start_date"),
        ({"kind": "immediate", "start_date": "now"}, "leave confirm_within out"),
        ({"wait": {"until": "+1d"}}, "leave confirm_within out"),
        ({"confirm_within": "soon"}, "duration"),
        ({"confirm_within": "PT0S"}, "more than 0"),
        ({"confirm_within": 600}, "duration"),
        ({"confirm_within": None}, "duration"),
    ],
    ids=["too long", "years", "now", "beyond the start", "kind", "waits", "word", "nothing", "number", "null"],
)
def test_what_cannot_be_is_refused_by_name(http, more, words):
    answer = ask(http, body={**LEASE, **more})
    (found,) = answer.json["errors"]
    assert (answer.status_code, found["pointer"]) == (400, "/confirm_within")
    assert words in found["detail"]


def test_neither_a_series_nor_a_change_nor_the_existing_version_has_it(http):
    daily = {"name": "daily", "rule": "FREQ=DAILY;COUNT=3", "start": "2030-04-03T12:00", "duration": "PT4H"}
    series = ask(http, path="/v1/series", body={**daily, "reservations": [HOST], "confirm_within": "PT10M"})
    change = ask(http, "PUT", f"/v1/leases/{made(http)['id']}", {"confirm_within": "PT10M"})
    for answer in (series, change):
        assert answer.status_code == 400
        assert "confirm_within" in answer.text
    old = {**LEASE, "start_date": "2030-04-03 12:00", "end_date": "2030-04-03 14:00"}
    assert ask(http, body=old, version="1.0").status_code == 400
    assert "confirm_by" not in ask(http, "GET", "/v1/leases", version="1.0").text


def test_only_who_may_change_it_confirms_it(http):
    lease = made(http)
    assert confirm(http, lease, **token("marie", "biology")).status_code == 404
    assert shown(http, lease)["confirm_by"] is not None


def test_a_key_makes_it_once(http):
    first, again = (ask(http, body=LEASE, **token(), **{"Idempotency-Key": "k-1"}) for _ in range(2))
    assert first.json["lease"]["id"] == again.json["lease"]["id"]
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_price_says_that_nothing_is_charged_before_it_is_confirmed(http, world):
    prices = [{"sku": "host", "measure": "host", "per_hour": "2.00"}]
    publish(world, prices=prices, cancellation=[{"before_start": "P1D", "share": "0.25"}, {"share": "0.50"}])
    planned = ask(http, path="/v1/leases?dry_run=true", body=LEASE).json["lease"]["price"]
    lease = made(http)
    price = shown(http, lease)["price"]
    until = {"until": "2030-04-01T12:10:00Z", "amount": "0.00"}
    rest = [{"until": "2030-04-02T12:00:00Z", "amount": "5.00"}, {"until": "2030-04-03T12:00:00Z", "amount": "10.00"}]
    assert price["if_cancelled"] == planned["if_cancelled"] == [until, *rest]
    assert price["amount"] == planned["amount"] == "20.00"
    confirm(http, lease)
    assert shown(http, lease)["price"]["if_cancelled"] == rest
