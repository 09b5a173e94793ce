# SPDX-License-Identifier: Apache-2.0
"""Free time over HTTP: openings that can be booked, reasons without names, and who may ask."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from flask import Response
from flask.testing import FlaskClient

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import BUILTIN
from blazar.api.search.routes import Turns
from blazar.model.base.errors import TooManyRequests
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.conftest import client_of, token
from tests.world import a_host

HOUR = timedelta(hours=1)
VERSION = {"OpenStack-API-Version": "reservation 1.1"}
MEMBER = {**VERSION, **token("curie", "physics")}
STRANGER = {**VERSION, **token("frida", "art")}
ONE = {"resource_type": "physical:host", "min": 1}
THREE = {"resource_type": "physical:host", "min": 3}


@pytest.fixture
def http(world):
    served = Served(BUILTIN, newest=(1, 1))
    return client_of(
        create_app(world.manager, identity=StandaloneIdentity(), policy=Policy(parts=BUILTIN), served=served)
    )


def ask(http, headers=MEMBER, status=200, **question):
    answer = http.post("/v1/availability", json=question, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json["availability"] if status == 200 else answer.json["errors"]


def test_an_opening_is_found_and_booked_and_reasons_name_nobody(http, world):
    foreign = world.lease(a_host(2), hours=5, project="art", name="secret")
    found = ask(http, reservations=[THREE], duration="PT2H", latest="+P2D", limit=1)
    assert (found["earliest"], found["latest"]) == ("2030-04-01T12:00:00Z", "2030-04-03T12:00:00Z")
    assert (found["duration_seconds"], found["complete"]) == (7200, True)
    (opening,) = found["openings"]
    assert opening == {
        "start_date": "2030-04-01T17:00:00Z",
        "end_date": "2030-04-01T19:00:00Z",
        "last_start_date": "2030-04-03T10:00:00Z",
        "open_until": None,
        "reservations": [{"count": 3}],
        "refusals": [],
        "price": None,
        "waking": None,
        "moves_others": 0,
    }
    (reason,) = found["reasons"]
    assert reason["message"] == "3 hosts; 2 booked until 2030-04-01 17:00 UTC; 1 free"
    assert reason["steps"] == [
        {"code": "registered", "remaining": 3},
        {"code": "promised", "removed": 2, "remaining": 1, "until": "2030-04-01T17:00:00Z"},
    ]
    time, count = found["alternatives"]
    assert (time["change"], time["start_date"]) == ("time", opening["start_date"])
    assert (count["change"], count["reservations"]) == ("count", [{"min": 1, "max": 1}])
    hidden = (foreign.id, foreign.name, foreign.project_id, foreign.user_id, "node-")
    text = http.post("/v1/availability", json={"reservations": [THREE], "duration": "2h"}, headers=MEMBER).text
    assert not [word for word in hidden if f'"{word}' in text or f" {word}" in text]
    lease = {"name": "found", **{key: opening[key] for key in ("start_date", "end_date")}, "reservations": [THREE]}
    assert http.post("/v1/leases", json=lease, headers=MEMBER).status_code == 201


@pytest.mark.slow
def test_one_window_and_what_to_leave_out(http, world):
    window = {"start_date": "2030-04-01T13:00", "end_date": "+1h"}
    assert len(ask(http, reservations=[ONE], **window)["openings"]) == 1
    assert ask(http, reservations=[ONE, THREE], **window)["openings"] == []
    short = ask(http, reservations=[THREE, ONE], explain=False, alternatives=False, **window)
    assert (short["reasons"], short["alternatives"]) == ([], [])
    # 13:00 in Paris is 11:00 in UTC.
    (error,) = ask(http, status=400, reservations=[ONE], time_zone="Europe/Paris", **window)
    assert (error["code"], error["pointer"]) == ("reservation.date_in_past", "/start_date")


def test_how_far_a_lease_can_be_extended_and_changed(http, world):
    mine = world.lease(a_host(2), start=HOUR, hours=1)
    world.lease(a_host(2), start=6 * HOUR, project="art")
    found = ask(http, lease_id=mine.id)
    assert found["openings"] == []
    assert found["extension"] == {"open_until": "2030-04-01T18:00:00Z", "limited_by": "promised", "refusals": []}
    more = [{"id": mine.reservations[0].id, "min": 3, "max": 3}]
    moved = ask(http, lease_id=mine.id, reservations=more, duration="PT1H")
    assert moved["openings"][0]["start_date"] == "2030-04-01T12:00:00Z"


def test_a_lease_that_has_ended_conflicts_and_earliest_alone_is_no_question(http, world):
    mine = world.lease(a_host(), hours=1)
    (error,) = ask(http, status=400, lease_id=mine.id, earliest="now")
    assert (error["code"], error["pointer"]) == ("reservation.invalid_value", "/earliest")
    assert len(ask(http, lease_id=mine.id, end_date="now")["openings"]) == 1
    world.run_to(world.clock.now() + HOUR)
    for more in ({}, {"end_date": "+5h"}, {"duration": "1h"}, {"start_date": "now", "end_date": "+5h"}):
        (error,) = ask(http, status=409, lease_id=mine.id, **more)
        assert (error["code"], error["data"]) == ("reservation.lease_ended", {"status": "TERMINATED"})


def test_a_search_without_time_left_is_answered_with_503(http, world):
    world.settings = replace(world.settings, search_limit=timedelta(0))
    world.manager.availability._runtime = replace(world.manager.availability._runtime, settings=world.settings)
    answer = http.post("/v1/availability", json={"reservations": [ONE], "duration": "1h"}, headers=MEMBER)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    (error,) = answer.json["errors"]
    assert error["code"] == "reservation.manager_unavailable"


def test_a_lease_of_others_does_not_exist(http, world):
    theirs = world.lease(a_host())
    one = ask(http, STRANGER, 404, lease_id=theirs.id)
    other = ask(http, STRANGER, 404, lease_id=theirs.id.replace(theirs.id[0], "0" if theirs.id[0] != "0" else "1", 1))
    assert [each[0]["code"] for each in (one, other)] == ["reservation.lease_not_found"] * 2


def test_private_properties_are_unknown_to_members(http, world):
    world.manager.resources.change(HOST, "1", ResourceChange({"cost": "9"}))
    world.manager.resources.set_property(HOST, "cost", private=True)
    wanted = {"reservations": [{**ONE, "resource_properties": ["==", "$cost", "9"]}], "duration": "1h"}
    (error,) = ask(http, status=400, **wanted)
    assert error["code"] == "reservation.unknown_property"
    assert len(ask(http, VERSION, **wanted)["openings"]) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("question", "code", "pointer"),
    [
        ({}, "missing_field", "/reservations"),
        ({"reservations": []}, "invalid_value", "/reservations"),
        ({"reservations": [ONE]}, "missing_field", "/duration"),
        ({"reservations": [ONE] * 21, "duration": "1h"}, "out_of_bounds", "/reservations"),
        ({"reservations": 5, "duration": "1h"}, "invalid_value", "/reservations"),
        ({"lease_id": "x", "reservations": [{"id": "y"}] * 21}, "out_of_bounds", "/reservations"),
        ({"reservations": [{"resource_type": "moon"}], "duration": "1h"}, None, "/reservations/0/resource_type"),
        ({"reservations": [{**ONE, "min": "1"}], "duration": "1h"}, "invalid_value", "/reservations/0/min"),
        ({"reservations": [{**ONE, "colour": 1}], "duration": "1h"}, "unknown_field", "/reservations/0/colour"),
        ({"reservations": [ONE], "duration": "1h", "end_date": "now"}, "invalid_value", "/end_date"),
        ({"reservations": [ONE], "duration": "1h", "start_date": "now"}, "invalid_value", "/start_date"),
        ({"reservations": [ONE], "duration": "long"}, "invalid_date", "/duration"),
        ({"reservations": [ONE], "duration": "-1h"}, "invalid_date", "/duration"),
        ({"reservations": [ONE], "duration": "P31D"}, "invalid_window", "/duration"),
        ({"reservations": [ONE], "duration": "1h", "latest": "+P400D"}, "out_of_bounds", "/latest"),
        ({"reservations": [ONE], "duration": "1h", "earliest": "+1h"}, "invalid_date", "/earliest"),
        ({"reservations": [ONE], "duration": "1h", "earliest": "2020-01-01T00:00Z"}, "date_in_past", "/earliest"),
        ({"reservations": [ONE], "duration": "1h", "limit": 0}, "invalid_value", "/limit"),
        ({"reservations": [ONE], "duration": "1h", "explain": "no"}, "invalid_value", "/explain"),
        ({"reservations": [ONE], "duration": "1h", "time_zone": "Mars"}, "invalid_value", "/time_zone"),
        ({"reservations": [ONE], "duration": "1h", "until": "now"}, "unknown_field", "/until"),
        ({"reservations": [ONE], "end_date": "now"}, "invalid_window", "/end_date"),
        ({"lease_id": "x" * 300}, "invalid_value", "/lease_id"),
        ({"lease_id": 5}, "invalid_value", "/lease_id"),
    ],
)
def test_bad_questions_are_refused_with_the_field(http, question, code, pointer):
    errors = ask(http, status=400, **question)
    assert pointer in [error["pointer"] for error in errors]
    assert code is None or f"reservation.{code}" in [error["code"] for error in errors]


def test_too_many_reservations_are_one_fault_with_the_bound(http):
    for question in ({"reservations": [ONE] * 21, "duration": "1h"}, {"lease_id": "x", "reservations": [ONE] * 21}):
        (error,) = ask(http, status=400, **question)
        assert error["data"] == {"maximum": 20}
        assert "a list of 1 to 20 reservations" in error["detail"]


def test_the_route_is_for_members_from_1_1_on(http, world):
    question = {"reservations": [ONE], "duration": "1h"}
    assert ask(http, token("pierre", "physics", "reader") | VERSION, 403, **question)
    assert ask(http, token("nova", "physics", "service") | VERSION, 403, **question)
    # The document describes the versions that have the route.
    plain = FlaskClient(http.application, Response)
    assert plain.post("/v1/availability", json=question, headers=token("curie", "physics")).status_code == 404
    assert http.get("/v1/availability", headers=MEMBER).status_code == 405
    answer = http.post("/v1/availability", json=question, headers=MEMBER)
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_project_has_few_searches_in_progress_at_once():
    turns = Turns(2)
    with turns.taken("physics"), turns.taken("physics"):
        with pytest.raises(TooManyRequests, match="2 searches"), turns.taken("physics"):
            pass
        with turns.taken("art"):
            pass
    with turns.taken("physics"):
        pass
