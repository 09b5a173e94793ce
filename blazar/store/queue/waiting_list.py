# SPDX-License-Identifier: Apache-2.0
"""The store of the waiting list: who waits, what the next plan is made of, and what the last one said.

Also of leases that are prolonged while nobody else needs their resources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import StaleCalendar
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseKind, LeaseStatus
from blazar.model.resources.resource import ResourceKind
from blazar.store.booking.bookings import PLAN_ROW
from blazar.store.calendar import generations
from blazar.store.calendar.changes import WAITING, is_anybody_waiting
from blazar.store.leases.leases import read_allocations, read_leases
from blazar.store.sql.tables import UTC_TIME, allocations, leases, waiting_list
from blazar.store.sql.transactions import Clash, Transactions

_BOOKED = (leases.c.status == str(LeaseStatus.PENDING), leases.c.deleted_at.is_(None), leases.c.queued_at.is_not(None))
_ANY_WORK = sa.select(sa.or_(sa.exists().where(*WAITING), sa.exists().where(*_BOOKED)))
_TRIED = (*WAITING, leases.c.kind == str(LeaseKind.RETRIES))
# One that has been tried in vain rests, and the next plan tells until when. The order stays: managers of two versions
# compare what they have seen.
_STATE = sa.select(
    generations.LEASES,
    generations.REVISIONS,
    generations.LAST_DELETION,
    sa.select(sa.func.count()).where(*WAITING).select_from(leases).scalar_subquery(),
    sa.select(sa.func.max(leases.c.queued_at, type_=UTC_TIME)).where(*WAITING).scalar_subquery(),
    sa.select(sa.func.max(leases.c.updated_at, type_=UTC_TIME)).where(*_TRIED).scalar_subquery(),
    generations.LAST_ALLOCATION,
    generations.INVENTORIES,
    sa.select(waiting_list.c.version).where(waiting_list.c.id == PLAN_ROW).scalar_subquery(),
    sa.select(waiting_list.c.seen).where(waiting_list.c.id == PLAN_ROW).scalar_subquery(),
    sa.select(waiting_list.c.due_at).where(waiting_list.c.id == PLAN_ROW).scalar_subquery(),
)


@dataclass(frozen=True, slots=True)
class ListState:
    """What decides whether another plan is needed: ``now_seen`` sums up what a plan would be made of now.

    ``version`` counts the plans that were carried out, ``seen`` is what the last one was made of, and ``due_at`` when
    another is due without any change.
    """

    version: int
    seen: str | None
    due_at: datetime | None
    now_seen: str

    def is_due(self, now: datetime) -> bool:
        """Return whether something has changed since the last plan, or the time of the next has come."""
        return self.seen != self.now_seen or (self.due_at is not None and self.due_at <= now)


@dataclass(frozen=True, slots=True)
class Held:
    """What a lease had or has of one kind: ``count_waiting`` times ``per_instance`` (None: whole resources) for a time.

    ``end`` is as it was booked, and ``released_at`` when it was given back, which may be before that.
    """

    lease_id: str
    project_id: str
    kind: ResourceKind
    begin: datetime
    end: datetime
    count: int
    per_instance: Amounts | None
    released_at: datetime | None


@dataclass(frozen=True, slots=True)
class QueueUpdate:
    """What a plan says of a lease that goes on waiting: its place, its window as it will probably be, or why not."""

    lease_id: str
    position: int | None
    start: datetime | None
    begin: datetime
    end: datetime
    reason: str | None


class WaitingListStore:
    """Reads and writes the waiting list."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def is_anybody_waiting(self) -> bool:
        """Return whether a lease waits; one statement."""
        with self._transactions.reading(single=True) as connection:
            return is_anybody_waiting(connection)

    def has_work(self) -> bool:
        """Return whether a lease waits, or may have been promised a start; one statement."""
        return bool(self._transactions.select(_ANY_WORK)[0][0])

    def load_promised(self) -> tuple[tuple[Lease, tuple[Allocation, ...]], ...]:
        """Return the leases that were promised a start, with all their events and what they hold.

        In four statements for up to a few thousand, one if there are none.
        """
        with self._transactions.reading() as connection:
            found = [lease for lease in read_leases(connection, list(_BOOKED), requests=True) if lease.is_promised]
            held = read_allocations(connection, [lease.id for lease in found]) if found else {}
        return tuple((lease, held[lease.id]) for lease in found)

    def load_state(self) -> ListState:
        """Return what decides whether another plan is needed; one statement."""
        with self._transactions.reading() as connection:
            *found, version, seen, due_at = connection.execute(_STATE).one()
        return ListState(version or 0, seen, due_at, " ".join(str(version_) for version_ in found))

    def load_waiting(self) -> tuple[Lease, ...]:
        """Return the leases that wait, with all their events, in three statements."""
        with self._transactions.reading() as connection:
            return read_leases(connection, list(WAITING), requests=True)

    def load_booked_uses(self, kinds: Collection[ResourceKind], since: datetime) -> tuple[Held, ...]:
        """Return what leases have of kinds, and had since an instant; one statement."""
        a = allocations.c
        # The end of what is released becomes that instant; a lease that is deleted keeps the end that it had.
        is_deleted = sa.and_(leases.c.deleted_at <= a.released_at, leases.c.ends_at > a.ends_at)
        end = sa.case((is_deleted, leases.c.ends_at), else_=a.ends_at)
        query = (
            sa.select(
                leases.c.id, leases.c.project_id, a.kind, a.starts_at, end, a.count, a.per_instance, a.released_at
            )
            .join(leases, leases.c.id == a.lease_id)
            .where(
                a.kind.in_(sorted(map(str, kinds))),
                a.ends_at > since,
                sa.or_(a.released_at.is_(None), a.released_at >= a.starts_at),
            )
        )
        return tuple(
            Held(id_, project, ResourceKind(kind), begin, end, n, None if unit is None else Amounts.of(unit), released)
            for id_, project, kind, begin, end, n, unit, released in self._transactions.select(query)
        )

    def record_plan(self, state: ListState, *, due_at: datetime | None, updates: Collection[QueueUpdate]) -> ListState:
        """Record a plan made of a state, and what it says of those that go on waiting; return the state after it.

        What it says of a lease that has stopped waiting since is left out. StaleCalendar if there was another plan.
        """

        def write_plan(connection: Connection) -> None:
            values = {"version": state.version + 1, "seen": state.now_seen, "due_at": due_at}
            _raise_version(connection, state, values)
            if updates:
                connection.execute(_TELL, [_update_row(update) for update in updates])

        try:
            self._transactions.write(write_plan)
        except Clash as error:
            raise StaleCalendar("another manager planned the waiting list meanwhile") from error
        return replace(state, version=state.version + 1, due_at=due_at)

    def count_waiting(self, project_id: str) -> tuple[int, int]:
        """Return how many leases of a project wait, and how many in all; one statement."""
        mine = sa.func.sum(sa.case((leases.c.project_id == project_id, 1), else_=0))
        with self._transactions.reading() as connection:
            found, total = connection.execute(sa.select(mine, sa.func.count()).where(*WAITING)).one()
        return int(found or 0), int(total)


