# SPDX-License-Identifier: Apache-2.0
"""Devices at microversion 1.0, by the names that Chameleon's client has for what is done with them."""

from __future__ import annotations

from typing import Any

from blazarclient.base import part
from blazarclient.v1.registered import RegisteredClientManager


class DeviceClientManager(RegisteredClientManager):
    """Makes requests about devices."""

    path = "/devices"
    one = "device"
    many = "devices"
    noun = "device"

    def create(self, name: str, **kwargs: Any) -> dict[str, Any]:
        """Register a device, with its type, driver and properties, and return it."""
        return self._registered({"name": name, **kwargs})

    def get(self, device_id: str) -> dict[str, Any]:
        """Return a device."""
        return self._got(device_id)

    def update(self, device_id: str, values: dict[str, Any]) -> dict[str, Any]:
        """Change properties, and return the device; None takes a property away. With nothing to change: as it is."""
        return self._updated(device_id, values)

    def delete(self, device_id: str) -> None:
        """Take a device out of the service."""
        self._deleted(device_id)

    def get_allocation(self, device_id: str) -> dict[str, Any]:
        """Return what is promised of a device."""
        return self._allocation(device_id)

    def reallocate(self, device_id: str, values: dict[str, str]) -> dict[str, Any]:
        """Have other devices take over, and return what is still promised of this one.

        ``values``: a ``reservation_id``, or a ``lease_id`` for all reservations of a lease.
        """
        _, body = self.request_manager.put(f"{self.path}/{device_id}/allocation", body=values)
        return part(body, "allocation")  # type: ignore[no-any-return]
