# SPDX-License-Identifier: Apache-2.0
"""Rules are written one at a time, and each process knows those that hold with the catalogs that it reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from blazar.model.base.errors import InvalidInput, NotFound, PreconditionFailed
from blazar.model.resources.resource import HOST
from blazar.model.rules.documents import MOST_RULES
from blazar.store.sql.versions import raise_version
from blazar.store.store import Store
from tests.rules import a_rule
from tests.statements import counted

NOON = datetime(2030, 4, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def write(store: Store, name: str = "nights", revisions=None, *, at: datetime = NOON, **content):
    return store.rules.write(name, a_rule(**content), revisions=revisions, now=lambda: at)


def test_what_is_written_is_read(store):
    first = write(store)
    assert first.is_new
    assert store.rules.one("nights") == first.rule
    second = write(store, at=NOON + timedelta(hours=1), apply="all")
    assert not second.is_new
    assert (second.rule.created_at, second.rule.updated_at) == (NOON, NOON + timedelta(hours=1))
    assert second.rule.revision > first.rule.revision
    other = write(store, "a-second-one")
    assert other.rule.revision > second.rule.revision
    assert store.rules.all() == (other.rule, second.rule)


def test_of_two_who_have_read_the_same_the_second_is_refused(store):
    first = write(store).rule
    write(store, revisions=[first.revision], apply="all")
    with pytest.raises(PreconditionFailed):
        write(store, revisions=[first.revision])
    with pytest.raises(PreconditionFailed):
        store.rules.remove("nights", revisions=[first.revision], now=lambda: NOON)
    with pytest.raises(PreconditionFailed):
        write(store, "gone", revisions=[first.revision])


def test_what_is_removed_is_gone_and_its_revision_never_comes_again(store):
    first = write(store).rule
    store.rules.remove("nights", revisions=None, now=lambda: NOON)
    for gone in (lambda: store.rules.one("nights"), lambda: store.rules.remove("nights", revisions=None, now=NOON)):
        with pytest.raises(NotFound):
            gone()
    assert write(store).rule.revision > first.revision


def test_there_is_room_for_so_many(store):
    for number in range(MOST_RULES):
        write(store, f"r-{number}")
    with pytest.raises(InvalidInput, match="100 rules already"):
        write(store, "one-more")
    write(store, "r-7", apply="all")


def test_another_process_knows_of_them_with_the_next_catalog_at_no_cost_while_nothing_changes(store, engine):
    other = Store(engine)
    known: list[list[str]] = []
    other.rules.listen(lambda rules: known.append([rule.name for rule in rules]))
    with engine.begin() as connection:
        raise_version(connection, HOST)
    write(store)
    assert other.resources.catalog(HOST).resources == ()
    with counted(engine) as statements:
        other.resources.catalog(HOST)
    store.rules.remove("nights", revisions=None, now=lambda: NOON)
    other.resources.catalog(HOST)
    assert (known, statements.count) == ([[], ["nights"], []], 1)


def test_who_writes_a_rule_knows_of_it_at_once(store):
    known: list[int] = []
    store.rules.listen(lambda rules: known.append(len(rules)))
    write(store)
    assert known == [0, 1]
