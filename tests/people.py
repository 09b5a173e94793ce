# SPDX-License-Identifier: Apache-2.0
"""A simulated cloud with users, who boot servers and attach floating IPs, and with measurements of servers."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from blazar.clouds.ports.compute import Server
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.clouds.ports.segments import Segment, SegmentNetwork
from blazar.clouds.ports.volumes import Volume
from blazar.clouds.simulated import SimulatedCloud
from blazar.clouds.simulated.cards import keep_for_cleaning, take_cards
from blazar.clouds.simulated.placement import count_used
from blazar.clouds.simulated.segments import SimulatedSegments
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.servers import server_of
from blazar.clouds.simulated.service import Calls, Durations, Faults, look_up
from blazar.clouds.simulated.state import NetworkState, PortState, RouterState, SubnetState, TrunkState
from blazar.clouds.simulated.storage import StateStorage
from blazar.clouds.simulated.volume_state import PoolState, VolumeState, VolumeTypeState
from blazar.clouds.simulated.volumes import add_volume, begin_to_delete, volume_of
from blazar.model.base.clock import Clock
from blazar.model.base.errors import BlazarError, Conflict, NotFound


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
        extra_specs: Mapping[str, str] | None = None,
        tags: Collection[str] = (),
        group: str | None = None,
        **more: Any,
    ) -> Server:
        """Boot a server on a host (None: on none, as if shelved) and in a server group, without the scheduler.

        ``more`` are further fields of a ``ServerState``, such as ``vcpus`` and ``status``.
        """
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
                extra_specs=dict(extra_specs or {}),
                created_at=now.isoformat(),
                tags=list(tags),
                **more,
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
                free = all(totals.get(name, 0) > count_used(state, host.name, name, now) for name in classes)
                cards = take_cards(state, host, flavor.extra_specs, now)
                if free and cards is not None and host.service_name in inside and host.up and host.enabled:
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
                        cards=cards,
                        flavor_name=flavor.name,
                        extra_specs=dict(flavor.extra_specs),
                    )
                    state.servers[server.id] = server
                    keep_for_cleaning(host, cards)
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
            lent = any(f"blazar:lent:{host}" in a.metadata for a in inside)
            if not lent and (zoned or shared or not free):
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
            found = look_up(state.floating_ips, floating_ip_id, "floating IP")
            found.port_id = port_id or str(uuid.uuid4())
            return found.port_id


class VolumeUsers:
    """The users and operators of Cinder, whose calls have no faults."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    def add_pool(self, pool: PoolState, *, type_name: str, public: bool = False) -> str:
        """Add a pool with a type that leads only to it; return the id of the type."""
        with self._storage.open(to_change=True) as state:
            state.block.pools.append(pool)
            specs = {"volume_backend_name": pool.backend_name, "pool_name": pool.pool_name}
            made = VolumeTypeState(str(uuid.uuid4()), type_name, public, specs)
            state.block.types[made.id] = made
            return made.id

    def create(self, project_id: str, type_id: str, size_gb: int, *, name: str = "mine") -> Volume:
        """Create a volume; NotFound, CloudRefused."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            wanted = VolumeState(
                str(uuid.uuid4()), name, project_id, "u", type_id, size_gb, None, now.isoformat(), now.isoformat()
            )
            return volume_of(add_volume(state, wanted, None, now), now)

    def attach(self, volume_id: str, server_id: str, *, root: bool = False) -> str:
        """Attach a volume to a server; return the id of the attachment."""
        with self._storage.open(to_change=True) as state:
            found, attachment = state.block.volumes[volume_id], str(uuid.uuid4())
            found.servers[attachment] = server_id
            if root:
                found.roots.append(server_id)
            return attachment

    def delete(self, volume_id: str) -> None:
        """Delete a volume; NotFound, Conflict."""
        with self._storage.open(to_change=True) as state:
            begin_to_delete(state, volume_id, self._clock.now(), ends_at=self._clock.now())

    def snapshot(self, volume_id: str) -> None:
        """Make a snapshot of a volume."""
        with self._storage.open(to_change=True) as state:
            found = state.block.volumes[volume_id]
            found.snapshots_gb.append(found.size_gb)

    def offer(self, volume_id: str) -> None:
        """Offer a volume to another project."""
        with self._storage.open(to_change=True) as state:
            state.block.volumes[volume_id].offered = True

    def rename(self, volume_id: str, *, name: str = "mine", metadata: Mapping[str, str] | None = None) -> None:
        """Change all that the owner of a volume may change of it."""
        with self._storage.open(to_change=True) as state:
            found = state.block.volumes[volume_id]
            found.name, found.metadata = name, dict(metadata or {})

    def limit(self, project_id: str, **limits: int) -> None:
        """Set quotas of a project, as ``gigabytes``."""
        with self._storage.open(to_change=True) as state:
            state.block.quotas.setdefault(project_id, {}).update(limits)


class NetworkUsers:
    """The users of a cloud's networks, whose calls have no faults. All return ids."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self.calls = SimulatedSegments(Calls(storage, Faults()), clock, Durations())
        """The calls of the port, without faults."""

    def network(self, segment: Segment, *, project_id: str, name: str = "theirs") -> SegmentNetwork:
        """Create a network on a segment as operators do."""
        return self.calls.create_segment_network(segment, name=name, project_id=project_id, description="")

    def subnet(self, network_id: str, cidr: str = "10.9.0.0/24") -> str:
        """Create a subnet."""
        with self._storage.open(to_change=True) as state:
            made = SubnetState(str(uuid.uuid4()), cidr)
            look_up(state.networks, network_id, "network").subnets.append(made)
            return made.id

    def port(
        self, network_id: str, owner: str = "", *, address: str = "", project_id: str = "", device_id: str = ""
    ) -> str:
        """Create a port."""
        with self._storage.open(to_change=True) as state:
            look_up(state.networks, network_id, "network")
            return self._port(state.ports, network_id, owner, address, project_id, device_id)

    def router(
        self,
        network_id: str,
        *,
        project_id: str = "",
        routes: Collection[tuple[str, str]] = (),
        distributed: bool = False,
    ) -> str:
        """Create a router with an interface on a network, and extra routes."""
        with self._storage.open(to_change=True) as state:
            look_up(state.networks, network_id, "network")
            made = RouterState(str(uuid.uuid4()), project_id, [list(route) for route in routes])
            state.routers[made.id] = made
            owner = "network:router_interface_distributed" if distributed else "network:router_interface"
            self._port(state.ports, network_id, owner, "", project_id, made.id)
            if distributed:
                self._port(state.ports, network_id, "network:router_centralized_snat", "", "", made.id)
            return made.id

    def vpn(self, router_id: str, service_id: str) -> None:
        """Let a VPN service use a router; none, if the id is empty."""
        with self._storage.open(to_change=True) as state:
            state.routers[router_id].vpn = service_id

    def trunk(
        self, parent: str, *sub_ports: str, project_id: str = "", enabled: bool = True, bound: bool = False
    ) -> str:
        """Create a trunk of ports; ``bound``: a server boots with it."""
        with self._storage.open(to_change=True) as state:
            made = TrunkState(str(uuid.uuid4()), project_id, parent, list(sub_ports), enabled)
            state.ports[parent].bound = bound
            state.trunks[made.id] = made
            return made.id

    def routes_of(self, router_id: str) -> list[list[str]]:
        """Return the extra routes of a router."""
        with self._storage.open(to_change=False) as state:
            return [list(route) for route in look_up(state.routers, router_id, "router").routes]

    def rename(self, network_id: str, *, name: str = "mine", tags: Collection[str] = (), description: str = "") -> None:
        """Change all that the owner of a network may change of it."""
        with self._storage.open(to_change=True) as state:
            network: NetworkState = look_up(state.networks, network_id, "network")
            network.name, network.tags, network.description = name, sorted(tags), description

    @staticmethod
    def _port(
        ports: dict[str, PortState],
        network_id: str,
        owner: str,
        address: str = "",
        project_id: str = "",
        device_id: str = "",
    ) -> str:
        made = PortState(str(uuid.uuid4()), network_id, address, owner, project_id, device_id)
        ports[made.id] = made
        return made.id


class PeopledCloud(SimulatedCloud):
    """A simulated cloud in which users do what they do in a cloud without Blazar, and without its faults."""

    def __init__(self, storage: StateStorage, *, clock: Clock, **more: Any) -> None:
        super().__init__(storage, clock=clock, **more)
        self.users = Users(storage, clock)
        self.network_users = NetworkUsers(storage, clock)
        self.volume_users = VolumeUsers(storage, clock)


class SimulatedMetrics:
    """Measurements by server id; ``failure`` is raised instead, if it is set."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.failure: BlazarError | None = None
        self.asked: list[frozenset[str]] = []

    def measure_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return what is set for these servers."""
        self.asked.append(frozenset(server_ids))
        if self.failure is not None:
            raise self.failure
        return {id_: self.values[id_] for id_ in server_ids if id_ in self.values}
