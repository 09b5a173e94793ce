# SPDX-License-Identifier: Apache-2.0
"""The store of bookings: what is promised is written as a whole, or not at all. All that books writes here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import NotEnoughResources, PlanSuperseded, StaleCalendar
from blazar.model.base.values import dataclass
from blazar.model.billing.booked_prices import AccountTotals
from blazar.model.billing.uses import LeaseFacts
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.object_entries import tell_reached
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus
from blazar.model.use.resource_hours import ReachedShare
from blazar.store.billing.charges import read_totals
from blazar.store.billing.facts import read_facts
from blazar.store.booking import allocation_writes, history, lease_writes
from blazar.store.booking.allocation_writes import Pricing
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.booking.ledger import Ledger, LedgerWork
from blazar.store.booking.shared_saves import SharedSaves
from blazar.store.calendar import project_use
from blazar.store.calendar.generations import raise_generations
from blazar.store.calendar.kept import KeptCalendars
from blazar.store.calendar.own_bookings import list_bookings
from blazar.store.journal.rows import write_once
from blazar.store.maintenance import plans
from blazar.store.sql.rows import ALLOCATION_COLUMNS, allocation_of, chunks
from blazar.store.sql.tables import allocations, events, leases, waiting_list
from blazar.store.sql.transactions import Clash, Transactions
from blazar.store.work import idempotency, outbox

PLAN_ROW = 1
"""The only row of the waiting list, with the version of its last plan."""

_STATUSES = (str(LeaseStatus.CREATING), str(LeaseStatus.IN_PROGRESS))
_OPEN = (str(EventStatus.UNDONE), str(EventStatus.IN_PROGRESS))

_GIVEN_BACK = (EndReason.DELETED, EndReason.UNUSED, EndReason.ENDED_EARLY)
"""Why leases end before their time, and give back the rest of it."""

Part = Callable[[Connection], None]
"""What a feature does in the transaction of a commit: it checks its own rows, or writes them."""

Tell = Callable[[Mapping[tuple[str, str], AccountTotals]], object]
"""Is told what new leases cost, by lease and project."""


@dataclass(frozen=True, slots=True)
class TriedPrices:
    """What leases cost each of their projects before and after a commit, and what is known of each after that."""

    before: Mapping[tuple[str, str], AccountTotals]
    after: Mapping[tuple[str, str], AccountTotals]
    facts: Mapping[str, LeaseFacts]


class _Tried(Exception):
    """A commit was only tried; raised in its transaction, so that nothing of it is written."""

    def __init__(self, prices: TriedPrices) -> None:
        super().__init__()
        self.prices = prices


class BookingStore:
    """Books leases; ``cleaning_time`` is kept free between two users of a resource.

    ``kept`` is told what is booked, and which resources were not as they were thought to be.
    """

    def __init__(
        self,
        transactions: Transactions,
        ledger: Ledger,
        kept: KeptCalendars,
        *,
        cleaning_time: timedelta,
    ) -> None:
        self._transactions = transactions
        self._ledger = ledger
        self._kept = kept
        self._cleaning_time = cleaning_time
        self._shared_saves = SharedSaves(transactions)

    def commit(
        self, commit: Commit, *, fence: Part | None = None, rows: Part | None = None, tell: Tell | None = None
    ) -> tuple[Lease, ...]:
        """Write a commit, all or nothing; return its leases as saved, in their order.

        ``fence`` comes first, ``rows`` after the leases, ``tell`` once all is written. StaleLease, StaleCalendar, also
        if a project was granted something since its use was read; KeyTaken, UsageDenied, PlanSuperseded, and
        NotEnoughResources while servers are moved away for another lease of the project. Bounds may be passed by
        simultaneous requests.
        """
        if fence is None and rows is None and (saved := self._shared_saves.write(commit)) is not None:
            return (saved,)
        booked = list_bookings(commit.takings, commit.generations, self._cleaning_time)
        try:
            with self._kept.note_bookings(booked):
                written, ledger = self._transactions.write(partial(self._write, commit=commit, fence=fence, rows=rows))
        except StaleCalendar:
            self._kept.doubt(commit.generations)
            raise
        except Clash as error:
            if not commit.evacuates and all(use.version for use in commit.uses):
                raise
            # The first two bookings of a project whose use is limited, or that lock it, make the same row.
            raise StaleCalendar("the project was granted another lease or change in the meantime") from error
        if tell is not None and ledger is not None:
            tell(ledger.totals)
        return written

    def _write(
        self, connection: Connection, *, commit: Commit, fence: Part | None, rows: Part | None
    ) -> tuple[tuple[Lease, ...], LedgerWork | None]:
        """Write all of a commit; return its leases as saved, and what was done to accounts, if there are prices."""
        if fence is not None:
            fence(connection)
        _check(connection, commit)
        ledger = self._ledger.begin(connection, commit)
        saved = _write_leases(connection, commit)
        self._write_resources(connection, commit, saved, None if ledger is None else ledger.choose_prices)
        if ledger is not None:
            ledger.finish(partial(_is_given_back, commit))
        _tell_reached(connection, commit, () if ledger is None else ledger.reached)
        if rows is not None:
            rows(connection)
        if commit.maintained is not None or commit.plans_from:
            _write_plans(connection, commit)
        if commit.messages:
            outbox.write_messages(connection, commit.messages, at=commit.at)
        return tuple([saved.get(write.after.id, write.after) for write in commit.leases]), ledger

    def try_prices(self, commit: Commit, lease_ids: Collection[str]) -> TriedPrices:
        """Return what leases cost before and after a commit, which is rolled back. The errors of ``commit``."""
        before: Mapping[tuple[str, str], AccountTotals] = {}

        def read_before(connection: Connection) -> None:
            nonlocal before
            before = read_totals(connection, lease_ids)

        def read_after(connection: Connection) -> None:
            facts = read_facts(connection, lease_ids)
            raise _Tried(TriedPrices(before, read_totals(connection, lease_ids), facts))

        try:
            self.commit(commit, fence=read_before, rows=read_after)
        except _Tried as tried:
            return tried.prices
        raise AssertionError("what is read after a commit ends it")

    def load_allocations(self, lease_ids: Collection[str]) -> Mapping[str, tuple[Allocation, ...]]:
        """Return what leases have before they are written, by lease, in one statement for each few thousand."""
        found: dict[str, list[Allocation]] = defaultdict(list)
        for part in chunks(sorted(lease_ids)):
            query = sa.select(*ALLOCATION_COLUMNS).where(
                allocations.c.lease_id.in_(part), allocations.c.released_at.is_(None)
            )
            for allocation in map(allocation_of, self._transactions.select(query.order_by(allocations.c.id))):
                found[allocation.lease_id].append(allocation)
        return {id_: tuple(mine) for id_, mine in found.items()}

    def check_not_evacuating(self, project_id: str) -> None:
        """Raise NotEnoughResources while servers are moved away for a lease of the project."""
        with self._transactions.reading() as connection:
            _check_not_evacuating(connection, project_id)

    def _write_resources(
        self,
        connection: Connection,
        commit: Commit,
        saved: Mapping[str, Lease],
        pricing: Pricing | None,
    ) -> None:
        """Write what the leases get and give back, and their history; ``saved`` are those that are changed, by id."""
        at, new, cleaning = commit.at, commit.new, self._cleaning_time
        replace = partial(allocation_writes.replace, cleaning=cleaning, at=at, pricing=pricing)
        held, others = (_read_holdings(connection, commit), _other_leases(commit)) if commit.joint else ({}, {})
        if commit.moves or commit.passing:
            lease_writes.move_reservations(connection, commit)
        if commit.released:
            which = allocations.c.reservation_id.in_(sorted(commit.released))
            allocation_writes.release(connection, which, at=at, cleaning=cleaning, returns=_ends_before_time(commit))
        if redated := [write.after.id for write in commit.redated]:
            allocation_writes.release_leases(connection, redated, at=at, cleaning=cleaning)
        told: list[history.Written] = [(write.before, write.saved, ()) for write in commit.redated]
        # In the order of ids, as they were saved, unless they take part in one operation.
        by_id = {write.after.id: write for write in commit.leases}
        for lease_id in by_id if commit.joint else saved:
            write = by_id[lease_id]
            lease = saved.get(lease_id, write.after)
            if write.keeps:
                told.append((write.before, lease, ()))
                continue
            origin = others.get(lease_id) if write.before is None else None
            returns, since = _gives_back(write) and not commit.undoes, _find_begin(commit, write)
            moves = replace(connection, lease, write.allocations, returns=returns, origin=origin, undone_since=since)
            if commit.joint:
                # What has passed from one lease to the other is not seen there: its rows have moved already.
                moves = history.moves_between(held.get(lease.id, ()), history.pair_with_reservations(write.allocations))
            told += history.entry_of_change(write.before, lease, moves, write.allocations)
        if not commit.joint:
            come = [write.allocations for write in (*commit.redated, *new)]
            allocation_writes.insert_priced(connection, come, cleaning, pricing)
            told += [(None, write.after, history.list_new_moves(write.allocations)) for write in new]
        history.write(connection, told, sure=commit.joint, others=others, by_id=by_id, at=at)


def _write_leases(connection: Connection, commit: Commit) -> Mapping[str, Lease]:
    """Write the leases of a commit; return those that are changed as saved, by id."""
    saved: dict[str, Lease] = {}
    for write in commit.changed:
        saved[write.after.id] = lease_writes.save(connection, write, at=commit.at)
        if write.after.deleted_at is not None:
            idempotency.forget_key_of_undone(connection, write.before, write.after)
    if commit.redated:
        lease_writes.save_dates(connection, commit.redated)
    if new := commit.new:
        besides = {move.reservation_id for move in commit.moves}
        lease_writes.insert(connection, new, at=commit.at, besides=besides)
    return saved


def _tell_reached(connection: Connection, commit: Commit, of_money: Sequence[ReachedShare]) -> None:
    """Write once for each project, period and share that it is reached; two statements if one is."""
    if reached := [*(one for use in commit.uses for one in use.reached), *of_money]:
        write_once(connection, [tell_reached(one, at=commit.at) for one in reached])


def _ends_before_time(commit: Commit) -> bool:
    """Return whether leases end that might have gone on."""
    return any(write.after.end_reason in _GIVEN_BACK for write in commit.leases)


def _is_given_back(commit: Commit, write: LeaseWrite) -> bool:
    """Return whether what a lease has less after a commit is given back by its owner."""
    if commit.undoes or (write.before is not None and write.before.is_unconfirmed):
        return False
    if write.after.end_reason in _GIVEN_BACK and commit.released:
        return True
    return not write.keeps and _gives_back(write)


def _find_begin(commit: Commit, write: LeaseWrite) -> datetime | None:
    """Return when a change of a lease was begun that is undone; None if none is."""
    event = write.before.event(EventType.UPDATE) if commit.undoes and write.before is not None else None
    return None if event is None else event.time


def _gives_back(write: LeaseWrite) -> bool:
    """Return whether the owner of a lease wants what it has less, and not the service, for want of resources."""
    if write.makes_room:
        return False
    return current().actor is not None or (write.before is not None and write.before.status is LeaseStatus.UPDATING)


def _check(connection: Connection, commit: Commit) -> None:
    """Check what must hold, and keep it so until the end of the transaction."""
    first = commit.leases[0].after if commit.leases else None
    if commit.key is not None and first is not None:
        idempotency.insert(connection, commit.key, commit.key_of or first.id, commit.at)
    if commit.turn is not None:
        _check_plan(connection, commit.turn)
    for use in commit.uses:
        project_use.raise_use_version(connection, use)
    if commit.evacuates and first is not None:
        _claim_evacuation(connection, first.project_id)
    if commit.bounds.depends_on_project and commit.new:
        _check_bounds(connection, commit)
    if commit.generations:
        raise_generations(connection, commit.generations)


def _check_bounds(connection: Connection, commit: Commit) -> None:
    """Check the last of the new leases, which are alike, as if it was booked after those before it. UsageDenied."""
    lease, others = commit.new[0].after, len(commit.new) - 1
    more = len(lease.reservations) if commit.more is None else commit.more
    so_far, reservations = project_use.count_leases(connection, lease.project_id, commit.at)
    commit.bounds.check_project(so_far + others, reservations + more * others, more=more)


def _read_holdings(connection: Connection, commit: Commit) -> Mapping[str, Collection[tuple[str, int]]]:
    """Return which resources the reservations of the leases have before a commit, by lease; in one statement."""
    a = allocations.c
    ids = [write.after.id for write in commit.changed]
    query = sa.select(a.lease_id, a.reservation_id, a.resource_id).where(a.lease_id.in_(ids), a.released_at.is_(None))
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for lease_id, reservation_id, resource_id in connection.execute(query):
        found[lease_id].append((reservation_id, resource_id))
    return found


def _other_leases(commit: Commit) -> Mapping[str, str]:
    """Return the other lease of each one in an operation on two."""
    ids = [write.after.id for write in commit.leases]
    return dict(zip(ids, reversed(ids), strict=True)) if len(ids) == 2 else {}


def _write_plans(connection: Connection, commit: Commit) -> None:
    """Write what is planned for maintenance windows since the commit."""
    for to, origin in commit.plans_from.items():
        plans.take_plans(connection, to, origin, commit.at)
    if commit.maintained is not None:
        plans.write_plan(connection, *commit.maintained)


def _check_not_evacuating(connection: Connection, project_id: str) -> None:
    """Raise NotEnoughResources while room is being made for a lease of the project.

    One statement, which uses the index of a project's leases.
    """
    other = connection.execute(
        sa.select(leases.c.id)
        .join(events, events.c.lease_id == leases.c.id)
        .where(
            leases.c.project_id == project_id,
            leases.c.deleted_at.is_(None),
            leases.c.status.in_(_STATUSES),
            events.c.event_type == str(EventType.EVACUATE),
            events.c.status.in_(_OPEN),
        )
        .order_by(leases.c.id)
        .limit(1)
    ).scalar()
    if other is not None:
        raise NotEnoughResources(
            f"room is being made for lease {other} of the project; wait until it has started, or delete it"
        )


def _claim_evacuation(connection: Connection, project_id: str) -> None:
    """Check as ``_check_not_evacuating`` does, with nobody else in between until the transaction is over.

    NotEnoughResources. Clash if another transaction has just made the row that is locked here, for the first time.
    """
    project_use.lock_use(connection, project_id)
    _check_not_evacuating(connection, project_id)


def _check_plan(connection: Connection, version: int) -> None:
    """Check that no other plan was carried out, and keep it so until the end of the transaction. PlanSuperseded."""
    query = sa.select(waiting_list.c.version).where(waiting_list.c.id == PLAN_ROW).with_for_update()
    if connection.execute(query).scalar() != version:
        raise PlanSuperseded("another manager has planned the waiting list meanwhile")
