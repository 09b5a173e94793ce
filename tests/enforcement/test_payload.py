# SPDX-License-Identifier: Apache-2.0
"""What enforcement services and listeners to notifications read of leases of all types."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from blazar.api.leases.v1_0.render import lease as shown_by_the_api
from blazar.cmd import config, standalone
from blazar.enforcement import CloudIdentity, Occasion
from blazar.enforcement.payload import notification_body, question_body
from blazar.manager.common.notifications import render_payload as notified
from tests.manager.enforcement.recording import RecordingFilter
from tests.resources.instances.test_flavors import offer
from tests.world import NOON, World, a_host, addresses, flavored, instances, of_hosts, volumes

HOUR = timedelta(hours=1)
IDS = ("flavor_id", "aggregate_id", "server_group_id")


@pytest.fixture
def books() -> RecordingFilter:
    return RecordingFilter()


@pytest.fixture
def world(sqlite, books) -> World:
    return World(sqlite, filters=[books])


def of_all(books: RecordingFilter) -> list[dict]:
    return [*map(question_body, books.asked), *map(notification_body, books.told)]


def test_hosts_ask_for_the_sum_of_their_inventories(sqlite, books):
    state = of_hosts({"vcpus": 16}, {"vcpus": 32, "memory_mb": 131072, "local_gb": 800})
    world = World(sqlite, filters=[books], state=state, hosts=2)
    world.lease(a_host(2), start=HOUR)
    (capacity,) = {tuple(sorted(body["lease"]["resource_requests"].items())) for body in of_all(books)}
    assert dict(capacity) == {"VCPU": 48, "MEMORY_MB": 65536 + 131072, "DISK_GB": 1200}


def test_instances_ask_for_their_amount_of_one(world, books):
    world.lease(instances(2, vcpus=2, memory_mb=4096, disk_gb=40), start=HOUR)
    world.run()
    assert [body["lease"]["resource_requests"] for body in of_all(books)] == [
        {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}
    ] * 2


def test_flavors_ask_for_their_own_classes_too(sqlite, books):
    state = of_hosts({"inventories": {"PCPU": {"total": 8}, "CUSTOM_FPGA": {"total": 4}}})
    world = World(sqlite, filters=[books], state=state, hosts=1)
    specs = {"hw:cpu_policy": "dedicated", "resources:CUSTOM_FPGA": "1"}
    offer(world, "fpga", vcpus=2, memory_mb=1024, disk_gb=0, extra_specs=specs)
    world.lease(flavored(2, "fpga"), start=HOUR)
    assert question_body(books.asked[0])["lease"]["resource_requests"] == {
        "PCPU": 4,
        "MEMORY_MB": 2048,
        "CUSTOM_FPGA": 2,
    }


def test_volumes_ask_for_their_size_and_number(sqlite, books):
    world = World(sqlite, filters=[books], register=False)
    world.register_pools(1)
    world.lease(volumes(2, size=5), volumes(3, size=4, mode="quota"), start=HOUR)
    world.run()
    assert [body["lease"]["resource_requests"] for body in of_all(books)] == [{"GIGABYTES": 22, "VOLUMES": 5}] * 2


def test_reservations_of_a_lease_add_up_and_addresses_have_no_class(world, books):
    world.register_addresses(10, 11)
    world.lease(instances(1, vcpus=1), addresses(2), instances(2, vcpus=3), start=HOUR)
    assert question_body(books.asked[0])["lease"]["resource_requests"] == {
        "VCPU": 7,
        "MEMORY_MB": 3 * 2048,
        "DISK_GB": 30,
    }


def test_a_change_names_what_was_asked_for_before_and_after(world, books):
    lease = world.lease(instances(1, vcpus=2), start=HOUR)
    world.resize(lease, amount=3)
    world.run()
    for body in (question_body(books.asked[-1]), notification_body(books.told[-1])):
        assert [body[key]["resource_requests"]["VCPU"] for key in ("current_lease", "lease")] == [2, 6]


def test_every_body_has_its_requests_also_after_the_end(world, books):
    lease = world.lease(a_host(1), instances(1))
    world.run()
    world.change(lease, end=NOON + HOUR)
    world.run_to(NOON + HOUR)
    bodies = of_all(books)
    assert [str(notification.occasion) for notification in books.told] == ["commit-create", "commit-update", "on-end"]
    for body in bodies:
        for key in {"lease", "current_lease"} & body.keys():
            assert body[key]["resource_requests"]["VCPU"] == 16 + 2


def test_ids_are_those_that_the_api_shows(world, books):
    offer(world, "odd")
    lease = world.lease(instances(1, affinity=True), flavored(1, "odd", affinity=False), start=HOUR)
    world.run()
    shown = [{key: r[key] for key in IDS} for r in shown_by_the_api(world.now(lease))["reservations"]]
    assert [ids["flavor_id"] for ids in shown] == [r.id for r in lease.reservations]
    told = notification_body(books.told[-1])["lease"]["reservations"]
    assert [{key: r[key] for key in IDS} for r in told] == shown
    notified_of = notified(world.notifier.told[-1][1])["reservations"]
    assert [{key: r[key] for key in IDS} for r in notified_of] == shown
    assert all(all(ids.values()) for ids in shown)


def test_a_check_of_a_new_lease_names_the_flavor_that_was_asked_for(world, books):
    offer(world, "odd")
    world.lease(instances(1), flavored(1, "odd"), start=HOUR)
    asked = question_body(books.asked[0])["lease"]["reservations"]
    assert [r["flavor_id"] for r in asked] == [None, "odd"]


def test_the_cloud_has_a_url_and_a_name_also_where_there_is_no_keystone(sqlite, books):
    conf = config.load([], program="blazar-test", files=[])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        identity = standalone.identity_of(conf, listener)
        port = listener.getsockname()[1]
    assert isinstance(identity, CloudIdentity)
    world = World(sqlite, filters=[books], identity=identity)
    world.lease(start=HOUR)
    context = question_body(books.asked[0])["context"]
    assert (context["auth_url"], context["region_name"]) == (f"http://127.0.0.1:{port}", "standalone")


def test_all_occasions_are_told_with_the_same_members(world, books):
    lease = world.lease(start=HOUR)
    world.change(lease, end=NOON + 9 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    bodies = {str(notification.occasion): notification_body(notification) for notification in books.told}
    common = {"context", "lease_id", "lease", "occurred_at"}
    assert {name: body.keys() - common for name, body in bodies.items()} == {
        str(Occasion.CREATED): set(),
        str(Occasion.UPDATED): {"current_lease"},
        str(Occasion.ENDED): set(),
    }
