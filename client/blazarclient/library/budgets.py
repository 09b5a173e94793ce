# SPDX-License-Identifier: Apache-2.0
"""Budgets: what a project may have in a period, what of it is used and held, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from blazarclient.library.decoding import decode
from blazarclient.library.reports import Day, written_day
from blazarclient.library.transport import Transport


@dataclass(frozen=True, kw_only=True)
class BudgetPeriod:
    """The time of a budget."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a project may have of a measure in a period, in hours, or in money if ``unit`` is ``money``.

    Numbers are decimals as texts; None if only an external service knows them.
    """

    project_id: str
    measure: str | None = None
    unit: str = "hours"
    period: BudgetPeriod | None = None
    limit: str | None = None
    used: str | None = None
    held: str | None = None
    left: str | None = None
    source: str = "configuration"
    limit_name: str | None = None


class Budgets:
    """The budgets of projects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, project_id: str | None = None, all_projects: bool = False, at: Day | None = None
    ) -> Iterator[Budget]:
        """Yield the budgets of the own project; for operators also of another one, or of all.

        Of the periods in which ``at`` lies, by default now: an instant, or a day such as 2030-05-01.
        """
        query = {"project_id": project_id, "all_projects": all_projects or None, "at": written_day(at)}
        for item in self._transport.pages("/budgets", "budgets", query=query):
            yield decode(Budget, item)
