# SPDX-License-Identifier: Apache-2.0
"""The simulated Nova and Placement; ``network`` has the simulated Neutron."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from blazar.clouds.ports import CHANGES, Aggregate, Cloud, Hypervisor, Image, Migration, MigrationState, Server
from blazar.clouds.shared import SharedRead
from blazar.clouds.simulated.faults import Faults
from blazar.clouds.simulated.network import SimulatedNetwork
from blazar.clouds.simulated.outages import SimulatedOutages
from blazar.clouds.simulated.slots import SimulatedSlots, inventory_of_host
from blazar.clouds.simulated.state import AggregateState, HostState, ImageState, ServerState, State
from blazar.clouds.simulated.state import MigrationState as MoveState
from blazar.clouds.simulated.storage import StateStorage
from blazar.context import check_change
from blazar.model.amounts import Amounts
from blazar.model.clock import Clock
from blazar.model.errors import CloudRefused, Conflict, NotFound

DEFAULT_ZONE = "nova"


class SimulatedCloud(SimulatedSlots, SimulatedNetwork, SimulatedOutages):
    """Implements the compute, placement and network ports over a kept state; rules as in Nova 34 and Placement.

    Deletions of servers and snapshots take as long as is said, by the clock.
    """

    def __init__(
        self,
        storage: StateStorage,
        *,
        clock: Clock,
        faults: Faults | None = None,
        deletion_takes: timedelta = timedelta(0),
        snapshot_takes: timedelta = timedelta(0),
        migration_takes: timedelta = timedelta(0),
    ) -> None:
        self.faults = faults or Faults()
        self.deletion_takes = deletion_takes
        self.snapshot_takes = snapshot_takes
        self.migration_takes = migration_takes
        self._storage = storage
        self._clock = clock
        self._shared_aggregates = SharedRead(self._read_aggregates)

    @property
    def cloud(self) -> Cloud:
        """The cloud as the rest of the service takes it."""
        return Cloud(compute=self, placement=self, network=self)

    @contextmanager
    def inspect(self) -> Iterator[State]:
        """Yield a copy of the whole state, without faults; the cloud does not change before the block ends."""
        with self._reading() as state:
            yield copy.deepcopy(state)

    @contextmanager
    def change_state(self) -> Iterator[State]:
        """Yield the state to change it in another way than by calls of a service, and without faults."""
        with self._changing() as state:
            yield state

    # Compute

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""
        with self._call("hypervisors"), self._reading() as state:
            zones = _zones(state)
            return tuple(_hypervisor(host, zones) for host in state.hosts.values())

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname."""
        with self._call("hypervisor"), self._reading() as state:
            found = state.hosts.get(id) if id is not None else None
            if id is None:
                found = next((host for host in state.hosts.values() if host.name == hostname), None)
            if found is None:
                raise NotFound(f"the cloud has no hypervisor {id if id is not None else hostname!r}")
            return _hypervisor(found, _zones(state))

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return all aggregates."""
        return self._shared_aggregates()

    def _read_aggregates(self) -> tuple[Aggregate, ...]:
        with self._call("aggregates"), self._reading() as state:
            return tuple(_aggregate(aggregate) for aggregate in state.aggregates.values())

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate of this name."""
        with self._call("aggregate"), self._reading() as state:
            found = next((a for a in state.aggregates.values() if a.name == name), None)
            return _aggregate(found) if found else None

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate."""
        with self._call("create_aggregate"), self._changing() as state:
            if any(a.name == name for a in state.aggregates.values()):
                raise Conflict(f"there is an aggregate {name} already")
            made = state.add_aggregate(name, availability_zone)
            made.metadata.update(metadata)
            return _aggregate(made)

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set and take away metadata."""
        with self._call("set_aggregate_metadata"), self._changing() as state:
            aggregate = _existing(state, aggregate_id)
            for key, value in metadata.items():
                if value is None:
                    aggregate.metadata.pop(key, None)
                else:
                    aggregate.metadata[key] = value

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate that has no hosts."""
        with self._call("delete_aggregate"), self._changing() as state:
            aggregate = _existing(state, aggregate_id)
            if aggregate.hosts:
                raise Conflict(f"aggregate {aggregate.name} has hosts")
            del state.aggregates[aggregate_id]

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate, if that leaves it in one zone and does not move its servers to another."""
        with self._call("add_host"), self._changing() as state:
            aggregate = _existing(state, aggregate_id)
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise NotFound(f"the cloud has no compute host {service_name}")
            if service_name in aggregate.hosts:
                raise Conflict(f"host {service_name} is in aggregate {aggregate.name} already")
            zones = _zones_of(state, service_name)
            if aggregate.zone and zones and zones != {aggregate.zone}:
                raise Conflict(f"host {service_name} is in zone {', '.join(sorted(zones))}")
            if aggregate.zone and not zones and self._occupants(state, service_name):
                raise Conflict(f"host {service_name} runs servers and would change its zone")
            aggregate.hosts.append(service_name)

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Take a host out of an aggregate, if that does not move its servers to another zone."""
        with self._call("remove_host"), self._changing() as state:
            aggregate = _existing(state, aggregate_id)
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise NotFound(f"the cloud has no compute host {service_name}")
            if service_name not in aggregate.hosts:
                raise NotFound(f"host {service_name} is not in aggregate {aggregate.name}")
            others = [a for a in state.aggregates.values() if a.id != aggregate_id and service_name in a.hosts]
            loses = aggregate.zone is not None and all(a.zone != aggregate.zone for a in others)
            if loses and self._occupants(state, service_name):
                raise Conflict(f"host {service_name} runs servers and would change its zone")
            aggregate.hosts.remove(service_name)

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return the servers that occupy a host."""
        with self._call("servers_on"), self._reading() as state:
            return tuple(self._server(server) for server in self._occupants(state, service_name))

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the servers of a reservation that are on no host."""
        with self._call("stranded_servers"), self._reading() as state:
            return tuple(
                self._server(server)
                for server in state.servers.values()
                if server.host is None
                and server.hint == reservation_id
                and server.project_id == project_id
                and not self._is_gone(server)
            )

    def delete_server(self, server_id: str) -> None:
        """Begin to delete a server."""
        with self._call("delete_server"), self._changing() as state:
            self._sweep(state)
            server = state.servers.get(server_id)
            if server is not None and server.gone_at is None:
                server.status = "DELETING"
                server.gone_at = (self._clock.now() + self.deletion_takes).isoformat()
                self._sweep(state)

    def snapshot_server(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server."""
        with self._call("snapshot_server"), self._changing() as state:
            server = self._existing_server(state, server_id)
            if self._status(server) not in ("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"):
                raise Conflict(f"server {server_id} is {self._status(server)}")
            image = ImageState(
                str(uuid.uuid4()),
                name,
                server.project_id,
                (self._clock.now() + self.snapshot_takes).isoformat(),
                dict(metadata),
            )
            state.images[image.id] = image

    def give_image(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image."""
        with self._call("give_image"), self._changing() as state:
            if image_id not in state.images:
                raise NotFound(f"there is no image {image_id}")
            state.images[image_id].project_id = project_id

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images that carry a reservation's id."""
        with self._call("images_of_reservation"), self._reading() as state:
            return tuple(
                self._image(image)
                for image in state.images.values()
                if image.metadata.get("blazar:reservation") == reservation_id
            )

    def migrate_server(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to move a server; running ones can be moved either way, stopped ones only cold."""
        with self._call("migrate_server"), self._changing() as state:
            server = self._existing_server(state, server_id)
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise CloudRefused(f"the cloud has no compute host {service_name}")
            if self._status(server) not in (("ACTIVE", "PAUSED") if live else ("ACTIVE", "SHUTOFF")):
                raise Conflict(f"server {server_id} is {self._status(server)}")
            if self._host(server) == service_name:
                raise CloudRefused(f"server {server_id} is on {service_name} already")
            over = (self._clock.now() + self.migration_takes).isoformat()
            server.migrations.append(MoveState(service_name, live, over))

    def confirm_migration(self, server_id: str) -> None:
        """Accept a cold move."""
        with self._call("confirm_migration"), self._changing() as state:
            server = self._existing_server(state, server_id)
            if self._status(server) != "VERIFY_RESIZE":
                raise Conflict(f"server {server_id} is {self._status(server)}")
            server.migrations[-1].confirmed = True

    def moves_to_confirm(self, service_name: str) -> tuple[str, ...]:
        """Return the servers that were moved cold away from a host and wait to be confirmed."""
        with self._call("moves_to_confirm"), self._reading() as state:
            return tuple(
                server.id
                for server in state.servers.values()
                if self._status(server) == "VERIFY_RESIZE" and self._former_host(server) == service_name
            )

    def migrations_of(self, server_id: str) -> tuple[Migration, ...]:
        """Return the moves of a server."""
        with self._call("migrations_of"), self._reading() as state:
            server = state.servers.get(server_id)
            moves = server.migrations if server else []
            return tuple(Migration(move.host, move.live, self._move_state(move)) for move in moves)

    # Placement

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the host's reservation provider."""
        with self._call("reservation_provider"), self._reading() as state:
            return state.providers.get(hypervisor_hostname)

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create the host's reservation provider."""
        with self._call("create_reservation_provider"), self._changing() as state:
            if all(host.name != hypervisor_hostname for host in state.hosts.values()):
                raise NotFound(f"Placement knows no resource provider {hypervisor_hostname}")
            if hypervisor_hostname in state.providers:
                raise Conflict(f"there is a resource provider blazar_{hypervisor_hostname} already")
            state.providers[hypervisor_hostname] = str(uuid.uuid4())
            return state.providers[hypervisor_hostname]

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hosts that could take one more server of this size."""
        with self._call("hosts_with_room_for"), self._reading() as state:
            server = state.servers.get(server_id)
            if server is None:
                return frozenset()
            return frozenset(host.name for host in state.hosts.values() if self._has_room(state, host, server))

    # What only a simulation can do

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
        extra_specs: Mapping[str, str] | None = None,
    ) -> Server:
        """Let a server run on a host (None: on none, as if shelved), past every scheduler."""
        with self._changing() as state:
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
                extra_specs=dict(extra_specs or {}),
                created_at=self._clock.now().isoformat(),
            )
            state.servers[server.id] = server
            return self._server(server)

    def list_servers(self) -> tuple[Server, ...]:
        """Return all servers."""
        with self._reading() as state:
            return tuple(self._server(server) for server in state.servers.values() if not self._is_gone(server))

    def images(self) -> tuple[Image, ...]:
        """Return all images."""
        with self._reading() as state:
            return tuple(self._image(image) for image in state.images.values())

    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        # Outside the state's lock: one slow call does not hold up the others.
        with self.faults.around(name):
            if name in CHANGES:
                check_change()
            yield

    def _reading(self) -> AbstractContextManager[State]:
        return self._storage.open(to_change=False)

    def _changing(self) -> AbstractContextManager[State]:
        return self._storage.open(to_change=True)

    def _is_gone(self, server: ServerState) -> bool:
        return server.gone_at is not None and datetime.fromisoformat(server.gone_at) <= self._clock.now()

    def _sweep(self, state: State) -> None:
        for server in [server for server in state.servers.values() if self._is_gone(server)]:
            del state.servers[server.id]

    def _occupants(self, state: State, service_name: str) -> list[ServerState]:
        return [s for s in state.servers.values() if self._host(s) == service_name and not self._is_gone(s)]

    def _existing_server(self, state: State, server_id: str) -> ServerState:
        self._sweep(state)
        if server_id not in state.servers:
            raise NotFound(f"there is no server {server_id}")
        return state.servers[server_id]

    def _move_state(self, move: MoveState) -> MigrationState:
        if datetime.fromisoformat(move.over_at) > self._clock.now():
            return MigrationState.RUNNING
        return MigrationState.DONE if move.live or move.confirmed else MigrationState.TO_CONFIRM

    def _host(self, server: ServerState) -> str | None:
        arrived = [m.host for m in server.migrations if self._move_state(m) is not MigrationState.RUNNING]
        return arrived[-1] if arrived else server.host

    def _former_host(self, server: ServerState) -> str | None:
        arrived = [m.host for m in server.migrations if self._move_state(m) is not MigrationState.RUNNING]
        return arrived[-2] if len(arrived) > 1 else server.host

    def _status(self, server: ServerState) -> str:
        match self._move_state(server.migrations[-1]) if server.migrations else None:
            case MigrationState.RUNNING:
                return "MIGRATING" if server.migrations[-1].live else "RESIZE"
            case MigrationState.TO_CONFIRM:
                return "VERIFY_RESIZE"
        return server.status

    def _server(self, server: ServerState) -> Server:
        return Server(
            server.id,
            server.name,
            server.project_id,
            server.user_id,
            self._host(server),
            self._status(server),
            server.locked,
            server.flavor_name,
            dict(server.extra_specs),
            Amounts.of({"VCPU": server.vcpus, "MEMORY_MB": server.memory_mb, "DISK_GB": server.disk_gb}),
            server.created_at,
        )

    def _has_room(self, state: State, host: HostState, server: ServerState) -> bool:
        inventory = inventory_of_host(host)
        others = self._occupants(state, host.service_name)
        return all(
            sum(getattr(other, size) for other in others) + getattr(server, size) <= inventory.capacity.get(name)
            for size, name in (("vcpus", "VCPU"), ("memory_mb", "MEMORY_MB"), ("disk_gb", "DISK_GB"))
        )

    def _image(self, image: ImageState) -> Image:
        done = datetime.fromisoformat(image.active_at) <= self._clock.now()
        return Image(image.id, image.name, image.project_id, "active" if done else "saving", dict(image.metadata))


def _existing(state: State, aggregate_id: int) -> AggregateState:
    if aggregate_id not in state.aggregates:
        raise NotFound(f"there is no aggregate {aggregate_id}")
    return state.aggregates[aggregate_id]


def _zones_of(state: State, service_name: str) -> set[str]:
    return {a.zone for a in state.aggregates.values() if a.zone and service_name in a.hosts}


def _zones(state: State) -> Mapping[str, str]:
    return {host: a.zone for a in state.aggregates.values() if a.zone for host in a.hosts}


def _aggregate(aggregate: AggregateState) -> Aggregate:
    return Aggregate(aggregate.id, aggregate.name, aggregate.zone, tuple(aggregate.hosts), dict(aggregate.metadata))


def _hypervisor(host: HostState, zones: Mapping[str, str]) -> Hypervisor:
    return Hypervisor(
        id=host.id,
        hypervisor_hostname=host.name,
        service_name=host.service_name,
        hypervisor_type=host.hypervisor_type,
        hypervisor_version=host.hypervisor_version,
        vcpus=host.vcpus,
        memory_mb=host.memory_mb,
        local_gb=host.local_gb,
        cpu_info=host.cpu_info,
        availability_zone=zones.get(host.service_name, DEFAULT_ZONE),
        up=host.up,
        enabled=host.enabled,
    )
