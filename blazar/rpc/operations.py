# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager about the service itself, what its operators do with its hosts, and for reports.

As for those of ``interface``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Protocol

from blazar.model.base.moments import Duration, Moment
from blazar.model.base.paging import Page
from blazar.model.base.service_info import ServiceFacts
from blazar.model.billing.budgets import BudgetPage, BudgetQuestion
from blazar.model.billing.published import Publication, PublishedList
from blazar.model.billing.statements import (
    ChargePage,
    ChargeQuestion,
    CorrectionRequest,
    MadeCharge,
    Statement,
    StatementPage,
    StatementQuestion,
)
from blazar.model.energy.carbon import LeaseEnergy
from blazar.model.journal.views import JournalPage, JournalQuestion
from blazar.model.leases.details import LeaseDetails
from blazar.model.leases.requests import Actor, IdempotencyKey
from blazar.model.maintenance.windows import (
    Answer,
    Maintenance,
    MaintenanceChange,
    MaintenancePage,
    MaintenanceQuestion,
    MaintenanceRequest,
)
from blazar.model.managers.presence import KnownManager, Pong
from blazar.model.power.hosts import PowerChange, PoweredHost, PowerLogPage, PowerPage, PowerQuestion, PowerReport
from blazar.model.problems.problems import Problem, ProblemAction, ProblemPage, ProblemQuestion, Repair, RepairRequest
from blazar.model.reports.capacity import CapacityReport, CapacityReportQuestion
from blazar.model.reports.demand import DemandQuestion, DemandReport
from blazar.model.reports.forecast import Forecast, ForecastQuestion
from blazar.model.reports.usage import UsageQuestion, UsageReport
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.model.rules.values import BookingRule, WrittenRule
from blazar.model.surgery import MergeRequest, OfferPage, OfferRequest, Operated, SplitRequest, SwapRequest, Terms


class Maintenances(Protocol):
    """The calls about maintenance windows, which are for operators."""

    def page(self, question: MaintenanceQuestion) -> MaintenancePage:
        """Return a page of maintenance windows, without their leases; InvalidInput."""

    def one(self, maintenance_id: str) -> Maintenance:
        """Return a maintenance window with its leases; NotFound."""

    def create(self, request: MaintenanceRequest, *, dry_run: bool = False) -> Answer:
        """Return the impact of a maintenance window, and open it unless this is a dry run.

        InvalidInput; Conflict, with the impact of now, if another one was shown; Contention.
        """

    def change(self, maintenance_id: str, change: MaintenanceChange, *, dry_run: bool = False) -> Answer:
        """Return the impact of a change of a window, and make it unless this is a dry run.

        As for creation, and NotFound, WrongState, PreconditionFailed.
        """

    def end(self, maintenance_id: str, revisions: tuple[int, ...] | None = None) -> Maintenance:
        """End a window that has begun. NotFound, WrongState, PreconditionFailed."""

    def delete(self, maintenance_id: str, revisions: tuple[int, ...] | None = None) -> None:
        """Cancel a window that has not begun. NotFound, WrongState, PreconditionFailed."""


class Problems(Protocol):
    """The calls about problems, which are for operators."""

    def page(self, question: ProblemQuestion) -> ProblemPage:
        """Return a page of problems, the oldest first; InvalidInput."""

    def one(self, problem_id: str) -> Problem:
        """Return a problem; NotFound."""

    def act(self, problem_id: str, action: ProblemAction, request: RepairRequest) -> Repair:
        """Do something about a problem, or say what would be done. NotFound, Conflict, WrongState, InvalidInput."""


class Reports(Protocol):
    """The calls for reports."""

    def usage(self, question: UsageQuestion) -> UsageReport:
        """Return for whom resources were reserved in a period, and what became of that; InvalidInput."""

    def capacity(self, question: CapacityReportQuestion) -> CapacityReport:
        """Return in which states the resources were in a period; InvalidInput."""

    def demand(self, question: DemandQuestion) -> DemandReport:
        """Return what was asked for and not granted in a period; InvalidInput."""

    def forecast(self, question: ForecastQuestion) -> Forecast:
        """Return what is promised and expected of the days to come; InvalidInput."""

    def lease_energy(self, lease_id: str) -> LeaseEnergy:
        """Return what the whole hosts of a lease drew and emitted until now."""


class PriceLists(Protocol):
    """The calls about what leases cost."""

    def all(self) -> tuple[PublishedList, ...]:
        """Return all price lists, oldest first."""

    def one(self, version: int) -> PublishedList:
        """Return a price list; NotFound."""

    def publish(self, document: Mapping[str, Any], by: Actor, *, dry_run: bool = False) -> Publication:
        """Publish a price list, unless this is a dry run, and return what it changes.

        InvalidInput for a wrong document; Conflict if somebody else has published one meanwhile.
        """


class BookingRules(Protocol):
    """The calls about the rules of operators on when projects may have leases."""

    def all(self) -> tuple[BookingRule, ...]:
        """Return all rules by name."""

    def one(self, name: str) -> BookingRule:
        """Return a rule; NotFound."""

    def write(self, name: str, document: Mapping[str, Any], revisions: tuple[int, ...] | None = None) -> WrittenRule:
        """Write a rule, a new one or another one of this name.

        InvalidInput for a wrong document; PreconditionFailed if it has none of these revisions; Conflict if somebody
        else writes one at the same time.
        """

    def delete(self, name: str, revisions: tuple[int, ...] | None = None) -> None:
        """Delete a rule. NotFound, PreconditionFailed."""


