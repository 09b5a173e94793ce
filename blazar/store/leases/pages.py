# SPDX-License-Identifier: Apache-2.0
"""Reads of leases, past ones too, with what they hold: one, or a page in a constant number of statements.

Also of what they have made in the cloud.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import check_owner
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second
from blazar.model.base.moments import NOW
from blazar.model.base.paging import Condition, Operator, Page, Position, unknown_marker
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.details import (
    HeldResource,
    ImmediateVerdict,
    LeaseDetails,
    LeaseFilter,
    LeaseMark,
    LeaseOwner,
    LeasePage,
    LeaseState,
)
from blazar.model.leases.lease import Lease, unknown_lease
from blazar.model.leases.reservation import created_ids
from blazar.model.leases.states import UNREAD_EVENTS, EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.leases.stored import gone_of
from blazar.model.resources.resource import NAMED_KINDS, ResourceKind
from blazar.store.sql.among import select_among
from blazar.store.sql.paging import follow_place, order_columns, parse_instant
from blazar.store.sql.rows import EVENT_COLUMNS, LEASE_COLUMNS, RESERVATION_COLUMNS, assemble_leases
from blazar.store.sql.tables import LEASE_ORDERS, UtcTime, allocations, events, leases, reservations, resources
from blazar.store.sql.transactions import Transactions

Conditions = Sequence[sa.ColumnElement[bool]]
_ORDER = "sorted_by"
SORT_KEYS: Mapping[str, sa.ColumnElement[Any]] = {key: leases.c[name] for key, name in LEASE_ORDERS.items()}
_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **SORT_KEYS,
    "id": leases.c.id,
    "user_id": leases.c.user_id,
    "project_id": leases.c.project_id,
    "degraded": leases.c.degraded,
    "kind": leases.c.kind,
    "series_id": leases.c.series_id,
    "release_at": leases.c.release_at,
}
SECOND = timedelta(seconds=1)
_COMPARED: Mapping[Operator, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    Operator.EQ: lambda column, value: column == value,
    Operator.NEQ: lambda column, value: column != value,
    Operator.GT: lambda column, value: column > value,
    Operator.GTE: lambda column, value: column >= value,
    Operator.LT: lambda column, value: column < value,
    Operator.LTE: lambda column, value: column <= value,
}
# Instants are shown in whole seconds, and so they are compared: the end of a second belongs to it.
_COMPARED_INSTANTS: Mapping[Operator, Callable[[Any, datetime], sa.ColumnElement[bool]]] = {
    Operator.EQ: lambda column, second: sa.and_(column >= second, column < second + SECOND),
    Operator.NEQ: lambda column, second: sa.or_(column < second, column >= second + SECOND),
    Operator.GT: lambda column, second: column >= second + SECOND,
    Operator.GTE: lambda column, second: column >= second,
    Operator.LT: lambda column, second: column < second,
    Operator.LTE: lambda column, second: column < second + SECOND,
}
_HELD_COLUMNS = (
    allocations.c.lease_id,
    allocations.c.reservation_id,
    allocations.c.resource_id,
    allocations.c.kind,
    resources.c.external_id,
    resources.c.name,
    resources.c.label,
    allocations.c.count.label("held"),
    allocations.c.per_instance,
    allocations.c.released_at,
)
_REVISIONS_HELD = (
    sa.select(sa.func.coalesce(sa.func.sum(resources.c.revision), 0))
    .join(allocations, allocations.c.resource_id == resources.c.id)
    .where(allocations.c.lease_id == leases.c.id)
    .scalar_subquery()
    .label("revisions_held")
)
_PAGE_COLUMNS = (*LEASE_COLUMNS, _REVISIONS_HELD)
"""What a page reads of its leases, and the sum of the revisions of the resources that each has or had."""
# A lease whose creation was undone never was one. These are few, so all of them are read, and once: an ``exists`` is
# evaluated for each lease.
UNDONE = leases.c.id.in_(
    sa.select(events.c.lease_id).where(
        events.c.event_type == str(EventType.CREATE), events.c.status == str(EventStatus.ERROR)
    )
)
_CURRENT: Conditions = (leases.c.is_over == 0,)
_PAST: Conditions = (leases.c.is_over == 1, ~UNDONE)
_OVER: Conditions = (leases.c.is_over == 1, sa.or_(leases.c.deleted_at.is_(None), ~UNDONE))
_PARTS: Mapping[LeaseState, Sequence[Conditions]] = {
    LeaseState.CURRENT: (_CURRENT,),
    LeaseState.PAST: (_PAST,),
    LeaseState.ALL: (_CURRENT, _OVER),
}
"""What a list is made of: each part in order is a range of an index."""
_EVER = sa.or_(leases.c.deleted_at.is_(None), ~UNDONE)


class LeasePages:
    """Reads leases as the API shows them from 1.1 on."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def owner(self, lease_id: str) -> LeaseOwner:
        """Return whose a lease is, past ones too, in one statement; NotFound."""
        columns = (leases.c.id, leases.c.project_id, leases.c.user_id, leases.c.deleted_at)
        query = sa.select(*columns).where(leases.c.id == lease_id, _EVER)
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise unknown_lease(lease_id)
        return LeaseOwner(row[0], row[1], row[2], row[3] is not None)

    def verdict(self, lease_id: str) -> ImmediateVerdict:
        """Return what has become of the request for an immediate lease, in one statement; NotFound."""
        query = (
            sa.select(leases.c.deleted_at, leases.c.end_reason, events.c.status)
            .join(events, events.c.lease_id == leases.c.id)
            .where(leases.c.id == lease_id, events.c.event_type == str(EventType.IMMEDIATE_BY))
        )
        with self._transactions.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise unknown_lease(lease_id)
        if row.status == str(EventStatus.DONE):
            return ImmediateVerdict.GRANTED
        if row.deleted_at is not None:
            return ImmediateVerdict.GONE
        return ImmediateVerdict.WAITING if row.end_reason is None else ImmediateVerdict.ENDING

    def one(self, lease_id: str) -> LeaseDetails:
        """Return a lease, past ones too, in four statements; NotFound, also if its owner is another one by now."""
        with self._transactions.reading() as connection:
            query = sa.select(*LEASE_COLUMNS).where(leases.c.id == lease_id, _EVER)
            rows = connection.execute(query).all()
            if not rows:
                raise unknown_lease(lease_id)
            (found,) = details_of(connection, rows, LeaseFilter())
        check_owner(found.lease)
        return found

    def resource_names(self, ids: Collection[int]) -> Mapping[int, tuple[str, str, str]]:
        """Return external id, name and label of resources, in one statement."""
        columns = (resources.c.id, resources.c.external_id, resources.c.name, resources.c.label)
        rows = self._transactions.select(sa.select(*columns).where(resources.c.id.in_(sorted(ids))))
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def page(self, wanted: LeaseFilter, page: Page, *, now: datetime, known: Collection[LeaseMark] = ()) -> LeasePage:
        """Return a page in at most five statements. InvalidInput if the marker names no lease of the project.

        Leases with a mark that is ``known`` are listed only: a page of no others is one statement.
        """
        where = _filter_conditions(wanted, now)
        parts = [[*part, *where] for part in _PARTS[wanted.state]]
        query = _select_page(parts, page, wanted.project_id)
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
            if not rows and isinstance(page.after, str):
                _check_marker(connection, page.after, wanted.project_id)
            shown = rows[: page.limit]
            listed = tuple(LeaseMark(row.id, row.revision, int(row.revisions_held)) for row in shown)
            there = frozenset(known)
            unknown = [row for row, mark in zip(shown, listed, strict=True) if mark not in there]
            items = details_of(connection, [row[: len(LEASE_COLUMNS)] for row in unknown], wanted)
            count = connection.execute(_count(parts)).scalar_one() if page.with_count else None
        following = None
        if len(rows) > page.limit:
            (last,) = assemble_leases([shown[-1][: len(LEASE_COLUMNS)]], (), ())
            following = _position(last, page.sort_key)
        return LeasePage(items, following, count, listed)


