# SPDX-License-Identifier: Apache-2.0
"""The ports: small interfaces to the services of a cloud.

Every call may raise ``CloudUnavailable`` (a transient fault) besides what it names. Calls are not idempotent by
themselves; the *ensure* operations of the resource types are, because they read before they act and ignore a
``Conflict`` or ``NotFound`` from a change that another manager made first. A call that returns before the cloud is done
is named by what it begins, as ``begin_snapshot``.

A new port is a module here with a protocol and its ``CHANGES``, an implementation in ``simulated`` and in ``openstack``
and a line in each of ``Cloud``, ``SimulatedCloud`` and ``open_cloud``. The contract tests hold both to the protocol.
"""

from __future__ import annotations

import threading
from typing import Any

from oslo_config import cfg

from blazar.clouds.ports import (
    booting,
    compute,
    evacuation,
    hooks,
    network,
    placement,
    power,
    projects,
    segments,
    stacks,
    volumes,
)
from blazar.clouds.ports.booting import Booting
from blazar.clouds.ports.compute import Compute
from blazar.clouds.ports.evacuation import Evacuation
from blazar.clouds.ports.hooks import Hooks, NoHooks
from blazar.clouds.ports.network import Network
from blazar.clouds.ports.placement import Placement
from blazar.clouds.ports.power import NoPower, Power
from blazar.clouds.ports.projects import NoQuotas, Projects, Quotas
from blazar.clouds.ports.segments import Segments
from blazar.clouds.ports.stacks import Stacks
from blazar.clouds.ports.volumes import Volumes
from blazar.model.base import plugins
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field

_PORTS = (booting, compute, evacuation, placement, network, segments, projects, volumes, stacks, hooks, power)

CHANGES = frozenset().union(*(port.CHANGES for port in _PORTS))
"""The calls of all ports that change the cloud."""


class OtherPorts:
    """Ports of other packages by name, for resource types of theirs; each is made when it is first asked for.

    A package offers the implementation for a cloud by an entry point of ``blazar.clouds.openstack`` or
    ``blazar.clouds.simulated``: a callable that takes the configuration.
    """

    def __init__(self, adapter: str = "openstack") -> None:
        self.adapter = adapter
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def port(self, name: str, conf: cfg.ConfigOpts) -> Any:
        """Return the port; InvalidInput, with the real reason, if it is not installed or cannot be made."""
        with self._lock:
            if name not in self._made:
                namespace = f"blazar.clouds.{self.adapter}"
                point = plugins.entry_points_of(namespace).get(name)
                if point is None:
                    raise InvalidInput(f"no package offers the port {name} by an entry point of {namespace}")
                make = plugins.load(point, (), named=namespace, advice="docs/contributing/add-a-resource-type.md")
                self._made[name] = make(conf)
            return self._made[name]


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
    power: Power = field(default_factory=NoPower)
    others: OtherPorts = field(default_factory=OtherPorts)
