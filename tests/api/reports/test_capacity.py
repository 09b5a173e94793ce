# SPDX-License-Identifier: Apache-2.0
"""``/v1/reports/capacity`` and ``/v1/reports/forecast``: who sees what, and what is refused with which words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
OPERATOR, CURIE = token("root", "admin", "admin"), token("curie", PROJECT)
DAY = "from=2030-04-01&to=2030-04-02"


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, path: str, *, who=OPERATOR, version: str = "1.1"):
    return http.get(f"/v1/reports/{path}", headers={"OpenStack-API-Version": f"reservation {version}", **who})


@pytest.fixture
def evening(world: World):
    """Two hours of two hosts of three; it is the evening."""
    world.lease(a_host(2), hours=2)
    world.run_to(NOON + 6 * HOUR)


def test_a_report_says_in_which_states_the_resources_were(evening, http):
    answer = ask(http, f"capacity?{DAY}")
    assert answer.status_code == 200, answer.text
    report = answer.json["report"]
    assert (report["computed_through"], report["step"]) == ("2030-04-01T18:00:00Z", "all")
    (row,) = report["rows"]
    amounts = row.pop("amounts")
    assert row == {
        "kind": "host",
        "resources": 3,
        "registered": 18 * 3600,
        "failed": 0,
        "maintenance": 0,
        "promised": 4 * 3600,
        "cleaning": 0,
        "disabled": 0,
        "free": 14 * 3600,
        "utilization": 0.222222,
    }
    assert 0 < amounts["VCPU"]["promised"] < amounts["VCPU"]["registered"]


def test_a_report_as_csv_has_a_column_for_each_state_and_amount(evening, http):
    head, row, _ = ask(http, f"capacity?{DAY}&format=csv").text.split("\r\n")
    assert head.startswith("kind,resources,registered_seconds,registered_hours,failed_seconds")
    assert "amounts.VCPU.promised" in head
    assert row.startswith("host,3,64800,18.00,0,0.00")


def test_a_forecast_as_csv_has_columns_for_what_is_expected_also_if_nothing_is(evening, http):
    answer = ask(http, "forecast?days=1&format=csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="blazar-forecast-2030-04-01.csv"'
    head, row, _ = answer.text.split("\r\n")
    assert head.startswith(
        "day,kind,registered_seconds,registered_hours,promised_seconds,promised_hours,expected.lower_"
    )
    assert row.startswith("2030-04-01,host,259200,72.00,14400,4.00,,,,,,,0,")


def test_members_see_the_capacity_too(evening, http):
    (row,) = ask(http, f"capacity?{DAY}&step=day&group_by=region", who=CURIE).json["report"]["rows"]
    assert (row["from"], row["to"], row["region"]) == ("2030-04-01T00:00:00Z", "2030-04-02T00:00:00Z", "")


def test_a_forecast_says_what_is_promised_and_why_nothing_is_expected(evening, world, http):
    world.lease(a_host(), start=24 * HOUR, hours=3)
    answer = ask(http, "forecast?days=3")
    assert answer.status_code == 200, answer.text
    forecast = answer.json["forecast"]
    assert [(row["day"], row["promised"]) for row in forecast["rows"]] == [
        ("2030-04-01", 4 * 3600),
        ("2030-04-02", 3 * 3600),
        ("2030-04-03", 0),
    ]
    for row in forecast["rows"]:
        assert (row["registered"], row["expected"], row["weeks"]) == (3 * 86400, None, 0)
        assert row["because"].startswith("0 such days are on record, and 4 are needed")
    assert forecast["accuracy"] == {"days": 0, "days_ahead": 7, "mean_error": None}
    assert forecast["unmet"] == []


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("capacity?from=2030-04-02&to=2030-04-01", "invalid_window", "which is not after from"),
        ("capacity?group_by=project", "invalid_query", "some of kind, region, property"),
        ("capacity?group_by=property", "invalid_query", "give both, or none of them"),
        ("capacity?group_by=property&property=colour", "unknown_property", "GET /v1/properties lists"),
        ("forecast?days=0", "invalid_query", "a whole number from 1"),
        ("forecast?days=93", "out_of_bounds", "92"),
        ("forecast?group_by=property&property=vcpus", "invalid_query", "[reports] properties"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(http, path, code, words):
    answer = ask(http, path)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"].removeprefix("reservation.")) == (400, code)
    assert words in error["detail"]


@pytest.mark.parametrize("path", ["capacity", "forecast"])
def test_neither_is_there_at_1_0(http, path):
    assert ask(http, path, version="1.0").status_code == 404
