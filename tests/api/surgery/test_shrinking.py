# SPDX-License-Identifier: Apache-2.0
"""Hosts are given up over HTTP: from 1.1 on by name, as the lease shows them, and at any version by number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
OPERATOR = token("root", "admin", "admin")


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


@pytest.fixture
def lease(world):
    found = world.lease(a_host(3), hours=4)
    world.run()
    return world.now(found)


def put(http, lease, *, version="1.1", query="", operator=False, etag=None, **change):
    caller = OPERATOR if operator else token("curie", PROJECT)
    sent = {"OpenStack-API-Version": f"reservation {version}", **caller, **({"If-Match": etag} if etag else {})}
    body = {"reservations": [{"id": lease.reservations[0].id, **change}]}
    return http.put(f"/v1/leases/{lease.id}{query}", json=body, headers=sent)


def refusal(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer")


def labels(world: World, lease) -> list[str]:
    return sorted(each.label for each in world.manager.leases.details(lease.id).held if not each.released)


def test_a_member_gives_up_hosts_by_their_labels(world, http, lease):
    first, *rest = labels(world, lease)
    done = put(http, lease, give_up=[first])
    assert done.status_code == 200
    (shown,) = done.json["lease"]["reservations"]
    assert (shown["min"], shown["max"]) == (2, 2)
    assert "give_up" not in shown
    assert labels(world, lease) == rest


def test_a_dry_run_changes_nothing(world, http, lease):
    before = labels(world, lease)
    shown = put(http, lease, query="?dry_run=true", give_up=before[:1]).json["lease"]["reservations"][0]
    assert len([each for each in shown["allocations"] if each["status"] != "released"]) == 2
    assert labels(world, lease) == before


def test_by_number_it_is_done_at_every_version(world, http, lease):
    assert put(http, lease, version="1.0", min=2, max=2).status_code == 200
    assert put(http, lease, min=1, max=1).status_code == 200
    assert len(labels(world, lease)) == 1


def test_hosts_with_servers_are_named_as_the_caller_sees_them(world, http, lease):
    for host in world.hosts_of(lease):
        world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    first = labels(world, lease)[0]
    refused = put(http, lease, give_up=[first])
    assert refusal(refused) == (409, "host_has_servers", "/reservations/0/give_up")
    assert first in refused.json["errors"][0]["detail"]
    assert "node-" not in refused.json["errors"][0]["detail"]
    assert "node-" in put(http, lease, operator=True, min=1, max=1).json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["moon"], (400, "unknown_reference", "/reservations/0/give_up/0")),
        (["x" * 256], (400, "invalid_value", "/reservations/0/give_up/0")),
        ([], (400, "invalid_value", "/reservations/0/give_up")),
        ("h-1", (400, "invalid_value", "/reservations/0/give_up")),
    ],
)
def test_what_is_wrong_is_told_with_its_place(http, lease, given, expected):
    assert refusal(put(http, lease, give_up=given)) == expected


def test_only_a_change_of_whole_hosts_has_it(world, http, lease):
    hosts = labels(world, lease)[:1]
    # An unknown key of a reservation was ignored there.
    assert put(http, lease, version="1.0", give_up=hosts).status_code == 200
    servers = world.lease(instances(1), start=6 * HOUR)
    assert refusal(put(http, servers, give_up=hosts))[0] == 400
    assert len(labels(world, lease)) == 3


def test_another_tag_is_refused(world, http, lease):
    first = labels(world, lease)[0]
    tag = put(http, lease, give_up=[first]).headers["ETag"]
    assert put(http, lease, etag=tag, give_up=labels(world, lease)[:1]).status_code == 200
    assert put(http, lease, etag=tag, give_up=labels(world, lease)[:1]).status_code == 412


def test_openings_for_a_lease_with_fewer_hosts_are_found(world, http, lease):
    other = world.lease(a_host(2), start=5 * HOUR, hours=2)
    world.lease(a_host(2), start=20 * HOUR)
    sent = {"OpenStack-API-Version": "reservation 1.1", **token("curie", PROJECT)}
    taken = {each.label for each in world.manager.leases.details(other.id).held}
    body = {
        "lease_id": lease.id,
        "start_date": "2030-04-01T12:00:00Z",
        "end_date": "2030-04-01T18:00:00Z",
        "reservations": [{"id": lease.reservations[0].id, "give_up": sorted(taken & set(labels(world, lease)))}],
    }
    found = http.post("/v1/availability", json=body, headers=sent)
    (opening,) = found.json["availability"]["openings"]
    assert opening["reservations"] == [{"count": 2}]
