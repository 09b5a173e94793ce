# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager. Arguments and answers are values of ``blazar.model``.

Every call may raise the errors of ``blazar.model.base.errors``; each carries its HTTP status and a message for the
user. No call checks who the caller is: the API has checked the policy before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from blazar.model.base.paging import Page
from blazar.model.calendar.allocations import AllocationPage, AllocationQuestion, ResourceAllocations
from blazar.model.calendar.views import (
    CalendarPage,
    CalendarQuestion,
    Capacity,
    CapacityQuestion,
    PropertySummaries,
    Viewer,
)
from blazar.model.feeds import Feed, FeedContent, FeedOwner, FeedPage, FeedQuestion, FeedRequest
from blazar.model.journal.entries import HistoryPage
from blazar.model.leases.details import (
    BookedLease,
    ImmediateVerdict,
    LeaseDetails,
    LeaseFilter,
    LeaseMark,
    LeaseOwner,
    LeasePage,
    LeaseRows,
)
from blazar.model.leases.lease import Lease, LeaseRevision
from blazar.model.leases.requests import IdempotencyKey, LeaseChange, LeaseRequest
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.pages import (
    Candidate,
    PropertyPage,
    ResourcePage,
    ResourceQuestion,
    VisiblePage,
    VisibleResource,
)
from blazar.model.resources.resource import KindList, PropertyValues, Resource, ResourceKind, ResourceProperty
from blazar.model.search.availability import Availability, AvailabilityQuestion
from blazar.model.series.changes import SeriesChange
from blazar.model.series.details import SeriesDetails, SeriesOwner, SeriesPage, SeriesQuestion, SeriesRequest
from blazar.rpc.operations import (
    BookingRules,
    Budgets,
    Charges,
    Journal,
    Maintenances,
    PowerOfHosts,
    PriceLists,
    Problems,
    Reports,
    Service,
    Statements,
    Surgery,
    Transfers,
)
from blazar.rpc.subscriptions import Subscriptions


class Leases(Protocol):
    """The calls about leases."""

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project (None: of all), oldest first."""

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first: which shows what has changed."""

    def by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them, of at most 1 000 ids and in any order; those gone are left out."""

    def rows(self, lease_ids: Sequence[str]) -> LeaseRows:
        """Return leases of at most 1 000 ids as a list shows them, as rows; of the first ids that fit one answer."""

    def one(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""

    def create(self, request: LeaseRequest) -> Lease:
        """Book a lease or nothing. InvalidInput, NotEnoughResources, Contention, CloudError."""

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease or nothing. As for creation, and NotFound, WrongState."""

    def delete(self, lease_id: str, revisions: tuple[int, ...] | None = None) -> None:
        """Begin to end and delete a lease; its resources are released in the background. NotFound.

        PreconditionFailed if ``revisions`` are given, and it has none of them.
        """

    def owner(self, lease_id: str) -> LeaseOwner:
        """Return whose a lease is, past ones too; NotFound."""

    def details(self, lease_id: str) -> LeaseDetails:
        """Return a lease with what it holds, past ones too; NotFound."""

    def history(self, lease_id: str, page: Page) -> HistoryPage:
        """Return a page of what was done to a lease, past ones too. InvalidInput for an unknown marker."""

    def page(self, wanted: LeaseFilter, page: Page, known: tuple[LeaseMark, ...] = ()) -> LeasePage:
        """Return a page of leases with what they hold, past ones too. InvalidInput for an unknown marker.

        ``known`` are marks of leases that the caller has as they are shown without a price: these may be left out.
        """

    def book(self, request: LeaseRequest) -> BookedLease:
        """Create a lease as ``create`` does; for a dry run return what would be booked, with ids that do not last.

        If a lease was made with the key of the request, return that one. Conflict if the key was sent with another
        request, or the lease is being made.
        """

    def verdict(self, lease_id: str) -> ImmediateVerdict:
        """Return what has become of the request for an immediate lease; NotFound."""

    def replay(self, key: IdempotencyKey) -> BookedLease | None:
        """Return the lease that was made with a key, as it is now; None if there is none. Conflict as for ``book``."""

    def change(self, lease_id: str, change: LeaseChange) -> LeaseDetails:
        """Change a lease as ``update`` does; for a dry run return what it would be. PreconditionFailed."""

    def confirm(self, lease_id: str) -> LeaseDetails:
        """Confirm an unconfirmed lease: it is firm from then on. NotFound, Conflict."""

    def keep(self, lease_id: str, *, again: bool = False) -> LeaseDetails:
        """Keep a lease that is not used from being released; ``again``: also a second time. NotFound, Conflict."""

    def hold(self, lease_id: str, *, held: bool) -> LeaseDetails:
        """Never release a lease because it is not used, or no longer hold it. NotFound, Conflict."""


