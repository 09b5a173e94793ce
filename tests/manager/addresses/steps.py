# SPDX-License-Identifier: Apache-2.0
"""What tests of floating IPs do and look at."""

from __future__ import annotations

from datetime import timedelta

from blazar.clouds.ports import FloatingIp
from blazar.model.errors import CloudUnavailable
from blazar.model.resource import FLOATING_IP
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


def created(world: World, number: int, *, project: str = PROJECT, description: str = "") -> FloatingIp:
    """A floating IP that somebody has without us."""
    return world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address=ip(number), project_id=project, description=description
    )
