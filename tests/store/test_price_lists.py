# SPDX-License-Identifier: Apache-2.0
"""Price lists are added in versions, read in one statement, and never changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from blazar.model.base.errors import Conflict, NotFound
from blazar.model.billing.published import Publication, draft_list
from blazar.store.sql import versions
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import price_lists
from blazar.store.store import Store
from tests.statements import counted

NOON = datetime(2030, 3, 1, 12, tzinfo=UTC)
EXAMPLE = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2030-04-01T00:00:00Z",
    "time_zone": "Europe/Berlin",
    "prices": [{"sku": "host", "measure": "host", "per_hour": "0.80"}],
}


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def publish(store: Store, *, at: datetime = NOON, by: str | None = "olga", **changes: object):
    new = draft_list({**EXAMPLE, **changes}, store.price_lists.newest(), now=at, published_by=by)
    store.price_lists.add(Publication(new, ()))
    return new


def test_nothing_is_published_at_first(store):
    assert store.price_lists.read() == ()
    assert store.price_lists.list_published() == ()
    with pytest.raises(NotFound):
        store.price_lists.one(1)


def test_what_is_published_is_read_as_it_was_written(store):
    first = publish(store, projects=[{"project_id": "physics", "factor": "0.80"}])
    second = publish(store, at=NOON + timedelta(days=1), by=None, fee="5.00")
    assert store.price_lists.list_published() == (first, second)
    assert store.price_lists.one(2) == second
    assert store.price_lists.read() == (first.parse(), second.parse())
    assert [one.version for one in store.price_lists.read()] == [1, 2]
    assert json.loads(store.price_lists.one(1).content)["prices"] == EXAMPLE["prices"]


def test_they_are_read_once_and_then_one_statement_tells_that_none_was_added(store, engine):
    publish(store)
    store.price_lists.read()
    with counted(engine) as statements:
        lists = store.price_lists.read()
    assert statements.count == 1
    # Another manager has its own cache.
    newer = publish(Store(engine), fee="1.00")
    assert store.price_lists.read() == (*lists, newer.parse())


def test_a_number_that_a_restored_database_has_had_before_is_that_of_another_list(store, engine, monkeypatch):
    publish(store, fee="1.00")
    lost = publish(store, fee="2.00")
    assert [one.fee for one in store.price_lists.read()] == [10**9, 2 * 10**9]
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(price_lists.delete().where(price_lists.c.version == lost.version))
    restored_at = versions.read_seconds() + 60
    monkeypatch.setattr(versions, "read_seconds", lambda: restored_at)
    # The same content: only when it was published is another time.
    assert publish(Store(engine), fee="2.00", at=NOON + timedelta(days=1)).version == lost.version
    assert [one.published_at for one in store.price_lists.read()] == [NOON, NOON + timedelta(days=1)]


def test_of_two_that_are_published_at_once_one_is_refused(store):
    late = draft_list(EXAMPLE, None, now=NOON)
    publish(store, fee="1.00")
    with pytest.raises(Conflict, match="price list 1 was published meanwhile"):
        store.price_lists.add(Publication(late, ()))
    assert [one.parse().fee for one in store.price_lists.list_published()] == [10**9]


def test_a_list_holds_from_the_second_after_it_was_published(store):
    part_of_a_second = timedelta(milliseconds=1)
    assert publish(store, at=NOON + part_of_a_second).published_at == NOON + timedelta(seconds=1)
    # A clock that went back does not bring it before the one that it follows.
    assert publish(store, at=NOON - timedelta(hours=1)).published_at == NOON + timedelta(seconds=1)
