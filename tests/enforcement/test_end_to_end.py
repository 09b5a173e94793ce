# SPDX-License-Identifier: Apache-2.0
"""What users and the service see, over HTTP on both sides."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations, product

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.enforcement.limits import (
    MaxConcurrentLeasesFilter,
    MaxLeaseDurationFilter,
    MaxUnitsFilter,
    StartWindowFilter,
)
from tests.api.conftest import app_of
from tests.enforcement.asking import ADMIN, ALICE, Users, asks_all
from tests.world import World

HOUR = timedelta(hours=1)


class House(Users):
    """A world that asks the service, and its API."""

    def __init__(self, engine, service, *, beside: House | None = None, **requests) -> None:
        shared = {"register": False, "cloud": beside.world.simulated} if beside else {}
        super().__init__(World(engine, filters=[asks_all(service, seconds=0.5, **requests)], **shared))


@pytest.fixture
def house(sqlite, service) -> House:
    return House(sqlite, service)


def test_a_lease_within_the_budget_is_booked_and_charged(house, service):
    lease = house.create(hosts=2).json["lease"]
    house.world.run()
    assert service.asked == ["check-create", "commit-create"]
    assert service.books.left("physics") == 100 - 2 * 8
    (body,) = service.bodies("commit-create")
    assert body["lease_id"] == body["lease"]["id"] == lease["id"]
    assert body["lease"]["status"] == "PENDING"


def test_a_lease_beyond_the_budget_is_a_400_with_the_words_of_the_service(house, service):
    answer = house.create(hosts=3, end="2030-04-05 12:00")
    assert answer.status_code == 400
    assert answer.json == {
        "error_code": 400,
        "error_message": "the lease costs 288 host-hours, and the project has 100 left",
        "error_name": 400,
    }
    assert house.http.get("/v1/leases", headers=ALICE).json == {"leases": []}


def test_from_1_1_on_what_the_service_denies_is_a_403_for_a_new_lease_and_for_a_change(house):
    newest = {**ALICE, "OpenStack-API-Version": "reservation 1.1"}
    refused = house.create(headers=newest, hosts=3, end="2030-04-05T12:00:00Z")
    lease = house.create(hosts=2).json["lease"]
    tag = house.http.get(f"/v1/leases/{lease['id']}", headers=newest).headers["ETag"]
    change = house.change(lease, headers={**newest, "If-Match": tag}, end_date="2030-04-09T12:00:00Z")
    for answer in (refused, change):
        (error,) = answer.json["errors"]
        assert (answer.status_code, error["code"]) == (403, "reservation.limit_exceeded"), answer.text
        assert error["data"] == {"limit": "external"}
        assert "the project has" in error["detail"]


def test_an_extension_is_charged_and_what_is_not_used_is_given_back(house, service):
    lease = house.create(hosts=2).json["lease"]
    assert house.change(lease, end_date="2030-04-02 12:00").status_code == 200
    house.world.run()
    assert service.books.left("physics") == 100 - 2 * 24
    assert house.change(lease, end_date="2030-04-09 12:00").status_code == 400
    house.world.clock.by(hours=1)
    assert house.http.delete(f"/v1/leases/{lease['id']}", headers=ALICE).status_code == 204
    house.world.run()
    assert service.books.left("physics") == 100 - 2
    assert service.asked == [
        "check-create",
        "commit-create",
        "check-update",
        "commit-update",
        "check-update",
        "on-end",
    ]


def test_the_context_is_the_owners_and_who_asked_has_a_field_of_its_own(house, service):
    lease = house.create().json["lease"]
    assert house.change(lease, headers=ADMIN, end_date="2030-04-01 21:00").status_code == 200
    house.world.run()
    house.http.delete(f"/v1/leases/{lease['id']}", headers=ALICE)
    house.world.run()
    assert len(service.got) == 5
    for name, body, _ in service.got:
        assert (body["context"]["user_id"], body["context"]["project_id"]) == ("alice", "physics"), name
        assert (body["lease"]["user_id"], body["lease"]["project_id"]) == ("alice", "physics")
    alice = {"user_id": "alice", "project_id": "physics"}
    root = {"user_id": "root", "project_id": "operators"}
    asked = {name: body["context"]["requested_by"] for name, body, _ in service.got}
    assert asked == {
        "check-create": alice,
        "commit-create": alice,
        "check-update": root,
        "commit-update": root,
        "on-end": None,
    }


def test_a_change_is_told_with_the_lease_before_it(house, service):
    lease = house.create().json["lease"]
    assert house.change(lease, end_date="2030-04-01 21:00").status_code == 200
    house.world.run()
    (body,) = service.bodies("commit-update")
    assert body["current_lease"]["end_date"] == "2030-04-01T20:00:00"
    assert body["lease"]["end_date"] == "2030-04-01T21:00:00"
    assert len(body["current_lease"]["reservations"][0]["allocations"]) == 1


def test_a_new_name_asks_nobody(house, service):
    lease = house.create().json["lease"]
    assert house.change(lease, name="new").status_code == 200
    assert service.asked == ["check-create", "commit-create"]


EVERY_LIMIT = {
    "length": lambda: MaxLeaseDurationFilter(HOUR, extension=HOUR),
    "leases": lambda: MaxConcurrentLeasesFilter(1),
    "hosts": lambda: MaxUnitsFilter(1),
    "start": lambda: StartWindowFilter(HOUR, timedelta(days=365)),
    "hours of a month": lambda: ResourceHoursFilter({"host": 10, "vcpu": 10, "instance": 10}, parse_period("month")),
    "hours of a week": lambda: ResourceHoursFilter({"host": 10**9, "vcpu": 1}, parse_period("week")),
    "hours of ten years": lambda: ResourceHoursFilter({"host": 10}, parse_period("3660")),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", EVERY_LIMIT.values(), ids=EVERY_LIMIT)
def test_no_dates_and_no_numbers_are_too_much_for_a_limit(sqlite, rule):
    world = World(sqlite, filters=[rule()])
    http = app_of(world.manager).test_client()
    host = {"resource_type": "physical:host", "hypervisor_properties": "", "resource_properties": ""}
    server = {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 0, "affinity": None}
    rooms = [
        {**host, "min": 1, "max": 3},
        {**host, "min": 2, "max": 2**31 - 1},
        {**server, "amount": 40, "resource_properties": ""},
        {**server, "amount": 2**31 - 1, "resource_properties": ""},
    ]
    dates = ["now", "2030-04-01 12:01", "2030-04-30 23:59", "2031-01-01 00:00", "9999-12-31 23:59"]
    seen = set()
    for room, (start, end) in product(rooms, combinations(dates, 2)):
        body = {"name": "x", "start_date": start, "end_date": end, "reservations": [room]}
        answer = http.post("/v1/leases", json=body, headers=ALICE)
        seen.add(answer.status_code)
        if answer.status_code == 201:
            lease = answer.json["lease"]
            for change in ({"end_date": "9999-12-31 23:00"}, {"start_date": "2030-04-20 00:00"}, {"end_date": "now"}):
                seen.add(http.put(f"/v1/leases/{lease['id']}", json=change, headers=ALICE).status_code)
            assert http.delete(f"/v1/leases/{lease['id']}", headers=ALICE).status_code == 204
    assert seen <= {200, 201, 400, 403, 409}
    assert 201 in seen
    assert seen & {400, 403}


@pytest.mark.slow
def test_while_the_service_is_away_users_get_503_or_their_leases_as_the_operator_says(sqlite, service):
    strict = House(sqlite, service)
    lenient = House(sqlite, service, beside=strict, allow_on_error=True)
    service.answers(500)
    refused = strict.create()
    assert refused.status_code == 503
    assert "try again later" in refused.json["error_message"]
    assert lenient.create().status_code == 201


def test_leases_go_their_way_while_the_service_is_away_and_it_hears_of_all_of_it_later(house, service):
    lease = house.create().json["lease"]
    service.answers(500)
    house.world.run()
    assert house.http.delete(f"/v1/leases/{lease['id']}", headers=ALICE).status_code == 204
    house.world.run()
    assert house.world.pool() == {"node-1", "node-2", "node-3"}
    service.behaves()
    house.world.clock.by(minutes=5)
    house.world.run()
    assert service.books.spent[lease["id"]] == ("physics", 0.0)
    assert service.asked[-1] == "on-end"


def test_every_try_to_tell_one_thing_has_the_same_request_id(house, service):
    lease = house.create().json["lease"]
    service.answers(500)
    house.http.delete(f"/v1/leases/{lease['id']}", headers=ALICE)
    house.world.run()
    service.behaves()
    house.world.clock.by(minutes=5)
    house.world.run()
    ids = {headers["X-OpenStack-Request-ID"] for name, _, headers in service.got if name == "on-end"}
    assert len(ids) == 1
    assert len(service.bodies("on-end")) >= 3
