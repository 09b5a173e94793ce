"""Placement: reservation providers, and which hosts have room."""

from __future__ import annotations

from blazar.clouds.openstack.access import Access, Json
from blazar.model.errors import NotFound

MICROVERSION = "1.30"
PREFIX = "blazar_"


class OpenStackPlacement:
    """Implements the placement port."""

    def __init__(self, access: Access) -> None:
        self._placement = access.placement

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the uuid of the host's reservation provider."""
        found = self._provider(PREFIX + hypervisor_hostname)
        return None if found is None else str(found["uuid"])

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create the host's reservation provider as a child of its own."""
        parent = self._provider(hypervisor_hostname)
        if parent is None:
            raise NotFound(f"Placement knows no resource provider {hypervisor_hostname}")
        body = {"name": PREFIX + hypervisor_hostname, "parent_provider_uuid": parent["uuid"]}
        made = self._placement.call("POST", "/resource_providers", body=body, microversion=MICROVERSION)
        return str(made["uuid"])

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hosts that could take what a server takes now, by Placement's own reckoning."""
        allocations = self._placement.get(f"/allocations/{server_id}", microversion=MICROVERSION)["allocations"]
        total: dict[str, int] = {}
        for allocation in allocations.values():
            for name, amount in allocation["resources"].items():
                total[name] = total.get(name, 0) + amount
        wanted = ",".join(f"{n}:{a}" for n, a in sorted(total.items()) if not n.startswith("CUSTOM_RESERVATION_"))
        if not wanted:
            return frozenset()
        answer = self._placement.get("/resource_providers", params={"resources": wanted}, microversion=MICROVERSION)
        return frozenset(str(provider["name"]) for provider in answer["resource_providers"])

    def _provider(self, name: str) -> Json | None:
        answer = self._placement.get("/resource_providers", params={"name": name}, microversion=MICROVERSION)
        providers: list[Json] = answer["resource_providers"]
        return next((provider for provider in providers if provider["name"] == name), None)
