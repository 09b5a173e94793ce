# SPDX-License-Identifier: Apache-2.0
"""A lease of servers from request to release on a real OpenStack."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, in_minutes
from tests.contract.storage import NAME, THICK, RealStorage
from tests.contract.test_booting import RealNova
from tests.openstack import ExternalNetwork, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

SECRET = base64.b64encode(b"#!/bin/sh").decode()
SIZE = {"vcpus": 1, "memory_mb": 64, "disk_gb": 1}


@pytest.fixture
def nova():
    """The project ``demo``, whose user has a key pair."""
    real = RealNova()
    try:
        yield real
    finally:
        real.clean()


@pytest.fixture
def nothing_left(service: Deployment):
    """Each test begins without leases."""
    yield
    service.forget_leases()


def room(nova: RealNova, **more):
    return {"resource_type": "virtual:server", **SIZE, "image": nova.image, "networks": "none", **more}


def of_flavor(nova: RealNova, reservation_id: str) -> dict[str, str]:
    """Return the status of the servers of a reservation, by name."""
    return {each.name: each.status for each in nova.cloud.compute.servers_of_flavor(reservation_id)}


def test_servers_from_request_to_release(service: Deployment, nova: RealNova):
    network = nova.new_network()
    wanted = room(nova, name="web", networks=[{"uuid": network}], key_name="mine", user_data=SECRET)
    lease = service.create(body={"reservations": [wanted]})
    (reservation,) = service.reaches(lease["id"], "ACTIVE")["reservations"]
    (server_id,) = reservation["server_ids"]
    assert SECRET not in f"{lease} {reservation}"
    assert of_flavor(nova, reservation["id"]) == {"web": "ACTIVE"}
    shown = nova.shown(server_id)
    assert (shown["user_data"], shown["has_key"]) == (SECRET, True)
    assert nova.cloud.compute.flavor_access(reservation["id"]) == frozenset()

    answer = service.call(
        "demo", "PUT", f"/leases/{lease['id']}", {"reservations": [{"id": reservation["id"], "amount": 2}]}
    )
    assert answer.status == 200, answer
    assert of_flavor(nova, reservation["id"]) == {"web": "ACTIVE", "web-1": "ACTIVE"}
    (reservation,) = service.lease(lease["id"])["reservations"]
    assert len(reservation["server_ids"]) == 2

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert [nova.cloud.booting.booted_server(id_) for id_ in reservation["server_ids"]] == [None, None]
    assert nova.cloud.compute.flavor(reservation["id"]) is None


@pytest.mark.nightly
def test_servers_are_saved_before_the_end_whatever_flavor_they_have(service: Deployment, nova: RealNova):
    lease = service.create(body={"reservations": [room(nova, name="work", amount=2, before_end="snapshot")]})
    (reservation,) = service.reaches(lease["id"], "ACTIVE")["reservations"]
    resized, _ = reservation["server_ids"]
    user = openstack.access("demo").compute

    def act(body: dict) -> None:
        user.call("POST", f"/servers/{resized}/action", body=body)

    act({"resize": {"flavorRef": nova.flavor}})
    eventually(lambda: nova.cloud.booting.booted_server(resized).status, lambda status: status == "VERIFY_RESIZE")
    act({"confirmResize": None})
    eventually(lambda: nova.cloud.booting.booted_server(resized).status, lambda status: status == "ACTIVE")
    assert len(of_flavor(nova, reservation["id"])) == 1

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert [nova.cloud.booting.booted_server(id_) for id_ in reservation["server_ids"]] == [None, None]
    images = nova.cloud.compute.images_of_reservation(reservation["id"])
    assert {each.metadata["blazar:server"] for each in images} == set(reservation["server_ids"])
    assert {(each.status, each.project_id) for each in images} == {("active", nova.project)}


@pytest.fixture
def routed(nova: RealNova):
    """A network of the project with a router to an external one of this test's own; their ids."""
    outside, neutron = ExternalNetwork(103), openstack.access("demo").network
    inside = nova.new_network()
    subnet = neutron.get("/subnets", params={"network_id": inside})["subnets"][0]["id"]
    wanted = {"name": "test-servers", "external_gateway_info": {"network_id": outside.id}}
    assert outside.subnet_id
    router = neutron.call("POST", "/routers", body={"router": wanted})["router"]["id"]
    neutron.call("PUT", f"/routers/{router}/add_router_interface", body={"subnet_id": subnet})
    yield inside, outside.id
    neutron.call("PUT", f"/routers/{router}/remove_router_interface", body={"subnet_id": subnet})
    neutron.call("DELETE", f"/routers/{router}")
    outside.clean()


