# SPDX-License-Identifier: Apache-2.0
"""Hosts together or spread, from the request to the answer: asked for, booked, found, refused with the reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of
from tests.api.leases.test_references import ask
from tests.world import NOON, World

DATES = {"start_date": "2030-04-02T12:00:00Z", "end_date": "2030-04-02T18:00:00Z"}


@pytest.fixture
def world(a_world) -> World:
    """Three hosts in the rack r1, two in r2, and one that stands by itself."""
    world = a_world(hosts=6)
    for host, rack in zip(world.store.resources.catalog(HOST).resources, ["r1", "r2", "r1", "r2", "r1"], strict=False):
        world.manager.resources.change(HOST, host.external_id, ResourceChange({"rack": rack}))
    return world


@pytest.fixture
def http(world):
    return app_of(world.manager).test_client()


def body(count, **fields):
    return {"name": "a lease", **DATES, "reservations": [{"resource_type": "physical:host", "min": count, **fields}]}


def create(http, count, **fields):
    return ask(http, "POST", "/v1/leases", "1.1", body(count, **fields))


def racks(world, answer) -> list[str]:
    names = world.hosts_of(world.store.leases.one(answer.json["lease"]["id"]))
    return sorted(h.capabilities["rack"] for h in world.store.resources.catalog(HOST).resources if h.name in names)


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"together": "rack"}, ["r2", "r2"]),
        ({"together": "$rack"}, ["r2", "r2"]),
        ({"together": "$$rack"}, ["r2", "r2"]),
        ({"together": {"property": "rack", "prefer": True}}, ["r2", "r2"]),
        ({"together": {"property": "rack", "size": 2}, "max": 4}, ["r1", "r1", "r2", "r2"]),
        ({"spread": "rack"}, ["r1", "r2"]),
        ({"spread": {"property": "rack", "most": 2}, "max": 5}, ["r1", "r1", "r2", "r2"]),
    ],
)
def test_hosts_lie_as_it_was_asked_for_and_the_lease_says_so(world, http, fields, taken):
    answer = create(http, 2, **fields)
    assert answer.status_code == 201, answer.text
    assert sorted(set(racks(world, answer))) == sorted(set(taken))
    assert len(racks(world, answer)) == (len(taken) if "max" in fields else 2)
    [shown] = answer.json["lease"]["reservations"]
    for key in ("together", "spread"):
        asked = fields.get(key)
        assert shown.get(key) == ({"property": "rack"} if isinstance(asked, str) else asked)


def test_a_lease_that_says_nothing_shows_nothing(http):
    [shown] = create(http, 2).json["lease"]["reservations"]
    assert not {"together", "spread"} & shown.keys()


def test_a_refusal_says_how_many_lie_so(http):
    answer = create(http, 4, together="rack")
    assert answer.status_code == 409
    assert "3 of 6 of one rack" in answer.text
    [fault] = answer.json["errors"]
    [reason] = fault["data"]["reasons"]
    assert {"code": "topology", "removed": 3, "remaining": 3} in reason["steps"]
    assert [one["change"] for one in fault["data"]["alternatives"]] == ["count"]


def test_openings_are_those_in_which_hosts_lie_so(world, http):
    create(http, 2, together="rack", resource_properties=["==", "$rack", "r1"])
    question = {
        "duration": "1h",
        "earliest": DATES["start_date"],
        "latest": "2030-04-03T12:00:00Z",
        "reservations": [{"resource_type": "physical:host", "min": 3, "together": "rack"}],
    }
    answer = ask(http, "POST", "/v1/availability", "1.1", question)
    assert answer.status_code == 200, answer.text
    [first, *_] = answer.json["availability"]["openings"]
    assert first["start_date"] == "2030-04-02T18:00:00Z"


@pytest.mark.parametrize(
    ("fields", "says", "at"),
    [
        ({"together": "floor"}, "which no host has", "together"),
        ({"spread": "hypervisor_hostname"}, "which no host has", "spread"),
        ({"together": {"property": "rack", "size": 3}, "max": 4}, "multiples", "together"),
        ({"together": {"property": "rack", "size": 2, "prefer": True}}, "groups are firm", "together"),
        ({"spread": {"property": "rack", "most": 0}}, "1", "spread"),
        ({"spread": {"most": 2}}, "property", "spread"),
        ({"together": ["rack"]}, "together", "together"),
        ({"together": ""}, "together", "together"),
    ],
)
def test_a_wrong_wish_is_refused_where_it_is(http, fields, says, at):
    answer = create(http, 2, **fields)
    assert answer.status_code == 400, answer.text
    assert says in answer.text
    assert any(fault["pointer"].startswith(f"/reservations/0/{at}") for fault in answer.json["errors"])


def test_before_the_start_it_can_be_changed_and_taken_back(world, http):
    made = create(http, 2, together="rack").json["lease"]
    [mine] = made["reservations"]
    path = f"/v1/leases/{made['id']}"
    change = {"reservations": [{"id": mine["id"], "together": None, "spread": "rack"}]}
    answer = ask(http, "PUT", path, "1.1", change)
    assert answer.status_code == 200, answer.text
    assert racks(world, answer) == ["r1", "r2"]
    assert answer.json["lease"]["reservations"][0].get("together") is None


def test_in_use_it_grows_where_it_is_and_stays_as_it_was(world, http):
    made = create(http, 2, together="rack", resource_properties=["==", "$rack", "r1"]).json["lease"]
    world.run_to(NOON + timedelta(days=1, minutes=1))
    [mine] = made["reservations"]
    path = f"/v1/leases/{made['id']}"
    answer = ask(http, "PUT", path, "1.1", {"reservations": [{"id": mine["id"], "min": 3, "max": 3}]})
    assert answer.status_code == 200, answer.text
    assert len(set(racks(world, answer))) == 1
    refused = ask(http, "PUT", path, "1.1", {"reservations": [{"id": mine["id"], "spread": "rack"}]})
    assert refused.status_code == 409, refused.text
    assert "cannot be changed" in refused.text


def test_a_host_that_fails_is_replaced_by_one_of_the_same_rack(world, http):
    answer = create(http, 2, together={"property": "rack"}, resource_properties=["==", "$rack", "r1"])
    lease = world.store.leases.one(answer.json["lease"]["id"])
    first = create(http, 2, together="rack")
    assert racks(world, first) == ["r2", "r2"]
    name = sorted(world.hosts_of(lease))[0]
    world.simulated.operators.host_down(name)
    for _ in range(3):
        world.manager.monitor.run_once()
    world.run_to(NOON + timedelta(hours=23, minutes=30))
    world.manager.monitor.heal()
    assert racks(world, answer) == ["r1", "r1"]
    assert name not in world.hosts_of(lease)


def test_before_the_start_all_of_it_may_lie_in_another_rack_when_a_host_fails(world, http):
    answer = create(http, 2, together="rack")
    assert racks(world, answer) == ["r2", "r2"]
    name = sorted(world.hosts_of(world.store.leases.one(answer.json["lease"]["id"])))[0]
    world.simulated.operators.host_down(name)
    for _ in range(3):
        world.manager.monitor.run_once()
    world.run_to(NOON + timedelta(hours=23, minutes=30))
    world.manager.monitor.heal()
    assert racks(world, answer) == ["r1", "r1"]


def test_a_lease_keeps_what_it_was_granted_by_when_that_is_hidden(world, http):
    made = ask(http, "POST", "/v1/leases", "1.1", body(2, together="rack")).json["lease"]
    world.manager.resources.set_property(HOST, "rack", private=True)
    [mine], path = made["reservations"], f"/v1/leases/{made['id']}"

    def change(**fields):
        return ask(http, "PUT", path, "1.1", fields)

    longer = change(end_date="2030-04-02T20:00:00Z")
    assert longer.status_code == 200, longer.text
    assert longer.json["lease"]["reservations"][0]["together"] == {"property": "rack"}
    fewer = change(reservations=[{"id": mine["id"], "min": 1, "max": 2}])
    assert fewer.status_code == 200, fewer.text
    for fields in ({"spread": "rack"}, {"resource_properties": [">", "$vcpus", "0"]}):
        guess = change(reservations=[{"id": mine["id"], **fields}])
        assert (guess.status_code, guess.json["errors"][0]["code"]) == (400, "reservation.unknown_property"), guess.text
    assert create(http, 2, together="rack").status_code == 400


def test_fewer_are_offered_in_whole_groups(world, http):
    create(http, 1, resource_properties=["==", "$rack", "r1"])
    answer = create(http, 6, together={"property": "rack", "size": 2})
    [offered] = answer.json["errors"][0]["data"]["alternatives"]
    assert (offered["change"], offered["reservations"]) == ("count", [{"min": 4, "max": 4}])
    assert create(http, 4, together={"property": "rack", "size": 2}).status_code == 201


@pytest.mark.parametrize("name", ["together", "spread", "lend_beyond"])
def test_one_point_zero_neither_takes_nor_shows_what_is_newer(http, name):
    value = 1 if name == "lend_beyond" else "rack"
    made = create(http, 2, **{name: value})
    assert made.status_code == 201
    requirements = {"hypervisor_properties": "", "resource_properties": ""}
    old = {**body(2, max=2, **requirements, **{name: value}), "before_end_date": None, "events": []}
    old["start_date"], old["end_date"] = "2030-04-03 12:00", "2030-04-03 18:00"
    refused = ask(http, "POST", "/v1/leases", "1.0", old)
    assert refused.status_code == 400
    assert f"{name} is unknown at microversion 1.0" in refused.text
    path = f"/v1/leases/{made.json['lease']['id']}"
    assert name in ask(http, "GET", path, "1.1").json["lease"]["reservations"][0]
    assert name not in ask(http, "GET", path, "1.0").json["lease"]["reservations"][0]
