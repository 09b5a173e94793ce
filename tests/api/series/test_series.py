# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: series of leases."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.series.checks import SeriesLimits
from blazar.model.series.recurrence import MOST_DAYS
from blazar.model.series.rule import Walk
from blazar.model.series.rule_text import parse_rule
from tests.api.conftest import app_of, client_of, token
from tests.world import World, a_host

HOST = {"resource_type": "physical:host", "min": 1}
DAILY = {
    "name": "practical",
    "rule": "FREQ=DAILY;COUNT=3",
    "start": "2030-04-02T08:00",
    "time_zone": "Europe/Paris",
    "duration": "PT4H",
    "reservations": [HOST],
}


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, method="POST", path="/v1/series", body=None, version="1.1", **headers):
    sent = {"OpenStack-API-Version": f"reservation {version}", **(headers or token())}
    return http.open(path, method=method, json=body, headers=sent)


def fault(answer):
    (found,) = answer.json["errors"]
    return answer.status_code, found["code"].partition(".")[2], found.get("pointer")


def full_on(world: World, day: int) -> None:
    start = datetime(2030, 4, day, 6, tzinfo=UTC) - world.clock.now()
    world.lease(a_host(3), start=start, end=datetime(2030, 4, day, 8, tzinfo=UTC), project="biology")


def test_a_series_is_made_shown_and_deleted(http):
    answer = ask(http, body=DAILY)
    assert answer.status_code == 201
    series = answer.json["series"]
    assert answer.headers["Location"].endswith(f"/v1/series/{series['id']}")
    assert (series["status"], series["rule"], series["start"]) == ("ACTIVE", DAILY["rule"], "2030-04-02T08:00:00")
    assert (series["duration"], series["until_local"], series["fit"]) == ("PT4H", None, "all")
    assert series["reservations"][0]["resource_type"] == "physical:host"
    first, *rest = series["occurrences"]
    assert first == {
        "recurrence_id": "2030-04-02T08:00:00",
        "start_date": "2030-04-02T06:00:00Z",
        "end_date": "2030-04-02T10:00:00Z",
        "state": "booked",
        "lease_id": first["lease_id"],
        "lease_status": "PENDING",
        "changed": False,
        "reason": None,
        "opening": None,
        "price": None,
    }
    assert len(rest) == 2
    url = f"/v1/series/{series['id']}"
    assert ask(http, "GET", url).json["series"]["occurrences"] == series["occurrences"]
    (listed,) = ask(http, "GET", "/v1/series?fields=name,status").json["series"]
    assert listed == {"id": series["id"], "name": "practical", "status": "ACTIVE"}
    assert ask(http, "DELETE", url).status_code == 204
    assert ask(http, "DELETE", url).status_code == 204
    gone = ask(http, "GET", url).json["series"]
    assert (gone["status"], {each["state"] for each in gone["occurrences"]}) == ("DELETED", {"cancelled"})
    assert ask(http, "GET", "/v1/series").json["series"] == []


def test_leases_say_of_which_series_they_are(http):
    series = ask(http, body=DAILY).json["series"]
    path = f"/v1/leases?series_id={series['id']}&sort_key=start_date"
    found = ask(http, "GET", path).json["leases"]
    assert [each["recurrence_id"] for each in found] == [each["recurrence_id"] for each in series["occurrences"]]
    assert {each["series_id"] for each in found} == {series["id"]}
    lease = f"/v1/leases/{found[0]['id']}"
    assert "series_id" not in ask(http, "GET", lease, version="1.0").json["lease"]
    assert ask(http, "GET", "/v1/leases?series_id=none").json["leases"] == []
    alone = ask(http, path="/v1/leases", body={"name": "alone", "end_date": "+1h", "reservations": [HOST]})
    assert (alone.json["lease"]["series_id"], alone.json["lease"]["recurrence_id"]) == (None, None)
    assert ask(http, "DELETE", lease).status_code == 204
    states = [each["state"] for each in ask(http, "GET", f"/v1/series/{series['id']}").json["series"]["occurrences"]]
    assert states == ["cancelled", "booked", "booked"]


def test_a_dry_run_tells_what_fits_and_the_nearest_opening_of_what_does_not(http, world):
    full_on(world, 3)
    answer = ask(http, path="/v1/series?dry_run=true", body=DAILY)
    series = answer.json["series"]
    assert (answer.status_code, series["id"], series["links"]) == (200, None, [])
    assert [each["state"] for each in series["occurrences"]] == ["planned", "unfit", "planned"]
    opening = {"start_date": "2030-04-03T08:00:00Z", "end_date": "2030-04-03T12:00:00Z"}
    assert series["occurrences"][1]["opening"] == opening
    assert ask(http, "GET", "/v1/series").json["series"] == []


