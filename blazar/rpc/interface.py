# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager. Arguments and answers are values of ``blazar.model``.

Every call may raise the errors of ``blazar.model.errors``; each carries its HTTP status and a message for the user.
No call checks who the caller is: the API has checked the policy before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from blazar.model.demand import ResourceAllocations
from blazar.model.lease import Lease, LeaseRevision
from blazar.model.requests import LeaseChange, LeaseRequest, Registration, ResourceChange
from blazar.model.resource import PropertyValues, Resource, ResourceKind, ResourceProperty


class Leases(Protocol):
    """The calls about leases."""

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project (None: of all), oldest first."""

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first: which shows what has changed."""

    def by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them, of at most 1 000 ids and in any order; those gone are left out."""

    def one(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""

    def create(self, request: LeaseRequest) -> Lease:
        """Book a lease or nothing. InvalidInput, NotEnoughResources, Contention, CloudError."""

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease or nothing. As for creation, and NotFound, WrongState."""

    def delete(self, lease_id: str) -> None:
        """Begin to end and delete a lease; its resources are released in the background. NotFound."""


class Resources(Protocol):
    """The calls about the resources of a kind. NotFound if the kind is not served."""

    def all(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources, oldest first."""

    def one(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Return one resource by its external id; NotFound."""

    def register(self, kind: ResourceKind, request: Registration) -> Resource:
        """Register a resource. InvalidInput, NotFound (in the cloud), Conflict, CloudError."""

    def change(self, kind: ResourceKind, resource_id: str, change: ResourceChange) -> Resource:
        """Change a resource. NotFound; Conflict if a live reservation requires one of the capabilities."""

    def refresh(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Read the cloud's data about a resource again. NotFound (also in the cloud), CloudError."""

    def unregister(self, kind: ResourceKind, resource_id: str) -> None:
        """Unregister a resource, which returns to the cloud. NotFound; Conflict while it is allocated or in use."""

    def move(self, kind: ResourceKind, resource_id: str, reservation_id: str) -> ResourceAllocations:
        """Replace this resource of a reservation by another; return the allocations that this one has then.

        NotFound; NotEnoughResources if no other fits; Conflict if it is in use, or the lease is busy.
        """

    def allocations(
        self,
        kind: ResourceKind,
        *,
        resource_id: str | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by resource, also of resources that have none.

        ``resource_id`` narrows the answer to one resource (NotFound); ``lease_id`` and ``reservation_id`` narrow the
        allocations (a resource left with none is still listed) and include past ones.
        """

    def properties(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that the resources have, by name."""

    def set_property(self, kind: ResourceKind, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to all users or only to operators; NotFound."""


class Manager(Protocol):
    """The manager's interface."""

    @property
    def leases(self) -> Leases:
        """The calls about leases."""

    @property
    def resources(self) -> Resources:
        """The calls about resources."""


NOUNS: Mapping[str, type] = {"leases": Leases, "resources": Resources}
"""The parts of the interface by name. A call is named by its part and its method, as ``leases.create``."""
