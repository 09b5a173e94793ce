# SPDX-License-Identifier: Apache-2.0
"""Segments of networks at microversion 1.0, by the names that Chameleon's client has for what is done with them."""

from __future__ import annotations

from typing import Any

from blazarclient.v1.registered import RegisteredClientManager


class NetworkClientManager(RegisteredClientManager):
    """Makes requests about the segments (VLANs and VXLANs) that can be reserved as networks."""

    path = "/networks"
    one = "network"
    many = "networks"
    noun = "segment"

    def create(
        self, network_type: str, physical_network: str | None, segment_id: int | str, **kwargs: Any
    ) -> dict[str, Any]:
        """Register a segment, with properties, and return it; a VXLAN has no physical network."""
        values = {"network_type": network_type, "physical_network": physical_network, "segment_id": segment_id}
        return self._registered({**values, **kwargs})

    def get(self, network_id: str) -> dict[str, Any]:
        """Return a segment."""
        return self._got(network_id)

    def update(self, network_id: str, values: dict[str, Any]) -> dict[str, Any]:
        """Change properties, and return the segment; None takes a property away. With nothing to change: as it is."""
        return self._updated(network_id, values)

    def delete(self, network_id: str) -> None:
        """Take a segment out of the service."""
        self._deleted(network_id)

    def get_allocation(self, network_id: str) -> dict[str, Any]:
        """Return what is promised of a segment."""
        return self._allocation(network_id)
