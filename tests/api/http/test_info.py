# SPDX-License-Identifier: Apache-2.0
"""What the service says of itself and of what the caller may do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.enforcement.limits import MaxLeaseDurationFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import ManagerUnavailable, NothingDone, OutOfTime
from blazar.model.base.paging import ApiBounds, PageBounds
from blazar.model.base.service_info import ReadBounds
from blazar.model.leases.limits import Bounds
from tests.api.conftest import app_of, client_of, token
from tests.observed import FailingManager
from tests.statements import counted
from tests.world import World

VERSION = {"OpenStack-API-Version": "reservation 1.1"}


def info(http, **headers):
    answer = http.get("/v1/info", headers={**VERSION, **headers})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json["info"]


def test_members_and_operators_learn_what_they_may_do(http):
    member = info(http, **token("curie", "physics"))
    assert (member["now"], member["user_id"], member["project_id"]) == ("2030-04-01T12:00:00Z", "curie", "physics")
    assert {"blazar:leases:post", "blazar:calendar:get", "blazar:info:get"} <= set(member["allowed"])
    assert not {"blazar:oshosts:get", "blazar:calendar:get_owners"} & set(member["allowed"])
    assert {"blazar:oshosts:get", "blazar:calendar:get_owners"} <= set(info(http)["allowed"])
    # Any token will do.
    assert info(http, **token("nova", "art", "service"))["allowed"] == ["blazar:info:get"]
    assert http.get("/v1/info", headers={**VERSION, "X-Auth-Token": "nobody"}).status_code == 401
    assert http.get("/v1/info?all=1", headers=VERSION).status_code == 400


def test_the_kinds_of_lease_that_the_caller_may_book_are_told(http):
    assert info(http, **token("curie", "physics"))["kinds"] == ["scheduled", "immediate", "retries"]
    assert info(http)["kinds"] == ["scheduled", "immediate", "retries", "best_effort"]
    assert info(http, **token("marie", "physics", "reader"))["kinds"] == []


def test_limits_and_times_are_those_that_are_configured(sqlite):
    settings = Settings(before_end_lead=timedelta(hours=1), before_end="snapshot", bounds=Bounds(leases=5))
    limit = MaxLeaseDurationFilter(timedelta(days=7), exempt=["art"])
    world = World(sqlite, settings=settings, filters=[limit], cleaning_time=timedelta(minutes=30))
    http = client_of(app_of(world.manager))
    with counted(sqlite) as statements:
        found = info(http)
    assert statements.count == 0
    assert found["before_end"] == {"default": "snapshot", "lead_seconds": 3600}
    assert found["cleaning_seconds"] == 1800
    assert found["confirm_within_seconds"] == 900
    assert found["limits"] == [
        {"limit": "leases_per_project", "value": 5, "unit": "leases"},
        {"limit": "max_lease_duration", "value": 604800, "unit": "seconds"},
    ]
    assert [each["limit"] for each in info(http, **token("frida", "art"))["limits"]] == ["leases_per_project"]
    assert "physical:host" in found["resource_types"]


def test_the_ways_by_which_subscribers_are_told_are_those_that_the_service_has(sqlite):
    world = World(sqlite)
    assert info(client_of(app_of(world.manager)))["channels"] == ["webhook", "mail"]
    world.mail.enabled = False
    assert info(client_of(app_of(world.manager)))["channels"] == ["webhook"]


@pytest.mark.parametrize("error", [ManagerUnavailable("away"), NothingDone("away"), OutOfTime("away")], ids=repr)
def test_without_a_manager_the_api_says_what_it_knows_itself(world, error):
    whole = info(client_of(app_of(world.manager)), **token("curie", "physics"))
    http = client_of(app_of(FailingManager(world.manager, {"service.facts": error})))
    bare = info(http, **token("curie", "physics"))
    assert bare["notice"].startswith("No blazar-manager answers at present")
    for name in ("user_id", "project_id", "allowed", "kinds"):
        assert bare[name] == whole[name]
    assert bare["bounds"].items() <= whole["bounds"].items()
    assert bare["bounds"]["page"] == 1000
    assert whole.keys() - bare.keys() == {
        "resource_types", "before_end", "cleaning_seconds", "confirm_within_seconds", "limits", "idempotency_seconds",
        "channels",
    }  # fmt: skip
    assert "notice" not in whole


@pytest.mark.slow
def test_bounds_are_those_that_are_configured_and_that_hold(sqlite):
    reads = ReadBounds(
        longest_range=timedelta(days=30),
        back=timedelta(days=9),
        back_of_members=timedelta(days=2),
        ahead=timedelta(days=60),
        groups=3,
        properties=1,
        feeds_of_user=1,
    )
    world = World(sqlite, hosts=5, settings=Settings(reads=reads, idempotency_retention=timedelta(hours=2)))
    lists = ApiBounds(pages=PageBounds(1, 2), calendar=PageBounds(3, 4), openings=PageBounds(1, 1))
    http = client_of(create_app(world.manager, identity=StandaloneIdentity(), bounds=lists))
    member = {**VERSION, **token("curie", "physics")}
    found = info(http)
    assert found["idempotency_seconds"] == 7200
    bounds = found["bounds"]
    assert info(http, **member)["bounds"] == {**bounds, "range_back_seconds": 2 * 86400}

    def length(path: str) -> int:
        body = http.get(f"/v1/{path}", headers=VERSION).json
        return len(next(items for items in body.get("calendar", body).values() if isinstance(items, list)))

    for path, name in (
        ("resources/host", "page"),
        ("resources/host/allocations", "page"),
        ("calendar", "calendar_page"),
    ):
        assert length(path) == bounds[f"default_{name}"]
        assert length(f"{path}?limit=1000") == bounds[name]
    assert length("properties") == bounds["properties"] == 1

    def refused(path: str, headers=member) -> tuple[str, int]:
        answer = http.get(f"/v1/{path}", headers=headers)
        assert answer.status_code == 400, answer.text
        (fault,) = answer.json["errors"]
        return fault["code"], fault["data"]["maximum"]

    for route in ("calendar", "capacity"):
        for query, headers, name in (
            ("from=-P3D", member, None),
            ("from=-P10D", VERSION, "range_back_seconds"),
            ("from=%2BP10D&to=%2BP31D", VERSION, "range_seconds"),
            ("from=%2BP40D&to=%2BP21D", VERSION, "range_ahead_seconds"),
        ):
            most = 2 * 86400 if name is None else bounds[name]
            assert refused(f"{route}?{query}", headers) == ("reservation.out_of_bounds", most)
        assert http.get(f"/v1/{route}?from=-P9D", headers=VERSION).status_code == 200
    assert refused("capacity?group_by=id", VERSION) == ("reservation.out_of_bounds", bounds["capacity_groups"])
    asked = {"reservations": [{"resource_type": "physical:host", "min": 1}], "duration": "PT1H", "limit": 9}
    openings = http.post("/v1/availability", json=asked, headers=member).json["availability"]["openings"]
    assert len(openings) <= bounds["openings"]
    feed = {"kind": "user", "name": "mine"}
    assert http.post("/v1/feeds", json=feed, headers=member).status_code == 201
    # Of one user, in whichever project.
    (fault,) = http.post("/v1/feeds", json=feed, headers={**VERSION, **token("curie", "art")}).json["errors"]
    assert (fault["code"], fault["data"]) == ("reservation.out_of_bounds", {"maximum": bounds["feeds"]})
    assert http.post("/v1/feeds", json=feed, headers={**VERSION, **token("frida", "art")}).status_code == 201
