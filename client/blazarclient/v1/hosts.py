# SPDX-License-Identifier: Apache-2.0
"""Hosts and their properties at microversion 1.0."""

from __future__ import annotations

from typing import Any

from blazarclient import exception
from blazarclient.base import BaseClientManager, part
from blazarclient.utils import sort


class ComputeHostClientManager(BaseClientManager):
    """Makes requests about hosts, by the ids that the service gave them."""

    def create(self, name: str, **kwargs: Any) -> dict[str, Any]:
        """Register a host of the cloud, with properties, and return it."""
        _, body = self.request_manager.post("/os-hosts", body={"name": name, **kwargs})
        return part(body, "host")  # type: ignore[no-any-return]

    def get(self, host_id: str) -> dict[str, Any]:
        """Return a host."""
        _, body = self.request_manager.get(f"/os-hosts/{host_id}")
        return part(body, "host")  # type: ignore[no-any-return]

    def update(self, host_id: str, values: dict[str, Any]) -> dict[str, Any]:
        """Change properties, and return the host; None takes a property away. With nothing to change: as it is."""
        if not values:
            return self.get(host_id)
        _, body = self.request_manager.put(f"/os-hosts/{host_id}", body=values)
        return part(body, "host")  # type: ignore[no-any-return]

    def delete(self, host_id: str) -> None:
        """Take a host out of the service."""
        self.request_manager.delete(f"/os-hosts/{host_id}")

    def list_properties(
        self,
        detail: bool = False,
        all: bool = False,
        sort_by: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the properties of hosts; ``detail``: with values; ``all``: private ones, too (for operators)."""
        query = "&".join(f"{key}=True" for key, wanted in (("detail", detail), ("all", all)) if wanted)
        _, body = self.request_manager.get("/os-hosts/properties" + (f"?{query}" if query else ""))
        found = part(body, "resource_properties")
        if detail:
            found = [{_KEYS.get(key, key): value for key, value in item.items()} for item in found]
        return sort(found, sort_by)

    def get_property(self, property_name: str) -> dict[str, Any]:
        """Return a property with its values; ResourcePropertyNotFound if hosts have none of this name.

        Private ones are found if the caller may see them.
        """
        for private in (False, True):
            try:
                found = self.list_properties(detail=True, all=private)
            except exception.Forbidden:
                break
            for item in found:
                if item["property"] == property_name:
                    return item
        raise exception.ResourcePropertyNotFound(f"No host has a property {property_name}")

    def set_property(self, property_name: str, private: bool) -> dict[str, Any]:
        """Have a property shown to operators only, or to all, and return it."""
        _, body = self.request_manager.patch(f"/os-hosts/properties/{property_name}", body={"private": private})
        return part(body, "resource_property")  # type: ignore[no-any-return]

    def list(self, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return all hosts."""
        _, body = self.request_manager.get("/os-hosts")
        return sort(part(body, "hosts"), sort_by)


_KEYS = {"values": "property_values"}
