# SPDX-License-Identifier: Apache-2.0
"""The store of maintenance windows: what they block, whom they affect, and who works on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.amounts import Amounts
from blazar.model.clock import END_OF_TIME, to_second
from blazar.model.errors import StaleCalendar
from blazar.model.maintenance import (
    BEGUN,
    AffectedLease,
    HostMove,
    LeasePlan,
    Maintenance,
    MaintenanceBlock,
    MaintenanceHost,
    MaintenancePage,
    MaintenanceQuestion,
    MaintenanceStatus,
    Outcome,
    PendingPolicy,
    unknown_maintenance,
)
from blazar.model.paging import Page, Position, unknown_marker
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.store import allocation_writes, resource_queries
from blazar.store.catalog import CatalogCache, ResourceCatalog
from blazar.store.occupancy import amounts_of
from blazar.store.paging import follows, instant_of, ordered_by
from blazar.store.rows import AnyRow, chunks
from blazar.store.seconds import seconds
from blazar.store.tables import (
    allocations,
    leases,
    maintenance_leases,
    maintenance_resources,
    maintenances,
    reservations,
    resources,
)
from blazar.store.transactions import Transactions

_BEGUN = tuple(map(str, BEGUN))
_NEXT_DUE = sa.select(sa.func.min(maintenances.c.due_at, type_=maintenances.c.due_at.type))
_OPEN_HOSTS = sa.select(maintenance_resources.c.resource_id, maintenance_resources.c.maintenance_id).join(
    maintenances, maintenances.c.id == maintenance_resources.c.maintenance_id
)


@dataclass(frozen=True, slots=True)
class HeldPiece:
    """What a lease has of a resource from now on, in seconds since the epoch; ``clean_at`` is when others may have it.

    ``parameters`` are those of the reservation, as JSON. ``released``: only the cleaning is left.
    """

    resource_id: int
    lease_id: str
    reservation_id: str
    start: int
    end: int
    clean_at: int
    count: int
    per_instance: Amounts | None
    released: bool
    lease_status: str
    lease_revision: int
    name: str
    project_id: str
    user_id: str
    status: str
    resource_type: str
    region: str
    parameters: str


@dataclass(frozen=True, slots=True)
class PlanningView:
    """All that a plan is made of, as of one instant. ``closed`` are the other maintenance windows, by resource."""

    catalog: ResourceCatalog
    pieces: tuple[HeldPiece, ...]
    closed: Mapping[int, Sequence[MaintenanceBlock]]
    generations: Callable[[Collection[int]], Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class DueMaintenance:
    """A maintenance window with something to do, and since when."""

    id: str
    due_at: datetime


class MaintenanceStore:
    """Reads and writes maintenance windows."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    @contextmanager
    def planning(self, kind: ResourceKind, now: datetime, *, besides: str | None = None) -> Iterator[PlanningView]:
        """Open what a plan is made of, in four statements; ``besides`` is the window that is planned again."""
        with self._transactions.reading() as connection:
            catalog = self._catalogs.read(connection, kind)
            pieces = _pieces(connection, kind, now)
            every = blocks(connection, kind, Window(to_second(now), END_OF_TIME))
            others = {id_: [b for b in found if b.maintenance_id != besides] for id_, found in every.items()}
            yield PlanningView(catalog, pieces, others, lambda ids: _generations(connection, ids))

    def add(
        self,
        maintenance: Maintenance,
        kind: ResourceKind,
        hosts: Mapping[int, int],
        plans: Collection[LeasePlan],
        *,
        at: datetime,
    ) -> None:
        """Insert a window over these hosts, given with the generations that were read; StaleCalendar."""

        def work(connection: Connection) -> None:
            allocation_writes.raise_generations(connection, hosts)
            connection.execute(
                maintenances.insert().values(
                    id=maintenance.id,
                    name=maintenance.name,
                    reason=maintenance.reason,
                    kind=str(kind),
                    starts_at=maintenance.window.start,
                    ends_at=maintenance.window.end,
                    status=str(maintenance.status),
                    requirement=maintenance.requirement,
                    pending=str(maintenance.pending),
                    disable_service=maintenance.disable_service,
                    revision=maintenance.revision,
                    due_at=at,
                    created_at=maintenance.created_at,
                )
            )
            rows = [
                {
                    "maintenance_id": maintenance.id,
                    "resource_id": id_,
                    "kind": str(kind),
                    "starts_at": maintenance.window.start,
                    "blocks_until": maintenance.window.end,
                }
                for id_ in sorted(hosts)
            ]
            connection.execute(maintenance_resources.insert(), rows)
            _insert_plans(connection, maintenance.id, plans)
            resource_queries.raise_version(connection, kind)

        self._transactions.write(work)

    def change(
        self,
        before: Maintenance,
        after: Maintenance,
        kind: ResourceKind,
        hosts: Mapping[int, int],
        plans: Collection[LeasePlan] | None,
        *,
        at: datetime,
    ) -> None:
        """Write a changed window, and other plans for its leases if given; what is worked on is stopped.

        ``hosts`` are those whose generations must be as read. StaleCalendar, also if the window has changed since.
        """
        cancelled = after.status is MaintenanceStatus.CANCELLED

        def work(connection: Connection) -> None:
            allocation_writes.raise_generations(connection, hosts)
            changed = connection.execute(
                maintenances.update()
                .where(maintenances.c.id == before.id, maintenances.c.revision == before.revision)
                .values(
                    name=after.name,
                    starts_at=after.window.start,
                    ends_at=after.window.end,
                    status=str(after.status),
                    revision=before.revision + 1,
                    updated_at=at,
                    due_at=None if cancelled else at,
                    claimed_by=None,
                )
            )
            if not changed.rowcount:
                raise StaleCalendar("the maintenance window was changed by another request in the meantime")
            until = after.window.start if cancelled else after.window.end
            connection.execute(
                maintenance_resources.update()
                .where(maintenance_resources.c.maintenance_id == before.id)
                .values(starts_at=after.window.start, blocks_until=until)
            )
            if plans is not None:
                _replace_plans(connection, before.id, plans)
            resource_queries.raise_version(connection, kind)

        self._transactions.write(work)

    def one(self, maintenance_id: str) -> Maintenance:
        """Return a window with its hosts and leases, in four statements for each few thousand leases; NotFound."""
        with self._transactions.reading() as connection:
            row = connection.execute(sa.select(maintenances).where(maintenances.c.id == maintenance_id)).one_or_none()
            if row is None:
                raise unknown_maintenance(maintenance_id)
            hosts = _hosts(connection, [maintenance_id])
            return replace(_maintenance(row, hosts[maintenance_id]), leases=_affected(connection, maintenance_id))

    def kind_of(self, maintenance_id: str) -> ResourceKind:
        """Return the kind of the resources of a window; NotFound."""
        query = sa.select(maintenances.c.kind).where(maintenances.c.id == maintenance_id)
        with self._transactions.reading() as connection:
            found = connection.execute(query).scalar()
        if found is None:
            raise unknown_maintenance(maintenance_id)
        return ResourceKind(found)

    def page(self, question: MaintenanceQuestion) -> MaintenancePage:
        """Return a page of windows without their leases, oldest first or newest first; at most four statements.

        InvalidInput if the marker names none of them.
        """
        m, page = maintenances.c, question.page
        where = [m.status.in_(list(map(str, question.statuses)))] if question.statuses else []
        with self._transactions.reading() as connection:
            query = sa.select(maintenances).where(*where, *_after(connection, page, where))
            rows = connection.execute(query.order_by(*ordered_by(page, m.created_at, m.id)).limit(page.limit + 1)).all()
            total = sa.select(sa.func.count()).select_from(maintenances).where(*where)
            count = connection.execute(total).scalar_one() if page.with_count else None
            shown = rows[: page.limit]
            hosts = _hosts(connection, [row.id for row in shown])
        items = tuple(_maintenance(row, hosts[row.id]) for row in shown)
        last = Position(items[-1].created_at.isoformat(), items[-1].id) if len(rows) > page.limit else None
        return MaintenancePage(items, last, count)

    def resource_ids(self, maintenance_id: str) -> tuple[int, ...]:
        """Return the calendar ids of the hosts of a window; one statement."""
        m = maintenance_resources.c
        query = sa.select(m.resource_id).where(m.maintenance_id == maintenance_id).order_by(m.resource_id)
        with self._transactions.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def plans(self, maintenance_id: str) -> tuple[LeasePlan, ...]:
        """Return the plans for the leases of a window, in the order in which they are carried out; one statement."""
        m = maintenance_leases.c
        query = sa.select(maintenance_leases).where(m.maintenance_id == maintenance_id)
        with self._transactions.reading() as connection:
            return tuple(_plan_of(row) for row in connection.execute(query.order_by(m.position, m.lease_id)))

    def begun(self, kind: ResourceKind) -> frozenset[int]:
        """Return the resources of a kind that are in maintenance now; one statement."""
        query = _OPEN_HOSTS.where(maintenances.c.kind == str(kind), maintenances.c.status.in_(_BEGUN))
        with self._transactions.reading() as connection:
            return frozenset(row[0] for row in connection.execute(query))

    def closing(self, ids: Collection[int], *, besides: str) -> Mapping[int, str]:
        """Return which other window that has begun wants each of these hosts disabled, by calendar id."""
        states = (str(MaintenanceStatus.STARTING), str(MaintenanceStatus.ACTIVE))
        query = _OPEN_HOSTS.where(
            maintenances.c.status.in_(states), maintenances.c.disable_service.is_(True), maintenances.c.id != besides
        )
        with self._transactions.reading() as connection:
            return {id_: other for id_, other in connection.execute(query) if id_ in ids}

    # The work on windows.

    def due(self, now: datetime) -> tuple[DueMaintenance, ...]:
        """Return the windows that have something to do, the longest waiting first; one statement."""
        m = maintenances.c
        query = sa.select(m.id, m.due_at).where(m.due_at <= now).order_by(m.due_at, m.id)
        with self._transactions.reading() as connection:
            return tuple(DueMaintenance(*row) for row in connection.execute(query))

    def next_due(self) -> datetime | None:
        """Return when the next window has something to do, which may be in the past; one statement."""
        with self._transactions.reading() as connection:
            found: datetime | None = connection.execute(_NEXT_DUE).scalar()
            return found

    def claim(self, due: DueMaintenance, token: str, *, until: datetime) -> bool:
        """Claim a window that is due; return whether no other manager was faster."""
        m = maintenances.c
        change = maintenances.update().where(m.id == due.id, m.due_at == due.due_at)
        change = change.values(claimed_by=token, due_at=until)
        return bool(self._transactions.write(lambda connection: connection.execute(change).rowcount))

    def renew_claims(self, tokens: Collection[str], *, now: datetime, until: datetime) -> frozenset[str]:
        """Renew the claims with these tokens that have not expired; return the tokens of those."""
        m = maintenances.c

        def work(connection: Connection) -> frozenset[str]:
            valid = (m.claimed_by.in_(sorted(tokens)), m.due_at > now)
            connection.execute(maintenances.update().where(*valid).values(due_at=until))
            return frozenset(connection.execute(sa.select(m.claimed_by).where(*valid)).scalars())

        return self._transactions.write(work)

    def let_go(self, maintenance_id: str, token: str, *, due_at: datetime | None, trouble: str | None) -> None:
        """End a claim that still holds, and write when there is something to do next."""
        m = maintenances.c
        change = maintenances.update().where(m.id == maintenance_id, m.claimed_by == token)
        change = change.values(claimed_by=None, due_at=due_at, trouble=trouble)
        self._transactions.write(lambda connection: connection.execute(change))

    def drop_claims(self, *, at: datetime) -> None:
        """Make every window with a claim due at ``at``."""
        m = maintenances.c
        change = maintenances.update().where(m.claimed_by.is_not(None), m.due_at > at).values(due_at=at)
        self._transactions.write(lambda connection: connection.execute(change))

    def advance(
        self,
        before: Maintenance,
        status: MaintenanceStatus,
        token: str,
        *,
        at: datetime,
        servers: Mapping[int, int] | None = None,
    ) -> Maintenance:
        """Write the next state of a window under a claim; StaleCalendar if the claim or the window is another.

        ``servers`` are the numbers of servers on its hosts.
        """
        m, r = maintenances.c, maintenance_resources.c

        def work(connection: Connection) -> None:
            changed = connection.execute(
                maintenances.update()
                .where(m.id == before.id, m.claimed_by == token, m.revision == before.revision)
                .values(status=str(status), revision=before.revision + 1, updated_at=at)
            )
            if not changed.rowcount:
                raise StaleCalendar("the maintenance window was changed, or is worked on by another manager")
            if servers:
                counted = r.servers
                connection.execute(
                    maintenance_resources.update()
                    .where(r.maintenance_id == before.id, r.resource_id == sa.bindparam("key"))
                    .values({counted: sa.bindparam("count")}),
                    [{"key": id_, "count": count} for id_, count in sorted(servers.items())],
                )

        self._transactions.write(work)
        return replace(before, status=status, revision=before.revision + 1, updated_at=at)

    def save_plan(self, maintenance_id: str, plan: LeasePlan) -> None:
        """Write what has become of a lease that keeps its hosts."""
        self._transactions.write(lambda connection: write_plan(connection, maintenance_id, plan))

    def forget_plan(self, maintenance_id: str, lease_id: str) -> None:
        """Remove a lease that a window no longer affects."""
        m = maintenance_leases.c
        gone = maintenance_leases.delete().where(m.maintenance_id == maintenance_id, m.lease_id == lease_id)
        self._transactions.write(lambda connection: connection.execute(gone))

    def note_told(self, maintenance_id: str, plan: LeasePlan, *, at: datetime) -> None:
        """Write that the owner of a lease has been told its content."""
        m = maintenance_leases.c
        told = maintenance_leases.update().where(m.maintenance_id == maintenance_id, m.lease_id == plan.lease_id)
        self._transactions.write(lambda c: c.execute(told.values(told=plan.content, told_at=at)))


