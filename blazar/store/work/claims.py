# SPDX-License-Identifier: Apache-2.0
"""The one scheme of claimed work: rows that are due at an instant, and who works on them meanwhile.

A row is due from ``due_at`` on. Who works on it writes a token to ``claimed_by``, and the end of the claim to
``due_at``: so a claim that has expired is what is due, and is taken over as such. Writes under a claim name its token,
and write nothing once another manager has taken the row over. Events are claimed and released with their leases
(``lease_writes``), whose revision stands in for the token.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost, StaleCalendar
from blazar.model.base.values import dataclass
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import (
    accounts,
    events,
    host_power,
    maintenance_windows,
    outbox,
    series,
    subscriptions,
    turns,
)
from blazar.store.sql.transactions import Transactions, atomic

Id = str | int


def _claim_error(id_: Id) -> BlazarError:
    return ClaimLost(f"another manager works on {id_}")


@dataclass(frozen=True, slots=True)
class ClaimedTable:
    """A table whose rows are claimed, by their id or primary key; ``lost`` returns the error for one that is not."""

    table: sa.Table
    lost: Callable[[Any], BlazarError] = _claim_error

    @property
    def key(self) -> sa.ColumnElement[Any]:
        """Return the column that names a row: the id, also where rows are in the order of another key."""
        return self.table.c.id if "id" in self.table.c else next(iter(self.table.primary_key))

    def claim(
        self, connection: Connection, id_: Id, token: str, *due: sa.ColumnElement[bool], until: datetime, **values: Any
    ) -> bool:
        """Claim a row that is due, by these conditions, until an instant; return whether nobody was faster."""
        change = self.table.update().where(self.key == id_, *due)
        return bool(connection.execute(change.values(claimed_by=token, due_at=until, **values)).rowcount)

    def claim_all(
        self, connection: Connection, ids: Collection[str], token: str, *due: sa.ColumnElement[bool], until: datetime
    ) -> bool:
        """Claim those of some rows that are due, in one statement; return whether there are any."""
        change = self.table.update().where(self.table.c.id.in_(sorted(ids)), *due)
        return bool(connection.execute(change.values(claimed_by=token, due_at=until)).rowcount)

    def lock_claimed(self, connection: Connection, ids: Collection[str], token: str) -> frozenset[str]:
        """Lock those of some rows that are claimed with a token still, in the order of their ids; return which."""
        c = self.table.c
        mine = sa.select(c.id).where(c.id.in_(sorted(ids)), c.claimed_by == token).order_by(c.id).with_for_update()
        return frozenset(connection.execute(mine).scalars())

    def write_claimed(
        self, connection: Connection, id_: Id, token: str, *also: sa.ColumnElement[bool], **values: Any
    ) -> None:
        """Write to a row that is claimed with a token, and lock it; the error ``lost`` if it is not any more."""
        mine = self.table.update().where(self.key == id_, self.table.c.claimed_by == token, *also)
        if not connection.execute(mine.values(**{"claimed_by": token, **values})).rowcount:
            raise self.lost(id_)

    def release(self, connection: Connection, id_: Id, token: str, *, due_at: Any, **values: Any) -> None:
        """End a claim, and write when there is work next; the error ``lost`` if it is another's."""
        self.write_claimed(connection, id_, token, **{"claimed_by": None, "due_at": due_at, **values})

    def select_next_due(self, *also: sa.ColumnElement[bool]) -> sa.Select[datetime | None]:
        """Return the query of when the next row is due, or its claim expires; of one without row: None."""
        due_at = self.table.c.due_at
        return sa.select(sa.func.min(due_at, type_=due_at.type)).where(due_at.is_not(None), *also)


def _series_error(id_: str) -> BlazarError:
    return ClaimLost(f"series {id_} was deleted, or another manager works on it")


def _window_error(id_: str) -> BlazarError:
    return StaleCalendar(f"the maintenance window {id_} was changed, or is worked on by another manager")


def _subscription_error(id_: str) -> BlazarError:
    return ClaimLost(f"subscription {id_} was changed, or another manager works on it")


EVENTS = ClaimedTable(events)
SERIES = ClaimedTable(series, _series_error)
WINDOWS = ClaimedTable(maintenance_windows, _window_error)
MESSAGES = ClaimedTable(outbox)
SUBSCRIPTIONS = ClaimedTable(subscriptions, _subscription_error)
ACCOUNTS = ClaimedTable(accounts)
TURNS = ClaimedTable(turns)
HOST_POWER = ClaimedTable(host_power)

