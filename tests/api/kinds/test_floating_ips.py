# SPDX-License-Identifier: Apache-2.0
"""``/v1/floatingips``, and leases of addresses in both versions of the API."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudUnavailable
from blazar.model.resources.resource import FLOATING_IP
from tests.api.conftest import token
from tests.statements import counted
from tests.world import World, address_request

NEW = {"floating_network_id": "public", "floating_ip_address": "203.0.113.10"}
DATES = {"name": "x", "start_date": "2031-05-01 10:00", "end_date": "2031-05-01 12:00"}


def lease_of(amount: int = 1, required: object = (), **more: object) -> dict:
    reservation = {"resource_type": "virtual:floatingip", "network_id": "public", "amount": amount}
    return {**DATES, "reservations": [{**reservation, "required_floatingips": list(required), **more}]}


def test_an_address_is_registered_shown_listed_and_deleted(http):
    made = http.post("/v1/floatingips", json=NEW)
    assert made.status_code == 201
    address = made.json["floatingip"]
    assert address == {
        "id": address["id"],
        **NEW,
        "subnet_id": "public-subnet",
        "reservable": True,
        "created_at": "2030-04-01T12:00:00.000000",
        "updated_at": None,
    }
    url = f"/v1/floatingips/{address['id']}"
    assert http.get(url).json == http.get(f"{url}.json").json == {"floatingip": address}
    assert http.get("/v1/floatingips").json == http.get("/v1/floatingips.json").json == {"floatingips": [address]}
    gone = http.delete(url)
    assert (gone.status_code, gone.data) == (204, b"")
    for answer in (http.get(url), http.delete(url)):
        assert (answer.status_code, answer.json["error_message"]) == (404, f"Floating IP {address['id']} not found.")
    assert http.get("/v1/floatingips").json == {"floatingips": []}


def test_registering_an_address_twice_is_a_conflict(http):
    assert http.post("/v1/floatingips", json=NEW).status_code == 201
    again = http.post("/v1/floatingips", json=NEW)
    assert (again.status_code, "registered already" in again.json["error_message"]) == (409, True)


def test_a_changed_address_shows_updated_at(http, world):
    id_ = http.post("/v1/floatingips", json=NEW).json["floatingip"]["id"]
    (address,) = world.manager.resources.all(FLOATING_IP)
    world.store.resources.set_reservable(address.id, False, at=world.clock.now())
    shown = http.get(f"/v1/floatingips/{id_}").json["floatingip"]
    assert (shown["reservable"], shown["updated_at"]) == (False, "2030-04-01T12:00:00.000000")


def test_a_reservation_of_addresses_has_all_keys_that_clients_know(http, world):
    world.register_addresses(10, 11, 12)
    made = http.post("/v1/leases", json=lease_of(2, ["203.0.113.11"], affinity="None", min=""))
    assert made.status_code == 201, made.text
    reservation = made.json["lease"]["reservations"][0]
    assert (reservation["network_id"], reservation["amount"]) == ("public", 2)
    assert (reservation["required_floatingips"], reservation["status"]) == (["203.0.113.11"], "pending")
    change = {"reservations": [{"id": reservation["id"], "amount": 3, "required_floatingips": []}]}
    changed = http.put(f"/v1/leases/{made.json['lease']['id']}", json=change).json["lease"]["reservations"][0]
    assert (changed["amount"], changed["required_floatingips"]) == (3, [])
    (old,) = http.get("/v2/leases").json[0]["reservations"]
    assert (old["network_id"], old["amount"], old["before_end_action"]) == ("public", 3, "default")


def test_version_2_creates_leases_of_addresses_too(http, world):
    world.register_addresses(10)
    made = http.post("/v2/leases", json=lease_of(1, ["203.0.113.10"], before_end_action="none"))
    assert (made.status_code, made.json["reservations"][0]["required_floatingips"]) == (201, ["203.0.113.10"])


def test_all_projects_list_addresses_and_only_operators_change_them(http, world):
    world.register_addresses(10)
    id_ = world.manager.resources.all(FLOATING_IP)[0].external_id
    frida = token("frida", "art", "reader")
    assert len(http.get("/v1/floatingips", headers=frida).json["floatingips"]) == 1
    assert http.get(f"/v1/floatingips/{id_}", headers=frida).status_code == 200
    for refused, rule in (
        (http.post("/v1/floatingips", json=NEW, headers=frida), "blazar:floatingips:post"),
        (http.delete(f"/v1/floatingips/{id_}", headers=frida), "blazar:floatingips:delete"),
        (http.get("/v1/floatingips", headers=token("diego", "art", "guest")), "blazar:floatingips:get"),
    ):
        assert refused.status_code == 403
        assert refused.json["error_message"] == f"Policy doesn't allow {rule} to be performed."
    assert len(world.manager.resources.all(FLOATING_IP)) == 1


def test_an_unreachable_cloud_is_503(http, world):
    world.faults.fail_before("network", CloudUnavailable("Neutron did not answer within 20 s"))
    answer = http.post("/v1/floatingips", json=NEW)
    assert (answer.status_code, answer.json["error_message"]) == (503, "Neutron did not answer within 20 s")
    assert http.get("/v1/floatingips").json == {"floatingips": []}


STATEMENTS = {"create": 9, "create for many": 9, "create with required ones": 9, "list": 1, "one": 2, "grow": 17}


def cost_of_everything(world: World, http) -> dict[str, int]:
    cost = {}

    def ask(name: str, method: str, path: str, json: object = None) -> dict:
        with counted(world.engine) as statements:
            answer = http.open(path, method=method, json=json)
        assert answer.status_code < 300, answer.text
        cost[name] = statements.count
        return answer.json

    ask("the first one", "POST", "/v1/leases", lease_of())
    lease = ask("create", "POST", "/v1/leases", lease_of())["lease"]
    ask("create for many", "POST", "/v1/leases", lease_of(8))
    ask("create with required ones", "POST", "/v1/leases", lease_of(3, ["203.0.113.30", "203.0.113.31"]))
    ask("list", "GET", "/v1/floatingips")
    ask("one", "GET", f"/v1/floatingips/{world.manager.resources.all(FLOATING_IP)[0].external_id}")
    more = {"id": lease["reservations"][0]["id"], "amount": 4}
    ask("grow", "PUT", f"/v1/leases/{lease['id']}", {"reservations": [more]})
    del cost["the first one"]
    return cost


def test_the_number_of_statements_is_the_same_on_every_database(engine, http_of):
    world = World(engine, hosts=0)
    world.register_addresses(*range(10, 40))
    assert cost_of_everything(world, http_of(world)) == STATEMENTS


@pytest.mark.slow
@pytest.mark.parametrize(("addresses", "leases"), [(30, 30), (90, 5)])
def test_the_number_of_statements_does_not_grow(sqlite, http_of, addresses, leases):
    world = World(sqlite, hosts=0)
    for number in range(10, 10 + addresses):
        world.manager.resources.register(FLOATING_IP, address_request("public", f"203.0.113.{number}"))
    for number in range(leases):
        begin = world.clock.now() + timedelta(days=number + 1)
        dates = {"start_date": f"{begin:%Y-%m-%d %H:%M}", "end_date": f"{begin + timedelta(hours=3):%Y-%m-%d %H:%M}"}
        assert http_of(world).post("/v1/leases", json={**lease_of(5), **dates}).status_code == 201
    assert cost_of_everything(world, http_of(world)) == STATEMENTS