def blocks(connection: Connection, kind: ResourceKind, window: Window) -> Mapping[int, Sequence[MaintenanceBlock]]:
    """Return the maintenance windows of resources of a kind that overlap a window, by resource; one statement."""
    r = maintenance_resources.c
    query = (
        sa.select(r.resource_id, r.starts_at, r.blocks_until, r.maintenance_id, maintenances.c.reason)
        .join(maintenances, maintenances.c.id == r.maintenance_id)
        .where(
            r.kind == str(kind), r.blocks_until > window.start, r.starts_at < window.end, r.starts_at < r.blocks_until
        )
        .order_by(r.resource_id, r.starts_at, r.maintenance_id)
    )
    found: dict[int, list[MaintenanceBlock]] = defaultdict(list)
    for id_, start, end, maintenance_id, reason in connection.execute(query):
        found[id_].append(MaintenanceBlock(id_, Window(start, end), maintenance_id, reason))
    return found


def write_plan(connection: Connection, maintenance_id: str, plan: LeasePlan) -> None:
    """Write what has become of a lease, in the transaction in which that becomes true."""
    m = maintenance_leases.c
    connection.execute(
        maintenance_leases.update()
        .where(m.maintenance_id == maintenance_id, m.lease_id == plan.lease_id)
        .values(
            outcome=str(plan.outcome),
            targets=_targets_json(plan),
            openings=_openings_json(plan),
            done=plan.done,
            content=plan.content,
        )
    )


