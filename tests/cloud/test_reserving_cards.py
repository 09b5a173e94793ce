# SPDX-License-Identifier: Apache-2.0
"""Leases of servers with PCI devices on a real OpenStack, whose Placement chooses which device a server gets."""

from __future__ import annotations

import json

import pytest

from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment
from tests.cloud.looks import gone
from tests.cloud.test_reserving_flavors import a_flavor as a_flavor
from tests.cloud.test_reserving_flavors import cloud as cloud
from tests.cloud.test_reserving_flavors import project_of, servers_of
from tests.cloud.test_reserving_instances import nothing_is_left, slots
from tests.openstack import Providers, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

HOST = "compute-3"
"""The only registered host with cards: four of one kind, and one that is used once."""
A100, H100 = "CUSTOM_PCI_10DE_20B5", "CUSTOM_GPU_H100"


def with_cards(a_flavor, alias: str) -> str:
    projects = [project_of(login) for login in ("demo", "alt_demo")]
    return a_flavor(projects=projects, extra_specs={"pci_passthrough:alias": alias})


def cards_of(server) -> list[str]:
    """The providers of the cards that a server got."""
    found = Providers().allocations(server["id"])
    return [provider for provider, amounts in found.items() if amounts.keys() & {A100, H100}]


def test_two_projects_share_the_cards_of_a_host_from_registration_to_release(
    service: Deployment, cloud, mine, theirs, a_flavor
):
    hosts = service.call("admin", "GET", "/resources/host", version=NEWEST)["resources"]
    counted = {host["name"]: host["capacity"].get(A100, 0) for host in hosts}
    assert counted == {"compute-1": 0, "compute-2": 0, HOST: 4}
    asked = servers_of(with_cards(a_flavor, "a100:2"))
    leases = {login: service.create(login, body={"reservations": [asked]}) for login in ("demo", "alt_demo")}
    wish = {"name": "x", "start_date": "now", "end_date": leases["demo"]["end_date"], "reservations": [asked]}
    refused = service.call("demo", "POST", "/leases", wish, version=NEWEST)
    assert refused.status == 409, refused
    question = {key: wish[key] for key in ("start_date", "end_date", "reservations")}
    answer = service.call("demo", "POST", "/availability", question, version=NEWEST)["availability"]
    (reason,) = answer["reasons"]
    left_out = {step["code"]: step.get("removed") for step in reason["steps"]}
    assert left_out == {"registered": None, "cards": 2, "promised": 1}

    servers = {}
    for login, users in (("demo", mine), ("alt_demo", theirs)):
        reservation = service.reaches(leases[login]["id"], "ACTIVE", login=login)["reservations"][0]["id"]
        assert slots(cloud, reservation) == {HOST: 1}
        servers[login] = users.boot(login, flavor_id=reservation)
        assert servers[login]["status"] == "ACTIVE", servers[login]
        assert users.boot("one too many", flavor_id=reservation)["status"] == "ERROR"
    assert [len(cards_of(server)) for server in servers.values()] == [2, 2]
    assert len({card for server in servers.values() for card in cards_of(server)}) == 4

    service.end(leases["alt_demo"]["id"], login="alt_demo")
    service.reaches(leases["alt_demo"]["id"], "TERMINATED", login="alt_demo")
    assert gone(theirs, servers["alt_demo"])
    nothing_is_left(cloud, leases["alt_demo"]["reservations"][0]["id"])
    again = service.create(body={"reservations": [asked]})
    reservation = service.reaches(again["id"], "ACTIVE")["reservations"][0]["id"]
    assert mine.boot("another", flavor_id=reservation)["status"] == "ACTIVE"


def test_a_one_time_card_delays_the_next_start(service: Deployment, cloud, mine, theirs, a_flavor):
    providers = Providers()
    asked = servers_of(with_cards(a_flavor, "h100:1"))
    card = f"{HOST}_0000:80:00.0"
    first = service.create(body={"reservations": [asked]})
    reservation = service.reaches(first["id"], "ACTIVE")["reservations"][0]["id"]
    server = mine.boot("first", flavor_id=reservation)
    assert server["status"] == "ACTIVE", server
    assert len(cards_of(server)) == 1
    eventually(lambda: providers.inventories(card)[H100]["reserved"], lambda reserved: reserved == 1)
    service.end(first["id"])
    service.reaches(first["id"], "TERMINATED")

    later = service.create("alt_demo", body={"reservations": [asked]})

    def reason() -> str:
        shown = service.call("admin", "GET", f"/leases/{later['id']}", version=NEWEST)["lease"]
        return json.dumps(shown["events"])

    eventually(reason, lambda text: f"1 device of {HOST} to be cleaned" in text)
    assert service.lease(later["id"], "alt_demo")["status"] == "STARTING"
    providers.unreserve(card)
    reservation = service.reaches(later["id"], "ACTIVE", login="alt_demo")["reservations"][0]["id"]
    server = theirs.boot("next", flavor_id=reservation)
    assert server["status"] == "ACTIVE", server
    openstack.admin_compute().begin_server_deletion(server["id"])
    eventually(lambda: cards_of(server), lambda cards: not cards)
    providers.unreserve(card)
