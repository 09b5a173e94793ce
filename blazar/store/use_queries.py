# SPDX-License-Identifier: Apache-2.0
"""What a project has, and the version that keeps a limit on it under concurrent requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.clock import to_second
from blazar.model.errors import StaleCalendar
from blazar.model.lease import LeaseStatus
from blazar.model.resource import HOST
from blazar.model.spending import UsageRecord
from blazar.model.usage import LeaseUse, ProjectUse
from blazar.model.window import Window
from blazar.store.tables import allocations, leases, project_uses, reservations
from blazar.store.transactions import Clash

GIVEN_BACK = (str(LeaseStatus.TERMINATED), str(LeaseStatus.DELETING))
"""States of leases that no longer count: ended, or being deleted by their owner."""


UNGRANTED = (str(LeaseStatus.WAITING), str(LeaseStatus.TIMED_OUT))
"""States of leases that have no resources yet, or never had any."""


def of_project(connection: Connection, project_id: str, window: Window, besides: str) -> ProjectUse:
    """Return what a project has in a window, without one lease, in two statements."""
    version = connection.execute(
        sa.select(project_uses.c.version).where(project_uses.c.project_id == project_id)
    ).scalar()
    hosts = sa.func.coalesce(sa.func.sum(allocations.c.units), 0)
    live = sa.and_(
        allocations.c.lease_id == leases.c.id,
        allocations.c.released_at.is_(None),
        allocations.c.kind == str(HOST),
        allocations.c.unit.is_(None),
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
        LeaseUse(id_, Window(min(start, first or start), max(end, last or end)), int(number))
        for id_, start, end, first, last, number in rows
    )
    return ProjectUse(project_id, version or 0, uses)


def counted(now: datetime) -> sa.ColumnElement[bool]:
    """Select the leases that count against the limits of their project: they have not ended and are not deleted."""
    return sa.and_(leases.c.ends_at > now, leases.c.deleted_at.is_(None), leases.c.status.not_in(GIVEN_BACK))


def count(connection: Connection, project_id: str, now: datetime) -> tuple[int, int]:
    """Return the number of leases of a project that have not ended, and the number of their reservations.

    One statement, which uses the index of a project's leases by end and that of reservations by lease.
    """
    row = connection.execute(
        sa.select(sa.func.count(leases.c.id.distinct()), sa.func.count(reservations.c.id))
        .select_from(leases.outerjoin(reservations, reservations.c.lease_id == leases.c.id))
        .where(leases.c.project_id == project_id, counted(now))
    ).one()
    return int(row[0]), int(row[1])


def over_time(
    connection: Connection, project_id: str, window: Window, besides: str, now: datetime
) -> tuple[tuple[UsageRecord, ...], tuple[UsageRecord, ...]]:
    """Return what a project had, has and will have in a window, and separately what one lease has now.

    One statement, which uses the index of a project's leases by end. What was returned counts until then, what was
    added to a lease counts from then on, and what is being deleted counts until now.
    """
    a, second = allocations.c, to_second(now)
    rows = connection.execute(
        sa.select(
            leases.c.id,
            leases.c.status,
            a.kind,
            a.starts_at,
            a.ends_at,
            a.added_at,
            a.released_at,
            a.units,
            a.unit,
        )
        .join(leases, leases.c.id == a.lease_id)
        .where(
            leases.c.project_id == project_id,
            # While a lease gets more hosts and more time at once, only its allocations tell of the time.
            sa.or_(leases.c.ends_at > window.start, leases.c.status == str(LeaseStatus.UPDATING)),
            a.starts_at < window.end,
            a.ends_at > window.start,
            # Allocations released before their start never count.
            sa.or_(a.released_at.is_(None), a.released_at >= a.starts_at),
        )
        .order_by(a.id)
    )
    held: list[UsageRecord] = []
    mine: list[UsageRecord] = []
    for lease_id, status, kind, starts_at, ends_at, added_at, released_at, count, per_instance in rows:
        start = starts_at if added_at is None else max(starts_at, to_second(added_at))
        end = min(ends_at, second) if released_at is None and status in GIVEN_BACK else ends_at
        if start < end:
            amounts = None if per_instance is None else Amounts.of(per_instance)
            own = lease_id == besides and released_at is None
            (mine if own else held).append(UsageRecord(lease_id, kind, Window(start, end), count, amounts))
    return tuple(held), tuple(mine)


def raise_version(connection: Connection, use: ProjectUse) -> None:
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


def lock(connection: Connection, project_id: str) -> None:
    """Raise the version of a project's usage whatever it is: no other transaction does so until this one is over.

    The first time there is no row yet; then Clash means that a concurrent transaction has made it.
    """
    mine = project_uses.c.project_id == project_id
    raised = connection.execute(project_uses.update().where(mine).values(version=project_uses.c.version + 1))
    if not raised.rowcount:
        connection.execute(project_uses.insert().values(project_id=project_id, version=1))


@contextmanager
def stale_if_first(use: ProjectUse | None, *, locks: bool = False) -> Iterator[None]:
    """Raise StaleCalendar if the first two bookings of a project that is limited by its ``use`` conflict.

    ``locks``: they lock it, without having read it.
    """
    try:
        yield
    except Clash as error:
        if not locks and (use is None or use.version):
            raise
        raise StaleCalendar("the project was granted another lease or change in the meantime") from error
