# SPDX-License-Identifier: Apache-2.0
"""The library: typed values over a keystoneauth session.

::

    reservations = Reservations(session)
    [first, *_] = reservations.availability([{"resource_type": "physical:host", "min": 4}], duration="P3D").openings
    lease = reservations.leases.create("training", start_date=first.start_date, end_date=first.end_date, reservations=…)
    lease = reservations.leases.wait(lease.id, timeout=600)

No state is kept but the session; an object may be used by several threads if its session may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blazarclient.library.budgets import Budget, BudgetPeriod, Budgets
from blazarclient.library.decoding import decode
from blazarclient.library.history import History, HistoryEntry, HistoryObject, JournalEntry
from blazarclient.library.kinds import Resources, kinds
from blazarclient.library.leases import Leases
from blazarclient.library.maintenances import Maintenances
from blazarclient.library.managers import Managers
from blazarclient.library.power import (
    HostPower,
    Power,
    PowerClass,
    PowerCount,
    PowerMove,
    PowerOfPools,
    PowerReport,
    PowerResults,
    PowerStatus,
)
from blazarclient.library.price_lists import (
    PriceChange,
    PriceComparison,
    PriceList,
    PriceLists,
    ProjectComparison,
    Publication,
)
from blazarclient.library.problems import Problem, Problems, Repair
from blazarclient.library.registered import Promised
from blazarclient.library.reports import Forecast, Report, Reports
from blazarclient.library.resources import Feeds, Hosts
from blazarclient.library.resources import properties as _properties
from blazarclient.library.rules import Rule, Rules
from blazarclient.library.series import SeriesOfLeases
from blazarclient.library.statements import Charge, Charges, Statement, Statements, StatementTotal
from blazarclient.library.subscriptions import Subscriptions
from blazarclient.library.supply import Capacity, FloatingIp, FloatingIps
from blazarclient.library.supply import capacity as _capacity
from blazarclient.library.surgery import Surgery
from blazarclient.library.transfers import Transfers
from blazarclient.library.transport import Repeated, Transport
from blazarclient.library.values import (
    AffectedLease,
    Alternative,
    Availability,
    Block,
    CalendarRow,
    DeliveryFailure,
    Event,
    Feed,
    Host,
    Info,
    Kind,
    Lease,
    Maintenance,
    MaintenanceImpact,
    Manager,
    Occurrence,
    Opening,
    Property,
    RegisteredResource,
    Reservation,
    Series,
    Subscription,
    Transfer,
)
from blazarclient.library.written import Date, written

__all__ = [
    "Charge",
    "Statement",
    "StatementTotal",
    "Budget",
    "BudgetPeriod",
    "AffectedLease",
    "Alternative",
    "Availability",
    "Block",
    "CalendarRow",
    "Capacity",
    "Event",
    "DeliveryFailure",
    "Feed",
    "FloatingIp",
    "Forecast",
    "HistoryEntry",
    "HistoryObject",
    "Host",
    "HostPower",
    "Info",
    "JournalEntry",
    "Kind",
    "Lease",
    "Maintenance",
    "MaintenanceImpact",
    "Manager",
    "Occurrence",
    "Opening",
    "PowerClass",
    "PowerCount",
    "PowerMove",
    "PowerOfPools",
    "PowerReport",
    "PowerResults",
    "PowerStatus",
    "PriceChange",
    "PriceComparison",
    "PriceList",
    "Problem",
    "Promised",
    "Property",
    "ProjectComparison",
    "Publication",
    "RegisteredResource",
    "Reservation",
    "Repair",
    "Report",
    "Rule",
    "Reservations",
    "Series",
    "Subscription",
    "Transfer",
]


class Reservations:
    """The reservation service of a cloud.

    ``session``: a keystoneauth session or adapter; ``options`` go to the adapter: ``region_name``, ``interface``,
    ``endpoint_override`` and others.
    """

    def __init__(self, session: Any, **options: Any) -> None:
        self.transport = Transport(session, **options)
        self.leases = Leases(self.transport)
        self.hosts = Hosts(self.transport)
        self.floating_ips = FloatingIps(self.transport)
        self.feeds = Feeds(self.transport)
        self.subscriptions = Subscriptions(self.transport)
        self.series = SeriesOfLeases(self.transport)
        self.maintenances = Maintenances(self.transport)
        self.managers = Managers(self.transport)
        self.power = Power(self.transport)
        self.price_lists = PriceLists(self.transport)
        self.problems = Problems(self.transport)
        self.rules = Rules(self.transport)
        self.reports = Reports(self.transport)
        self.statements, self.charges = Statements(self.transport), Charges(self.transport)
        self.budgets = Budgets(self.transport)
        self.surgery = Surgery(self.transport)
        self.transfers = Transfers(self.transport)
        self.history = History(self.transport)

    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of resources that the service has. UnsupportedVersion of the existing Blazar."""
        return kinds(self.transport)

    def resources(self, kind: str) -> Resources:
        """Return what can be done with the resources of a kind, such as ``host``."""
        return Resources(self.transport, kind)

    def availability(
        self,
        reservations: Sequence[Mapping[str, Any]] = (),
        *,
        duration: str | None = None,
        earliest: Date | None = None,
        latest: Date | None = None,
        start_date: Date | None = None,
        end_date: Date | None = None,
        lease_id: str | None = None,
        limit: int | None = None,
        time_zone: str | None = None,
        explain: bool | None = None,
        alternatives: bool | None = None,
    ) -> Availability:
        """Return when all of the reservations fit, or why not.

        With ``duration``: the earliest openings in a range; with ``start_date`` and ``end_date``: whether that window
        fits; with ``lease_id`` alone: how far the lease can be extended.
        """
        dates = {"earliest": earliest, "latest": latest, "start_date": start_date, "end_date": end_date}
        question: dict[str, Any] = {key: written(value) for key, value in dates.items() if value is not None}
        rest = {
            "reservations": [dict(reservation) for reservation in reservations] or None,
            "duration": duration,
            "lease_id": lease_id,
            "limit": limit,
            "time_zone": time_zone,
            "explain": explain,
            "alternatives": alternatives,
        }
        question |= {key: value for key, value in rest.items() if value is not None}
        # A question changes nothing.
        answer = self.transport.ask("POST", "/availability", body=question, repeatable=True)
        return decode(Availability, answer.part("availability"))

    def calendar(
        self, /, *, start: Date | None = None, end: Date | None = None, **filters: Any
    ) -> Iterator[CalendarRow]:
        """Yield resources with what is promised of them in a range, reading page by page.

        Filters: ``resource_type``, ``requirement``, ``resource``, ``occupied_by``, ``sort_key``, ``limit``.
        """
        query = {**_range(start, end), **filters}
        for row in self.transport.pages("/calendar", "calendar", "resources", query=query):
            yield decode(CalendarRow, row)

    def capacity(
        self,
        /,
        *,
        start: Date | None = None,
        end: Date | None = None,
        step: str | None = None,
        group_by: str | Sequence[str] = (),
        **filters: Any,
    ) -> Capacity:
        """Return how many resources are free over time, in steps such as ``1h``.

        ``group_by``: a property, or two. Filters: ``resource_type``, ``requirement``, ``measure``.
        """
        groups = [group_by] if isinstance(group_by, str) else list(group_by)
        query = {**_range(start, end), "step": step, "group_by": Repeated(groups), **filters}
        return _capacity(self.transport, query)

    def properties(self, resource_type: str | None = None) -> tuple[Property, ...]:
        """Return the properties by which resources of a type can be chosen."""
        return _properties(self.transport, resource_type)

    def info(self) -> Info:
        """Return the service's clock, limits, and what the caller may do. UnsupportedVersion of the existing Blazar."""
        return decode(Info, self.transport.ask("GET", "/info").part("info"))


def _range(start: Date | None, end: Date | None) -> dict[str, Any]:
    return {key: written(value) for key, value in (("from", start), ("to", end)) if value is not None}
