# SPDX-License-Identifier: Apache-2.0
"""The store of the calendar: what is promised in a window, and who has what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.occupancy import Snapshot
from blazar.calendar.timeline import Timeline
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import ResourceKind
from blazar.model.use.resource_hours import ProjectUse, SpendingByMonth, UsageRecord
from blazar.store.billing.spending import read_spending
from blazar.store.calendar import project_use
from blazar.store.calendar.earlier_users import EarlierUser, read_earlier_users
from blazar.store.calendar.kept import KeptCalendars
from blazar.store.calendar.looks import CalendarLook, look_at_range, look_at_window
from blazar.store.calendar.project_use import USED, read_shares
from blazar.store.calendar.uses import UsesView, read_live_allocations
from blazar.store.resources.catalog import CatalogCache, ResourceCatalog
from blazar.store.sql.rows import ALLOCATION_COLUMNS, allocation_of, chunks
from blazar.store.sql.tables import allocations, leases, reservations, resources
from blazar.store.sql.transactions import Transactions

_OF_LEASE = (
    sa.select(*ALLOCATION_COLUMNS)
    .where(
        allocations.c.lease_id == sa.bindparam("lease_id", type_=allocations.c.lease_id.type),
        allocations.c.released_at.is_(None),
    )
    .order_by(allocations.c.id)
)


@dataclass(frozen=True, slots=True)
class CalendarView:
    """The calendar as seen by one transaction. Valid only while that is open."""

    snapshot: Snapshot
    catalog: ResourceCatalog
    generations: Callable[[Collection[int]], Mapping[int, int]]
    """Returns the generations of resources that belong to what the view shows."""
    is_anybody_waiting: Callable[[], bool]
    """Returns whether a lease waits for its turn."""


@dataclass(frozen=True, slots=True)
class RangeView:
    """What is promised over a range of time, by kind, and what the project has in it, all as of one instant."""

    timelines: Mapping[ResourceKind, Timeline]
    catalogs: Mapping[ResourceKind, ResourceCatalog]
    use: ProjectUse | None = None
    so_far: tuple[int, int] = (0, 0)
    """The number of leases of the project that have not ended, and of their reservations, if that was asked for."""
    generations: Mapping[int, int] = field(default_factory=dict)
    """The generations of the resources of these kinds, if they were asked for."""


class CalendarStore:
    """Reads allocations; ``cleaning_time`` is kept free between two users of a resource."""

    def __init__(
        self, transactions: Transactions, catalogs: CatalogCache, kept: KeptCalendars, *, cleaning_time: timedelta
    ) -> None:
        self._transactions = transactions
        self._catalogs = catalogs
        self._kept = kept
        self._cleaning_time = cleaning_time

    @property
    def cleaning_time(self) -> timedelta:
        """The time that is kept free between two users of a resource."""
        return self._cleaning_time

    @contextmanager
    def view_window(
        self, kind: ResourceKind, window: Window, *, without_amounts: bool, now: datetime, besides: str | None
    ) -> Iterator[CalendarView]:
        """Open the calendar of a kind for a window, without the allocations of the lease ``besides``.

        The view is one snapshot while it is open, so that resources can be chosen on it before the generations of only
        these are read; close it as soon as that is done.
        """
        asked = CalendarLook(
            kind, window, without_amounts, now, frozenset([besides] if besides else ()), self._cleaning_time
        )
        with self._kept.open([kind], now, alone=besides is None) as seen:
            occupancy, catalog = look_at_window(seen, asked), seen.catalogs[kind]
            snapshot = Snapshot(catalog.resources, occupancy)
            yield CalendarView(snapshot, catalog, partial(seen.generations, kind), seen.is_anybody_waiting)

    def view_range(
        self,
        kinds: Mapping[ResourceKind, bool],
        window: Window,
        *,
        now: datetime,
        besides: str | None,
        use_of: str | None = None,
        reach: Window | None = None,
        spends: bool = False,
        count_of: str | None = None,
        generations: bool = False,
        without: Collection[str] = (),
    ) -> RangeView:
        """Return the calendars of kinds over a range of time, without the lease ``besides`` and those of ``without``.

        For each kind it is said whether only whole resources are searched for. ``use_of`` names the project whose use
        is read in the same snapshot, ``reach`` the longer time of its usage, ``spends`` if also what it has to pay,
        and ``count_of`` the project whose leases are counted. ``generations``: those of the resources are read, too.
        Two statements for each kind.
        """
        others = frozenset([besides] if besides else ()).union(without)
        with self._kept.open(list(kinds), now) as seen:
            connection = seen.connection
            timelines = {
                kind: look_at_range(seen, CalendarLook(kind, window, without_amounts, now, others, self._cleaning_time))
                for kind, without_amounts in kinds.items()
            }
            read = partial(_read_project_use, connection, besides=besides or "", reach=reach, now=now, spends=spends)
            use = None if use_of is None else read(use_of, window)
            so_far = (0, 0) if count_of is None else project_use.count_leases(connection, count_of, now)
            known = _read_kinds_generations(connection, kinds) if generations else {}
            return RangeView(timelines, seen.catalogs, use, so_far, known)

    @contextmanager
    def view_uses(self, kind: ResourceKind) -> Iterator[UsesView]:
        """Open the calendar of a kind to read what is used when; one snapshot while it is open."""
        with self._transactions.reading() as connection:
            yield UsesView(connection, self._catalogs.read(connection, kind), kind)

    @contextmanager
    def view_kept(self, kind: ResourceKind, now: datetime) -> Iterator[UsesView]:
        """Open the same, with what is promised from now on as it is kept."""
        with self._kept.open([kind], now) as seen:
            yield UsesView(seen.connection, seen.catalogs[kind], kind, seen.calendars.get(kind))

    def of_lease(self, lease_id: str) -> tuple[Allocation, ...]:
        """Return the live allocations of a lease."""
        return tuple(allocation_of(row) for row in self._transactions.select(_OF_LEASE, {"lease_id": lease_id}))

    def load_live(
        self,
        kind: ResourceKind,
        *,
        resource_id: int | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
        ending_after: datetime | None = None,
    ) -> tuple[Allocation, ...]:
        """Return live allocations, earliest first."""
        where = {"resource_id": resource_id, "lease_id": lease_id, "reservation_id": reservation_id}
        narrowed = {name: [value] for name, value in where.items() if value is not None}
        with self._transactions.reading() as connection:
            return read_live_allocations(connection, kind, narrowed, ending_after=ending_after)

    def find_promised(self, resource_ids: Collection[int], *, status: LeaseStatus | None = None) -> frozenset[int]:
        """Return those of these resources, by calendar id, that a lease (of a status) has or will have.

        One statement.
        """
        found: set[int] = set()
        with self._transactions.reading() as connection:
            for part in chunks(sorted(resource_ids)):
                query = sa.select(allocations.c.resource_id).where(
                    allocations.c.resource_id.in_(part), allocations.c.released_at.is_(None)
                )
                if status is not None:
                    of_lease = leases.c.id == allocations.c.lease_id
                    query = query.join(leases, of_lease).where(leases.c.status == str(status))
                found.update(connection.execute(query.distinct()).scalars())
        return frozenset(found)

    def ever_assigned(self, lease_id: str) -> Mapping[str, frozenset[int]]:
        """Return the calendar ids of all resources ever promised to a lease, released or not, by reservation."""
        query = sa.select(allocations.c.reservation_id, allocations.c.resource_id).where(
            allocations.c.lease_id == lease_id
        )
        found: dict[str, set[int]] = defaultdict(set)
        with self._transactions.reading() as connection:
            for reservation_id, resource_id in connection.execute(query.distinct()):
                found[reservation_id].add(resource_id)
        return {reservation_id: frozenset(ids) for reservation_id, ids in found.items()}

    def load_assignment_counts(self, lease_id: str) -> Mapping[str, Mapping[int, int]]:
        """Return how often each resource was assigned to each reservation of a lease, or its count changed.

        By reservation and calendar id; what was released before it began does not count. One statement.
        """
        query = (
            sa.select(allocations.c.reservation_id, allocations.c.resource_id, sa.func.count())
            .where(
                allocations.c.lease_id == lease_id,
                sa.or_(allocations.c.released_at.is_(None), allocations.c.released_at >= allocations.c.starts_at),
            )
            .group_by(allocations.c.reservation_id, allocations.c.resource_id)
        )
        found: dict[str, dict[int, int]] = defaultdict(dict)
        with self._transactions.reading() as connection:
            for reservation_id, resource_id, count in connection.execute(query):
                found[reservation_id][resource_id] = count
        return found

    def names_by_reservation(self, reservation_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources that reservations have, by reservation; those with none are left out."""
        found: dict[str, set[str]] = defaultdict(set)
        query = sa.select(allocations.c.reservation_id, resources.c.name).join(
            resources, resources.c.id == allocations.c.resource_id
        )
        with self._transactions.reading() as connection:
            for part in chunks(sorted(reservation_ids)):
                live = (allocations.c.reservation_id.in_(part), allocations.c.released_at.is_(None))
                for reservation_id, name in connection.execute(query.where(*live)):
                    found[reservation_id].add(name)
        return {reservation_id: frozenset(names) for reservation_id, names in found.items()}

    def names_in_use(
        self, kind: ResourceKind, now: datetime, *, region: str | None = None
    ) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources of a kind that reservations in use have, by reservation; one statement.

        ``region``: only those in that region.
        """
        found: dict[str, set[str]] = defaultdict(set)
        query = (
            sa.select(allocations.c.reservation_id, resources.c.name)
            .join(resources, resources.c.id == allocations.c.resource_id)
            .join(reservations, reservations.c.id == allocations.c.reservation_id)
            .join(leases, leases.c.id == allocations.c.lease_id)
            .where(
                allocations.c.kind == str(kind),
                allocations.c.released_at.is_(None),
                allocations.c.starts_at <= now,
                allocations.c.ends_at > now,
                reservations.c.status == str(ReservationStatus.ACTIVE),
                leases.c.status.in_(USED),
            )
        )
        if region is not None:
            query = query.where(resources.c.region == region)
        with self._transactions.reading() as connection:
            for reservation_id, name in connection.execute(query):
                found[reservation_id].add(name)
        return {reservation_id: frozenset(names) for reservation_id, names in found.items()}

    def project_shares(
        self, project_id: str, resource_ids: Collection[int], *, besides: str, now: datetime
    ) -> Mapping[int, Mapping[str, Amounts]]:
        """Return what a project has at present of shared resources, by calendar id and reservation, without one.

        Reservations that are starting count, and those that are ending do not. A manager reads this after it has set
        the status of its own reservation: of two managers at a time, the later one sees both. What is being changed
        counts as it was before. One statement.
        """
        with self._transactions.reading() as connection:
            return read_shares(connection, project_id, resource_ids, besides=besides, now=now)

    def earlier_users(self, lease_id: str, *, before: datetime, now: datetime) -> tuple[EarlierUser, ...]:
        """Return the leases that delay this one's start: late ones, due by ``before``, and ones being cleaned up."""
        with self._transactions.reading() as connection:
            return read_earlier_users(connection, lease_id, before=before, now=now, cleaning=self._cleaning_time)

    def count_leases(self, project_id: str, now: datetime) -> tuple[int, int]:
        """Return the number of leases of a project that have not ended, and of their reservations."""
        with self._transactions.reading() as connection:
            return project_use.count_leases(connection, project_id, now)

    def read_project_use(
        self,
        project_id: str,
        window: Window,
        *,
        besides: str,
        reach: Window | None = None,
        now: datetime,
        spends: bool = False,
    ) -> ProjectUse:
        """Return what a project has in a window, without the lease ``besides``; and over ``reach``, if given.

        ``spends``: also what it has to pay for this month and later ones.
        """
        with self._transactions.reading() as connection:
            return _read_project_use(connection, project_id, window, besides, reach, now, spends)

    def read_spending(self, project_ids: Collection[str], month: date) -> Mapping[str, SpendingByMonth]:
        """Return what projects have to pay for a month, by project; one statement."""
        with self._transactions.reading() as connection:
            return read_spending(connection, project_ids, month, until=month)

    def read_usage_of_projects(
        self, project_ids: Collection[str], window: Window, *, now: datetime
    ) -> Mapping[str, tuple[UsageRecord, ...]]:
        """Return what projects have in a window, by project; one statement."""
        with self._transactions.reading() as connection:
            return project_use.read_usage_of_projects(connection, project_ids, window, now)

    def list_projects(self, window: Window, *, after: str, limit: int) -> tuple[str, ...]:
        """Return the projects with leases in a window, by id from the one ``after``; one statement."""
        with self._transactions.reading() as connection:
            return project_use.list_projects(connection, window, after=after, limit=limit)


def _read_kinds_generations(connection: Connection, kinds: Collection[ResourceKind]) -> Mapping[int, int]:
    """Return the generations of the live resources of kinds, by id; one statement."""
    of_kinds = resources.c.kind.in_([str(kind) for kind in kinds])
    query = sa.select(resources.c.id, resources.c.generation).where(of_kinds, resources.c.live == 1)
    return {row[0]: row[1] for row in connection.execute(query)}


def _read_project_use(
    connection: Connection,
    project_id: str,
    window: Window,
    besides: str,
    reach: Window | None,
    now: datetime,
    spends: bool,
) -> ProjectUse:
    use = project_use.read_host_use(connection, project_id, window, besides)
    if spends:
        since = now.date().replace(day=1)
        spending = read_spending(connection, [project_id], since, besides=besides).get(project_id, {})
        use = replace(use, spending=spending)
    if reach is None:
        return use
    usage, own = project_use.read_usage_records(connection, project_id, reach, besides, now)
    return replace(use, usage=usage, own_usage=own)
