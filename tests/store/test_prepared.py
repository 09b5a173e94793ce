# SPDX-License-Identifier: Apache-2.0
"""What is compiled once writes the same as SQLAlchemy does at each execution, on every database."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.model.base.errors import BlazarError
from blazar.store.sql.engine import WRITES
from blazar.store.sql.prepared import MOST_TOGETHER, ExpectedRows, insert_rows, update, update_rows
from blazar.store.sql.tables import journal
from tests.statements import counted

NOON = datetime(2030, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


def rows(count, **more):
    """Rows with a value of each type that a booking writes, and nulls of some of them."""
    return [
        {
            "id": str(uuid.uuid4()),
            "at": NOON + timedelta(seconds=number),
            "object_type": "lease",
            "object_id": f"x{number}",
            "object_name": "100 % – näme ' \" :a %(b)s ?" if number % 2 else None,
            "revision": number,
            "verb": "created",
            "project_id": "p",
            "by_operator": number % 2 == 0,
            "changes": [["name", None, "ü", number]],
            "moves": [],
            "reason": "" if number % 2 else None,
            "snapshot": None,
            "user_id": None if number else "first",
            **more,
        }
        for number in range(count)
    ]


@pytest.fixture
def writing(engine):
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        yield connection


def insert(connection, new):
    insert_rows(connection, journal, new)


class Missed(BlazarError):
    """A write has not found its row."""


ONE = ExpectedRows(1, lambda: Missed("missed"))


def read(connection, wanted):
    columns = [journal.c[name] for name in wanted[0]]
    query = sa.select(*columns).where(journal.c.id.in_([row["id"] for row in wanted])).order_by(journal.c.revision)
    return [dict(row) for row in connection.execute(query).mappings()]


@pytest.mark.parametrize("count", [1, 2, MOST_TOGETHER, MOST_TOGETHER + 1])
def test_rows_are_inserted_as_they_are_in_one_statement(engine, writing, count):
    new = rows(count)
    with counted(engine) as statements:
        insert(writing, new)
    assert statements.count == 1
    assert read(writing, new) == new


def test_rows_with_other_columns_are_inserted_after_others(writing):
    for new in (rows(2), rows(2, reason="why"), rows(2, snapshot={"a": [1]}), rows(3)):
        insert(writing, new)
        assert read(writing, new) == new


def test_an_update_writes_only_the_row_that_it_names_and_tells_how_many_there_were(writing):
    new = rows(2)
    insert(writing, new)
    statement = (
        journal.update()
        .where(journal.c.id == sa.bindparam("key"), journal.c.revision == sa.bindparam("known"))
        .values(at=sa.bindparam("then", type_=journal.c.at.type), reason=sa.bindparam("why"))
    )
    then = NOON + timedelta(days=1)
    values = {"key": new[1]["id"], "known": 1, "then": then, "why": None}
    update(writing, statement, values, ONE)
    with pytest.raises(Missed):
        update(writing, statement, {**values, "known": 7}, ONE)
    assert read(writing, new) == [new[0], {**new[1], "at": then, "reason": None}]


def test_a_value_that_is_wrong_is_refused_as_by_sqlalchemy(writing):
    with pytest.raises(ValueError, match="has no zone"):
        insert(writing, rows(1, at=NOON.replace(tzinfo=None)))


def test_a_statement_with_a_value_of_its_own_has_it_each_time(writing):
    new = rows(2)
    insert(writing, new)
    statement = journal.update().where(journal.c.id == sa.bindparam("key")).values(revision=journal.c.revision + 5)
    for row in new:
        update(writing, statement, {"key": row["id"]})
    assert [row["revision"] for row in read(writing, new)] == [5, 6]


@pytest.mark.parametrize("count", [1, 2, MOST_TOGETHER])
def test_rows_get_what_differs_and_what_is_the_same_in_one_statement(engine, writing, count):
    new = rows(count + 1)
    insert(writing, new)
    given = [
        {"at": NOON - timedelta(days=n), "reason": f"why {n}" if n % 2 else None, "verb": "changed", "moves": [[n]]}
        for n in range(count)
    ]
    names = tuple(sorted(given[0]))
    sent = [
        {"key": row["id"], **{f"new_{name}": values[name] for name in names}}
        for row, values in zip(new, given, strict=False)
    ]
    with counted(engine) as statements:
        update_rows(writing, journal, names, sent)
    assert statements.count == 1
    assert read(writing, new) == [{**row, **values} for row, values in zip(new, [*given, {}], strict=True)]
