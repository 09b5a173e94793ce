# SPDX-License-Identifier: Apache-2.0
"""On MariaDB each change of a table commits by itself: migrations can be interrupted anywhere, and wear nothing out."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from blazar.store import migrate
from blazar.store.engine import connect
from tests.conftest import fresh_database
from tests.world import World, a_series

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_CHANGE = re.compile(r"\s*(?!ALTER TABLE \S+ MODIFY)(ALTER|CREATE|DROP)\b", re.IGNORECASE)
"""What must not be done twice; a column may be modified any number of times."""


@pytest.fixture
def engine(tmp_path):
    for url in fresh_database("mariadb", tmp_path):
        engine = connect(url)
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
                assert number < 60, "it does not go on"
                continue
            return number


def test_each_migration_goes_on_after_an_interruption_between_any_two_changes(engine):
    revisions = [revision for revision, _ in reversed(migrate.history())]
    interrupting, number = Interrupting(engine), 0
    for revision in revisions:
        number += interrupting.attempts(lambda to=revision: migrate.upgrade(engine, to))
        assert migrate.current(engine) == revision
    assert number > 2 * len(revisions)
    interrupting.changes = -(10**6)
    assert migrate.differences(engine) == []
    world = World(engine)
    world.lease()
    world.manager.series.create(a_series())
    world.run()
    for revision in [*reversed(revisions[:-1]), "base"]:
        interrupting.attempts(lambda to=revision: migrate.downgrade(engine, to))
    interrupting.changes = -(10**6)
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]


def test_ten_rounds_leave_room_in_each_row(engine):
    migrate.upgrade(engine)
    first = migrate.history()[-1][0]
    World(engine).lease()
    for _ in range(10):
        migrate.downgrade(engine, first)
        migrate.upgrade(engine)
    assert migrate.differences(engine) == []
    World(engine, register=False).lease()
