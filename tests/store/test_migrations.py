# SPDX-License-Identifier: Apache-2.0
"""From nothing to the newest tables and back, on three databases and with data inside."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from blazar.cmd.db_manage import main
from blazar.model.base.errors import Conflict
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.store.sql import migrate
from blazar.store.sql.engine import WRITES, make_engine
from blazar.store.sql.tables import metadata
from blazar.store.store import Store
from tests.conftest import fresh_database
from tests.store.builders import HOST, a_lease, book, hours
from tests.world import World


def test_migrations_make_the_tables_that_the_code_works_with(database_url):
    engine = make_engine(database_url)
    migrate.upgrade(engine)
    assert migrate.find_differences(engine) == []
    assert migrate.read_revision(engine) == migrate.newest_revision()
    engine.dispose()


@pytest.mark.slow
def test_migrations_go_back_with_data_in_the_tables_and_forward_again(database_url):
    engine = make_engine(database_url)
    migrate.upgrade(engine)
    World(engine).lease()
    migrate.downgrade(engine, "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    migrate.upgrade(engine)
    assert len(World(engine).hosts_of(World(engine, register=False).lease())) == 1
    engine.dispose()


def test_a_migration_that_fails_leaves_nothing_behind(database_url):
    engine = make_engine(database_url)
    if engine.dialect.name == "mysql":
        pytest.skip("MariaDB cannot undo changes of tables")
    migrate.upgrade(engine)
    migrate.downgrade(engine, "base")
    last = list(metadata.sorted_tables)[-1].name
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {last} (anything INTEGER)")
    with pytest.raises(sa.exc.DBAPIError):
        migrate.upgrade(engine)
    assert sorted(sa.inspect(engine).get_table_names()) == sorted(["alembic_version", last])
    assert migrate.read_revision(engine) is None
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "limit", "wait"),
    # Keep-alives of PostgreSQL come six times within the limit, and not more often than once a second.
    [("postgresql", 6, "SELECT pg_sleep(6.5)"), ("mariadb", 1, "DO benchmark(40000000, md5(1))")],
)
def test_a_migration_may_take_longer_than_what_users_wait_for(server, limit, wait, tmp_path, monkeypatch):
    for name in ("STATEMENT_SECONDS", "ANSWER_SECONDS"):
        monkeypatch.setattr(f"blazar.store.sql.engine.{name}", limit)
    for url in fresh_database(server, tmp_path):
        engine = make_engine(url)
        migrate.upgrade(engine)
        works = lambda config, revision: config.attributes["connection"].exec_driver_sql(wait)  # noqa: E731
        monkeypatch.setattr(migrate.command, "upgrade", works)
        migrate.upgrade(engine)
        # The same pool, for users.
        with engine.connect() as connection, pytest.raises(sa.exc.OperationalError):
            connection.exec_driver_sql(wait)
        engine.dispose()
        monkeypatch.undo()


@pytest.mark.slow
def test_texts_compare_byte_by_byte_in_every_table_of_mariadb(tmp_path):
    for url in fresh_database("mariadb", tmp_path):
        engine = make_engine(url)
        migrate.upgrade(engine)
        with engine.connect() as connection:
            found = connection.execute(
                sa.text(
                    "SELECT table_name, table_collation FROM information_schema.tables "
                    "WHERE table_schema = DATABASE() AND table_name <> 'alembic_version'"
                )
            ).tuples()
            assert dict(found.all()) == dict.fromkeys(metadata.tables, "utf8mb4_nopad_bin")
        engine.dispose()


@pytest.mark.parametrize(
    "command",
    ["upgrade", "upgrade 1001", "downgrade base", "stamp head", "check", "past-leases", "purge --before 2020-01-01"],
)
def test_a_database_from_before_the_first_release_is_refused_and_not_touched(database_url, command, capsys):
    engine = make_engine(database_url)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0028')")
        connection.exec_driver_sql("CREATE TABLE leases (id VARCHAR(36) PRIMARY KEY, starts_at TIMESTAMP)")
    assert main(["--database-url", database_url, *command.split()]) == 1
    said = "".join(capsys.readouterr())
    assert "made by a version of Blazar from before its first release" in said
    assert "revision 0028, which this version cannot read" in said
    assert "an empty database of its own" in said
    assert sorted(sa.inspect(engine).get_table_names()) == ["alembic_version", "leases"]
    assert migrate.read_revision(engine) == "0028"
    engine.dispose()


def test_a_database_with_tables_of_somebody_else_is_refused_and_not_touched(database_url):
    engine = make_engine(database_url)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE occurrences (anything INTEGER)")
    with pytest.raises(migrate.ForeignTables, match=r"is not empty.*\(occurrences\).*give .* an empty database"):
        migrate.upgrade(engine)
    assert sa.inspect(engine).get_table_names() == ["occurrences"]
    engine.dispose()


EXISTING = {
    "newest": (
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO alembic_version VALUES ('553383923ca0')",
        "CREATE TABLE leases (id VARCHAR(36) PRIMARY KEY, name VARCHAR(80), start_date TIMESTAMP, deleted VARCHAR(36))",
        "CREATE TABLE computehosts (id VARCHAR(36) PRIMARY KEY, vcpus INTEGER)",
        "INSERT INTO computehosts VALUES ('1', 16)",
    ),
    "not marked with a revision": ("CREATE TABLE computehost_allocations (id VARCHAR(36) PRIMARY KEY)",),
    "its leases alone": ("CREATE TABLE leases (id VARCHAR(36) PRIMARY KEY, start_date TIMESTAMP NULL)",),
}


@pytest.mark.parametrize("statements", EXISTING.values(), ids=EXISTING)
def test_a_database_of_the_existing_blazar_is_recognised_by_every_command_and_not_touched(
    database_url, statements, capsys
):
    engine = make_engine(database_url)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)

    def contents():
        tables = sa.MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            return {name: connection.execute(sa.select(table)).all() for name, table in tables.tables.items()}

    before = contents()
    for command in (
        ["upgrade"],
        ["upgrade", "1001"],
        ["downgrade", "base"],
        ["stamp", "head"],
        ["current"],
        ["check"],
        ["revision", "-m", "x"],
        ["past-leases"],
        ["purge", "--before", "2020-01-01"],
    ):
        assert main(["--database-url", database_url, *command]) == 1, command
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert "is that of the existing Blazar" in said
        assert "an empty database of its own" in said
    assert contents() == before
    engine.dispose()


def test_further_files_of_a_folder_count(tmp_path, capsys):
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "db.conf").write_text(f"[database]\nconnection = sqlite:///{tmp_path / 'db.sqlite'}\n")
    assert main(["--config-dir", str(folder), "upgrade", "head"]) == 0
    file = tmp_path / "blazar.conf"
    file.write_text("[database]\nconnection = sqlite:////no/such/folder/db.sqlite\n")
    assert main(["--config-file", str(file), "--config-dir", str(folder), "current"]) == 0
    assert "newest" in capsys.readouterr().out


def test_foreign_keys_hold_again_after_a_migration(sqlite):
    store = Store(sqlite)
    lease = a_lease(hours(0, 1))
    with pytest.raises(Conflict):
        book(store, lease, AllocationPlan((Allocation(HOST, 7, lease.id, lease.reservations[0].id, lease.window),)))


@pytest.mark.slow
def test_db_manage_goes_both_ways(database_url, capsys):
    def run(*arguments):
        code = main(["--database-url", database_url, *arguments])
        return code, capsys.readouterr()

    assert run("current")[1].out == "no tables yet\n"
    assert run("check")[0] == 1
    assert run("upgrade")[1].out == f"{migrate.newest_revision()} (the newest)\n"
    assert run("check")[0] == 0
    assert migrate.newest_revision() in run("history")[1].out
    assert run("downgrade", "base")[1].out == "no tables yet\n"
    assert run("stamp", "head")[0] == 0
    code, said = run("upgrade", "nonsense")
    assert code == 1
    assert "nonsense" in said.err
    assert "Traceback" not in said.err


def test_db_manage_prints_the_record_of_past_leases(sqlite, sqlite_url, capsys):
    world = World(sqlite)
    lease = world.lease(name="past", project="physics")
    world.manager.leases.delete(lease.id)
    assert main(["--database-url", sqlite_url, "past-leases", "--project", "physics", "--since", "2030-01-01"]) == 0
    assert lease.id in capsys.readouterr().out
    assert main(["--database-url", sqlite_url, "past-leases", "--json", "--until", "2020-01-01"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_db_manage_gives_no_commands_to_the_terminal(sqlite, sqlite_url, capsys):
    world = World(sqlite)
    world.manager.leases.delete(world.lease(name="past\x1b[2J\x9b\u202e\r", project="physics").id)
    assert main(["--database-url", sqlite_url, "past-leases"]) == 0
    out = capsys.readouterr().out
    assert "past" in out
    assert out.replace("\n", "").isprintable()


def test_a_database_that_cannot_be_used_is_told_in_one_sentence(capsys, tmp_path):
    empty = tmp_path / "blazar.conf"
    empty.write_text("[DEFAULT]\n")
    for arguments, says in (
        (["--config-file", str(empty), "current"], "no database is configured"),
        (["--config-file", str(tmp_path / "none.conf"), "current"], "none.conf"),
        (["--database-url", "nonsense", "current"], "write postgresql+psycopg://USER"),
        (["--database-url", "postgresql:/127.0.0.1/x", "current"], "write postgresql+psycopg://USER"),
        (["--database-url", "postgresql://h:54x2/x", "current"], "host:port is not valid"),
        (["--database-url", "mysql+pymsql://h/x", "current"], "use mysql+pymysql"),
        (["--database-url", "mysql+pymysql://root@127.0.0.1", "current"], "names no database"),
        (["--database-url", "mysql+pymysql://root@127.0.0.1/x?sslca=x", "current"], "has the parameter sslca"),
        (["--database-url", "mysql+pymysql://root@127.0.0.1/x?read_timeout=soon", "current"], "parameters"),
        (["--database-url", "postgresql://127.0.0.1:1/x?sslca=x", "current"], "sslca"),
        (["--database-url", "sqlite:////no/such/folder/x", "current"], "check that it runs, and host"),
        (["--database-url", "oracle://x", "current"], "not supported"),
        (["--database-url", "postgresql+psycopg://postgres@127.0.0.1:1/x", "current"], "cannot be used"),
        (["--database-url", "mysql+pymysql://root@127.0.0.1:1/x", "upgrade"], "cannot be used"),
    ):
        assert main(arguments) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert says in said


def test_a_certificate_that_cannot_be_read_is_told_by_its_name(capsys):
    assert main(["--database-url", "mysql+pymysql://root@127.0.0.1:1/x?ssl_ca=/no/such.pem", "current"]) == 1
    assert "ssl_ca=/no/such.pem cannot be read: No such file" in capsys.readouterr().err


def test_the_database_may_be_named_in_a_file(tmp_path, capsys):
    file = tmp_path / "blazar.conf"
    file.write_text(f"[database]\nconnection = sqlite:///{tmp_path / 'db.sqlite'}\n")
    assert main(["--config-file", str(file), "upgrade"]) == 0
    assert "newest" in capsys.readouterr().out
