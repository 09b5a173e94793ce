# SPDX-License-Identifier: Apache-2.0
"""The store of subscriptions: what their owners do with them."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import InvalidInput, PreconditionFailed, check_revision
from blazar.model.base.paging import Page
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.subscriptions.details import (
    LIVE,
    Channel,
    DeliveryFailure,
    Digest,
    FailurePage,
    Subscription,
    SubscriptionPage,
    SubscriptionQuestion,
    SubscriptionState,
    unknown_subscription,
)
from blazar.model.subscriptions.entries import tell_rewind, tell_subscription, tell_unsubscribing
from blazar.store.calendar import project_use
from blazar.store.journal.numbering import NUMBERING_ROW
from blazar.store.journal.own_subscriptions import subscription_row
from blazar.store.journal.rows import write_entry
from blazar.store.sql.paging import read_page
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import delivery_failures, journal, journal_numbering, subscriptions
from blazar.store.sql.transactions import Clash, Transactions, atomic
from blazar.store.work import idempotency

_S, _F, _J, _N = subscriptions.c, delivery_failures.c, journal.c, journal_numbering.c
_ORDER = (_S.created_at, _S.id)
_DEAD = (
    sa.select(sa.func.count())
    .select_from(delivery_failures)
    .where(delivery_failures.c.subscription_id == _S.id)
    .scalar_subquery()
    .label("dead")
)
_ALL = sa.select(subscriptions, _DEAD)
_CHANGED = "it has changed meanwhile; read it, and send its present tag"


class SubscriptionStore:
    """Reads, adds, changes and removes subscriptions."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def page(self, question: SubscriptionQuestion) -> SubscriptionPage:
        """Return a page, oldest first or newest first; three statements at most. InvalidInput for an unknown marker."""
        where = [] if question.project_id is None else [_S.project_id == question.project_id]
        if question.states:
            where.append(_S.state.in_(list(map(str, question.states))))
        with self._transactions.reading() as connection:
            found = read_page(connection, question.page, _ALL, _ORDER, where)
        return SubscriptionPage(tuple(map(parse_subscription, found.rows)), found.last, found.count)

    def one(self, subscription_id: str) -> Subscription:
        """Return a subscription; NotFound. One statement."""
        with self._transactions.reading() as connection:
            return read_subscription(connection, subscription_id)

    def add(self, new: Subscription, *, key: IdempotencyKey | None, due_at: datetime, most: int) -> None:
        """Add a subscription, to which a test is sent; four statements.

        KeyTaken if another one has the key; InvalidInput if the project has ``most`` already.
        """
        try:
            self._add(new, key=key, due_at=due_at, most=most)
        except Clash:
            # The project had no row to lock, and another request has just made it.
            self._add(new, key=key, due_at=due_at, most=most)

    @atomic
    def _add(
        self, connection: Connection, new: Subscription, *, key: IdempotencyKey | None, due_at: datetime, most: int
    ) -> None:
        # Of two requests at a time the later one has to see what the other has added.
        project_use.lock_use(connection, new.project_id or "")
        if key is not None:
            idempotency.insert(connection, key, new.id, new.created_at)
        of_project = _S.project_id.is_(None) if new.project_id is None else _S.project_id == new.project_id
        count = sa.select(sa.func.count()).select_from(subscriptions).where(of_project)
        if connection.execute(count).scalar_one() >= most:
            raise InvalidInput(
                f"a project has at most {most} subscriptions; delete one that is not needed",
                code="out_of_bounds",
                data={"maximum": most},
            )
        insert_subscription(connection, new, due_at=due_at)
        write_entry(connection, tell_subscription(None, new, at=new.created_at, by=current().actor))

    @atomic
    def add_own(self, connection: Connection, new: Subscription) -> None:
        """Add the subscription of a user to their own leases; Clash if there is one."""
        insert_subscription(connection, new, due_at=new.created_at)

    @atomic
    def change(self, connection: Connection, before: Subscription, after: Subscription, *, now: datetime) -> None:
        """Write a changed subscription; who is sending something for it stops, and begins again. PreconditionFailed."""
        live = after.state in LIVE
        values = {
            **subscription_row(after),
            "due_at": now if live else None,
            "claimed_by": None,
            "testing": live and not after.confirmed,
            "attempts": 0,
            "refusals": {},
        }
        for name in ("position", "newest", "dropped"):
            # They go on while somebody reads and changes the rest.
            values.pop(name)
        change = subscriptions.update().where(_S.id == before.id, _S.revision == before.revision)
        if not connection.execute(change.values(**values)).rowcount:
            raise PreconditionFailed(_CHANGED, data={"revision": read_subscription(connection, before.id).revision})
        write_entry(connection, tell_subscription(before, after, at=now, by=current().actor))

    @atomic
    def request_test(self, connection: Connection, subscription_id: str, *, now: datetime) -> None:
        """Have a test sent at once, whatever the state; who is sending something stops. NotFound."""
        values = {"testing": True, "due_at": now, "claimed_by": None}
        if not connection.execute(subscriptions.update().where(_S.id == subscription_id).values(**values)).rowcount:
            raise unknown_subscription(subscription_id)

    @atomic
    def rewind(self, connection: Connection, subscription_id: str, position: int, *, now: datetime) -> None:
        """Have all be told again that comes after a place; who is sending something stops. NotFound."""
        before = read_subscription(connection, subscription_id)
        active = _S.state == str(SubscriptionState.ACTIVE)
        values = {
            "position": position,
            "due_at": sa.case((active, sa.literal(now, type_=_S.due_at.type)), else_=_S.due_at),
            "claimed_by": None,
            "attempts": 0,
            "refusals": {},
        }
        if not connection.execute(subscriptions.update().where(_S.id == subscription_id).values(**values)).rowcount:
            raise unknown_subscription(subscription_id)
        write_entry(connection, tell_rewind(before, position, at=now, by=current().actor))

    def find_position(self, since: datetime, project_id: str | None, user_id: str | None = None) -> int:
        """Return the place before the first entry of an instant or later, of a project or of all; one statement.

        With ``user_id`` of what is that user's, in whatever project.

        Entries get their places in another order than their instants, so that some before it may be older. Without such
        an entry it is the last place.
        """
        where = [_J.at >= since, _J.position.is_not(None)]
        if user_id is not None:
            where.append(_J.user_id == user_id)
        elif project_id is not None:
            where.append(_J.project_id == project_id)
        first = sa.select(sa.func.min(_J.position) - 1).where(*where).scalar_subquery()
        last = sa.select(_N.position).where(_N.id == NUMBERING_ROW).scalar_subquery()
        found: int = self._transactions.scalar(sa.select(sa.func.coalesce(first, last, 0)))
        return found

    def failures(self, subscription_id: str, page: Page) -> FailurePage:
        """Return a page of the messages that were refused for good; InvalidInput for an unknown marker."""
        where = [_F.subscription_id == subscription_id]
        with self._transactions.reading() as connection:
            found = read_page(connection, page, sa.select(delivery_failures), (_F.at, _F.id), where)
        items = tuple(
            DeliveryFailure(row.id, row.position, row.type, row.subject, row.reason, row.at) for row in found.rows
        )
        return FailurePage(items, found.last, found.count)

    @atomic
    def remove(
        self, connection: Connection, subscription_id: str, revisions: tuple[int, ...] | None, *, now: datetime
    ) -> None:
        """Remove a subscription with what it has; NotFound, PreconditionFailed."""
        before = read_subscription(connection, subscription_id)
        check_revision(before.revision, revisions, _CHANGED)
        failures = delivery_failures.delete().where(delivery_failures.c.subscription_id == subscription_id)
        connection.execute(failures)
        if not connection.execute(subscriptions.delete().where(_S.id == subscription_id)).rowcount:
            # Another request was faster, since it was read.
            raise unknown_subscription(subscription_id)
        write_entry(connection, tell_unsubscribing(before, at=now, by=current().actor))