def _insert_plans(connection: Connection, maintenance_id: str, plans: Iterable[LeasePlan]) -> None:
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
        }
        for plan in plans
    ]
    if rows:
        connection.execute(maintenance_leases.insert(), rows)


def _replace_plans(connection: Connection, maintenance_id: str, plans: Collection[LeasePlan]) -> None:
    """Write other plans; what owners have been told, and where leases have been moved before, stays on record."""
    m = maintenance_leases.c
    earlier = {
        row.lease_id: _plan_of(row)
        for row in connection.execute(sa.select(maintenance_leases).where(m.maintenance_id == maintenance_id))
    }
    kept = [
        replace(plan, told=earlier[plan.lease_id].told, told_at=earlier[plan.lease_id].told_at)
        if plan.lease_id in earlier
        else plan
        for plan in plans
    ]
    planned = {plan.lease_id for plan in plans}
    moved = (Outcome.MOVED, Outcome.PARTLY_MOVED)
    kept += [each for id_, each in earlier.items() if id_ not in planned and each.done and each.outcome in moved]
    connection.execute(maintenance_leases.delete().where(m.maintenance_id == maintenance_id))
    _insert_plans(connection, maintenance_id, kept)


def _targets_json(plan: LeasePlan) -> dict[str, Any]:
    return {
        reservation: {str(source): {str(id_): n for id_, n in found.items()} for source, found in sources.items()}
        for reservation, sources in plan.targets.items()
    }


