# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager about the service itself, what its operators do with its hosts, and for reports.

As for those of ``interface``.
"""

from __future__ import annotations

from typing import Protocol

from blazar.model.base.service_info import ServiceFacts
from blazar.model.maintenance.windows import (
    Answer,
    Maintenance,
    MaintenanceChange,
    MaintenancePage,
    MaintenanceQuestion,
    MaintenanceRequest,
)
from blazar.model.managers.presence import KnownManager, Pong
from blazar.model.problems.problems import Problem, ProblemAction, ProblemPage, ProblemQuestion, Repair, RepairRequest
from blazar.model.reports.capacity import CapacityReport, CapacityReportQuestion
from blazar.model.reports.demand import DemandQuestion, DemandReport
from blazar.model.reports.forecast import Forecast, ForecastQuestion
from blazar.model.reports.usage import UsageQuestion, UsageReport


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


class Service(Protocol):
    """The calls about the service itself."""

    def facts(self, project_id: str) -> ServiceFacts:
        """Return what clients of a project cannot know otherwise."""

    def ping(self) -> Pong:
        """Say that this manager is there, and whether its database answers."""

    def managers(self) -> tuple[KnownManager, ...]:
        """Return the managers that run, or were seen within a day, with their work."""
