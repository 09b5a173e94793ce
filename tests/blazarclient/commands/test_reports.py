# SPDX-License-Identifier: Apache-2.0
"""``report``: hours for people, seconds for programs, both in CSV; days are the site's."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from keystoneauth1 import fixture
from requests.exceptions import ConnectTimeout

from tests.blazarclient.commands.conftest import NEW, URL, Run, sent

USAGE_ROW = {
    "project_id": "physics",
    "resource_type": "physical:host",
    "reserved": 1209600,
    "used": 800000,
    "idle": 300000,
    "unseen": 109600,
    "lost": 7200,
    "overrun": 0,
    "returned": 86400,
    "leases": 14,
    "energy_wh": 100800,
}
PERIOD = {
    "from": "2026-10-31T23:00:00Z",
    "to": "2026-11-30T23:00:00Z",
    "time_zone": "Europe/Paris",
    "step": "all",
    "computed_through": "2026-11-23T10:15:42Z",
    "unit": "seconds",
}
FORECAST = {
    "as_of": "2026-11-23T10:15:42Z",
    "time_zone": "Europe/Paris",
    "unit": "seconds",
    "method": "Expected, from the last 8 weeks.",
    "rows": [
        {
            "day": "2026-11-24",
            "kind": "host",
            "registered": 864000,
            "promised": 36000,
            "expected": {"lower": 36000, "median": 72000, "upper": 108000},
            "weeks": 8,
            "because": None,
        },
        {
            "day": "2026-11-25",
            "kind": "host",
            "registered": 864000,
            "promised": 0,
            "expected": None,
            "weeks": 1,
            "because": "one week is not enough",
        },
    ],
    "accuracy": {"days": 28, "mean_error": 0.07},
    "unmet": [],
}


def report(service: Any, name: str, *rows: dict[str, Any], **more: Any) -> None:
    told = {"report": {**PERIOD, **more, "rows": list(rows)}, "links": []}
    service.get(f"{URL}/reports/{name}", json=told, headers=NEW)


def query(service: Any) -> dict[str, list[str]]:
    (request,) = sent(service, "GET")
    return dict(request.qs)


def test_people_read_hours_and_of_which_period_they_are(run: Run, service: Any) -> None:
    report(service, "usage", USAGE_ROW)
    code, out, err = run("report", "usage", "--month", "2026-11", "--by", "project", "--by", "resource_type")
    assert code == 0
    assert query(service) == {
        "from": ["2026-11-01"],
        "to": ["2026-12-01"],
        "group_by": ["project,resource_type"],
        "step": ["all"],
    }
    head, row = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if "|" in line]
    assert head[:4] == ["project_id", "resource_type", "reserved", "used"]
    assert row == [
        "physics",
        "physical:host",
        "336.0",
        "222.22",
        "83.33",
        "30.44",
        "2.0",
        "0.0",
        "24.0",
        "14",
        "100800",
    ]
    assert err == "Hours from 2026-11-01 to 2026-12-01, as it was at 2026-11-23 11:15:42+01:00.\n"


def test_programs_get_seconds_and_csv_has_both(run: Run, service: Any) -> None:
    report(service, "usage", USAGE_ROW)
    code, out, err = run("report", "usage", "--by", "project", "-f", "json")
    assert (code, err, json.loads(out)) == (0, "", [USAGE_ROW])
    code, out, err = run("report", "usage", "--by", "project", "-f", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (code, err) == (0, "")
    assert (row["reserved_seconds"], row["reserved_hours"], row["lost_hours"]) == ("1209600", "336.00", "2.00")
    assert (row["project_id"], row["leases"]) == ("physics", "14")


def test_no_cell_of_csv_is_a_formula_and_other_programs_get_texts_as_they_are(run: Run, service: Any) -> None:
    row = {key: value for key, value in USAGE_ROW.items() if not key.endswith(("_id", "_type"))}
    report(service, "usage", *({**row, "property": value} for value in ("=1+1", "@SUM(1)", "+5\n,x", "fine")))
    asked = ("report", "usage", "--property", "x", "-c", "property", "-f")
    found = [line["property"] for line in csv.DictReader(io.StringIO(run(*asked, "csv")[1], newline=""))]
    assert found == ["'=1+1", "'@SUM(1)", "'+5\n,x", "fine"]
    assert [line["property"] for line in json.loads(run(*asked, "json")[1])] == ["=1+1", "@SUM(1)", "+5\n,x", "fine"]
    assert run(*asked, "value")[1].startswith("=1+1\n")


def test_of_a_month_to_come_nothing_has_been_yet(run: Run, service: Any) -> None:
    report(service, "usage", computed_through=PERIOD["from"])
    _, _, err = run("report", "usage", "--month", "2026-11")
    assert err == "Hours from 2026-11-01 to 2026-12-01, all of it still to come.\n"


def test_each_step_has_its_day_of_the_site(run: Run, service: Any) -> None:
    rows = [{**USAGE_ROW, "from": "2026-11-01T23:00:00Z", "to": "2026-11-08T23:00:00Z"}]
    report(service, "usage", *rows, step="week")
    code, out, _ = run("report", "usage", "--step", "week", "-f", "table", "-c", "from", "-c", "reserved")
    assert code == 0
    assert "| 2026-11-02 |    336.0 |" in out
    code, out, _ = run("report", "usage", "--step", "week", "-f", "csv", "-c", "from", "-c", "to")
    assert out.splitlines()[1] == '"2026-11-01T23:00:00Z","2026-11-08T23:00:00Z"'


def test_a_day_is_the_site_s_and_a_time_is_one_s_own(run: Run, service: Any) -> None:
    report(service, "usage")
    assert run("report", "usage", "--from", "2026-11-02", "--to", "2026-11-03 12:00")[0] == 0
    assert query(service)["from"] == ["2026-11-02"]
    assert query(service)["to"] == ["2026-11-03t11:00:00z"]


def test_without_rows_csv_has_its_head(run: Run, service: Any) -> None:
    report(service, "usage")
    code, out, _ = run("report", "usage", "-f", "csv")
    assert code == 0
    assert out.startswith('"resource_type","reserved_seconds","reserved_hours","used_seconds"')


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--month", "2026-13"), "--month is '2026-13'; write a month such as 2026-11"),
        (("--month", "november"), "write a month such as 2026-11"),
        (("--month", "2026-11", "--to", "now"), "Give --month, or --from and --to"),
        (("--by", "property"), "--by property needs --property <name>"),
        (("--from", "soon"), "--from: 'soon' is no time"),
    ],
)
def test_what_is_written_wrongly_is_told_before_anything_is_asked(
    run: Run, service: Any, words: tuple[str, ...], sentence: str
) -> None:
    code, out, err = run("report", "usage", *words)
    assert (code != 0, out) == (True, "")
    assert sentence in err
    assert sent(service, "GET") == []


def test_a_property_alone_is_what_rows_are_told_apart_by(run: Run, service: Any) -> None:
    states = {"registered": 864000, "promised": 432000, "free": 432000, "cleaning": 0}
    rest = {"disabled": 0, "maintenance": 0, "failed": 0, "utilization": 0.5, "resources": 10}
    amounts = {"amounts": {"VCPU": {"registered": 7200, "promised": 3600}}}
    report(service, "capacity", {"property": "A100", **states, **rest, **amounts})
    code, out, _ = run("report", "capacity", "--property", "gpu")
    assert code == 0
    assert query(service)["group_by"] == ["property"]
    assert query(service)["property"] == ["gpu"]
    assert "50 %" in out
    assert "VCPU" not in out
    code, out, _ = run("report", "capacity", "--property", "gpu", "-f", "csv", "-c", "amounts.VCPU.promised_hours")
    assert out.splitlines() == ['"amounts.VCPU.promised_hours"', '"1.00"']


def test_unmet_demand_is_counted_and_has_hours(run: Run, service: Any) -> None:
    counts = {"refused": 12, "refused_distinct": 3, "refused_seconds": 86400, "waited": 3600, "granted": 2}
    report(service, "demand", {"resource_type": "physical:host", **counts, "timed_out": 1})
    code, out, _ = run("report", "demand", "--project", "a" * 32)
    assert code == 0
    assert query(service)["project_id"] == ["a" * 32]
    heads, values = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if "|" in line]
    row = dict(zip(heads, values, strict=True))
    assert (row["refused"], row["refused_distinct"], row["refused_hours"], row["waited"]) == ("12", "3", "24.0", "1.0")


def test_a_forecast_says_how_it_is_made_and_why_there_is_none(run: Run, service: Any) -> None:
    service.get(f"{URL}/reports/forecast", json={"forecast": FORECAST, "links": []}, headers=NEW)
    code, out, err = run("report", "forecast", "--days", "2")
    assert code == 0
    assert query(service) == {"days": ["2"], "group_by": ["kind"]}
    expected = "Hours. Expected, from the last 8 weeks. In the last 28 days it was off by 7 % of all on average.\n"
    assert err == expected
    assert "one week is not enough" in out
    assert "| 2026-11-24 | host |      240.0 |     10.0 |           10.0 |            20.0 |           30.0 |" in out
    code, out, _ = run("report", "forecast", "-f", "json")
    assert json.loads(out)[0]["expected"] == {"lower": 36000, "median": 72000, "upper": 108000}


KEYSTONE = "https://keystone.example/v3"
PHYSICS, BIOLOGY = "a" * 32, "c" * 32
AS_CURIE = (
    *("--os-auth-type", "password", "--os-endpoint-override", URL, "--os-auth-url", KEYSTONE),
    *("--os-username", "curie", "--os-password", "radium", "--os-project-name", "physics"),
)


@pytest.fixture
def keystone(service: Any) -> Any:
    """Keystone, which knows curie of the project physics, and a report of two projects."""
    token = fixture.V3Token(
        project_id=PHYSICS, project_name="physics", user_id="b" * 32, user_name="curie", audit_id="a"
    )
    service.get(KEYSTONE, json={"version": fixture.V3Discovery(KEYSTONE)})
    service.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t0k3n"})
    report(service, "usage", *({**USAGE_ROW, "project_id": each} for each in (PHYSICS, BIOLOGY)))
    return service


def projects_of(run: Run, *words: str) -> list[str]:
    code, out, _ = run(*AS_CURIE, "report", "usage", "--by", "project", "-c", "project_id", *words)
    assert code == 0
    return [line.strip("| ") for line in out.splitlines() if line.startswith("| ")][1:]


def test_a_table_has_names_of_projects_which_are_asked_for_once(run: Run, keystone: Any) -> None:
    told = [{"id": PHYSICS, "name": "physics"}, {"id": BIOLOGY, "name": "biology"}, {"id": "d" * 32, "name": "else"}]
    keystone.get(f"{KEYSTONE}/projects", json={"projects": told})
    assert projects_of(run, "-f", "table") == ["physics", "biology"]
    assert len([request for request in keystone.request_history if request.path == "/v3/projects"]) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 403},
        {"status_code": 500, "text": "no"},
        {"text": "hello"},
        {"json": []},
        {"exc": ConnectTimeout},
    ],
)
def test_where_keystone_does_not_tell_names_the_own_one_is_known_at_most(
    run: Run, keystone: Any, answer: dict[str, Any]
) -> None:
    keystone.get(f"{KEYSTONE}/projects", **answer)
    found = projects_of(run, "-f", "table")
    assert found == ([PHYSICS, BIOLOGY] if "exc" in answer else ["physics", BIOLOGY])


def test_programs_get_ids_and_keystone_is_not_asked(run: Run, keystone: Any) -> None:
    code, out, _ = run(*AS_CURIE, "report", "usage", "--by", "project", "-f", "csv", "-c", "project_id")
    assert (code, out.split()) == (0, ['"project_id"', f'"{PHYSICS}"', f'"{BIOLOGY}"'])
    assert not [request for request in keystone.request_history if request.path == "/v3/projects"]


def test_the_energy_of_a_lease_is_shown_with_its_carbon(run: Run, service: Any) -> None:
    lease = "6a3f9c0e-1d2b-4c5d-8e7f-0a1b2c3d4e5f"
    carbon = {"gco2": 5800, "embodied_gco2": 1480, "sci_mg": 120833, "estimated": False, "complete": True}
    energy = {
        "computed_through": "2026-11-23T10:15:42Z",
        "resource_seconds": 172800,
        "energy_wh": 14400,
        "source": "rated",
        "unknown_seconds": 0,
        "carbon": {**carbon, "embodied_complete": True},
    }
    service.get(f"{URL}/leases/{lease}/energy", json={"energy": energy, "links": []}, headers=NEW)
    code, out, _ = run("lease", "energy", lease, "-f", "json")
    assert code == 0
    shown = json.loads(out)
    assert (shown["energy_wh"], shown["gco2"], shown["sci_mg"], shown["source"]) == (14400, 5800, 120833, "rated")
    without = {"energy": {**energy, "carbon": None}, "links": []}
    service.get(f"{URL}/leases/{lease}/energy", json=without, headers=NEW)
    code, out, _ = run("lease", "energy", lease, "-f", "json")
    assert json.loads(out)["gco2"] is None
