# SPDX-License-Identifier: Apache-2.0
"""A lease of addresses from registration to release on a real OpenStack, by the programs that users have."""

from __future__ import annotations

import json

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports.network import FloatingIp
from tests import openstack
from tests.cloud.deployment import Deployment, a_host
from tests.openstack import ExternalNetwork, eventually


@pytest.fixture(scope="module")
def outside():
    """An external network of these tests' own."""
    network = ExternalNetwork(102)
    assert network.subnet_id
    yield network
    network.clean()


@pytest.fixture(scope="module")
def cloud():
    return open_cloud(openstack.access("admin"))


@pytest.fixture(autouse=True)
def nothing_left(service: Deployment):
    """Each test begins without leases and registered addresses."""
    yield
    service.forget_leases()
    for address in service.call("admin", "GET", "/floatingips")["floatingips"]:
        assert service.call("admin", "DELETE", f"/floatingips/{address['id']}").status == 204


def text(number: int) -> str:
    return f"198.51.102.{number}"


def register(service: Deployment, outside: ExternalNetwork, *numbers: int) -> None:
    for number in numbers:
        body = {"floating_network_id": outside.id, "floating_ip_address": text(number)}
        answer = service.call("admin", "POST", "/floatingips", body)
        assert answer.status == 201, answer


def addresses(outside: ExternalNetwork, amount: int, *required: int, **more: object) -> dict:
    room = {"resource_type": "virtual:floatingip", "network_id": outside.id, "amount": amount}
    return {**room, "required_floatingips": [text(number) for number in required], **more}


def held(cloud, outside: ExternalNetwork) -> dict[int, FloatingIp]:
    """All floating IPs of the network, by the last number."""
    return {int(f.address.rpartition(".")[2]): f for f in cloud.network.floating_ips(network_id=outside.id)}


def test_addresses_from_registration_to_release_with_the_clients_that_everybody_has(
    service: Deployment, cloud, outside: ExternalNetwork
):
    for number in (10, 11, 12):
        service.blazar("admin", "floatingip-create", outside.id, text(number))
    shown = json.loads(service.blazar("demo", "floatingip-list", "-f", "json"))
    assert {found["floating_ip_address"] for found in shown} == {text(10), text(11), text(12)}
    one = json.loads(service.blazar("demo", "floatingip-show", shown[0]["id"], "-f", "json"))
    assert (one["floating_network_id"], one["subnet_id"]) == (outside.id, outside.subnet_id)
    for number, why in ((1, "gateway"), (130, "allocation pool")):
        refused = service.tries("blazar", "admin", "floatingip-create", outside.id, text(number))
        assert (refused.returncode, why in refused.stderr) == (1, True)
    theirs = cloud.network.create_floating_ip(
        network_id=outside.id,
        subnet_id=outside.subnet_id,
        address=text(40),
        project_id=str(openstack.access("alt_demo").session.get_project_id()),
        description="",
    )
    refused = service.tries("blazar", "admin", "floatingip-create", outside.id, text(40))
    assert (refused.returncode, "floating IP of project" in refused.stderr) == (1, True)

    room = f'resource_type=virtual:floatingip,network_id={outside.id},amount=2,required_floatingips=["{text(11)}"]'
    service.blazar("demo", "lease-create", "web", "--reservation", room, "--start-date", "now")
    lease = json.loads(service.openstack("demo", "reservation", "lease", "show", "web", "-f", "json"))
    lease = service.reaches(lease["id"], "ACTIVE")
    tag = f"reservation:{lease['reservations'][0]['id']}"
    listed = json.loads(service.openstack("demo", "floating", "ip", "list", "--tags", tag, "-f", "json"))
    assert {found["Floating IP Address"] for found in listed} > {text(11)}
    assert len(listed) == 2
    assert held(cloud, outside)[11].tags == {"blazar", tag}

    port = outside.port_of("demo")
    service.openstack("demo", "floating", "ip", "set", "--port", port, text(11))
    assert held(cloud, outside)[11].attached

    blocked = service.tries(
        "blazar", "admin", "floatingip-delete", next(f["id"] for f in shown if f["floating_ip_address"] == text(11))
    )
    assert (blocked.returncode, "is allocated to lease" in blocked.stderr) == (1, True)
    service.blazar("demo", "lease-update", "web", "--reservation", f"id={lease['reservations'][0]['id']},amount=3")
    assert set(held(cloud, outside)) == {10, 11, 12, 40}

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert held(cloud, outside) == {40: theirs}
    for found in shown:
        service.blazar("admin", "floatingip-delete", found["id"])
    assert json.loads(service.blazar("admin", "floatingip-list", "-f", "json")) == []
    cloud.network.delete_floating_ip(theirs.id)


