# SPDX-License-Identifier: Apache-2.0
"""Operators of the simulated cloud; their hosts fail, vanish, and come back."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from blazar.clouds.ports.compute import Flavor, Image, Server
from blazar.clouds.simulated.evacuation import end_move
from blazar.clouds.simulated.flavors import fields_of
from blazar.clouds.simulated.machines import MachineState, PowerFault
from blazar.clouds.simulated.network import is_address_used
from blazar.clouds.simulated.power import check_machine
from blazar.clouds.simulated.server_state import MoveFault
from blazar.clouds.simulated.servers import image_of, server_of
from blazar.clouds.simulated.service import look_up
from blazar.clouds.simulated.state import FlavorState, HostState, PortState, State, ThingState
from blazar.clouds.simulated.storage import StateStorage
from blazar.model.base.clock import Clock
from blazar.model.base.errors import Conflict, NotFound


class Operators:
    """The operators of a cloud, whose calls have no faults. Hosts are given by name."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    def host_down(self, name: str) -> None:
        """Set a host's nova-compute down; its servers stay."""
        with self._storage.open(to_change=True) as state:
            _host(state, name).up = False

    def host_up(self, name: str) -> None:
        """Set a host's nova-compute up."""
        with self._storage.open(to_change=True) as state:
            _host(state, name).up = True

    def host_disabled(self, name: str, reason: str | None = None) -> None:
        """Disable a host's nova-compute: it gets no new servers."""
        with self._storage.open(to_change=True) as state:
            host = _host(state, name)
            host.enabled, host.disabled_reason = False, reason

    def host_enabled(self, name: str) -> None:
        """Enable a host's nova-compute."""
        with self._storage.open(to_change=True) as state:
            host = _host(state, name)
            host.enabled, host.disabled_reason = True, None

    def host_vanishes(self, name: str) -> HostState:
        """Remove a host from Nova, as the deletion of its service does: also from all aggregates, and its providers.

        Conflict while it has servers. Returns the host for ``host_returns``.
        """
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            host = _host(state, name)
            if state.occupants(host.service_name, now):
                raise Conflict(f"host {name} has servers")
            for aggregate in state.aggregates.values():
                if host.service_name in aggregate.hosts:
                    aggregate.hosts.remove(host.service_name)
            state.providers.pop(name, None)
            state.inventories.pop(name, None)
            return state.hosts.pop(host.id)

    def host_returns(self, host: HostState, id: str | None = None) -> None:
        """Add a host to Nova again, in no aggregate and perhaps with another id."""
        with self._storage.open(to_change=True) as state:
            host.id = id or host.id
            state.hosts[host.id] = host

    def spoil_power(self, name: str, fault: PowerFault | None) -> None:
        """Let the power of a host or pool have a fault from now on (None: none any more)."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now().isoformat()
            check_machine(state, name)
            machine = state.machines.setdefault(name, MachineState(True, now, now))
            machine.fault = "" if fault is None else fault.value

    def press_power(self, name: str, *, on: bool) -> None:
        """Switch a host or pool by hand, at once, whatever its controller says."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now().isoformat()
            check_machine(state, name)
            fault = state.machines[name].fault if name in state.machines else ""
            state.machines[name] = MachineState(on, now, now if on else "", fault=fault)

    def spoil_move(self, server_id: str, fault: MoveFault | None) -> None:
        """Let the next move of a server have a fault (None: no more)."""
        with self._storage.open(to_change=True) as state:
            state.move_faults.pop(server_id, None)
            if fault is not None:
                state.move_faults[server_id] = fault.value

    def finish_move(self, server_id: str, *, fails: bool = False) -> None:
        """End the last move of a server, which hangs or is beyond the point of return; those behind it begin."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            move = state.servers[server_id].migrations[-1]
            if not move.is_open(now):
                raise Conflict(f"the move of server {server_id} is over")
            end_move(state, move, now, arrives=not fails)

    def list_servers(self) -> tuple[Server, ...]:
        """Return all servers."""
        with self._storage.open(to_change=False) as state:
            now = self._clock.now()
            return tuple(server_of(server, now) for server in state.servers.values() if not server.is_gone(now))

    def images(self) -> tuple[Image, ...]:
        """Return all images."""
        with self._storage.open(to_change=False) as state:
            now = self._clock.now()
            return tuple(image_of(image, now) for image in state.images.values())

    def offer_flavor(self, flavor: Flavor, *, projects: Collection[str] = ()) -> None:
        """Create a flavor as operators do: public, or for some projects."""
        with self._storage.open(to_change=True) as state:
            more = {"extra_specs": dict(flavor.extra_specs), "projects": list(projects)}
            state.flavors[flavor.id] = FlavorState(**{**fields_of(flavor), **more})

    def take_address(self, network_id: str, address: str, owner: str = "network:router_gateway") -> str:
        """Create a port, other than of a floating IP, with an address; return the id of the port."""
        with self._storage.open(to_change=True) as state:
            if is_address_used(state, network_id, address):
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
        """Change or delete the first subnet of a network."""
        with self._storage.open(to_change=True) as state:
            network = look_up(state.networks, network_id, "network")
            if gone:
                del network.subnets[0]
                return
            network.subnets[0].pools = pools if pools is not None else network.subnets[0].pools
            network.subnets[0].gateway = gateway or network.subnets[0].gateway

    def close_project(self, project_id: str) -> None:
        """Take the role in a project from the service user."""
        with self._storage.open(to_change=True) as state:
            if project_id not in state.closed_projects:
                state.closed_projects.append(project_id)

    def open_project(self, project_id: str) -> None:
        """Give the service user a role in a project."""
        with self._storage.open(to_change=True) as state:
            if project_id in state.closed_projects:
                state.closed_projects.remove(project_id)

    def break_thing(self, thing_id: str, failure: str | None = None, *, unusable: str | None = None) -> None:
        """Let a thing with a hook fail, or refuse to be handed over (None: be as usual)."""
        with self._storage.open(to_change=True) as state:
            thing = state.things.setdefault(thing_id, ThingState())
            thing.failure, thing.unusable = failure, unusable


def _host(state: State, name: str) -> HostState:
    found = next((host for host in state.hosts.values() if host.name == name), None)
    if found is None:
        raise NotFound(f"the cloud has no hypervisor {name!r}")
    return found
