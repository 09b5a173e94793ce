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

from blazar.model.base.errors import StaleCalendar
from blazar.model.base.window import Window
from blazar.model.journal.entries import Announcement
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import ELSEWHERE, OPEN, AffectedLease, HostMove, LeasePlan, Outcome, adjust_plan
from blazar.store.journal.rows import write_announcement
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import (
    allocations,
    leases,
    maintenance_leases,
    maintenance_resources,
    maintenance_windows,
    resources,
)
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work.claims import WINDOWS


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
    rows = [plan_row(maintenance_id, plan) for plan in plans]
    if rows:
        connection.execute(maintenance_leases.insert(), rows)


def plan_row(maintenance_id: str, plan: LeasePlan) -> dict[str, Any]:
    """Return the columns of the plan for a lease."""
    return {
        "maintenance_id": maintenance_id,
        "lease_id": plan.lease_id,
        "position": plan.position,
        "outcome": str(plan.outcome),
        "makes_room": plan.makes_room,
        "targets": _targets_json(plan),
        "openings": _openings_json(plan),
        "done": plan.done,
        "content": plan.content,
        "notified": plan.notified,
        "notified_at": plan.notified_at,
        "note": plan.note,
    }


def replace_plans(connection: Connection, maintenance_id: str, plans: Collection[LeasePlan]) -> None:
    """Write other plans; what owners have been told, and where leases have been moved before, stays on record.

    A lease whose servers are being moved goes on as it has begun.
    """
    m = maintenance_leases.c
    earlier = {
        row.lease_id: plan_of(row)
        for row in connection.execute(sa.select(maintenance_leases).where(m.maintenance_id == maintenance_id))
    }
    begun = {id_: plan for id_, plan in earlier.items() if plan.is_begun}
    plans = [plan for plan in plans if plan.lease_id not in begun]
    kept = list(begun.values())
    kept += [
        replace(plan, notified=earlier[plan.lease_id].notified, notified_at=earlier[plan.lease_id].notified_at)
        if plan.lease_id in earlier
        else plan
        for plan in plans
    ]
    planned = {plan.lease_id for plan in plans} | begun.keys()
    kept += [plan for id_, plan in earlier.items() if id_ not in planned and plan.done and plan.outcome in ELSEWHERE]
    connection.execute(maintenance_leases.delete().where(m.maintenance_id == maintenance_id))
    insert_plans(connection, maintenance_id, kept)


def take_plans(connection: Connection, lease_id: str, origin: str, at: datetime) -> None:
    """Plan for a lease that has resources of another one as it is planned for that one, and have it carried out.

    A plan that is there already is made from what the lease has now. What its owner was told stays on record.
    """
    m, w = maintenance_leases.c, maintenance_windows.c
    is_open = [str(status) for status in OPEN]
    query = (
        sa.select(maintenance_leases)
        .join(maintenance_windows, w.id == m.maintenance_id)
        .where(m.lease_id.in_([lease_id, origin]))
    )
    # What has begun is put in order also after the window is over.
    rows = [
        row for row in connection.execute(query.add_columns(w.status)) if row.status in is_open or plan_of(row).is_begun
    ]
    mine = {row.maintenance_id: plan_of(row) for row in rows if row.lease_id == lease_id}
    for row in (row for row in rows if row.lease_id == origin):
        if row.maintenance_id in mine:
            this = (m.maintenance_id == row.maintenance_id, m.lease_id == lease_id)
            connection.execute(maintenance_leases.update().where(*this).values(done=False, makes_room=False))
            if plan_of(row).is_begun:
                write_plan(connection, row.maintenance_id, _keep_moving(mine[row.maintenance_id], plan_of(row)))
        else:
            plan = replace(plan_of(row), lease_id=lease_id, makes_room=False)
            if plan.outcome not in (Outcome.ACTIVE, Outcome.MIGRATED):
                plan = replace(plan, targets={}, done=False, content=None)
            insert_plans(connection, row.maintenance_id, [plan])
        connection.execute(
            maintenance_windows.update()
            .where(w.id == row.maintenance_id, w.claimed_by.is_(None), w.due_at.is_not(None))
            .values(due_at=at)
        )


def _keep_moving(mine: LeasePlan, theirs: LeasePlan) -> LeasePlan:
    """Return a plan for a lease that gets reservations whose servers are being moved: that goes on as it has begun."""
    targets = {**mine.targets, **theirs.targets}
    return replace(mine, outcome=Outcome.MIGRATED, targets=targets, done=False, content=None, note=theirs.note)


