# SPDX-License-Identifier: Apache-2.0
"""Placement: inventories and traits of hosts, and reserved capacity."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import CloudService, Json, StaleGeneration
from blazar.clouds.ports.placement import CLASS_PREFIX, ProviderInventory, ReservedCapacity, combine_inventories
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, CloudUnavailable, NotFound
from blazar.model.resources.pools import ONE_TIME_USE
from blazar.model.resources.resource import ResourceInventory

T = TypeVar("T")

MICROVERSION = "1.30"
PREFIX = "blazar_"

PASSING_TRAITS = frozenset({"COMPUTE_STATUS_DISABLED"})
"""What Nova says of a host by a trait that is no property of it: a host that is closed for a night stays what it is."""

MAX_ATTEMPTS = 10
"""Attempts of a write whose provider was changed by others since it was read."""


class OpenStackPlacement:
    """Implements the placement port."""

    def __init__(self, access: Access, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._placement = access.placement
        self._sleep = sleep
        # Inventories and traits of providers, with the generation at which they were read; every change raises it.
        self._read: dict[str, tuple[int, ProviderInventory]] = {}
        # Uuids of reservation providers by host. One that was deleted answers 404, and another has another uuid.
        self._uuids: dict[str, str] = {}
        # What providers had that were found to lack a class, by path: it is set next, at the generation of that read.
        self._lacking: dict[str, Json] = {}

    def inventories(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, ResourceInventory]:
        """Return the inventories and traits of hosts.

        It takes one call for the list of all providers (two for a single host), and two for each of them in the trees
        of the hosts; the latter only if the generation differs from that of the last call.
        """
        found: dict[str, ResourceInventory] = {}
        for name, (uuid, tree) in self._read_trees(hypervisor_hostnames).items():
            # A provider may vanish meanwhile; its host is left out, as one that was not listed.
            with suppress(NotFound):
                read = {provider["uuid"]: self._read_provider(provider) for provider in tree}
                found[name] = combine_inventories(read.pop(uuid), read.values())
        return found

    def uncleaned(self, hypervisor_hostname: str) -> Amounts:
        """Return the devices that await cleaning: a call for each that is reserved, besides those of inventories."""
        found: dict[str, int] = defaultdict(int)
        for _, tree in self._read_trees({hypervisor_hostname}).values():
            for provider in tree:
                with suppress(NotFound):
                    there = self._read_provider(provider)
                    if ONE_TIME_USE not in there.traits or not any(i["reserved"] for i in there.inventories.values()):
                        continue
                    path = f"/resource_providers/{provider['uuid']}/usages"
                    used = self._placement.get(path, microversion=MICROVERSION)["usages"]
                    for name, inventory in there.inventories.items():
                        found[name] += max(0, int(inventory["reserved"]) - int(used.get(name, 0)))
        return Amounts.of(found)

    def consumers(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, Mapping[str, Amounts]]:
        """Return who has allocations on hosts and of how much, without those of the classes of reservations.

        It takes one call for each host and each provider nested in it, besides those for the list.
        """
        found: dict[str, Mapping[str, Amounts]] = {}
        for name, (_, tree) in self._read_trees(hypervisor_hostnames).items():
            with suppress(NotFound):
                held: dict[str, Amounts] = defaultdict(Amounts)
                for provider in tree:
                    path = f"/resource_providers/{provider['uuid']}/allocations"
                    body = self._placement.get(path, microversion=MICROVERSION)["allocations"]
                    for consumer, allocation in body.items():
                        held[consumer] += Amounts.of(allocation["resources"])
                found[name] = dict(held)
        return found

    def _read_trees(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, tuple[str, list[Json]]]:
        """Return the uuid of each host's own provider, with all providers of its tree but that of reservations."""
        wanted = set(hypervisor_hostnames)
        providers = self._providers() if len(wanted) != 1 else self._read_tree(*wanted)
        roots = {
            p["uuid"]: p["name"] for p in providers if p["name"] in wanted and p["uuid"] == p["root_provider_uuid"]
        }
        trees: dict[str, list[Json]] = defaultdict(list)
        for provider in providers:
            root = provider["root_provider_uuid"]
            if root in roots and not provider["name"].startswith(PREFIX):
                trees[root].append(provider)
        return {name: (uuid, trees[uuid]) for uuid, name in roots.items()}

    def _providers(self) -> list[Json]:
        answer = self._placement.get("/resource_providers", microversion=MICROVERSION)
        providers: list[Json] = answer["resource_providers"]
        there = {provider["uuid"] for provider in providers}
        self._read = {uuid: read for uuid, read in self._read.items() if uuid in there}
        return providers

    def _read_tree(self, name: str) -> list[Json]:
        """Return the provider of this name and all that are nested in it."""
        provider = _find_provider(self._placement, name)
        if provider is None:
            return []
        query = {"in_tree": provider["uuid"]}
        answer = self._placement.get("/resource_providers", params=query, microversion=MICROVERSION)
        return list(answer["resource_providers"])

    def _read_provider(self, provider: Json) -> ProviderInventory:
        """Return the inventories and traits of a provider."""
        uuid, generation = provider["uuid"], provider["generation"]
        known = self._read.get(uuid)
        if known is None or known[0] != generation:
            path = f"/resource_providers/{uuid}"
            body = self._placement.get(f"{path}/inventories", microversion=MICROVERSION)
            traits = self._placement.get(f"{path}/traits", microversion=MICROVERSION)["traits"]
            # The generation is that of the list, the older one: a change in between is read by the next call.
            read = ProviderInventory(body["inventories"], frozenset(traits) - PASSING_TRAITS)
            known = self._read[uuid] = (generation, read)
        return known[1]

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the uuid of the host's reservation provider."""
        found = _find_provider(self._placement, PREFIX + hypervisor_hostname)
        if found is None:
            return None
        uuid = self._uuids[hypervisor_hostname] = str(found["uuid"])
        return uuid

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create the host's reservation provider as a child of its own."""
        parent = _find_provider(self._placement, hypervisor_hostname)
        if parent is None:
            raise NotFound(f"Placement knows no resource provider {hypervisor_hostname}")
        body = {"name": PREFIX + hypervisor_hostname, "parent_provider_uuid": parent["uuid"]}
        made = self._placement.call("POST", "/resource_providers", body=body, microversion=MICROVERSION)
        return str(made["uuid"])

    def create_resource_class(self, name: str) -> None:
        """Ensure a resource class; Placement accepts the request if it exists."""
        self._placement.call("PUT", f"/resource_classes/{name}", microversion=MICROVERSION)

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class."""
        self._placement.call("DELETE", f"/resource_classes/{name}", microversion=MICROVERSION)

    def resource_classes(self) -> frozenset[str]:
        """Return the names of all classes."""
        answer = self._placement.get("/resource_classes", microversion=MICROVERSION)
        return frozenset(str(item["name"]) for item in answer["resource_classes"])

    def reserved_capacity(self, hypervisor_hostname: str, resource_class: str) -> ReservedCapacity | None:
        """Return what a reservation provider has of a class, and how much of it is used."""

        def read(path: str) -> ReservedCapacity | None:
            body = self._placement.get(f"{path}/inventories", microversion=MICROVERSION)
            found = body["inventories"].get(resource_class)
            if found is None:
                self._lacking[path] = body
                return None
            usages = self._placement.get(f"{path}/usages", microversion=MICROVERSION)["usages"]
            return ReservedCapacity(int(found["total"]), int(usages.get(resource_class, 0)))

        return self._at_provider(hypervisor_hostname, read, absent=None)

    def reserved_totals(self, hypervisor_hostname: str) -> Mapping[str, int]:
        """Return the totals of a reservation provider."""

        def read(path: str) -> Mapping[str, int]:
            found = self._placement.get(f"{path}/inventories", microversion=MICROVERSION)["inventories"]
            return {name: int(inventory["total"]) for name, inventory in found.items()}

        return self._at_provider(hypervisor_hostname, read, absent={})

    def set_inventory(self, hypervisor_hostname: str, resource_class: str, total: int) -> None:
        """Set the inventory of a class on a reservation provider."""
        one_by_one = {"reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        wanted: dict[str, Any] = {"total": total, **one_by_one}

        def write(path: str) -> bool:
            # What was read a moment ago need not be read again: Placement refuses the write if it has changed since.
            body = self._lacking.pop(path, None)
            if body is None or resource_class in body["inventories"]:
                body = self._placement.get(f"{path}/inventories", microversion=MICROVERSION)
            if body["inventories"].get(resource_class) != wanted:
                body["inventories"][resource_class] = wanted
                self._placement.call("PUT", f"{path}/inventories", body=body, microversion=MICROVERSION)
            return True

        if not self._at_provider(hypervisor_hostname, _retry_while_stale(write, self._sleep), absent=False):
            raise NotFound(f"Placement knows no resource provider {PREFIX}{hypervisor_hostname}")

    def delete_inventory(self, hypervisor_hostname: str, resource_class: str) -> None:
        """Remove the inventory of a class from a reservation provider."""

        def write(path: str) -> bool:
            # Not by DELETE, whose answer is the same for an inventory in use and for one that others changed just now.
            body = self._placement.get(f"{path}/inventories", microversion=MICROVERSION)
            if body["inventories"].pop(resource_class, None) is None:
                return False
            self._placement.call("PUT", f"{path}/inventories", body=body, microversion=MICROVERSION)
            return True

        if not self._at_provider(hypervisor_hostname, _retry_while_stale(write, self._sleep), absent=False):
            raise NotFound(f"{PREFIX}{hypervisor_hostname} is not there, or has no inventory of {resource_class}")

    def hosts_with_unused(self, resource_class: str) -> frozenset[str]:
        """Return the hosts with unused inventory of a reservation's class, in one call."""
        query = {"resources": f"{resource_class}:1"}
        try:
            answer = self._placement.get("/resource_providers", params=query, microversion=MICROVERSION)
        except CloudRefused:
            # Placement (13) answers the same to an unknown class as to a malformed request.
            if resource_class in self.resource_classes():
                raise
            return frozenset()
        names = (str(provider["name"]) for provider in answer["resource_providers"])
        return frozenset(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hosts that have room for a server as it is now, as Placement calculates it."""
        allocations = self._placement.get(f"/allocations/{server_id}", microversion=MICROVERSION)["allocations"]
        total: dict[str, int] = {}
        for allocation in allocations.values():
            for name, amount in allocation["resources"].items():
                total[name] = total.get(name, 0) + amount
        wanted = ",".join(f"{n}:{a}" for n, a in sorted(total.items()) if not n.startswith(CLASS_PREFIX))
        if not wanted:
            return frozenset()
        answer = self._placement.get("/resource_providers", params={"resources": wanted}, microversion=MICROVERSION)
        return frozenset(str(provider["name"]) for provider in answer["resource_providers"])

    def _at_provider(self, hypervisor_hostname: str, act: Callable[[str], T], *, absent: T) -> T:
        """Return what is done at the path of a reservation provider, or ``absent`` if there is none."""
        known = self._uuids.get(hypervisor_hostname)
        if known is not None:
            # It may be gone, and another one may have been made in its place, as by a host that was installed again.
            with suppress(NotFound):
                return act(f"/resource_providers/{known}")
            self._uuids.pop(hypervisor_hostname, None)
        uuid = self.reservation_provider(hypervisor_hostname)
        return absent if uuid is None else act(f"/resource_providers/{uuid}")


def _find_provider(placement: CloudService, name: str) -> Json | None:
    answer = placement.get("/resource_providers", params={"name": name}, microversion=MICROVERSION)
    providers: list[Json] = answer["resource_providers"]
    return next((provider for provider in providers if provider["name"] == name), None)


def _retry_while_stale(write: Callable[[str], T], sleep: Callable[[float], None]) -> Callable[[str], T]:
    """Return a write that is done again while others change what it was decided on. CloudUnavailable."""

    def repeat(path: str) -> T:
        for attempt in range(MAX_ATTEMPTS):
            try:
                return write(path)
            except StaleGeneration:
                # Full jitter, because several starts may change the same host.
                sleep(random.uniform(0, min(1.0, 0.05 * 2**attempt)))
        raise CloudUnavailable("Placement: others kept changing the same resource provider")

    return repeat
