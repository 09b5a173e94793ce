# SPDX-License-Identifier: Apache-2.0
"""Nova, and Glance for the snapshots of servers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access, Json, VersionMissing
from blazar.clouds.openstack.flavors import OpenStackFlavors
from blazar.clouds.ports import Aggregate, Hypervisor, Image, Migration, MigrationState, Server
from blazar.clouds.shared import SharedRead
from blazar.model.amounts import Amounts
from blazar.model.errors import CloudRefused, CloudUnavailable, Conflict, NotFound

AGGREGATES = "2.1"
HYPERVISORS = "2.52"
"""The last in which a hypervisor's id is the number that the API of Blazar shows, with sizes and pages."""
SERVERS = "2.67"
"""Tells whether a server is locked, and the id of an image that is made of it."""

HINTS = "2.100"
"""The first that tells the scheduler hints of a server."""

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
"""Nova's words; all others mean that it is at work."""


class OpenStackCompute(OpenStackFlavors):
    """Implements the compute port."""

    def __init__(self, access: Access, *, az_aware: bool = True) -> None:
        super().__init__(access)
        self._glance = access.image
        self._az_aware = az_aware
        self._shared_aggregates = SharedRead(self._read_aggregates)

    # Hypervisors

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""
        found = list(self._nova.pages("/os-hypervisors/detail", "hypervisors", microversion=HYPERVISORS))
        zones = self._zones()
        return tuple(_hypervisor(item, zones) for item in found)

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname."""
        if id is None:
            id = self._id_of(hostname or "")
        if not id.isdigit():
            raise NotFound(f"the cloud has no hypervisor {id!r}")
        try:
            answer = self._nova.get(f"/os-hypervisors/{id}", microversion=HYPERVISORS)
        except NotFound:
            raise NotFound(f"the cloud has no hypervisor {id}") from None
        return _hypervisor(answer["hypervisor"], self._zones())

    def _id_of(self, hostname: str) -> str:
        """Return the id of the hypervisor with exactly this name; Nova's own search takes a part of it for enough."""
        try:
            answer = self._nova.get(f"/os-hypervisors/{quote(hostname, safe='')}/search", microversion=HYPERVISORS)
        except (NotFound, CloudRefused):
            answer = {"hypervisors": []}
        for item in answer["hypervisors"]:
            if item["hypervisor_hostname"] == hostname:
                return str(item["id"])
        raise NotFound(f"the cloud has no hypervisor {hostname!r}")

    def _zones(self) -> Mapping[str, str]:
        """Return the zone that the cloud shows for each compute host."""
        if not self._az_aware:
            return {}
        zones: dict[str, str] = {}
        answer = self._nova.get("/os-availability-zone/detail", microversion=AGGREGATES)
        for zone in answer["availabilityZoneInfo"]:
            for host, services in (zone.get("hosts") or {}).items():
                if "nova-compute" in services:
                    zones[host] = zone["zoneName"]
        return zones

    # Aggregates

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return all aggregates, the oldest first."""
        return self._shared_aggregates()

    def _read_aggregates(self) -> tuple[Aggregate, ...]:
        answer = self._nova.get("/os-aggregates", microversion=AGGREGATES)
        return tuple(sorted((_aggregate(item) for item in answer["aggregates"]), key=lambda a: a.id))

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate of this name."""
        return next((aggregate for aggregate in self.aggregates() if aggregate.name == name), None)

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate; Nova takes the metadata in a second call, so whoever finds one without sets it."""
        body = {"aggregate": {"name": name, "availability_zone": availability_zone}}
        made = self._nova.call("POST", "/os-aggregates", body=body, microversion=AGGREGATES)["aggregate"]
        if metadata:
            self.set_aggregate_metadata(made["id"], metadata)
        return Aggregate(made["id"], name, availability_zone, metadata=dict(metadata))

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set and take away metadata."""
        if not metadata:
            self._nova.get(f"/os-aggregates/{aggregate_id}", microversion=AGGREGATES)
            return
        self._act(aggregate_id, {"set_metadata": {"metadata": dict(metadata)}})

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate that has no hosts."""
        try:
            self._nova.call("DELETE", f"/os-aggregates/{aggregate_id}", microversion=AGGREGATES)
        except CloudRefused as error:
            # Nova answers 400 where it means that there are hosts in it.
            raise Conflict(error.message) from error

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate."""
        self._act(aggregate_id, {"add_host": {"host": service_name}})

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Take a host out of an aggregate."""
        self._act(aggregate_id, {"remove_host": {"host": service_name}})

    def _act(self, aggregate_id: int, action: Mapping[str, Any]) -> None:
        self._nova.call("POST", f"/os-aggregates/{aggregate_id}/action", body=action, microversion=AGGREGATES)

    # Servers

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return every server of every project on a host, those in the recycle bin included."""
        query = {"all_tenants": "1", "host": service_name, "soft_deleted": "1"}
        return self._servers(query)

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return every server of every project that has a flavor, those on no host included; Nova's own order."""
        return self._servers({"all_tenants": "1", "flavor": flavor_id, "soft_deleted": "1"})

    def _servers(self, query: Mapping[str, str]) -> tuple[Server, ...]:
        found = self._nova.pages("/servers/detail", "servers", microversion=SERVERS, params=query)
        return tuple(_server(item) for item in found)

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the servers of a reservation that are on no host; none where Nova does not tell hints."""
        stranded = []
        for status in ("SHELVED_OFFLOADED", "ERROR", "SOFT_DELETED"):
            query = {"all_tenants": "1", "project_id": project_id, "status": status}
            try:
                items = list(self._nova.pages("/servers/detail", "servers", microversion=HINTS, params=query))
            except VersionMissing:
                return ()
            stranded += [item for item in items if _is_hinted(item, reservation_id)]
        return tuple(_server(item) for item in stranded if not item.get("OS-EXT-SRV-ATTR:host"))

    def delete_server(self, server_id: str) -> None:
        """Begin to force-delete a server."""
        try:
            self._server_action(server_id, {"forceDelete": None})
        except NotFound:
            return
        except Conflict:
            # In the middle of something that does not bear it, as its own deletion: the plain way waits for that.
            self._delete_plainly(server_id)

    def _delete_plainly(self, server_id: str) -> None:
        try:
            self._nova.call("DELETE", f"/servers/{server_id}", microversion=SERVERS)
        except NotFound:
            return
        except Conflict as error:
            raise CloudUnavailable(f"server {server_id} can not be deleted yet: {error.message}") from error

    def snapshot_server(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server, and give it to the server's project."""
        server = self._nova.get(f"/servers/{server_id}", microversion=SERVERS)["server"]
        answer = self._server_action(server_id, {"createImage": {"name": name, "metadata": dict(metadata)}})
        self.give_image(str(answer["image_id"]), server["tenant_id"])

    def _server_action(self, server_id: str, action: Mapping[str, Any]) -> Json:
        return self._nova.call(
            "POST", f"/servers/{quote(server_id, safe='')}/action", body=action, microversion=SERVERS
        )

    # Moves

    def migrate_server(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to move a server to a host.

        Live, past the scheduler (which would keep the server where its hint says), as microversions up to 2.67 allow;
        Nova still claims the resources on the host. Cold, the scheduler is asked; our filter lets operators through.
        """
        if live:
            action = {"os-migrateLive": {"host": service_name, "block_migration": "auto", "force": True}}
        else:
            action = {"migrate": {"host": service_name}}
        self._server_action(server_id, action)

    def confirm_migration(self, server_id: str) -> None:
        """Accept a cold move."""
        self._server_action(server_id, {"confirmResize": None})

    def moves_to_confirm(self, service_name: str) -> tuple[str, ...]:
        """Return the servers that were moved cold away from a host and wait to be confirmed."""
        query = {"host": service_name, "status": "finished"}
        found = self._nova.pages("/os-migrations", "migrations", microversion=SERVERS, params=query)
        return tuple(item["instance_uuid"] for item in found if item["source_compute"] == service_name)

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

    def give_image(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image: Nova leaves the snapshots that we ask for to us."""
        self._glance.call(
            "PATCH",
            f"/images/{image_id}",
            body=[{"op": "replace", "path": "/owner", "value": project_id}],
            content_type="application/openstack-images-v2.1-json-patch",
        )

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images that carry a reservation's id, whoever owns them."""
        query = {RESERVATION: reservation_id, "limit": "100"}
        found = self._glance.pages("/images", "images", params=query)
        return tuple(_image(item) for item in found)


def _hypervisor(item: Json, zones: Mapping[str, str]) -> Hypervisor:
    info = item.get("cpu_info", "")
    return Hypervisor(
        id=str(item["id"]),
        hypervisor_hostname=item["hypervisor_hostname"],
        service_name=item["service"]["host"],
        hypervisor_type=item["hypervisor_type"],
        hypervisor_version=item["hypervisor_version"],
        vcpus=item["vcpus"],
        memory_mb=item["memory_mb"],
        local_gb=item["local_gb"],
        cpu_info=info if isinstance(info, str) else json.dumps(info, sort_keys=True),
        availability_zone=zones.get(item["service"]["host"], ""),
        up=item["state"] == "up",
        enabled=item["status"] == "enabled",
    )


def _aggregate(item: Json) -> Aggregate:
    return Aggregate(
        id=item["id"],
        name=item["name"],
        availability_zone=item["availability_zone"],
        hosts=tuple(item["hosts"]),
        metadata=_without(item["metadata"], ("availability_zone",)),
    )


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
        amounts=_amounts(flavor),
        created_at=item.get("created", ""),
    )


def _amounts(flavor: Json) -> Amounts:
    """Return what a flavor takes by Nova's own reckoning: swap is in MiB, and rounded up to GiB of the disk."""
    disk = flavor.get("disk", 0) + flavor.get("ephemeral", 0) + -(-int(flavor.get("swap") or 0) // 1024)
    return Amounts.of({"VCPU": flavor.get("vcpus", 0), "MEMORY_MB": flavor.get("ram", 0), "DISK_GB": disk})


def _image(item: Json) -> Image:
    metadata = {key: value for key, value in item.items() if key.startswith("blazar:")}
    return Image(
        id=item["id"],
        name=item["name"],
        project_id=item["owner"],
        status=item["status"],
        metadata=metadata,
    )


def _without(metadata: Mapping[str, str], keys: Iterable[str]) -> Mapping[str, str]:
    return {key: value for key, value in metadata.items() if key not in keys}


def _is_hinted(item: Json, reservation_id: str) -> bool:
    hint = (item.get("scheduler_hints") or {}).get("reservation")
    return reservation_id in hint if isinstance(hint, list) else hint == reservation_id
