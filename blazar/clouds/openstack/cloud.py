# SPDX-License-Identifier: Apache-2.0
"""All adapters of a real cloud together."""

from __future__ import annotations

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.aggregates import OpenStackAggregates
from blazar.clouds.openstack.booting import OpenStackBooting
from blazar.clouds.openstack.evacuation import OpenStackEvacuation
from blazar.clouds.openstack.flavors import OpenStackFlavors
from blazar.clouds.openstack.network import OpenStackNetwork
from blazar.clouds.openstack.options import Credentials
from blazar.clouds.openstack.placement import OpenStackPlacement
from blazar.clouds.openstack.projects import OpenStackProjects, OpenStackQuotas
from blazar.clouds.openstack.segments import OpenStackSegments
from blazar.clouds.openstack.servers import OpenStackServers
from blazar.clouds.openstack.stacks import OpenStackStacks
from blazar.clouds.openstack.volumes import OpenStackVolumes
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.hooks import Hooks, NoHooks
from blazar.clouds.ports.power import NoPower, Power

__all__ = ["Access", "Credentials", "OpenStackCompute", "open_cloud"]


class OpenStackCompute(OpenStackAggregates, OpenStackServers, OpenStackFlavors):
    """Implements the compute port, by its roles."""

    def __init__(self, access: Access, *, az_aware: bool = True) -> None:
        OpenStackAggregates.__init__(self, access, az_aware=az_aware)
        OpenStackServers.__init__(self, access)
        OpenStackFlavors.__init__(self, access)


def open_cloud(
    access: Access, *, az_aware: bool = True, hooks: Hooks | None = None, power: Power | None = None
) -> Cloud:
    """Return a ``Cloud`` of OpenStack adapters, without calling any service.

    By default no ``hooks`` are called, and the ``power`` of no host is switched.
    """
    placement = OpenStackPlacement(access)
    return Cloud(
        compute=OpenStackCompute(access, az_aware=az_aware),
        placement=placement,
        evacuation=OpenStackEvacuation(access, placement),
        network=OpenStackNetwork(access),
        segments=OpenStackSegments(access),
        projects=OpenStackProjects(access),
        volumes=OpenStackVolumes(access),
        stacks=OpenStackStacks(access),
        booting=OpenStackBooting(access),
        hooks=hooks or NoHooks(),
        quotas=OpenStackQuotas(access),
        power=power or NoPower(),
    )