@pytest.fixture
def registered(service: Deployment, routed: tuple[str, str], storage: RealStorage, away: Callable[[], None]):
    """A segment, a pool and an address that can be reserved."""
    away()
    pool = next(each for each in storage.cloud.volumes.volume_pools() if each.pool_name == THICK)
    for path, body in (
        ("/networks", {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 1891}),
        ("/resources/volume", {"pool": pool.name, "volume_type": NAME, "gigabytes": 5}),
        ("/floatingips", {"floating_network_id": routed[1], "floating_ip_address": "198.51.103.10"}),
    ):
        version = NEWEST if path.startswith("/resources") else "1.0"
        answer = service.call("admin", "POST", path, body, version=version)
        assert answer.status == 201, answer
    yield
    service.forget_leases()
    for kind in ("network", "volume", "floatingip"):
        for each in service.call("admin", "GET", f"/resources/{kind}", version=NEWEST)["resources"]:
            service.call("admin", "DELETE", f"/resources/{kind}/{each['id']}", version=NEWEST)


@pytest.mark.nightly
@pytest.mark.usefixtures("registered")
def test_a_server_has_a_network_a_volume_and_an_address_of_its_lease(
    service: Deployment, nova: RealNova, storage: RealStorage, routed: tuple[str, str]
):
    inside, outside = routed
    lab = {"resource_type": "network", "network_name": "lab", "subnet": {"cidr": "10.79.0.0/24", "enable_dhcp": False}}
    tied = {
        "networks": [{"reservation": 1}, {"uuid": inside}],
        "volumes": [{"reservation": 2}],
        "floating_ip": {"reservation": 3},
    }
    data = {"resource_type": "virtual:volume", "size": 1, "volume_type": NAME}
    address = {"resource_type": "virtual:floatingip", "network_id": outside, "amount": 1}
    wanted = {"name": "work", "end_date": "+1h", "reservations": [room(nova, name="web", **tied), lab, data, address]}
    made = service.call("demo", "POST", "/leases", wanted, version=NEWEST)
    assert made.status == 201, made
    lease = made["lease"]
    now = {each["resource_type"]: each for each in service.reaches(lease["id"], "ACTIVE")["reservations"]}
    (server_id,) = now["virtual:server"]["server_ids"]
    (volume_id,) = now["virtual:volume"]["volume_ids"]
    (volume,) = [storage.cloud.volumes.volume(volume_id)]
    assert [each.server_id for each in volume.attachments] == [server_id]
    (given,) = nova.cloud.network.floating_ips(network_id=outside)
    assert given.attached
    network = now["network"]["network_id"]
    assert [each.device_id for each in nova.cloud.segments.ports_on(network)] == [server_id]

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert nova.cloud.booting.booted_server(server_id) is None
    assert storage.cloud.volumes.volume(volume_id) is None
    assert nova.cloud.network.floating_ips(network_id=outside) == ()
    assert nova.cloud.segments.segment_networks(id=network) == ()


@pytest.mark.nightly
def test_what_belongs_to_others_is_refused_and_a_deletion_before_the_start_leaves_nothing(service, nova):
    foreign = {
        "image": nova.new_image(own=False),
        "networks": [{"uuid": nova.new_network(own=False)}],
        "key_name": "theirs",
        "flavor": "no-such-flavor",
    }
    for field, value in foreign.items():
        answer = service.call("demo", "POST", "/leases", _body(room(nova, **{field: value})))
        assert (answer.status, field in str(answer.body)) == (404, True), answer
    lease = service.create(
        body={"reservations": [room(nova)], "start_date": in_minutes(30), "end_date": in_minutes(60)}
    )
    reservation = lease["reservations"][0]["id"]
    assert nova.cloud.compute.flavor(reservation) is not None
    assert service.call("demo", "DELETE", f"/leases/{lease['id']}").status in (200, 204)
    assert eventually(lambda: nova.cloud.compute.flavor(reservation), lambda left: left is None) is None


def _body(reservation):
    dates = {"start_date": in_minutes(10), "end_date": in_minutes(20)}
    return {"name": "foreign", **dates, "events": [], "reservations": [reservation]}
