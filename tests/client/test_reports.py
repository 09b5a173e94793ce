# SPDX-License-Identifier: Apache-2.0
"""The client and reports: the library and the commands before the service itself, with the same figures."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, timedelta

import pytest
from blazarclient.exception import Forbidden, InvalidRequest
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
OPERATOR = "root:admin:admin"
PERIOD = ("--from", "2030-04-01", "--to", "2030-04-02")


@pytest.fixture
def way(world: World):
    """A service on which two projects had hosts: two for two hours, and one for one hour."""
    world.lease(a_host(2), hours=2)
    world.lease(a_host(), start=3 * HOUR, hours=1, project="biology")
    world.run_to(NOON + 6 * HOUR)
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, *words: str, who: str = OPERATOR) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url, *words])


def test_the_library_returns_what_the_service_tells(way):
    report = library(way.url, OPERATOR).reports.usage(
        date(2030, 4, 1), date(2030, 4, 2), group_by=("project", "resource_type")
    )
    assert [(row["project_id"], row["reserved"]) for row in report.rows] == [("biology", 3600), ("physics", 4 * 3600)]
    assert (report.start, report.end) == (NOON.replace(hour=0), NOON.replace(hour=0) + timedelta(days=1))
    assert (report.computed_through, report.time_zone, report.step) == (NOON + 6 * HOUR, "UTC", "all")
    by_day = library(way.url, OPERATOR).reports.usage(NOON, NOON + HOUR, step="day")
    assert [row["reserved"] for row in by_day.rows] == [2 * 3600]


def test_what_belongs_to_nobody_is_told_to_operators(way, capsys):
    report = library(way.url, OPERATOR).reports.usage(date(2030, 4, 1), date(2030, 4, 2), unbooked=True)
    found = report.unbooked
    assert found.idle.resource_seconds == found.idle.unknown_seconds > 0
    assert (found.asleep.resource_seconds, found.idle.energy_wh, found.idle.source) == (0, None, None)
    assert library(way.url, OPERATOR).reports.usage().unbooked is None
    assert run(way, "report", "unbooked", *PERIOD) == 0
    told = capsys.readouterr()
    cells = [line.split("|")[1:3] for line in told.out.splitlines() if "idle" in line]
    assert [(state.strip(), float(hours)) for state, hours in cells] == [("idle", found.idle.resource_seconds / 3600)]
    assert "Hours from 2030-04-01 to 2030-04-02" in told.err
    assert run(way, "report", "unbooked", *PERIOD, "-f", "json") == 0
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["idle", "asleep"]
    assert run(way, "report", "unbooked", "--month", "2031-01") == 0
    assert "all of it still to come" in capsys.readouterr().err


def test_each_other_report_is_read_the_same_way(way):
    reports = library(way.url, OPERATOR).reports
    (capacity,) = reports.capacity(date(2030, 4, 1), date(2030, 4, 2)).rows
    assert (capacity["kind"], capacity["promised"]) == ("host", 5 * 3600)
    assert reports.demand(date(2030, 4, 1), date(2030, 4, 2), group_by="code").rows == ()
    forecast = reports.forecast(days=2)
    assert [(row["day"], row["expected"]) for row in forecast.rows] == [("2030-04-01", None), ("2030-04-02", None)]
    assert forecast.accuracy["mean_error"] is None


def test_all_formats_of_a_command_have_the_same_figures(way, capsys):
    words = ("report", "usage", *PERIOD, "--by", "project")
    assert run(way, *words) == 0
    told = capsys.readouterr()
    assert "| physics    |      4.0 |" in told.out
    assert "Hours from 2030-04-01 to 2030-04-02, as it was at 2030-04-01" in told.err
    assert run(way, *words, "-f", "json") == 0
    assert [(row["project_id"], row["reserved"]) for row in json.loads(capsys.readouterr().out)] == [
        ("biology", 3600),
        ("physics", 4 * 3600),
    ]
    assert run(way, *words, "-f", "csv") == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert [(row["project_id"], row["reserved_hours"]) for row in rows] == [("biology", "1.00"), ("physics", "4.00")]


@pytest.mark.parametrize("words", [("capacity", *PERIOD), ("demand", *PERIOD), ("forecast", "--days", "2")])
@pytest.mark.parametrize("form", ["table", "csv", "json", "value"])
def test_each_report_has_a_command(way, capsys, words, form):
    assert run(way, "report", *words, "-f", form) == 0, capsys.readouterr().err


def test_members_have_reports_of_their_project_only(way, capsys):
    assert (
        run(way, "report", "usage", *PERIOD, "--by", "project", "-f", "value", "-c", "project_id", who="curie:physics")
        == 0
    )
    assert capsys.readouterr().out == "physics\n"
    assert run(way, "report", "usage", "--project", "biology", who="curie:physics") != 0
    with pytest.raises(Forbidden):
        library(way.url, "curie:physics").reports.usage(project_id="biology")
    with pytest.raises(InvalidRequest, match="group_by"):
        library(way.url, OPERATOR).reports.usage(group_by="colour")
