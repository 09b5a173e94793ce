# SPDX-License-Identifier: Apache-2.0
"""What the parts of the simulated cloud stand on, and the cloud itself provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from blazar.clouds.ports import Server
from blazar.clouds.simulated.state import ServerState, State


class Ground(ABC):
    """Each part of ``SimulatedCloud`` uses some of this."""

    @abstractmethod
    def _call(self, name: str) -> AbstractContextManager[None]:
        """Make a call of the ports, which may fail or take its time."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[State]:
        """Open the state to read it."""

    @abstractmethod
    def _changing(self) -> AbstractContextManager[State]:
        """Open the state to change it."""

    @abstractmethod
    def _is_gone(self, server: ServerState) -> bool:
        """Tell whether the deletion of a server is over."""

    @abstractmethod
    def _host(self, server: ServerState) -> str | None:
        """Return where a server is."""

    @abstractmethod
    def _server(self, server: ServerState) -> Server:
        """Return a server as the ports tell of it."""

    @abstractmethod
    def _occupants(self, state: State, service_name: str) -> list[ServerState]:
        """Return the servers that occupy a host."""
