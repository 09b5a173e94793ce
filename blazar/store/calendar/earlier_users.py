# SPDX-License-Identifier: Apache-2.0
"""Earlier users of resources: those that delay the start of the next, and the last of those that are gone.

The next one waits for late ones, and for the cleaning after those that have left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass
from blazar.model.leases.states import LeaseStatus
from blazar.store.resources.inventory import read_declared
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import allocations, leases, resources

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class EarlierUser:
    """An earlier user of a resource, which another lease is to use.

    ``clean_at`` is when the cleaning after it ends; None while it has not left.
    """

    lease_id: str
    clean_at: datetime | None = None


def read_earlier_users(
    connection: Connection, lease_id: str, *, before: datetime, now: datetime, cleaning: timedelta
) -> tuple[EarlierUser, ...]:
    """Return the leases whose use of a resource of this lease has not finished, and leaves too little of it.

    These are leases that should have left by ``before`` and have not, and leases that have left but whose cleaning
    time, which begins when they leave, has not passed. Those that have not left come first.
    """
    query: Any = _LATE
    values: dict[str, object] = {"lease_id": lease_id, "before": before}
    if cleaning:
        query = _LATE_OR_CLEANED
        values |= {"now": now, "since": now - cleaning - _SECOND}
    found = connection.execute(query, values).all()
    shared = {
        resource_id for _, resource_id, per_instance, mine, _ in found if per_instance is not None and mine is not None
    }
    full = _find_full(connection, shared, before, now, cleaning) if shared else frozenset()
    users = {
        EarlierUser(who, clean_at)
        for who, resource_id, per_instance, mine, clean_at in found
        if per_instance is None or mine is None or resource_id in full
    }
    return tuple(sorted(users, key=lambda user: (user.clean_at is not None, user.clean_at or now, user.lease_id)))


def find_leases_with_earlier_users(
    connection: Connection, lease_ids: Collection[str], *, now: datetime, cleaning: timedelta
) -> frozenset[str]:
    """Return those of some leases that may have to wait for earlier users: all that have to, and perhaps others."""
    found: set[str] = set()
    query: Any = sa.select(allocations.c.lease_id).distinct().where(allocations.c.released_at.is_(None), _besides)
    late = sa.and_(_theirs.c.released_at.is_(None), _theirs.c.ends_at <= now)
    for part in chunks(sorted(lease_ids)):
        mine = query.join(_theirs, allocations.c.resource_id == _theirs.c.resource_id).where(
            allocations.c.lease_id.in_(part)
        )
        found.update(connection.execute(mine.where(late)).scalars())
        if cleaning:
            values = {"now": now, "since": now - cleaning - _SECOND}
            found.update(connection.execute(mine.where(_is_cleaned(_theirs)), values).scalars())
    return frozenset(found)


def _is_cleaned(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition for released resources being cleaned; the time of release makes it use an index."""
    instant = allocations.c.released_at.type
    return sa.and_(
        table.c.released_at > sa.bindparam("since", type_=instant),
        table.c.blocks_until > sa.bindparam("now", type_=instant),
    )


_theirs = allocations.alias("theirs")
_besides = _theirs.c.lease_id != allocations.c.lease_id
_BESIDE = (
    sa.select(
        _theirs.c.lease_id, _theirs.c.resource_id, _theirs.c.per_instance, allocations.c.per_instance.label("mine")
    )
    .join(allocations, allocations.c.resource_id == _theirs.c.resource_id)
    .where(
        allocations.c.lease_id == sa.bindparam("lease_id", type_=allocations.c.lease_id.type),
        allocations.c.released_at.is_(None),
        _besides,
    )
)
_LATE = _BESIDE.add_columns(sa.type_coerce(sa.null(), allocations.c.blocks_until.type).label("clean_at")).where(
    _theirs.c.released_at.is_(None), _theirs.c.ends_at <= sa.bindparam("before", type_=allocations.c.ends_at.type)
)
_LATE_OR_CLEANED = sa.union_all(
    _LATE, _BESIDE.add_columns(_theirs.c.blocks_until.label("clean_at")).where(_is_cleaned(_theirs))
)


def _find_full(
    connection: Connection, ids: Collection[int], at: datetime, now: datetime, cleaning: timedelta
) -> frozenset[int]:
    """Return the resources of which more is taken at an instant, including late users, than they have.

    What is being cleaned now counts as taken.
    """
    taken_then = sa.and_(allocations.c.released_at.is_(None), allocations.c.starts_at <= at)
    rows = connection.execute(
        sa.select(resources.c.id, resources.c.capacity, allocations.c.count, allocations.c.per_instance)
        .join(resources, resources.c.id == allocations.c.resource_id)
        .where(
            allocations.c.resource_id.in_(sorted(ids)),
            sa.or_(taken_then, _is_cleaned(allocations)) if cleaning else taken_then,
        ),
        {"now": now, "since": now - cleaning - _SECOND} if cleaning else {},
    )
    declared = read_declared(connection, ids)
    taken: dict[int, Amounts] = defaultdict(Amounts)
    capacities: dict[int, Amounts] = {}
    for id_, capacity, count, per_instance in rows:
        capacities[id_] = Amounts.of(capacity) + declared.get(id_, Amounts())
        taken[id_] += Amounts.of(per_instance or {}).times(count)
    return frozenset(id_ for id_, sum_ in taken.items() if any(n > capacities[id_].get(name) for name, n in sum_))


def read_last_reservations(
    connection: Connection, projects: Mapping[int, Collection[str]], now: datetime
) -> Mapping[tuple[int, str], str]:
    """Return the last finished reservation of projects on resources that they have no more at present.

    By calendar id and project. A project that never had a resource is left out. Two statements for each few thousand
    projects.
    """
    asked = {(resource_id, project) for resource_id, them in projects.items() for project in them}
    over = sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == str(LeaseStatus.TERMINATED))
    is_current = sa.and_(allocations.c.released_at.is_(None), allocations.c.starts_at <= now)
    query = (
        sa.select(allocations.c.resource_id, leases.c.project_id, sa.func.max(sa.case((over, allocations.c.id))))
        .join(leases, leases.c.id == allocations.c.lease_id)
        .where(allocations.c.resource_id.in_(sorted(projects)))
        .group_by(allocations.c.resource_id, leases.c.project_id)
        .having(sa.func.sum(sa.case((is_current, 1), else_=0)) == 0)
    )
    found: dict[int, tuple[int, str]] = {}
    names: dict[int, str] = {}
    for part in chunks(sorted({project for _, project in asked})):
        for resource_id, project, last in connection.execute(query.where(leases.c.project_id.in_(part))):
            if last is not None and (resource_id, project) in asked:
                found[last] = (resource_id, project)
    for ids in chunks(sorted(found)):
        of_each = sa.select(allocations.c.id, allocations.c.reservation_id).where(allocations.c.id.in_(ids))
        for id_, reservation_id in connection.execute(of_each):
            names[id_] = reservation_id
    return {found[id_]: reservation_id for id_, reservation_id in names.items()}
