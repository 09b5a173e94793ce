# SPDX-License-Identifier: Apache-2.0
"""Feeds over HTTP: made, listed and revoked at 1.1, read without a token by programs that only know iCalendar."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache

import ics
import pytest
import sqlalchemy as sa
import vobject
from icalendar import Calendar
from werkzeug.test import Client

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.middleware import ExchangeLog
from blazar.api.http.openapi import Served
from blazar.api.parts import all_parts
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import BlazarError, CloudRefused
from blazar.model.base.service_info import ReadBounds
from blazar.model.leases.lease import Lease
from blazar.store.sql.tables import feeds
from tests.api.conftest import app_of, client_of, token
from tests.statements import counted
from tests.world import World, a_host, instances

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
CURIE, PIERRE = {**VERSION, **token("curie", "physics")}, {**VERSION, **token("pierre", "physics")}
FRIDA = {**VERSION, **token("frida", "art")}
ADMIN = {**VERSION, **token("root", "demo", "admin")}
USERS = {"kind": "user", "name": "my phone"}


@cache
def served() -> Served:
    return Served(all_parts(), newest=(1, 1))


@pytest.fixture
def app(world):
    return app_of(world.manager, served=served())


@pytest.fixture
def http(app):
    return client_of(app)


def make(http, headers=CURIE, **body: object) -> dict:
    answer = http.post("/v1/feeds", json={**USERS, **body}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Location"].endswith(f"/v1/feeds/{answer.json['feed']['id']}")
    return answer.json["feed"]


def path(feed: dict) -> str:
    return feed["url"].removeprefix("http://localhost")


def events(http, feed: dict) -> dict[str, object]:
    """Return what a program sees of a feed, by UID."""
    answer = http.get(path(feed))
    assert answer.status_code == 200
    return {str(event["uid"]): event for event in Calendar.from_ical(answer.data).walk("VEVENT")}


def code(answer) -> tuple[int, str]:
    return answer.status_code, answer.json["errors"][0]["code"].removeprefix("reservation.")


def in_hours(world, ahead: float, **more: object) -> Lease:
    return world.lease(start=timedelta(hours=ahead), **more)


@pytest.mark.slow
def test_a_new_feed_has_a_link_and_nothing_else_ever_shows_it(http, world):
    made = make(http)
    assert re.fullmatch(r"http://localhost/feeds/[A-Za-z0-9_-]{43}\.ics", made["url"])
    assert (made["kind"], made["name"], made["user_id"], made["project_id"]) == ("user", "my phone", "curie", "physics")
    assert (made["created_at"], made["expires_at"]) == ("2030-04-01T12:00:00Z", "2031-04-01T12:00:00Z")
    shown = {key: value for key, value in made.items() if key != "url"}
    assert http.get(f"/v1/feeds/{made['id']}", headers=CURIE).json == {"feed": shown}
    assert http.get("/v1/feeds", headers=CURIE).json["feeds"] == [shown]
    with world.engine.connect() as connection:
        stored = str(connection.execute(sa.select(feeds)).all())
    assert made["url"][-47:-4] not in stored


def test_two_other_programs_read_a_feed(http, world):
    lease = in_hours(world, 5, hours=48, name="gän, training; 1\n2")
    text = http.get(path(make(http))).data.decode()
    (seen,) = ics.Calendar(text).events
    assert (seen.uid, seen.begin.datetime, seen.end.datetime) == (lease.id, lease.window.start, lease.window.end)
    assert seen.name == "gän, training; 1 2"
    (alarm,) = seen.alarms
    assert alarm.trigger.datetime == lease.window.end - timedelta(hours=1)
    other = vobject.readOne(text)
    assert other.vevent.uid.value == lease.id
    assert other.vevent.dtstart.value == lease.window.start
    assert other.vevent.summary.value == "gän, training; 1 2"
    assert other.vevent.status.value == "CONFIRMED"
    assert other.vevent.valarm.trigger.value == lease.window.end - timedelta(hours=1)
    assert "REFRESH-INTERVAL;VALUE=DURATION:PT15M\r\n" in text
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))


def test_a_lease_that_moved_has_a_higher_sequence_and_the_same_uid(http, world):
    lease, feed = in_hours(world, 5), make(http)
    before = events(http, feed)[lease.id]
    world.change(lease, start=lease.window.start + timedelta(hours=1), end=lease.window.end + timedelta(hours=3))
    after = events(http, feed)[lease.id]
    assert after["sequence"] > before["sequence"]
    assert after["dtstart"].dt - before["dtstart"].dt == timedelta(hours=1)
    assert after["dtend"].dt - before["dtend"].dt == timedelta(hours=3)


def test_a_deleted_lease_is_cancelled_for_thirty_days(http, world):
    lease, feed = in_hours(world, 24 * 40), make(http)
    before = events(http, feed)[lease.id]
    world.manager.leases.delete(lease.id)
    world.run()
    after = events(http, feed)[lease.id]
    assert after["status"] == "CANCELLED"
    assert after["sequence"] > before["sequence"]
    assert after.walk("VALARM") == []
    world.clock.by(days=29)
    assert lease.id in events(http, feed)
    world.clock.by(days=2)
    assert lease.id not in events(http, feed)


def test_a_lease_that_ended_stays_for_thirty_days(http, world):
    lease, feed = in_hours(world, 1), make(http)
    world.run_to(lease.window.end + timedelta(days=29))
    assert events(http, feed)[lease.id]["status"] == "CONFIRMED"
    world.clock.by(days=2)
    assert events(http, feed) == {}


def test_of_too_many_leases_those_are_shown_that_are_nearest(http, world, monkeypatch):
    monkeypatch.setattr("blazar.store.feeds.MOST_ITEMS", 3)
    ended = [in_hours(world, ahead, hours=1) for ahead in (1, 3, 5)]
    next_ones = [in_hours(world, ahead, hours=1) for ahead in (100, 200)]
    feed = make(http)
    world.run_to(ended[-1].window.end + timedelta(hours=1))
    assert list(events(http, feed)) == [ended[-1].id, *(one.id for one in next_ones)]
    last = [in_hours(world, ahead, hours=1) for ahead in (400, 300)]
    assert list(events(http, feed)) == [*(one.id for one in next_ones), last[1].id]


def test_a_lease_whose_creation_was_undone_never_was_one(http, world):
    feed = make(http)
    world.faults.fail_before("create_flavor", CloudRefused("no such thing"), times=9)
    with pytest.raises(BlazarError):
        world.lease(instances(), start=timedelta(hours=5))
    world.run()
    assert events(http, feed) == {}


def test_a_feed_shows_whose_it_is_and_nobody_elses(http, world):
    mine = in_hours(world, 1)
    reservation = {**a_host().parameters, "resource_type": "physical:host"}
    dates = {"start_date": "2030-04-02 10:00", "end_date": "2030-04-02 12:00"}
    body = {"name": "of pierre", **dates, "reservations": [reservation]}
    of_pierre = http.post("/v1/leases", json=body, headers=token("pierre", "physics")).json["lease"]["id"]
    foreign = in_hours(world, 3, project="art")
    assert set(events(http, make(http))) == {mine.id}
    assert set(events(http, make(http, PIERRE))) == {of_pierre}
    assert set(events(http, make(http, kind="project"))) == {mine.id, of_pierre}
    assert set(events(http, make(http, FRIDA, kind="project"))) == {foreign.id}
    assert set(events(http, make(http, FRIDA))) == set()


def test_an_operator_sees_all_leases_on_a_resource(http, world):
    lease, other = in_hours(world, 1, project="art"), in_hours(world, 24)
    (name,) = world.hosts_of(lease)
    host = next(one for one in world.manager.resources.all("host") if one.name == name)
    on_it = {one.id for one in (lease, other) if name in world.hosts_of(one)}
    for given in (host.label, host.external_id):
        feed = make(http, ADMIN, kind="resource", resource=given)
        assert feed["resource"] == host.label
        shown = events(http, feed)
        assert set(shown) == on_it
        assert shown[lease.id]["summary"] == "a lease (art)"
    refused = http.post("/v1/feeds", json={**USERS, "kind": "resource", "resource": host.label}, headers=CURIE)
    assert code(refused) == (403, "forbidden")


def test_free_and_busy_times_tell_nothing_of_leases(http, world):
    lease = in_hours(world, 2, hours=3, project="art", name="a secret")
    others = [in_hours(world, 3, hours=2, project="art", name="a secret") for _ in range(2)]
    feed = make(http, kind="free_busy", requirement=[])
    answer = http.get(path(feed))
    (busy,) = Calendar.from_ical(answer.data).walk("VFREEBUSY")
    assert busy["uid"] == feed["id"]
    period = busy["freebusy"]
    assert (period.start, period.end) == (others[0].window.start, others[0].window.end)
    text = answer.data.decode()
    assert not any(word in text for word in ("secret", "art", "curie", lease.id, "node-"))
    assert vobject.readOne(text).vfreebusy.uid.value == feed["id"]


def test_free_and_busy_times_are_of_what_meets_the_requirement(http, world):
    lease = in_hours(world, 2, hours=3)
    (name,) = world.hosts_of(lease)
    size = next(one for one in world.manager.resources.all("host") if one.name == name).attributes["vcpus"]
    feed = make(http, kind="free_busy", requirement=["==", "$vcpus", str(size)], resource_type="physical:host")
    (busy,) = Calendar.from_ical(http.get(path(feed)).data).walk("VFREEBUSY")
    assert (busy["freebusy"].start, busy["freebusy"].end) == (lease.window.start, lease.window.end)
    assert make(http, kind="free_busy", requirement="")["requirement"] is None
    nothing = make(http, kind="free_busy", requirement=["==", "$vcpus", "77"])
    (always,) = Calendar.from_ical(http.get(path(nothing)).data).walk("VFREEBUSY")
    assert always["freebusy"].end - always["freebusy"].start == timedelta(days=30 + 366)


def test_free_and_busy_times_reach_thirty_days_back_and_what_failed_since_was_free_before(http, world):
    lease = in_hours(world, 2, hours=3)
    (name,) = world.hosts_of(lease)
    size = next(one for one in world.manager.resources.all("host") if one.name == name).attributes["vcpus"]
    feed = make(http, kind="free_busy", requirement=["==", "$vcpus", str(size)])

    def periods() -> list[tuple[datetime, datetime]]:
        (busy,) = Calendar.from_ical(http.get(path(feed)).data).walk("VFREEBUSY")
        found = busy.get("freebusy", [])
        return [(each.start, each.end) for each in (found if isinstance(found, list) else [found])]

    used = (lease.window.start, lease.window.end)
    world.run_to(lease.window.end + timedelta(days=20))
    assert periods() == [used]
    (host,) = [one for one in world.manager.resources.all("host") if one.name == name]
    world.store.resource_health.set_failed(host.kind, {host.id: "its fan is off"}, at=world.clock.now())
    failed = (world.clock.now(), world.clock.now().replace(minute=0) + timedelta(days=366))
    assert periods() == [used, failed]
    world.clock.by(days=15)
    assert periods() == [(failed[0], failed[1] + timedelta(days=15))]


def test_a_revoked_an_expired_and_an_unknown_link_are_the_same_404_at_once(http, world):
    in_hours(world, 1)
    revoked, expired = make(http), make(http)
    assert http.delete(f"/v1/feeds/{revoked['id']}", headers=CURIE).status_code == 204
    world.clock.by(days=365)
    answers = [http.get(path(revoked)), http.get(path(expired)), http.get(f"/feeds/{'x' * 43}.ics")]
    answers += [http.get("/feeds/short.ics"), http.get(f"/feeds/{'é' * 43}.ics")]
    assert {(answer.status_code, answer.text) for answer in answers} == {(404, answers[0].text)}
    assert code(http.get(f"/v1/feeds/{expired['id']}", headers=CURIE)) == (404, "feed_not_found")


@pytest.mark.parametrize("headers", [PIERRE, FRIDA], ids=["of the project", "of another"])
def test_a_feed_of_somebody_else_does_not_exist(http, headers):
    made = make(http)
    for method in ("GET", "DELETE"):
        foreign = http.open(f"/v1/feeds/{made['id']}", method=method, headers=headers)
        missing = http.open("/v1/feeds/none", method=method, headers=headers)
        texts = [answer.json["errors"][0]["detail"] for answer in (foreign, missing)]
        assert code(foreign) == code(missing) == (404, "feed_not_found")
        assert texts[0] == texts[1]
    assert http.get("/v1/feeds", headers=headers).json["feeds"] == []
    assert http.get(path(made)).status_code == 200


def test_operators_list_and_revoke_all_feeds(http):
    mine, theirs = make(http), make(http, FRIDA)

    def listed(query: str) -> list[str]:
        return [feed["id"] for feed in http.get(f"/v1/feeds{query}", headers=ADMIN).json["feeds"]]

    assert set(listed("")) == {mine["id"], theirs["id"]}
    assert listed("?project_id=art") == listed("?user_id=frida") == [theirs["id"]]
    assert code(http.get("/v1/feeds?project_id=art", headers=CURIE)) == (403, "forbidden")
    assert http.delete(f"/v1/feeds/{theirs['id']}", headers=ADMIN).status_code == 204
    assert listed("") == [mine["id"]]


def test_a_list_of_feeds_comes_in_pages(http, world):
    ids = []
    for _ in range(5):
        ids.append(make(http)["id"])
        world.clock.by(seconds=1)
    for direction, expected in (("asc", ids), ("desc", ids[::-1])):
        url, seen = f"/v1/feeds?limit=2&with_count=true&sort_dir={direction}", []
        while url:
            page = http.get(url, headers=CURIE).json
            assert page["count"] == 5
            seen += [feed["id"] for feed in page["feeds"]]
            url = next((link["href"] for link in page["links"] if link["rel"] == "next"), "")
        assert seen == expected
    assert [one["id"] for one in http.get(f"/v1/feeds?marker={ids[2]}", headers=CURIE).json["feeds"]] == ids[3:]
    for marker in ("none", make(http, FRIDA)["id"], "c.eyJrIjoieCIsImkiOiJ5In0"):
        assert code(http.get(f"/v1/feeds?marker={marker}", headers=CURIE)) == (400, "invalid_marker")


def test_a_user_has_at_most_twenty_feeds(http, world):
    for _ in range(20):
        made = make(http)
    refused = http.post("/v1/feeds", json=USERS, headers=CURIE)
    assert code(refused) == (400, "out_of_bounds")
    assert refused.json["errors"][0]["data"] == {"maximum": 20}
    # In another project, too: the limit is of the user.
    elsewhere = {**VERSION, **token("curie", "art")}
    assert code(http.post("/v1/feeds", json=USERS, headers=elsewhere)) == (400, "out_of_bounds")
    make(http, PIERRE)
    http.delete(f"/v1/feeds/{made['id']}", headers=CURIE)
    make(http)
    world.clock.by(days=366)
    make(http)


def test_operators_can_turn_feeds_off(sqlite):
    world = World(sqlite, settings=Settings(reads=ReadBounds(feeds_of_user=0)))
    http = client_of(create_app(world.manager, identity=StandaloneIdentity()))
    refused = http.post("/v1/feeds", json=USERS, headers=CURIE)
    assert code(refused) == (400, "out_of_bounds")
    assert refused.json["errors"][0]["detail"] == "this service makes no feeds; ask its operators"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("body", "name", "pointer"),
    [
        ({"kind": "user"}, "missing_field", "/name"),
        ({**USERS, "kind": "world"}, "invalid_value", "/kind"),
        ({**USERS, "name": ""}, "invalid_value", "/name"),
        ({**USERS, "name": "n" * 81}, "invalid_value", "/name"),
        ({**USERS, "colour": "red"}, "unknown_field", "/colour"),
        ({**USERS, "requirement": []}, "unknown_field", "/requirement"),
        ({**USERS, "resource": "h-1"}, "unknown_field", "/resource"),
        ({**USERS, "kind": "resource"}, "missing_field", "/resource"),
        ({**USERS, "kind": "resource", "resource": "h-none"}, "unknown_reference", "/resource"),
        ({**USERS, "kind": "free_busy", "requirement": ["==", "$nothing", "1"]}, "unknown_property", "/requirement"),
        ({**USERS, "kind": "free_busy", "requirement": ["=="]}, "malformed_requirement", "/requirement"),
        ({**USERS, "kind": "free_busy", "resource_type": "physical:ship"}, "invalid_value", "/resource_type"),
    ],
)
def test_an_invalid_body_is_refused_with_the_place(http, body, name, pointer):
    refused = http.post("/v1/feeds", json=body, headers=ADMIN)
    assert code(refused) == (400, name)
    assert refused.json["errors"][0]["pointer"] == pointer


def test_feeds_need_1_1(app):
    http = app.test_client()
    headers = {**CURIE, "OpenStack-API-Version": "reservation 1.0"}
    assert http.get("/v1/feeds", headers=headers).status_code == 404
    assert http.post("/v1/feeds", json=USERS, headers=headers).status_code == 404


def test_a_program_that_has_the_newest_gets_304_until_something_changes(http, world):
    feed, lease = make(http), in_hours(world, 5)
    first = http.get(path(feed))
    assert first.headers["Content-Type"] == "text/calendar; charset=utf-8"
    assert first.headers["Cache-Control"] == "private, no-cache"
    assert first.headers["Referrer-Policy"] == "no-referrer"
    assert first.headers["ETag"].startswith('W/"')
    world.clock.by(hours=2)
    again = http.get(path(feed), headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    world.change(lease, name="renamed")
    assert http.get(path(feed), headers={"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_the_last_use_is_written_once_an_hour(http, world):
    feed = make(http)

    def used() -> str:
        return http.get(f"/v1/feeds/{feed['id']}", headers=CURIE).json["feed"]["last_used_at"]

    assert used() is None
    http.get(path(feed))
    world.clock.by(minutes=59)
    http.get(path(feed))
    assert used() == "2030-04-01T12:00:00Z"
    world.clock.by(minutes=1)
    http.get(path(feed))
    assert used() == "2030-04-01T13:00:00Z"


def test_reading_a_feed_costs_three_statements_however_many_leases_it_shows(http, world):
    feed = make(http)
    http.get(path(feed))
    counts = []
    for number in range(2):
        in_hours(world, 5 + 3 * number)
        with counted(world.engine) as statements:
            assert len(events(http, feed)) == number + 1
        counts.append(statements.count)
    assert counts == [3, 3]


def test_the_secret_is_in_no_log(app, http, caplog):
    feed = make(http)
    secret = feed["url"][-47:-4]
    caplog.set_level("DEBUG")
    logged = Client(ExchangeLog(app))
    for target in (path(feed), f"{path(feed)}.json", path(feed).removesuffix(".ics")):
        for headers in ({}, CURIE, ADMIN):
            for method in ("GET", "POST", "DELETE"):
                logged.open(target, method=method, headers=headers)
                # Somebody takes the secret for the id.
                logged.open(f"/v1{target}", method=method, headers=headers)
    assert 'rule="blazar:feeds:delete"' in caplog.text
    assert "/feeds/***" in caplog.text
    assert secret not in caplog.text
