# SPDX-License-Identifier: Apache-2.0
"""What the API asks of a manager. Arguments and answers are values of ``blazar.model``.

Every call may raise the errors of ``blazar.model.errors``; each carries its HTTP status and a message for the user.
No call looks at who is asking: the API has checked the policy before.
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
        """Return the ids and revisions of the same leases, oldest first: enough to see which have changed."""

    def leases_by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them, of at most 1 000 ids and in any order; those gone are left out."""

    def lease(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""

    def create_lease(self, request: LeaseRequest) -> Lease:
        """Book a lease or nothing. InvalidInput, NotEnoughResources, Contention, CloudError."""

    def update_lease(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease or nothing. As for creation, and NotFound, WrongState."""

    def delete_lease(self, lease_id: str) -> None:
        """Begin the end of a lease; what it still holds is released in the background. NotFound."""

    def hosts(self) -> tuple[Resource, ...]:
        """Return the registered hosts, oldest first."""

    def host(self, host_id: str) -> Resource:
        """Return one host by the cloud's id of it; NotFound."""

    def create_host(self, request: HostRequest) -> Resource:
        """Register a host. InvalidInput, NotFound (in the cloud), Conflict, CloudError."""

    def update_host(self, host_id: str, change: HostChange) -> Resource:
        """Set or take away capabilities. NotFound; Conflict if a live reservation asks for one of them."""

    def refresh_host(self, host_id: str) -> Resource:
        """Read anew what the cloud tells of a host. NotFound (also in the cloud), CloudError."""

    def move_reservation(self, host_id: str, reservation_id: str) -> ResourceAllocations:
        """Give a reservation another host in the place of this one; return what is promised of this one then.

        NotFound; NotEnoughResources if nothing else fits; Conflict if servers run there, or the lease is busy.
        """

    def delete_host(self, host_id: str) -> None:
        """Give a host back to the cloud. NotFound; Conflict while it is allocated or runs servers."""

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
        """Show a capability to everybody or only to operators; NotFound."""

    def floating_ips(self) -> tuple[Resource, ...]:
        """Return the registered addresses, oldest first."""

    def floating_ip(self, floating_ip_id: str) -> Resource:
        """Return one address by its id; NotFound."""

    def create_floating_ip(self, request: FloatingIpRequest) -> Resource:
        """Register an address. InvalidInput, NotFound (no subnet has it), Conflict, CloudError."""

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Forget an address. NotFound; Conflict while it is promised to a lease."""

    def floating_ip_allocations(
        self, *, floating_ip_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by address, narrowed as those of hosts are."""
