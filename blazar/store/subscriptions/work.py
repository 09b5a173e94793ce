# SPDX-License-Identifier: Apache-2.0
"""The work on subscriptions: who sends something has claimed the subscription in its row.

An entry that is numbered makes the subscriptions due that it may concern, in the same transaction
(``store.work.claims``), unless somebody works on them: then it is noted as the newest, and who lets go looks at that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass
from blazar.model.subscriptions.details import LIVE, Channel, SendingLane, Subscription, SubscriptionState
from blazar.model.subscriptions.entries import tell_disabling
from blazar.model.subscriptions.rounds import Decision, Undelivered
from blazar.store.journal.rows import write_entry
from blazar.store.sql.tables import delivery_failures, subscriptions
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.subscriptions.subscriptions import read_subscription
from blazar.store.work.claims import SUBSCRIPTIONS, TOLD

KEPT = timedelta(days=30)
MOST_KEPT = 1000
"""How long messages that were refused for good are kept, and how many of a subscription."""

_S, _F = subscriptions.c, delivery_failures.c
_SENT_TO = sa.or_(_S.testing.is_(True), _S.state == TOLD)
"""Whether something may be sent: a test at any time, and what has happened to active receivers only."""
_FAILING = sa.or_(_S.attempts > 0, _S.testing.is_(True))
_BY_MAIL = _S.channel == str(Channel.MAIL)
_IN_LANES = {
    SendingLane.WELL: sa.and_(~_BY_MAIL, ~_FAILING),
    SendingLane.FAILING: sa.and_(~_BY_MAIL, _FAILING),
    SendingLane.MAIL: _BY_MAIL,
}
_NEXT_DUE = SUBSCRIPTIONS.select_next_due(_SENT_TO)


@dataclass(frozen=True, slots=True)
class DueSubscription:
    """A subscription with something to send; ``url`` is empty of one by mail."""

    id: str
    project_id: str | None
    url: str
    due_at: datetime
    lane: SendingLane


@dataclass(frozen=True, slots=True)
class ClaimedSubscription:
    """A claimed subscription: whether a test is to be sent first, and how its receiver has stood so far."""

    subscription: Subscription
    testing: bool
    attempts: int
    refusals: Mapping[str, int]


class SubscriptionWorkStore:
    """Reads what is due of subscriptions, and writes what was sent."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def find_due(
        self, now: datetime, limit: int, lane: SendingLane, *, after: DueSubscription | None = None
    ) -> tuple[DueSubscription, ...]:
        """Return what is due of a lane, the longest waiting first, or what follows one of these; one statement."""
        query = sa.select(_S.id, _S.project_id, _S.url, _S.due_at).where(_S.due_at <= now, _SENT_TO, _IN_LANES[lane])
        if after is not None:
            same = sa.and_(_S.due_at == after.due_at, _S.id > after.id)
            query = query.where(sa.or_(_S.due_at > after.due_at, same))
        with self._transactions.reading() as connection:
            rows = connection.execute(query.order_by(_S.due_at, _S.id).limit(limit)).all()
        return tuple(DueSubscription(row.id, row.project_id, row.url, row.due_at, lane) for row in rows)

    def next_due(self) -> datetime | None:
        """Return when there is something to send next, which may be in the past; one statement."""
        found: datetime | None = self._transactions.scalar(_NEXT_DUE)
        return found

    @atomic
    def claim(
        self, connection: Connection, subscription_id: str, token: str, *, now: datetime, until: datetime
    ) -> ClaimedSubscription | None:
        """Claim a subscription with something to send; None if another manager was faster, or it is gone."""
        if not SUBSCRIPTIONS.claim(connection, subscription_id, token, _S.due_at <= now, _SENT_TO, until=until):
            return None
        row = connection.execute(sa.select(_S.testing, _S.attempts, _S.refusals).where(_S.id == subscription_id)).one()
        found = read_subscription(connection, subscription_id)
        return ClaimedSubscription(found, bool(row.testing), row.attempts, row.refusals)

    @atomic
    def finish(
        self, connection: Connection, subscription_id: str, token: str, decision: Decision, *, now: datetime
    ) -> None:
        """Let go of a subscription after a round, in one statement, and five more with dead letters. ClaimLost.

        That it is disabled is told by an entry of the journal, and so to its user.
        """
        standing = decision.standing
        values: dict[str, Any] = {
            "position": standing.position,
            "attempts": standing.attempts,
            "refusals": dict(standing.refusals),
            "failing_since": standing.failing_since,
            "reason": decision.reason,
            "testing": False,
        }
        if decision.delivered:
            values["last_delivered_at"] = now
        if decision.disabled:
            values["state"] = str(SubscriptionState.DISABLED)
        due_at = _due_after(decision, now)
        _tell_disabling(connection, subscription_id, decision, now)
        SUBSCRIPTIONS.release(connection, subscription_id, token, due_at=due_at, **values)
        if decision.dead:
            _insert_failures(connection, subscription_id, decision.dead, now)

    @atomic
    def finish_test(
        self, connection: Connection, subscription_id: str, token: str, decision: Decision, *, now: datetime
    ) -> None:
        """Let go of a subscription whose receiver was sent a test: it is confirmed if that was accepted. ClaimLost.

        One that is paused or disabled gets that test, once, and nothing else.
        """
        accepted = decision.delivered
        standing = decision.standing
        live = _S.state.in_(list(map(str, LIVE)))
        state = sa.case((_S.state == str(SubscriptionState.UNCONFIRMED), str(SubscriptionState.ACTIVE)), else_=_S.state)
        values: dict[str, Any] = {
            "attempts": standing.attempts,
            "failing_since": standing.failing_since,
            "reason": decision.reason,
            "testing": sa.and_(live, sa.literal(not accepted and not decision.disabled)),
        }
        if accepted:
            values["state"] = state
            values |= {"confirmed": True, "last_delivered_at": now}
        if decision.disabled:
            values["state"] = str(SubscriptionState.DISABLED)
        due_at = _due_after(decision, now, live)
        _tell_disabling(connection, subscription_id, decision, now)
        SUBSCRIPTIONS.release(connection, subscription_id, token, due_at=due_at, **values)


