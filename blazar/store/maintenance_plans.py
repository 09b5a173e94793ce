# SPDX-License-Identifier: Apache-2.0
"""What a maintenance window does to leases, as its rows say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import StaleCalendar
from blazar.model.lease import LeaseStatus
from blazar.model.maintenance import (
    ELSEWHERE,
    OPEN,
    AffectedLease,
    HostMove,
    LeasePlan,
    Outcome,
    as_it_is,
)
from blazar.model.window import Window
from blazar.store.rows import AnyRow, chunks
from blazar.store.tables import (
    allocations,
    leases,
    maintenance_leases,
    maintenance_resources,
    maintenances,
    resources,
)


def write_plan(connection: Connection, maintenance_id: str, plan: LeasePlan) -> None:
    """Write what has become of a lease, in the transaction in which that becomes true.

    StaleCalendar if the window has been planned again meanwhile, without this lease.
    """
    m = maintenance_leases.c
    written = connection.execute(
        maintenance_leases.update()
        .where(m.maintenance_id == maintenance_id, m.lease_id == plan.lease_id)
        .values(
            outcome=str(plan.outcome),
            targets=_targets_json(plan),
            openings=_openings_json(plan),
            done=plan.done,
            content=plan.content,
            note=plan.note,
        )
    )
    if not written.rowcount:
        raise StaleCalendar("the maintenance window was planned again in the meantime")


def insert_plans(connection: Connection, maintenance_id: str, plans: Iterable[LeasePlan]) -> None:
    """Write what is planned for leases of a new window."""
    rows = [
        {
            "maintenance_id": maintenance_id,
            "lease_id": plan.lease_id,
            "position": plan.position,
            "outcome": str(plan.outcome),
            "makes_room": plan.makes_room,
            "targets": _targets_json(plan),
            "openings": _openings_json(plan),
            "done": plan.done,
            "content": plan.content,
            "told": plan.told,
            "told_at": plan.told_at,
            "note": plan.note,
        }
        for plan in plans
    ]
    if rows:
        connection.execute(maintenance_leases.insert(), rows)


def replace_plans(connection: Connection, maintenance_id: str, plans: Collection[LeasePlan]) -> None:
    """Write other plans; what owners have been told, and where leases have been moved before, stays on record.

    A lease whose servers are being moved goes on as it has begun.
    """
    m = maintenance_leases.c
    earlier = {
        row.lease_id: plan_of(row)
        for row in connection.execute(sa.select(maintenance_leases).where(m.maintenance_id == maintenance_id))
    }
    begun = {id_: each for id_, each in earlier.items() if each.is_begun}
    plans = [plan for plan in plans if plan.lease_id not in begun]
    kept = list(begun.values())
    kept += [
        replace(plan, told=earlier[plan.lease_id].told, told_at=earlier[plan.lease_id].told_at)
        if plan.lease_id in earlier
        else plan
        for plan in plans
    ]
    planned = {plan.lease_id for plan in plans} | begun.keys()
    kept += [each for id_, each in earlier.items() if id_ not in planned and each.done and each.outcome in ELSEWHERE]
    connection.execute(maintenance_leases.delete().where(m.maintenance_id == maintenance_id))
    insert_plans(connection, maintenance_id, kept)


def take_plans(connection: Connection, lease_id: str, origin: str, at: datetime) -> None:
    """Plan for a lease that has resources of another one as it is planned for that one, and have it carried out.

    A plan that is there already is made from what the lease has now. What its owner was told stays on record.
    """
    m, w = maintenance_leases.c, maintenances.c
    is_open = [str(status) for status in OPEN]
    query = (
        sa.select(maintenance_leases)
        .join(maintenances, w.id == m.maintenance_id)
        .where(m.lease_id.in_([lease_id, origin]))
    )
    # What has begun is put in order also after the window is over.
    rows = [
        row for row in connection.execute(query.add_columns(w.status)) if row.status in is_open or plan_of(row).is_begun
    ]
    mine = {row.maintenance_id: plan_of(row) for row in rows if row.lease_id == lease_id}
    for row in (each for each in rows if each.lease_id == origin):
        if row.maintenance_id in mine:
            this = (m.maintenance_id == row.maintenance_id, m.lease_id == lease_id)
            connection.execute(maintenance_leases.update().where(*this).values(done=False, makes_room=False))
            if plan_of(row).is_begun:
                write_plan(connection, row.maintenance_id, _with_begun(mine[row.maintenance_id], plan_of(row)))
        else:
            plan = replace(plan_of(row), lease_id=lease_id, makes_room=False)
            if plan.outcome not in (Outcome.ACTIVE, Outcome.MIGRATED):
                plan = replace(plan, targets={}, done=False, content=None)
            insert_plans(connection, row.maintenance_id, [plan])
        connection.execute(
            maintenances.update()
            .where(w.id == row.maintenance_id, w.claimed_by.is_(None), w.due_at.is_not(None))
            .values(due_at=at)
        )


def _with_begun(mine: LeasePlan, theirs: LeasePlan) -> LeasePlan:
    """Return a plan for a lease that gets reservations whose servers are being moved: that goes on as it has begun."""
    targets = {**mine.targets, **theirs.targets}
    return replace(mine, outcome=Outcome.MIGRATED, targets=targets, done=False, content=None, note=theirs.note)


def _targets_json(plan: LeasePlan) -> dict[str, Any]:
    return {
        reservation: {str(source): {str(id_): n for id_, n in found.items()} for source, found in sources.items()}
        for reservation, sources in plan.targets.items()
    }


def _openings_json(plan: LeasePlan) -> list[str]:
    return [each.isoformat() for each in plan.openings]


def plan_of(row: AnyRow) -> LeasePlan:
    """Return the plan for a lease from its row."""
    return LeasePlan(
        row.lease_id,
        Outcome(row.outcome),
        row.position,
        {
            reservation: {int(source): {int(id_): n for id_, n in found.items()} for source, found in sources.items()}
            for reservation, sources in row.targets.items()
        },
        tuple(datetime.fromisoformat(each) for each in row.openings),
        row.makes_room,
        row.done,
        row.content,
        row.told,
        row.told_at,
        row.note,
    )


def held_in(maintenance_id: sa.ColumnElement[str], *, ever: bool = False) -> sa.Select[Any]:
    """Return a query of what leases have of the hosts of a window at that time: lease, reservation, host.

    ``ever``: also of what they have given back since, if its time had begun.
    """
    a, w, r = allocations.c, maintenances.c, maintenance_resources.c
    held = a.released_at.is_(None)
    return (
        sa.select(a.lease_id, a.reservation_id, a.resource_id)
        .join(maintenance_resources, r.resource_id == a.resource_id)
        .join(maintenances, w.id == r.maintenance_id)
        .where(
            w.id == maintenance_id,
            a.starts_at < w.ends_at,
            a.ends_at > w.starts_at,
            # What was given back before its time had begun blocks nothing, from long ago on.
            sa.or_(held, a.blocks_until > a.starts_at) if ever else held,
        )
    )


def affected(connection: Connection, maintenance_id: str, *, is_open: bool) -> tuple[AffectedLease, ...]:
    """Return the leases of a window as they are now, in three statements for each few thousand hosts.

    Of a window that is open those that keep hosts are left out when they are over, or have none of them in that time
    any more; of one that is not open those that never had.
    """
    m = maintenance_leases.c
    query = (
        sa.select(
            *maintenance_leases.c,
            leases.c.revision,
            leases.c.name,
            leases.c.project_id,
            leases.c.user_id,
            leases.c.starts_at,
            leases.c.ends_at,
            leases.c.status,
            leases.c.deleted_at,
        )
        .join(leases, leases.c.id == m.lease_id)
        .where(m.maintenance_id == maintenance_id)
        .order_by(leases.c.starts_at, m.lease_id)
    )
    held: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    rows = connection.execute(query).all()
    if rows:
        having = held_in(sa.literal(maintenance_id), ever=not is_open)
        for lease_id, reservation_id, resource_id in connection.execute(having):
            held[lease_id][reservation_id].add(resource_id)
    shown = []
    for row in rows:
        status = LeaseStatus.TERMINATED if row.deleted_at is not None else LeaseStatus(row.status)
        plan = as_it_is(plan_of(row), status, held[row.lease_id], is_open=is_open)
        if plan is not None:
            shown.append((plan, row, str(status)))
    ids = {
        id_
        for plan, *_ in shown
        for sources in plan.targets.values()
        for source, targets in sources.items()
        for id_ in (source, *targets)
    }
    names: dict[int, str] = {}
    for part in chunks(sorted(ids)):
        known = sa.select(resources.c.id, resources.c.external_id).where(resources.c.id.in_(part))
        names.update((id_, external_id) for id_, external_id in connection.execute(known))
    return tuple(
        AffectedLease(
            plan.lease_id,
            row.revision,
            row.name,
            row.project_id,
            row.user_id,
            Window(row.starts_at, row.ends_at),
            status,
            plan.outcome,
            tuple(sorted({names[source] for sources in plan.targets.values() for source in sources})),
            shown_moves(plan, names),
            plan.openings,
            plan.makes_room,
            plan.done,
            plan.told_at,
            plan.note,
        )
        for plan, row, status in shown
    )


def shown_moves(plan: LeasePlan, names: Mapping[int, str]) -> tuple[HostMove, ...]:
    """Return the moves of a plan by the ids that the API shows."""
    return tuple(
        HostMove(reservation, names[source], names[target], count)
        for reservation, sources in sorted(plan.targets.items())
        for source, targets in sorted(sources.items())
        for target, count in sorted(targets.items())
    )
