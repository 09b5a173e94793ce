# SPDX-License-Identifier: Apache-2.0
"""Reports: sums of a period, of what was reserved and used, of what there was, of what was asked for and not had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport
from blazarclient.library.written import Date, written

Day = Date | date
"""An instant as ``Date``, or a day, which begins at midnight of the site: ``date(2026, 11, 1)`` or ``2026-11-01``."""

Row = Mapping[str, Any]
"""What the row is grouped by, such as ``project_id``, then measures: whole seconds, or numbers of things."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Rows of a period. ``time_zone`` is that of its days; they tell what was so until ``computed_through``."""

    start: datetime
    end: datetime
    time_zone: str = "UTC"
    step: str = "all"
    computed_through: datetime | None = None
    unit: str = "seconds"
    rows: tuple[Row, ...] = field(default=(), hash=False)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Rows of days to come: what is promised, and what is expected, where the past tells. ``accuracy`` is of late."""

    as_of: datetime
    time_zone: str = "UTC"
    unit: str = "seconds"
    method: str = ""
    rows: tuple[Row, ...] = field(default=(), hash=False)
    accuracy: Row = field(default_factory=dict, hash=False)
    unmet: tuple[Row, ...] = field(default=(), hash=False)


class Reports:
    """Sums of a period: the month so far, if none is given. Members get those of their project, operators of all.

    ``group_by``: what rows are told apart by. ``step``: ``day``, ``week``, ``month``, or ``all`` of the period.
    ``prop``: the property that the group ``property`` stands for.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def usage(
        self,
        start: Day | None = None,
        end: Day | None = None,
        *,
        group_by: str | Sequence[str] = (),
        step: str | None = None,
        prop: str | None = None,
        project_id: str | None = None,
    ) -> Report:
        """Return for whom resources were reserved, and what became of that.

        Groups: ``project``, ``user``, ``resource_type``, ``kind``, ``region``, ``lease_kind``, ``property``.
        """
        return self._report("usage", start, end, group_by, step=step, property=prop, project_id=project_id)

    def capacity(
        self,
        start: Day | None = None,
        end: Day | None = None,
        *,
        group_by: str | Sequence[str] = (),
        step: str | None = None,
        prop: str | None = None,
    ) -> Report:
        """Return for how long resources were promised, free and out of use.

        Groups: ``kind``, ``region``, ``property``.
        """
        return self._report("capacity", start, end, group_by, step=step, property=prop)

    def demand(
        self,
        start: Day | None = None,
        end: Day | None = None,
        *,
        group_by: str | Sequence[str] = (),
        step: str | None = None,
        project_id: str | None = None,
    ) -> Report:
        """Return what was asked for and not had, and what was waited for.

        Groups: ``project``, ``resource_type``, ``requirement``, ``code``.
        """
        return self._report("demand", start, end, group_by, step=step, project_id=project_id)

    def forecast(
        self, *, days: int | None = None, group_by: str | Sequence[str] = (), prop: str | None = None
    ) -> Forecast:
        """Return what is promised and expected for days to come."""
        query = {"days": days, "group_by": _joined(group_by), "property": prop}
        answer = self._transport.ask("GET", "/reports/forecast", query=query)
        return decode(Forecast, answer.part("forecast"))

    def _report(
        self, name: str, start: Day | None, end: Day | None, group_by: str | Sequence[str], **filters: str | None
    ) -> Report:
        query = {"from": _day(start), "to": _day(end), "group_by": _joined(group_by), **filters}
        told = self._transport.ask("GET", f"/reports/{name}", query=query).part("report")
        renamed = {**told, "start": told.get("from"), "end": told.get("to")} if isinstance(told, Mapping) else told
        return decode(Report, renamed)


def _day(value: Day | None) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else written(value)


def _joined(names: str | Sequence[str]) -> str | None:
    return (names if isinstance(names, str) else ",".join(names)) or None
