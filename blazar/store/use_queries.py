"""What a project holds, and the version by which a limit on it stays kept when two requests come at once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import StaleCalendar
from blazar.model.lease import LeaseStatus
from blazar.model.resource import ResourceKind
from blazar.model.usage import LeaseUse, ProjectUse
from blazar.model.window import Window
from blazar.store.tables import allocations, leases, project_uses

GIVEN_BACK = (str(LeaseStatus.TERMINATED), str(LeaseStatus.DELETING))
"""Leases that count no more: over, or on their way out at their owner's wish."""


def of_project(connection: Connection, project_id: str, window: Window, besides: str) -> ProjectUse:
    """Return what a project holds in a window, without one lease, in two statements."""
    version = connection.execute(
        sa.select(project_uses.c.version).where(project_uses.c.project_id == project_id)
    ).scalar()
    hosts = sa.func.coalesce(sa.func.sum(allocations.c.units), 0)
    live = sa.and_(
        allocations.c.lease_id == leases.c.id,
        allocations.c.released_at.is_(None),
        allocations.c.kind == str(ResourceKind.HOST),
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
            leases.c.status.not_in(GIVEN_BACK),
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


def raise_version(connection: Connection, use: ProjectUse) -> None:
    """Raise the version of what a project holds where it is still the one read; StaleCalendar if it is not.

    The first time there is no row yet; then a clash with somebody else who inserts it means the same.
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
        raise StaleCalendar("the project was granted something else in the meantime")
