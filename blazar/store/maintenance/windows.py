# SPDX-License-Identifier: Apache-2.0
"""The store of maintenance windows: what they block, whom they affect, and who works on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.clock import END_OF_TIME, to_second
from blazar.model.base.errors import StaleCalendar
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.journal.object_entries import tell_maintenance
from blazar.model.maintenance.windows import (
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
    PendingPolicy,
    unknown_maintenance,
)
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar import generations
from blazar.store.calendar.generations import LONG_AGO, raise_generations, read_generations
from blazar.store.calendar.timelines import read_blocks
from blazar.store.journal.rows import write_entry
from blazar.store.maintenance.held_pieces import HeldPiece, read_pieces
from blazar.store.maintenance.plans import insert_plans, read_affected, replace_plans
from blazar.store.resources.catalog import CatalogCache, ResourceCatalog
from blazar.store.sql.paging import read_page
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import maintenance_leases, maintenance_resources, maintenance_windows, resources
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.sql.versions import raise_version
from blazar.store.work.claims import WINDOWS

_BEGUN = tuple(map(str, BEGUN))
_NEXT_DUE = WINDOWS.select_next_due()
_OPEN_HOSTS = sa.select(maintenance_resources.c.resource_id, maintenance_resources.c.maintenance_id).join(
    maintenance_windows, maintenance_windows.c.id == maintenance_resources.c.maintenance_id
)

_CALENDAR = sa.select(
    generations.LEASES,
    generations.REVISIONS,
    generations.LAST_DELETION,
    generations.LAST_ALLOCATION,
    generations.INVENTORIES,
)
_LEFT = sa.and_(
    maintenance_windows.c.status.in_([str(status) for status in OPEN]),
    maintenance_windows.c.pending == str(PendingPolicy.MOVE),
    sa.exists().where(
        maintenance_leases.c.maintenance_id == maintenance_windows.c.id,
        maintenance_leases.c.done.is_(True),
        maintenance_leases.c.outcome.in_([str(outcome) for outcome in LEFT]),
    ),
)


@dataclass(frozen=True, slots=True)
class PlanningView:
    """All that a plan is made of, as of one instant. ``find_closed`` are the other maintenance windows, by resource."""

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
    def open_planning(
        self, kind: ResourceKind, now: datetime, *, besides: str | None = None, around: Window | None = None
    ) -> Iterator[PlanningView]:
        """Open what a plan is made of, in four statements; ``besides`` is the window that is planned again.

        ``around`` a window: of what is promised only what is so while anything is that meets it.
        """
        with self._transactions.reading() as connection:
            catalog = self._catalogs.read(connection, kind)
            pieces = read_pieces(connection, kind, now, around=around)
            every = read_blocks(connection, kind, Window(to_second(now), END_OF_TIME))
            others = {id_: [b for b in found if b.maintenance_id != besides] for id_, found in every.items()}
            yield PlanningView(catalog, pieces, others, partial(read_generations, connection))

    def find_closed(self, kind: ResourceKind, window: Window) -> frozenset[int]:
        """Return the resources of a kind that are in maintenance some time of a window, by id, in one statement."""
        with self._transactions.reading() as connection:
            return frozenset(read_blocks(connection, kind, window))

    @atomic
    def add(
        self,
        connection: Connection,
        maintenance: Maintenance,
        kind: ResourceKind,
        hosts: Mapping[int, int],
        plans: Collection[LeasePlan],
        *,
        at: datetime,
    ) -> None:
        """Insert a window over these hosts, given with the generations that were read; StaleCalendar."""
        raise_generations(connection, hosts)
        connection.execute(maintenance_windows.insert().values(**_window_row(maintenance, kind), due_at=at))
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
        raise_version(connection, kind)
        told = replace(maintenance, hosts=tuple(_read_hosts(connection, [maintenance.id])[maintenance.id]))
        write_entry(connection, tell_maintenance(None, told, at=at, by=current().actor))

    @atomic
    def change(
        self,
        connection: Connection,
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
        raise_generations(connection, hosts)
        _write_dates(connection, before, after, at)
        # What is empty would still lie within longer leases.
        until = LONG_AGO if after.status is MaintenanceStatus.CANCELLED else after.window.end
        connection.execute(
            maintenance_resources.update()
            .where(maintenance_resources.c.maintenance_id == before.id)
            .values(starts_at=after.window.start, blocks_until=until)
        )
        if plans is not None:
            replace_plans(connection, before.id, plans)
        raise_version(connection, kind)
        told = tell_maintenance(before, replace(after, revision=before.revision + 1), at=at, by=current().actor)
        write_entry(connection, told)

    def one(self, maintenance_id: str) -> Maintenance:
        """Return a window with its hosts and leases, in five statements for each few thousand leases; NotFound."""
        with self._transactions.reading() as connection:
            row = connection.execute(
                sa.select(maintenance_windows).where(maintenance_windows.c.id == maintenance_id)
            ).one_or_none()
            if row is None:
                raise unknown_maintenance(maintenance_id)
            hosts = _read_hosts(connection, [maintenance_id])
            found = _window_of(row, hosts[maintenance_id])
            return replace(found, leases=read_affected(connection, maintenance_id, is_open=found.status in OPEN))

    def kind_of(self, maintenance_id: str) -> ResourceKind:
        """Return the kind of the resources of a window; NotFound."""
        query = sa.select(maintenance_windows.c.kind).where(maintenance_windows.c.id == maintenance_id)
        found = self._transactions.scalar(query)
        if found is None:
            raise unknown_maintenance(maintenance_id)
        return ResourceKind(found)

    def page(self, question: MaintenanceQuestion) -> MaintenancePage:
        """Return a page of windows without their leases, oldest first or newest first; at most four statements.

        InvalidInput if the marker names none of them.
        """
        m, page = maintenance_windows.c, question.page
        where = [m.status.in_(list(map(str, question.statuses)))] if question.statuses else []
        with self._transactions.reading() as connection:
            found = read_page(connection, page, sa.select(maintenance_windows), (m.created_at, m.id), where)
            hosts = _read_hosts(connection, [row.id for row in found.rows])
        items = tuple(_window_of(row, hosts[row.id]) for row in found.rows)
        return MaintenancePage(items, found.last, found.count)

    def resource_ids(self, maintenance_id: str) -> tuple[int, ...]:
        """Return the calendar ids of the hosts of a window; one statement."""
        m = maintenance_resources.c
        query = sa.select(m.resource_id).where(m.maintenance_id == maintenance_id).order_by(m.resource_id)
        return tuple(self._transactions.scalars(query))

    def find_begun(self, kind: ResourceKind) -> frozenset[int]:
        """Return the resources of a kind that are in maintenance now; one statement."""
        query = _OPEN_HOSTS.where(maintenance_windows.c.kind == str(kind), maintenance_windows.c.status.in_(_BEGUN))
        return frozenset(row[0] for row in self._transactions.select(query))

    def find_closing(self, ids: Collection[int], *, besides: str) -> Mapping[int, str]:
        """Return which other window that has begun wants each of these hosts disabled, by calendar id."""
        states = (str(MaintenanceStatus.STARTING), str(MaintenanceStatus.ACTIVE))
        query = _OPEN_HOSTS.where(
            maintenance_windows.c.status.in_(states),
            maintenance_windows.c.disable_service.is_(True),
            maintenance_windows.c.id != besides,
        )
        return {id_: other for id_, other in self._transactions.select(query) if id_ in ids}

    # The work on windows.

    def due(self, now: datetime) -> tuple[DueMaintenance, ...]:
        """Return the windows that have something to do, the longest waiting first.

        Also those that have not, and on which nobody works, if leases of theirs have found nothing free: with what is
        free by now they may. One statement, and another one if there are such leases.
        """
        m = maintenance_windows.c
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
        found: datetime | None = self._transactions.scalar(_NEXT_DUE)
        return found

    @atomic
    def claim(self, connection: Connection, due: DueMaintenance, token: str, *, until: datetime) -> bool:
        """Claim a window that is due; return whether no other manager was faster."""
        return WINDOWS.claim(connection, due.id, token, maintenance_windows.c.due_at == due.due_at, until=until)

    @atomic
    def release(
        self, connection: Connection, maintenance_id: str, token: str, *, due_at: datetime | None, trouble: str | None
    ) -> None:
        """End a claim, and write when there is something to do next. StaleCalendar."""
        WINDOWS.release(connection, maintenance_id, token, due_at=due_at, trouble=trouble)

    @atomic
    def advance(
        self,
        connection: Connection,
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
        r, known = maintenance_resources.c, maintenance_windows.c.revision == before.revision
        values = {"status": str(status), "revision": before.revision + 1, "updated_at": at}
        WINDOWS.write_claimed(connection, before.id, token, known, **values)
        if servers:
            connection.execute(
                maintenance_resources.update()
                .where(r.maintenance_id == before.id, r.resource_id == sa.bindparam("key"))
                .values({r.servers: sa.bindparam("count")}),
                [{"key": id_, "count": count} for id_, count in sorted(servers.items())],
            )
        after = replace(before, status=status, revision=before.revision + 1, updated_at=at)
        write_entry(connection, tell_maintenance(before, after, at=at, by=current().actor))
        return after

    def check_claim(self, maintenance: Maintenance, token: str) -> None:
        """Raise StaleCalendar if a window has changed, or the claim on it is another; one statement."""
        m = maintenance_windows.c
        mine = (m.id == maintenance.id, m.claimed_by == token, m.revision == maintenance.revision)
        with self._transactions.reading() as connection:
            if connection.execute(sa.select(m.id).where(*mine)).scalar() is None:
                raise WINDOWS.lost(maintenance.id)


def _write_dates(connection: Connection, before: Maintenance, after: Maintenance, at: datetime) -> None:
    """Write the name, times and state of a window, which has something to do at once; StaleCalendar if it changed."""
    written = connection.execute(
        maintenance_windows.update()
        .where(maintenance_windows.c.id == before.id, maintenance_windows.c.revision == before.revision)
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
    if not written.rowcount:
        raise StaleCalendar("the maintenance window was changed by another request in the meantime")


def _read_hosts(connection: Connection, ids: Collection[str]) -> Mapping[str, list[MaintenanceHost]]:
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


def _window_row(maintenance: Maintenance, kind: ResourceKind) -> dict[str, object]:
    """Return the columns of a new window, without those of the work on it."""
    return {
        "id": maintenance.id,
        "name": maintenance.name,
        "reason": maintenance.reason,
        "kind": str(kind),
        "starts_at": maintenance.window.start,
        "ends_at": maintenance.window.end,
        "status": str(maintenance.status),
        "requirement": maintenance.requirement,
        "pending": str(maintenance.pending),
        "active": str(maintenance.active),
        "disable_service": maintenance.disable_service,
        "revision": maintenance.revision,
        "created_at": maintenance.created_at,
    }


def _window_of(row: AnyRow, hosts: Sequence[MaintenanceHost]) -> Maintenance:
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
