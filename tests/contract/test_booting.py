# SPDX-License-Identifier: Apache-2.0
"""What reservations of servers rely on: the service boots in projects of users, with what these may use."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.booting import BootedServer, BootImage, BootNetwork, ServerRequest
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.projects import OF_COMPUTE, OF_VOLUMES, Quota, QuotaLimit
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.state import BootImageState, NetworkState, SubnetState
from blazar.model.base.errors import CloudRefused, Conflict, RoleMissing
from blazar.model.base.reasons import ReasonCode
from tests import openstack
from tests.contract.builders import nowhere
from tests.people import PeopledCloud
from tests.world import ManualClock

TAG = "reservation:test-booting"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINZkG171DjZbTnvAsKfM4N0lbLF16hJvVKq9EBzZjWvF test"
USER_DATA = base64.b64encode(b"#!/bin/sh").decode()


class Nova(Protocol):
    """A cloud with a project of users, whose user ``user`` has the key pair ``mine``, and what servers boot from.

    ``new_image`` and ``new_network`` make one in the project, or else in another. ``shown`` is what the cloud has of a
    server. ``allow`` sets the quota of servers of the project.
    """

    cloud: Cloud
    project: str
    user: str
    flavor: str
    image: str
    external: str
    patience: float

    def new_image(self, *, own: bool = True) -> str: ...

    def new_network(self, *, own: bool = True, subnet: bool = True) -> str: ...

    def shown(self, server_id: str) -> dict[str, Any]: ...

    def allow(self, servers: int) -> None: ...


class SimulatedNova:
    """That of the simulated cloud."""

    project, user, flavor, image, external = "p", "u", "tiny", "cirros", "public"
    patience = 0.0

    def __init__(self, simulated: PeopledCloud) -> None:
        self.simulated, self.cloud = simulated, simulated.cloud
        simulated.operators.offer_flavor(Flavor("tiny", "tiny", 1, 64, 0, public=True))
        with simulated.change_state() as kept:
            kept.networks["public"] = NetworkState("public", "public", subnets=[SubnetState("s", "203.0.113.0/24")])
            kept.boot.user_keys["u/mine"] = PUBLIC_KEY

    def new_image(self, *, own: bool = True) -> str:
        made = BootImageState(str(uuid.uuid4()), "queued", self.project if own else "another", 2, 96)
        with self.simulated.change_state() as kept:
            kept.boot.images[made.id] = made
        return made.id

    def new_network(self, *, own: bool = True, subnet: bool = True) -> str:
        subnets = [SubnetState(str(uuid.uuid4()), "10.78.0.0/24")] if subnet else []
        owner = self.project if own else "another"
        made = NetworkState(str(uuid.uuid4()), "test", external=False, subnets=subnets, project_id=owner)
        with self.simulated.change_state() as kept:
            kept.networks[made.id] = made
        return made.id

    def shown(self, server_id: str) -> dict[str, Any]:
        with self.simulated.inspect() as kept:
            found = kept.servers[server_id]
            return {
                "tags": found.tags,
                "metadata": found.metadata,
                "user_data": found.user_data,
                "has_key": found.public_key == PUBLIC_KEY,
            }

    def allow(self, servers: int) -> None:
        with self.simulated.change_state() as kept:
            kept.boot.most_servers = servers


class RealNova:
    """That of ``make cloud``: the project is ``demo``, another one ``alt_demo``."""

    patience = openstack.PATIENCE * 2

    def __init__(self) -> None:
        self.cloud = open_cloud(openstack.access("blazar"))
        self.admin = openstack.access("admin")
        self.logins = {True: openstack.access("demo"), False: openstack.access("alt_demo")}
        session = self.logins[True].session
        self.project, self.user = str(session.get_project_id()), str(session.get_user_id())
        servers = openstack.Servers()
        self.flavor, self.image = servers.flavor_id("tiny"), servers.image_id
        self.external = str(
            self.admin.network.get("/networks", params={"router:external": True, "shared": False})["networks"][0]["id"]
        )
        self._images: list[str] = []
        self._networks: list[str] = []
        self._quota = self.admin.compute.get(f"/os-quota-sets/{self.project}", microversion="2.90")["quota_set"]
        key = {"keypair": {"name": "mine", "type": "ssh", "public_key": PUBLIC_KEY}}
        self.logins[True].compute.call("POST", "/os-keypairs", body=key, microversion="2.92")

    def new_image(self, *, own: bool = True) -> str:
        wanted = {"name": "test-booting", "min_disk": 2, "min_ram": 96, "visibility": "private"}
        self._images.append(str(self.logins[own].image.call("POST", "/images", body=wanted)["id"]))
        return self._images[-1]

    def new_network(self, *, own: bool = True, subnet: bool = True) -> str:
        neutron = self.logins[own].network
        made = str(neutron.call("POST", "/networks", body={"network": {"name": "test-booting"}})["network"]["id"])
        self._networks.append(made)
        if subnet:
            body = {"subnet": {"network_id": made, "ip_version": 4, "cidr": "10.78.0.0/24", "name": "test-booting"}}
            neutron.call("POST", "/subnets", body=body)
        return made

    def shown(self, server_id: str) -> dict[str, Any]:
        found = self.admin.compute.get(f"/servers/{server_id}", microversion="2.90")["server"]
        return {
            "tags": found["tags"],
            "metadata": found["metadata"],
            "user_data": found["OS-EXT-SRV-ATTR:user_data"],
            "has_key": bool(found["key_name"]),
        }

    def allow(self, servers: int) -> None:
        body = {"quota_set": {"instances": servers, "force": True}}
        self.admin.compute.call("PUT", f"/os-quota-sets/{self.project}", body=body, microversion="2.90")

    def clean(self) -> None:
        self.allow(self._quota["instances"])
        self.logins[True].compute.call("DELETE", "/os-keypairs/mine", microversion="2.92")
        query = {"all_tenants": 1, "tags": TAG}
        for found in list(self.admin.compute.pages("/servers/detail", "servers", microversion="2.90", params=query)):
            self.cloud.compute.begin_server_deletion(found["id"])
            gone(self, found["id"])
        for image in self._images:
            self.admin.image.call("DELETE", f"/images/{image}")
        for network in self._networks:
            self.admin.network.call("DELETE", f"/networks/{network}")


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def nova(request, tmp_path) -> Iterator[Nova]:
    if request.param == "openstack":
        real = RealNova()
        try:
            yield real
        finally:
            real.clean()
    else:
        yield SimulatedNova(simulated_cloud(request.param, tmp_path))


def simulated_cloud(keeping: str, folder: Path) -> PeopledCloud:
    state = of_size(2)
    storage = MemoryStorage(state) if keeping == "memory" else FileStorage(folder / "cloud.json", state)
    return PeopledCloud(storage, clock=ManualClock())


@pytest.fixture
def key(nova):
    """The name of a key pair of the service user, which is not there yet, and not there afterwards."""
    name = f"test-{uuid.uuid4()}"
    yield name
    nova.cloud.booting.delete_key(name)


def a_request(nova: Nova, **more: Any) -> ServerRequest:
    return replace(ServerRequest("test-booting", nova.flavor, nova.image, "none", TAG), **more)


def settled(nova: Nova, server_id: str) -> BootedServer | None:
    look = lambda: nova.cloud.booting.booted_server(server_id)  # noqa: E731
    return openstack.eventually(look, lambda s: s is None or s.status != "BUILD", patience=nova.patience)


def gone(nova: Any, server_id: str) -> None:
    look = lambda: nova.cloud.booting.booted_server(server_id)  # noqa: E731
    openstack.eventually(look, lambda s: s is None, patience=nova.patience)


def test_a_server_is_booted_in_the_project_with_what_was_asked_for(nova, key):
    booting = nova.cloud.booting
    booting.import_key(key, PUBLIC_KEY)
    wanted = a_request(
        nova,
        networks=(nova.new_network(),),
        key_name=key,
        user_data=USER_DATA,
        metadata={"role": "web"},
        security_groups=("default",),
    )
    made = booting.begin_boot(nova.project, wanted)
    booting.delete_key(key)
    assert settled(nova, made) == BootedServer(made, nova.project, wanted.name, "ACTIVE")
    assert nova.shown(made) == {
        "tags": [TAG],
        "metadata": {"role": "web"},
        "user_data": USER_DATA,
        "has_key": True,
    }
    assert [server.id for server in nova.cloud.compute.servers_of_flavor(nova.flavor) if server.id == made] == [made]
    nova.cloud.compute.begin_server_deletion(made)
    gone(nova, made)


def test_a_server_without_a_host_fails_with_a_reason(nova):
    compute, placement = nova.cloud.compute, nova.cloud.placement
    id_ = str(uuid.uuid4())
    name = f"CUSTOM_RESERVATION_{id_.upper().replace('-', '_')}"
    placement.create_resource_class(name)
    compute.create_flavor(Flavor(id_, id_, 1, 64, 1, extra_specs={f"resources:{name}": "1"}))
    try:
        with pytest.raises(CloudRefused):
            nova.cloud.booting.begin_boot(nova.project, a_request(nova, flavor_id=id_))
        compute.grant_flavor(id_, nova.project)
        made = nova.cloud.booting.begin_boot(nova.project, a_request(nova, flavor_id=id_))
        failed = settled(nova, made)
        assert (failed.status, failed.project_id) == ("ERROR", nova.project)
        assert "No valid host was found" in failed.fault
        compute.begin_server_deletion(made)
        gone(nova, made)
    finally:
        compute.delete_flavor(id_)
        placement.delete_resource_class(name)


def test_what_the_project_cannot_use_is_refused_and_nothing_is_left(nova):
    refused = [
        {"flavor_id": nowhere()},
        {"image_id": nowhere()},
        {"image_id": nova.new_image(own=False)},
        {"networks": (nowhere(),)},
        {"networks": (nova.new_network(own=False),)},
        {"networks": (nova.new_network(subnet=False),)},
        {"key_name": "mine"},
    ]
    for more in refused:
        with pytest.raises(CloudRefused) as error:
            nova.cloud.booting.begin_boot(nova.project, a_request(nova, **more))
        assert error.value.cause.code is not ReasonCode.QUOTA_EXCEEDED, more
    assert all(server.name != "test-booting" for server in nova.cloud.compute.servers_of_flavor(nova.flavor))


def test_a_server_on_an_external_network_fails_with_a_reason(nova):
    made = nova.cloud.booting.begin_boot(nova.project, a_request(nova, networks=(nova.external,)))
    failed = settled(nova, made)
    assert failed.status == "ERROR"
    assert "Failed to allocate the network(s)" in failed.fault
    nova.cloud.compute.begin_server_deletion(made)
    gone(nova, made)


def test_a_quota_refuses_with_its_cause(nova):
    nova.allow(0)
    with pytest.raises(CloudRefused) as refused:
        nova.cloud.booting.begin_boot(nova.project, a_request(nova))
    assert refused.value.cause.code is ReasonCode.QUOTA_EXCEEDED


def test_what_a_project_sees_is_found(nova):
    booting, project = nova.cloud.booting, nova.project
    image, network = nova.new_image(), nova.new_network()
    assert booting.boot_image(project, nova.image).status == "active"
    assert booting.boot_image(project, image) == BootImage(image, "queued", min_disk_gb=2, min_memory_mb=96)
    assert booting.boot_network(project, network) == BootNetwork(network, subnets=1)
    assert booting.boot_network(project, nova.new_network(subnet=False)).subnets == 0
    outside = booting.boot_network(project, nova.external)
    assert (outside.external, outside.shared) == (True, False)
    assert booting.has_security_group(project, "default")


def test_what_a_project_does_not_see_is_none(nova):
    booting, project = nova.cloud.booting, nova.project
    assert booting.boot_image(project, nova.new_image(own=False)) is None
    assert booting.boot_image(project, nowhere()) is None
    assert booting.boot_network(project, nova.new_network(own=False)) is None
    assert booting.boot_network(project, nowhere()) is None
    assert not booting.has_security_group(project, "nothing-like-it")
    assert booting.booted_server(nowhere()) is None


def test_the_public_key_of_a_user_becomes_a_key_pair_of_the_service(nova, key):
    booting = nova.cloud.booting
    assert booting.public_key(nova.user, "mine") == PUBLIC_KEY
    assert booting.public_key(nova.user, "nothing-like-it") is None
    booting.import_key(key, PUBLIC_KEY)
    with pytest.raises(Conflict):
        booting.import_key(key, PUBLIC_KEY)
    booting.delete_key(key)
    booting.delete_key(key)
    with pytest.raises(CloudRefused):
        booting.import_key(key, "this is no key")


def test_a_project_without_a_role_is_told(tmp_path):
    simulated = simulated_cloud("memory", tmp_path)
    nova = SimulatedNova(simulated)
    simulated.operators.close_project("p")
    booting = nova.cloud.booting
    for call in (
        lambda: booting.begin_boot("p", a_request(nova)),
        lambda: booting.boot_image("p", "cirros"),
        lambda: booting.boot_network("p", "public"),
        lambda: booting.has_security_group("p", "default"),
    ):
        with pytest.raises(RoleMissing):
            call()


def test_user_data_is_not_in_the_text_of_a_request():
    assert USER_DATA not in repr(ServerRequest("s", "f", "i", "none", TAG, user_data=USER_DATA))


def test_the_quotas_of_a_project_are_told_with_what_it_has(nova):
    before = nova.cloud.quotas.compute_quotas(nova.project)
    assert before.keys() == set(OF_COMPUTE)
    nova.allow(before[Quota.SERVERS].used + 1)
    server = nova.cloud.booting.begin_boot(nova.project, a_request(nova))
    settled(nova, server)
    after = nova.cloud.quotas.compute_quotas(nova.project)
    assert after[Quota.SERVERS] == QuotaLimit(before[Quota.SERVERS].used + 1, before[Quota.SERVERS].used + 1)
    assert after[Quota.VCPUS].used > before[Quota.VCPUS].used
    assert after[Quota.MEMORY_MB].used > before[Quota.MEMORY_MB].used
    nova.cloud.compute.begin_server_deletion(server)
    gone(nova, server)


def test_networks_and_volumes_have_quotas_too(nova):
    networks = nova.cloud.quotas.network_quotas(nova.project)
    nova.new_network()
    assert nova.cloud.quotas.network_quotas(nova.project)[Quota.NETWORKS].used == networks[Quota.NETWORKS].used + 1
    assert nova.cloud.quotas.volume_quotas(nova.project).keys() == set(OF_VOLUMES)
