# SPDX-License-Identifier: Apache-2.0
"""Regions on the command line: where something is to be, and where it is. Services before 1.2 are never asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.blazarclient.commands.conftest import ID, LEASE, URL, Run, refusal, says, sent
from tests.blazarclient.commands.test_find import ANSWER, OPENING

V1_2 = {"OpenStack-API-Version": "reservation 1.2", "Content-Type": "application/json"}
THERE = {"id": "r", "resource_type": "physical:host", "status": "active", "region": "RegionTwo"}
IN_TWO = ("lease", "create", "training", "--reservation", "resource_type=physical:host,min=1,region=RegionTwo")


def version(service: Any, method: str) -> str:
    found: str = sent(service, method)[-1].headers["OpenStack-API-Version"]
    return found


@pytest.fixture
def regional(service: Any) -> Any:
    """A service of 1.2 with a lease in RegionTwo."""
    lease = {**LEASE, "reservations": [THERE]}
    service.post(f"{URL}/leases", **says("lease", lease, status_code=201, headers=V1_2))
    service.get(f"{URL}/leases", **says("leases", [lease], headers=V1_2))
    opening = {**OPENING, "reservations": [{"count": 5, "region": "RegionTwo"}]}
    service.post(f"{URL}/availability", **says("availability", {**ANSWER, "openings": [opening]}, headers=V1_2))
    return service


def test_a_reservation_names_its_region(run: Run, regional: Any) -> None:
    code, _, err = run(*IN_TWO)
    assert (code, "RegionTwo" in sent(regional, "POST")[-1].text) == (0, True), err
    assert version(regional, "POST") == "reservation 1.2"


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_service_that_does_not_know_regions_books_nothing(run: Run, service: Any, words: tuple[str, ...]) -> None:
    answer = refusal("version_unsupported", "version 1.2 is not supported", 406)
    service.post(f"{URL}/leases", **answer)
    code, _, err = run(*IN_TWO, *words)
    assert code != 0
    assert "does not speak microversion 1.2" in err
    assert [each.headers["OpenStack-API-Version"] for each in sent(service, "POST")] == ["reservation 1.2"]


def test_a_region_that_the_service_refuses_is_not_tried_at_an_earlier_version(run: Run, service: Any) -> None:
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
    assert (out.split(), version(regional, "POST")) == (["RegionTwo"], "reservation 1.2")


def test_leases_are_listed_by_region(run: Run, regional: Any) -> None:
    code, out, _ = run("lease", "list", "--region", "RegionTwo", "-f", "value", "-c", "id", "-c", "regions")
    assert (code, out.split()) == (0, [ID, "RegionTwo"])
    asked = sent(regional, "GET")[-1]
    assert (asked.qs["region"], version(regional, "GET")) == (["regiontwo"], "reservation 1.2")


def test_a_change_has_no_region(run: Run, regional: Any) -> None:
    code, _, err = run("lease", "update", ID, "--reservation", "id=r,region=RegionOne")
    assert (code != 0, sent(regional, "PUT")) == (True, [])
    assert "has no key region" in err
