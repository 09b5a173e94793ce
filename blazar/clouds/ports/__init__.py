# SPDX-License-Identifier: Apache-2.0
"""The ports: small interfaces to the services of a cloud.

Every call may raise ``CloudUnavailable`` (a transient fault) besides what it names. Calls are not idempotent by
themselves; the *ensure* operations of the resource types are, because they read before they act and ignore a
``Conflict`` or ``NotFound`` from a change that another manager made first.

A new port is a module here with a protocol and its ``CHANGES``, an implementation in ``simulated`` and in ``openstack``
and a line in each of ``Cloud``, ``SimulatedCloud`` and ``open_cloud``. The contract tests hold both to the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blazar.clouds.ports import (
    booting,
    compute,
    evacuation,
    hooks,
    network,
    placement,
    projects,
    quotas,
    segments,
    stacks,
    volumes,
)
from blazar.clouds.ports.booting import BootedServer, BootImage, Booting, BootNetwork, ServerRequest
from blazar.clouds.ports.compute import (
    Aggregate,
    Aggregates,
    Compute,
    Flavor,
    Flavors,
    Hypervisor,
    Hypervisors,
    Image,
    Images,
    Migration,
    Migrations,
    MigrationState,
    Server,
    ServerGroup,
    ServerGroups,
    Servers,
)
from blazar.clouds.ports.evacuation import (
    Evacuation,
    HostRoom,
    Move,
    MovePhase,
    Occupant,
    OccupantGroup,
    ServerOwner,
    Special,
)
from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult, Hooks, NoHooks
from blazar.clouds.ports.network import FloatingIp, Network, NetworkInfo, Subnet
from blazar.clouds.ports.others import OtherPorts
from blazar.clouds.ports.placement import Placement, ReservedCapacity
from blazar.clouds.ports.projects import Projects
from blazar.clouds.ports.quotas import Limit, NoQuotas, Quota, Quotas
from blazar.clouds.ports.segments import (
    NewSubnet,
    Port,
    Route,
    Router,
    Segment,
    SegmentInUse,
    SegmentNetwork,
    SegmentRange,
    SegmentRefused,
    Segments,
    Trunk,
)
from blazar.clouds.ports.stacks import (
    PlannedResource,
    Stack,
    StackExists,
    StackPlan,
    StackRefused,
    StackResource,
    Stacks,
)
from blazar.clouds.ports.volumes import (
    Attachment,
    CopyState,
    Volume,
    VolumeCopy,
    VolumePool,
    VolumeQuota,
    Volumes,
    VolumeType,
)

__all__ = [
    "Aggregate",
    "Aggregates",
    "Attachment",
    "BootImage",
    "BootNetwork",
    "BootedServer",
    "Booting",
    "CHANGES",
    "Cloud",
    "Compute",
    "CopyState",
    "Evacuation",
    "Flavor",
    "Flavors",
    "FloatingIp",
    "HookAction",
    "HookAnswer",
    "HookCall",
    "HookResult",
    "Hooks",
    "HostRoom",
    "Hypervisor",
    "Hypervisors",
    "Image",
    "Images",
    "Migration",
    "MigrationState",
    "Migrations",
    "Move",
    "MovePhase",
    "Network",
    "NetworkInfo",
    "NewSubnet",
    "Limit",
    "NoHooks",
    "NoQuotas",
    "Occupant",
    "OccupantGroup",
    "ServerOwner",
    "OtherPorts",
    "Placement",
    "PlannedResource",
    "Port",
    "Projects",
    "Quota",
    "Quotas",
    "ReservedCapacity",
    "Route",
    "Router",
    "Segment",
    "SegmentInUse",
    "SegmentRefused",
    "SegmentNetwork",
    "SegmentRange",
    "Segments",
    "Server",
    "ServerGroup",
    "ServerGroups",
    "ServerRequest",
    "Servers",
    "Special",
    "Stack",
    "StackExists",
    "StackPlan",
    "StackRefused",
    "StackResource",
    "Stacks",
    "Subnet",
    "Trunk",
    "Volume",
    "VolumeCopy",
    "VolumePool",
    "VolumeQuota",
    "VolumeType",
    "Volumes",
]

_PORTS = (booting, compute, evacuation, placement, network, segments, projects, quotas, volumes, stacks, hooks)

CHANGES = frozenset().union(*(port.CHANGES for port in _PORTS))
"""The calls of all ports that change the cloud."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """The services of one cloud, and the hooks of things outside of it."""

    compute: Compute
    placement: Placement
    evacuation: Evacuation
    network: Network
    segments: Segments
    projects: Projects
    volumes: Volumes
    stacks: Stacks
    booting: Booting
    hooks: Hooks = field(default_factory=NoHooks)
    quotas: Quotas = field(default_factory=NoQuotas)
    others: OtherPorts = field(default_factory=OtherPorts)