_TELL = (
    leases.update()
    .where(leases.c.id == sa.bindparam("key"), *WAITING)
    .values(
        wait_position=sa.bindparam("position"),
        wait_estimate=sa.bindparam("estimate", type_=UTC_TIME),
        wait_reason=sa.bindparam("reason"),
        starts_at=sa.bindparam("begin", type_=UTC_TIME),
        ends_at=sa.bindparam("end", type_=UTC_TIME),
        revision=leases.c.revision + 1,
    )
)


def _update_row(update: QueueUpdate) -> dict[str, object]:
    return {
        "key": update.lease_id,
        "position": update.position,
        "estimate": update.start,
        "reason": update.reason,
        "begin": update.begin,
        "end": update.end,
    }


def _raise_version(connection: Connection, state: ListState, values: Mapping[str, object]) -> None:
    if not state.version:
        connection.execute(waiting_list.insert().values(id=PLAN_ROW, **values))
        return
    raised = connection.execute(
        waiting_list.update()
        .where(waiting_list.c.id == PLAN_ROW, waiting_list.c.version == state.version)
        .values(**values)
    )
    if not raised.rowcount:
        raise StaleCalendar("another manager planned the waiting list meanwhile")


_LIVE = (
    leases.c.extend_until > leases.c.ends_at,
    leases.c.status == str(LeaseStatus.ACTIVE),
    leases.c.deleted_at.is_(None),
)


class ExtensionStore:
    """Reads which leases may be prolonged."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def find_ending(self, instant: datetime, *, now: datetime) -> tuple[str, ...]:
        """Return the ids of active leases that end by an instant and may be prolonged, the first to end first."""
        query = sa.select(leases.c.id).where(*_LIVE, leases.c.ends_at <= instant, leases.c.ends_at > now)
        return tuple(self._transactions.scalars(query.order_by(leases.c.ends_at, leases.c.id)))

    def find_next_end(self, *, after: datetime) -> datetime | None:
        """Return the first end, after an instant, of an active lease that may be prolonged; one statement."""
        query = sa.select(sa.func.min(leases.c.ends_at, type_=leases.c.ends_at.type)).where(
            *_LIVE, leases.c.ends_at > after
        )
        found: datetime | None = self._transactions.scalar(query)
        return found
