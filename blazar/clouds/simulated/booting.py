# SPDX-License-Identifier: Apache-2.0
"""The simulated Nova for servers that the service boots in projects of users."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from blazar.clouds.ports.booting import BootedServer, BootImage, BootNetwork, ServerRequest
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.clouds.simulated.cards import Taken, keep_for_cleaning, take_cards
from blazar.clouds.simulated.placement import count_used
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.service import SimulatedService, check_role
from blazar.clouds.simulated.state import BootImageState, FlavorState, HostState, NetworkState, State
from blazar.model.base.errors import CloudRefused, Conflict
from blazar.model.base.reasons import ReasonCode

SERVICE_USER = "blazar"
DEFAULT_GROUP = "default"


class SimulatedBooting(SimulatedService):
    """Implements the booting port; rules as in Nova 34."""

    def begin_boot(self, project_id: str, request: ServerRequest) -> str:
        """Boot a server where the flavor's reserved capacity is free; it fails if there is none."""
        with self._calls.changing("begin_boot") as state:
            now = self._clock.now()
            check_role(state, project_id)
            flavor = state.flavors.get(request.flavor_id)
            if flavor is None or not (flavor.public or project_id in flavor.projects):
                raise CloudRefused(f"flavor {request.flavor_id} could not be found")
            _check_named(state, project_id, request)
            _check_quota(state, project_id, flavor, [s for s in state.servers.values() if not s.is_gone(now)])
            host, cards = self._find_room(state, flavor)
            fails = host is None or state.boot.failing > 0 or _is_outside(state, request.networks)
            state.boot.failing = max(0, state.boot.failing - 1)
            server = ServerState(
                str(uuid.uuid4()),
                request.name,
                project_id,
                SERVICE_USER,
                None if fails or host is None else host.service_name,
                "ERROR" if fails else "ACTIVE",
                vcpus=flavor.vcpus,
                memory_mb=flavor.memory_mb,
                disk_gb=flavor.local_gb,
                flavor=flavor.id,
                flavor_name=flavor.name,
                extra_specs=dict(flavor.extra_specs),
                cards={} if fails else cards,
                created_at=now.isoformat(),
                active_at=(now + self._durations.boot).isoformat(),
                public_key=state.boot.keys.get(request.key_name or ""),
                user_data=request.user_data,
                metadata=dict(request.metadata),
                networks=[request.networks] if isinstance(request.networks, str) else list(request.networks),
                tags=[request.tag],
            )
            state.servers[server.id] = server
            if host is not None:
                keep_for_cleaning(host, server.cards)
            return server.id

    def _find_room(self, state: State, flavor: FlavorState) -> tuple[HostState | None, Taken]:
        """Return the first host with room for a server, and the cards that the server gets there; None if none has."""
        for host in state.hosts.values():
            if self._has_room(state, host, flavor):
                cards = take_cards(state, host, flavor.extra_specs, self._clock.now())
                if cards is not None:
                    return host, cards
        return None, {}

    def _has_room(self, state: State, host: HostState, flavor: FlavorState) -> bool:
        now = self._clock.now()
        prefix = f"resources:{CLASS_PREFIX}"
        classes = [key.removeprefix("resources:") for key in flavor.extra_specs if key.startswith(prefix)]
        totals = state.inventories.get(host.name, {})
        free = all(totals.get(n, 0) > count_used(state, host.name, n, now) for n in classes)
        return state.is_up(host, now) and host.enabled and free

    def booted_server(self, server_id: str) -> BootedServer | None:
        """Return a server."""
        with self._calls.reading("booted_server") as state:
            now = self._clock.now()
            found = state.servers.get(server_id)
            if found is None or found.is_gone(now):
                return None
            status = found.status_at(now)
            outside = _is_outside(state, found.networks)
            why = "Failed to allocate the network(s)." if outside else "No valid host was found."
            return BootedServer(found.id, found.project_id, found.name, status, why if status == "ERROR" else "")

    def boot_image(self, project_id: str, image_id: str) -> BootImage | None:
        """Return an image."""
        with self._calls.reading("boot_image") as state:
            check_role(state, project_id)
            found = _image(state, project_id, image_id)
            return (
                None
                if found is None
                else BootImage(found.id, found.status, found.min_disk_gb, found.min_memory_mb, found.size_gb)
            )

    def boot_network(self, project_id: str, network_id: str) -> BootNetwork | None:
        """Return a network."""
        with self._calls.reading("boot_network") as state:
            check_role(state, project_id)
            found = _network(state, project_id, network_id)
            if found is None:
                return None
            shared = not found.project_id and not found.external
            return BootNetwork(found.id, found.external, shared, len(found.subnets))

    def has_security_group(self, project_id: str, name: str) -> bool:
        """Return whether it is the group that every project has."""
        with self._calls.reading("has_security_group") as state:
            check_role(state, project_id)
            return name == DEFAULT_GROUP

    def public_key(self, user_id: str, name: str) -> str | None:
        """Return the public key of a user's key pair."""
        with self._calls.reading("public_key") as state:
            return state.boot.user_keys.get(f"{user_id}/{name}")

    def import_key(self, name: str, public_key: str) -> None:
        """Import a public key."""
        with self._calls.changing("import_key") as state:
            if name in state.boot.keys:
                raise Conflict(f"there is a key pair {name} already")
            if not public_key.startswith(("ssh-", "ecdsa-", "sk-")):
                raise CloudRefused("Keypair data is invalid")
            state.boot.keys[name] = public_key

    def delete_key(self, name: str) -> None:
        """Delete a key pair of the service user."""
        with self._calls.changing("delete_key") as state:
            state.boot.keys.pop(name, None)


