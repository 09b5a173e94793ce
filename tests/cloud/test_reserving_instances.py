# SPDX-License-Identifier: Apache-2.0
"""A lease of instances from request to release on a real OpenStack, by the programs that users have."""

from __future__ import annotations

import json

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.model.base.errors import BlazarError
from tests import openstack
from tests.cloud.deployment import Deployment, a_host
from tests.cloud.looks import gone, host_of
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

HOSTS = ("compute-1", "compute-2", "compute-3")


@pytest.fixture(scope="module")
def cloud():
    # As the service user, to whom the server groups belong.
    return open_cloud(openstack.access("blazar"))


def instances(amount=1, *, affinity=None, **more):
    sizes = {"vcpus": 1, "memory_mb": 64, "disk_gb": 1}
    common = {"resource_type": "virtual:instance", "amount": amount, "affinity": affinity, "resource_properties": ""}
    return {**common, **sizes, **more}


def create(service: Deployment, *rooms):
    return service.create(body={"reservations": list(rooms)})


def class_of(reservation_id: str) -> str:
    return "CUSTOM_RESERVATION_" + reservation_id.upper().replace("-", "_")


def slots(cloud, reservation_id: str) -> dict[str, int]:
    found = {host: cloud.placement.reserved_capacity(host, class_of(reservation_id)) for host in HOSTS}
    return {host: inventory.total for host, inventory in found.items() if inventory}


def nothing_is_left(cloud, reservation_id: str) -> None:
    assert cloud.compute.flavor(reservation_id) is None
    assert cloud.compute.aggregate(reservation_id) is None
    assert cloud.compute.server_groups(f"reservation:{reservation_id}") == ()
    assert slots(cloud, reservation_id) == {}
    with pytest.raises(BlazarError):
        openstack.access("admin").placement.get(f"/resource_classes/{class_of(reservation_id)}", microversion="1.30")


def test_instances_from_request_to_release_with_the_clients_that_everybody_has(service: Deployment, cloud, mine):
    room = "resource_type=virtual:instance,vcpus=1,memory_mb=64,disk_gb=1,amount=2,affinity=False"
    service.blazar("demo", "lease-create", "lab", "--reservation", room, "--start-date", "now")
    shown = json.loads(service.openstack("demo", "reservation", "lease", "show", "lab", "-f", "json"))
    lease = service.reaches(shown["id"], "ACTIVE")
    reservation = lease["reservations"][0]
    assert len(slots(cloud, reservation["id"])) == 2
    assert set(cloud.compute.aggregate("freepool").hosts) == set(HOSTS)

    boot = ("server", "create", "--image", "tiny", "--nic", "none", "--wait", "-f", "json")
    first = json.loads(service.openstack("demo", *boot, "--flavor", reservation["flavor_id"], "first"))
    second = mine.boot("second", flavor_id=reservation["id"], group=reservation["server_group_id"])
    assert (first["status"], second["status"]) == ("ACTIVE", "ACTIVE")
    assert {host_of(first), host_of(second)} == set(slots(cloud, reservation["id"]))
    assert mine.boot("third", flavor_id=reservation["id"])["status"] == "ERROR"
    with pytest.raises(BlazarError):
        openstack.Servers("alt_demo").boot("thief", flavor_id=reservation["id"])

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert gone(mine, first)
    assert gone(mine, second)
    nothing_is_left(cloud, reservation["id"])
    assert set(cloud.compute.aggregate("freepool").hosts) == set(HOSTS)


def test_instances_with_an_ephemeral_disk_and_extra_specs_boot_with_them(service: Deployment, cloud, mine):
    asked = instances(1, ephemeral_gb=1, extra_specs={"hw:cpu_sockets": "1"})
    reservation = service.reaches(create(service, asked)["id"], "ACTIVE")["reservations"][0]
    flavor = cloud.compute.flavor(reservation["id"])
    assert (flavor.disk_gb, flavor.ephemeral_gb, flavor.extra_specs["hw:cpu_sockets"]) == (1, 1, "1")
    assert mine.boot("first", flavor_id=reservation["id"])["status"] == "ACTIVE"
    service.end(reservation["lease_id"])
    service.reaches(reservation["lease_id"], "TERMINATED")
    nothing_is_left(cloud, reservation["id"])


