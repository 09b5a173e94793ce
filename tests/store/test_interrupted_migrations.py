# SPDX-License-Identifier: Apache-2.0
"""On MariaDB each change of a table commits by itself: migrations can be interrupted anywhere, and wear nothing out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from blazar.store.sql import migrate
from blazar.store.sql.engine import make_engine
from tests.conftest import fresh_database
from tests.world import World, a_series

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_CHANGE = re.compile(
    r"\s*(?!ALTER TABLE \S+ MODIFY)(ALTER|CREATE|DROP|(INSERT INTO|UPDATE|DELETE FROM) alembic_version)\b",
    re.IGNORECASE,
)
"""What must not be done twice, and what says that all is done; a column may be modified any number of times."""


@pytest.fixture
def engine(tmp_path):
    for url in fresh_database("mariadb", tmp_path):
        engine = make_engine(url)
        yield engine
        engine.dispose()


class Interrupted(Exception):
    """The process was killed."""


class Interrupting:
    """Lets one change of a table take effect in each attempt, and interrupts before the second one."""

    def __init__(self, engine: sa.Engine) -> None:
        self.changes = 0
        sa.event.listen(engine, "before_cursor_execute", self._count)

    def _count(self, connection, cursor, statement, *_) -> None:
        if _CHANGE.match(statement):
            self.changes += 1
            if self.changes == 2:
                raise Interrupted(statement)

    def attempts(self, migration) -> int:
        """Repeat a migration until it is not interrupted any more; return how often."""
        number = 0
        while True:
            number += 1
            self.changes = 0
            try:
                migration()
            except Interrupted:
                assert number < 199, "it does not go on"
                continue
            return number


@contextmanager
def changing(engine: sa.Engine) -> Iterator[Operations]:
    """Change tables as a migration does."""
    with engine.connect() as connection:
        yield Operations(MigrationContext.configure(connection))
        connection.commit()


def test_each_migration_goes_on_after_an_interruption_between_any_two_changes(engine):
    revisions = [revision for revision, _ in reversed(migrate.list_revisions())]
    interrupting, number = Interrupting(engine), 0
    for revision in revisions:
        number += interrupting.attempts(lambda to=revision: migrate.upgrade(engine, to))
        assert migrate.read_revision(engine) == revision
    assert number > 20
    interrupting.changes = -(10**6)
    assert migrate.find_differences(engine) == []
    world = World(engine)
    world.lease()
    world.manager.series.create(a_series())
    world.run()
    for revision in [*reversed(revisions[:-1]), "base"]:
        interrupting.attempts(lambda to=revision: migrate.downgrade(engine, to))
    interrupting.changes = -(10**6)
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]


def test_histories_are_carried_over_and_back_once_however_often_that_is_interrupted(engine):
    def count(*tables: str) -> list[int]:
        interrupting.changes = -(10**6)
        with engine.connect() as connection:
            return [connection.exec_driver_sql(f"SELECT COUNT(*) FROM {table}").scalar_one() for table in tables]

    interrupting = Interrupting(engine)
    interrupting.changes = -(10**6)
    migrate.upgrade(engine)
    World(engine).lease()
    World(engine, register=False).lease()
    (told,) = count("journal")
    assert told >= 2
    assert interrupting.attempts(lambda: migrate.downgrade(engine, "1002")) > 3
    (carried,) = count("lease_history")
    assert 2 <= carried <= told
    assert interrupting.attempts(lambda: migrate.upgrade(engine, "1003")) > 5
    assert count("journal", "journal_numbering") == [carried, 1]
    assert "lease_history" not in sa.inspect(engine).get_table_names()


def test_ten_rounds_of_a_new_column_leave_room_in_each_row(engine):
    migrate.upgrade(engine)
    World(engine).lease()
    for _ in range(10):
        with changing(engine) as operations:
            operations.add_column("leases", sa.Column("remark", sa.String(255)))
        with changing(engine) as operations:
            operations.drop_column("leases", "remark")
    assert migrate.find_differences(engine) == []
    World(engine, register=False).lease()


def test_each_step_of_a_migration_does_nothing_if_it_has_been_done(engine):
    migrate.upgrade(engine)

    def further(operations: Operations) -> None:
        operations.create_table("remarks", sa.Column("id", sa.Integer, primary_key=True), sa.Column("at", sa.Integer))
        operations.create_index("ix_remarks_at", "remarks", ["at"])
        operations.create_unique_constraint("uq_remarks_at", "remarks", ["at"])
        operations.add_column("leases", sa.Column("remark", sa.String(255)))

    def back(operations: Operations) -> None:
        operations.drop_column("leases", "remark")
        operations.drop_constraint("uq_remarks_at", "remarks", type_="unique")
        operations.drop_index("ix_remarks_at", "remarks")

    for step in (further, further, back, back):
        with changing(engine) as operations:
            step(operations)
    look = sa.inspect(engine)
    assert "remark" not in {column["name"] for column in look.get_columns("leases")}
    assert look.get_indexes("remarks") == look.get_unique_constraints("remarks") == []
    for _ in range(2):
        with changing(engine) as operations:
            operations.drop_table("remarks")
    assert migrate.find_differences(engine) == []