def _openings_json(plan: LeasePlan) -> list[str]:
    return [each.isoformat() for each in plan.openings]


def _plan_of(row: AnyRow) -> LeasePlan:
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
    )


def _pieces(connection: Connection, kind: ResourceKind, now: datetime) -> tuple[HeldPiece, ...]:
    """Return all that is promised of a kind from now on, late users among it, in one statement."""
    a, dialect = allocations.c, connection.dialect.name
    query = (
        sa.select(
            a.resource_id,
            a.lease_id,
            a.reservation_id,
            seconds(dialect, a.starts_at),
            seconds(dialect, a.ends_at),
            seconds(dialect, a.blocks_until),
            a.units,
            sa.cast(a.unit, sa.Text()),
            sa.case((a.released_at.is_not(None), 1), else_=0),
            leases.c.status,
            leases.c.revision,
            leases.c.name,
            leases.c.project_id,
            leases.c.user_id,
            reservations.c.status,
            reservations.c.resource_type,
            reservations.c.region,
            sa.cast(reservations.c.parameters, sa.Text()),
        )
        .join(leases, leases.c.id == a.lease_id)
        .join(reservations, reservations.c.id == a.reservation_id)
        .where(a.kind == str(kind), sa.or_(a.blocks_until > now, a.released_at.is_(None)))
        .order_by(a.id)
    )
    return tuple(
        HeldPiece(
            resource_id,
            lease_id,
            reservation_id,
            start,
            end,
            clean_at,
            count,
            None if text is None else amounts_of(text),
            bool(released),
            *rest,
        )
        for resource_id, lease_id, reservation_id, start, end, clean_at, count, text, released, *rest in (
            connection.execute(query)
        )
    )


