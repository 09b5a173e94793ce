# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager. Arguments and answers are values of ``blazar.model``.

Every call may raise the errors of ``blazar.model.errors``; each carries its HTTP status and a message for the user.
No call checks who the caller is: the API has checked the policy before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from blazar.model.allocations import ResourceAllocations
from blazar.model.lease import Lease, LeaseRevision
from blazar.model.requests import FloatingIpRequest, HostChange, HostRequest, LeaseChange, LeaseRequest
from blazar.model.resource import PropertyValues, Resource, ResourceProperty


class Manager(Protocol):
    """The manager's interface."""

    def leases(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project (None: of all), oldest first."""

    def lease_revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first: which shows what has changed."""

    def leases_by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them, of at most 1 000 ids and in any order; those gone are left out."""

    def lease(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""

    def create_lease(self, request: LeaseRequest) -> Lease:
        """Book a lease or nothing. InvalidInput, NotEnoughResources, Contention, CloudError."""

    def update_lease(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease or nothing. As for creation, and NotFound, WrongState."""

    def delete_lease(self, lease_id: str) -> None:
        """Begin to end and delete a lease; its resources are released in the background. NotFound."""

    def hosts(self) -> tuple[Resource, ...]:
        """Return the registered hosts, oldest first."""

    def host(self, host_id: str) -> Resource:
        """Return one host by the cloud's id of it; NotFound."""

    def create_host(self, request: HostRequest) -> Resource:
        """Register a host. InvalidInput, NotFound (in the cloud), Conflict, CloudError."""

    def update_host(self, host_id: str, change: HostChange) -> Resource:
        """Set or remove capabilities. NotFound; Conflict if a live reservation requires one of them."""

    def refresh_host(self, host_id: str) -> Resource:
        """Read the cloud's data about a host again. NotFound (also in the cloud), CloudError."""

    def move_reservation(self, host_id: str, reservation_id: str) -> ResourceAllocations:
        """Replace this host of a reservation by another; return the allocations that this host has then.

        NotFound; NotEnoughResources if no other host fits; Conflict if servers run there, or the lease is busy.
        """

    def delete_host(self, host_id: str) -> None:
        """Unregister a host, which returns to the cloud. NotFound; Conflict while it is allocated or runs servers."""

    def host_allocations(
        self, *, host_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by host, also of hosts that have none.

        ``host_id`` narrows the answer to one host (NotFound); ``lease_id`` and ``reservation_id`` narrow the
        allocations (a host left with none is still listed).
        """

    def host_properties(self, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that hosts have, by name."""

    def set_host_property(self, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to all users or only to operators; NotFound."""

    def floating_ips(self) -> tuple[Resource, ...]:
        """Return the registered addresses, oldest first."""

    def floating_ip(self, floating_ip_id: str) -> Resource:
        """Return one address by its id; NotFound."""

    def create_floating_ip(self, request: FloatingIpRequest) -> Resource:
        """Register an address. InvalidInput, NotFound (no subnet has it), Conflict, CloudError."""

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Unregister an address. NotFound; Conflict while it is allocated to a lease."""

    def floating_ip_allocations(
        self, *, floating_ip_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by address, narrowed as those of hosts are."""
