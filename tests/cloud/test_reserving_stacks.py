# SPDX-License-Identifier: Apache-2.0
"""Leases of stacks on a real OpenStack: twice in a row on the same hosts, and what nobody gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud.deployment import NEWEST, Deployment
from tests.contract.storage import NAME, THICK, RealStorage
from tests.openstack import ExternalNetwork

POOLS = "/resources/volume"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Zc1zq7o1fJt0sQ6bM1yN2p8s6Y0kQyq8m2Yy4h9aB"


@pytest.fixture
def outside() -> Iterator[ExternalNetwork]:
    """An external network of these tests' own."""
    network = ExternalNetwork(104)
    assert network.subnet_id
    yield network
    network.clean()


@pytest.fixture(autouse=True)
def nothing_left(service: Deployment, storage: RealStorage, outside: ExternalNetwork):
    """Each test begins without leases, registered pools and addresses."""
    yield
    service.forget_leases()
    for pool in service.call("admin", "GET", POOLS, version=NEWEST)["resources"]:
        assert service.call("admin", "DELETE", f"{POOLS}/{pool['id']}", version=NEWEST).status == 204
    for address in service.call("admin", "GET", "/floatingips")["floatingips"]:
        assert service.call("admin", "DELETE", f"/floatingips/{address['id']}").status == 204


def template(**resources: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": resources}


def server(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"flavor": "tiny", "image": "tiny", **properties}}


def whole(network_id: str) -> dict[str, Any]:
    """Return two servers, a network, a volume that is attached, and an address."""
    net, port, subnet = ({"get_resource": name} for name in ("net", "port", "subnet"))
    return template(
        net={"type": "OS::Neutron::Net"},
        subnet={"type": "OS::Neutron::Subnet", "properties": {"network": net, "cidr": "10.78.0.0/24"}},
        router={
            "type": "OS::Neutron::Router",
            "properties": {"external_gateway_info": {"network": network_id}},
        },
        inside={
            "type": "OS::Neutron::RouterInterface",
            "properties": {"router": {"get_resource": "router"}, "subnet": subnet},
        },
        port={"type": "OS::Neutron::Port", "properties": {"network": net}, "depends_on": "subnet"},
        key={"type": "OS::Nova::KeyPair", "properties": {"name": "course", "public_key": KEY}},
        web=server(networks=[{"port": port}], key_name={"get_resource": "key"}),
        database={**server(networks=[{"network": net}], key_name={"get_resource": "key"}), "depends_on": "subnet"},
        data={"type": "OS::Cinder::Volume", "properties": {"size": 1, "volume_type": NAME}},
        attached={
            "type": "OS::Cinder::VolumeAttachment",
            "properties": {"instance_uuid": {"get_resource": "database"}, "volume_id": {"get_resource": "data"}},
        },
        address={
            "type": "OS::Neutron::FloatingIP",
            "properties": {"floating_network": network_id, "port_id": port},
            "depends_on": "inside",
        },
    )


@pytest.mark.timeout(400)
def test_twice_in_a_row_a_stack_is_made_of_what_is_reserved(
    service: Deployment, storage: RealStorage, outside: ExternalNetwork, away
):
    away()
    pool = next(each for each in storage.cloud.volumes.volume_pools() if each.pool_name == THICK)
    given = {"pool": pool.name, "volume_type": NAME, "gigabytes": 1}
    assert service.call("admin", "POST", POOLS, given, version=NEWEST).status == 201
    given = {"floating_network_id": outside.id, "floating_ip_address": "198.51.104.10"}
    assert service.call("admin", "POST", "/floatingips", given).status == 201
    stack = {"resource_type": "virtual:stack", "template": whole(outside.id), "stack_name": "course"}
    for _ in range(2):
        begun = time.monotonic()
        # What it takes is all that there is of volumes and addresses.
        lease = service.create(body={"reservations": [stack]})
        service.reaches(lease["id"], "ACTIVE", patience=180)
        print(f"ACTIVE after {time.monotonic() - begun:.1f} s")
        (shown,) = service.call("demo", "GET", f"/leases/{lease['id']}", version=NEWEST)["lease"]["reservations"]
        servers, volumes, addresses = shown["children"]
        assert [each["resource_type"] for each in shown["children"]] == [
            "flavor:instance",
            "virtual:volume",
            "virtual:floatingip",
        ]
        found = storage.cloud.compute.servers_of_flavor(servers["id"])
        assert sorted(each.status for each in found) == ["ACTIVE", "ACTIVE"]
        (address,) = storage.cloud.network.floating_ips(network_id=outside.id)
        assert (address.address, address.attached) == ("198.51.104.10", True)
        (data,) = storage.cloud.volumes.volumes_of_type(storage.type_id, project_id=storage.project)
        assert data.size_gb == 1
        begun = time.monotonic()
        service.end(lease["id"])
        service.reaches(lease["id"], "TERMINATED", patience=180)
        print(f"gone after {time.monotonic() - begun:.1f} s")
        assert storage.cloud.stacks.stack(storage.project, shown["stack_id"]) is None
        assert storage.cloud.compute.servers_of_flavor(servers["id"]) == ()
        assert storage.cloud.network.floating_ips(network_id=outside.id) == ()
        assert storage.cloud.volumes.volumes_of_type(storage.type_id, project_id=storage.project) == ()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (template(one=server(image="no-such-image")), "no-such-image"),
        (template(one=server(networks=[{"network": "no-such-network"}])), "no-such-network"),
        (template(one=server(key_name="theirs")), "key"),
        (template(one={"type": "http://127.0.0.1:1/x.yaml"}), "nothing is fetched"),
        (template(one={"type": "file:///etc/passwd"}), "nothing is fetched"),
        (template(one={"type": "OS::Magnum::Cluster"}), "cannot be priced"),
        (template(one=server(user_data="x" * 40_000)), "bytes of text"),
    ],
)
def test_what_cannot_be_promised_is_refused_and_leaves_nothing(
    service: Deployment, storage: RealStorage, given, sentence
):
    stack = {"resource_type": "virtual:stack", "template": given}
    times = {"name": "wrong", "start_date": "now", "end_date": "+PT1H"}
    answer = service.call("demo", "POST", "/leases", {**times, "reservations": [stack]}, version=NEWEST)
    assert 400 <= answer.status < 500, answer
    assert sentence in str(answer.body)
    assert service.call("demo", "GET", "/leases")["leases"] == []
    assert storage.cloud.stacks.stacks_tagged(storage.project, "blazar") == ()