def _generations(connection: Connection, ids: Collection[int]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for part in chunks(sorted(ids)):
        query = sa.select(resources.c.id, resources.c.generation).where(resources.c.id.in_(part))
        found.update((id_, generation) for id_, generation in connection.execute(query))
    return found


def _hosts(connection: Connection, ids: Collection[str]) -> Mapping[str, list[MaintenanceHost]]:
    found: dict[str, list[MaintenanceHost]] = defaultdict(list)
    r = maintenance_resources.c
    query = (
        sa.select(r.maintenance_id, resources.c.external_id, resources.c.name, r.servers)
        .join(resources, resources.c.id == r.resource_id)
        .order_by(resources.c.name, resources.c.id)
    )
    for part in chunks(sorted(ids)):
        for maintenance_id, *host in connection.execute(query.where(r.maintenance_id.in_(part))):
            found[maintenance_id].append(MaintenanceHost(*host))
    return found


def _maintenance(row: AnyRow, hosts: Sequence[MaintenanceHost]) -> Maintenance:
    return Maintenance(
        row.id,
        row.name,
        row.reason,
        Window(row.starts_at, row.ends_at),
        MaintenanceStatus(row.status),
        tuple(hosts),
        row.requirement,
        PendingPolicy(row.pending),
        row.disable_service,
        row.revision,
        row.created_at,
        row.updated_at,
        row.trouble,
    )


def _affected(connection: Connection, maintenance_id: str) -> tuple[AffectedLease, ...]:
    """Return the leases of a window as they are now, in two statements for each few thousand hosts."""
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
        )
        .join(leases, leases.c.id == m.lease_id)
        .where(m.maintenance_id == maintenance_id)
        .order_by(leases.c.starts_at, m.lease_id)
    )
    rows = [(_plan_of(row), row) for row in connection.execute(query)]
    ids = {
        id_
        for plan, _ in rows
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
            row.status,
            plan.outcome,
            tuple(sorted({names[source] for sources in plan.targets.values() for source in sources})),
            shown_moves(plan, names),
            plan.openings,
            plan.makes_room,
            plan.done,
            plan.told_at,
        )
        for plan, row in rows
    )


def shown_moves(plan: LeasePlan, names: Mapping[int, str]) -> tuple[HostMove, ...]:
    """Return the moves of a plan by the ids that the API shows."""
    return tuple(
        HostMove(reservation, names[source], names[target], count)
        for reservation, sources in sorted(plan.targets.items())
        for source, targets in sorted(sources.items())
        for target, count in sorted(targets.items())
    )


def _after(
    connection: Connection, page: Page, where: Sequence[sa.ColumnElement[bool]]
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the condition for what follows the marker of a page."""
    m = maintenances.c
    if page.after is None:
        return ()
    if isinstance(page.after, Position):
        return (follows(page, m.created_at, m.id, instant_of(page.after.value or ""), page.after.id),)
    found = connection.execute(sa.select(m.created_at).where(m.id == page.after, *where)).scalar()
    if found is None:
        raise unknown_marker()
    return (follows(page, m.created_at, m.id, found, page.after),)