def _targets_json(plan: LeasePlan) -> dict[str, Any]:
    return {
        reservation: {str(source): {str(id_): n for id_, n in found.items()} for source, found in sources.items()}
        for reservation, sources in plan.targets.items()
    }


def _openings_json(plan: LeasePlan) -> list[str]:
    return [opening.isoformat() for opening in plan.openings]


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
        tuple(datetime.fromisoformat(opening) for opening in row.openings),
        row.makes_room,
        row.done,
        row.content,
        row.notified,
        row.notified_at,
        row.note,
    )


def select_holdings(maintenance_id: sa.ColumnElement[str], *, ever: bool = False) -> sa.Select[Any]:
    """Return a query of what leases have of the hosts of a window at that time: lease, reservation, host.

    ``ever``: also of what they have given back since, if its time had begun.
    """
    a, w, r = allocations.c, maintenance_windows.c, maintenance_resources.c
    held = a.released_at.is_(None)
    return (
        sa.select(a.lease_id, a.reservation_id, a.resource_id)
        .join(maintenance_resources, r.resource_id == a.resource_id)
        .join(maintenance_windows, w.id == r.maintenance_id)
        .where(
            w.id == maintenance_id,
            a.starts_at < w.ends_at,
            a.ends_at > w.starts_at,
            # What was given back before its time had begun blocks nothing, from long ago on.
            sa.or_(held, a.blocks_until > a.starts_at) if ever else held,
        )
    )


def read_affected(connection: Connection, maintenance_id: str, *, is_open: bool) -> tuple[AffectedLease, ...]:
    """Return the leases of a window as they are now, in three statements for each few thousand hosts.

    Of a window that is open those that keep hosts are left out when they are over, or have none of them in that time
    any more; of one that is not open those that never had.
    """
    rows = connection.execute(_select_affected(maintenance_id)).all()
    held: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    if rows:
        holdings = select_holdings(sa.literal(maintenance_id), ever=not is_open)
        for lease_id, reservation_id, resource_id in connection.execute(holdings):
            held[lease_id][reservation_id].add(resource_id)
    shown = []
    for row in rows:
        status = LeaseStatus.TERMINATED if row.deleted_at is not None else LeaseStatus(row.status)
        plan = adjust_plan(plan_of(row), status, held[row.lease_id], is_open=is_open)
        if plan is not None:
            shown.append((plan, row, status))
    names = _read_host_names(connection, [plan for plan, *_ in shown])
    return tuple(describe_affected(_lease_of(plan, row, status), plan, names) for plan, row, status in shown)


def _lease_of(plan: LeasePlan, row: AnyRow, status: LeaseStatus) -> AffectedLease:
    ids, window = (row.project_id, row.user_id), Window(row.starts_at, row.ends_at)
    return AffectedLease(plan.lease_id, row.revision, row.name, *ids, window, str(status), plan.outcome)


def _select_affected(maintenance_id: str) -> sa.Select[Any]:
    """Return a query of the plans of a window with their leases, by their start."""
    return (
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
        .join(leases, leases.c.id == maintenance_leases.c.lease_id)
        .where(maintenance_leases.c.maintenance_id == maintenance_id)
        .order_by(leases.c.starts_at, maintenance_leases.c.lease_id)
    )


def _read_host_names(connection: Connection, plans: Iterable[LeasePlan]) -> Mapping[int, str]:
    """Return the ids in the cloud of the hosts that plans name, by calendar id."""
    ids = {
        id_
        for plan in plans
        for sources in plan.targets.values()
        for source, targets in sources.items()
        for id_ in (source, *targets)
    }
    names: dict[int, str] = {}
    for part in chunks(sorted(ids)):
        query = sa.select(resources.c.id, resources.c.external_id).where(resources.c.id.in_(part))
        names.update((id_, external_id) for id_, external_id in connection.execute(query))
    return names


def describe_affected(lease: AffectedLease, plan: LeasePlan, names: Mapping[int, str]) -> AffectedLease:
    """Return a lease with what becomes of it by a plan; ``names`` are the ids of hosts that the API shows."""
    return replace(
        lease,
        hosts=tuple(sorted({names[source] for sources in plan.targets.values() for source in sources})),
        moves=tuple(
            HostMove(reservation, names[source], names[target], count)
            for reservation, sources in sorted(plan.targets.items())
            for source, targets in sorted(sources.items())
            for target, count in sorted(targets.items())
        ),
        openings=plan.openings,
        makes_room=plan.makes_room,
        done=plan.done,
        told_at=plan.notified_at,
        note=plan.note,
    )


