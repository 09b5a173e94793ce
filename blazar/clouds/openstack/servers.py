# SPDX-License-Identifier: Apache-2.0
"""Nova's servers and their migrations, and Glance for their snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import Json, VersionMissing
from blazar.clouds.ports.compute import Image, Migration, MigrationState, Server
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudUnavailable, Conflict, NotFound

SERVERS = "2.67"
"""Shows whether a server is locked, and returns the id of its new image."""

HINTS = "2.100"
"""The first that shows the scheduler hints of a server."""

CELLS = "2.69"
"""The first that says of which servers nothing is known because their cell is down; others leave them out."""

RESERVATION = "blazar:reservation"

_MIGRATION_STATES = {
    "finished": MigrationState.TO_CONFIRM,
    "confirmed": MigrationState.DONE,
    "completed": MigrationState.DONE,
    "done": MigrationState.DONE,
    "error": MigrationState.FAILED,
    "failed": MigrationState.FAILED,
    "cancelled": MigrationState.FAILED,
    "reverted": MigrationState.FAILED,
}
"""Nova's statuses of a migration; all others mean that it is in progress."""

_LEFT = ("post-migrating", "finished")
"""Nova's statuses of a cold migration whose server is on the other host, in the order in which they follow."""

_MOVING = {"RESIZE": MigrationState.RUNNING, "VERIFY_RESIZE": MigrationState.TO_CONFIRM}
"""Nova's statuses of a server that moves; with any other, as ERROR, the move needs its operator or is over."""


