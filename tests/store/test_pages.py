# SPDX-License-Identifier: Apache-2.0
"""A page of leases is one range of an index in every order, of a project and of all: as the databases explain it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine

from blazar.model.base.paging import Page, Position
from blazar.model.leases.details import LeaseFilter, LeaseState
from blazar.store.leases.pages import SORT_KEYS
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import events, leases
from blazar.store.store import Store

NOW = datetime(2030, 4, 1, tzinfo=UTC)
COUNT = 400
PLACES = {"name": "lease 00200", "status": "PENDING"}


def fill(engine: Engine) -> None:
    """Write leases, every fourth over, with many of one instant; statistics of them are known.

    One of the two projects has few of them, so that an index of all is not as good.
    """
    rows = [
        {"id": str(uuid.UUID(int=number * 7919 % COUNT)), "name": f"lease {number // 3:05}", "user_id": "u"}
        | {
            "project_id": "p" if number % 80 in (3, 4, 5, 6) else "q",
            "starts_at": NOW + timedelta(hours=number // 5),
            "degraded": False,
        }
        | {"ends_at": NOW + timedelta(hours=number // 5 + 9), "revision": 0, "created_at": NOW, "series_changed": False}
        | {"status": ("PENDING", "ACTIVE", "ERROR", "TERMINATED")[number % 4], "kind": "scheduled"}
        | {"updated_at": NOW + timedelta(hours=number) if number % 3 else None}
        | {"deleted_at": NOW if number % 8 == 7 else None}
        | {"release_at": NOW + timedelta(minutes=number) if number % 5 == 0 else None, "usage": "unused"}
        for number in range(COUNT)
    ]
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(leases.insert(), rows)
    with engine.execution_options(**{WRITES: True}, isolation_level="AUTOCOMMIT").connect() as connection:
        tables = (leases.name, events.name)
        for table in tables:
            connection.exec_driver_sql(f"ANALYZE {'TABLE ' if engine.dialect.name == 'mysql' else ''}{table}").close()


def plans(engine: Engine, wanted: LeaseFilter, page: Page) -> str:
    """Return how the database reads the leases of a page."""
    asked: list[tuple[str, Any]] = []

    def note(connection, cursor, statement, parameters, context, many):
        if "FROM leases" in statement:
            asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    Store(engine).lease_pages.page(wanted, page, now=NOW)
    event.remove(engine, "before_cursor_execute", note)
    statement, parameters = asked[0]
    explain = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}.get(engine.dialect.name, "EXPLAIN FORMAT=JSON")
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            # So few leases are read as a whole and sorted; many are not.
            for other in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
                connection.exec_driver_sql(f"SET LOCAL enable_{other} = off")
        rows = connection.exec_driver_sql(f"{explain} {statement}", parameters)
        # A row as text leaves out the middle of a long plan.
        return "\n".join(" ".join(map(str, row)) for row in rows)


SORTS = {"sqlite": "USE TEMP B-TREE", "postgresql": "Sort", "mysql": "filesort"}


@pytest.mark.parametrize("key", SORT_KEYS)
def test_a_page_is_one_range_of_an_index(engine, key):
    fill(engine)
    value = PLACES.get(key) or (NOW + timedelta(hours=20)).isoformat()
    column = SORT_KEYS[key].key
    for project, index in (
        (None, f"ix_leases_is_over_{column}_id"),
        ("p", f"ix_leases_project_id_is_over_{column}_id"),
    ):
        for state in (LeaseState.CURRENT, LeaseState.PAST):
            for after, down in ((None, False), (Position(value, str(uuid.UUID(int=9))), True)):
                plan = plans(engine, LeaseFilter(state, project), Page(5, key, down, after))
                assert index in plan, plan
                assert SORTS[engine.dialect.name] not in plan, plan


@pytest.mark.parametrize("state", LeaseState)
def test_pages_have_all_leases_in_every_order(engine, state):
    fill(engine)
    store = Store(engine)
    with engine.connect() as connection:
        over = sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == "TERMINATED")
        where = {LeaseState.CURRENT: ~over, LeaseState.PAST: over, LeaseState.ALL: sa.true()}[state]
        expected = set(connection.execute(sa.select(leases.c.id).where(where)).scalars())
    for key in SORT_KEYS:
        for down in (False, True):
            found, place = [], None
            while True:
                page = store.lease_pages.page(LeaseFilter(state), Page(90, key, down, place, with_count=True), now=NOW)
                found += page.items
                assert page.count == len(expected)
                if page.following is None:
                    break
                # By its position, and by its id alone.
                place = page.following if place is None else page.following.id
            assert len(found) == len(expected)
            assert {item.lease.id for item in found} == expected
            order = [(_value(item.lease, key), item.lease.id) for item in found]
            assert order == sorted(order, reverse=down)


def _value(lease: Any, key: str) -> str:
    found = {
        "created_at": lease.created_at,
        "updated_at": lease.updated_at or lease.created_at,
        "start_date": lease.window.start,
        "end_date": lease.window.end,
        "name": lease.name,
        "status": str(lease.status),
        "release_at": (lease.use.release_at if lease.use else None) or lease.window.end,
    }
    return json.dumps(found[key], default=str)
