# SPDX-License-Identifier: Apache-2.0
"""The simulated Neutron: networks on segments, with the refusals that decide in which order they are cleared."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from ipaddress import ip_address, ip_network

from blazar.clouds.ports.segments import (
    AGENT_GATEWAY,
    AUTOMATIC,
    INTERFACES,
    SNAT,
    NewSubnet,
    Port,
    Router,
    RouterRoute,
    Segment,
    SegmentInUse,
    SegmentNetwork,
    SegmentRange,
    SegmentRefused,
    Trunk,
)
from blazar.clouds.simulated.service import OWN_PROJECT, SimulatedService, look_up
from blazar.clouds.simulated.state import NetworkState, PortState, State, SubnetState, TrunkState
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode

_LAST_VLAN = 4094

_OF_ROUTERS = INTERFACES | {AGENT_GATEWAY, SNAT, "network:router_gateway"}
"""Owners of ports that are not deleted while a router has the id of their device."""


class SimulatedSegments(SimulatedService):
    """Implements the segments port; rules as in Neutron 29."""

    def segment_networks(
        self,
        *,
        id: str | None = None,
        segment: Segment | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[SegmentNetwork, ...]:
        """Return networks."""
        with self._calls.reading("segment_networks") as state:
            return tuple(
                _network(found)
                for found in state.networks.values()
                if id in (None, found.id)
                and (segment is None or _matches(found, segment))
                and (tag is None or tag in found.tags)
                and description in (None, found.description)
            )

    def segment_ranges(self, network_type: str) -> tuple[SegmentRange, ...] | None:
        """Return the ranges of a type."""
        with self._calls.reading("segment_ranges") as state:
            if state.ranges is None:
                return None
            return tuple(
                SegmentRange(r.network_type, r.physical_network, r.minimum, r.maximum, not r.project_id, r.project_id)
                for r in state.ranges
                if r.network_type == network_type
            )

    def service_project(self) -> str:
        """Return the id of the project of the service user."""
        with self._calls.reading("service_project"):
            return OWN_PROJECT

    def create_segment_network(
        self, segment: Segment, *, name: str, project_id: str, description: str
    ) -> SegmentNetwork:
        """Create a network of a project: also outside of all ranges, and of a project that does not exist."""
        with self._calls.changing("create_segment_network") as state:
            _check_possible(state, segment)
            if any(_matches(found, segment) for found in state.networks.values()):
                raise SegmentInUse(f"segment {segment.segment_id} is in use")
            count = sum(found.project_id == project_id for found in state.networks.values())
            if state.most_networks is not None and count >= state.most_networks:
                raise Conflict("Quota exceeded for resources: ['network'].").because(ReasonCode.QUOTA_EXCEEDED)
            made = NetworkState(
                str(uuid.uuid4()),
                name,
                external=False,
                project_id=project_id,
                description=description,
                network_type=segment.network_type,
                physical_network=segment.physical_network,
                segment_id=segment.segment_id,
            )
            state.networks[made.id] = made
            return _network(made)

    def set_network_tags(self, network_id: str, tags: Collection[str]) -> None:
        """Replace the tags."""
        with self._calls.changing("set_network_tags") as state:
            look_up(state.networks, network_id, "network").tags = sorted(tags)

    def set_description(self, network_id: str, description: str) -> None:
        """Replace the description."""
        with self._calls.changing("set_description") as state:
            look_up(state.networks, network_id, "network").description = description

    def create_subnet(self, network_id: str, wanted: NewSubnet, *, project_id: str) -> str:
        """Create a subnet; Neutron refuses a second one with the same addresses."""
        with self._calls.changing("create_subnet") as state:
            network = look_up(state.networks, network_id, "network")
            if any(subnet.cidr == wanted.cidr for subnet in network.subnets):
                raise CloudRefused(f"cidr {wanted.cidr} overlaps with another subnet")
            made = SubnetState(str(uuid.uuid4()), wanted.cidr)
            network.subnets.append(made)
            return made.id

    def delete_network(self, network_id: str) -> None:
        """Delete a network that has no ports but automatic ones."""
        with self._calls.changing("delete_network") as state:
            look_up(state.networks, network_id, "network")
            here = [port for port in state.ports.values() if port.network_id == network_id]
            if left := [port.id for port in here if port.owner not in AUTOMATIC or _has_router(state, port)]:
                raise Conflict(f"network {network_id} has ports in use: {', '.join(left)}")
            for port in here:
                del state.ports[port.id]
            del state.networks[network_id]

    def cidrs(self, network_id: str) -> tuple[str, ...]:
        """Return the CIDRs of the subnets."""
        with self._calls.reading("cidrs") as state:
            network = state.networks.get(network_id)
            return tuple(subnet.cidr for subnet in network.subnets) if network else ()

    def ports_on(self, network_id: str) -> tuple[Port, ...]:
        """Return the ports of a network."""
        with self._calls.reading("ports_on") as state:
            return tuple(
                Port(port.id, port.owner, port.device_id)
                for port in state.ports.values()
                if port.network_id == network_id
            )

    def delete_port(self, port_id: str) -> None:
        """Delete a port; its floating IP becomes free."""
        with self._calls.changing("delete_port") as state:
            port = look_up(state.ports, port_id, "port")
            if any(port_id in (trunk.parent, *trunk.sub_ports) for trunk in state.trunks.values()):
                raise Conflict(f"port {port_id} belongs to a trunk")
            if _has_router(state, port):
                raise Conflict(f"port {port_id} cannot be deleted, as router {port.device_id} has it")
            _free_addresses(state, port_id)
            del state.ports[port_id]

    def clear_port_owner(self, port_id: str) -> None:
        """Remove owner, device and host of a port."""
        with self._calls.changing("clear_port_owner") as state:
            port = look_up(state.ports, port_id, "port")
            port.owner, port.device_id, port.bound = "", "", False

    def trunks_with(self, port_ids: Collection[str]) -> tuple[Trunk, ...]:
        """Return the trunks of these ports."""
        wanted = frozenset(port_ids)
        with self._calls.reading("trunks_with") as state:
            return tuple(
                Trunk(trunk.id, trunk.parent, frozenset(trunk.sub_ports), trunk.enabled)
                for trunk in state.trunks.values()
                if wanted & {trunk.parent, *trunk.sub_ports}
            )

    def remove_sub_ports(self, trunk_id: str, port_ids: Collection[str]) -> None:
        """Remove sub-ports from a trunk."""
        with self._calls.changing("remove_sub_ports") as state:
            trunk = _enabled_trunk(state, trunk_id)
            if missing := set(port_ids) - set(trunk.sub_ports):
                raise NotFound(f"trunk {trunk_id} has no sub-port {min(missing)}")
            trunk.sub_ports = [port_id for port_id in trunk.sub_ports if port_id not in port_ids]

    def set_trunk_enabled(self, trunk_id: str, *, enabled: bool) -> None:
        """Enable or disable a trunk."""
        with self._calls.changing("set_trunk_enabled") as state:
            look_up(state.trunks, trunk_id, "trunk").enabled = enabled

    def delete_trunk(self, trunk_id: str) -> None:
        """Delete a trunk whose parent is not bound."""
        with self._calls.changing("delete_trunk") as state:
            trunk = _enabled_trunk(state, trunk_id)
            if trunk.parent in state.ports and state.ports[trunk.parent].bound:
                raise Conflict(f"the parent of trunk {trunk_id} is bound")
            del state.trunks[trunk_id]

    def routers(self, router_ids: Collection[str]) -> tuple[Router, ...]:
        """Return routers."""
        with self._calls.reading("routers") as state:
            return tuple(
                Router(id_, tuple(RouterRoute(destination, hop) for destination, hop in state.routers[id_].routes))
                for id_ in sorted(router_ids)
                if id_ in state.routers
            )

    def remove_routes(self, router_id: str, routes: Collection[RouterRoute]) -> None:
        """Remove extra routes from a router."""
        gone = [[route.destination, route.next_hop] for route in routes]
        with self._calls.changing("remove_routes") as state:
            router = look_up(state.routers, router_id, "router")
            router.routes = [route for route in router.routes if route not in gone]

    def remove_interface(self, router_id: str, port_id: str) -> None:
        """Remove the interface of a router that no route and no floating IP needs."""
        with self._calls.changing("remove_interface") as state:
            router, port = look_up(state.routers, router_id, "router"), look_up(state.ports, port_id, "port")
            # All interfaces of a router have one owner.
            owner = next((p.owner for p in state.ports.values() if p.device_id == router_id), "")
            if port.device_id != router_id or port.owner != owner or owner not in INTERFACES:
                raise NotFound(f"router {router_id} has no interface {port_id}")
            if router.vpn:
                raise Conflict(f"router {router_id} is used by VPNService {router.vpn}")
            network = look_up(state.networks, port.network_id, "network")
            cidrs = [ip_network(subnet.cidr) for subnet in network.subnets]
            if any(ip_address(hop) in cidr for _, hop in router.routes for cidr in cidrs):
                raise Conflict(f"interface {port_id} of router {router_id} is needed by a route")
            here = {port.id for port in state.ports.values() if port.network_id == network.id}
            if any(found.port_id in here for found in state.floating_ips.values()):
                raise Conflict(f"interface {port_id} of router {router_id} is needed by a floating IP")
            for snat in list(_snat_ports(state, port)):
                del state.ports[snat.id]
            del state.ports[port_id]


def _enabled_trunk(state: State, trunk_id: str) -> TrunkState:
    trunk = look_up(state.trunks, trunk_id, "trunk")
    if not trunk.enabled:
        raise Conflict(f"trunk {trunk_id} is disabled")
    return trunk


def _has_router(state: State, port: PortState) -> bool:
    return port.owner in _OF_ROUTERS and port.device_id in state.routers


def _snat_ports(state: State, port: PortState) -> Iterator[PortState]:
    for port_state in state.ports.values():
        if (port_state.owner, port_state.network_id, port_state.device_id) == (SNAT, port.network_id, port.device_id):
            yield port_state


def _free_addresses(state: State, port_id: str) -> None:
    for found in state.floating_ips.values():
        if found.port_id == port_id:
            found.port_id = None


def _matches(found: NetworkState, segment: Segment) -> bool:
    return (
        found.network_type == segment.network_type
        and found.segment_id == segment.segment_id
        and segment.physical_network in (None, found.physical_network)
    )


def _check_possible(state: State, segment: Segment) -> None:
    """Raise CloudRefused where Neutron refuses a segment; it does not check the number of a VXLAN."""
    match segment.network_type:
        case "vlan":
            if segment.physical_network not in state.physical_networks:
                raise SegmentRefused(f"there is no physical network {segment.physical_network} for VLANs")
            if not 1 <= (segment.segment_id or 0) <= _LAST_VLAN:
                raise SegmentRefused(f"{segment.segment_id} is not a VLAN id")
        case "vxlan":
            if segment.physical_network is not None:
                raise CloudRefused("a VXLAN has no physical network")
        case _:
            raise CloudRefused(f"network type {segment.network_type} is not known")


def _network(found: NetworkState) -> SegmentNetwork:
    segments = (Segment(found.network_type, found.physical_network, found.segment_id),) if found.network_type else ()
    return SegmentNetwork(found.id, found.name, found.project_id, segments, found.description, frozenset(found.tags))