def _select_page(parts: Sequence[Conditions], page: Page, project_id: str | None) -> sa.Executable:
    """Return the query for a page, and one row more; of several parts, that many of each are read and merged."""
    key = SORT_KEYS[page.sort_key]
    after = _follow_position(page, key, project_id)
    order = order_columns(page, key, leases.c.id)

    def first(part: Conditions) -> sa.Select[Any]:
        query = sa.select(*_PAGE_COLUMNS, *(() if len(parts) == 1 else (key.label(_ORDER),)))
        return query.where(*part, *after).order_by(*order).limit(page.limit + 1)

    if len(parts) == 1:
        return first(parts[0])
    every = sa.union_all(*(sa.select(first(part).subquery()) for part in parts)).subquery()
    columns = [every.c[column.name] for column in _PAGE_COLUMNS]
    return sa.select(*columns).order_by(*order_columns(page, every.c[_ORDER], every.c.id)).limit(page.limit + 1)


def _count(parts: Sequence[Conditions]) -> sa.Select[Any]:
    every = sa.or_(*(sa.and_(*part) for part in parts))
    return sa.select(sa.func.count()).select_from(leases).where(every)


def _filter_conditions(wanted: LeaseFilter, now: datetime) -> list[sa.ColumnElement[bool]]:
    where = [_condition(condition, now) for condition in wanted.conditions]
    if wanted.project_id is not None:
        where.append(leases.c.project_id == wanted.project_id)
    if wanted.text is not None:
        part = sa.func.lower(leases.c.name)
        where.append(part.contains(wanted.text.lower(), autoescape=True))
    if wanted.begin is not None:
        where.append(leases.c.ends_at > (now if wanted.begin is NOW else wanted.begin))
    if wanted.end is not None:
        where.append(leases.c.starts_at < (now if wanted.end is NOW else wanted.end))
    return where


