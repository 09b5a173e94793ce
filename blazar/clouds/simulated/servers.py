# SPDX-License-Identifier: Apache-2.0
"""The simulated Nova and Glance: servers, their migrations and their snapshots."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from blazar.clouds.ports.compute import Image, Migration, MigrationState, Server
from blazar.clouds.simulated.evacuation import start_move
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.service import OWN_PROJECT, SimulatedService, look_up
from blazar.clouds.simulated.state import ImageState, State
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, Conflict, NotFound


class SimulatedServers(SimulatedService):
    """Implements the roles of servers, migrations and images."""

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return the servers that occupy a host."""
        with self._calls.reading("servers_on") as state:
            now = self._clock.now()
            return tuple(server_of(server, now) for server in state.occupants(service_name, now))

    def count_servers(self) -> Mapping[str, int]:
        """Return the number of servers on each host that has some."""
        with self._calls.reading("count_servers") as state:
            now = self._clock.now()
            places = (server.location(now) for server in state.servers.values() if not server.is_gone(now))
            return Counter(place for place in places if place is not None)

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the servers of a reservation that are on no host."""
        with self._calls.reading("stranded_servers") as state:
            now = self._clock.now()
            return tuple(
                server_of(server, now)
                for server in state.servers.values()
                if server.host is None
                and server.hint == reservation_id
                and server.project_id == project_id
                and not server.is_gone(now)
            )

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return the servers that have a flavor; as in Nova, none after its deletion."""
        with self._calls.reading("servers_of_flavor") as state:
            now = self._clock.now()
            return tuple(
                server_of(server, now)
                for server in reversed(state.servers.values())
                if server.flavor == flavor_id and flavor_id in state.flavors and not server.is_gone(now)
            )

    def servers_of_project(self, project_id: str) -> tuple[Server, ...]:
        """Return every server of a project; the simulated Nova has one cell."""
        with self._calls.reading("servers_of_project") as state:
            now = self._clock.now()
            return tuple(
                replace(server_of(server, now), hints=frozenset({server.hint} if server.hint else ()))
                for server in state.servers.values()
                if server.project_id == project_id and not server.is_gone(now)
            )

    def begin_server_deletion(self, server_id: str) -> None:
        """Begin to delete a server."""
        with self._calls.changing("begin_server_deletion") as state:
            now = self._clock.now()
            state.remove_gone(now)
            server = state.servers.get(server_id)
            if server is not None and server.gone_at is None:
                server.status = "DELETING"
                server.gone_at = (now + self._durations.deletion).isoformat()
                state.remove_gone(now)

    def set_server_metadata(self, server_id: str, metadata: Mapping[str, str | None]) -> None:
        """Set and remove keys of a server."""
        with self._calls.changing("set_server_metadata") as state:
            server = _look_up_server(state, server_id, self._clock.now())
            kept = {key: value for key, value in server.metadata.items() if key not in metadata}
            server.metadata = kept | {key: value for key, value in metadata.items() if value is not None}

    def begin_migration(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to migrate a server; a running one live or cold, a stopped one only cold."""
        with self._calls.changing("begin_migration") as state:
            now = self._clock.now()
            server = _look_up_server(state, server_id, now)
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise CloudRefused(f"the cloud has no compute host {service_name}")
            if server.status_at(now) not in (("ACTIVE", "PAUSED") if live else ("ACTIVE", "SHUTOFF")):
                raise Conflict(f"server {server_id} is {server.status_at(now)}")
            if server.location(now) == service_name:
                raise CloudRefused(f"server {server_id} is on {service_name} already")
            start_move(state, server, service_name, now, self._durations, live=live)

    def confirm_migration(self, server_id: str) -> None:
        """Confirm a cold migration."""
        with self._calls.changing("confirm_migration") as state:
            now = self._clock.now()
            server = _look_up_server(state, server_id, now)
            if server.status_at(now) != "VERIFY_RESIZE":
                raise Conflict(f"server {server_id} is {server.status_at(now)}")
            server.migrations[-1].confirmed = True

    def unfinished_moves_from(self, service_name: str) -> Mapping[str, MigrationState]:
        """Return the servers that have left a host by a cold migration that is not complete, with its state."""
        with self._calls.reading("unfinished_moves_from") as state:
            now = self._clock.now()
            return {
                server.id: server.migrations[-1].state_at(now)
                for server in state.servers.values()
                if server.is_settling(now) and server.former_location(now) == service_name
            }

    def migrations_of(self, server_id: str) -> tuple[Migration, ...]:
        """Return the migrations of a server."""
        with self._calls.reading("migrations_of") as state:
            now = self._clock.now()
            server = state.servers.get(server_id)
            moves = server.migrations if server else []
            return tuple(Migration(move.host, move.live, move.state_at(now)) for move in moves)

    def begin_snapshot(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server."""
        with self._calls.changing("begin_snapshot") as state:
            now = self._clock.now()
            server = _look_up_server(state, server_id, now)
            if server.status_at(now) not in ("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"):
                raise Conflict(f"server {server_id} is {server.status_at(now)}")
            image = ImageState(
                str(uuid.uuid4()),
                name,
                server.project_id,
                (now + self._durations.snapshot).isoformat(),
                dict(metadata),
            )
            state.images[image.id] = image

    def set_image_owner(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image."""
        with self._calls.changing("set_image_owner") as state:
            if image_id not in state.images:
                raise NotFound(f"there is no image {image_id}")
            state.images[image_id].project_id = project_id

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images that carry a reservation's id."""
        with self._calls.reading("images_of_reservation") as state:
            now = self._clock.now()
            return tuple(
                image_of(image, now)
                for image in state.images.values()
                if image.metadata.get("blazar:reservation") == reservation_id
            )


def server_of(server: ServerState, now: datetime) -> Server:
    """Return a server as Nova shows it."""
    return Server(
        server.id,
        server.name,
        server.project_id,
        server.user_id,
        server.location(now),
        server.status_at(now),
        server.locked,
        server.flavor_name,
        dict(server.extra_specs),
        Amounts.of({"VCPU": server.vcpus, "MEMORY_MB": server.memory_mb, "DISK_GB": server.disk_gb}),
        server.created_at,
        metadata={key: value for key, value in server.metadata.items() if key.startswith("blazar:")},
    )


def image_of(image: ImageState, now: datetime) -> Image:
    """Return an image as Glance shows it."""
    done = datetime.fromisoformat(image.active_at) <= now
    owner = None if image.project_id == OWN_PROJECT else image.project_id
    return Image(image.id, image.name, owner, "active" if done else "saving", dict(image.metadata))


def _look_up_server(state: State, server_id: str, now: datetime) -> ServerState:
    state.remove_gone(now)
    return look_up(state.servers, server_id, "server")
