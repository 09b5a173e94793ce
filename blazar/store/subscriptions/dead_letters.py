# SPDX-License-Identifier: Apache-2.0
"""The store of messages that receivers have refused for good, by subscription: operators see and settle them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.journal.entries import Verb
from blazar.model.problems.troubles import DeadLetters
from blazar.model.subscriptions.details import SubscriptionState
from blazar.model.subscriptions.entries import tell_settling
from blazar.store.journal.rows import write_entry
from blazar.store.sql.tables import delivery_failures, subscriptions
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.subscriptions.subscriptions import read_subscription
from blazar.store.subscriptions.work import KEPT

MOST = 1000
"""Subscriptions that are looked at: those with the oldest messages."""

_S, _F = subscriptions.c, delivery_failures.c


class DeadLetterStore:
    """Reads messages that were refused for good, has them sent again, and forgets them."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def read(self, now: datetime, subscription_id: str | None = None) -> tuple[DeadLetters, ...]:
        """Return what each receiver has refused, or one, the oldest first; one statement."""
        where = [_F.at > now - KEPT]
        if subscription_id is not None:
            where.append(_F.subscription_id == subscription_id)
        first, last = sa.func.min(_F.position), sa.func.max(_F.position)
        found = (
            sa.select(_F.subscription_id, first.label("first"), last.label("last"), sa.func.count().label("number"))
            .where(*where)
            .group_by(_F.subscription_id)
            .subquery()
            .c
        )
        joined = sa.and_(_F.subscription_id == found.subscription_id, _F.position == found.first)
        columns = (_S.id, _S.project_id, _S.user_id, _S.state, found.first, found.last, found.number)
        query = (
            sa.select(*columns, _F.type, _F.subject, _F.reason, _F.at)
            .join_from(subscriptions, found.subscription_id.table, _S.id == found.subscription_id)
            .join(delivery_failures, joined)
            .order_by(_F.at, _S.id)
            .limit(MOST)
        )
        return tuple(DeadLetters(*row) for row in self._transactions.select(query))

    @atomic
    def retry(self, connection: Connection, letters: DeadLetters, *, now: datetime) -> bool:
        """Have all be told again from the first message on; tell whether any was still there. Four statements.

        Who is sending something for the subscription stops.
        """
        place = letters.first - 1
        if not _settle(connection, letters, Verb.RETRIED, place, now=now):
            return False
        active = _S.state == str(SubscriptionState.ACTIVE)
        values: dict[str, Any] = {
            "position": sa.case((_S.position > place, place), else_=_S.position),
            "due_at": sa.case((active, sa.literal(now, type_=_S.due_at.type)), else_=_S.due_at),
            "claimed_by": None,
            "attempts": 0,
            "refusals": {},
        }
        connection.execute(subscriptions.update().where(_S.id == letters.subscription_id).values(**values))
        return True

    @atomic
    def drop(self, connection: Connection, letters: DeadLetters, *, now: datetime) -> bool:
        """Forget the messages; tell whether any was still there. Three statements."""
        return _settle(connection, letters, Verb.GIVEN_UP, None, now=now)


def _settle(connection: Connection, letters: DeadLetters, verb: Verb, place: int | None, *, now: datetime) -> bool:
    """Delete the messages, and write down who did that and why; those that were refused since they were read stay.

    ``place`` is from where on the receiver is told again, if it has not been told less.
    """
    mine = (_F.subscription_id == letters.subscription_id, _F.position <= letters.last)
    gone = connection.execute(delivery_failures.delete().where(*mine)).rowcount
    if not gone:
        return False
    left = read_subscription(connection, letters.subscription_id)
    position = left.position if place is None else min(left.position, place)
    here = current()
    before = replace(left, dead=left.dead + gone)
    told = tell_settling(before, verb, dead=left.dead, position=position, at=now, by=here.actor, why=here.why)
    write_entry(connection, told)
    return True