class Budgets(Protocol):
    """The calls about budgets."""

    def page(self, question: BudgetQuestion) -> BudgetPage:
        """Return the budgets of one project, or of a page of projects; InvalidInput, EnforcementUnavailable."""


class Statements(Protocol):
    """The calls about what is to be paid for a month."""

    def page(self, question: StatementQuestion) -> StatementPage:
        """Return a page of statements; InvalidInput for an unknown marker."""

    def one(self, project_id: str, month: date) -> Statement:
        """Return the statement of a project and month, of which this is the first day; NotFound."""


class Charges(Protocol):
    """The calls about the lines of the ledger."""

    def page(self, question: ChargeQuestion) -> ChargePage:
        """Return a page of charges; InvalidInput for an unknown marker."""

    def replay(self, key: IdempotencyKey) -> MadeCharge | None:
        """Return the correction that was made with a key; None if there is none. Conflict."""

    def correct(self, request: CorrectionRequest, key: IdempotencyKey | None = None) -> MadeCharge:
        """Answer a charge that was wrong by another one, once for each key, and return that; NotFound, InvalidInput."""


class PowerOfHosts(Protocol):
    """The calls about the power of hosts, and of pools of volumes, which are for operators."""

    def report(self, since: Moment | Duration | None = None) -> PowerReport:
        """Return what sleeps now, and what that has saved since a moment, by default 30 days ago; InvalidInput."""

    def page(self, question: PowerQuestion, kind: ResourceKind = HOST) -> PowerPage:
        """Return a page of the registered hosts, or pools, with their power; InvalidInput."""

    def one(self, host_id: str, kind: ResourceKind = HOST) -> PoweredHost:
        """Return a host with its power; NotFound."""

    def change(self, host_id: str, change: PowerChange, kind: ResourceKind = HOST) -> PoweredHost:
        """Change by what a host is switched, and whether it ever is. NotFound, InvalidInput, Conflict, CloudError."""

    def wake(self, host_id: str, kind: ResourceKind = HOST) -> PoweredHost:
        """Have a host on for some hours, whether it sleeps or not. NotFound; WrongState if nothing switches hosts."""

    def log(self, host_id: str, page: Page, kind: ResourceKind = HOST) -> PowerLogPage:
        """Return a page of what has become of the power of a host. NotFound; InvalidInput for an unknown marker."""


class Journal(Protocol):
    """The calls about what was done to objects of the service."""

    def page(self, question: JournalQuestion) -> JournalPage:
        """Return a page of what was done, in the order of positions. InvalidInput for an unknown marker."""


class Surgery(Protocol):
    """The calls that give leases other resources, or make more or fewer leases of the same ones.

    Each is all or nothing, and done once for each key. A dry run returns what would come of it.
    """

    def swap(self, lease_id: str, request: SwapRequest, terms: Terms) -> Operated:
        """Give up a host of a reservation for another one.

        NotFound, InvalidInput, Conflict, WrongState, NotEnoughResources, UsageDenied, PreconditionFailed, CloudError.
        """

    def split(self, lease_id: str, request: SplitRequest, terms: Terms) -> Operated:
        """Make two leases of one. NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed."""

    def merge(self, lease_id: str, request: MergeRequest, terms: Terms) -> Operated:
        """Make one lease of two. NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed."""


class Transfers(Protocol):
    """The calls by which a lease goes to another project, or to another user of its project.

    ``taker``, and ``asked_by`` of who accepts or declines, are a user with a token of the project that gets it.
    """

    def offer(self, lease_id: str, request: OfferRequest, terms: Terms) -> LeaseDetails:
        """Offer a lease; for a dry run only say whether it could go.

        NotFound, InvalidInput, Conflict, WrongState, PreconditionFailed, CloudError.
        """

    def withdraw(self, lease_id: str, terms: Terms) -> None:
        """Take back an offer that stands. NotFound, WrongState, PreconditionFailed."""

    def page(self, taker: Actor, page: Page) -> OfferPage:
        """Return a page of the leases that are offered to somebody. InvalidInput for an unknown marker."""

    def one(self, lease_id: str, taker: Actor) -> LeaseDetails:
        """Return a lease that is offered to somebody; NotFound."""

    def accept(self, lease_id: str, terms: Terms) -> Operated:
        """Take over a lease, all or nothing, and once for each key; for a dry run return what it would be.

        NotFound, Conflict, WrongState, UsageDenied, PreconditionFailed, CloudError.
        """

    def decline(self, lease_id: str, terms: Terms) -> None:
        """Turn down an offer. NotFound, WrongState, PreconditionFailed."""


class Service(Protocol):
    """The calls about the service itself."""

    def facts(self, project_id: str) -> ServiceFacts:
        """Return what clients of a project cannot know otherwise."""

    def ping(self) -> Pong:
        """Say that this manager is there, and whether its database answers."""

    def managers(self) -> tuple[KnownManager, ...]:
        """Return the managers that run, or were seen within a day, with their work."""