class OpenStackServers:
    """Implements the roles of servers, migrations and images."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._nova = access.compute
        self._glance = access.image

    # Servers

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return every server of every project on a host, those in the recycle bin included."""
        query = {"all_tenants": "1", "host": service_name, "soft_deleted": "1"}
        return self._servers(query)

    def count_servers(self) -> Mapping[str, int]:
        """Return the number of servers on each host that has some, those in the recycle bin included."""
        every = self._servers({"all_tenants": "1", "soft_deleted": "1"})
        return Counter(server.host for server in every if server.host is not None)

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return every server of every project that has a flavor, those on no host included; Nova's own order."""
        return self._servers({"all_tenants": "1", "flavor": flavor_id, "soft_deleted": "1"})

    def servers_of_project(self, project_id: str) -> tuple[Server, ...]:
        """Return every server of a project. CloudUnavailable if a cell is down, CloudRefused if Nova cannot say so.

        The project is the only filter with which Nova shows servers of cells that are down.
        """
        query = {"all_tenants": "1", "project_id": project_id}
        try:
            items = list(self._nova.pages("/servers/detail", "servers", microversion=HINTS, params=query))
        except VersionMissing:
            items = list(self._nova.pages("/servers/detail", "servers", microversion=CELLS, params=query))
        if unknown := sum(item.get("status") in (None, "UNKNOWN") or "name" not in item for item in items):
            raise CloudUnavailable(f"a cell of Nova does not answer: {unknown} servers of the project are not known")
        return tuple(_server(item) for item in items)

    def _servers(self, query: Mapping[str, str]) -> tuple[Server, ...]:
        found = self._nova.pages("/servers/detail", "servers", microversion=SERVERS, params=query)
        return tuple(_server(item) for item in found)

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the servers of a reservation that are on no host; none if Nova does not show hints."""
        stranded = []
        for status in ("SHELVED_OFFLOADED", "ERROR", "SOFT_DELETED"):
            query = {"all_tenants": "1", "project_id": project_id, "status": status}
            try:
                items = list(self._nova.pages("/servers/detail", "servers", microversion=HINTS, params=query))
            except VersionMissing:
                return ()
            stranded += [item for item in items if _is_hinted(item, reservation_id)]
        return tuple(_server(item) for item in stranded if not item.get("OS-EXT-SRV-ATTR:host"))

    def begin_server_deletion(self, server_id: str) -> None:
        """Begin to force-delete a server."""
        try:
            self._server_action(server_id, {"forceDelete": None})
        except NotFound:
            return
        except Conflict:
            # Nova refuses it during some tasks, as a deletion in progress; an ordinary deletion waits for them.
            self._delete_ordinarily(server_id)

    def _delete_ordinarily(self, server_id: str) -> None:
        try:
            self._nova.call("DELETE", f"/servers/{server_id}", microversion=SERVERS)
        except NotFound:
            return
        except Conflict as error:
            raise CloudUnavailable(f"server {server_id} cannot be deleted yet: {error.message}") from error

    def set_server_metadata(self, server_id: str, metadata: Mapping[str, str | None]) -> None:
        """Set keys in one call, and remove others by one each; a key that is not there is no error."""
        path = f"/servers/{quote(server_id, safe='')}/metadata"
        values = {key: value for key, value in metadata.items() if value is not None}
        if values:
            self._nova.call("POST", path, body={"metadata": values}, microversion=SERVERS)
        for key in metadata.keys() - values.keys():
            with suppress(NotFound):
                self._nova.call("DELETE", f"{path}/{quote(key, safe='')}", microversion=SERVERS)

    def begin_snapshot(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server, and make the server's project its owner."""
        server = self._nova.get(f"/servers/{server_id}", microversion=SERVERS)["server"]
        answer = self._server_action(server_id, {"createImage": {"name": name, "metadata": dict(metadata)}})
        self.set_image_owner(str(answer["image_id"]), server["tenant_id"])

    def _server_action(self, server_id: str, action: Mapping[str, Any]) -> Json:
        return self._nova.call(
            "POST", f"/servers/{quote(server_id, safe='')}/action", body=action, microversion=SERVERS
        )

    # Moves

    def begin_migration(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to move a server to a host.

        A live migration bypasses the scheduler (which would keep the server in its reservation), as microversions up to
        2.67 allow; Nova still claims the resources on the host. A cold one does not; Blazar's filter admits operators.
        """
        if live:
            action = {"os-migrateLive": {"host": service_name, "block_migration": "auto", "force": True}}
        else:
            action = {"migrate": {"host": service_name}}
        self._server_action(server_id, action)

    def confirm_migration(self, server_id: str) -> None:
        """Accept a cold move."""
        self._server_action(server_id, {"confirmResize": None})

    def unfinished_moves_from(self, service_name: str) -> Mapping[str, MigrationState]:
        """Return the servers that have left a host by a cold migration that is not complete, with its state."""
        moves: dict[str, MigrationState] = {}
        # In this order: a migration that leaves the first status in between is found in the second.
        for status in _LEFT:
            query = {"host": service_name, "status": status}
            for item in self._nova.pages("/os-migrations", "migrations", microversion=SERVERS, params=query):
                if item["source_compute"] == service_name:
                    moves.update(self._find_unfinished_move(item["instance_uuid"]))
        return moves

    def _find_unfinished_move(self, server_id: str) -> Mapping[str, MigrationState]:
        # A migration is called finished before its server may be confirmed: the status of the server decides.
        try:
            server = self._nova.get(f"/servers/{quote(server_id, safe='')}", microversion=SERVERS)["server"]
        except NotFound:
            return {}
        state = _MOVING.get(server["status"])
        return {} if state is None else {server_id: state}

    def migrations_of(self, server_id: str) -> tuple[Migration, ...]:
        """Return the moves of a server."""
        query = {"instance_uuid": server_id}
        found = list(self._nova.pages("/os-migrations", "migrations", microversion=SERVERS, params=query))
        found.sort(key=lambda item: int(item["id"]))
        return tuple(
            Migration(
                host=item["dest_compute"],
                live=item["migration_type"] == "live-migration",
                state=_MIGRATION_STATES.get(item["status"], MigrationState.RUNNING),
            )
            for item in found
        )

    # Images

    def set_image_owner(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image: the service user owns the snapshots that it makes."""
        self._glance.call(
            "PATCH",
            f"/images/{image_id}",
            body=[{"op": "replace", "path": "/owner", "value": project_id}],
            content_type="application/openstack-images-v2.1-json-patch",
        )

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images that carry a reservation's id, whatever project owns them."""
        query = {RESERVATION: reservation_id, "limit": "100"}
        found, own = self._glance.pages("/images", "images", params=query), self._access.log_in()
        return tuple(_image(item, own) for item in found)


def _server(item: Json) -> Server:
    flavor = item.get("flavor") or {}
    return Server(
        id=item["id"],
        name=item["name"],
        project_id=item["tenant_id"],
        user_id=item["user_id"],
        host=item.get("OS-EXT-SRV-ATTR:host"),
        status=item["status"],
        locked=bool(item.get("locked")),
        flavor=flavor.get("original_name"),
        extra_specs=dict(flavor.get("extra_specs") or {}),
        amounts=amounts_of(flavor),
        created_at=item.get("created", ""),
        hints=None if "scheduler_hints" not in item else hints_of(item),
        metadata={key: value for key, value in (item.get("metadata") or {}).items() if key.startswith("blazar:")},
    )


def amounts_of(flavor: Json) -> Amounts:
    """Return what a flavor takes by Nova's own reckoning: swap is in MiB, and rounded up to GiB of the disk."""
    disk = flavor.get("disk", 0) + flavor.get("ephemeral", 0) + -(-int(flavor.get("swap") or 0) // 1024)
    return Amounts.of({"VCPU": flavor.get("vcpus", 0), "MEMORY_MB": flavor.get("ram", 0), "DISK_GB": disk})


def _image(item: Json, own: str) -> Image:
    metadata = {key: value for key, value in item.items() if key.startswith("blazar:")}
    return Image(
        id=item["id"],
        name=item["name"],
        project_id=None if item["owner"] == own else item["owner"],
        status=item["status"],
        metadata=metadata,
    )


def _is_hinted(item: Json, reservation_id: str) -> bool:
    return reservation_id in hints_of(item)


def hints_of(item: Json) -> frozenset[str]:
    """Return the reservations that a server was booted into by a hint."""
    hint = (item.get("scheduler_hints") or {}).get("reservation")
    return frozenset(map(str, hint)) if isinstance(hint, list) else frozenset({str(hint)} if hint else ())
