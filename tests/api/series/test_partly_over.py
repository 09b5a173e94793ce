# SPDX-License-Identifier: Apache-2.0
"""Changes of series of which some occurrences are over, deleted or changed by themselves.

Each is made, or refused with a sentence about a field that the request has.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, World

HEADERS = {"OpenStack-API-Version": "reservation 1.1", **token()}
HOST = {"resource_type": "physical:host", "min": 1}
DAILY = {
    "name": "q",
    "time_zone": "UTC",
    "start": "2030-04-02T09:00",
    "rule": "FREQ=DAILY;COUNT=5",
    "duration": "PT2H",
    "reservations": [HOST],
}
CHANGES = (
    *({"rule": f"FREQ=DAILY;COUNT={count}"} for count in (1, 2, 3, 7)),
    {"rule": "FREQ=DAILY;UNTIL=20300402"},
    {"rule": "FREQ=DAILY;UNTIL=20300403"},
    {"rule": "FREQ=DAILY;UNTIL=20300401"},
    {"rule": "FREQ=WEEKLY"},
    {"rule": "FREQ=WEEKLY;BYDAY=MO;COUNT=1"},
    {"start": "2030-04-01T09:00"},
    {"start": "2030-04-02T10:00"},
    {"start": "2030-04-20T09:00"},
    {"time_zone": "Asia/Tokyo"},
    {"duration": "PT1H"},
    {"duration": "PT30H"},
    {"until_local": "12:00"},
    {"exdates": [f"2030-04-0{day}T09:00" for day in (2, 3, 4, 5, 6)]},
    {"exdates": [f"2030-04-0{day}T09:00" for day in (4, 5, 6)]},
    {"exdates": []},
    {"rdates": ["2030-04-10T09:00"]},
    {"rdates": ["2030-04-01T08:00"]},
    {"name": "r"},
    {"before_end_date": "-PT10M"},
    {"reservations": [{**HOST, "min": 2}]},
)
STARTS = (None, "2030-04-03T09:00", "2030-04-06T09:00")


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def made(http) -> tuple[str, list[str]]:
    """Return where the series is, and the ids of its leases."""
    series = http.post("/v1/series", json=DAILY, headers=HEADERS).json["series"]
    return f"/v1/series/{series['id']}", [each["lease_id"] for each in series["occurrences"]]


def delete(http, *leases: str) -> None:
    for each in leases:
        assert http.delete(f"/v1/leases/{each}", headers=HEADERS).status_code == 204


def partly_over(world: World, http, state: str, leases: list[str]) -> None:
    match state:
        case "over":
            world.run_to(NOON + timedelta(days=2))
        case "deleted":
            delete(http, *leases[:2])
        case "the last deleted":
            delete(http, *leases[2:])
        case "all but one deleted":
            delete(http, *leases[1:])
        case "all deleted":
            delete(http, *leases)
        case "changed":
            for each in leases[:2]:
                http.put(f"/v1/leases/{each}", json={"end_date": "+PT3H"}, headers=HEADERS)
        case "over, deleted and changed":
            world.run_to(NOON + timedelta(days=1))
            delete(http, leases[1])
            http.put(f"/v1/leases/{leases[2]}", json={"end_date": "+PT3H"}, headers=HEADERS)
        case "in use":
            world.run_to(NOON + timedelta(days=1, hours=-2))
    world.run()


STATES = (
    "all to come",
    "in use",
    "over",
    "deleted",
    "the last deleted",
    "all but one deleted",
    "all deleted",
    "changed",
    "over, deleted and changed",
)


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_each_change_is_made_or_refused_with_a_field_of_the_request(world, http, state):
    series, leases = made(http)
    partly_over(world, http, state, leases)
    wrong = []
    for first in STARTS:
        for change in CHANGES:
            body = {**change, **({} if first is None else {"from": first})}
            answer = http.put(f"{series}?dry_run=true", json=body, headers=HEADERS)
            if answer.status_code == 200:
                continue
            (error, *_) = answer.json["errors"]
            pointer = error.get("pointer")
            if answer.status_code not in (400, 409) or (pointer is not None and pointer.split("/")[1] not in body):
                wrong.append(f"{answer.status_code} {pointer} {body}: {error['detail']}")
    assert "\n".join(wrong) == ""


def test_what_leaves_no_occurrence_says_how_many_are_to_come_and_what_to_do(world, http):
    series, leases = made(http)
    delete(http, *leases[:2])
    (error,) = http.put(series, json={"rule": "FREQ=DAILY;COUNT=2"}, headers=HEADERS).json["errors"]
    assert error["pointer"] == "/rule"
    assert error["detail"] == (
        "no occurrence would be left: those from 2030-04-02 09:00 on are over, deleted or changed by themselves; "
        "delete the series to give back the 3 that are to come, or choose a later end"
    )
    assert http.put(series, json={"rule": "FREQ=DAILY;COUNT=3"}, headers=HEADERS).status_code == 200
