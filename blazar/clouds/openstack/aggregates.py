# SPDX-License-Identifier: Apache-2.0
"""Nova's hypervisors and host aggregates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import Json
from blazar.clouds.ports.compute import Aggregate, AggregateList, Hypervisor
from blazar.clouds.shared_read import SharedRead
from blazar.model.base.errors import CloudRefused, Conflict, NotFound

AGGREGATES = "2.1"
SERVICES = "2.52"
"""The last in which a service is named by its host."""
HYPERVISORS = "2.52"
"""The last in which the id of a hypervisor is the number that Blazar's API shows; it has sizes and pages."""

_COMPUTE = "nova-compute"


class OpenStackAggregates:
    """Implements the roles of hypervisors and aggregates."""

    def __init__(self, access: Access, *, az_aware: bool = True) -> None:
        self._nova = access.compute
        self._az_aware = az_aware
        self._shared_aggregates = SharedRead(self._read_aggregates)

    # Hypervisors

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""
        found = list(self._nova.pages("/os-hypervisors/detail", "hypervisors", microversion=HYPERVISORS))
        zones = self._read_zones()
        return tuple(_hypervisor(item, zones) for item in found)

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname."""
        if id is None:
            id = self._hypervisor_id(hostname or "")
        if not id.isdigit():
            raise NotFound(f"the cloud has no hypervisor {id!r}")
        try:
            answer = self._nova.get(f"/os-hypervisors/{id}", microversion=HYPERVISORS)
        except NotFound:
            raise NotFound(f"the cloud has no hypervisor {id}") from None
        return _hypervisor(answer["hypervisor"], self._read_zones())

    def disable_service(self, service_name: str, reason: str) -> None:
        """Disable the nova-compute of a host with a reason."""
        body = {"host": service_name, "binary": _COMPUTE, "disabled_reason": reason}
        self._nova.call("PUT", "/os-services/disable-log-reason", body=body, microversion=SERVICES)

    def enable_service(self, service_name: str) -> None:
        """Enable the nova-compute of a host."""
        body = {"host": service_name, "binary": _COMPUTE}
        self._nova.call("PUT", "/os-services/enable", body=body, microversion=SERVICES)

    def _hypervisor_id(self, hostname: str) -> str:
        """Return the id of the hypervisor with exactly this name; Nova's own search also finds parts of names."""
        try:
            answer = self._nova.get(f"/os-hypervisors/{quote(hostname, safe='')}/search", microversion=HYPERVISORS)
        except (NotFound, CloudRefused):
            answer = {"hypervisors": []}
        for item in answer["hypervisors"]:
            if item["hypervisor_hostname"] == hostname:
                return str(item["id"])
        raise NotFound(f"the cloud has no hypervisor {hostname!r}")

    def _read_zones(self) -> Mapping[str, str]:
        """Return the zone that the cloud shows for each compute host."""
        if not self._az_aware:
            return {}
        zones: dict[str, str] = {}
        answer = self._nova.get("/os-availability-zone/detail", microversion=AGGREGATES)
        for zone in answer["availabilityZoneInfo"]:
            for host, services in (zone.get("hosts") or {}).items():
                if _COMPUTE in services:
                    zones[host] = zone["zoneName"]
        return zones

    # Aggregates

    def aggregates(self) -> AggregateList:
        """Return all aggregates, the oldest first."""
        return self._shared_aggregates()

    def _read_aggregates(self) -> AggregateList:
        answer = self._nova.get("/os-aggregates", microversion=AGGREGATES)
        return AggregateList(sorted((_aggregate(item) for item in answer["aggregates"]), key=lambda a: a.id))

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate of this name."""
        return self.aggregates().named(name)

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate. Its metadata takes a second call, so callers set it on an aggregate that has none."""
        body = {"aggregate": {"name": name, "availability_zone": availability_zone}}
        made = self._nova.call("POST", "/os-aggregates", body=body, microversion=AGGREGATES)["aggregate"]
        if metadata:
            self.set_aggregate_metadata(made["id"], metadata)
        return Aggregate(made["id"], name, availability_zone, metadata=dict(metadata))

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set and remove metadata."""
        if not metadata:
            self._nova.get(f"/os-aggregates/{aggregate_id}", microversion=AGGREGATES)
            return
        self._post_action(aggregate_id, {"set_metadata": {"metadata": dict(metadata)}})

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate that has no hosts."""
        try:
            self._nova.call("DELETE", f"/os-aggregates/{aggregate_id}", microversion=AGGREGATES)
        except CloudRefused as error:
            # Nova answers 400 if the aggregate has hosts.
            raise Conflict(error.message) from error

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate."""
        self._post_action(aggregate_id, {"add_host": {"host": service_name}})

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Take a host out of an aggregate."""
        self._post_action(aggregate_id, {"remove_host": {"host": service_name}})

    def _post_action(self, aggregate_id: int, action: Mapping[str, Any]) -> None:
        self._nova.call("POST", f"/os-aggregates/{aggregate_id}/action", body=action, microversion=AGGREGATES)


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
        disabled_reason=item["service"].get("disabled_reason"),
    )


def _aggregate(item: Json) -> Aggregate:
    return Aggregate(
        id=item["id"],
        name=item["name"],
        availability_zone=item["availability_zone"],
        hosts=tuple(item["hosts"]),
        metadata=_remove_keys(item["metadata"], ("availability_zone",)),
    )


def _remove_keys(metadata: Mapping[str, str], keys: Iterable[str]) -> Mapping[str, str]:
    return {key: value for key, value in metadata.items() if key not in keys}
