# SPDX-License-Identifier: Apache-2.0
"""The resource service: the operations of operators on the resources of each kind."""

from __future__ import annotations

from blazar.manager.health.healing import Healing
from blazar.manager.health.monitor import Monitor
from blazar.model.allocations import ResourceAllocations
from blazar.model.errors import NotFound
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import FLOATING_IP, HOST, PropertyValues, Resource, ResourceKind, ResourceProperty
from blazar.resources.floating_ips.service import FloatingIpService
from blazar.resources.hosts.service import HostService, OnReturn


class ResourceService:
    """Registers, changes and unregisters resources, and lists their allocations."""

    def __init__(
        self,
        hosts: HostService,
        floating_ips: FloatingIpService,
        healing: Healing,
        monitor: Monitor,
        on_return: OnReturn,
    ) -> None:
        self._hosts = hosts
        self._floating_ips = floating_ips
        self._healing = healing
        self._monitor = monitor
        self._on_return = on_return

    def all(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources, oldest first."""
        return self._of(kind).all()

    def one(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Return one resource; NotFound."""
        return self._of(kind).one(resource_id)

    def register(self, kind: ResourceKind, request: Registration) -> Resource:
        """Register a resource."""
        return self._of(kind).register(request)

    def change(self, kind: ResourceKind, resource_id: str, change: ResourceChange) -> Resource:
        """Change capabilities of a resource."""
        return self._host_service(kind).change(resource_id, change)

    def refresh(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Update a resource from the cloud."""
        host = self._host_service(kind).refresh(resource_id, on_return=self._on_return)
        self._monitor.heal_soon()
        return host

    def unregister(self, kind: ResourceKind, resource_id: str) -> None:
        """Unregister a resource."""
        self._of(kind).unregister(resource_id)

    def move(self, kind: ResourceKind, resource_id: str, reservation_id: str) -> ResourceAllocations:
        """Replace this resource of a reservation by another one."""
        self._healing.move_off(self._of(kind).one(resource_id), reservation_id)
        return self.allocations(kind, resource_id=resource_id)[0]

    def allocations(
        self,
        kind: ResourceKind,
        *,
        resource_id: str | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by resource."""
        return self._of(kind).allocations(resource_id=resource_id, lease_id=lease_id, reservation_id=reservation_id)

    def properties(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that resources have."""
        return self._host_service(kind).properties(include_private=include_private)

    def set_property(self, kind: ResourceKind, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to everybody or only to operators."""
        return self._host_service(kind).set_property(name, private=private)

    def _of(self, kind: ResourceKind) -> HostService | FloatingIpService:
        return self._hosts if kind == HOST else self._floating_ips if kind == FLOATING_IP else self._host_service(kind)

    def _host_service(self, kind: ResourceKind) -> HostService:
        if kind != HOST:
            raise NotFound(f"there are no resources of kind {kind}")
        return self._hosts
