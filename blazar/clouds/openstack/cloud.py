# SPDX-License-Identifier: Apache-2.0
"""Assemble the adapter of an OpenStack cloud."""

from __future__ import annotations

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.compute import OpenStackCompute
from blazar.clouds.openstack.network import OpenStackNetwork
from blazar.clouds.openstack.placement import OpenStackPlacement
from blazar.clouds.ports import Cloud


def open_cloud(access: Access, *, az_aware: bool = True) -> Cloud:
    """Return a ``Cloud`` of OpenStack adapters, without calling any service."""
    return Cloud(
        compute=OpenStackCompute(access, az_aware=az_aware),
        placement=OpenStackPlacement(access),
        network=OpenStackNetwork(access),
    )
