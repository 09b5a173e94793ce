# SPDX-License-Identifier: Apache-2.0
"""What the simulated cloud has for reservations of instances: flavors, server groups, classes and inventories."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict

from blazar.clouds.inventories import CLASS_PREFIX, inventory_of
from blazar.clouds.ports import Flavor, ReservedCapacity, Server, ServerGroup
from blazar.clouds.simulated.ground import Ground
from blazar.clouds.simulated.state import FlavorState, GroupState, HostState, ServerState, State
from blazar.model.errors import CloudRefused, Conflict, NotFound
from blazar.model.resource import ResourceInventory


class SimulatedSlots(Ground):
    """A part of ``SimulatedCloud``, which has the rest of what is used here."""

    # Compute

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return the servers that have a flavor; as in Nova none, once it is deleted."""
        with self._call("servers_of_flavor"), self._reading() as state:
            return tuple(
                self._server(server)
                for server in reversed(state.servers.values())
                if server.flavor == flavor_id and flavor_id in state.flavors and not self._is_gone(server)
            )

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return a flavor."""
        with self._call("flavor"), self._reading() as state:
            found = state.flavors.get(flavor_id)
            return _flavor(found) if found else None

    def create_flavor(self, flavor: Flavor) -> None:
        """Create a private flavor."""
        with self._call("create_flavor"), self._changing() as state:
            if flavor.vcpus < 1 or flavor.memory_mb < 1 or flavor.disk_gb < 0:
                raise CloudRefused(f"a flavor can not have {flavor.vcpus} VCPUs and {flavor.memory_mb} MiB")
            if any(flavor.id == known.id or flavor.name == known.name for known in state.flavors.values()):
                raise Conflict(f"there is a flavor {flavor.id} or {flavor.name} already")
            specs = dict(flavor.extra_specs)
            state.flavors[flavor.id] = FlavorState(**{**asdict(flavor), "extra_specs": specs, "public": False})

    def set_flavor_specs(self, flavor_id: str, specs: Mapping[str, str | None]) -> None:
        """Set and take away extra specs."""
        with self._call("set_flavor_specs"), self._changing() as state:
            known = _existing(state, flavor_id).extra_specs
            for key, value in specs.items():
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor."""
        with self._call("delete_flavor"), self._changing() as state:
            _existing(state, flavor_id)
            del state.flavors[flavor_id]

    def flavor_access(self, flavor_id: str) -> frozenset[str]:
        """Return who has access."""
        with self._call("flavor_access"), self._reading() as state:
            found = _existing(state, flavor_id)
            if found.public:
                raise NotFound(f"flavor {flavor_id} is public and has no list of projects")
            return frozenset(found.projects)

    def give_flavor(self, flavor_id: str, project_id: str) -> None:
        """Give a project access."""
        with self._call("give_flavor"), self._changing() as state:
            projects = _existing(state, flavor_id).projects
            if project_id in projects:
                raise Conflict(f"project {project_id} has access to flavor {flavor_id} already")
            projects.append(project_id)

    def take_flavor(self, flavor_id: str, project_id: str) -> None:
        """Take a project's access."""
        with self._call("take_flavor"), self._changing() as state:
            projects = _existing(state, flavor_id).projects
            if project_id not in projects:
                raise NotFound(f"project {project_id} has no access to flavor {flavor_id}")
            projects.remove(project_id)

    def flavor_names(self) -> Mapping[str, str]:
        """Return the names of all flavors."""
        with self._call("flavor_names"), self._reading() as state:
            return {flavor.id: flavor.name for flavor in state.flavors.values()}

    def server_groups(self, name: str | None = None) -> tuple[ServerGroup, ...]:
        """Return the groups of this name, or all."""
        with self._call("server_groups"), self._reading() as state:
            groups = state.groups.values()
            return tuple(ServerGroup(g.id, g.name, g.policy) for g in groups if name in (None, g.name))

    def create_server_group(self, name: str, policy: str, project_id: str) -> str:
        """Create a group."""
        with self._call("create_server_group"), self._changing() as state:
            group = GroupState(str(uuid.uuid4()), name, policy)
            state.groups[group.id] = group
            return group.id

    def delete_server_group(self, group_id: str) -> None:
        """Delete a group."""
        with self._call("delete_server_group"), self._changing() as state:
            if group_id not in state.groups:
                raise NotFound(f"there is no server group {group_id}")
            del state.groups[group_id]

    # Placement

    def inventories(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, ResourceInventory]:
        """Return what hosts have."""
        with self._call("inventories"), self._reading() as state:
            return {h.name: inventory_of_host(h) for h in state.hosts.values() if h.name in hypervisor_hostnames}

    def create_resource_class(self, name: str) -> None:
        """Ensure a class."""
        with self._call("create_resource_class"), self._changing() as state:
            if name not in state.classes:
                state.classes.append(name)

    def delete_resource_class(self, name: str) -> None:
        """Delete a class that no provider has."""
        with self._call("delete_resource_class"), self._changing() as state:
            if name not in state.classes:
                raise NotFound(f"there is no resource class {name}")
            if any(name in totals for totals in state.inventories.values()):
                raise Conflict(f"there are inventories of {name}")
            state.classes.remove(name)

    def resource_classes(self) -> frozenset[str]:
        """Return the names of all custom classes."""
        with self._call("resource_classes"), self._reading() as state:
            return frozenset(state.classes)

    def reserved_capacity(self, hypervisor_hostname: str, resource_class: str) -> ReservedCapacity | None:
        """Return what a provider has of a class, and how much of that is used."""
        with self._call("reserved_capacity"), self._reading() as state:
            total = state.inventories.get(hypervisor_hostname, {}).get(resource_class)
            return (
                None
                if total is None
                else ReservedCapacity(total, self._used(state, hypervisor_hostname, resource_class))
            )

    def reserved_totals(self, hypervisor_hostname: str) -> Mapping[str, int]:
        """Return all that a provider has."""
        with self._call("reserved_totals"), self._reading() as state:
            return dict(state.inventories.get(hypervisor_hostname, {}))

    def set_inventory(self, hypervisor_hostname: str, resource_class: str, total: int) -> None:
        """Give a provider so much of a class."""
        with self._call("set_inventory"), self._changing() as state:
            if hypervisor_hostname not in state.providers:
                raise NotFound(f"there is no resource provider blazar_{hypervisor_hostname}")
            if resource_class not in state.classes:
                raise CloudRefused(f"there is no resource class {resource_class}")
            if total < 1:
                raise CloudRefused(f"an inventory of {total} makes no sense")
            state.inventories.setdefault(hypervisor_hostname, {})[resource_class] = total

    def delete_inventory(self, hypervisor_hostname: str, resource_class: str) -> None:
        """Take a class away from a provider."""
        with self._call("delete_inventory"), self._changing() as state:
            if resource_class not in state.inventories.get(hypervisor_hostname, {}):
                raise NotFound(f"blazar_{hypervisor_hostname} has no inventory of {resource_class}")
            if self._used(state, hypervisor_hostname, resource_class):
                raise Conflict(f"the inventory of {resource_class} is in use")
            del state.inventories[hypervisor_hostname][resource_class]

    def hosts_with_free(self, resource_class: str) -> frozenset[str]:
        """Return the hosts with unused inventory of a class."""
        with self._call("hosts_with_free"), self._reading() as state:
            return frozenset(
                host
                for host, totals in state.inventories.items()
                if totals.get(resource_class, 0) > self._used(state, host, resource_class)
            )

    # What only a simulation can do

    def offer_flavor(self, flavor: Flavor, *, projects: Collection[str] = ()) -> None:
        """Have a flavor, as an operator makes it: public, or for some projects."""
        with self._changing() as state:
            more = {"extra_specs": dict(flavor.extra_specs), "projects": list(projects)}
            state.flavors[flavor.id] = FlavorState(**{**asdict(flavor), **more})

    def boot_reserved(self, flavor_id: str, *, project_id: str, user_id: str = "u", name: str = "work") -> Server:
        """Boot a server as a user would, with a flavor whose extra specs ask for a slot; Conflict if none is free."""
        with self._changing() as state:
            flavor = state.flavors.get(flavor_id)
            if flavor is None or project_id not in flavor.projects:
                raise NotFound(f"there is no flavor {flavor_id}")
            slots = [key for key in flavor.extra_specs if key.startswith(f"resources:{CLASS_PREFIX}")]
            wanted = [key.removeprefix("resources:") for key in slots]
            pool = flavor.extra_specs["aggregate_instance_extra_specs:reservation"]
            inside = {h for a in state.aggregates.values() if a.metadata.get("reservation") == pool for h in a.hosts}
            for host in state.hosts.values():
                totals = state.inventories.get(host.name, {})
                free = all(totals.get(name, 0) > self._used(state, host.name, name) for name in wanted)
                if free and host.service_name in inside and host.up and host.enabled:
                    server = ServerState(
                        str(uuid.uuid4()),
                        name,
                        project_id,
                        user_id,
                        host.service_name,
                        vcpus=flavor.vcpus,
                        memory_mb=flavor.memory_mb,
                        disk_gb=flavor.disk_gb,
                        flavor=flavor_id,
                        flavor_name=flavor.name,
                        extra_specs=dict(flavor.extra_specs),
                    )
                    state.servers[server.id] = server
                    return self._server(server)
            raise Conflict("no valid host was found")

    def boot_preemptible(
        self, name: str, *, host: str, project_id: str = "p", vcpus: int = 1, created_at: str = ""
    ) -> Server:
        """Boot a preemptible server as a user would; Conflict where the scheduler filter lets none in."""
        with self._changing() as state:
            inside = [a for a in state.aggregates.values() if host in a.hosts]
            zoned = any((a.zone or "").startswith("blazar_") for a in inside)
            shared = any("reservation" in a.metadata for a in inside)
            free = any(a.name == "freepool" and f"blazar:closed:{host}" not in a.metadata for a in inside)
            if zoned or shared or not free:
                raise Conflict("no valid host was found")
            server = ServerState(
                str(uuid.uuid4()),
                name,
                project_id,
                "u",
                host,
                vcpus=vcpus,
                extra_specs={"blazar:preemptible": "true"},
                created_at=created_at,
            )
            state.servers[server.id] = server
            return self._server(server)

    def shelve(self, server_id: str) -> None:
        """Let a server be on no host, as one that is shelved."""
        with self._changing() as state:
            state.servers[server_id].host, state.servers[server_id].status = None, "SHELVED_OFFLOADED"

    def _used(self, state: State, hypervisor_hostname: str, resource_class: str) -> int:
        host = next((h.service_name for h in state.hosts.values() if h.name == hypervisor_hostname), None)
        asking = {f.id for f in state.flavors.values() if f"resources:{resource_class}" in f.extra_specs}
        return sum(
            1
            for server in state.servers.values()
            if host and server.flavor in asking and self._host(server) == host and not self._is_gone(server)
        )


def inventory_of_host(host: HostState) -> ResourceInventory:
    """Return what a host has: as its sizes say, and what is told otherwise. As in Nova a unit takes at most all."""
    sizes = {"VCPU": host.vcpus, "MEMORY_MB": host.memory_mb, "DISK_GB": host.local_gb}
    own = {
        name: {"total": sizes.get(name, 0), **host.inventories.get(name, {})} for name in {**sizes, **host.inventories}
    }
    providers = [{name: {"max_unit": x["total"], **x} for name, x in own.items() if x["total"]}, *host.nested.values()]
    return inventory_of(providers, host.traits)


def _existing(state: State, flavor_id: str) -> FlavorState:
    if flavor_id not in state.flavors:
        raise NotFound(f"there is no flavor {flavor_id}")
    return state.flavors[flavor_id]


def _flavor(flavor: FlavorState) -> Flavor:
    return Flavor(
        flavor.id,
        flavor.name,
        flavor.vcpus,
        flavor.memory_mb,
        flavor.disk_gb,
        flavor.ephemeral_gb,
        flavor.swap_mb,
        dict(flavor.extra_specs),
        flavor.rxtx_factor,
        flavor.public,
    )
