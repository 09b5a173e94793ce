# SPDX-License-Identifier: Apache-2.0
"""Allocations, capabilities and the refresh of hosts from 1.1 on: keys of 1.0, with dates and pages of 1.1."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, client_of
from tests.statements import counted
from tests.world import World, a_host, instances

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
HOUR = timedelta(hours=1)
NOBODY = "00000000-0000-0000-0000-000000000000"


def ask(http, path, method="GET", status=200, json=None, **headers):
    answer = http.open(path, method=method, json=json, headers={**VERSION, **headers})
    assert answer.status_code == status, answer.text
    return answer


def walk(http, path, key):
    """Return the items of all pages, and how many pages there are."""
    found, pages = [], 0
    while path:
        body = ask(http, path).json
        found += body[key]
        pages += 1
        path = next((each["href"] for each in body["links"] if each["rel"] == "next"), None)
    return found, pages


def test_an_allocation_has_a_count_and_dates_of_1_1(http, world):
    lease = world.lease(instances(3), start=HOUR)
    allocations, _ = walk(http, "/v1/resources/host/allocations", "allocations")
    (shown,) = [one for each in allocations for one in each["reservations"]]
    assert shown == {
        "id": lease.reservations[0].id,
        "lease_id": lease.id,
        "start_date": "2030-04-01T13:00:00Z",
        "end_date": "2030-04-01T15:00:00Z",
        "count": 3,
    }
    (host,) = [each["resource_id"] for each in allocations if each["reservations"]]
    assert ask(http, f"/v1/resources/host/{host}/allocations").json == {
        "allocation": {"resource_id": host, "reservations": [shown]}
    }
    # As ever at 1.0: once for each instance, with fractions of a second.
    before = http.get(f"/v1/os-hosts/{host}/allocation").json["allocation"]["reservations"]
    assert [(each["start_date"], "count" in each) for each in before] == [("2030-04-01T13:00:00.000000", False)] * 3


def test_a_walk_along_the_pages_sees_the_allocations_of_every_host_once(http_of, sqlite):
    world = World(sqlite, hosts=5)
    for number in range(4):
        world.lease(a_host(1, 2), start=(3 * number + 1) * HOUR)
    http = http_of(world)
    everything = ask(http, "/v1/resources/host/allocations").json["allocations"]
    paged, pages = walk(http, "/v1/resources/host/allocations?limit=2", "allocations")
    assert (paged, pages) == (everything, 3)
    assert {each["resource_id"] for each in paged} == {"1", "2", "3", "4", "5"}
    last = ask(http, "/v1/resources/host/allocations?limit=1&with_count=true&sort_dir=desc").json
    assert (last["count"], len(last["allocations"])) == (5, 1)
    after = ask(http, "/v1/resources/host/allocations?marker=2").json["allocations"]
    assert [each["resource_id"] for each in after] == ["3", "4", "5"]


def test_allocations_are_narrowed_to_leases_and_reservations_past_ones_too(http, world):
    first, second = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    world.run_to(world.clock.now() + 2 * HOUR)

    def leases(query):
        found, _ = walk(http, f"/v1/resources/host/allocations?{query}", "allocations")
        assert len(found) == 3, "a host that is left with none is listed, too"
        return {one["lease_id"] for each in found for one in each["reservations"]}

    assert leases(f"lease_id={first.id}") == {first.id}
    assert leases(f"lease_id=in:{first.id},{second.id}") == {first.id, second.id}
    assert leases(f"reservation_id={second.reservations[0].id}&lease_id={second.id}") == {second.id}
    assert leases(f"lease_id={first.id}&lease_id={second.id}") == set()
    assert leases(f"lease_id={NOBODY}") == set()


def test_an_unchanged_list_is_not_sent_again(http, world):
    first = ask(http, "/v1/resources/host/allocations")
    assert first.headers["ETag"].startswith("W/")
    again = {"If-None-Match": first.headers["ETag"]}
    assert ask(http, "/v1/resources/host/allocations", status=304, **again).data == b""
    world.lease(a_host(), start=HOUR)
    assert ask(http, "/v1/resources/host/allocations", **again).headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/resources/host/allocations?lease=x", "unknown_query_parameter"),
        ("/v1/resources/host/allocations?lease_id=gt:x", "invalid_query"),
        ("/v1/resources/host/allocations?marker=nobody", "invalid_marker"),
        ("/v1/resources/host/allocations?sort_key=lease_id", "invalid_query"),
        ("/v1/resources/host/1/allocations?limit=5", "unknown_query_parameter"),
        ("/v1/resources/host/properties?detail=true", "unknown_query_parameter"),
        ("/v1/resources/host/properties?marker=nobody", "invalid_marker"),
        ("/v1/resources/floatingip?colour=red", "unknown_query_parameter"),
        ("/v1/resources/floatingip?reservable=maybe", "invalid_query"),
        ("/v1/resources/floatingip?limit=0", "invalid_query"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(http, path, code):
    (fault,) = ask(http, path, status=400).json["errors"]
    assert (fault["code"], fault["parameter"] in path) == (f"reservation.{code}", True)


def test_a_reservation_is_moved_to_another_host(http, world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = [
        each["resource_id"]
        for each in walk(http, "/v1/resources/host/allocations", "allocations")[0]
        if each["reservations"]
    ]
    url, body = f"/v1/resources/host/{host}/allocations", {"reservation_id": lease.reservations[0].id}
    moved = ask(http, url, "PUT", json=body)
    assert moved.json == {"allocation": {"resource_id": host, "reservations": []}}
    assert moved.headers["Cache-Control"] == "no-store"
    # What a body names and is not there is 400 from 1.1 on.
    (fault,) = ask(http, url, "PUT", 400, json=body).json["errors"]
    assert (fault["code"], fault["pointer"]) == ("reservation.unknown_reference", "/reservation_id")
    assert http.put(f"/v1/os-hosts/{host}/allocation", json=body).status_code == 404
    assert ask(http, "/v1/resources/host/99/allocations", "PUT", 404, json=body).json["errors"][0]["code"] == (
        "reservation.host_not_found"
    )


def test_a_refresh_has_dates_of_1_1(http, world):
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r7"}))
    before = http.post("/v1/os-hosts/1/refresh").json["host"]
    after = ask(http, "/v1/resources/host/1/refresh", "POST").json["resource"]
    assert (before["updated_at"], after["updated_at"]) == ("2030-04-01 12:00:00", "2030-04-01T12:00:00Z")
    assert (before["rack"], after["properties"]) == ("r7", {"rack": "r7"})
    refused = ask(http, "/v1/resources/host/99/refresh", "POST", 404).json["errors"][0]
    assert refused["code"] == "reservation.host_not_found"


def test_properties_are_listed_in_pages_in_the_order_of_their_names(http, world):
    world.manager.resources.change(HOST, "1", ResourceChange({"rack": "r7", "gpu": "A100", "slots": "4"}))
    path = "/v1/resources/host/properties"
    changed = ask(http, f"{path}/slots", "PATCH", json={"private": True}).json["property"]
    assert (changed["private"], changed["created_at"]) == (True, "2030-04-01T12:00:00Z")
    found, pages = walk(http, f"{path}?limit=1", "properties")
    assert pages == 3
    assert found == [
        {"name": "gpu", "private": False, "values": ["A100"]},
        {"name": "rack", "private": False, "values": ["r7"]},
        {"name": "slots", "private": True, "values": ["4"]},
    ]
    after = ask(http, f"{path}?marker=gpu&with_count=true").json
    assert ([each["name"] for each in after["properties"]], after["count"]) == (["rack", "slots"], 3)
    (fault,) = ask(http, f"{path}/colour", "PATCH", 404, json={"private": True}).json["errors"]
    assert fault["code"] == "reservation.property_not_found"


STATEMENTS = {
    "/v1/resources/host/allocations?limit=2": 2,
    "/v1/resources/host/allocations?limit=1000&with_count=true": 2,
    "/v1/resources/host/1/allocations": 3,
    "/v1/resources/host/properties?limit=2": 2,
    "/v1/resources/floatingip?limit=2": 1,
    "/v1/resources/floatingip?limit=1000&with_count=true": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "leases"), [(6, 20), (24, 5)])
def test_the_number_of_statements_is_constant_on_every_database(engine, hosts, leases):
    world = World(engine, hosts=hosts)
    world.register_addresses(*range(10, 10 + hosts))
    for number in range(leases):
        world.lease(a_host(1, 3), start=(3 * number + 1) * HOUR)
    http = client_of(app_of(world.manager))
    cost = {}
    for path in STATEMENTS:
        ask(http, path)
        with counted(world.engine) as statements:
            ask(http, path)
        cost[path] = statements.count
    assert cost == STATEMENTS


def test_addresses_are_listed_in_pages_with_filters_and_dates_of_1_1(http, world):
    world.register_addresses(10, 11, 12)
    path = "/v1/resources/floatingip"
    found, pages = walk(http, f"{path}?limit=2&sort_key=property:floating_ip_address", "resources")
    assert (pages, [each["attributes"]["floating_ip_address"] for each in found]) == (
        2,
        ["203.0.113.10", "203.0.113.11", "203.0.113.12"],
    )
    assert {each["created_at"] for each in found} == {"2030-04-01T12:00:00Z"}
    one = ask(http, f"{path}?property=floating_ip_address:203.0.113.11&fields=reservable").json["resources"]
    assert one == [{"id": found[1]["id"], "reservable": True}]
    assert ask(http, f"{path}?property=floating_network_id:private").json["resources"] == []
    assert ask(http, f"{path}/{found[1]['id']}").json == {"resource": found[1]}


def test_an_address_is_registered_and_says_where_it_is(http, world):
    new = {"floating_network_id": "public", "floating_ip_address": "203.0.113.10"}
    made = ask(http, "/v1/resources/floatingip", "POST", 201, json=new)
    address = made.json["resource"]
    assert (address["created_at"], address["updated_at"]) == ("2030-04-01T12:00:00Z", None)
    assert made.headers["Location"] == f"http://localhost/v1/resources/floatingip/{address['id']}"
    assert made.headers["Cache-Control"] == "no-store"
    assert ask(http, "/v1/resources/floatingip", "POST", 409, json=new).json["errors"][0]["code"] == (
        "reservation.already_registered"
    )
    for field, value, code in (
        ("floating_network_id", "nowhere", "unknown_reference"),
        ("floating_ip_address", "198.51.100.1", "unknown_reference"),
        ("floating_ip_address", "203.0.113", "invalid_value"),
    ):
        (fault,) = ask(http, "/v1/resources/floatingip", "POST", 400, json={**new, field: value}).json["errors"]
        assert (fault["code"], fault["pointer"]) == (f"reservation.{code}", f"/{field}")
    ask(http, f"/v1/resources/floatingip/{address['id']}", "DELETE", 204)
    assert ask(http, f"/v1/resources/floatingip/{address['id']}", status=404).json["errors"][0]["code"] == (
        "reservation.floating_ip_not_found"
    )
