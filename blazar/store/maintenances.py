# SPDX-License-Identifier: Apache-2.0
"""The store of maintenance windows: what they block, whom they affect, and who works on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.clock import END_OF_TIME, to_second
from blazar.model.errors import StaleCalendar
from blazar.model.maintenance import (
    BEGUN,
    LEFT,
    OPEN,
    ActivePolicy,
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
from blazar.model.paging import Position
from blazar.model.resource import ResourceKind
from blazar.model.window import Window
from blazar.store import allocation_writes, changed, resource_queries
from blazar.store.catalog import CatalogCache, ResourceCatalog
from blazar.store.held_pieces import HeldPiece, held_pieces
from blazar.store.maintenance_plans import affected, held_in, insert_plans, plan_of, replace_plans, write_plan
from blazar.store.paging import after_marker, ordered_by
from blazar.store.rows import AnyRow, chunks
from blazar.store.tables import (
    allocations,
    maintenance_leases,
    maintenance_resources,
    maintenances,
    resources,
)
from blazar.store.transactions import Transactions

_BEGUN = tuple(map(str, BEGUN))
_NEXT_DUE = sa.select(sa.func.min(maintenances.c.due_at, type_=maintenances.c.due_at.type))
_OPEN_HOSTS = sa.select(maintenance_resources.c.resource_id, maintenance_resources.c.maintenance_id).join(
    maintenances, maintenances.c.id == maintenance_resources.c.maintenance_id
)

_CALENDAR = sa.select(
    changed.LEASES, changed.REVISIONS, changed.LAST_DELETION, changed.LAST_ALLOCATION, changed.INVENTORIES
)
_LEFT = sa.and_(
    maintenances.c.status.in_([str(status) for status in OPEN]),
    maintenances.c.pending == str(PendingPolicy.MOVE),
    sa.exists().where(
        maintenance_leases.c.maintenance_id == maintenances.c.id,
        maintenance_leases.c.done.is_(True),
        maintenance_leases.c.outcome.in_([str(outcome) for outcome in LEFT]),
    ),
)


@dataclass(frozen=True, slots=True)
class PlanningView:
    """All that a plan is made of, as of one instant. ``closed`` are the other maintenance windows, by resource."""

    catalog: ResourceCatalog
    pieces: tuple[HeldPiece, ...]
    closed: Mapping[int, Sequence[MaintenanceBlock]]
    generations: Callable[[Collection[int]], Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class DueMaintenance:
    """A maintenance window with something to do, and since when, or at which instant to come.

    ``calendar`` sums up what may have changed for leases that found nothing free, of a window that has any.
    """

    id: str
    due_at: datetime
    calendar: str | None = None


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
            pieces = held_pieces(connection, kind, now)
            every = blocks(connection, kind, Window(to_second(now), END_OF_TIME))
            others = {id_: [b for b in found if b.maintenance_id != besides] for id_, found in every.items()}
            yield PlanningView(catalog, pieces, others, partial(resource_queries.generations, connection))

    def closed(self, kind: ResourceKind, window: Window) -> frozenset[int]:
        """Return the resources of a kind that are in maintenance some time of a window, by id, in one statement."""
        with self._transactions.reading() as connection:
            return frozenset(blocks(connection, kind, window))

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
                    active=str(maintenance.active),
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
            insert_plans(connection, maintenance.id, plans)
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
                    due_at=at,
                    claimed_by=None,
                )
            )
            if not changed.rowcount:
                raise StaleCalendar("the maintenance window was changed by another request in the meantime")
            # What is empty would still lie within longer leases.
            until = allocation_writes.LONG_AGO if cancelled else after.window.end
            connection.execute(
                maintenance_resources.update()
                .where(maintenance_resources.c.maintenance_id == before.id)
                .values(starts_at=after.window.start, blocks_until=until)
            )
            if plans is not None:
                replace_plans(connection, before.id, plans)
            resource_queries.raise_version(connection, kind)

        self._transactions.write(work)

    def one(self, maintenance_id: str) -> Maintenance:
        """Return a window with its hosts and leases, in five statements for each few thousand leases; NotFound."""
        with self._transactions.reading() as connection:
            row = connection.execute(sa.select(maintenances).where(maintenances.c.id == maintenance_id)).one_or_none()
            if row is None:
                raise unknown_maintenance(maintenance_id)
            hosts = _hosts(connection, [maintenance_id])
            found = _maintenance(row, hosts[maintenance_id])
            return replace(found, leases=affected(connection, maintenance_id, is_open=found.status in OPEN))

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
            after = after_marker(connection, page, m.created_at, m.id, where)
            query = sa.select(maintenances).where(*where, *after)
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
            return tuple(plan_of(row) for row in connection.execute(query.order_by(m.position, m.lease_id)))

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
        """Return the windows that have something to do, the longest waiting first.

        Also those that have not, and on which nobody works, if leases of theirs have found nothing free: with what is
        free by now they may. One statement, and another one if there are such leases.
        """
        m = maintenances.c
        waits = sa.and_(m.claimed_by.is_(None), _LEFT)
        query = (
            sa.select(m.id, m.due_at, sa.case((_LEFT, 1), else_=0))
            .where(m.due_at.is_not(None), sa.or_(m.due_at <= now, waits))
            .order_by(m.due_at, m.id)
        )
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
            waiting = any(left for *_, left in rows)
            calendar = " ".join(map(str, connection.execute(_CALENDAR).one())) if waiting else None
        return tuple(DueMaintenance(id_, due_at, calendar if left else None) for id_, due_at, left in rows)

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

    def check_claim(self, maintenance: Maintenance, token: str) -> None:
        """Raise StaleCalendar if a window has changed, or the claim on it is another; one statement."""
        m = maintenances.c
        mine = (m.id == maintenance.id, m.claimed_by == token, m.revision == maintenance.revision)
        with self._transactions.reading() as connection:
            if connection.execute(sa.select(m.id).where(*mine)).scalar() is None:
                raise StaleCalendar("the maintenance window was changed, or is worked on by another manager")

    def plan_for(self, maintenance_id: str, lease_id: str) -> tuple[LeasePlan, bool]:
        """Return the plan for a lease, and whether another window has its servers moved; one statement.

        StaleCalendar if the window has been planned again without it.
        """
        query = sa.select(maintenance_leases).where(maintenance_leases.c.lease_id == lease_id)
        with self._transactions.reading() as connection:
            plans = {row.maintenance_id: plan_of(row) for row in connection.execute(query)}
        if (mine := plans.pop(maintenance_id, None)) is None:
            raise StaleCalendar("the maintenance window was planned again in the meantime")
        return mine, any(plan.is_begun for plan in plans.values())

    def begun_plans(self, lease_id: str) -> tuple[LeasePlan, ...]:
        """Return the plans by which servers of a lease are being moved; one statement."""
        query = sa.select(maintenance_leases).where(maintenance_leases.c.lease_id == lease_id)
        with self._transactions.reading() as connection:
            plans = [plan_of(row) for row in connection.execute(query)]
        return tuple(plan for plan in plans if plan.is_begun)

    def begun_besides(self, maintenance_id: str, *, now: datetime, opened_since: datetime) -> tuple[LeasePlan, ...]:
        """Return the plans by which servers are being moved for other windows; one statement.

        Only of windows that have not begun, or were opened since an instant: for others moves are only brought to their
        end.
        """
        m, w = maintenance_leases.c, maintenances.c
        query = (
            sa.select(maintenance_leases)
            .join(maintenances, w.id == m.maintenance_id)
            .where(
                m.maintenance_id != maintenance_id,
                m.outcome == str(Outcome.MIGRATED),
                m.done.is_(False),
                w.status.in_([str(status) for status in OPEN]),
                sa.or_(w.starts_at > now, w.created_at > opened_since),
            )
        )
        with self._transactions.reading() as connection:
            plans = [plan_of(row) for row in connection.execute(query)]
        return tuple(plan for plan in plans if plan.is_begun)

    def save_plan(self, maintenance_id: str, plan: LeasePlan, *, token: str | None = None) -> None:
        """Write what has become of a lease that keeps its hosts; StaleCalendar if the claim with a token is lost."""
        m = maintenances.c

        def work(connection: Connection) -> None:
            if token is not None:
                # Locks the window: who takes the claim over reads what is written here.
                mine = maintenances.update().where(m.id == maintenance_id, m.claimed_by == token)
                if not connection.execute(mine.values(claimed_by=token)).rowcount:
                    raise StaleCalendar("the maintenance window is worked on by another manager")
            write_plan(connection, maintenance_id, plan)

        self._transactions.write(work)

    def forget_plan(self, maintenance_id: str, lease_id: str) -> None:
        """Remove a lease that a window no longer affects."""
        m = maintenance_leases.c
        gone = maintenance_leases.delete().where(m.maintenance_id == maintenance_id, m.lease_id == lease_id)
        self._transactions.write(lambda connection: connection.execute(gone))

    def is_affected(self, maintenance_id: str, lease_id: str) -> bool:
        """Tell whether a lease has hosts of a window at that time; one statement."""
        query = sa.select(held_in(sa.literal(maintenance_id)).where(allocations.c.lease_id == lease_id).exists())
        with self._transactions.reading() as connection:
            return bool(connection.execute(query).scalar_one())

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
        active=ActivePolicy(row.active),
    )
