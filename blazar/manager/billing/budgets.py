# SPDX-License-Identifier: Apache-2.0
"""Budgets of projects: what the filters of enforcement allow them, and what of it is used and held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from blazar.enforcement import find_budget_window, list_budgets
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.moments import instant_of
from blazar.model.base.paging import Page, Position
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetFacts, BudgetPage, BudgetQuestion, ProjectBudget
from blazar.model.billing.spending import ProjectSpending
from blazar.model.use.resource_hours import UsageRecord

_UTC = ZoneInfo("UTC")
"""The zone of periods."""


class BudgetService:
    """Answers the calls about budgets."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._enforcement = runtime.enforcement

    def page(self, question: BudgetQuestion) -> BudgetPage:
        """Return the budgets of one project, or of a page of projects; InvalidInput, EnforcementUnavailable.

        At most four statements, whatever the number of projects; two if none has a limit on money.
        """
        now = to_second(self._runtime.clock.now())
        at = now if question.at is None else to_second(instant_of(question.at, _UTC, now))
        reach = find_budget_window(self._enforcement, at)
        if question.project_id is not None:
            return BudgetPage(tuple(self._list_budgets([question.project_id], at, now, reach)))
        projects, following = self._list_projects(question.page, reach)
        return BudgetPage(tuple(self._list_budgets(projects, at, now, reach)), following)

    def _list_budgets(
        self, projects: Sequence[str], at: datetime, now: datetime, reach: Window | None
    ) -> Iterator[ProjectBudget]:
        """Yield the budgets of projects, one after the other."""
        usage, spending = self._read_usage(projects, reach), self._read_spending(projects, at)
        for project_id in projects:
            facts = BudgetFacts(project_id, at, now, usage.get(project_id, ()), spending.get(project_id))
            yield from list_budgets(self._enforcement, facts)

    def _read_spending(self, projects: Sequence[str], at: datetime) -> Mapping[str, ProjectSpending]:
        """Return what projects have to pay for the month of an instant; nothing if nothing has a price."""
        store = self._runtime.store
        if not self._enforcement.needs_spending or not projects or not (lists := store.price_lists.read()):
            return {}
        months = store.calendar.read_spending(projects, at.date().replace(day=1))
        return {project_id: ProjectSpending(lists, months.get(project_id, {})) for project_id in projects}

    def _read_usage(self, projects: Sequence[str], reach: Window | None) -> Mapping[str, tuple[UsageRecord, ...]]:
        """Return what projects have in the periods; nothing if no filter counts that."""
        if reach is None or not projects:
            return {}
        return self._runtime.store.calendar.read_usage_of_projects(projects, reach, now=self._runtime.clock.now())

    def _list_projects(self, page: Page, reach: Window | None) -> tuple[Sequence[str], Position | None]:
        if reach is None:
            return (), None
        after = page.after.id if isinstance(page.after, Position) else page.after
        found = self._runtime.store.calendar.list_projects(reach, after=after or "", limit=page.limit + 1)
        shown = found[: page.limit]
        return shown, Position(shown[-1], shown[-1]) if len(found) > page.limit else None