def _condition(condition: Condition, now: datetime) -> sa.ColumnElement[bool]:
    values = condition.values
    if condition.key == "resource_type":
        return sa.exists().where(reservations.c.lease_id == leases.c.id, reservations.c.resource_type.in_(values))
    if condition.key == "region":
        return sa.exists().where(reservations.c.lease_id == leases.c.id, reservations.c.region.in_(values))
    if condition.key in ("resource", "label"):
        by_label = resources.c.label.in_(values)
        by_id = sa.and_(
            resources.c.external_id.in_(values),
            sa.true() if condition.key == "resource" else resources.c.kind.in_(sorted(NAMED_KINDS)),
        )
        return leases.c.id.in_(
            sa.select(allocations.c.lease_id)
            .join(resources, resources.c.id == allocations.c.resource_id)
            .where(sa.or_(by_label, by_id))
        )
    column = _COLUMNS[condition.key]
    if isinstance(column.type, UtcTime):
        instant = to_second(now) if values[0] == "now" else datetime.fromisoformat(values[0])
        return _COMPARED_INSTANTS[condition.operator](column, instant)
    if isinstance(column.type, sa.Boolean):
        return column.is_(values[0] == "true") if len(set(values)) == 1 else sa.true()
    if condition.operator is Operator.IN:
        return column.in_(values)
    return _COMPARED[condition.operator](column, values[0])


