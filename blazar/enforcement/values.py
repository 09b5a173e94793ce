# SPDX-License-Identifier: Apache-2.0
"""The values that filters see, and the protocol of a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol, runtime_checkable

from oslo_config import cfg

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import EnforcementUnavailable, UsageDenied
from blazar.model.base.log_lines import Trouble
from blazar.model.base.service_info import StatedLimit
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetFacts, ProjectBudget
from blazar.model.billing.spending import ProjectSpending
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType
from blazar.model.resources.resource import HOST, VOLUME, Resource
from blazar.model.use.resource_hours import HostUse, ReachedShare, SpendLimit, UsageRecord, measure_amounts


class Occasion(StrEnum):
    """Committed lease events that filters are notified of."""

    CREATED = "commit-create"
    UPDATED = "commit-update"
    ENDED = "on-end"


@dataclass(frozen=True, slots=True)
class Context:
    """The owner of a lease, and the cloud: URL of Keystone and region as the manager knows them.

    ``requested_by`` is the caller, who may be an operator; None for events that nobody requested.
    """

    user_id: str
    project_id: str
    auth_url: str | None = None
    region_name: str | None = None
    requested_by: Actor | None = None


@dataclass(frozen=True, slots=True)
class AllocatedResource:
    """What one reservation has, or is to have, of one resource.

    ``per_instance`` is what one of ``count`` instances takes of the resource; None for the whole resource.
    """

    reservation_id: str
    resource: Resource
    count: int = 1
    whole: bool = True
    per_instance: Amounts | None = None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease with the resources that are promised to its reservations, or will be if no filter objects."""

    lease: Lease
    allocated_resources: tuple[AllocatedResource, ...] = ()

    @property
    def window(self) -> Window:
        """Return the window of the lease."""
        return self.lease.window

    @property
    def project_id(self) -> str:
        """Return the project of the lease."""
        return self.lease.project_id

    @property
    def hosts(self) -> int:
        """Return the number of whole hosts."""
        hosts = (h for h in self.allocated_resources if h.whole and h.resource.kind == HOST)
        return sum(allocated.count for allocated in hosts)

    @property
    def resource_requests(self) -> Amounts:
        """Return the totals per resource class: of hosts their capacity, of instances and volumes what they take.

        Addresses have no resource class.
        """
        total = Amounts()
        for allocated in self.allocated_resources:
            if allocated.resource.kind in (HOST, VOLUME):
                total += (
                    allocated.resource.capacity
                    if allocated.per_instance is None
                    else allocated.per_instance.times(allocated.count)
                )
        return total

    @property
    def measures(self) -> Mapping[str, int]:
        """Return the amount per measure, as ``UsageRecord`` counts."""
        total: Counter[str] = Counter()
        for allocated in self.allocated_resources:
            total.update(measure_amounts(str(allocated.resource.kind), allocated.count, allocated.per_instance))
        return total

    def usage_records(self, window: Window) -> list[UsageRecord]:
        """Return the usage records of the lease for a part of its time."""
        series = None if self.lease.series is None else self.lease.series.series_id
        return [
            UsageRecord(self.lease.id, str(h.resource.kind), window, h.count, h.per_instance, series)
            for h in self.allocated_resources
        ]

    @property
    def warning_time(self) -> datetime | None:
        """Return the time of the notification before the end."""
        event = self.lease.event(EventType.BEFORE_END)
        return event.time if event else None

    @property
    def substance(self) -> tuple[object, ...]:
        """Return the fields that determine the answer, without timestamps and generations."""
        reservations = tuple((r.id, r.resource_type, r.shown_parameters) for r in self.lease.reservations)
        held = tuple((h.reservation_id, h.resource.external_id, h.count) for h in self.allocated_resources)
        return self.lease.name, self.lease.window, self.warning_time, reservations, held


