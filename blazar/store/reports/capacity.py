# SPDX-License-Identifier: Apache-2.0
"""The store of capacity: resources with their past, by what the journal has of them, and days that are on record."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.blocks import Use
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.journal.entries import FieldChange, ObjectType
from blazar.model.reports.capacity import CapacityCell, CapacityDay
from blazar.model.reports.states import (
    ConditionChange,
    ConditionSpan,
    ResourceCondition,
    ResourceState,
    TracedResource,
    is_condition_field,
    list_properties,
    trace_conditions,
)
from blazar.model.resources.resource import ResourceKind, is_evacuable
from blazar.store.calendar.uses import LeasesRead, UsesView
from blazar.store.resources.catalog import CatalogCache
from blazar.store.resources.inventory import read_declared
from blazar.store.sql.tables import capacity_days, journal, resource_capabilities, resource_properties, resources
from blazar.store.sql.transactions import Transactions

_R, _C, _J = resources.c, capacity_days.c, journal.c


@dataclass(frozen=True, slots=True)
class _Record:
    """A resource as it is now, or was when it was removed, and who may have it."""

    row: Any
    latest: ResourceCondition

    @property
    def open_to(self) -> frozenset[str] | None:
        return None if self.row.authorized_projects is None else frozenset(self.row.authorized_projects)


class CapacityStore:
    """Reads what became of the capacity, and keeps days of it."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    def trace(
        self, period: Window, *, now: datetime, names: Collection[str] = (), project_id: str | None = None
    ) -> tuple[TracedResource, ...]:
        """Return the resources of a period that is over, with their states in it and the properties of these names.

        Those that the calendar shows to a project today, or all that were registered. Four statements, and three more
        for each kind of resource.
        """
        with self._transactions.reading() as connection:
            records = _read_records(connection, period, names, project_id)
            entries = _read_entries(connection, period, names)
            spans = {
                id_: trace_conditions(
                    record.latest,
                    entries[record.row.label],
                    registered_at=record.row.created_at,
                    removed_at=record.row.retired_at,
                    period=period,
                )
                for id_, record in records.items()
            }
            return self._add_uses(connection, records, spans, period, now)

    def foresee(
        self, days: Sequence[Window], *, now: datetime, names: Collection[str] = (), project_id: str | None = None
    ) -> tuple[TracedResource, ...]:
        """Return the resources of today with what is promised of them in days to come, as if none had failed.

        Three statements, and three more for each kind of resource.
        """
        period = Window(days[0].start, days[-1].end)
        with self._transactions.reading() as connection:
            records = _read_records(connection, period, names, project_id)
            spans = {
                id_: [ConditionSpan(period, ResourceCondition(False, False, False, known.capacity, known.properties))]
                for id_, record in records.items()
                if record.row.live is not None and (known := record.latest)
            }
            return self._add_uses(connection, records, spans, period, now)

    def _add_uses(
        self,
        connection: Connection,
        records: Mapping[int, _Record],
        spans: Mapping[int, Sequence[ConditionSpan]],
        period: Window,
        now: datetime,
    ) -> tuple[TracedResource, ...]:
        uses: dict[int, Sequence[Use]] = {}
        closed: dict[int, Sequence[Window]] = {}
        for kind in sorted({ResourceKind(record.row.kind) for record in records.values()}):
            view = UsesView(connection, self._catalogs.read(connection, kind), kind)
            uses.update(view.read_uses(period, as_of=now, leases_read=LeasesRead.NONE).by_resource)
            for id_, blocks in view.read_closed(period).items():
                closed[id_] = [block.window for block in blocks]
        return tuple(
            TracedResource(
                id_,
                records[id_].row.kind,
                records[id_].row.region,
                of_one,
                uses.get(id_, ()),
                closed.get(id_, ()),
                records[id_].open_to,
            )
            for id_, of_one in spans.items()
            if of_one
        )

    def read_days(self, first: date, last: date) -> tuple[CapacityDay, ...]:
        """Return what is on record of some days; one statement."""
        query = sa.select(capacity_days).where(_C.day >= first, _C.day <= last).order_by(_C.day, _C.cell)
        return tuple(_parse_day(row) for row in self._transactions.select(query))

    def record(self, days: Sequence[CapacityDay]) -> None:
        """Put days on record; what is on record of them already stays. Three statements, whatever the number."""

        def write_days(connection: Connection) -> None:
            query = sa.select(capacity_days).where(_C.day.in_(sorted({day.day for day in days}))).with_for_update()
            known = {(row.day, row.cell): _parse_day(row) for row in connection.execute(query)}
            new, changed = [], []
            for day in days:
                before = known.get((day.day, _hash(day.cell)))
                if before is None:
                    new.append(_row_of(day))
                elif (joined := _join(before, day)) != before:
                    changed.append({f"new_{name}": value for name, value in _row_of(joined).items()})
            if new:
                connection.execute(capacity_days.insert(), new)
            if changed:
                connection.execute(_CHANGE, changed)

        self._transactions.write_beside_others(write_days)


