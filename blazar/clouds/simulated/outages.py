# SPDX-License-Identifier: Apache-2.0
"""What happens to the hosts of the simulated cloud: they go down, are disabled, vanish, and come back."""

from __future__ import annotations

from blazar.clouds.simulated.ground import Ground
from blazar.clouds.simulated.state import HostState, State
from blazar.model.errors import Conflict, NotFound


class SimulatedOutages(Ground):
    """A part of ``SimulatedCloud``, which has the rest of what is used here. Hosts go by their names."""

    def host_down(self, name: str) -> None:
        """Let a host's nova-compute be down; what runs there stays where it is."""
        with self._changing() as state:
            _host(state, name).up = False

    def host_up(self, name: str) -> None:
        """Let a host's nova-compute be up again."""
        with self._changing() as state:
            _host(state, name).up = True

    def host_disabled(self, name: str) -> None:
        """Let a host take no new servers, as its operator says so."""
        with self._changing() as state:
            _host(state, name).enabled = False

    def host_enabled(self, name: str) -> None:
        """Let a host take servers again."""
        with self._changing() as state:
            _host(state, name).enabled = True

    def host_vanishes(self, name: str) -> HostState:
        """Let Nova forget a host, as when its service is deleted: out of all aggregates, and its providers with it.

        Conflict while it has servers. Returns what brings it back.
        """
        with self._changing() as state:
            host = _host(state, name)
            if self._occupants(state, host.service_name):
                raise Conflict(f"host {name} has servers")
            for aggregate in state.aggregates.values():
                if host.service_name in aggregate.hosts:
                    aggregate.hosts.remove(host.service_name)
            state.providers.pop(name, None)
            state.inventories.pop(name, None)
            return state.hosts.pop(host.id)

    def host_returns(self, host: HostState, id: str | None = None) -> None:
        """Let Nova know a host again, in no aggregate and perhaps by another number."""
        with self._changing() as state:
            host.id = id or host.id
            state.hosts[host.id] = host


def _host(state: State, name: str) -> HostState:
    found = next((host for host in state.hosts.values() if host.name == name), None)
    if found is None:
        raise NotFound(f"the cloud has no hypervisor {name!r}")
    return found
