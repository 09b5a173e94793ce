# SPDX-License-Identifier: Apache-2.0
"""The segments port: networks on chosen segments for other projects, and what has to leave before they are deleted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from blazar.model.base.errors import CloudRefused, Conflict
from blazar.model.base.values import dataclass

INTERFACES = frozenset(
    {
        "network:router_interface",
        "network:router_interface_distributed",
        "network:ha_router_replicated_interface",
    }
)
"""Owners of the ports of router interfaces: such a port leaves only through its router."""

SNAT = "network:router_centralized_snat"
"""Owner of a port that comes and goes with the interface of a distributed router."""

AGENT_GATEWAY = "network:floatingip_agent_gateway"
"""An automatic owner; but Neutron does not delete such a port, nor its network, if a router has its device id."""

AUTOMATIC = frozenset({"network:dhcp", "network:distributed", AGENT_GATEWAY})
"""Owners of the ports that Neutron makes itself, and deletes with the network."""

SERVICES = "network:"
"""Prefix of the owners that stand for services of Neutron. Users may give them, and any device id, to their ports."""


class SegmentInUse(Conflict):
    """Another network is on the segment."""


class SegmentRefused(CloudRefused):
    """The cloud has no such segment, for anybody: it does not know the physical network."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment: ``vlan`` on a physical network, or ``vxlan`` without one. Its id is a VLAN id or a VNI."""

    network_type: str
    physical_network: str | None
    segment_id: int | None


@dataclass(frozen=True, slots=True)
class SegmentNetwork:
    """A network with its segments; most have one, and ``vlan`` and ``vxlan`` are but two of their types."""

    id: str
    name: str
    project_id: str
    segments: tuple[Segment, ...] = ()
    description: str = ""
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NewSubnet:
    """A subnet to create: its addresses (CIDR), which are of IPv4 or IPv6, and what its DHCP tells."""

    cidr: str
    ip_version: int
    dns_nameservers: tuple[str, ...] = ()
    enable_dhcp: bool = True


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """A range of segments from which Neutron allocates: to all projects if it is ``shared``, else to its project."""

    network_type: str
    physical_network: str | None
    minimum: int
    maximum: int
    shared: bool
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a network. ``device_id`` is what it belongs to, as the id of a router; both may be empty.

    Users write both as they like: neither is true, nor part of an address, before it has been checked.
    """

    id: str
    owner: str = ""
    device_id: str = ""


@dataclass(frozen=True, slots=True)
class Trunk:
    """A trunk: its parent port and its sub-ports, which may be on several networks. One that is not ``enabled`` stays
    as it is: it is neither deleted, nor loses sub-ports.
    """

    id: str
    parent: str
    sub_ports: frozenset[str] = frozenset()
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class RouterRoute:
    """An extra route of a router: packets to ``destination`` (CIDR) go to the address ``next_hop``."""

    destination: str
    next_hop: str


@dataclass(frozen=True, slots=True)
class Router:
    """A router with its extra routes."""

    id: str
    routes: tuple[RouterRoute, ...] = ()


CHANGES = frozenset(
    {
        "create_segment_network",
        "set_network_tags",
        "set_description",
        "create_subnet",
        "delete_network",
        "delete_port",
        "clear_port_owner",
        "set_trunk_enabled",
        "remove_sub_ports",
        "delete_trunk",
        "remove_routes",
        "remove_interface",
    }
)
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Segments(Protocol):
    """The calls to Neutron about networks on segments. Lists are of all projects."""

    def segment_networks(
        self,
        *,
        id: str | None = None,
        segment: Segment | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[SegmentNetwork, ...]:
        """Return the networks that have all of these; all networks if none is given."""

    def segment_ranges(self, network_type: str) -> tuple[SegmentRange, ...] | None:
        """Return the ranges of a type; None if the cloud does not say (without the extension). Slow for VXLAN."""

    def service_project(self) -> str:
        """Return the id of the project of the service user."""

    def create_segment_network(
        self, segment: Segment, *, name: str, project_id: str, description: str
    ) -> SegmentNetwork:
        """Create a network of a project on a segment, without a subnet and without tags.

        SegmentInUse; Conflict with the cause QUOTA_EXCEEDED if the project may have no more networks; CloudRefused if
        the segment cannot be, as on a physical network that Neutron does not know.
        """

    def set_network_tags(self, network_id: str, tags: Collection[str]) -> None:
        """Replace the tags of a network. NotFound if it is gone; or CloudUnavailable, as of a floating IP."""

    def set_description(self, network_id: str, description: str) -> None:
        """Replace the description of a network. NotFound."""

    def create_subnet(self, network_id: str, wanted: NewSubnet, *, project_id: str) -> str:
        """Create a subnet on a network, of its project; return its id.

        NotFound (the network); Conflict with the cause QUOTA_EXCEEDED; CloudRefused for what cannot be, also if there
        is one with these addresses.
        """

    def delete_network(self, network_id: str) -> None:
        """Delete a network with its subnets, its automatic ports and its shares. NotFound; Conflict: it has ports."""

    def cidrs(self, network_id: str) -> tuple[str, ...]:
        """Return the CIDRs of the subnets of a network."""

    def ports_on(self, network_id: str) -> tuple[Port, ...]:
        """Return the ports of a network, including the automatic ones and those of routers."""

    def delete_port(self, port_id: str) -> None:
        """Delete a port; a floating IP on it becomes free. NotFound.

        Conflict if it belongs to a trunk, or if owner and device say that a router has it.
        """

    def clear_port_owner(self, port_id: str) -> None:
        """Remove owner, device and host of a port, so that it can be deleted as any other. NotFound."""

    def trunks_with(self, port_ids: Collection[str]) -> tuple[Trunk, ...]:
        """Return the trunks that have any of these ports, as parent or sub-port."""

    def remove_sub_ports(self, trunk_id: str, port_ids: Collection[str]) -> None:
        """Remove sub-ports from a trunk. NotFound: the trunk, or one of them, is gone; Conflict: it is not enabled."""

    def set_trunk_enabled(self, trunk_id: str, *, enabled: bool) -> None:
        """Enable or disable a trunk. NotFound."""

    def delete_trunk(self, trunk_id: str) -> None:
        """Delete a trunk; its ports stay. NotFound.

        Conflict if it is not enabled, or, with some drivers, while its parent is bound to the host of a server.
        """

    def routers(self, router_ids: Collection[str]) -> tuple[Router, ...]:
        """Return the routers with these ids that exist."""

    def remove_routes(self, router_id: str, routes: Collection[RouterRoute]) -> None:
        """Remove extra routes from a router; those that it does not have are ignored. NotFound."""

    def remove_interface(self, router_id: str, port_id: str) -> None:
        """Remove the interface of a router, with its port. NotFound.

        Conflict if a route or a floating IP needs it.
        """
