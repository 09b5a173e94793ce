# SPDX-License-Identifier: Apache-2.0
"""Which addresses can be registered, and which deleted."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, NotFound
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import FLOATING_IP, HOST
from tests.resources.floating_ips.steps import HOUR, KIND, add_ipv6, created, ip
from tests.world import NOON, address_request, addresses


def test_an_address_is_registered_with_its_subnet_and_an_id_of_its_own(a_world):
    world = a_world(hosts=0)
    (found,) = world.register_addresses(10)
    assert found.attributes == {
        "floating_network_id": "public",
        "subnet_id": "public-subnet",
        "floating_ip_address": "203.0.113.10",
    }
    assert (found.reservable, found.capabilities, found.kind) == (True, {}, KIND)
    assert world.manager.resources.all(FLOATING_IP) == (found,)
    assert world.manager.resources.one(FLOATING_IP, found.external_id) == found
    assert world.simulated.network.floating_ips() == ()


def test_the_same_address_is_registered_once(a_world):
    world = a_world(hosts=0)
    world.register_addresses(10)
    with pytest.raises(Conflict, match="registered already"):
        world.register_addresses(10)


def on_ipv6(world):
    """Give the external network a subnet of IPv6."""
    with world.simulated.change_state() as state:
        state.networks["public"].subnets[0].cidr = "2001:db8::/64"
        state.networks["public"].subnets[0].gateway = "2001:db8::1"
        state.networks["public"].subnets[0].pools = []


@pytest.mark.parametrize("address", ["2001:DB8:0:0::0010", "2001:db8::10", "::ffff:203.0.113.10"])
def test_an_address_of_ipv6_is_refused_as_neutron_makes_no_floating_ip_of_it(a_world, address):
    world = a_world(hosts=0)
    on_ipv6(world)
    with pytest.raises(InvalidInput, match="^floating_ip_address is .* an IPv6 address, .* give an IPv4") as error:
        world.manager.resources.register(FLOATING_IP, address_request("public", address))
    assert error.value.pointer == "/floating_ip_address"
    assert world.manager.resources.all(FLOATING_IP) == ()


def test_an_address_of_ipv6_that_was_registered_before_is_shown_and_deleted(a_world):
    world = a_world(hosts=0)
    on_ipv6(world)
    add_ipv6(world, "public", "public-subnet", "2001:db8::10")
    (found,) = world.manager.resources.all(FLOATING_IP)
    assert found.attributes["floating_ip_address"] == "2001:db8::10"
    world.manager.resources.unregister(FLOATING_IP, found.external_id)
    assert world.manager.resources.all(FLOATING_IP) == ()


@pytest.mark.parametrize(
    ("network", "address", "error", "says"),
    [
        ("public", "203.0.113.300", InvalidInput, "floating_ip_address"),
        ("public", "", InvalidInput, "give an IP address"),
        ("public", "fe80::1%eth0", InvalidInput, "give an IP address"),
        ("public", "203.0.113.010", InvalidInput, "give an IP address"),
        ("nowhere", "203.0.113.10", InvalidInput, "there is no such network"),
        ("private", "10.0.0.10", InvalidInput, "not external"),
        ("public", "198.51.100.10", NotFound, "its subnets are: 203.0.113.0/24"),
        ("public", "203.0.113.1", InvalidInput, "gateway"),
        ("public", "203.0.113.0", InvalidInput, "subnet public-subnet itself"),
        ("public", "203.0.113.255", InvalidInput, "broadcast"),
        ("public", "203.0.113.128", InvalidInput, "allocation pool"),
        ("public", "203.0.113.254", InvalidInput, "allocation pool"),
        ("public", "203.0.113.66", Conflict, "port .* .network:router_gateway"),
        ("public", "203.0.113.77", Conflict, "floating IP of project art"),
    ],
)
def test_an_address_that_cannot_be_promised_is_not_registered(a_world, network, address, error, says):
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        public = state.networks["public"]
        state.networks["private"] = type(public)(
            "private", "private", False, [type(public.subnets[0])("s", "10.0.0.0/8")]
        )
    world.simulated.operators.take_address("public", ip(66))
    created(world, 77, project="art")
    with pytest.raises(error, match=says):
        world.manager.resources.register(FLOATING_IP, address_request(network, address))
    assert world.manager.resources.all(FLOATING_IP) == ()


def test_a_subnet_without_a_gateway_has_addresses_all_the_same(a_world):
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        state.networks["public"].subnets[0].gateway = None
    world.register_addresses(1)


def test_an_address_is_forgotten_only_while_it_is_promised_to_nobody(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)
    address = next(a for a in world.manager.resources.all(FLOATING_IP) if a.attributes["floating_ip_address"] == ip(10))
    with pytest.raises(Conflict, match=f"the floating IP is allocated to lease {lease.id}"):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    assert world.manager.resources.one(FLOATING_IP, address.external_id).reservable
    world.run_to(NOON + HOUR)
    with pytest.raises(Conflict):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    world.run_to(NOON + 3 * HOUR)
    # The lease is still there, as it is after its end; its allocations are not.
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.manager.resources.unregister(FLOATING_IP, address.external_id)
    with pytest.raises(NotFound, match=f"Floating IP {address.external_id} not found"):
        world.manager.resources.one(FLOATING_IP, address.external_id)
    with pytest.raises(NotFound):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    world.register_addresses(10)


def test_what_is_promised_of_addresses_is_told_by_address(world):
    lease = world.lease(addresses(required=[12]), start=HOUR)
    by_address = {
        p.resource.attributes["floating_ip_address"]: p for p in world.manager.resources.allocations(FLOATING_IP)
    }
    assert len(by_address) == 10
    (only,) = by_address[ip(12)].allocations
    assert (only.lease_id, only.window) == (lease.id, lease.window)
    id_ = by_address[ip(12)].resource.external_id
    assert world.manager.resources.allocations(FLOATING_IP, resource_id=id_) == (by_address[ip(12)],)
    assert world.manager.resources.allocations(HOST) == ()
