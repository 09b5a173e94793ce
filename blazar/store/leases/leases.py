# SPDX-License-Identifier: Apache-2.0
"""The store of leases, with their reservations and events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import check_owner
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import Announcement
from blazar.model.leases.lease import Lease, LeaseRevision, unknown_lease
from blazar.model.leases.reservation import ReservationOwner
from blazar.model.leases.states import HIDDEN_EVENTS, EndReason, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.booking.bookings import BookingStore
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.calendar.earlier_users import find_leases_with_earlier_users, read_last_reservations
from blazar.store.leases import purging
from blazar.store.resources import inventory
from blazar.store.sql.rows import (
    ALLOCATION_COLUMNS,
    EVENT_COLUMNS,
    LEASE_COLUMNS,
    RESERVATION_COLUMNS,
    allocation_of,
    assemble_leases,
    chunks,
)
from blazar.store.sql.tables import allocations, events, leases, reservations, resources
from blazar.store.sql.transactions import Transactions, atomic

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEALED = (str(LeaseStatus.PENDING), str(LeaseStatus.ACTIVE), str(LeaseStatus.UPDATING), str(LeaseStatus.STARTING))
"""States of leases to heal. Others have nothing that a user waits for, except those in ERROR with a part in use."""

_THIS = sa.bindparam("lease_id", type_=leases.c.id.type)
_ONE = sa.select(*LEASE_COLUMNS).where(leases.c.id == _THIS)
_ONE_SHOWN = _ONE.where(leases.c.deleted_at.is_(None))
_RESERVATIONS_OF_ONE = (
    sa.select(*RESERVATION_COLUMNS).where(reservations.c.lease_id == _THIS).order_by(reservations.c.position)
)
_EVENTS_OF_ONE = sa.select(*EVENT_COLUMNS).where(events.c.lease_id == _THIS).order_by(events.c.position)


@dataclass(frozen=True, slots=True)
class LeaseAtStart:
    """A lease with its allocations. ``late``: earlier users of its resources may not have left."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    resources: Mapping[int, Resource]
    late: bool


@dataclass(frozen=True, slots=True)
class NamedReservation:
    """The name that a reservation gives to what it makes, as a parameter has it."""

    lease_id: str
    region: str
    name: object
    window: Window