@pytest.mark.nightly
def test_an_active_reservation_grows_and_shrinks_and_keeps_what_is_attached(
    service: Deployment, cloud, outside: ExternalNetwork
):
    register(service, outside, 10, 11, 12, 13)
    lease = service.reaches(service.create(body={"reservations": [addresses(outside, 2, 10, 11)]})["id"], "ACTIVE")
    reservation = lease["reservations"][0]["id"]

    def resize(**values: object):
        body = {"reservations": [{"id": reservation, **values}]}
        return service.call("demo", "PUT", f"/leases/{lease['id']}", body)

    assert resize(amount=4, required_floatingips=[]).status == 200
    assert set(held(cloud, outside)) == {10, 11, 12, 13}
    for number in (12, 13):
        service.openstack("demo", "floating", "ip", "set", "--port", outside.port_of("demo"), text(number))
    before = held(cloud, outside)
    refused = resize(amount=1)
    assert (refused.status, "detach 1 of them first" in json.dumps(refused.body)) == (409, True)
    assert held(cloud, outside) == before
    assert resize(amount=3, required_floatingips=[text(11)]).status == 200
    assert held(cloud, outside) == {number: before[number] for number in (11, 12, 13)}
    assert resize(amount=2, required_floatingips=[]).status == 200
    assert held(cloud, outside) == {number: before[number] for number in (12, 13)}
    assert service.call("demo", "DELETE", f"/leases/{lease['id']}").status == 204
    eventually(lambda: held(cloud, outside), lambda left: left == {})


@pytest.mark.nightly
def test_a_pending_lease_that_is_deleted_leaves_the_address_of_another_project_alone(
    service: Deployment, cloud, outside: ExternalNetwork
):
    register(service, outside, 10)
    theirs = service.create("alt_demo", body={"reservations": [addresses(outside, 1, 10)]})
    service.reaches(theirs["id"], "ACTIVE", login="alt_demo")
    before = held(cloud, outside)
    later = {"start_date": "2040-01-01 10:00", "end_date": "2040-01-01 12:00"}
    mine = service.create(body={"reservations": [addresses(outside, 1, 10)], **later})
    assert service.call("demo", "DELETE", f"/leases/{mine['id']}").status == 204
    eventually(lambda: service.call("demo", "GET", f"/leases/{mine['id']}").status, lambda status: status == 404)
    assert held(cloud, outside) == before
    assert before[10].project_id == openstack.access("alt_demo").session.get_project_id()


@pytest.mark.nightly
def test_a_host_and_an_address_of_one_lease_start_together(service: Deployment, cloud, outside: ExternalNetwork):
    register(service, outside, 10)
    lease = service.create(body={"reservations": [a_host(), addresses(outside, 1)]})
    lease = service.reaches(lease["id"], "ACTIVE")
    assert set(held(cloud, outside)) == {10}
    refused = service.call(
        "demo",
        "POST",
        "/leases",
        {"name": "x", "start_date": "now", "end_date": "2040-01-01 10:00", "reservations": [addresses(outside, 1)]},
    )
    assert (refused.status, "Not enough floating IPs" in refused["error_message"]) == (409, True)
