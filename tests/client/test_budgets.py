# SPDX-License-Identifier: Apache-2.0
"""The client and budgets: the library and the command before the service itself."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from blazarclient.exception import Forbidden
from blazarclient.shell import main

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
OPERATOR, MEMBER = "root:admin:admin", "curie:physics"


@pytest.fixture
def way(sqlite):
    """A service on which a project has two hosts for two hours, of which one is over."""
    world = World(sqlite, filters=[ResourceHoursFilter({"host": 100}, PeriodCalendar())])
    world.lease(a_host(2), hours=2)
    world.run_to(NOON + HOUR)
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, *words: str, who: str = MEMBER) -> int:
    return main(
        ["--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url, "budget", "list", *words]
    )


def test_the_library_returns_what_the_service_tells(way):
    (budget,) = library(way.url, MEMBER).budgets.list()
    assert (budget.measure, budget.limit, budget.used, budget.held, budget.left) == ("host", "100", "2", "2", "96")
    assert budget.period is not None
    assert budget.period.start == NOON.replace(hour=0)
    (budget,) = library(way.url, MEMBER).budgets.list(at=date(2030, 5, 2))
    assert (budget.used, budget.left) == ("0", "100")
    assert [one.project_id for one in library(way.url, OPERATOR).budgets.list(all_projects=True)] == ["physics"]
    with pytest.raises(Forbidden):
        list(library(way.url, MEMBER).budgets.list(project_id="biology"))


def test_the_command_shows_what_is_left(way, capsys):
    assert run(way, "-f", "value", "-c", "measure", "-c", "left", "--timezone", "UTC") == 0
    assert capsys.readouterr().out == "host 96\n"
    assert run(way, "--all-projects", "-f", "json", who=OPERATOR) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["project_id"], row["left"], row["source"]) == ("physics", "96", "configuration")
