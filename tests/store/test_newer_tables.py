# SPDX-License-Identifier: Apache-2.0
"""A database of a newer version of this program: each command says so, and what to do, instead of an upgrade."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from blazar.cmd.db_manage import main
from blazar.store.sql import migrate, revisions
from tests.tables import new_sqlite


@pytest.fixture
def url(tmp_path) -> str:
    engine = new_sqlite(tmp_path / "blazar.sqlite")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9031'"))
    engine.dispose()
    return str(engine.url)


@pytest.mark.parametrize(
    "command",
    ["check", "upgrade", "downgrade base", "past-leases", "purge --before 2020-01-01", "unused"],
)
def test_a_command_says_that_the_database_is_newer_and_how_to_go_back(url, command, capsys):
    assert main(["--database-url", url, *command.split()]) == 1
    said = "".join(capsys.readouterr())
    assert "the database is from a newer version of Blazar" in said
    assert f"downgrade {revisions.newest_revision()}" in said
    assert "Can't locate" not in said
    assert "upgrade head" not in said


def test_current_says_it_too(url, capsys):
    assert main(["--database-url", url, "current"]) == 0
    assert "9031 (from a newer version; this one knows up to" in capsys.readouterr().out


def test_current_says_that_a_database_is_from_before_the_first_release(url, capsys):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0031'"))
    engine.dispose()
    assert main(["--database-url", url, "current"]) == 0
    assert "0031 (from a version before the first release; this one knows" in capsys.readouterr().out


def test_one_without_tables_is_to_be_upgraded(tmp_path, capsys):
    engine = new_sqlite(tmp_path / "blazar.sqlite")
    migrate.stamp(engine, "base")
    assert main(["--database-url", str(engine.url), "check"]) == 1
    assert "upgrade head" in capsys.readouterr().out
