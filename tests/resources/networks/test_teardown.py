# SPDX-License-Identifier: Apache-2.0
"""What may be on a network at its end: it goes, whatever has been built, or the reason says by name what holds it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus
from tests.resources.networks.steps import in_cloud, state_of
from tests.world import NOON, PROJECT, World, a_network

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)

LOAD_BALANCER = "lb-3f8c1d52-7a0e-4b66-9d1e-2f5a8c7b9e10"
VPN = "0f7d2c1e-55aa-4c3b-8f7e-1a2b3c4d5e6f"


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, hosts=0)
    world.register_segments(101)
    return world


@pytest.fixture
def lease(world) -> Lease:
    lease = world.lease(a_network())
    world.run()
    return lease


def reason(world: World, lease: Lease) -> str:
    return world.now(lease).event(EventType.END).reason or ""


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "owner",
    [
        "Octavia",
        "Octavia:health-mgr",
        "neutron:LOADBALANCERV2",
        "compute:nova",
        "baremetal:none",
        "container:kuryr",
        "manila:share",
        "trunk:subport",
        "network:dhcp",
        "network:distributed",
        "network:floatingip",
        "network:routed",
        "",
    ],
)
def test_a_port_of_any_owner_leaves_with_the_network(world, lease, owner):
    (network,) = in_cloud(world).values()
    users = world.simulated.network_users
    users.subnet(network.id)
    for project in (PROJECT, "art"):
        users.port(network.id, owner, project_id=project, device_id=LOAD_BALANCER)
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})
    assert network.id not in {port.network_id for port in state_of(world).ports.values()}


def test_the_virtual_address_of_a_load_balancer_with_a_floating_ip_leaves_and_frees_it(world, lease):
    (network,) = in_cloud(world).values()
    users = world.simulated.network_users
    users.subnet(network.id)
    router = users.router(network.id, project_id=PROJECT)
    port = users.port(network.id, "Octavia", device_id=LOAD_BALANCER)
    address = world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address="203.0.113.9", project_id=PROJECT, description=""
    )
    world.simulated.users.attach(address.id, port)
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})
    assert state_of(world).floating_ips[address.id].port_id is None
    assert router in state_of(world).routers


@pytest.mark.slow
def test_a_router_that_a_vpn_service_uses_holds_the_network_and_the_reason_says_so(world, lease):
    (network,) = in_cloud(world).values()
    users = world.simulated.network_users
    users.subnet(network.id)
    router = users.router(network.id, project_id=PROJECT)
    users.vpn(router, VPN)
    users.port(network.id, "Octavia", device_id=LOAD_BALANCER)
    world.run_to(NOON + 2 * HOUR + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    (port,) = [each for each in state_of(world).ports.values() if each.network_id == network.id]
    said = reason(world, lease)
    assert f"network {network.id} still has ports that have to leave first: " in said
    assert f"{port.id} (network:router_interface {router})" in said
    assert f"Neutron says: router {router} is used by VPNService {VPN}" in said
    users.vpn(router, "")
    world.run_to(NOON + 2 * HOUR + 20 * MINUTE)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


def test_of_many_ports_that_come_again_the_reason_names_a_few(world, lease):
    (network,) = in_cloud(world).values()

    def build(name: str, phase: str) -> None:
        if (name, phase) == ("delete_network", "before"):
            for _ in range(5):
                world.simulated.network_users.port(network.id, "compute:nova", device_id="server-1")

    world.faults.on_call = build
    world.run_to(NOON + 2 * HOUR)
    said = reason(world, lease)
    assert said.count("(compute:nova server-1)") == 3
    assert "and 2 more" in said or ", 2 more" in said
    assert len(said) < 1000
    world.faults.on_call = None
    world.run_to(NOON + 2 * HOUR + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