def read_subscription(connection: Connection, subscription_id: str) -> Subscription:
    """Return a subscription; NotFound. One statement."""
    row = connection.execute(_ALL.where(_S.id == subscription_id)).one_or_none()
    if row is None:
        raise unknown_subscription(subscription_id)
    return parse_subscription(row)


def insert_subscription(connection: Connection, new: Subscription, *, due_at: datetime) -> None:
    """Insert a subscription, to which a test is sent if nothing has confirmed it; one statement."""
    row = {**subscription_row(new), "due_at": None if new.confirmed else due_at}
    connection.execute(subscriptions.insert(), [row])


def parse_subscription(row: AnyRow) -> Subscription:
    """Return the subscription of a row of the table with the number of its dead letters."""
    return Subscription(
        id=row.id,
        project_id=row.project_id,
        user_id=row.user_id,
        channel=Channel(row.channel),
        url=row.url or None,
        events=tuple(row.events),
        created_at=row.created_at,
        lease_id=row.lease_id,
        batch=bool(row.batch),
        state=SubscriptionState(row.state),
        reason=row.reason,
        confirmed=bool(row.confirmed),
        position=row.position,
        newest=row.newest,
        generation=row.generation,
        secret_changed_at=row.secret_changed_at,
        last_delivered_at=row.last_delivered_at,
        failing_since=row.failing_since,
        dead=row.dead,
        revision=row.revision,
        updated_at=row.updated_at,
        own=bool(row.own),
        digest=Digest(row.digest),
        time_zone=row.time_zone,
        dropped=row.dropped,
    )