class MaintenancePlanStore:
    """Reads and writes what is planned for each lease of a maintenance window."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def load_plans(self, maintenance_id: str) -> tuple[LeasePlan, ...]:
        """Return the plans for the leases of a window, in the order in which they are carried out; one statement."""
        m = maintenance_leases.c
        query = sa.select(maintenance_leases).where(m.maintenance_id == maintenance_id)
        return tuple(plan_of(row) for row in self._transactions.select(query.order_by(m.position, m.lease_id)))

    def load_plan(self, maintenance_id: str, lease_id: str) -> tuple[LeasePlan, bool]:
        """Return the plan for a lease, and whether another window has its servers moved; one statement.

        StaleCalendar if the window has been planned again without it.
        """
        query = sa.select(maintenance_leases).where(maintenance_leases.c.lease_id == lease_id)
        plans = {row.maintenance_id: plan_of(row) for row in self._transactions.select(query)}
        if (mine := plans.pop(maintenance_id, None)) is None:
            raise StaleCalendar("the maintenance window was planned again in the meantime")
        return mine, any(plan.is_begun for plan in plans.values())

    def load_moving(self, lease_id: str) -> tuple[LeasePlan, ...]:
        """Return the plans by which servers of a lease are being moved; one statement."""
        query = sa.select(maintenance_leases).where(maintenance_leases.c.lease_id == lease_id)
        plans = [plan_of(row) for row in self._transactions.select(query)]
        return tuple(plan for plan in plans if plan.is_begun)

    def load_moving_elsewhere(
        self, maintenance_id: str, *, now: datetime, opened_since: datetime
    ) -> tuple[LeasePlan, ...]:
        """Return the plans by which servers are being moved for other windows; one statement.

        Only of windows that have not begun, or were opened since an instant: for others moves are only brought to their
        end.
        """
        m, w = maintenance_leases.c, maintenance_windows.c
        query = (
            sa.select(maintenance_leases)
            .join(maintenance_windows, w.id == m.maintenance_id)
            .where(
                m.maintenance_id != maintenance_id,
                m.outcome == str(Outcome.MIGRATED),
                m.done.is_(False),
                w.status.in_([str(status) for status in OPEN]),
                sa.or_(w.starts_at > now, w.created_at > opened_since),
            )
        )
        plans = [plan_of(row) for row in self._transactions.select(query)]
        return tuple(plan for plan in plans if plan.is_begun)

    @atomic
    def save_plan(
        self, connection: Connection, maintenance_id: str, plan: LeasePlan, *, token: str | None = None
    ) -> None:
        """Write what has become of a lease that keeps its hosts; StaleCalendar if the claim with a token is lost."""
        if token is not None:
            # Who takes the claim over reads what is written here.
            WINDOWS.write_claimed(connection, maintenance_id, token)
        write_plan(connection, maintenance_id, plan)

    @atomic
    def forget_plan(self, connection: Connection, maintenance_id: str, lease_id: str) -> None:
        """Remove a lease that a window no longer affects."""
        m = maintenance_leases.c
        connection.execute(
            maintenance_leases.delete().where(m.maintenance_id == maintenance_id, m.lease_id == lease_id)
        )

    def is_affected(self, maintenance_id: str, lease_id: str) -> bool:
        """Tell whether a lease has hosts of a window at that time; one statement."""
        query = sa.select(
            select_holdings(sa.literal(maintenance_id)).where(allocations.c.lease_id == lease_id).exists()
        )
        with self._transactions.reading() as connection:
            return bool(connection.execute(query).scalar_one())

    @atomic
    def note_message(
        self,
        connection: Connection,
        maintenance_id: str,
        plan: LeasePlan,
        lease: Lease,
        *,
        at: datetime,
        announces: Announcement | None = None,
    ) -> None:
        """Write that the owner of a lease has been told its content, and what that was, unless that is written."""
        m = maintenance_leases.c
        other = sa.or_(m.notified.is_(None), m.notified != plan.content)
        this = (m.maintenance_id == maintenance_id, m.lease_id == plan.lease_id, other)
        values = {"notified": plan.content, "notified_at": at}
        if connection.execute(maintenance_leases.update().where(*this).values(values)).rowcount and announces:
            write_announcement(connection, lease, announces, at=at)
