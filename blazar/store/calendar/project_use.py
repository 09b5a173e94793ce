# SPDX-License-Identifier: Apache-2.0
"""What a project has, and the version that keeps a limit on it under concurrent requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second
from blazar.model.base.errors import StaleCalendar
from blazar.model.base.window import Window
from blazar.model.leases.lease import SavedAllocation
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.leases.stored import saved_state_of
from blazar.model.resources.resource import HOST
from blazar.model.use.resource_hours import HostUse, ProjectUse, UsageRecord
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import allocations, events, leases, project_uses, reservations

GIVEN_BACK = (str(LeaseStatus.TERMINATED), str(LeaseStatus.DELETING))
"""States of leases that no longer count: ended, or being deleted by their owner."""


UNGRANTED = (str(LeaseStatus.WAITING), str(LeaseStatus.TIMED_OUT))
"""States of leases that have no resources yet, or never had any."""


def read_host_use(connection: Connection, project_id: str, window: Window, besides: str) -> ProjectUse:
    """Return what a project has in a window, without one lease, in two statements."""
    version = connection.execute(
        sa.select(project_uses.c.version).where(project_uses.c.project_id == project_id)
    ).scalar()
    hosts = sa.func.coalesce(sa.func.sum(allocations.c.count), 0)
    live = sa.and_(
        allocations.c.lease_id == leases.c.id,
        allocations.c.released_at.is_(None),
        allocations.c.kind == str(HOST),
        allocations.c.per_instance.is_(None),
    )
    # While a lease gets more hosts and more time at once, only its allocations tell of the time.
    overlaps = sa.or_(
        sa.and_(leases.c.starts_at < window.end, leases.c.ends_at > window.start),
        sa.and_(allocations.c.starts_at < window.end, allocations.c.ends_at > window.start),
    )
    begins, ends = sa.func.min(allocations.c.starts_at), sa.func.max(allocations.c.ends_at)
    rows = connection.execute(
        sa.select(leases.c.id, leases.c.starts_at, leases.c.ends_at, begins, ends, hosts)
        .select_from(leases.outerjoin(allocations, live))
        .where(
            leases.c.project_id == project_id,
            leases.c.deleted_at.is_(None),
            leases.c.status.not_in((*GIVEN_BACK, *UNGRANTED)),
            leases.c.id != besides,
            overlaps,
        )
        .group_by(leases.c.id, leases.c.starts_at, leases.c.ends_at)
        .order_by(leases.c.starts_at, leases.c.id)
    )
    uses = tuple(
        HostUse(id_, Window(min(start, first or start), max(end, last or end)), int(number))
        for id_, start, end, first, last, number in rows
    )
    return ProjectUse(project_id, version or 0, uses)


def select_counted(now: datetime) -> sa.ColumnElement[bool]:
    """Select the leases that count against the limits of their project: they have not ended and are not deleted."""
    return sa.and_(leases.c.ends_at > now, leases.c.deleted_at.is_(None), leases.c.status.not_in(GIVEN_BACK))


def count_leases(connection: Connection, project_id: str, now: datetime) -> tuple[int, int]:
    """Return the number of leases of a project that have not ended, and the number of their reservations.

    One statement, which uses the index of a project's leases by end and that of reservations by lease.
    """
    row = connection.execute(
        sa.select(sa.func.count(leases.c.id.distinct()), sa.func.count(reservations.c.id))
        .select_from(leases.outerjoin(reservations, reservations.c.lease_id == leases.c.id))
        .where(leases.c.project_id == project_id, select_counted(now))
    ).one()
    return int(row[0]), int(row[1])


def read_usage_records(
    connection: Connection, project_id: str, window: Window, besides: str, now: datetime
) -> tuple[tuple[UsageRecord, ...], tuple[UsageRecord, ...]]:
    """Return what a project had, has and will have in a window, and separately what one lease has now.

    One statement, which uses the index of a project's leases by end. What was returned counts until then, what was
    added to a lease counts from then on, and what is being deleted counts until now.
    """
    second = to_second(now)
    held: list[UsageRecord] = []
    mine: list[UsageRecord] = []
    for row in connection.execute(_select_records(leases.c.project_id == project_id, window)):
        if (record := _parse_record(row, second)) is not None:
            own = record.lease_id == besides and row.released_at is None
            (mine if own else held).append(record)
    return tuple(held), tuple(mine)


def read_usage_of_projects(
    connection: Connection, project_ids: Collection[str], window: Window, now: datetime
) -> Mapping[str, tuple[UsageRecord, ...]]:
    """Return what projects had, have and will have in a window, as ``read_usage_records`` counts; one statement."""
    second = to_second(now)
    found: dict[str, list[UsageRecord]] = defaultdict(list)
    for row in connection.execute(_select_records(leases.c.project_id.in_(project_ids), window)):
        if (record := _parse_record(row, second)) is not None:
            found[row.project_id].append(record)
    return {project_id: tuple(records) for project_id, records in found.items()}


def list_projects(connection: Connection, window: Window, *, after: str, limit: int) -> tuple[str, ...]:
    """Return the projects with leases in a window, by id from the one ``after``; one statement."""
    query = (
        sa.select(leases.c.project_id)
        .where(leases.c.starts_at < window.end, leases.c.ends_at > window.start, leases.c.project_id > after)
        .distinct()
        .order_by(leases.c.project_id)
        .limit(limit)
    )
    return tuple(connection.execute(query).scalars())


def _parse_record(row: AnyRow, second: datetime) -> UsageRecord | None:
    """Return what a row of ``_select_records`` counts for; None: it never was used."""
    start = row.starts_at if row.added_at is None else max(row.starts_at, to_second(row.added_at))
    is_going = row.released_at is None and row.status in GIVEN_BACK
    end = min(row.ends_at, second) if is_going else row.ends_at
    if start >= end:
        return None
    amounts = None if row.per_instance is None else Amounts.of(row.per_instance)
    return UsageRecord(row.lease_id, row.kind, Window(start, end), row.count_, amounts, row.series_id)


def _select_records(of_projects: sa.ColumnElement[bool], window: Window) -> sa.Select[Any]:
    """Return a query of the allocations of projects in a window, with the statuses of their leases."""
    a = allocations.c
    return (
        sa.select(
            leases.c.id.label("lease_id"),
            leases.c.project_id,
            leases.c.status,
            leases.c.series_id,
            a.kind,
            a.starts_at,
            a.ends_at,
            a.added_at,
            a.released_at,
            # A row has a method of the name of the column.
            a.count.label("count_"),
            a.per_instance,
        )
        .join(leases, leases.c.id == a.lease_id)
        .where(
            of_projects,
            # While a lease gets more hosts and more time at once, only its allocations tell of the time.
            sa.or_(leases.c.ends_at > window.start, leases.c.status == str(LeaseStatus.UPDATING)),
            a.starts_at < window.end,
            a.ends_at > window.start,
            # Allocations released before their start never count.
            sa.or_(a.released_at.is_(None), a.released_at >= a.starts_at),
        )
        .order_by(a.id)
    )


def raise_use_version(connection: Connection, use: ProjectUse) -> None:
    """Raise the version of a project's usage if it is still the one that was read; else StaleCalendar.

    The first time there is no row yet; then a clash with a concurrent insert means the same.
    """
    if not use.version:
        connection.execute(project_uses.insert().values(project_id=use.project_id, version=1))
        return
    raised = connection.execute(
        project_uses.update()
        .where(project_uses.c.project_id == use.project_id, project_uses.c.version == use.version)
        .values(version=use.version + 1)
    )
    if not raised.rowcount:
        raise StaleCalendar("the project was granted another lease or change in the meantime")


def lock_use(connection: Connection, project_id: str) -> None:
    """Raise the version of a project's usage whatever it is: no other transaction does so until this one is over.

    The first time there is no row yet; then Clash means that a concurrent transaction has made it.
    """
    mine = project_uses.c.project_id == project_id
    raised = connection.execute(project_uses.update().where(mine).values(version=project_uses.c.version + 1))
    if not raised.rowcount:
        connection.execute(project_uses.insert().values(project_id=project_id, version=1))


USED = (str(LeaseStatus.STARTING), str(LeaseStatus.ACTIVE), str(LeaseStatus.UPDATING), str(LeaseStatus.ERROR))
"""States of leases that may have reservations in use, and that are not being deleted."""


def read_shares(
    connection: Connection, project_id: str, resource_ids: Collection[int], *, besides: str, now: datetime
) -> Mapping[int, Mapping[str, Amounts]]:
    """Return what the reservations of a project have of resources, by calendar id and reservation; one is left out.

    One statement. Of a lease that is being changed that is what it had before: its allocations are also for what it
    may get.
    """
    found: dict[int, dict[str, Amounts]] = defaultdict(lambda: defaultdict(Amounts))
    before: dict[str, tuple[SavedAllocation, ...]] = {}
    active: dict[str, set[str]] = defaultdict(set)
    query = _select_shares(project_id, resource_ids, now)
    for lease_id, id_, resource_id, count, per_instance, stored in connection.execute(query):
        saved = saved_state_of(stored)
        if saved is not None and saved.allocations is not None:
            before[lease_id] = saved.allocations
            active[lease_id].add(id_)
        elif id_ != besides:
            found[resource_id][id_] += Amounts.of(per_instance or {}).times(count)
    for lease_id, held in before.items():
        for allocation in held:
            if allocation.reservation_id in active[lease_id] - {besides} and allocation.resource_id in resource_ids:
                found[allocation.resource_id][allocation.reservation_id] += (
                    allocation.per_instance or Amounts()
                ).times(allocation.count)
    return found


def _select_shares(project_id: str, resource_ids: Collection[int], now: datetime) -> sa.Select[Any]:
    change = sa.and_(
        events.c.lease_id == leases.c.id,
        events.c.event_type == str(EventType.UPDATE),
        leases.c.status == str(LeaseStatus.UPDATING),
    )
    return (
        sa.select(
            leases.c.id,
            reservations.c.id,
            allocations.c.resource_id,
            allocations.c.count,
            allocations.c.per_instance,
            events.c.saved_state,
        )
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .join(allocations, allocations.c.reservation_id == reservations.c.id)
        .outerjoin(events, change)
        .where(
            leases.c.project_id == project_id,
            allocations.c.resource_id.in_(sorted(resource_ids)),
            allocations.c.released_at.is_(None),
            allocations.c.starts_at <= now,
            leases.c.status.in_(USED),
            sa.or_(
                reservations.c.status == str(ReservationStatus.ACTIVE),
                sa.and_(
                    reservations.c.status == str(ReservationStatus.PENDING),
                    leases.c.status == str(LeaseStatus.STARTING),
                ),
            ),
        )
    )