def _image(state: State, project_id: str, image_id: str) -> BootImageState | None:
    found = state.boot.images.get(image_id)
    return found if found is not None and found.project_id in ("", project_id) else None


def _network(state: State, project_id: str, network_id: str) -> NetworkState | None:
    """Return a network that a project sees: its own, one of all, or an external one."""
    found = state.networks.get(network_id)
    return found if found is not None and found.project_id in ("", project_id) else None


def _is_outside(state: State, networks: str | Collection[str]) -> bool:
    """Return whether one of them is external: Nova (34) takes the request, and finds out when it builds the server."""
    named = () if isinstance(networks, str) else networks
    return any((found := state.networks.get(id_)) is not None and found.external for id_ in named)


def _check_named(state: State, project_id: str, request: ServerRequest) -> None:
    """Raise CloudRefused for what the project cannot use, as Nova does before anything is made."""
    image = _image(state, project_id, request.image_id)
    if image is None or image.status != "active":
        raise CloudRefused(f"image {request.image_id} could not be found")
    if not isinstance(request.networks, str):
        for network_id in request.networks:
            found = _network(state, project_id, network_id)
            if found is None:
                raise CloudRefused(f"network {network_id} could not be found")
            if not found.external and not found.subnets:
                raise CloudRefused(f"network {network_id} requires a subnet in order to boot instances on")
    if request.key_name is not None and request.key_name not in state.boot.keys:
        raise CloudRefused("Invalid key_name provided.")
    for group in request.security_groups:
        if group != DEFAULT_GROUP:
            raise CloudRefused(f"security group {group} not found")


def _check_quota(state: State, project_id: str, flavor: FlavorState, there: Collection[ServerState]) -> None:
    mine = [server for server in there if server.project_id == project_id]
    for name, most, wanted in (
        ("instances", state.boot.most_servers, len(mine) + 1),
        ("cores", state.boot.most_vcpus, sum(server.vcpus for server in mine) + flavor.vcpus),
        ("ram", state.boot.most_memory_mb, sum(server.memory_mb for server in mine) + flavor.memory_mb),
    ):
        if most is not None and wanted > most:
            raise CloudRefused(f"Quota exceeded for {name}").because(ReasonCode.QUOTA_EXCEEDED)