def test_a_series_that_does_not_fit_is_refused_with_the_same_list(http, world):
    full_on(world, 3)
    answer = ask(http, body=DAILY)
    assert fault(answer)[:2] == (409, "not_enough_resources")
    (error,) = answer.json["errors"]
    assert "fit" in error["detail"]
    (unfit,) = error["data"]["occurrences"]
    assert (error["data"]["unfit"], unfit["recurrence_id"]) == (1, "2030-04-03T08:00:00")
    made = ask(http, body={**DAILY, "fit": "as_many"}).json["series"]
    assert [each["state"] for each in made["occurrences"]] == ["booked", "unfit", "booked"]


def test_many_occurrences_are_answered_before_they_are_booked(http, world):
    answer = ask(http, body={**DAILY, "rule": "FREQ=DAILY;COUNT=60"})
    series = answer.json["series"]
    assert (answer.status_code, series["status"]) == (202, "CREATING")
    world.run()
    found = ask(http, "GET", f"/v1/series/{series['id']}").json["series"]
    assert (found["status"], {each["state"] for each in found["occurrences"]}) == ("ACTIVE", {"booked"})


def test_a_key_makes_one_series(http):
    key = {**token(), "Idempotency-Key": "once"}
    first, again = (ask(http, body=DAILY, **key) for _ in range(2))
    assert first.json["series"]["id"] == again.json["series"]["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = ask(http, body={**DAILY, "name": "other"}, **key)
    assert fault(other)[:2] == (409, "idempotency_key_reused")
    # The same key of another route is another key.
    lease = {"name": "alone", "end_date": "+1h", "reservations": [HOST]}
    assert ask(http, path="/v1/leases", body=lease, **key).status_code == 201


def test_a_series_without_an_end_by_the_wall_clock(sqlite):
    world = World(sqlite, settings=Settings(series=SeriesLimits(horizon=timedelta(days=5))))
    http = client_of(app_of(world.manager))
    body = {key: value for key, value in DAILY.items() if key != "duration"}
    body |= {"rule": "FREQ=DAILY", "until_local": "06:00+1d", "fit": "as_many", "before_end_date": "-PT90M"}
    series = ask(http, body=body).json["series"]
    assert (series["until_local"], series["duration"]) == ("06:00:00+1d", None)
    assert (series["before_end_date"], series["booked_until"]) == ("-PT1H30M", "2030-04-06T12:00:00Z")
    assert len(series["occurrences"]) == 5
    again = {key: series[key] for key in ("rule", "start", "time_zone", "until_local", "before_end_date", "fit")}
    assert ask(http, path="/v1/series?dry_run=true", body={**body, **again}).status_code == 200


def test_the_following_are_changed_and_are_another_series(http):
    series = ask(http, body=DAILY).json["series"]
    url = f"/v1/series/{series['id']}"
    change = {"from": "2030-04-03T08:00:00", "duration": "PT2H", "name": "short"}
    dry = ask(http, "PUT", f"{url}?dry_run=true", change).json["series"]
    assert (dry["id"], [each["end_date"][11:16] for each in dry["occurrences"]]) == (None, ["08:00", "08:00"])
    assert ask(http, "GET", url).json["series"] == series
    answer = ask(http, "PUT", url, change)
    rest = answer.json["series"]
    assert answer.status_code == 200
    assert answer.headers["Location"].endswith(rest["id"])
    assert (rest["previous_id"], rest["name"], rest["duration"], rest["rule"]) == (
        series["id"],
        "short",
        "PT2H",
        "FREQ=DAILY;COUNT=2",
    )
    assert [each["lease_id"] for each in rest["occurrences"]] == [each["lease_id"] for each in series["occurrences"]][
        1:
    ]
    old = ask(http, "GET", url).json["series"]
    assert (old["rule"], old["occurrences"]) == ("FREQ=DAILY;UNTIL=20300403T075959", series["occurrences"][:1])
    lease = ask(http, "GET", f"/v1/leases/{rest['occurrences'][0]['lease_id']}").json["lease"]
    assert (lease["name"], lease["series_id"], lease["end_date"]) == ("short", rest["id"], "2030-04-03T08:00:00Z")


def test_a_series_is_changed_only_as_it_was_seen(http):
    made = ask(http, body=DAILY)
    url, tag = f"/v1/series/{made.json['series']['id']}", made.headers["ETag"]
    assert ask(http, "GET", url).headers["ETag"] == tag
    assert ask(http, "GET", url, **token(), **{"If-None-Match": tag}).status_code == 304
    first = ask(http, "PUT", url, {"name": "first"}, **token(), **{"If-Match": tag})
    assert first.status_code == 200
    for query in ("", "?dry_run=true"):
        late = ask(http, "PUT", url + query, {"name": "second"}, **token(), **{"If-Match": tag})
        assert fault(late) == (412, "precondition_failed", None)
        assert late.json["errors"][0]["data"]["revision"] == first.json["series"]["revision"]
    # What a lease of an occurrence has become is no change of the series.
    lease_id = first.json["series"]["occurrences"][1]["lease_id"]
    assert ask(http, "DELETE", f"/v1/leases/{lease_id}").status_code == 204
    assert ask(http, "GET", url).headers["ETag"] != first.headers["ETag"]
    seen = {"If-Match": first.headers["ETag"]}
    assert ask(http, "PUT", url, {"name": "third"}, **token(), **seen).json["series"]["name"] == "third"


def test_all_are_changed_and_stay_the_same_series(http):
    series = ask(http, body=DAILY).json["series"]
    url = f"/v1/series/{series['id']}"
    changed = ask(http, "PUT", url, {"until_local": "09:30", "before_end_date": "-PT10M"}).json["series"]
    assert (changed["id"], changed["duration"], changed["until_local"]) == (series["id"], None, "09:30:00")
    assert {each["end_date"][11:] for each in changed["occurrences"]} == {"07:30:00Z"}
    assert ask(http, "GET", url).json["series"]["occurrences"] == changed["occurrences"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("change", "status", "code", "pointer"),
    [
        ({}, 400, "missing_field", "/name"),
        ({"from": "2030-04-03T08:00"}, 400, "missing_field", "/name"),
        ({"from": "2030-04-03T09:00", "name": "x"}, 400, "invalid_value", "/from"),
        ({"from": "soon", "name": "x"}, 400, "invalid_date", "/from"),
        ({"start": "2030-04-31T09:00"}, 400, "invalid_date", "/start"),
        ({"rule": "FREQ=DAILY"}, 400, "invalid_value", "/rule"),
        ({"duration": "PT25H"}, 400, "invalid_value", "/duration"),
        ({"exdates": ["2030-04-09T08:00"]}, 400, "invalid_value", "/exdates"),
        ({"reservations": [{**HOST, "min": 4}]}, 409, "not_enough_resources", None),
        ({"id": "x"}, 400, "read_only_field", "/id"),
        ({"status": "ENDED"}, 400, "read_only_field", "/status"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(http, change, status, code, pointer):
    series = ask(http, body=DAILY).json["series"]
    url = f"/v1/series/{series['id']}"
    assert fault(ask(http, "PUT", url, change)) == (status, code, pointer)
    assert ask(http, "GET", url).json["series"] == series


def test_nobody_sees_or_ends_a_series_of_another_project(http):
    url = f"/v1/series/{ask(http, body=DAILY).json['series']['id']}"
    stranger = token("hahn", "chemistry")
    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        assert fault(ask(http, method, url, body, **stranger))[:2] == (404, "series_not_found")
    assert ask(http, "GET", "/v1/series", **stranger).json["series"] == []
    assert fault(ask(http, "GET", "/v1/series?project_id=physics", **stranger))[:2] == (403, "forbidden")
    assert len(ask(http, "GET", "/v1/series?project_id=physics", **token("root", "demo", "admin")).json["series"]) == 1
    assert ask(http, "GET", url).json["series"]["status"] == "ACTIVE"


def test_a_reader_sees_a_series_and_changes_nothing(http):
    url = f"/v1/series/{ask(http, body=DAILY).json['series']['id']}"
    reader = token("pierre", "physics", "reader")
    assert ask(http, "GET", url, **reader).status_code == 200
    assert ask(http, "DELETE", url, **reader).status_code == 403
    assert ask(http, "PUT", url, {"name": "x"}, **reader).status_code == 403
    assert ask(http, body=DAILY, **reader).status_code == 403


def test_1_0_has_no_series(http):
    assert ask(http, body=DAILY, version="1.0").status_code == 404


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"rule": "FREQ=HOURLY"}, "invalid_value", "/rule"),
        ({"rule": "FREQ=DAILY;COUNT=1000000000"}, "invalid_value", "/rule"),
        ({"rule": "FREQ=DAILY;INTERVAL=0"}, "invalid_value", "/rule"),
        ({"rule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "invalid_value", "/rule"),
        ({"rule": "FREQ=DAILY\nRDATE:20300101"}, "invalid_value", "/rule"),
        ({"rule": "X" * 501}, "invalid_value", "/rule"),
        ({"rule": "FREQ=DAILY"}, "invalid_value", "/rule"),
        ({"rule": 5}, "invalid_value", "/rule"),
        ({"start": "2030-04-02T08:00Z"}, "invalid_date", "/start"),
        ({"start": "2030-04-31T08:00"}, "invalid_date", "/start"),
        ({"start": "now"}, "invalid_date", "/start"),
        ({"start": "2030-03-01T08:00"}, "invalid_value", "/start"),
        ({"time_zone": "Mars/Olympus"}, "invalid_value", "/time_zone"),
        ({"duration": "P1M"}, "invalid_date", "/duration"),
        ({"duration": "PT30H"}, "invalid_value", "/duration"),
        ({"until_local": "12:00"}, "invalid_value", "/until_local"),
        ({"duration": None}, "invalid_value", "/duration"),
        ({"exdates": ["2030-04-09T08:00"]}, "invalid_value", "/exdates"),
        ({"exdates": ["2030-04-03T08:00", "2030-04-03 08:00"]}, "invalid_date", "/exdates/1"),
        ({"rdates": ["2030-04-03T08:00"]}, "invalid_value", "/rdates"),
        ({"rdates": ["soon"]}, "invalid_date", "/rdates/0"),
        ({"exdates": ["2030-04-03T08:00"] * 201}, "out_of_bounds", "/exdates"),
        ({"fit": "some"}, "invalid_value", "/fit"),
        ({"before_end_date": "2030-04-02T09:00Z"}, "invalid_date", "/before_end_date"),
        ({"before_end_date": "-P1D"}, "invalid_window", "/before_end_date"),
        ({"reservations": []}, "invalid_value", "/reservations"),
        ({"reservations": [{"resource_type": "rocket"}]}, "invalid_value", "/reservations/0/resource_type"),
        ({"reservations": [{**HOST, "min": 0}]}, "invalid_value", "/reservations/0/min"),
        ({"kind": "immediate"}, "unknown_field", "/kind"),
        ({"wait": {"until": "+1d"}}, "unknown_field", "/wait"),
    ],
)
def test_a_series_that_cannot_be_is_refused_with_its_place(http, change, code, pointer):
    status, found, at = fault(ask(http, body={**DAILY, **change}))
    assert (status, at) == (400, pointer)
    assert found == code
    assert ask(http, "GET", "/v1/series").json["series"] == []


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"before_end_date": "2030-04-02"}, "give a duration with its sign, +P1D from each start or -PT2H"),
        ({"before_end_date": ""}, "give a duration with its sign, +P1D from each start or -PT2H"),
        ({"before_end_date": "PT2H"}, "give a duration with its sign, +P1D from each start or -PT2H"),
        ({"exdates": ["2030-04-03T08:00"] * 201}, "at most 200"),
        ({"rdates": ["2030-04-03T08:00"] * 201}, "at most 200"),
    ],
)
def test_a_refusal_says_what_would_do(http, change, advice):
    (error,) = ask(http, body={**DAILY, **change}).json["errors"]
    assert advice in error["detail"]
    assert "or 'now'" not in error["detail"]


