# SPDX-License-Identifier: Apache-2.0
"""What tests of healing do and look at."""

from __future__ import annotations

from datetime import timedelta

from tests.world import World

HOUR = timedelta(hours=1)
ON_NODE_1 = '["==", "$hypervisor_hostname", "node-1"]'


def look(world: World, times: int = 2) -> None:
    """Let the monitor look so many times."""
    for _ in range(times):
        world.manager.monitor.run_once()


def flags(world: World, lease) -> tuple[bool, bool, bool]:
    """Return missing, changed and degraded of a lease of one reservation."""
    lease = world.now(lease)
    return lease.reservations[0].missing_resources, lease.reservations[0].resources_changed, lease.degraded


def told(world: World) -> list[str]:
    return [t for t in world.notifier.types if t in ("lease.degraded", "lease.healed")]


def taken(world: World, number: int) -> str:
    """Let another project have an address; return the id of its floating IP."""
    made = world.simulated.network.create_floating_ip(
        network_id="public",
        subnet_id="public-subnet",
        address=f"203.0.113.{number}",
        project_id="art",
        description="",
    )
    return str(made.id)


def lost_and_back(world: World, name: str) -> None:
    """Let the cloud lose a host and have it again: it is in no aggregate then."""
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes(name))
