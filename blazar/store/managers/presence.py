# SPDX-License-Identifier: Apache-2.0
"""The store of running managers: a row for each, which its heartbeat writes, and the events that it has claimed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from blazar.model.base.clock import monotonic
from blazar.model.managers.presence import (
    MOST_MANAGERS,
    MOST_WORK,
    NUMBER_LENGTH,
    ConditionKind,
    KnownManager,
    ManagerCondition,
    ManagerFacts,
    ManagerState,
    ManagerWork,
    ThreadFacts,
    list_options,
    read_holder,
)
from blazar.store.sql.tables import events, managers
from blazar.store.sql.transactions import Transactions, atomic

_MILLISECOND = timedelta(milliseconds=1)
_SUFFIX = NUMBER_LENGTH + 1


def _select_work() -> sa.Select[Any]:
    """Return the query of the oldest claims of each manager, no more than are listed.

    A token is the id of its manager, a colon, and a number of constant length.
    """
    token, length = events.c.claimed_by, sa.func.length(events.c.claimed_by)
    holder = sa.case((length > _SUFFIX, sa.func.substr(token, 1, length - _SUFFIX)), else_="")
    turn = sa.func.row_number().over(partition_by=holder, order_by=(events.c.claimed_at, events.c.id))
    columns = (token, events.c.id, events.c.lease_id, events.c.event_type, events.c.claimed_at)
    claimed = sa.select(*columns, turn.label("turn")).where(token.is_not(None)).subquery().c
    return (
        sa.select(claimed.claimed_by, claimed.id, claimed.lease_id, claimed.event_type, claimed.claimed_at)
        .where(claimed.turn <= MOST_WORK)
        .order_by(claimed.turn)
    )


_WORK = _select_work()
_MANAGERS = sa.select(managers).order_by(managers.c.seen_at.desc(), managers.c.id).limit(MOST_MANAGERS)


class ManagerStore:
    """Reads and writes what managers tell of themselves."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def beat(self, facts: ManagerFacts, *, at: datetime) -> None:
        """Write what a manager tells of itself, and that it was seen; one statement, if its row is there.

        A row that is not there is added: at the start, and after it was dropped while the manager stood still.
        """
        row = _manager_row(facts, at)
        mine = managers.update().where(managers.c.id == facts.id).values(row)
        self._transactions.write(
            lambda connection: connection.execute(mine).rowcount or connection.execute(managers.insert().values(row))
        )

    @atomic
    def drop_unseen(self, connection: Connection, *, since: datetime) -> None:
        """Remove the rows of managers that have not been seen since an instant; one statement."""
        connection.execute(managers.delete().where(managers.c.seen_at < since))

    @atomic
    def remove(self, connection: Connection, manager_id: str) -> None:
        """Remove the row of a manager that has stopped."""
        connection.execute(managers.delete().where(managers.c.id == manager_id))

    def all(self, *, now: datetime, claim_ttl: timedelta) -> tuple[KnownManager, ...]:
        """Return all known managers, the longest running first, with their work; two statements."""
        with self._transactions.reading() as connection:
            found = [_read_manager(row, now - claim_ttl) for row in connection.execute(_MANAGERS)]
            work = _read_work(connection.execute(_WORK).all())
        known = sorted(found, key=lambda manager: (manager.facts.started_at, manager.id))
        options = list_options(known)
        return tuple(
            replace(
                manager, options_agree=options <= {manager.facts.options_hash}, work=tuple(work.get(manager.id, ()))
            )
            for manager in known
        )

    def measure_answer(self) -> float:
        """Return how many seconds the database takes to answer. StoreUnavailable."""
        begun_at = monotonic()
        self._transactions.scalar(sa.select(sa.literal(1)))
        return monotonic() - begun_at

    def find_holder(self, token: str, *, now: datetime, claim_ttl: timedelta) -> KnownManager | None:
        """Return the manager that made the token of a claim, without its work; None if it is not known any more.

        One statement.
        """
        query = sa.select(managers).where(managers.c.id == read_holder(token))
        return next((_read_manager(row, now - claim_ttl) for row in self._transactions.select(query)), None)


def _manager_row(facts: ManagerFacts, at: datetime) -> dict[str, Any]:
    return {
        "id": facts.id,
        "host": facts.host,
        "pid": facts.pid,
        "version": facts.version,
        "rpc_version": facts.rpc_version,
        "started_at": facts.started_at,
        "seen_at": at,
        "state": str(facts.state),
        "clock_offset_ms": facts.clock_offset // _MILLISECOND,
        "info": {
            "regions": list(facts.regions),
            "options_hash": facts.options_hash,
            "threads": [_thread_json(thread) for thread in facts.threads],
            "conditions": [_condition_json(condition) for condition in facts.conditions],
        },
    }


def _condition_json(condition: ManagerCondition) -> dict[str, Any]:
    return {
        "kind": str(condition.kind),
        "subject": condition.subject,
        "since": condition.since.isoformat(),
        "error": condition.error,
        "region": condition.region,
    }


def _thread_json(thread: ThreadFacts) -> dict[str, Any]:
    return {
        "name": thread.name,
        "last_round_at": _text(thread.last_round_at),
        "failing_since": _text(thread.failing_since),
        "error": thread.error,
    }


def _read_manager(row: Row[*tuple[Any, ...]], up_since: datetime) -> KnownManager:
    """Return a manager without its work; one is up if it was seen after ``up_since``."""
    info: Mapping[str, Any] = row.info
    facts = ManagerFacts(
        id=row.id,
        host=row.host,
        pid=row.pid,
        version=row.version,
        started_at=row.started_at,
        rpc_version=row.rpc_version,
        state=ManagerState(row.state),
        clock_offset=row.clock_offset_ms * _MILLISECOND,
        regions=tuple(info.get("regions", ())),
        options_hash=info.get("options_hash", ""),
        threads=tuple(_read_thread(thread) for thread in info.get("threads", ())),
        conditions=tuple(_read_conditions(info.get("conditions", ()))),
    )
    return KnownManager(facts, row.seen_at, up=row.seen_at > up_since)


def _read_thread(thread: Mapping[str, Any]) -> ThreadFacts:
    return ThreadFacts(
        thread["name"], _instant(thread["last_round_at"]), _instant(thread["failing_since"]), thread["error"]
    )


def _read_conditions(told: Sequence[Mapping[str, Any]]) -> Iterator[ManagerCondition]:
    """Yield what a manager lacks; kinds that only one of a later version knows are left out."""
    known = set(map(str, ConditionKind))
    for one in told:
        if one["kind"] in known:
            since = datetime.fromisoformat(one["since"])
            region = one.get("region", "")
            yield ManagerCondition(ConditionKind(one["kind"]), one["subject"], since, one["error"], region)


def _read_work(rows: Sequence[Row[*tuple[Any, ...]]]) -> Mapping[str, list[ManagerWork]]:
    """Return the claimed events of each manager."""
    found: dict[str, list[ManagerWork]] = defaultdict(list)
    for row in rows:
        found[read_holder(row.claimed_by)].append(ManagerWork(row.id, row.lease_id, row.event_type, row.claimed_at))
    return found


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
