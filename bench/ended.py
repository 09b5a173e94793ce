# SPDX-License-Identifier: Apache-2.0
"""What a record of many ended leases costs those that are current: each request before and after, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from bench.ground import Ground, database
from bench.speed import count_and_time
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import allocations, events, leases, reservations

HOSTS, LEASES, ENDED, TURNS = 100, 1000, 1_000_000, 20

_IDS = frozenset({"id", "lease_id", "reservation_id"})
_TIMES = frozenset({"starts_at", "ends_at", "blocks_until", "time", "created_at"})
_ENDED: Mapping[str, Mapping[str, str]] = {
    "leases": {"status": "'TERMINATED'", "end_reason": "'ended'"},
    "reservations": {"status": "'deleted'"},
    "events": {"status": "'DONE'", "due_at": "NULL"},
    "allocations": {"released_at": "ends_at"},
}
"""What differs in the rows of a lease once it has ended."""
_PRESENT: Mapping[str, str] = {
    "leases": "status <> 'TERMINATED'",
    "reservations": "status <> 'deleted'",
    "events": "status <> 'DONE'",
    "allocations": "released_at IS NULL",
}
"""The rows of leases that have not."""

AT_ONCE = 25
"""Copies that are made by one statement: it is stopped after a minute."""


def measure(
    hosts: int = HOSTS, leases_now: int = LEASES, ended: int = ENDED, turns: int = TURNS
) -> Iterator[dict[str, object]]:
    """Yield the CPU of each request without ended leases and with them, in milliseconds, and the ratio of them."""
    with database("postgresql") as engine:
        ground = Ground(engine, hosts)
        ground.fill(leases_now, most=leases_now)
        before = count_and_time(ground, hosts, turns)
        add_ended(engine, ended // leases_now)
        after = count_and_time(ground, hosts, turns)
    for name, (_, seconds) in before.items():
        times = {"before_ms": round(1000 * seconds, 2), "after_ms": round(1000 * after[name][1], 2)}
        yield {
            "request": name,
            "leases": leases_now,
            "ended": ended,
            **times,
            "ratio": round(after[name][1] / seconds, 2),
        }


def add_ended(engine: Engine, copies: int) -> None:
    """Add so many ended leases for each that there is: the same rows, some ten years ago."""
    for first in range(1, copies + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, copies + 1))
        with engine.execution_options(**{WRITES: True}).begin() as connection:
            for table in (leases, reservations, events, allocations):
                connection.exec_driver_sql(_copying(table, numbers))
    with engine.execution_options(**{WRITES: True}, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


def _copying(table: sa.Table, numbers: range) -> str:
    columns = [
        column.name
        for column in table.columns
        # What the database derives or numbers.
        if column.computed is None and not (table is allocations and column.name == "id")
    ]
    chosen = ", ".join(_copied(table.name, name) for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    series = f"generate_series({numbers[0]}, {numbers[-1]})"
    present = f"(SELECT * FROM {table.name} WHERE {_PRESENT[table.name]})"
    return f"INSERT INTO {table.name} ({names}) SELECT {chosen} FROM {present} AS {table.name}, {series} AS copy"


def _copied(table: str, column: str) -> str:
    own = f'{table}."{column}"'
    if column in _ENDED[table]:
        return _ENDED[table][column].replace("ends_at", _past(f"{table}.ends_at"))
    if column in _IDS:
        return f"md5({own} || copy)::uuid::text"
    return _past(own) if column in _TIMES else own


def _past(time: str) -> str:
    return f"{time} - interval '10 years' - copy * interval '1 hour'"
