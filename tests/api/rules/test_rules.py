# SPDX-License-Identifier: Apache-2.0
"""``/v1/rules``: operators write them, members see those of their project, and leases keep to them at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.rules import DAYTIME, a_rule
from tests.world import PROJECT

OPERATOR, MEMBER, OTHER = token("olga", "admin", "admin"), token("curie", PROJECT), token("lise", "chemistry")
URL = "/v1/rules"
HOST = {"resource_type": "physical:host", "min": 1, "max": 1}


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, method: str, path: str, body: Any = None, *, who=OPERATOR, **headers: str):
    headers = {"OpenStack-API-Version": "reservation 1.1", **who, **headers}
    return http.open(path, method=method, json=body, headers=headers)


def book(http, start: str, end: str, *, who=MEMBER, query: str = ""):
    body = {"name": f"lab {start}", "start_date": start, "end_date": end, "reservations": [HOST]}
    return ask(http, "POST", f"/v1/leases{query}", body, who=who)


def test_a_rule_is_written_read_changed_and_deleted(http):
    made = ask(http, "PUT", f"{URL}/nights", a_rule())
    assert (made.status_code, made.headers["Location"]) == (201, "http://localhost/v1/rules/nights")
    rule = made.json["rule"]
    assert rule == {
        "name": "nights",
        "kind": "hours",
        "content": DAYTIME,
        "applies_to": {},
        "active": True,
        "revision": rule["revision"],
        "created_at": "2030-04-01T12:00:00Z",
        "updated_at": None,
    }
    assert ask(http, "GET", f"{URL}/nights", who=MEMBER).json == made.json
    changed = ask(http, "PUT", f"{URL}/nights", a_rule(apply="all"), **{"If-Match": made.headers["ETag"]})
    assert (changed.status_code, changed.json["rule"]["content"]["apply"]) == (200, "all")
    stale = ask(http, "DELETE", f"{URL}/nights", **{"If-Match": made.headers["ETag"]})
    assert (stale.status_code, stale.json["errors"][0]["code"]) == (412, "reservation.precondition_failed")
    assert ask(http, "DELETE", f"{URL}/nights", **{"If-Match": changed.headers["ETag"]}).status_code == 204
    assert ask(http, "GET", URL).json["rules"] == []
    gone = ask(http, "DELETE", f"{URL}/nights")
    assert (gone.status_code, gone.json["errors"][0]["code"]) == (404, "reservation.rule_not_found")


def test_members_see_what_holds_for_them_and_no_other_project(http):
    ask(http, "PUT", f"{URL}/ours", a_rule(applies_to={"projects": [PROJECT, "chemistry"]}))
    ask(http, "PUT", f"{URL}/theirs", a_rule(applies_to={"projects": ["chemistry"]}))
    ask(http, "PUT", f"{URL}/not-ours", a_rule(applies_to={"except_projects": [PROJECT]}))
    ask(http, "PUT", f"{URL}/asleep", {**a_rule(), "active": False})
    seen = ask(http, "GET", URL, who=MEMBER).json["rules"]
    assert [(one["name"], one["applies_to"]) for one in seen] == [("ours", {"projects": [PROJECT]})]
    assert ask(http, "GET", f"{URL}/theirs", who=MEMBER).status_code == 404
    others = ask(http, "GET", URL, who=OTHER).json["rules"]
    assert [(one["name"], one["applies_to"]) for one in others] == [
        ("not-ours", {}),
        ("ours", {"projects": ["chemistry"]}),
        ("theirs", {"projects": ["chemistry"]}),
    ]
    assert len(ask(http, "GET", URL).json["rules"]) == 4


@pytest.mark.parametrize(
    ("name", "document", "sentence"),
    [
        ("Nights", a_rule(), "up to 64 small letters"),
        ("nights", {"kind": "hours"}, "content"),
        ("nights", a_rule(open=[]), "content.open"),
        ("nights", a_rule(time_zone="Berlin"), "the name of a time zone such as Europe/Paris"),
        ("nights", a_rule(open=[{"from": "25:00"}]), "content.open[0].from"),
        ("nights", a_rule(open=[{"days": []}]), "content.open[0].days"),
        ("nights", a_rule(closed_on=["2030-02-30"]), "a day such as 2030-12-25"),
        ("nights", a_rule(longest_across="PT1H"), "belongs to apply: all"),
        ("nights", a_rule(colour="red"), "content.colour is unknown"),
        ("nights", a_rule("gap"), "content.at_least is missing"),
        ("nights", a_rule("gap", at_least="PT0S"), "a duration of more than 0"),
        ("nights", a_rule("gap", at_least="P1M"), "without years and months"),
        ("nights", a_rule("gap", at_least="PT1H", same="host"), "one of kind, any"),
        ("nights", a_rule(applies_to={"projects": []}), "leave it out for all"),
        ("nights", a_rule(applies_to={"resource_types": ["teapot"]}), "available are: "),
    ],
)
def test_what_is_wrong_is_named(http, name, document, sentence):
    refused = ask(http, "PUT", f"{URL}/{name}", document)
    assert refused.status_code == 400
    assert sentence in refused.json["errors"][0]["detail"]
    assert ask(http, "GET", URL).json["rules"] == []


def test_a_lease_at_night_is_refused_with_what_would_be_granted(http):
    assert book(http, "2030-04-01 21:00", "2030-04-02 01:00").status_code == 201
    ask(http, "PUT", f"{URL}/nights", a_rule())
    refused = book(http, "2030-04-02 21:00", "2030-04-03 01:00")
    (error,) = refused.json["errors"]
    assert (refused.status_code, error["code"], error["data"]["limit"]) == (403, "reservation.limit_exceeded", "nights")
    assert error["data"]["fits"] == {"start_date": "2030-04-03T06:00:00Z", "end_date": "2030-04-03T10:00:00Z"}
    assert [one["start_date"] for one in error["data"]["alternatives"]] == ["2030-04-03T06:00:00Z"]
    assert book(http, "2030-04-02 21:00", "2030-04-03 01:00", query="?dry_run=true").status_code == 403
    # The lease that was booked before stays, and may be shortened.
    (lease,) = ask(http, "GET", "/v1/leases", who=MEMBER).json["leases"]
    shorter = ask(http, "PUT", f"/v1/leases/{lease['id']}", {"end_date": "2030-04-02 00:00"}, who=MEMBER)
    assert shorter.status_code == 200
    longer = ask(http, "PUT", f"/v1/leases/{lease['id']}", {"end_date": "2030-04-02 02:00"}, who=MEMBER)
    assert longer.status_code == 200
    ask(http, "DELETE", f"{URL}/nights")
    assert book(http, "2030-04-02 21:00", "2030-04-03 01:00").status_code == 201


def test_openings_are_in_open_time_and_far_from_other_leases(http):
    ask(http, "PUT", f"{URL}/nights", a_rule())
    ask(http, "PUT", f"{URL}/gap", a_rule("gap", at_least="PT12H", over="PT6H"))
    assert book(http, "2030-04-02 06:00", "2030-04-02 14:00").status_code == 201
    question = {
        "duration": "PT8H",
        "earliest": "2030-04-01T20:00:00Z",
        "latest": "2030-04-05T00:00:00Z",
        "reservations": [HOST],
    }
    found = ask(http, "POST", "/v1/availability", question, who=MEMBER).json["availability"]
    # After the lease, twelve hours and the night: the next morning.
    assert [(one["start_date"], one["refusals"]) for one in found["openings"]] == [
        ("2030-04-02T06:00:00Z", []),
        ("2030-04-03T06:00:00Z", []),
        ("2030-04-04T06:00:00Z", []),
    ]
    for one in found["openings"][1:]:
        assert book(http, one["start_date"], one["end_date"], query="?dry_run=true").status_code == 200


def test_an_occurrence_of_a_series_at_night_does_not_fit(http):
    ask(http, "PUT", f"{URL}/nights", a_rule())
    body = {
        "name": "lab",
        "rule": "FREQ=DAILY;COUNT=3",
        "start": "2030-04-05T09:00",
        "duration": "PT2H",
        "time_zone": "Europe/Berlin",
        "reservations": [HOST],
        "fit": "as_many",
    }
    made = ask(http, "POST", "/v1/series", body, who=MEMBER)
    assert made.status_code == 201, made.json
    occurrences = made.json["series"]["occurrences"]
    # The sixth and the seventh are a weekend.
    assert [one["state"] == "unfit" for one in occurrences] == [False, True, True]