@pytest.mark.nightly
def test_instances_together_are_on_one_host_and_shelved_and_locked_ones_end_as_well(service: Deployment, cloud, mine):
    lease = service.reaches(create(service, instances(3, affinity=True, before_end="snapshot"))["id"], "ACTIVE")
    reservation = lease["reservations"][0]
    servers = [mine.boot(f"s{n}", flavor_id=reservation["id"], group=reservation["server_group_id"]) for n in range(3)]
    assert {server["status"] for server in servers} == {"ACTIVE"}
    assert len({host_of(server) for server in servers}) == 1
    mine.act(servers[0]["id"], {"shelve": None})
    mine.settled(servers[0]["id"], ("SHELVED_OFFLOADED",))
    mine.act(servers[1]["id"], {"lock": None})
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert all(gone(mine, server) for server in servers)
    nothing_is_left(cloud, reservation["id"])
    images = json.loads(service.openstack("demo", "image", "list", "-f", "json"))
    assert {"reserved_s1", "reserved_s2"} <= {image["Name"] for image in images}


@pytest.mark.nightly
def test_amounts_go_up_and_down_while_a_lease_is_active(service: Deployment, cloud, mine):
    lease = service.reaches(create(service, instances(1))["id"], "ACTIVE")
    reservation = lease["reservations"][0]["id"]

    def resize(amount: int):
        body = {"reservations": [{"id": reservation, "amount": amount}]}
        return service.call("demo", "PUT", f"/leases/{lease['id']}", body)

    assert resize(3).status == 200
    servers = [mine.boot(f"s{n}", flavor_id=reservation) for n in range(3)]
    assert {server["status"] for server in servers} == {"ACTIVE"}
    refused = resize(2)
    assert (refused.status, "delete 1 of them" in json.dumps(refused.body)) == (409, True)
    assert service.lease(lease["id"])["status"] == "ACTIVE"
    host = host_of(servers[0])
    openstack.admin_compute().begin_server_deletion(servers[0]["id"])
    eventually(lambda: cloud.placement.reserved_capacity(host, class_of(reservation)).used, lambda used: used < 3)
    assert resize(2).status == 200
    assert sum(slots(cloud, reservation).values()) == 2
    assert mine.boot("late", flavor_id=reservation)["status"] == "ERROR"


@pytest.mark.nightly
def test_a_pending_reservation_gets_another_flavor_and_leaves_nothing_when_deleted(service: Deployment, cloud):
    dates = {"start_date": "2040-01-01 10:00", "end_date": "2040-01-01 12:00"}
    lease = service.create(body={"reservations": [instances(2, affinity=True)], **dates})
    reservation = lease["reservations"][0]
    body = {"reservations": [{"id": reservation["id"], "vcpus": 2, "memory_mb": 128, "affinity": False}]}
    changed = service.call("demo", "PUT", f"/leases/{lease['id']}", body)["lease"]["reservations"][0]
    flavor = cloud.compute.flavor(reservation["id"])
    assert (flavor.vcpus, flavor.memory_mb) == (2, 128)
    (group,) = cloud.compute.server_groups(f"reservation:{reservation['id']}")
    assert (group.id, group.policy) == (changed["server_group_id"], "anti-affinity")
    assert group.id != reservation["server_group_id"]
    assert service.call("demo", "DELETE", f"/leases/{lease['id']}").status == 204
    eventually(lambda: service.call("demo", "GET", f"/leases/{lease['id']}").status, lambda status: status == 404)
    nothing_is_left(cloud, reservation["id"])


@pytest.mark.nightly
def test_hosts_and_instances_share_the_cloud_but_no_host(service: Deployment, cloud):
    lease = create(service, instances(2), a_host(2, 2))
    lease = service.reaches(lease["id"], "ACTIVE")
    shared, whole = (reservation["id"] for reservation in lease["reservations"])
    assert len(slots(cloud, shared)) == 1
    assert set(slots(cloud, shared)) | set(cloud.compute.aggregate(whole).hosts) == set(HOSTS)
    refused = service.call(
        "demo",
        "POST",
        "/leases",
        {"name": "x", "start_date": "now", "end_date": "2040-01-01 10:00", "reservations": [a_host()], "events": []},
    )
    assert refused.status == 409
