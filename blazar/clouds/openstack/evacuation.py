# SPDX-License-Identifier: Apache-2.0
"""Moves of servers off a host, with what Nova and Placement say about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.flavors import group_pages
from blazar.clouds.openstack.placement import OpenStackPlacement
from blazar.clouds.openstack.servers import HINTS, amounts_of, hints_of
from blazar.clouds.openstack.service import Explained, Json, VersionMissing
from blazar.clouds.ports.evacuation import OPEN_STATUSES, HostRoom, Move, Occupant, OccupantGroup, ServerOwner
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import Conflict, NotFound

MOVES = "2.68"
"""The first in which no live migration bypasses the scheduler; a queued or prepared one can be aborted since 2.65."""

_OURS = ("live-migration", "migration")
"""The types of migrations that operators begin, and not owners."""


class OpenStackEvacuation:
    """Implements the evacuation port."""

    def __init__(self, access: Access, placement: OpenStackPlacement) -> None:
        self._nova = access.compute
        self._placement = placement

    def occupants(self, *service_names: str) -> tuple[Occupant, ...]:
        """Return every server on hosts, those in the recycle bin included; the hints only if Nova shows them.

        A call for each host, and the list of all server groups if there is a server: Nova finds none by its members.
        """
        items = [item for name in service_names for item in self._servers_on(name)]
        groups = self._read_server_groups() if items else {}
        return tuple(_occupant(item, groups.get(item["id"])) for item in items)

    def _servers_on(self, service_name: str) -> list[Json]:
        query = {"all_tenants": "1", "host": service_name, "soft_deleted": "1"}
        try:
            return list(self._nova.pages("/servers/detail", "servers", microversion=HINTS, params=query))
        except VersionMissing:
            return list(self._nova.pages("/servers/detail", "servers", microversion=MOVES, params=query))

    def _read_server_groups(self) -> Mapping[str, OccupantGroup]:
        """Return the group of each server that is in one; Nova's list of servers does not tell."""
        found = (OccupantGroup(g["id"], g["policy"], frozenset(g["members"])) for g in group_pages(self._nova))
        return {member: group for group in found for member in group.members}

    def moves_of(self, server_id: str) -> tuple[Move, ...]:
        """Return the moves of a server."""
        return _parse_moves(self._moves({"instance_uuid": server_id}))

    def open_moves(self, service_name: str) -> tuple[Move, ...]:
        """Return the moves from a host or to it that are not over: a call for each status that such a move may have."""
        found: dict[str, Json] = {}
        # In this order: a move that leaves one status in between is found in the next.
        for status in OPEN_STATUSES:
            for item in self._moves({"host": service_name, "status": status}):
                found[str(item["id"])] = item
        return _parse_moves(list(found.values()))

    def moves_since(self, service_name: str, since: datetime) -> tuple[Move, ...]:
        """Return the moves from a host that began since then; Nova tells those that have changed since."""
        query = {"host": service_name, "changes-since": zulu(since)}
        items = [item for item in self._moves(query) if item["migration_type"] in _OURS]
        found = _parse_moves(items)
        return tuple(move for move in found if move.source == service_name and move.started_at >= to_second(since))

    def owners(self, server_ids: Collection[str]) -> Mapping[str, ServerOwner]:
        """Return whose servers are; a call for each."""
        found: dict[str, ServerOwner] = {}
        for id_ in server_ids:
            try:
                item = self._nova.get(f"/servers/{quote(id_, safe='')}", microversion=MOVES)["server"]
            except NotFound:
                continue
            found[id_] = ServerOwner(item["tenant_id"], item["user_id"])
        return found

    def _moves(self, query: Mapping[str, str]) -> list[Json]:
        return list(self._nova.pages("/os-migrations", "migrations", microversion=MOVES, params=query))

    def rooms(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, HostRoom]:
        """Return the room on hosts."""
        inventories = self._placement.inventories(hypervisor_hostnames)
        consumers = self._placement.consumers(inventories)
        return {name: HostRoom(inventory, consumers.get(name, {})) for name, inventory in inventories.items()}

    def begin_move(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to move a server to a host, past no check of Nova."""
        action: Mapping[str, Any] = {"migrate": {"host": service_name}}
        if live:
            action = {"os-migrateLive": {"host": service_name, "block_migration": "auto"}}
        path = f"/servers/{quote(server_id, safe='')}/action"
        self._nova.call("POST", path, body=action, microversion=MOVES)

    def begin_move_abort(self, server_id: str, move_id: str) -> None:
        """Begin to abort a live migration, which Nova refuses with 400 in a status that does not allow it."""
        path = f"/servers/{quote(server_id, safe='')}/migrations/{quote(move_id, safe='')}"
        try:
            self._nova.call("DELETE", path, microversion=MOVES)
        except Explained as refusal:
            raise Conflict(refusal.message, public="The move of this server cannot be aborted any more") from refusal
        except NotFound:
            # Nova answers the same to a migration that is over and to one that never was.
            if any(move.id == move_id for move in self.moves_of(server_id)):
                raise Conflict(f"the move {move_id} of server {server_id} is over") from None
            raise


def _parse_moves(items: list[Json]) -> tuple[Move, ...]:
    return tuple(_move(item) for item in sorted(items, key=lambda item: int(item["id"])))


def _move(item: Json) -> Move:
    return Move(
        id=str(item["id"]),
        consumer=item["uuid"],
        server_id=item["instance_uuid"],
        status=item["status"] or "",
        live=item["migration_type"] == "live-migration",
        source=item["source_compute"] or "",
        target=item["dest_compute"],
        started_at=_instant(item["created_at"]),
        changed_at=_instant(item["updated_at"] or item["created_at"]),
    )


def _instant(text: str) -> datetime:
    """Return an instant of Nova, which writes UTC without saying so here."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).replace(microsecond=0)


def _occupant(item: Json, group: OccupantGroup | None) -> Occupant:
    flavor = item.get("flavor") or {}
    # Nova shows no image for a server that was booted from a volume.
    volume_backed = not item.get("image")
    return Occupant(
        id=item["id"],
        name=item["name"],
        project_id=item["tenant_id"],
        user_id=item["user_id"],
        host=item["OS-EXT-SRV-ATTR:host"],
        status=item["status"],
        task_state=item["OS-EXT-STS:task_state"],
        locked=bool(item.get("locked")),
        tags=frozenset(item.get("tags") or ()),
        hints=hints_of(item) if "scheduler_hints" in item else None,
        flavor=flavor.get("original_name"),
        extra_specs=dict(flavor.get("extra_specs") or {}),
        amounts=_amounts(flavor, volume_backed=volume_backed),
        volume_backed=volume_backed,
        group=group,
    )


def _amounts(flavor: Json, *, volume_backed: bool) -> Amounts:
    return amounts_of({**flavor, "disk": 0} if volume_backed else flavor)
