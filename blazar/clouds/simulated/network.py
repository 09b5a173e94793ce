# SPDX-License-Identifier: Apache-2.0
"""The simulated Neutron: external networks, and the floating IPs on them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from ipaddress import ip_address, ip_network

from blazar.clouds.ports import FloatingIp, NetworkInfo, Subnet
from blazar.clouds.simulated.ground import Ground
from blazar.clouds.simulated.state import FloatingIpState, NetworkState, PortState, State, SubnetState
from blazar.model.errors import CloudRefused, Conflict, NotFound


class SimulatedNetwork(Ground):
    """A part of ``SimulatedCloud``, which has the rest of what is used here."""

    # Network

    def network(self, network_id: str) -> NetworkInfo | None:
        """Return a network."""
        with self._call("network"), self._reading() as state:
            found = state.networks.get(network_id)
            if found is None:
                return None
            return NetworkInfo(found.id, found.name, found.external, tuple(_subnet(s) for s in found.subnets))

    def floating_ips(
        self, *, network_id: str | None = None, addresses: Collection[str] | None = None, tag: str | None = None
    ) -> tuple[FloatingIp, ...]:
        """Return floating IPs."""
        with self._call("floating_ips"), self._reading() as state:
            return tuple(
                _floating_ip(found)
                for found in state.floating_ips.values()
                if network_id in (None, found.network_id)
                and (addresses is None or found.address in addresses)
                and (tag is None or tag in found.tags)
            )

    def users_of(self, network_id: str, addresses: Collection[str] | None = None) -> Mapping[str, str]:
        """Return the addresses of ports."""
        with self._call("users_of"), self._reading() as state:
            return {
                port.address: f"port {port.id} ({port.owner})"
                for port in state.ports.values()
                if port.network_id == network_id and (addresses is None or port.address in addresses)
            }

    def create_floating_ip(
        self, *, network_id: str, subnet_id: str, address: str, project_id: str, description: str
    ) -> FloatingIp:
        """Create a floating IP, by the rules of Neutron: a pool keeps no operator from an address in it."""
        with self._call("create_floating_ip"), self._changing() as state:
            network = _existing_network(state, network_id)
            subnet = next((s for s in network.subnets if s.id == subnet_id), None)
            if subnet is None:
                raise NotFound(f"there is no subnet {subnet_id} on network {network_id}")
            if not network.external:
                raise CloudRefused(f"network {network_id} is not a valid external network")
            if ip_address(address) not in ip_network(subnet.cidr):
                raise CloudRefused(f"{address} is not in subnet {subnet_id}")
            if self._is_taken(state, network_id, address):
                raise Conflict(f"{address} is in use on network {network_id}")
            made = FloatingIpState(str(uuid.uuid4()), network_id, address, project_id, description=description)
            state.floating_ips[made.id] = made
            return _floating_ip(made)

    def tag_floating_ip(self, floating_ip_id: str, tags: Collection[str]) -> None:
        """Replace the tags."""
        with self._call("tag_floating_ip"), self._changing() as state:
            _existing(state, floating_ip_id).tags = sorted(tags)

    def detach_floating_ip(self, floating_ip_id: str) -> None:
        """Take the port away."""
        with self._call("detach_floating_ip"), self._changing() as state:
            _existing(state, floating_ip_id).port_id = None

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP."""
        with self._call("delete_floating_ip"), self._changing() as state:
            _existing(state, floating_ip_id)
            del state.floating_ips[floating_ip_id]

    # What only a simulation can do

    def attach(self, floating_ip_id: str, port_id: str | None = None) -> str:
        """Attach a floating IP to a port as its user would; return the port's id."""
        with self._changing() as state:
            found = _existing(state, floating_ip_id)
            found.port_id = port_id or str(uuid.uuid4())
            return found.port_id

    def take_address(self, network_id: str, address: str, owner: str = "network:router_gateway") -> str:
        """Let something that is no floating IP have an address; return its port's id."""
        with self._changing() as state:
            if self._is_taken(state, network_id, address):
                raise Conflict(f"{address} is in use on network {network_id}")
            port = PortState(str(uuid.uuid4()), network_id, address, owner)
            state.ports[port.id] = port
            return port.id

    def change_subnet(
        self,
        network_id: str,
        *,
        pools: list[list[str]] | None = None,
        gateway: str | None = None,
        gone: bool = False,
    ) -> None:
        """Change the first subnet of a network, or take it away, as an operator would."""
        with self._changing() as state:
            network = _existing_network(state, network_id)
            if gone:
                del network.subnets[0]
                return
            network.subnets[0].pools = pools if pools is not None else network.subnets[0].pools
            network.subnets[0].gateway = gateway or network.subnets[0].gateway

    def _is_taken(self, state: State, network_id: str, address: str) -> bool:
        holders: list[FloatingIpState | PortState] = [*state.floating_ips.values(), *state.ports.values()]
        return any((h.network_id, h.address) == (network_id, address) for h in holders)


def _existing(state: State, floating_ip_id: str) -> FloatingIpState:
    if floating_ip_id not in state.floating_ips:
        raise NotFound(f"there is no floating IP {floating_ip_id}")
    return state.floating_ips[floating_ip_id]


def _existing_network(state: State, network_id: str) -> NetworkState:
    if network_id not in state.networks:
        raise NotFound(f"there is no network {network_id}")
    return state.networks[network_id]


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