def _read_records(
    connection: Connection, period: Window, names: Collection[str], project_id: str | None
) -> Mapping[int, _Record]:
    """Return the resources that were registered in a period; of a project those that are, and that it may have."""
    registered = [_R.created_at < period.end, _R.live.is_not(None) | (_R.retired_at > period.start)]
    columns = (
        *(_R.id, _R.kind, _R.region, _R.label, _R.live, _R.created_at, _R.retired_at),
        *(_R.disabled, _R.failed_since, _R.attributes, _R.capacity, _R.authorized_projects),
    )
    rows = connection.execute(sa.select(*columns).where(*registered).order_by(_R.id)).all()
    properties: dict[int, dict[str, str]] = defaultdict(dict)
    if names:
        values = (
            sa.select(resource_capabilities.c.resource_id, resource_properties.c.name, resource_capabilities.c.value)
            .join(resource_properties, resource_properties.c.id == resource_capabilities.c.property_id)
            .where(resource_properties.c.name.in_(sorted(names)))
        )
        for resource_id, name, value in connection.execute(values):
            properties[resource_id][name] = value
    declared = read_declared(connection)
    found = {
        row.id: _Record(row, _condition_of(row, properties[row.id], names, declared.get(row.id, Amounts())))
        for row in rows
    }
    if project_id is None:
        return found
    return {
        id_: record
        for id_, record in found.items()
        if record.row.live is not None and (record.open_to is None or project_id in record.open_to)
    }


def _condition_of(
    row: Any, properties: Mapping[str, str], names: Collection[str], declared: Amounts
) -> ResourceCondition:
    return ResourceCondition(
        failed=row.failed_since is not None,
        disabled=row.disabled,
        evacuable=is_evacuable(ResourceKind(row.kind), row.attributes),
        capacity=Amounts.of(row.capacity) + declared,
        properties=list_properties(names, properties, row.attributes),
    )


def _read_entries(
    connection: Connection, period: Window, names: Collection[str]
) -> Mapping[str, Sequence[ConditionChange]]:
    """Return what was changed of resources since the begin of a period, by label, the oldest first; one statement."""
    query = (
        sa.select(_J.at, _J.changes, _J.snapshot)
        .where(_J.object_type == str(ObjectType.RESOURCE), _J.at >= period.start)
        .order_by(_J.seq)
    )
    found: dict[str, list[ConditionChange]] = defaultdict(list)
    for at, changes, snapshot in connection.execute(query):
        told = tuple(_parse_changes(changes, names))
        if snapshot is not None and told:
            found[snapshot["label"]].append(ConditionChange(at, told))
    return found


def _parse_changes(changes: Sequence[Sequence[Any]], names: Collection[str]) -> Iterator[FieldChange]:
    return (FieldChange(*change) for change in changes if is_condition_field(change[0], names))


def _join(before: CapacityDay, more: CapacityDay) -> CapacityDay:
    seconds = more.seconds if before.seconds is None else before.seconds
    return CapacityDay(before.day, before.cell, seconds, {**more.promised_before, **before.promised_before})


_CHANGE = (
    capacity_days.update()
    .where(*(_C[name] == sa.bindparam(f"new_{name}", type_=_C[name].type) for name in ("day", "cell")))
    .values({name: sa.bindparam(f"new_{name}", type_=_C[name].type) for name in ("seconds", "promised_before")})
)


def _hash(cell: CapacityCell) -> str:
    what = [cell.kind, cell.region, cell.open_to, cell.properties]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _row_of(day: CapacityDay) -> dict[str, object]:
    cell = day.cell
    return {
        "day": day.day,
        "cell": _hash(cell),
        "kind": cell.kind,
        "region": cell.region,
        "open_to": None if cell.open_to is None else list(cell.open_to),
        "properties": dict(cell.properties),
        "seconds": None if day.seconds is None else {str(state): number for state, number in day.seconds.items()},
        "promised_before": {str(ahead): number for ahead, number in sorted(day.promised_before.items())},
    }


def _parse_day(row: Any) -> CapacityDay:
    open_to = None if row.open_to is None else tuple(row.open_to)
    cell = CapacityCell(row.kind, row.region, open_to, tuple(sorted(row.properties.items())))
    seconds = None if row.seconds is None else {ResourceState(state): n for state, n in row.seconds.items()}
    return CapacityDay(row.day, cell, seconds, {int(ahead): n for ahead, n in row.promised_before.items()})
