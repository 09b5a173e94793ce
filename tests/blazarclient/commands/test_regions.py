# SPDX-License-Identifier: Apache-2.0
"""Regions on the command line: where something is to be, and where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import ID, LEASE, SPOKEN, URL, Run, refusal, says, sent
from tests.blazarclient.commands.test_find import ANSWER, OPENING

THERE = {"id": "r", "resource_type": "physical:host", "status": "active", "region": "RegionTwo"}
IN_TWO = ("lease", "create", "training", "--reservation", "resource_type=physical:host,min=1,region=RegionTwo")


def version(service: Any, method: str) -> str:
    found: str = sent(service, method)[-1].headers["OpenStack-API-Version"]
    return found


@pytest.fixture
def regional(service: Any) -> Any:
    """A service with a lease in RegionTwo."""
    lease = {**LEASE, "reservations": [THERE]}
    service.post(f"{URL}/leases", **says("lease", lease, status_code=201))
    service.get(f"{URL}/leases", **says("leases", [lease]))
    opening = {**OPENING, "reservations": [{"count": 5, "region": "RegionTwo"}]}
    service.post(f"{URL}/availability", **says("availability", {**ANSWER, "openings": [opening]}))
    return service


def test_a_reservation_names_its_region(run: Run, regional: Any) -> None:
    code, _, err = run(*IN_TWO)
    assert (code, "RegionTwo" in sent(regional, "POST")[-1].text) == (0, True), err
    assert version(regional, "POST") == SPOKEN


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_service_that_does_not_know_regions_books_nothing(run: Run, service: Any, words: tuple[str, ...]) -> None:
    answer = refusal("version_unsupported", "it is not supported", 406)
    service.post(f"{URL}/leases", **answer)
    code, _, err = run(*IN_TWO, *words)
    assert code != 0
    assert "does not speak microversion" in err
    assert [each.headers["OpenStack-API-Version"] for each in sent(service, "POST")] == [SPOKEN]


def test_a_region_that_the_service_refuses_is_not_tried_without_it(run: Run, service: Any) -> None:
    service.post(f"{URL}/leases", **refusal("invalid_value", "the regions of this service have no names", 400))
    code, _, err = run(*IN_TWO)
    assert (code != 0, len(sent(service, "POST"))) == (True, 1)
    assert "no names" in err


def test_events_of_ones_own_and_regions_do_not_go_together(run: Run, regional: Any) -> None:
    code, _, err = run(*IN_TWO, "--event", "event_type=x,event_date=2030-01-01 10:00")
    assert (code != 0, sent(regional, "POST")) == (True, [])
    assert "do not go together" in err


def test_openings_are_looked_for_in_a_region_and_say_it(run: Run, regional: Any) -> None:
    code, out, _ = run("find", "--host", "min=4", "--region", "RegionTwo", "-f", "value", "-c", "region", "-c", "count")
    assert (code, out.split()) == (0, ["5", "RegionTwo"])
    (asked,) = sent(regional, "POST")
    assert asked.json()["reservations"] == [
        {"region": "RegionTwo", "resource_type": "physical:host", "min": 4, "max": 4}
    ]


def test_a_region_of_its_own_goes_before_that_of_the_command(run: Run, regional: Any) -> None:
    run("find", "--host", "min=1,region=RegionOne", "--host", "min=1", "--region", "RegionTwo")
    asked = sent(regional, "POST")[-1].json()["reservations"]
    assert [each["region"] for each in asked] == ["RegionOne", "RegionTwo"]


def test_where_openings_are_is_told_if_the_column_is_asked_for(run: Run, regional: Any) -> None:
    _, out, _ = run("find", "--host", "min=4", "-f", "value", "-c", "region")
    assert (out.split(), version(regional, "POST")) == (["RegionTwo"], SPOKEN)


def test_leases_are_listed_by_region(run: Run, regional: Any) -> None:
    code, out, _ = run("lease", "list", "--region", "RegionTwo", "-f", "value", "-c", "id", "-c", "regions")
    assert (code, out.split()) == (0, [ID, "RegionTwo"])
    asked = sent(regional, "GET")[-1]
    assert (asked.qs["region"], version(regional, "GET")) == (["regiontwo"], SPOKEN)


def test_a_lease_in_full_says_where_its_reservations_are(run: Run, regional: Any) -> None:
    lease = {**LEASE, "reservations": [THERE]}
    regional.get(f"{URL}/leases/{ID}", **says("lease", lease))
    code, out, err = run("lease", "show", ID, "--long")
    assert (code, "physical:host r, active in RegionTwo" in out) == (0, True), out + err
    assert json.loads(run("lease", "show", ID, "--long", "-f", "json")[1])["reservations"][0]["region"] == "RegionTwo"


@pytest.mark.parametrize("command", [("lease", "list"), ("history",)])
def test_long_lists_have_a_column_for_regions_where_there_are_any(
    run: Run, regional: Any, command: tuple[str, ...]
) -> None:
    code, out, _ = run(*command, "--long", "-f", "csv")
    head, row = out.splitlines()
    assert (code, head.split(",")[-1], row.split(",")[-1]) == (0, '"regions"', '"RegionTwo"')


def test_a_change_has_no_region(run: Run, regional: Any) -> None:
    code, _, err = run("lease", "update", ID, "--reservation", "id=r,region=RegionOne")
    assert (code != 0, sent(regional, "PUT")) == (True, [])
    assert "has no key region" in err


KINDS = [{"name": "host", "registration": {"properties": {"region": {"enum": ["RegionOne", "RegionTwo"]}}}}]


def regions_of_hosts(run: Run, *words: str) -> list[str]:
    code, out, err = run("host", "list", "--long", "-f", "csv", "--sort-by", "id", *words)
    assert code == 0, out + err
    return [line.split(",")[-1].strip('"') for line in out.splitlines()]


def test_hosts_in_full_say_where_they_are_if_there_are_several_regions(run: Run, service: Any) -> None:
    def found(*ids: str) -> None:
        hosts = [{"id": each, "name": "node-1", "properties": {}} for each in ids]
        service.get(f"{URL}/resources/host", **says("resources", hosts))

    service.get(f"{URL}/resources", **says("kinds", KINDS))
    found("1", "RegionTwo:1")
    assert regions_of_hosts(run) == ["region", "RegionOne", "RegionTwo"]
    # Programs have them, too; who does not ask for all that is known has what there was.
    assert [each["region"] for each in json.loads(run("host", "list", "--long", "-f", "json")[1])] == [
        "RegionOne",
        "RegionTwo",
    ]
    found("1", "2")
    assert regions_of_hosts(run)[0] == "properties"


def test_the_first_region_has_no_name_where_the_kinds_cannot_be_read(run: Run, service: Any) -> None:
    hosts = [{"id": each, "name": "node-1", "properties": {}} for each in ("1", "RegionTwo:1")]
    service.get(f"{URL}/resources/host", **says("resources", hosts))
    service.get(f"{URL}/resources", [refusal("policy_denied", "not allowed", 403)])
    assert regions_of_hosts(run) == ["region", "", "RegionTwo"]


def test_resources_in_full_say_where_they_are_if_there_are_several_regions(run: Run, service: Any) -> None:
    pools = [{"id": "p", "name": "pool", "attributes": {"pool": "pool", "region": "RegionTwo"}}]
    service.get(f"{URL}/resources/volume", **says("resources", pools))
    code, out, err = run("resource", "list", "volume", "--long", "-f", "value", "-c", "region")
    assert (code, out.split()) == (0, ["RegionTwo"]), out + err
    assert "region" not in json.loads(run("resource", "list", "volume", "-f", "json")[1])[0]
    del pools[0]["attributes"]["region"]  # type: ignore[attr-defined]
    service.get(f"{URL}/resources/volume", **says("resources", pools))
    assert "region" not in json.loads(run("resource", "list", "volume", "--long", "-f", "json")[1])[0]