TOLD = "active"
"""The state of subscriptions in which entries are told."""

RENEWED = (EVENTS, SERIES, WINDOWS, SUBSCRIPTIONS, TURNS, HOST_POWER)
"""What the heartbeat renews, most frequent first; what is claimed besides is done before its claim ends."""


class ClaimStore:
    """Renews claims, and drops those of managers that are gone."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def renew_claims(self, tokens: Collection[str], *, now: datetime, until: datetime) -> frozenset[str]:
        """Renew the claims with these tokens that have not expired; return the tokens of those.

        One statement if all are on events.
        """
        renewed: set[str] = set()
        for claimed in RENEWED:
            for part in chunks(sorted(set(tokens) - renewed)):
                renewed |= self._transactions.write(partial(_renew, claimed.table, part, now, until))
        return frozenset(renewed)

    @atomic
    def drop_claims(self, connection: Connection, *, at: datetime) -> None:
        """Make every row with a claim due at ``at``."""
        for claimed in (*RENEWED, MESSAGES, ACCOUNTS):
            c = claimed.table.c
            connection.execute(claimed.table.update().where(c.claimed_by.is_not(None), c.due_at > at).values(due_at=at))


def _renew(
    table: sa.Table, tokens: Collection[str], now: datetime, until: datetime, connection: Connection
) -> set[str]:
    valid = (table.c.claimed_by.in_(tokens), table.c.due_at > now)
    written = connection.execute(table.update().where(*valid).values(due_at=until)).rowcount
    if written == len(tokens):
        return set(tokens)
    if not written:
        return set()
    return set(connection.execute(sa.select(table.c.claimed_by).where(*valid)).scalars())


class TurnStore:
    """Keeps whose turn it is to do a work that one manager does at a time: the work named ``turn``."""

    turn: ClassVar[str]

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def next_turn(self) -> datetime | None:
        """Return when the next turn is due; None before the first."""
        found: datetime | None = self._transactions.scalar(TURNS.select_next_due(turns.c.id == self.turn))
        return found

    def claim_turn(self, token: str, *, now: datetime, until: datetime) -> bool:
        """Claim the turn if it is due; return whether no other manager was faster. Two statements, once three."""

        def claim(connection: Connection) -> bool:
            known = connection.execute(sa.select(turns.c.id).where(turns.c.id == self.turn)).first()
            if known is None:
                connection.execute(turns.insert().values(id=self.turn, due_at=now))
            return TURNS.claim(connection, self.turn, token, turns.c.due_at <= now, until=until)

        # Two may begin the first turn of all at once.
        return self._transactions.write_beside_others(claim)

    @atomic
    def recall_turn(self, connection: Connection, *, now: datetime, latest: datetime) -> None:
        """Have the turn be due now if nobody has it and it is due after ``latest``; one statement.

        One that is claimed is left to its owner: the heartbeat corrects it.
        """
        late = (turns.c.id == self.turn, turns.c.due_at > latest, turns.c.claimed_by.is_(None))
        connection.execute(turns.update().where(*late).values(due_at=now))

    @atomic
    def release_turn(self, connection: Connection, token: str, *, due_at: datetime) -> None:
        """End the turn, and say when the next one is; ClaimLost."""
        TURNS.release(connection, self.turn, token, due_at=due_at)


def wake_subscriptions(connection: Connection, projects: Collection[str | None], newest: int, *, now: datetime) -> None:
    """Make the subscriptions due that entries up to ``newest`` may concern, of these projects and of operators.

    It is written in the transaction that gives the entries their places, so that none is forgotten in a crash. Where
    somebody is at work, or a receiver is left alone for a while, only the place is noted.

    One statement for each few thousand projects; none writes anything if nobody has subscribed.
    """
    at = sa.literal(to_second(now), type_=subscriptions.c.due_at.type)
    idle = sa.and_(
        subscriptions.c.state == TOLD, subscriptions.c.claimed_by.is_(None), subscriptions.c.due_at.is_(None)
    )
    values = {"newest": newest, "due_at": sa.case((idle, at), else_=subscriptions.c.due_at)}
    named = sorted(project for project in projects if project is not None)
    for number, part in enumerate(chunks(named) if named else [()]):
        concerned: sa.ColumnElement[bool] = subscriptions.c.project_id.in_(part) if part else sa.false()
        if number == 0:
            concerned = sa.or_(subscriptions.c.project_id.is_(None), concerned)
        connection.execute(subscriptions.update().where(concerned).values(**values))