def _tell_disabling(connection: Connection, subscription_id: str, decision: Decision, now: datetime) -> None:
    """Tell that nothing is sent to a receiver any more, if that is so; it is undone with all if the claim is lost."""
    if decision.disabled:
        before = read_subscription(connection, subscription_id)
        if before.state is not SubscriptionState.DISABLED:
            write_entry(connection, tell_disabling(before, decision.reason, at=now))


def _due_after(
    decision: Decision, now: datetime, *where: sa.ColumnElement[bool]
) -> sa.ColumnElement[datetime | None] | None:
    """Return when there is something to send next: at once, if entries have come meanwhile.

    Never, where one of the conditions does not hold.
    """
    if decision.disabled:
        return None
    if decision.pause is None:
        where = (*where, _S.newest > decision.standing.position)
    at = sa.literal(now + (decision.pause or timedelta(0)), type_=_S.due_at.type)
    return sa.case((sa.and_(*where), at), else_=sa.null()) if where else at


def _insert_failures(connection: Connection, subscription_id: str, dead: Sequence[Undelivered], now: datetime) -> None:
    """Keep messages that are given up, each once, and drop those that are old, or too many; five statements."""
    ids = [message.id for message in dead]
    connection.execute(delivery_failures.delete().where(_F.subscription_id == subscription_id, _F.id.in_(ids)))
    connection.execute(delivery_failures.delete().where(_F.subscription_id == subscription_id, _F.at < now - KEPT))
    rows = [
        {
            "subscription_id": subscription_id,
            "id": message.id,
            "position": message.position,
            "type": message.type,
            "subject": message.subject,
            "reason": message.reason,
            "at": now,
        }
        for message in dead
    ]
    connection.execute(delivery_failures.insert(), rows)
    mine = _F.subscription_id == subscription_id
    order = (_F.at.desc(), _F.position.desc())
    newest = sa.select(_F.at, _F.position).where(mine).order_by(*order).offset(MOST_KEPT).limit(1)
    first = connection.execute(newest).one_or_none()
    if first is not None:
        older = sa.or_(_F.at < first.at, sa.and_(_F.at == first.at, _F.position <= first.position))
        gone = connection.execute(delivery_failures.delete().where(mine, older)).rowcount
        count = subscriptions.update().where(_S.id == subscription_id).values(dropped=_S.dropped + gone)
        connection.execute(count)
