# SPDX-License-Identifier: Apache-2.0
"""Users of the simulated cloud, who boot servers and attach floating IPs."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from blazar.clouds.inventories import CLASS_PREFIX
from blazar.clouds.ports import Server
from blazar.clouds.simulated.network import existing_floating_ip
from blazar.clouds.simulated.placement import used
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.servers import server_of
from blazar.clouds.simulated.storage import StateStorage
from blazar.model.clock import Clock
from blazar.model.errors import Conflict, NotFound


class Users:
    """The users of a cloud, whose calls have no faults."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    def boot_server(
        self,
        name: str,
        *,
        project_id: str,
        user_id: str,
        host: str | None,
        locked: bool = False,
        status: str = "ACTIVE",
        hint: str | None = None,
        vcpus: int = 1,
        memory_mb: int = 512,
        disk_gb: int = 1,
        extra_specs: Mapping[str, str] | None = None,
        tags: Collection[str] = (),
        volume_backed: bool = False,
        task_state: str | None = None,
        group: str | None = None,
    ) -> Server:
        """Boot a server on a host (None: on none, as if shelved) and in a server group, without the scheduler."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            if host is not None and all(known.service_name != host for known in state.hosts.values()):
                raise NotFound(f"the cloud has no compute host {host}")
            server = ServerState(
                str(uuid.uuid4()),
                name,
                project_id,
                user_id,
                host,
                status,
                locked,
                hint=hint,
                vcpus=vcpus,
                memory_mb=memory_mb,
                disk_gb=disk_gb,
                extra_specs=dict(extra_specs or {}),
                created_at=now.isoformat(),
                tags=list(tags),
                volume_backed=volume_backed,
                task_state=task_state,
            )
            state.servers[server.id] = server
            if group is not None:
                state.groups[group].members.append(server.id)
            return server_of(server, now)

    def begin_boot(self, name: str, *, host: str, project_id: str = "p") -> str:
        """Begin to boot a server that Placement has given room on a host, where Nova does not list it yet."""
        with self._storage.open(to_change=True) as state:
            server = ServerState(str(uuid.uuid4()), name, project_id, "u", None, "BUILD", claimed=host)
            state.servers[server.id] = server
            return server.id

    def finish_boot(self, server_id: str) -> None:
        """Let a server whose boot has begun run on its host."""
        with self._storage.open(to_change=True) as state:
            server = state.servers[server_id]
            server.host, server.claimed, server.status = server.claimed, None, "ACTIVE"

    def boot_reserved(self, flavor_id: str, *, project_id: str, user_id: str = "u", name: str = "work") -> Server:
        """Boot a server with the flavor of a reservation; Conflict if no host has free reserved capacity."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            flavor = state.flavors.get(flavor_id)
            if flavor is None or project_id not in flavor.projects:
                raise NotFound(f"there is no flavor {flavor_id}")
            keys = [key for key in flavor.extra_specs if key.startswith(f"resources:{CLASS_PREFIX}")]
            classes = [key.removeprefix("resources:") for key in keys]
            reservation = flavor.extra_specs["aggregate_instance_extra_specs:reservation"]
            inside = {
                h for a in state.aggregates.values() if a.metadata.get("reservation") == reservation for h in a.hosts
            }
            for host in state.hosts.values():
                totals = state.inventories.get(host.name, {})
                free = all(totals.get(name, 0) > used(state, host.name, name, now) for name in classes)
                if free and host.service_name in inside and host.up and host.enabled:
                    server = ServerState(
                        str(uuid.uuid4()),
                        name,
                        project_id,
                        user_id,
                        host.service_name,
                        vcpus=flavor.vcpus,
                        memory_mb=flavor.memory_mb,
                        disk_gb=flavor.local_gb,
                        flavor=flavor_id,
                        flavor_name=flavor.name,
                        extra_specs=dict(flavor.extra_specs),
                    )
                    state.servers[server.id] = server
                    return server_of(server, now)
            raise Conflict("no valid host was found")

    def boot_preemptible(
        self, name: str, *, host: str, project_id: str = "p", vcpus: int = 1, created_at: str = ""
    ) -> Server:
        """Boot a preemptible server; Conflict if the scheduler filter would reject the host."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
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
            return server_of(server, now)

    def shelve(self, server_id: str) -> None:
        """Shelve a server: it is on no host."""
        with self._storage.open(to_change=True) as state:
            state.servers[server_id].host, state.servers[server_id].status = None, "SHELVED_OFFLOADED"

    def attach(self, floating_ip_id: str, port_id: str | None = None) -> str:
        """Attach a floating IP to a port; return the port's id."""
        with self._storage.open(to_change=True) as state:
            found = existing_floating_ip(state, floating_ip_id)
            found.port_id = port_id or str(uuid.uuid4())
            return found.port_id