class LeaseStore:
    """Reads and writes leases; ``cleaning_time`` is kept free after each use of a resource."""

    def __init__(
        self, transactions: Transactions, bookings: BookingStore, *, cleaning_time: timedelta, ended_leases: int
    ) -> None:
        self._transactions = transactions
        self._ended_leases = ended_leases
        self._bookings = bookings
        self._cleaning_time = cleaning_time

    def one(self, lease_id: str, *, including_deleted: bool = False) -> Lease:
        """Return one lease with its reservations and events, in three statements; NotFound.

        Without ``including_deleted`` the same for one that is not that owner's any more who asks for it.
        """
        this = {"lease_id": lease_id}
        with self._transactions.reading() as connection:
            rows = connection.execute(_ONE if including_deleted else _ONE_SHOWN, this).all()
            if not rows:
                raise unknown_lease(lease_id)
            kept = connection.execute(_RESERVATIONS_OF_ONE, this).all()
            due = connection.execute(_EVENTS_OF_ONE, this).all()
        (found,) = assemble_leases(rows, kept, due)
        if not including_deleted:
            check_owner(found)
        return found

    def of_project(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first, without their request events.

        That is as users see them, in three statements. Of those that are over it is as many as are listed.
        """
        with self._transactions.reading() as connection:
            return read_leases(connection, _select_listed(project_id, self._ended_leases))

    def list_projects(self) -> frozenset[str]:
        """Return the projects that have leases which have not ended."""
        ended = (str(LeaseStatus.TERMINATED), str(LeaseStatus.ERROR))
        query = sa.select(leases.c.project_id).distinct()
        query = query.where(leases.c.deleted_at.is_(None), leases.c.status.not_in(ended))
        return frozenset(self._transactions.scalars(query))

    def list_projects_with(self, resource_type: str, *, since: datetime) -> frozenset[str]:
        """Return the projects that have had reservations of a type in leases that end after an instant."""
        query = (
            sa.select(leases.c.project_id)
            .distinct()
            .join(reservations, reservations.c.lease_id == leases.c.id)
            .where(reservations.c.resource_type == resource_type, leases.c.ends_at > since)
        )
        return frozenset(self._transactions.scalars(query))

    def count_lapsed(self, project_id: str, *, since: datetime) -> int:
        """Return how many leases of a project nobody has confirmed, that were deleted since then."""
        query = sa.select(sa.func.count()).where(
            leases.c.project_id == project_id,
            leases.c.deleted_at > since,
            leases.c.end_reason == str(EndReason.UNCONFIRMED),
        )
        return int(next(iter(self._transactions.scalars(query))))

    def map_projects(self, reservation_ids: Collection[str]) -> Mapping[str, str]:
        """Return the projects of reservations, by id; one statement for each few thousand."""
        query = sa.select(reservations.c.id, leases.c.project_id).join(leases, leases.c.id == reservations.c.lease_id)
        with self._transactions.reading() as connection:
            parts = (
                connection.execute(query.where(reservations.c.id.in_(part))) for part in chunks(sorted(reservation_ids))
            )
            return {id_: project for part in parts for id_, project in part}

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of what ``of_project`` returns, in one statement."""
        query = sa.select(leases.c.id, leases.c.revision).where(*_select_listed(project_id, self._ended_leases))
        rows = self._transactions.select(query.order_by(leases.c.created_at, leases.c.id))
        return tuple(LeaseRevision(id_, revision) for id_, revision in rows)

    def by_ids(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as ``of_project`` does, by id; deleted ones are left out.

        In three statements for each few thousand.
        """
        with self._transactions.reading() as connection:
            parts = [
                read_leases(connection, [*_select_visible(None), leases.c.id.in_(part)])
                for part in chunks(sorted(lease_ids))
            ]
        return tuple(
            sorted((lease for part in parts for lease in part), key=lambda lease: (lease.created_at, lease.id))
        )

    def load_past(
        self, project_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[Lease, ...]:
        """Return leases that have ended or were deleted, at any time in the past, oldest first."""
        where: list[sa.ColumnElement[bool]] = [
            sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == str(LeaseStatus.TERMINATED))
        ]
        if project_id is not None:
            where.append(leases.c.project_id == project_id)
        if since is not None:
            where.append(leases.c.ends_at >= since)
        if until is not None:
            where.append(leases.c.starts_at < until)
        with self._transactions.reading() as connection:
            return read_leases(connection, where)

    def load_starts(self, lease_ids: Collection[str], *, now: datetime) -> Mapping[str, LeaseAtStart]:
        """Return what the start of each of many leases needs, in the number of statements of one."""
        with self._transactions.reading() as connection:
            held = read_allocations(connection, lease_ids)
            ids = {allocation.resource_id for parts in held.values() for allocation in parts}
            known = inventory.load_by_ids(connection, ids)
            late = find_leases_with_earlier_users(connection, lease_ids, now=now, cleaning=self._cleaning_time)
            # Deleted leases as well: who starts them has to see that.
            parts = [
                read_leases(connection, [leases.c.id.in_(part)], requests=True) for part in chunks(sorted(lease_ids))
            ]

        def at_start(lease: Lease) -> LeaseAtStart:
            mine = held[lease.id]
            its_own = {allocation.resource_id: known[allocation.resource_id] for allocation in mine}
            return LeaseAtStart(lease, mine, its_own, lease.id in late)

        return {lease.id: at_start(lease) for part in parts for lease in part}

    def load_owners(self, reservation_ids: Collection[str]) -> Mapping[str, ReservationOwner]:
        """Return the leases of reservations, those on record too; unknown ids are left out.

        In one statement for each few thousand.
        """
        found: dict[str, ReservationOwner] = {}
        query = sa.select(reservations.c.id, leases.c.id, leases.c.status, leases.c.deleted_at).join(
            leases, leases.c.id == reservations.c.lease_id
        )
        with self._transactions.reading() as connection:
            for part in chunks(sorted(reservation_ids)):
                for reservation_id, lease_id, status, deleted_at in connection.execute(
                    query.where(reservations.c.id.in_(part))
                ):
                    over = deleted_at is not None or status == str(LeaseStatus.TERMINATED)
                    found[reservation_id] = ReservationOwner(lease_id, over)
        return found

    def find_named_reservations(
        self, project_id: str, resource_type: str, parameter: str, window: Window
    ) -> tuple[NamedReservation, ...]:
        """Return what pending and active reservations of a type in leases that overlap a window have as a parameter.

        Of one project, in one statement; only this parameter is read.
        """
        states = [str(ReservationStatus.PENDING), str(ReservationStatus.ACTIVE)]
        query = (
            sa.select(
                reservations.c.lease_id,
                reservations.c.region,
                reservations.c.parameters[parameter],
                leases.c.starts_at,
                leases.c.ends_at,
            )
            .join(leases, leases.c.id == reservations.c.lease_id)
            .where(
                leases.c.project_id == project_id,
                leases.c.ends_at > window.start,
                leases.c.starts_at < window.end,
                leases.c.deleted_at.is_(None),
                reservations.c.resource_type == resource_type,
                reservations.c.status.in_(states),
            )
            .order_by(leases.c.starts_at, leases.c.id)
        )
        rows = self._transactions.select(query)
        return tuple(NamedReservation(row[0], row[1], row[2], Window(row[3], row[4])) for row in rows)

    def last_reservations(
        self, projects: Mapping[int, Collection[str]], now: datetime
    ) -> Mapping[tuple[int, str], str]:
        """Return the last finished reservation of projects on resources, by calendar id, that they have no more."""
        if not any(projects.values()):
            return {}
        with self._transactions.reading() as connection:
            return read_last_reservations(connection, projects, now)

    def save(
        self,
        before: Lease,
        after: Lease,
        *,
        release: Collection[str] = (),
        at: datetime,
        messages: Collection[OutboxMessage] = (),
        announces: Announcement | None = None,
    ) -> Lease:
        """Write a changed lease, release the allocations of these reservations, and add messages. StaleLease.

        ``announces`` is what its owner is told by that.
        """
        write = LeaseWrite(before, after, keeps=True, announces=announces)
        (saved,) = self._bookings.commit(Commit([write], at=at, released=release, messages=messages))
        return saved

    def find_to_heal(
        self, *, now: datetime, until: datetime | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[tuple[datetime, str]]:
        """Return starts and ids of the next leases that have what has failed by ``until``, or are missing something.

        One statement, in this order from the one ``after``: a page at a time.
        """
        horizon = () if until is None else (leases.c.starts_at <= until,)
        failed = (
            sa.select(allocations.c.lease_id)
            .join(resources, resources.c.id == allocations.c.resource_id)
            .join(leases, leases.c.id == allocations.c.lease_id)
            .where(resources.c.failed_since.is_not(None), allocations.c.released_at.is_(None), *horizon)
        )
        missing = sa.select(reservations.c.lease_id).where(
            reservations.c.missing_resources.is_(True),
            reservations.c.status.in_([str(ReservationStatus.PENDING), str(ReservationStatus.ACTIVE)]),
        )
        used = sa.select(reservations.c.lease_id).where(reservations.c.status == str(ReservationStatus.ACTIVE))
        partly = sa.and_(leases.c.status == str(LeaseStatus.ERROR), leases.c.id.in_(used))
        starts, id_ = leases.c.starts_at, leases.c.id
        rest = () if after is None else (sa.or_(starts > after[0], sa.and_(starts == after[0], id_ > after[1])),)
        query = (
            sa.select(starts, id_)
            .where(
                leases.c.deleted_at.is_(None),
                sa.or_(leases.c.status.in_(HEALED), partly),
                leases.c.ends_at > now,
                leases.c.id.in_(sa.union(failed, missing)),
                *rest,
            )
            .order_by(starts, id_)
            .limit(limit)
        )
        return [(row[0], row[1]) for row in self._transactions.select(query)]

    def count_purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return the number of leases deleted or ended before then, and of their rows by table."""
        with self._transactions.reading() as connection:
            return purging.count_rows(connection, before)

    @atomic
    def purge(self, connection: Connection, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these leases with all their rows for good; return the number of rows by table."""
        return purging.delete_rows(connection, before, limit)


def _select_visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Select the leases that users see, of a project or of all."""
    where: list[sa.ColumnElement[bool]] = [leases.c.deleted_at.is_(None)]
    return where if project_id is None else [*where, leases.c.project_id == project_id]


def _select_listed(project_id: str | None, most_ended: int) -> list[sa.ColumnElement[bool]]:
    """Select what ``_select_visible`` does, but of leases that are over only the last ones: at most so many."""
    over = [str(LeaseStatus.TERMINATED), str(LeaseStatus.TIMED_OUT)]
    other = leases.alias()
    ended = sa.select(other.c.ends_at).where(other.c.deleted_at.is_(None), other.c.status.in_(over))
    if project_id is not None:
        ended = ended.where(other.c.project_id == project_id)
    # The first one that is too many; all that end with it are left out, too.
    first = ended.order_by(other.c.ends_at.desc()).limit(1).offset(most_ended).scalar_subquery()
    newer = leases.c.ends_at > sa.func.coalesce(first, sa.literal(_EPOCH, leases.c.ends_at.type))
    return [*_select_visible(project_id), sa.or_(leases.c.status.not_in(over), newer)]


def read_leases(
    connection: Connection, where: Sequence[sa.ColumnElement[bool]], *, requests: bool = False
) -> tuple[Lease, ...]:
    """Return leases, oldest first, with all their events or without their request events; three statements."""
    rows = connection.execute(sa.select(*LEASE_COLUMNS).where(*where).order_by(leases.c.created_at, leases.c.id)).all()
    if not rows:
        return ()
    kept = connection.execute(
        sa.select(*RESERVATION_COLUMNS)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(*where)
        .order_by(reservations.c.position)
    ).all()
    shown = () if requests else (events.c.event_type.not_in([str(kind) for kind in HIDDEN_EVENTS]),)
    due = connection.execute(
        sa.select(*EVENT_COLUMNS)
        .join(leases, leases.c.id == events.c.lease_id)
        .where(*where, *shown)
        .order_by(events.c.position)
    ).all()
    return assemble_leases(rows, kept, due)


def read_allocations(connection: Connection, lease_ids: Collection[str]) -> Mapping[str, tuple[Allocation, ...]]:
    """Return the live allocations of leases, in one statement for each few thousand."""
    found: dict[str, list[Allocation]] = {lease_id: [] for lease_id in lease_ids}
    live = sa.select(*ALLOCATION_COLUMNS).where(allocations.c.released_at.is_(None)).order_by(allocations.c.id)
    for part in chunks(sorted(lease_ids)):
        for row in connection.execute(live.where(allocations.c.lease_id.in_(part))):
            allocation = allocation_of(row)
            found[allocation.lease_id].append(allocation)
    return {lease_id: tuple(held) for lease_id, held in found.items()}
