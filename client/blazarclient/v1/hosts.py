# SPDX-License-Identifier: Apache-2.0
"""Hosts and their properties at microversion 1.0."""

from __future__ import annotations

from typing import Any

from blazarclient.v1.registered import RegisteredClientManager


class ComputeHostClientManager(RegisteredClientManager):
    """Makes requests about hosts."""

    path = "/os-hosts"
    one = "host"
    many = "hosts"
    noun = "host"

    def create(self, name: str, **kwargs: Any) -> dict[str, Any]:
        """Register a host of the cloud, with properties, and return it."""
        return self._registered({"name": name, **kwargs})

    def get(self, host_id: str) -> dict[str, Any]:
        """Return a host."""
        return self._got(host_id)

    def update(self, host_id: str, values: dict[str, Any]) -> dict[str, Any]:
        """Change properties, and return the host; None takes a property away. With nothing to change: as it is."""
        return self._updated(host_id, values)

    def delete(self, host_id: str) -> None:
        """Take a host out of the service."""
        self._deleted(host_id)

    def get_allocation(self, host_id: str) -> dict[str, Any]:
        """Return what is promised of a host."""
        return self._allocation(host_id)
