# SPDX-License-Identifier: Apache-2.0
"""``/v1/budgets``: what is left to a project before it is refused, in the same numbers as the refusal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.spend import SpendFilter
from blazar.model.billing.charges import NANO
from tests.api.conftest import app_of, client_of, token
from tests.manager.billing.ledger import publish
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
OPERATOR, CURIE = token("root", "admin", "admin"), token("curie", PROJECT)
HOST_HOURS = {
    "project_id": PROJECT,
    "measure": "host",
    "unit": "hours",
    "period": {"start": "2030-04-01T00:00:00Z", "end": "2030-05-01T00:00:00Z"},
    "limit": "100",
    "source": "configuration",
    "limit_name": "max_resource_hours",
}


@pytest.fixture
def world(engine):
    """Two projects have leases: one of two hosts, an hour of which is over, and one of another day."""
    world = World(engine, filters=[ResourceHoursFilter({"host": 100}, PeriodCalendar())])
    world.lease(a_host(2), hours=2)
    world.lease(a_host(), start=30 * HOUR, hours=10)
    world.lease(a_host(), start=3 * HOUR, hours=1, project="biology")
    world.run_to(NOON + HOUR)
    return world


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, query: str = "", *, who=CURIE):
    return http.get(f"/v1/budgets?{query}", headers={"OpenStack-API-Version": "reservation 1.1", **who})


def refused(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error["detail"]


def test_members_see_what_is_left_to_their_project(http):
    answer = ask(http)
    assert answer.status_code == 200, answer.text
    assert answer.json["budgets"] == [{**HOST_HOURS, "used": "2", "held": "12", "left": "86"}]
    assert ask(http, "at=2030-05-31").json["budgets"] == [
        {
            **HOST_HOURS,
            "period": {"start": "2030-05-01T00:00:00Z", "end": "2030-06-01T00:00:00Z"},
            **{"used": "0", "held": "0", "left": "100"},
        }
    ]


def test_a_refusal_has_the_same_numbers(http):
    dates = {"start_date": "2030-04-10 00:00", "end_date": "2030-04-13 15:00"}
    host = {"resource_type": "physical:host", "min": 1, "max": 1}
    body = {"name": "long", **dates, "reservations": [host]}
    answer = http.post("/v1/leases", json=body, headers={"OpenStack-API-Version": "reservation 1.1", **CURIE})
    _, _, detail = refused(answer)
    assert "of the 100 that the project has in a month (max_resource_hours) 86 are left for it" in detail


def test_operators_see_those_of_another_project_or_of_all(http):
    assert ask(http, "project_id=biology", who=OPERATOR).json["budgets"] == [
        {**HOST_HOURS, "project_id": "biology", "used": "0", "held": "1", "left": "99"}
    ]
    found = ask(http, "all_projects=true", who=OPERATOR).json["budgets"]
    assert [(one["project_id"], one["left"]) for one in found] == [("biology", "99"), (PROJECT, "86")]


def test_all_projects_are_read_in_pages_and_in_few_statements(http, engine):
    with counted(engine) as statements:
        first = ask(http, "all_projects=true&limit=1", who=OPERATOR).json
    assert statements.count == 2
    assert [one["project_id"] for one in first["budgets"]] == ["biology"]
    following = next(link["href"] for link in first["links"] if link["rel"] == "next")
    second = ask(http, following.partition("?")[2], who=OPERATOR).json
    assert [one["project_id"] for one in second["budgets"]] == [PROJECT]
    assert [link["rel"] for link in second["links"]] == ["self"]


def test_members_see_no_other_project(http):
    for query in ("project_id=biology", "all_projects=true"):
        status, code, detail = refused(ask(http, query))
        assert (status, code) == (403, "forbidden")
        assert query.partition("=")[0] in detail


def test_a_project_and_all_of_them_exclude_each_other(http):
    status, _, detail = refused(ask(http, "project_id=biology&all_projects=true", who=OPERATOR))
    assert status == 400
    assert "exclude each other" in detail


def test_without_a_filter_that_keeps_one_there_is_no_budget(engine):
    http = client_of(app_of(World(engine).manager))
    assert ask(http).json["budgets"] == []
    assert ask(http, "all_projects=true", who=OPERATOR).json["budgets"] == []


@pytest.fixture
def priced(engine):
    """A project has a lease of 2.00 that is over and charged, and one of 3.00 to come; it may spend 10 in a month."""
    world = World(engine, filters=[SpendFilter(10 * NANO)])
    publish(world)
    world.lease(a_host(2), hours=1)
    world.lease(a_host(), start=30 * HOUR, hours=3)
    world.run_to(NOON + 2 * HOUR)
    world.manager.closing.run_once()
    return client_of(app_of(world.manager))


def test_money_is_told_as_it_was_charged_and_is_planned_and_a_refusal_says_the_same(priced):
    (budget,) = ask(priced).json["budgets"]
    assert budget == {
        **HOST_HOURS,
        **{"measure": "EUR", "unit": "money", "limit": "10", "limit_name": "max_spend"},
        **{"used": "2", "held": "3", "left": "5"},
    }
    (may,) = ask(priced, "at=2030-05-31").json["budgets"]
    assert (may["used"], may["held"], may["left"]) == ("0", "0", "10")
    dates = {"start_date": "2030-04-10 00:00", "end_date": "2030-04-10 06:00"}
    host = {"resource_type": "physical:host", "min": 1, "max": 1}
    body = {"name": "long", **dates, "reservations": [host]}
    headers = {"OpenStack-API-Version": "reservation 1.1", **CURIE}
    answer = priced.post("/v1/leases", json=body, headers=headers)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (403, "reservation.limit_exceeded")
    assert "of the 10.00 that the project has for a month (max_spend) 5.00 are left" in error["detail"]
    assert error["data"]["fits"]["duration_seconds"] == 5 * 3600
    preview = priced.post("/v1/leases?dry_run=true", json=body, headers=headers)
    assert preview.json["errors"][0]["detail"] == error["detail"]
    start = {key: error["data"]["fits"][key] for key in ("start_date", "end_date")}
    assert priced.post("/v1/leases", json={**body, **start}, headers=headers).status_code == 201


def test_openings_say_what_is_too_dear_and_a_start_that_is_not_is_offered(priced):
    body = {
        "earliest": "2030-04-20T00:00:00Z",
        "latest": "2030-05-10T00:00:00Z",
        "duration": "PT8H",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}],
    }
    headers = {"OpenStack-API-Version": "reservation 1.1", **CURIE}
    answer = priced.post("/v1/availability", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found = answer.json["availability"]
    (refusal,) = found["openings"][0]["refusals"]
    assert refusal["data"]["measure"] == "EUR"
    assert refusal["data"]["fits"]["duration_seconds"] == 5 * 3600
    # Five hours of it are paid in April, three in May.
    other, shorter = found["alternatives"]
    assert (other["change"], other["start_date"]) == ("time", "2030-04-30T19:00:00Z")
    assert (shorter["change"], shorter["end_date"]) == ("duration", "2030-04-20T05:00:00Z")


def test_money_of_all_projects_is_read_in_as_many_statements_whatever_their_number(priced, engine):
    with counted(engine) as statements:
        ask(priced, "all_projects=true", who=OPERATOR)
    assert statements.count == 4


def test_a_dry_run_of_a_change_is_denied_as_the_change_is(priced):
    headers = {"OpenStack-API-Version": "reservation 1.1", **CURIE}
    (lease,) = [one for one in priced.get("/v1/leases", headers=headers).json["leases"] if one["status"] == "PENDING"]

    def change(end: str, query: str):
        return priced.put(f"/v1/leases/{lease['id']}{query}", json={"end_date": end}, headers=headers)

    tried, made = (change("2030-04-03 02:00:01", query) for query in ("?dry_run=true", ""))
    assert tried.status_code == made.status_code == 403
    assert tried.json["errors"][0]["detail"] == made.json["errors"][0]["detail"]
    assert "5.01 EUR more for April 2030" in made.json["errors"][0]["detail"]
    allowed = change("2030-04-03 02:00", "?dry_run=true")
    assert allowed.json["lease"]["price"]["difference"] == "5.00"
    assert change("2030-04-03 02:00", "").status_code == 200
