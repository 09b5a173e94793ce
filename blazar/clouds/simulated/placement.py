# SPDX-License-Identifier: Apache-2.0
"""The simulated Placement: inventories, and the capacity that is reserved on hosts."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime

from blazar.clouds.ports.placement import ProviderInventory, ReservedCapacity, combine_inventories
from blazar.clouds.simulated.cards import sum_uncleaned
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.service import SimulatedService
from blazar.clouds.simulated.state import HostState, State
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.resources.resource import ResourceInventory


class SimulatedPlacement(SimulatedService):
    """Implements the placement port."""

    def inventories(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, ResourceInventory]:
        """Return the inventories and traits of hosts."""
        with self._calls.reading("inventories") as state:
            return {h.name: inventory_of_host(h) for h in state.hosts.values() if h.name in hypervisor_hostnames}

    def uncleaned(self, hypervisor_hostname: str) -> Amounts:
        """Return the devices that await cleaning."""
        with self._calls.reading("uncleaned") as state:
            hosts = [host for host in state.hosts.values() if host.name == hypervisor_hostname]
            return sum_uncleaned(state, hosts[0], self._clock.now()) if hosts else Amounts()

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the host's reservation provider."""
        with self._calls.reading("reservation_provider") as state:
            return state.providers.get(hypervisor_hostname)

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create the host's reservation provider."""
        with self._calls.changing("create_reservation_provider") as state:
            if all(host.name != hypervisor_hostname for host in state.hosts.values()):
                raise NotFound(f"Placement knows no resource provider {hypervisor_hostname}")
            if hypervisor_hostname in state.providers:
                raise Conflict(f"there is a resource provider blazar_{hypervisor_hostname} already")
            state.providers[hypervisor_hostname] = str(uuid.uuid4())
            return state.providers[hypervisor_hostname]

    def create_resource_class(self, name: str) -> None:
        """Ensure a resource class."""
        with self._calls.changing("create_resource_class") as state:
            if name not in state.classes:
                state.classes.append(name)

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class that no provider has."""
        with self._calls.changing("delete_resource_class") as state:
            if name not in state.classes:
                raise NotFound(f"there is no resource class {name}")
            if any(name in totals for totals in state.inventories.values()):
                raise Conflict(f"there are inventories of {name}")
            state.classes.remove(name)

    def resource_classes(self) -> frozenset[str]:
        """Return the names of all custom classes."""
        with self._calls.reading("resource_classes") as state:
            return frozenset(state.classes)

    def reserved_capacity(self, hypervisor_hostname: str, resource_class: str) -> ReservedCapacity | None:
        """Return the total of a class on a reservation provider, and how much of it is used."""
        with self._calls.reading("reserved_capacity") as state:
            now = self._clock.now()
            total = state.inventories.get(hypervisor_hostname, {}).get(resource_class)
            return (
                None
                if total is None
                else ReservedCapacity(total, count_used(state, hypervisor_hostname, resource_class, now))
            )

    def reserved_totals(self, hypervisor_hostname: str) -> Mapping[str, int]:
        """Return the totals of a reservation provider."""
        with self._calls.reading("reserved_totals") as state:
            return dict(state.inventories.get(hypervisor_hostname, {}))

    def set_inventory(self, hypervisor_hostname: str, resource_class: str, total: int) -> None:
        """Set the total of a class on a reservation provider."""
        with self._calls.changing("set_inventory") as state:
            if hypervisor_hostname not in state.providers:
                raise NotFound(f"there is no resource provider blazar_{hypervisor_hostname}")
            if resource_class not in state.classes:
                raise CloudRefused(f"there is no resource class {resource_class}")
            if total < 1:
                raise CloudRefused(f"an inventory of {total} makes no sense")
            state.inventories.setdefault(hypervisor_hostname, {})[resource_class] = total

    def delete_inventory(self, hypervisor_hostname: str, resource_class: str) -> None:
        """Remove a class from a reservation provider."""
        with self._calls.changing("delete_inventory") as state:
            now = self._clock.now()
            if resource_class not in state.inventories.get(hypervisor_hostname, {}):
                raise NotFound(f"blazar_{hypervisor_hostname} has no inventory of {resource_class}")
            if count_used(state, hypervisor_hostname, resource_class, now):
                raise Conflict(f"the inventory of {resource_class} is in use")
            del state.inventories[hypervisor_hostname][resource_class]

    def hosts_with_unused(self, resource_class: str) -> frozenset[str]:
        """Return the hosts with unused capacity of a class."""
        with self._calls.reading("hosts_with_unused") as state:
            now = self._clock.now()
            return frozenset(
                host
                for host, totals in state.inventories.items()
                if totals.get(resource_class, 0) > count_used(state, host, resource_class, now)
            )

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hosts that could take one more server of this size."""
        with self._calls.reading("hosts_with_room_for") as state:
            now = self._clock.now()
            server = state.servers.get(server_id)
            if server is None:
                return frozenset()
            return frozenset(host.name for host in state.hosts.values() if _has_room(state, host, server, now))


def count_used(state: State, hypervisor_hostname: str, resource_class: str, now: datetime) -> int:
    """Return how much of a class of reserved capacity servers use on a host."""
    host = next((h.service_name for h in state.hosts.values() if h.name == hypervisor_hostname), None)
    asking = {f.id for f in state.flavors.values() if f"resources:{resource_class}" in f.extra_specs}
    return sum(
        1
        for server in state.servers.values()
        if host and server.flavor in asking and server.location(now) == host and not server.is_gone(now)
    )


def inventory_of_host(host: HostState) -> ResourceInventory:
    """Return the inventory of a host: its sizes, unless its state has others; one instance may take all of it."""
    sizes = {"VCPU": host.vcpus, "MEMORY_MB": host.memory_mb, "DISK_GB": host.local_gb}
    own = {
        name: {"total": sizes.get(name, 0), **host.inventories.get(name, {})} for name in {**sizes, **host.inventories}
    }
    there = {name: {"max_unit": x["total"], **x} for name, x in own.items() if x["total"]}
    nested = (
        ProviderInventory(inventories, frozenset(host.nested_traits.get(name, ())))
        for name, inventories in host.nested.items()
    )
    return combine_inventories(ProviderInventory(there, frozenset(host.traits)), nested)


def _has_room(state: State, host: HostState, server: ServerState, now: datetime) -> bool:
    inventory = inventory_of_host(host)
    others = state.occupants(host.service_name, now)
    return all(
        sum(getattr(other, size) for other in others) + getattr(server, size) <= inventory.capacity.get(name)
        for size, name in (("vcpus", "VCPU"), ("memory_mb", "MEMORY_MB"), ("disk_gb", "DISK_GB"))
    )
