# SPDX-License-Identifier: Apache-2.0
"""The simulated Neutron: external networks, and the floating IPs on them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from ipaddress import ip_address, ip_network

from blazar.clouds.ports.network import FloatingIp, NetworkInfo, Subnet
from blazar.clouds.simulated.service import SimulatedService, look_up
from blazar.clouds.simulated.state import FloatingIpState, NetworkState, PortState, State, SubnetState
from blazar.model.base.errors import CloudRefused, Conflict, NotFound


class SimulatedNetwork(SimulatedService):
    """Implements the network port."""

    def network(self, network_id: str) -> NetworkInfo | None:
        """Return a network."""
        with self._calls.reading("network") as state:
            found = state.networks.get(network_id)
            return None if found is None else _network(found)

    def external_networks(self) -> tuple[NetworkInfo, ...]:
        """Return the external networks."""
        with self._calls.reading("external_networks") as state:
            return tuple(_network(found) for found in state.networks.values() if found.external)

    def floating_ips(
        self,
        *,
        network_id: str | None = None,
        addresses: Collection[str] | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[FloatingIp, ...]:
        """Return floating IPs."""
        with self._calls.reading("floating_ips") as state:
            return tuple(
                _floating_ip(found)
                for found in state.floating_ips.values()
                if network_id in (None, found.network_id)
                and (addresses is None or found.address in addresses)
                and (tag is None or tag in found.tags)
                and description in (None, found.description)
            )

    def used_addresses(self, network_id: str, addresses: Collection[str] | None = None) -> Mapping[str, str]:
        """Return the addresses of ports."""
        with self._calls.reading("used_addresses") as state:
            return {
                port.address: f"port {port.id} ({port.owner})"
                for port in state.ports.values()
                if port.network_id == network_id and port.address and (addresses is None or port.address in addresses)
            }

    def create_floating_ip(
        self, *, network_id: str, subnet_id: str, address: str, project_id: str, description: str
    ) -> FloatingIp:
        """Create a floating IP, by the rules of Neutron: an operator may take an address of a pool."""
        with self._calls.changing("create_floating_ip") as state:
            network = look_up(state.networks, network_id, "network")
            subnet = next((s for s in network.subnets if s.id == subnet_id), None)
            if subnet is None:
                raise NotFound(f"there is no subnet {subnet_id} on network {network_id}")
            if not network.external:
                raise CloudRefused(f"network {network_id} is not a valid external network")
            if ip_address(address) not in ip_network(subnet.cidr):
                raise CloudRefused(f"{address} is not in subnet {subnet_id}")
            if is_address_used(state, network_id, address):
                raise Conflict(f"{address} is in use on network {network_id}")
            made = FloatingIpState(str(uuid.uuid4()), network_id, address, project_id, description=description)
            state.floating_ips[made.id] = made
            return _floating_ip(made)

    def set_address_tags(self, floating_ip_id: str, tags: Collection[str]) -> None:
        """Replace the tags."""
        with self._calls.changing("set_address_tags") as state:
            look_up(state.floating_ips, floating_ip_id, "floating IP").tags = sorted(tags)

    def attach_floating_ip(self, floating_ip_id: str, server_id: str) -> None:
        """Attach a floating IP to a server that has a port."""
        with self._calls.changing("attach_floating_ip") as state:
            found = look_up(state.floating_ips, floating_ip_id, "floating IP")
            server = state.servers.get(server_id)
            if server is None or server.networks in ([], ["none"]):
                raise NotFound(f"server {server_id} has no port for a floating IP")
            found.port_id = f"port-of-{server_id}"

    def detach_floating_ip(self, floating_ip_id: str) -> None:
        """Detach a floating IP from its port."""
        with self._calls.changing("detach_floating_ip") as state:
            look_up(state.floating_ips, floating_ip_id, "floating IP").port_id = None

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP."""
        with self._calls.changing("delete_floating_ip") as state:
            look_up(state.floating_ips, floating_ip_id, "floating IP")
            del state.floating_ips[floating_ip_id]


def is_address_used(state: State, network_id: str, address: str) -> bool:
    """Return whether a floating IP or a port has an address of a network."""
    owners: list[FloatingIpState | PortState] = [*state.floating_ips.values(), *state.ports.values()]
    return any((owner.network_id, owner.address) == (network_id, address) for owner in owners)


def _network(found: NetworkState) -> NetworkInfo:
    return NetworkInfo(found.id, found.name, found.external, tuple(_subnet(s) for s in found.subnets))


def _subnet(subnet: SubnetState) -> Subnet:
    return Subnet(subnet.id, subnet.cidr, subnet.gateway, tuple((first, last) for first, last in subnet.pools))


def _floating_ip(found: FloatingIpState) -> FloatingIp:
    return FloatingIp(
        found.id,
        found.network_id,
        found.address,
        found.project_id,
        found.port_id is not None,
        frozenset(found.tags),
        found.description,
    )