def test_a_rule_that_never_comes_true_costs_no_more_days_than_there_are():
    """Other expanders walk to the year 9999: no rule may have this one look at more than three years of days."""

    first = date(2030, 4, 2)
    for text in (
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYDAY=5MO;BYMONTHDAY=1",
        "FREQ=YEARLY;BYDAY=MO,TU",
    ):
        walk = Walk(parse_rule(text), first)
        assert len(list(walk.dates(first, first + timedelta(days=MOST_DAYS)))) <= MOST_DAYS
        assert walk.steps <= MOST_DAYS + 2 * 366


def test_what_is_secret_in_a_series_is_not_shown(http, world):
    server = {"resource_type": "virtual:server", "amount": 1, "image": "cirros", "vcpus": 1, "memory_mb": 512}
    body = {**DAILY, "reservations": [{**server, "disk_gb": 1, "user_data": "c2VjcmV0LXdvcmQ="}]}
    answer = ask(http, body=body)
    assert answer.status_code == 201, answer.text
    assert "user_data" not in answer.text
    url = f"/v1/series/{answer.json['series']['id']}"
    assert ask(http, "DELETE", url).status_code == 204
    world.run()
    assert "c2VjcmV0LXdvcmQ=" not in str(world.store.series.one(answer.json["series"]["id"], world.clock.now()))
