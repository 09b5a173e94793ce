# SPDX-License-Identifier: Apache-2.0
"""What tests of networks do and look at."""

from __future__ import annotations

from datetime import timedelta

from blazar.clouds.ports.segments import Segment, SegmentNetwork
from blazar.clouds.simulated.state import State
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import NETWORK
from tests.world import PROJECT, World

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def vlan(number: int) -> Segment:
    return Segment("vlan", "physnet1", number)


def promised(world: World, lease: Lease) -> set[int]:
    """The VLANs that are promised to a lease."""
    found = world.store.resources.by_ids({a.resource_id for a in world.store.calendar.of_lease(lease.id)})
    return {int(r.attributes["segment_id"]) for r in found.values() if r.kind == NETWORK}


def in_cloud(world: World) -> dict[int, SegmentNetwork]:
    """All networks on segments that there are, by the id of their VLAN."""
    found = world.simulated.network_users.calls.segment_networks()
    return {n.segments[0].segment_id or 0: n for n in found if n.segments}


def built_up(world: World, network: SegmentNetwork) -> dict[str, str]:
    """Build everything on a network that has to leave it before its end, and what stays; return the ids."""
    users = world.simulated.network_users
    users.subnet(network.id)
    aside = users.network(vlan(4000), project_id="art").id
    server, parent, sub = (users.port(network.id, owner) for owner in ("compute:nova", "", "trunk:subport"))
    users.port(network.id, "network:dhcp")
    users.port(network.id, "Octavia", project_id="art")
    router = users.router(
        network.id, project_id=PROJECT, routes=[("10.50.0.0/24", "10.9.0.9"), ("10.60.0.0/24", "192.0.2.1")]
    )
    users.router(network.id, project_id="art", distributed=True)
    trunk, foreign = users.trunk(parent, users.port(aside)), users.trunk(users.port(aside), sub)
    address = world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address="203.0.113.9", project_id=PROJECT, description=""
    )
    world.simulated.users.attach(address.id, server)
    return {"router": router, "trunk": trunk, "foreign": foreign, "address": address.id}


def state_of(world: World) -> State:
    with world.simulated.inspect() as state:
        return state
