# SPDX-License-Identifier: Apache-2.0
"""A lease of servers of a flavor from request to release on a real OpenStack, by the programs that users have."""

from __future__ import annotations

import json
import uuid

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import BlazarError
from tests import openstack
from tests.cloud.deployment import Deployment
from tests.cloud.looks import gone, host_of
from tests.cloud.test_reserving_instances import HOSTS, class_of, nothing_is_left, slots
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

LATER = {"start_date": "2040-01-01 10:00", "end_date": "2040-01-01 12:00"}


@pytest.fixture(scope="module")
def cloud():
    return open_cloud(openstack.access("blazar"))


@pytest.fixture
def a_flavor(cloud):
    """Make private flavors that are gone afterwards."""
    made: list[str] = []

    def make(*, projects=(), **more) -> str:
        flavor_id = str(uuid.uuid4())
        sizes = {"vcpus": 1, "memory_mb": 64, "disk_gb": 1}
        cloud.compute.create_flavor(Flavor(flavor_id, f"flavor {flavor_id}", **{**sizes, **more}))
        made.append(flavor_id)
        for project in projects:
            cloud.compute.grant_flavor(flavor_id, project)
        return flavor_id

    yield make
    for flavor_id in made:
        cloud.compute.delete_flavor(flavor_id)


def servers_of(flavor_id, amount=1, affinity=None):
    return {"resource_type": "flavor:instance", "flavor_id": flavor_id, "amount": amount, "affinity": affinity}


def project_of(login: str) -> str:
    return str(openstack.access(login).session.get_project_id())


def test_servers_of_a_flavor_from_request_to_release_with_the_clients_that_everybody_has(
    service: Deployment, cloud, mine
):
    tiny = mine.flavor_id("tiny")
    room = f"resource_type=flavor:instance,flavor_id={tiny},amount=2"
    service.blazar("demo", "lease-create", "lab", "--reservation", room, "--start-date", "now")
    shown = json.loads(service.openstack("demo", "reservation", "lease", "show", "lab", "-f", "json"))
    lease = service.reaches(shown["id"], "ACTIVE")
    reservation = lease["reservations"][0]
    source = json.loads(reservation["resource_properties"])
    assert (source["id"], source["ram"]) == (tiny, reservation["memory_mb"])
    assert reservation["flavor_id"] == reservation["id"]
    assert sum(slots(cloud, reservation["id"]).values()) == 2

    boot = ("server", "create", "--image", "tiny", "--nic", "none", "--wait", "-f", "json")
    first = json.loads(service.openstack("demo", *boot, "--flavor", reservation["flavor_id"], "first"))
    second = mine.boot("second", flavor_id=reservation["id"])
    assert (first["status"], second["status"]) == ("ACTIVE", "ACTIVE")
    assert mine.boot("third", flavor_id=reservation["id"])["status"] == "ERROR"
    with pytest.raises(BlazarError):
        openstack.Servers("alt_demo").boot("thief", flavor_id=reservation["id"])

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert gone(mine, first)
    assert gone(mine, second)
    nothing_is_left(cloud, reservation["id"])
    assert set(cloud.compute.aggregate("freepool").hosts) == set(HOSTS)


@pytest.mark.nightly
def test_amounts_go_up_and_down_before_the_start_and_after_it(service: Deployment, cloud, mine):
    lease = service.create(body={"reservations": [servers_of(mine.flavor_id("tiny"), 2)], **LATER})
    reservation = lease["reservations"][0]["id"]

    def change(lease_id, **more):
        body = {"reservations": [{"id": reservation, **more}]}
        return service.call("demo", "PUT", f"/leases/{lease_id}", body)

    assert change(lease["id"], amount=3).status == 200
    changed = change(lease["id"], amount=1, flavor_id=mine.flavor_id("small"), affinity=False)
    assert changed.status == 200, changed
    flavor = cloud.compute.flavor(reservation)
    assert (flavor.vcpus, flavor.memory_mb) == (2, 2048)
    (group,) = cloud.compute.server_groups(f"reservation:{reservation}")
    assert group.policy == "anti-affinity"
    assert service.call("demo", "DELETE", f"/leases/{lease['id']}").status == 204
    eventually(lambda: service.call("demo", "GET", f"/leases/{lease['id']}").status, lambda status: status == 404)
    nothing_is_left(cloud, reservation)

    lease = service.create(body={"reservations": [servers_of(mine.flavor_id("tiny"))]})
    reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
    assert change(lease["id"], amount=3).status == 200
    servers = [mine.boot(f"s{n}", flavor_id=reservation) for n in range(3)]
    assert {server["status"] for server in servers} == {"ACTIVE"}
    refused = change(lease["id"], amount=2)
    assert (refused.status, "delete 1 of them" in json.dumps(refused.body)) == (409, True)
    assert change(lease["id"], affinity=True).status == 409
    assert service.lease(lease["id"])["status"] == "ACTIVE"
    host = host_of(servers[0])
    openstack.admin_compute().begin_server_deletion(servers[0]["id"])
    eventually(lambda: cloud.placement.reserved_capacity(host, class_of(reservation)).used, lambda used: used < 3)
    assert change(lease["id"], amount=2).status == 200
    assert sum(slots(cloud, reservation).values()) == 2
    assert mine.boot("late", flavor_id=reservation)["status"] == "ERROR"


@pytest.mark.nightly
def test_servers_go_where_the_traits_of_their_flavor_are(service: Deployment, cloud, mine, a_flavor):
    trait = f"CUSTOM_{uuid.uuid4().hex.upper()}"
    flavor_id = a_flavor(projects=[project_of("demo")], extra_specs={f"trait:{trait}": "required"}, rxtx_factor=2.0)
    wish = {"name": "x", "start_date": "now", "end_date": "2040-01-01 10:00", "reservations": [servers_of(flavor_id)]}
    for login, status in (("demo", 409), ("alt_demo", 404)):
        assert service.call(login, "POST", "/leases", wish).status == status
    hosts = service.call("admin", "GET", "/os-hosts")["hosts"]
    (second,) = [host for host in hosts if host["hypervisor_hostname"] == HOSTS[1]]
    providers = openstack.Providers()
    providers.mark(HOSTS[1], trait)
    try:
        assert service.call("admin", "DELETE", f"/os-hosts/{second['id']}").status == 204
        assert service.call("admin", "POST", "/os-hosts", {"name": HOSTS[1]}).status == 201
        lease = service.create(body={"reservations": [servers_of(flavor_id, 2)]})
        reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
        assert slots(cloud, reservation) == {HOSTS[1]: 2}
        assert cloud.compute.flavor(reservation).rxtx_factor == 2.0
        server = mine.boot("there", flavor_id=reservation)
        assert (server["status"], host_of(server)) == ("ACTIVE", HOSTS[1])
    finally:
        providers.clean()


@pytest.mark.nightly
def test_no_class_of_a_host_is_promised_twice(service: Deployment, mine):
    large = mine.flavor_id("large")
    lease = service.create(body={"reservations": [servers_of(large, 6)]})
    reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
    wish = {"name": "x", "start_date": "now", "end_date": "2040-01-01 10:00"}
    small = {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 64, "disk_gb": 0}
    for more in ({**small, "amount": 1, "affinity": None, "resource_properties": ""}, servers_of(large)):
        refused = service.call("demo", "POST", "/leases", {**wish, "reservations": [more]})
        assert refused.status == 409, refused
    servers = [mine.boot(f"s{n}", flavor_id=reservation, wait=False) for n in range(6)]
    assert {mine.settled(server["id"])["status"] for server in servers} == {"ACTIVE"}