class Resources(Protocol):
    """The calls about the resources of a kind. NotFound if the kind is not served."""

    def all(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources, oldest first."""

    def page(self, kind: ResourceKind, question: ResourceQuestion) -> ResourcePage:
        """Return a page of the registered resources; InvalidInput."""

    def one(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Return one resource by its external id; NotFound."""

    def kinds(self) -> KindList:
        """Return the kinds that are served."""

    def visible_page(self, kind: ResourceKind, question: ResourceQuestion, viewer: Viewer) -> VisiblePage:
        """Return a page of the resources that a member may see, as it may see them; InvalidInput.

        A filter or an order by what it may not see is refused as if no resource had that.
        """

    def visible(self, kind: ResourceKind, resource_id: str, viewer: Viewer) -> VisibleResource:
        """Return one resource as a member may see it, by the id that it sees; NotFound if it may not."""

    def candidates(self, kind: ResourceKind) -> tuple[Candidate, ...]:
        """Return what the cloud has of a kind, registered or not; CloudError."""

    def register(self, kind: ResourceKind, request: Registration) -> Resource:
        """Register a resource. InvalidInput, NotFound (in the cloud), Conflict, CloudError."""

    def change(self, kind: ResourceKind, resource_id: str, change: ResourceChange) -> Resource:
        """Change a resource. NotFound; PreconditionFailed; Conflict if a live reservation requires a capability."""

    def refresh(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Read the cloud's data about a resource again. NotFound (also in the cloud), CloudError."""

    def unregister(self, kind: ResourceKind, resource_id: str, *, revisions: tuple[int, ...] | None = None) -> None:
        """Unregister a resource. NotFound; Conflict while it is allocated or in use; PreconditionFailed."""

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

    def allocation_page(self, kind: ResourceKind, question: AllocationQuestion) -> AllocationPage:
        """Return a page of the registered resources with their allocations; InvalidInput."""

    def properties(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that the resources have, by name."""

    def property_page(self, kind: ResourceKind, page: Page, *, include_private: bool) -> PropertyPage:
        """Return a page of these capabilities, in the order of their names; InvalidInput."""

    def set_property(self, kind: ResourceKind, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to all users or only to operators; NotFound."""


class Calendar(Protocol):
    """The calls about the calendar. Their answers have nothing of others that the viewer may not see."""

    def page(self, question: CalendarQuestion) -> CalendarPage:
        """Return a page of the calendar; InvalidInput."""

    def capacity(self, question: CapacityQuestion) -> Capacity:
        """Return how much is free over time; InvalidInput."""

    def properties(self, viewer: Viewer, resource_type: str) -> PropertySummaries:
        """Return the properties of the resources that serve a type, with their values; InvalidInput."""


class AvailabilitySearch(Protocol):
    """The calls about free time."""

    def find(self, question: AvailabilityQuestion) -> Availability:
        """Return when something is free, or why not; nothing is booked. InvalidInput, NotFound, Conflict."""


class Feeds(Protocol):
    """The calls about feeds of calendar programs. With an ``owner``, a feed of another user is NotFound."""

    def page(self, question: FeedQuestion) -> FeedPage:
        """Return a page of live feeds; InvalidInput."""

    def one(self, feed_id: str, owner: FeedOwner | None) -> Feed:
        """Return a live feed; NotFound."""

    def create(self, request: FeedRequest, secret_hash: str) -> Feed:
        """Make a feed whose link has the secret with this SHA-256 in hexadecimal; InvalidInput."""

    def delete(self, feed_id: str, owner: FeedOwner | None) -> None:
        """Revoke a feed: its link stops working at once. NotFound."""

    def content(self, secret_hash: str) -> FeedContent:
        """Return what the feed with this secret shows now; NotFound."""


class SeriesOfLeases(Protocol):
    """The calls about series of leases."""

    def page(self, question: SeriesQuestion) -> SeriesPage:
        """Return a page of the series that are not deleted; InvalidInput."""

    def owner(self, series_id: str) -> SeriesOwner:
        """Return whose a series is, deleted ones too; NotFound."""

    def one(self, series_id: str) -> SeriesDetails:
        """Return a series with its occurrences, deleted ones too; NotFound."""

    def create(self, request: SeriesRequest) -> SeriesDetails:
        """Book a series; for a dry run return what fits. InvalidInput, NotEnoughResources, UsageDenied, CloudError.

        With many occurrences it is booked in the background. If one was made with the key of the request, return that.
        """

    def replay(self, key: IdempotencyKey) -> SeriesDetails | None:
        """Return the series that was made with a key, as it is now; None if there is none. Conflict."""

    def change(self, series_id: str, change: SeriesChange) -> SeriesDetails:
        """Change a series from an occurrence on, all or nothing; return the one that goes on, which may be another.

        For a dry run return what it would be. NotFound, InvalidInput, Conflict, NotEnoughResources, UsageDenied.
        """

    def delete(self, series_id: str, *, ends_running: bool = False) -> None:
        """Begin to delete a series with its leases that have not begun, or with all of them. NotFound."""


class Manager(Protocol):
    """The manager's interface."""

    @property
    def leases(self) -> Leases:
        """The calls about leases."""

    @property
    def resources(self) -> Resources:
        """The calls about resources."""

    @property
    def availability(self) -> AvailabilitySearch:
        """The calls about free time."""

    @property
    def calendar(self) -> Calendar:
        """The calls about the calendar."""

    @property
    def feeds(self) -> Feeds:
        """The calls about feeds."""

    @property
    def journal(self) -> Journal:
        """The calls about what was done."""

    @property
    def subscriptions(self) -> Subscriptions:
        """The calls about subscriptions."""

    @property
    def series(self) -> SeriesOfLeases:
        """The calls about series of leases."""

    @property
    def maintenances(self) -> Maintenances:
        """The calls about maintenance windows."""

    @property
    def problems(self) -> Problems:
        """The calls about problems."""

    @property
    def budgets(self) -> Budgets:
        """The calls about budgets."""

    @property
    def statements(self) -> Statements:
        """The calls about what is to be paid for a month."""

    @property
    def charges(self) -> Charges:
        """The calls about the lines of the ledger."""

    @property
    def reports(self) -> Reports:
        """The calls for reports."""

    @property
    def power(self) -> PowerOfHosts:
        """The calls about the power of hosts."""

    @property
    def price_lists(self) -> PriceLists:
        """The calls about what leases cost."""

    @property
    def rules(self) -> BookingRules:
        """The calls about rules of operators."""

    @property
    def surgery(self) -> Surgery:
        """The calls for surgery on leases."""

    @property
    def transfers(self) -> Transfers:
        """The calls by which leases change hands."""

    @property
    def service(self) -> Service:
        """The calls about the service itself."""


NOUNS: Mapping[str, type] = {
    "leases": Leases,
    "resources": Resources,
    "calendar": Calendar,
    "availability": AvailabilitySearch,
    "feeds": Feeds,
    "journal": Journal,
    "subscriptions": Subscriptions,
    "series": SeriesOfLeases,
    "maintenances": Maintenances,
    "problems": Problems,
    "budgets": Budgets,
    "statements": Statements,
    "charges": Charges,
    "reports": Reports,
    "power": PowerOfHosts,
    "price_lists": PriceLists,
    "rules": BookingRules,
    "surgery": Surgery,
    "transfers": Transfers,
    "service": Service,
}
"""The parts of the interface by name. A call is named by its part and its method, as ``leases.create``."""
