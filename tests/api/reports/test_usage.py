# SPDX-License-Identifier: Apache-2.0
"""``/v1/reports/usage``: who sees what, what may be asked for, and what is refused with which words."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, client_of, token
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
OPERATOR, CURIE = token("root", "admin", "admin"), token("curie", PROJECT)
DAY = "from=2030-04-01&to=2030-04-02"


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, query: str = DAY, *, who=OPERATOR, version: str = "1.1"):
    return http.get(f"/v1/reports/usage?{query}", headers={"OpenStack-API-Version": f"reservation {version}", **who})


def rows(answer):
    assert answer.status_code == 200, answer.text
    return answer.json["report"]["rows"]


def refused(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error["detail"]


@pytest.fixture
def two_projects(world: World):
    """Two hours of two hosts of one project, one hour of a host of another one; it is the evening."""
    world.lease(a_host(2), hours=2)
    world.lease(a_host(), start=3 * HOUR, hours=1, project="biology")
    world.run_to(NOON + 6 * HOUR)


def test_a_report_has_the_sums_of_its_period(two_projects, http):
    answer = ask(http, f"{DAY}&group_by=project,resource_type")
    assert answer.json["links"] == []
    report = answer.json["report"]
    assert {key: value for key, value in report.items() if key != "rows"} == {
        "from": "2030-04-01T00:00:00Z",
        "to": "2030-04-02T00:00:00Z",
        "time_zone": "UTC",
        "step": "all",
        "computed_through": "2030-04-01T18:00:00Z",
        "unit": "seconds",
        "unbooked": None,
        "lent_seconds": 0,
    }
    biology, physics = report["rows"]
    assert (biology["project_id"], biology["reserved"], biology["leases"]) == ("biology", 3600, 1)
    assert (physics["project_id"], physics["reserved"], physics["leases"]) == (PROJECT, 4 * 3600, 1)
    assert physics["resource_type"] == "physical:host"


def test_members_see_what_their_own_project_had(two_projects, http):
    (row,) = rows(ask(http, f"{DAY}&group_by=project", who=CURIE))
    assert (row["project_id"], row["reserved"]) == (PROJECT, 4 * 3600)
    *found, sentence = refused(ask(http, f"{DAY}&project_id=biology", who=CURIE))
    assert found == [403, "forbidden"]
    assert sentence.endswith("; leave it out")
    (row,) = rows(ask(http, f"{DAY}&project_id=biology"))
    assert row["reserved"] == 3600


def test_members_see_no_other_users_of_their_project(two_projects, http):
    assert [row["user_id"] for row in rows(ask(http, f"{DAY}&group_by=user", who=CURIE))] == ["curie"]
    assert [row["user_id"] for row in rows(ask(http, f"{DAY}&group_by=user", who=token("pierre", PROJECT)))] == [None]
    assert [row["user_id"] for row in rows(ask(http, f"{DAY}&group_by=user"))] == ["curie"]


def test_steps_cut_the_period(two_projects, http):
    found = rows(ask(http, "from=2030-04-01T13:00:00Z&to=2030-04-03&step=day"))
    assert [(row["from"], row["to"], row["reserved"]) for row in found] == [
        ("2030-04-01T13:00:00Z", "2030-04-02T00:00:00Z", 3 * 3600)
    ]


def test_a_property_of_resources_is_a_group(world, http):
    host = world.store.resources.catalog(HOST).resources[0]
    world.manager.resources.change(HOST, host.external_id, ResourceChange({"gpu": "a100"}))
    world.lease(a_host(3), hours=1)
    world.run_to(NOON + 2 * HOUR)
    found = rows(ask(http, f"{DAY}&group_by=property&property=gpu"))
    assert [(row["property"], row["reserved"]) for row in found] == [("a100", 3600), (None, 2 * 3600)]


def test_the_month_so_far_is_the_period_by_default(two_projects, http):
    report = ask(http, "").json["report"]
    assert (report["from"], report["to"]) == ("2030-04-01T00:00:00Z", "2030-04-01T18:00:00Z")


def test_what_is_to_come_is_not_in_a_report(two_projects, world, http):
    world.lease(a_host(), start=HOUR, hours=4)
    assert sum(row["reserved"] for row in rows(ask(http))) == 5 * 3600
    assert rows(ask(http, "from=2030-04-02&to=2030-04-03")) == []


def test_nobody_had_a_lease_beyond_its_end_that_was_never_handed_over(world, http):
    missed = world.lease(a_host(), hours=1)
    world.clock.to(NOON + 5 * HOUR)
    world.run()
    assert [event.status for event in world.now(missed).events][0] != "DONE"
    (row,) = rows(ask(http))
    assert (row["reserved"], row["lost"], row["overrun"]) == (3600, 3600, 0)
    late = world.lease(a_host(), hours=1)
    world.run()
    world.clock.to(NOON + 8 * HOUR)
    world.run()
    assert world.now(late).status == "TERMINATED"
    (row,) = rows(ask(http))
    assert (row["reserved"], row["lost"], row["overrun"]) == (7200, 3600, 2 * 3600)


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("from=2030-04-02&to=2030-04-01", "invalid_window", "which is not after from"),
        (
            "from=2030-01-01&to=2030-04-01",
            "out_of_bounds",
            "are not on record as such, of which a report has at most 31; the record has none of the days",
        ),
        ("from=2030-02-30", "invalid_date", "give a day such as"),
        ("from=yesterday", "invalid_date", "give a date such as"),
        ("group_by=project,user,kind,region", "invalid_query", "give 3 at most"),
        ("group_by=colour", "invalid_query", "some of project, user"),
        ("group_by=property", "invalid_query", "give both, or none of them"),
        ("property=gpu", "invalid_query", "give both, or none of them"),
        ("group_by=property&property=colour", "unknown_property", "GET /v1/properties lists"),
        ("step=hour", "invalid_query", "one of day, week, month, all"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(http, query, code, words):
    status, found, sentence = refused(ask(http, query))
    assert (status, found) == (400, code)
    assert words in sentence


def test_there_are_no_reports_at_1_0(http):
    assert ask(http, version="1.0").status_code == 404


def test_the_number_of_statements_does_not_depend_on_leases(world, http):
    def count(query: str) -> int:
        with counted(world.engine) as statements:
            rows(ask(http, query))
        return statements.count

    queries = (DAY, f"{DAY}&step=day&group_by=project,user")
    before = [count(query) for query in queries]
    for number in range(3):
        world.lease(a_host(), hours=1, start=number * HOUR, project=f"p{number}")
    world.run_to(NOON + 6 * HOUR)
    assert [count(query) for query in queries] == before == [9, 9]


def test_it_is_csv_by_parameter_or_header_with_the_same_figures(two_projects, http):
    query = f"{DAY}&group_by=project,resource_type"
    expected = rows(ask(http, query))
    by_header = ask(http, query, who={**OPERATOR, "Accept": "text/csv"})
    answer = ask(http, f"{query}&format=csv")
    assert by_header.headers["Vary"] == ask(http, query).headers["Vary"]
    assert by_header.headers["Vary"].endswith(", Accept")
    assert (answer.status_code, answer.mimetype, by_header.data) == (200, "text/csv", answer.data)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="blazar-usage-2030-04-01-2030-04-02.csv"'
    found = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [(one["project_id"], int(one["reserved_seconds"]), one["leases"]) for one in found] == [
        (one["project_id"], one["reserved"], str(one["leases"])) for one in expected
    ]
    assert [one["reserved_hours"] for one in found] == [f"{one['reserved'] / 3600:.2f}" for one in expected]
    by_day = ask(http, f"{query}&step=day&format=csv").text.splitlines()
    assert by_day[0].startswith("from,to,project_id,resource_type,reserved_seconds,reserved_hours")
    assert by_day[1].startswith("2030-04-01T00:00:00Z,2030-04-02T00:00:00Z,biology,physical:host,")


def test_csv_without_rows_has_its_head_and_a_refusal_is_json(http):
    assert ask(http, f"{DAY}&format=csv").text.startswith("reserved_seconds,reserved_hours")
    assert refused(ask(http, f"{DAY}&format=xml"))[0] == 400
    assert refused(ask(http, f"{DAY}&format=csv&property=gpu"))[0] == 400


def test_csv_has_a_tag_like_any_answer(two_projects, http):
    first = ask(http, f"{DAY}&format=csv")
    again = ask(http, f"{DAY}&format=csv", who={**OPERATOR, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, ask(http).headers["ETag"] == first.headers["ETag"]) == (304, False)


def rate(world, number: int, **watts) -> None:
    host = world.store.resources.catalog(HOST).resources[number]
    world.manager.resources.change(
        HOST, host.external_id, ResourceChange({f"power_{k}_w": v for k, v in watts.items()})
    )


def test_the_energy_of_hosts_is_by_their_ratings(world, http):
    rate(world, 0, idle="180", max="420")
    rate(world, 1, idle="100.5", max="300")
    world.lease(a_host(3), hours=2)
    world.run_to(NOON + 3 * HOUR)
    # Half of the load for two hours: 300 W and 200.25 W; the third host has no rating.
    (row,) = rows(ask(http))
    assert (row["reserved"], row["energy_wh"]) == (6 * 3600, 1000)
    (row,) = rows(ask(http, f"{DAY}&group_by=project", who=CURIE))
    assert row["energy_wh"] == 1000


def test_energy_is_cut_at_parts_and_rounded_once_in_each(world, http):
    rate(world, 0, idle="1", max="1")
    rate(world, 1, idle="1", max="1")
    world.lease(a_host(2), start=11 * HOUR + HOUR / 2, hours=1)
    world.run_to(NOON + 13 * HOUR)
    found = rows(ask(http, "from=2030-04-01&to=2030-04-03&step=day"))
    assert [(row["from"], row["energy_wh"]) for row in found] == [
        ("2030-04-01T00:00:00Z", 1),
        ("2030-04-02T00:00:00Z", 1),
    ]


@pytest.mark.parametrize("watts", [{}, {"idle": "180"}])
def test_hosts_without_a_rating_that_can_be_have_no_energy(world, http, watts):
    if watts:
        for number in range(3):
            rate(world, number, **watts)
    world.lease(a_host(3), hours=2)
    world.run_to(NOON + 3 * HOUR)
    (row,) = rows(ask(http))
    assert (row["reserved"], row["energy_wh"]) == (6 * 3600, None)


def test_servers_on_shared_hosts_have_no_energy(world, http):
    for number in range(3):
        rate(world, number, idle="180", max="420")
    world.lease(instances(2), hours=2)
    world.run_to(NOON + 3 * HOUR)
    (row,) = rows(ask(http))
    assert (row["reserved"], row["energy_wh"]) == (4 * 3600, None)


def test_the_energy_of_closed_days_is_that_of_open_ones(world, http):
    rate(world, 0, idle="180", max="420")
    world.lease(a_host(3), hours=2)
    world.run_to(NOON + 3 * HOUR)
    before = rows(ask(http))
    world.run_to(NOON + 40 * HOUR)
    assert world.manager.usage_days.run_once() > 0
    assert rows(ask(http)) == before


def test_operators_are_told_what_hosts_drew_that_no_lease_had(world, two_projects, http):
    hosts = world.store.resources.catalog(HOST).resources
    for host in hosts:
        rated = {"power_idle_w": "100", "power_max_w": "300"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(rated))
    answer = ask(http, f"{DAY}&unbooked=true&group_by=project")
    seconds = len(hosts) * 6 * 3600 - 5 * 3600
    assert [row["energy_wh"] for row in rows(answer)] == [200, 800]
    assert answer.json["report"]["unbooked"] == {
        "idle": {
            "resource_seconds": seconds,
            "energy_wh": seconds // 36,
            "source": "rated",
            "unknown_seconds": 0,
            "gco2": None,
        },
        "asleep": {"resource_seconds": 0, "energy_wh": None, "source": None, "unknown_seconds": 0, "gco2": None},
    }


@pytest.mark.parametrize(
    ("query", "who", "status", "sentence"),
    [
        ("unbooked=true", CURIE, 403, "unbooked is told to operators only; leave it out"),
        ("unbooked=true&project_id=biology", OPERATOR, 400, "unbooked is of no project; leave out project_id"),
        ("unbooked=true&format=csv", OPERATOR, 400, "ask for JSON, or leave unbooked out"),
        ("unbooked=yes", OPERATOR, 400, "true or false"),
        ("unbooked=true&from=2030-01-01", OPERATOR, 400, "unbooked covers at most 31 days"),
    ],
)
def test_what_belongs_to_nobody_is_refused_with_what_to_leave_out(http, query, who, status, sentence):
    answer = ask(http, query, who=who)
    assert answer.status_code == status
    assert sentence in answer.json["errors"][0]["detail"]
