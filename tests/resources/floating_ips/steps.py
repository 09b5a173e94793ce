# SPDX-License-Identifier: Apache-2.0
"""What tests of floating IPs do and look at."""

from __future__ import annotations

from datetime import timedelta

from blazar.clouds.ports.network import FloatingIp
from blazar.model.base.errors import CloudUnavailable
from blazar.model.resources.resource import FLOATING_IP, ResourceDetails, ResourceInventory
from blazar.resources.floating_ips.registration import attributes_of, name_of
from tests.world import PROJECT, World

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
KIND = FLOATING_IP


def ip(number: int) -> str:
    return f"203.0.113.{number}"


def promised(world: World, lease) -> set[int]:
    """The last numbers of the addresses that are promised to a lease."""
    found = world.store.resources.by_ids({a.resource_id for a in world.store.calendar.of_lease(lease.id)})
    return {int(r.attributes["floating_ip_address"].rpartition(".")[2]) for r in found.values() if r.kind == KIND}


def in_cloud(world: World) -> dict[int, FloatingIp]:
    """All floating IPs that there are, by the last number."""
    with world.simulated.inspect() as state:
        ids = {found.address: found.id for found in state.floating_ips.values()}
    found = {f.address: f for f in world.simulated.network.floating_ips()} if ids else {}
    return {int(address.rpartition(".")[2]): f for address, f in found.items()}


def add_ipv6(world: World, network_id: str, subnet_id: str, address: str) -> None:
    """Put an address of IPv6 on the calendar, as it was registered before that was refused."""
    details = ResourceDetails(attributes_of(network_id, subnet_id, address), ResourceInventory())
    world.store.resources.add(
        KIND,
        external_id="six",
        name=name_of(network_id, address),
        details=details,
        capabilities={},
        at=world.clock.now(),
    )


def created(world: World, number: int, *, project: str = PROJECT, description: str = "") -> FloatingIp:
    """A floating IP that somebody has without us."""
    return world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address=ip(number), project_id=project, description=description
    )
