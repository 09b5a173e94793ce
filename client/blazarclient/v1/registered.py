# SPDX-License-Identifier: Apache-2.0
"""What hosts, segments of networks and devices have in common at microversion 1.0: they are registered, by ids."""

from __future__ import annotations

from typing import Any

from blazarclient import exception
from blazarclient.base import BaseClientManager, part
from blazarclient.utils import sort

_KEYS = {"values": "property_values"}


class RegisteredClientManager(BaseClientManager):
    """Makes requests about resources of one kind, by the ids that the service gave them.

    ``path``: where they are; ``one`` and ``many``: the keys of answers; ``noun``: the word for one in sentences.
    The ids that methods take have other names for each kind: programs give them by name.
    """

    path = ""
    one = ""
    many = ""
    noun = ""

    def _got(self, resource_id: str) -> dict[str, Any]:
        _, body = self.request_manager.get(f"{self.path}/{resource_id}")
        return part(body, self.one)  # type: ignore[no-any-return]

    def _registered(self, values: dict[str, Any]) -> dict[str, Any]:
        _, body = self.request_manager.post(self.path, body=values)
        return part(body, self.one)  # type: ignore[no-any-return]

    def _updated(self, resource_id: str, values: dict[str, Any]) -> dict[str, Any]:
        if not values:
            return self._got(resource_id)
        _, body = self.request_manager.put(f"{self.path}/{resource_id}", body=values)
        return part(body, self.one)  # type: ignore[no-any-return]

    def _deleted(self, resource_id: str) -> None:
        self.request_manager.delete(f"{self.path}/{resource_id}")

    def _allocation(self, resource_id: str) -> dict[str, Any]:
        _, body = self.request_manager.get(f"{self.path}/{resource_id}/allocation")
        return part(body, "allocation")  # type: ignore[no-any-return]

    def list_properties(
        self,
        detail: bool = False,
        all: bool = False,
        sort_by: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the properties of resources; ``detail``: with values; ``all``: private ones, too (for operators)."""
        query = "&".join(f"{key}=True" for key, wanted in (("detail", detail), ("all", all)) if wanted)
        _, body = self.request_manager.get(f"{self.path}/properties" + (f"?{query}" if query else ""))
        found = part(body, "resource_properties")
        if detail:
            found = [{_KEYS.get(key, key): value for key, value in item.items()} for item in found]
        return sort(found, sort_by)

    def get_property(self, property_name: str) -> dict[str, Any]:
        """Return a property with its values; ResourcePropertyNotFound if none of the resources has it.

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
        raise exception.ResourcePropertyNotFound(f"No {self.noun} has a property {property_name}")

    def set_property(self, property_name: str, private: bool) -> dict[str, Any]:
        """Have a property shown to operators only, or to all, and return it."""
        _, body = self.request_manager.patch(f"{self.path}/properties/{property_name}", body={"private": private})
        return part(body, "resource_property")  # type: ignore[no-any-return]

    # Those that return a list come before ``list``, which hides the type of that name from what follows it.
    def list_allocations(self, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return what is promised of every resource."""
        _, body = self.request_manager.get(f"{self.path}/allocations")
        return sort(part(body, "allocations"), sort_by)

    def list(self, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return all resources."""
        _, body = self.request_manager.get(self.path)
        return sort(part(body, self.many), sort_by)
