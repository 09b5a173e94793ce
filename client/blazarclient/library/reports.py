# SPDX-License-Identifier: Apache-2.0
"""Reports: sums of a period, of what was reserved and used, of what there was, of what was asked for and not had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Lease
from blazarclient.library.written import Date, id_of, written

Day = Date | date
"""An instant as ``Date``, or a day, which begins at midnight of the site: ``date(2026, 11, 1)`` or ``2026-11-01``."""

Row = Mapping[str, Any]
"""What the row is grouped by, such as ``project_id``, then measures: whole seconds, or numbers of things."""


@dataclass(frozen=True, kw_only=True)
class UnbookedPart:
    """What hosts drew in some time of theirs, in watt-hours, and grams of CO2e of it; None where nothing is known."""

    resource_seconds: int
    energy_wh: int | None = None
    source: str | None = None
    unknown_seconds: int = 0
    gco2: int | None = None


@dataclass(frozen=True, kw_only=True)
class UnbookedEnergy:
    """What hosts drew that no lease had: ``idle`` while they were on, and ``asleep``."""

    idle: UnbookedPart
    asleep: UnbookedPart


@dataclass(frozen=True, kw_only=True)
class Report:
    """Rows of a period. ``time_zone`` is that of its days; they tell what was so until ``computed_through``.

    ``unbooked`` is what hosts drew that no lease had, where that was asked for; None if leases of it were purged.
    ``lent_seconds`` are those of hosts that leases had lent to preemptible servers, where a service tells that.
    """

    start: datetime
    end: datetime
    time_zone: str = "UTC"
    step: str = "all"
    computed_through: datetime | None = None
    unit: str = "seconds"
    rows: tuple[Row, ...] = field(default=(), hash=False)
    unbooked: UnbookedEnergy | None = None
    lent_seconds: int | None = None


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


@dataclass(frozen=True, kw_only=True)
class LeaseCarbon:
    """Grams of CO2e of a lease, those of the making of its hosts included; ``sci_mg`` per resource-hour."""

    gco2: int
    embodied_gco2: int = 0
    sci_mg: int | None = None
    estimated: bool = False
    complete: bool = True
    embodied_complete: bool = True


@dataclass(frozen=True, kw_only=True)
class LeaseEnergy:
    """What the hosts of a lease drew and emitted until ``computed_through``; None where nothing is known."""

    computed_through: datetime
    resource_seconds: int = 0
    energy_wh: int | None = None
    gco2: int | None = None
    source: str | None = None
    unknown_seconds: int = 0
    carbon: LeaseCarbon | None = None


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
        unbooked: bool = False,
    ) -> Report:
        """Return for whom resources were reserved, and what became of that.

        Groups: ``project``, ``user``, ``resource_type``, ``kind``, ``region``, ``lease_kind``, ``property``.
        ``unbooked``: also what hosts drew that no lease had, for operators, of 31 days at most.
        """
        asked = {"step": step, "property": prop, "project_id": project_id, "unbooked": "true" if unbooked else None}
        return self._report("usage", start, end, group_by, **asked)

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

    def energy(self, lease: Lease | str) -> LeaseEnergy:
        """Return what a lease drew and emitted, also one that is over."""
        answer = self._transport.ask("GET", f"/leases/{part_of_path(id_of(lease))}/energy")
        return decode(LeaseEnergy, answer.part("energy"))

    def _report(
        self, name: str, start: Day | None, end: Day | None, group_by: str | Sequence[str], **filters: str | None
    ) -> Report:
        query = {"from": written_day(start), "to": written_day(end), "group_by": _joined(group_by), **filters}
        told = self._transport.ask("GET", f"/reports/{name}", query=query).part("report")
        renamed = {**told, "start": told.get("from"), "end": told.get("to")} if isinstance(told, Mapping) else told
        return decode(Report, renamed)


def written_day(value: Day | None) -> str | None:
    """Return a day or an instant as the service takes it; None for None."""
    if value is None:
        return None
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else written(value)


def _joined(names: str | Sequence[str]) -> str | None:
    return (names if isinstance(names, str) else ",".join(names)) or None