@dataclass(frozen=True, slots=True)
class Question:
    """The question whether a lease may be granted. ``current`` is the lease before a change, None for a new one.

    ``others`` is what the project has besides at the time of the lease; only read if a filter ``needs_use``. For
    filters with a ``reach``, ``usage`` is what the project had, has and will have over all of it, including what the
    lease itself has returned; ``own_usage`` is what the lease has without the change. ``spending`` is what the project
    has to pay besides; None if nothing has a price, or no filter needs it. ``max_price`` is the most that the lease
    may cost, a decimal: nothing dearer is to be advised.
    """

    context: Context
    now: datetime
    wanted: LeaseView
    current: LeaseView | None = None
    others: tuple[HostUse, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    own_usage: tuple[UsageRecord, ...] = ()
    spending: ProjectSpending | None = None
    max_price: str | None = None
    last_start: datetime | None = None

    @property
    def substance(self) -> tuple[object, ...]:
        """Return the fields that two questions with the same answer have in common."""
        return self.context, self.wanted.substance, self.current.substance if self.current else None


@dataclass(frozen=True, slots=True)
class FilterNotification:
    """A committed change of a lease: it was granted, changed, or its end has begun, at the time ``at``.

    ``before`` is the lease before a change.
    """

    occasion: Occasion
    context: Context
    at: datetime
    view: LeaseView
    before: LeaseView | None = None


class NotificationRefused(UsageDenied):
    """The notification is refused permanently. ``maybe_accepted``: an earlier attempt may have been accepted."""

    def __init__(self, message: str, *, maybe_accepted: bool = False, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, data=data)
        self.maybe_accepted = maybe_accepted


class NotDelivered(EnforcementUnavailable):
    """There is no answer to the notification. ``maybe_accepted``: it may have been accepted nevertheless."""

    def __init__(self, message: str, *, maybe_accepted: bool = True) -> None:
        super().__init__(message)
        self.maybe_accepted = maybe_accepted


class Filter(Protocol):
    """One rule about which leases a project may have.

    ``options`` are read from ``[enforcement]``. ``needs_use``: questions must include what the project has besides.
    A filter may have ``mandatory``: if that is true, nothing is granted without its answer.
    """

    options: ClassVar[list[cfg.Opt]]
    needs_use: ClassVar[bool]

    @property
    def occasions(self) -> frozenset[Occasion]:
        """Return the occasions that the filter is notified of."""

    @classmethod
    def configured(cls, section: Any, identity: Any) -> Filter:
        """Return the filter as configured in ``[enforcement]``; InvalidInput. ``identity`` is an Identity."""

    def check(self, question: Question) -> None:
        """Return if the lease may be granted; UsageDenied if not, EnforcementUnavailable if that cannot be decided."""

    def notify(self, notification: FilterNotification) -> None:
        """Receive the notification of an occasion.

        UsageDenied (best as Refused) if it is refused permanently. After any other exception (best Unheard) the
        notification is retried later.
        """


@runtime_checkable
class StatesLimits(Protocol):
    """A filter with limits that clients may know before they ask."""

    def stated_limits(self, project_id: str) -> tuple[StatedLimit, ...]:
        """Return the limits on leases of a project, without asking another service."""


@runtime_checkable
class KeepsBudgets(Protocol):
    """A filter that allows a project some amount in a period."""

    def budget_window(self, at: datetime) -> Window | None:
        """Return the time whose usage counts for the budgets of an instant; None if none of ours does."""

    def list_budgets(self, facts: BudgetFacts) -> tuple[ProjectBudget, ...]:
        """Return the budgets of a project in the periods of an instant; EnforcementUnavailable."""


@runtime_checkable
class TellsShares(Protocol):
    """A filter that knows which shares of its budgets a lease reaches. It ``needs_use``, too."""

    def list_reached(self, question: Question, shares: tuple[int, ...]) -> tuple[ReachedShare, ...]:
        """Return the largest share in percent that is reached of each budget; EnforcementUnavailable."""


@runtime_checkable
class LimitsSpending(Protocol):
    """A filter that limits what a project has to pay for a month. It ``needs_use``, too."""

    def spend_limit(self, project_id: str) -> SpendLimit | None:
        """Return the limit of a project, None: there is none; EnforcementUnavailable."""


@runtime_checkable
class NeedsLongerUsage(Protocol):
    """A filter that also needs usage outside the lease's window. It ``needs_use``, too."""

    def usage_window(self, window: Window) -> Window:
        """Return the time whose usage counts for a lease of this window."""


@runtime_checkable
class AsksService(Protocol):
    """A filter that asks a service, and knows whether that answers; operators see it if it does not."""

    trouble: Trouble