def _follow_position(page: Page, key: sa.ColumnElement[Any], project_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Return what selects the leases after the place where the page begins."""
    match page.after:
        case None:
            return []
        case Position(value, id_):
            place: Any = _parse_sort_value(value, key)
        case id_:
            mine = () if project_id is None else (leases.c.project_id == project_id,)
            place = sa.select(key).where(leases.c.id == id_, *mine).correlate(None).scalar_subquery()
    return [follow_place(page, key, leases.c.id, place, id_)]


def _parse_sort_value(text: str | None, key: sa.ColumnElement[Any]) -> Any:
    if text is None:
        raise unknown_marker()
    return parse_instant(text) if isinstance(key.type, UtcTime) else text


def _check_marker(connection: Connection, lease_id: str, project_id: str | None) -> None:
    mine = () if project_id is None else (leases.c.project_id == project_id,)
    query = sa.select(leases.c.id).where(leases.c.id == lease_id, *mine)
    if connection.execute(query).one_or_none() is None:
        raise unknown_marker()


def _position(lease: Lease, sort_key: str) -> Position:
    values = {
        "created_at": lease.created_at,
        "updated_at": lease.updated_at or lease.created_at,
        "start_date": lease.window.start,
        "end_date": lease.window.end,
        "name": lease.name,
        "status": str(lease.status),
        "release_at": (lease.use.release_at if lease.use else None) or lease.window.end,
    }
    value = values[sort_key]
    return Position(value.isoformat() if isinstance(value, datetime) else str(value), lease.id)


def details_of(connection: Connection, rows: Sequence[Any], wanted: LeaseFilter) -> tuple[LeaseDetails, ...]:
    """Return leases of rows with their parts, in at most three statements."""
    ids = [row[0] for row in rows]
    kept: Sequence[Any] = ()
    held: Mapping[str, tuple[HeldResource, ...]] = {}
    if ids and wanted.with_reservations:
        kept = select_among(connection, _PART_RESERVATIONS, reservations.c.lease_id, ids).all()
        held = _read_holdings(connection, ids)
    due: Sequence[Any] = ()
    if ids and wanted.with_events:
        due = select_among(connection, _PART_EVENTS, events.c.lease_id, ids).all()
    return tuple(
        LeaseDetails(_end_deleted(lease), held.get(lease.id, ())) for lease in assemble_leases(rows, kept, due)
    )


_PART_RESERVATIONS = sa.select(*RESERVATION_COLUMNS).order_by(reservations.c.position)
_PART_EVENTS = (
    sa.select(*EVENT_COLUMNS)
    .where(events.c.event_type.not_in([str(kind) for kind in UNREAD_EVENTS]))
    .order_by(events.c.time, events.c.id)
)
_PART_HOLDINGS = (
    sa.select(*_HELD_COLUMNS).join(resources, resources.c.id == allocations.c.resource_id).order_by(allocations.c.id)
)


def _end_deleted(lease: Lease) -> Lease:
    """Return a lease as it is shown: a deleted one has ended."""
    return lease if lease.deleted_at is None else replace(lease, status=LeaseStatus.TERMINATED)


def _read_holdings(connection: Connection, ids: Collection[str]) -> Mapping[str, tuple[HeldResource, ...]]:
    """Return what leases hold, by lease; of a reservation that holds nothing any more, what it held."""
    rows = select_among(connection, _PART_HOLDINGS, allocations.c.lease_id, ids).all()
    live = {row.reservation_id for row in rows if row.released_at is None}
    found: dict[str, dict[tuple[str, int], HeldResource]] = defaultdict(dict)
    for row in rows:
        if row.released_at is None or row.reservation_id not in live:
            found[row.lease_id][row.reservation_id, row.resource_id] = _holding_of(row)
    return {lease_id: tuple(parts.values()) for lease_id, parts in found.items()}


def _holding_of(row: Any) -> HeldResource:
    return HeldResource(
        row.reservation_id,
        row.resource_id,
        ResourceKind(row.kind),
        row.external_id,
        row.name,
        row.label,
        row.held,
        None if row.per_instance is None else Amounts.of(row.per_instance),
        row.released_at is not None,
    )


@dataclass(frozen=True, slots=True)
class CloudObjects:
    """The ids of what a reservation in use has made, and those that were seen to be gone."""

    lease_id: str
    reservation_id: str
    resource_type: str
    region: str
    ids: tuple[str, ...]
    gone: frozenset[str]


class CloudObjectStore:
    """Reads what reservations have made."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def objects_in_use(self, resource_types: Collection[str]) -> tuple[CloudObjects, ...]:
        """Return what reservations in use of active leases have made, by the order of their ids; one statement."""
        query = (
            sa.select(
                reservations.c.lease_id,
                reservations.c.id,
                reservations.c.resource_type,
                reservations.c.region,
                reservations.c.cloud_ids,
            )
            .join(leases, leases.c.id == reservations.c.lease_id)
            .where(
                leases.c.deleted_at.is_(None),
                leases.c.status == str(LeaseStatus.ACTIVE),
                reservations.c.status == str(ReservationStatus.ACTIVE),
                reservations.c.resource_type.in_(sorted(resource_types)),
            )
            .order_by(reservations.c.id)
        )
        rows = self._transactions.select(query)
        return tuple(
            CloudObjects(lease_id, id_, kind, region, ids, frozenset(thing.id for thing in gone_of(stored)))
            for lease_id, id_, kind, region, stored in rows
            if (ids := created_ids(kind, stored))
        )
