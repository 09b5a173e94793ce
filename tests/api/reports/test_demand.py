# SPDX-License-Identifier: Apache-2.0
"""``/v1/reports/demand``: what was asked for and not granted, of the own project."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import NotEnoughResources
from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
OPERATOR, CURIE = token("root", "admin", "admin"), token("curie", PROJECT)
DAY = "from=2030-04-01&to=2030-04-02"


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, query: str = DAY, *, who=OPERATOR, version: str = "1.1"):
    headers = {"OpenStack-API-Version": f"reservation {version}", **who}
    return http.get(f"/v1/reports/demand?{query}", headers=headers)


def rows(answer):
    assert answer.status_code == 200, answer.text
    return answer.json["report"]["rows"]


def refuse(world: World, amount: int, **more) -> None:
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(amount), **more)


@pytest.fixture
def refusals(world: World):
    """A project asks twice for the same, and for something else; another one, too."""
    for amount in (4, 4, 5):
        refuse(world, amount, hours=2)
    refuse(world, 4, hours=1, project="biology")
    world.manager.refused_requests.write()


def test_what_was_refused_is_counted_and_the_same_within_an_hour_once_only(refusals, http):
    report = ask(http).json["report"]
    assert (report["from"], report["to"]) == ("2030-04-01T00:00:00Z", "2030-04-02T00:00:00Z")
    assert "the last minute is missing" in report["counted"]
    assert report["rows"] == [
        {
            "resource_type": "physical:host",
            "refused": 4,
            "refused_distinct": 3,
            "refused_seconds": 4 * 7200 + 5 * 7200 + 4 * 3600,
            "refused_amounts": {},
            "waited": 0,
            "granted": 0,
            "timed_out": 0,
        }
    ]


def test_a_report_as_csv(refusals, http):
    head, row, _ = ask(http, f"{DAY}&format=csv&group_by=code").text.split("\r\n")
    assert head.startswith("code,refused,refused_distinct,refused_seconds,refused_amounts,waited_seconds,waited_hours")
    assert row.startswith(f"not_enough_resources,4,3,{9 * 7200 + 4 * 3600},")


def test_members_see_what_their_own_project_was_refused(refusals, http):
    (row,) = rows(ask(http, f"{DAY}&group_by=project,code", who=CURIE))
    assert (row["project_id"], row["code"], row["refused"]) == (PROJECT, "not_enough_resources", 3)
    assert ask(http, f"{DAY}&project_id=biology", who=CURIE).status_code == 403
    (row,) = rows(ask(http, f"{DAY}&project_id=biology"))
    assert row["refused"] == 1


def test_a_forecast_has_it_beside_what_is_expected(refusals, http):
    headers = {"OpenStack-API-Version": "reservation 1.1", **CURIE}
    forecast = http.get("/v1/reports/forecast?days=1", headers=headers).json["forecast"]
    assert forecast["unmet"] == [
        {"resource_type": "physical:host", "refused": 3, "refused_distinct": 2, "refused_seconds": 9 * 7200}
    ]


def test_the_period_is_widened_to_whole_days(refusals, world, http):
    world.run_to(NOON + 30 * HOUR)
    report = ask(http, "from=2030-04-01T13:00:00Z&to=2030-04-02T01:00:00Z&step=day").json["report"]
    assert (report["from"], report["to"]) == ("2030-04-01T00:00:00Z", "2030-04-03T00:00:00Z")
    assert [(row["from"], row["refused"]) for row in report["rows"]] == [("2030-04-01T00:00:00Z", 4)]


def test_a_dry_run_and_a_request_that_waits_are_not_refused(world, http):
    world.waits = True
    world.lease(a_host(3), hours=2)
    world.lease(a_host(2), hours=1, wait=8 * HOUR)
    world.run_to(NOON + 5 * HOUR)
    world.manager.refused_requests.write()
    (row,) = rows(ask(http))
    assert (row["refused"], row["waited"], row["granted"]) == (0, 7200, 1)


@pytest.mark.parametrize(
    ("query", "code"), [("from=2030-04-02&to=2030-04-01", "invalid_window"), ("group_by=user", "invalid_query")]
)
def test_what_cannot_be_is_refused(http, query, code):
    answer = ask(http, query)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"].removeprefix("reservation.")) == (400, code)


def test_there_is_no_report_at_1_0(http):
    assert ask(http, version="1.0").status_code == 404
