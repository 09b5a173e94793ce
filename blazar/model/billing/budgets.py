# SPDX-License-Identifier: Apache-2.0
"""Budgets: what a project may have in a period, what of it is used and held, and what is left. Pure."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from blazar.model.base.moments import DayOrMoment
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.charges import format_nano
from blazar.model.billing.spending import ProjectSpending
from blazar.model.use.resource_hours import UsageRecord


class BudgetSource(StrEnum):
    """Who sets a limit."""

    CONFIGURATION = "configuration"
    UNIFIED_LIMITS = "unified_limits"
    EXTERNAL_SERVICE = "external_service"


class BudgetUnit(StrEnum):
    """What is counted: hours of a measure of resources, or money of a currency."""

    HOURS = "hours"
    MONEY = "money"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBudget:
    """What a project may have of a measure in a period: ``window``.

    ``used`` is what its leases had by now, ``held`` what is booked for the rest of the period. Amounts are
    resource-seconds, or 10⁻⁹ of a currency, which then is the ``measure``. An external service keeps numbers of its
    own: then all of them are None.
    """

    project_id: str
    source: BudgetSource
    unit: BudgetUnit = BudgetUnit.HOURS
    limit_name: str | None = None
    measure: str | None = None
    window: Window | None = None
    limit: int | None = None
    used: int | None = None
    held: int | None = None

    @property
    def left(self) -> int | None:
        """Return what can still be booked; None if nobody knows."""
        if self.limit is None or self.used is None or self.held is None:
            return None
        return max(0, self.limit - self.used - self.held)

    def spell(self, amount: int | None, *, up: bool = False) -> str | None:
        """Return an amount as it is written: hours with two decimals at most, rounded down or ``up``; money exactly."""
        if amount is None:
            return None
        if self.unit is BudgetUnit.MONEY:
            text = format_nano(amount)
            return text.rstrip("0").rstrip(".")
        return hours_up(amount) if up else hours_down(amount)


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """What is known of a project that has budgets: its usage in the periods of an instant, and the time.

    ``spending`` is what it has to pay for the month of the instant; None if nothing has a price, or nobody asks.
    """

    project_id: str
    at: datetime
    now: datetime
    usage: tuple[UsageRecord, ...] = ()
    spending: ProjectSpending | None = None


@dataclass(frozen=True, slots=True)
class BudgetQuestion:
    """Whose budgets are asked for (None: those of all projects that have leases), and of which instant's periods."""

    page: Page
    project_id: str | None = None
    at: DayOrMoment | None = None


@dataclass(frozen=True, slots=True)
class BudgetPage:
    """Budgets by project; ``following`` is the position of the last project, None if no page follows."""

    items: tuple[ProjectBudget, ...]
    following: Position | None = None


def hours_down(seconds: int) -> str:
    """Return hours, rounded down to hundredths."""
    return _format_hundredths(seconds * 100 // 3600)


def hours_up(seconds: int) -> str:
    """Return hours, rounded up to hundredths."""
    return _format_hundredths(-(-seconds * 100 // 3600))


def _format_hundredths(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
