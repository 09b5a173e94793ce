# SPDX-License-Identifier: Apache-2.0
"""Users of networks in the simulated cloud, who build subnets, ports, routers and trunks on them."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from blazar.clouds.ports import Segment, SegmentNetwork
from blazar.clouds.simulated.faults import Faults
from blazar.clouds.simulated.network import existing_network
from blazar.clouds.simulated.segments import SimulatedSegments, existing_router
from blazar.clouds.simulated.service import Calls, Durations
from blazar.clouds.simulated.state import NetworkState, PortState, RouterState, SubnetState, TrunkState
from blazar.clouds.simulated.storage import StateStorage
from blazar.model.clock import Clock


class NetworkUsers:
    """The users of a cloud's networks, whose calls have no faults. All return ids."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self.calls = SimulatedSegments(Calls(storage, Faults()), clock, Durations())
        """The calls of the port, without faults."""

    def network(self, segment: Segment, *, project_id: str, name: str = "theirs") -> SegmentNetwork:
        """Create a network on a segment as operators do."""
        return self.calls.create_segment_network(segment, name=name, project_id=project_id, description="")

    def subnet(self, network_id: str, cidr: str = "10.9.0.0/24") -> str:
        """Create a subnet."""
        with self._storage.open(to_change=True) as state:
            made = SubnetState(str(uuid.uuid4()), cidr)
            existing_network(state, network_id).subnets.append(made)
            return made.id

    def port(
        self, network_id: str, owner: str = "", *, address: str = "", project_id: str = "", device_id: str = ""
    ) -> str:
        """Create a port."""
        with self._storage.open(to_change=True) as state:
            existing_network(state, network_id)
            return self._port(state.ports, network_id, owner, address, project_id, device_id)

    def router(
        self,
        network_id: str,
        *,
        project_id: str = "",
        routes: Collection[tuple[str, str]] = (),
        distributed: bool = False,
    ) -> str:
        """Create a router with an interface on a network, and extra routes."""
        with self._storage.open(to_change=True) as state:
            existing_network(state, network_id)
            made = RouterState(str(uuid.uuid4()), project_id, [list(route) for route in routes])
            state.routers[made.id] = made
            owner = "network:router_interface_distributed" if distributed else "network:router_interface"
            self._port(state.ports, network_id, owner, "", project_id, made.id)
            if distributed:
                self._port(state.ports, network_id, "network:router_centralized_snat", "", "", made.id)
            return made.id

    def vpn(self, router_id: str, service_id: str) -> None:
        """Let a VPN service use a router; none, if the id is empty."""
        with self._storage.open(to_change=True) as state:
            state.routers[router_id].vpn = service_id

    def trunk(
        self, parent: str, *sub_ports: str, project_id: str = "", enabled: bool = True, bound: bool = False
    ) -> str:
        """Create a trunk of ports; ``bound``: a server boots with it."""
        with self._storage.open(to_change=True) as state:
            made = TrunkState(str(uuid.uuid4()), project_id, parent, list(sub_ports), enabled)
            state.ports[parent].bound = bound
            state.trunks[made.id] = made
            return made.id

    def routes_of(self, router_id: str) -> list[list[str]]:
        """Return the extra routes of a router."""
        with self._storage.open(to_change=False) as state:
            return [list(route) for route in existing_router(state, router_id).routes]

    def rename(self, network_id: str, *, name: str = "mine", tags: Collection[str] = (), description: str = "") -> None:
        """Change all that the owner of a network may change of it."""
        with self._storage.open(to_change=True) as state:
            network: NetworkState = existing_network(state, network_id)
            network.name, network.tags, network.description = name, sorted(tags), description

    @staticmethod
    def _port(
        ports: dict[str, PortState],
        network_id: str,
        owner: str,
        address: str = "",
        project_id: str = "",
        device_id: str = "",
    ) -> str:
        made = PortState(str(uuid.uuid4()), network_id, address, owner, project_id, device_id)
        ports[made.id] = made
        return made.id
