# SPDX-License-Identifier: Apache-2.0
"""From nothing to the newest tables and back, on three databases and with data inside."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.cmd.db_manage import main
from blazar.manager.common.settings import Settings
from blazar.manager.requests.series_work import SeriesWork
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import Conflict
from blazar.model.event_reasons import reason_of
from blazar.model.lease import LeaseKind, LeaseStatus
from blazar.model.reasons import ReasonCode, reason
from blazar.model.requests import Registration
from blazar.model.unused import UseMode, UsePolicies, UsePolicy
from blazar.store import migrate
from blazar.store.engine import WRITES, connect
from blazar.store.store import Store
from blazar.store.tables import resources
from tests.observed import Killed
from tests.store.builders import HOST, a_lease, hours
from tests.world import NOON, World, a_host, a_series


def test_migrations_make_the_tables_that_the_code_works_with(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    assert migrate.differences(engine) == []
    assert migrate.current(engine) == migrate.head()
    engine.dispose()


def test_migrations_go_back_with_data_in_the_tables_and_forward_again(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    World(engine).lease()
    migrate.downgrade(engine, "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    migrate.upgrade(engine)
    assert len(World(engine).hosts_of(World(engine, register=False).lease())) == 1
    engine.dispose()


def test_resources_that_are_there_already_get_labels_of_their_own(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    world = World(engine)
    world.register_addresses(7)
    world.manager.resources.unregister(HOST, world.manager.resources.all(HOST)[-1].external_id)
    migrate.downgrade(engine, "0005")
    migrate.upgrade(engine)
    with engine.connect() as connection:
        found = connection.execute(sa.select(resources.c.kind, resources.c.label, resources.c.edits)).all()
    assert len({label for _, label, _ in found}) == len(found) == 4
    assert all(label[:2] == f"{kind[0]}-" and len(label) == 8 and edits == 0 for kind, label, edits in found)
    engine.dispose()


def test_leases_that_are_there_already_have_reasons_without_causes(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    world = World(engine)
    lease = world.lease()
    migrate.downgrade(engine, "0009")
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(sa.text("UPDATE events SET reason = 'host node-1 is down'"))
    migrate.upgrade(engine)
    (event, *_) = world.now(lease).events
    assert (event.reason, event.cause, event.trouble_since) == ("host node-1 is down", None, None)
    assert reason_of(event) == reason("host node-1 is down", ReasonCode.RESOURCE_FAILED)
    assert all(r.missing_since is r.changed_since is None for r in world.now(lease).reservations)
    engine.dispose()


def test_earlier_versions_find_only_states_and_events_that_they_know(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    policies = UsePolicies(UsePolicy(UseMode.ON))
    world = World(engine, settings=Settings(use_policies=policies, promises=0))
    world.waits = True
    immediate = world.lease(a_host(2), kind=LeaseKind.IMMEDIATE)
    world.run()
    waiting = world.lease(a_host(2), wait=timedelta(days=1))
    undecided = world.lease(a_host(), kind=LeaseKind.IMMEDIATE)
    world.run_to(NOON + timedelta(seconds=1))
    in_vain = world.lease(a_host(3), wait=timedelta(minutes=1))
    world.run_to(NOON + timedelta(minutes=2))
    assert world.now(in_vain).status is LeaseStatus.TIMED_OUT
    migrate.downgrade(engine, "0013")
    with engine.connect() as connection:
        shown = dict(connection.execute(sa.text("SELECT id, status FROM leases")).tuples().all())
        events = set(connection.execute(sa.text("SELECT event_type FROM events WHERE due_at IS NOT NULL")).scalars())
    assert [shown[each.id] for each in (immediate, undecided, waiting, in_vain)] == [*["ACTIVE"] * 2, *["ERROR"] * 2]
    assert events == {"before_end_lease", "end_lease"}
    migrate.upgrade(engine)
    for lease in (waiting, in_vain, immediate):
        world.manager.leases.delete(lease.id)
    world.run()
    assert [each.id for each in world.manager.leases.all(None)] == [undecided.id]
    engine.dispose()


def test_leases_that_are_held_say_so_after_an_upgrade(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    world = World(engine, settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))
    held, watched, later = world.lease(), world.lease(), world.lease(start=timedelta(hours=48))
    world.run()
    world.manager.leases.hold(held.id, held=True)
    migrate.downgrade(engine, "0026")
    migrate.upgrade(engine)
    assert world.now(held).use.held is True
    assert world.now(watched).use.held is False
    assert world.now(later).use is None
    engine.dispose()


def test_a_lease_for_which_room_is_made_starts_in_earlier_versions(database_url):
    engine = connect(database_url)
    migrate.upgrade(engine)
    world = World(engine, hosts=3, register=False)
    world.manager.resources.register(HOST, Registration({"name": "node-1", "evacuable": True}))
    world.simulated.users.boot_server("theirs", project_id="p", user_id="u", host="node-1")
    lease = world.lease(a_host(), kind=LeaseKind.BEST_EFFORT)
    assert lease.status is LeaseStatus.IN_PROGRESS
    migrate.downgrade(engine, "0022")
    with engine.connect() as connection:
        (found,) = connection.execute(sa.text("SELECT status, kind FROM leases")).all()
        events = set(connection.execute(sa.text("SELECT event_type FROM events WHERE due_at IS NOT NULL")).scalars())
    assert (tuple(found), events) == (("PENDING", "scheduled"), {"start_lease"})
    migrate.upgrade(engine)
    engine.dispose()


def test_leases_of_a_series_that_is_being_booked_are_undone_by_earlier_versions(database_url, monkeypatch):
    engine = connect(database_url)
    migrate.upgrade(engine)
    world = World(engine)
    booked = world.manager.series.create(a_series())

    def die(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(SeriesWork, "_finish", die)
    with suppress(Killed):
        world.manager.series.create(a_series())
    assert len(world.store.leases.of_project(None)) == 10
    migrate.downgrade(engine, "0019")
    migrate.upgrade(engine)
    monkeypatch.undo()
    world.run()
    assert {lease.id for lease in world.manager.leases.all(None)} == {each.lease_id for each in booked.occurrences}
    engine.dispose()


def test_a_migration_that_fails_leaves_nothing_behind(database_url):
    engine = connect(database_url)
    if engine.dialect.name == "mysql":
        pytest.skip("MariaDB cannot undo changes of tables")
    migrate.upgrade(engine, "0001")
    before = [*sa.inspect(engine).get_table_names(), "notices"]
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notices (anything INTEGER)")
    with pytest.raises(sa.exc.DBAPIError):
        migrate.upgrade(engine)
    assert sorted(sa.inspect(engine).get_table_names()) == sorted(before)
    assert migrate.current(engine) == "0001"
    engine.dispose()


def test_a_database_with_tables_of_somebody_else_is_refused_and_not_touched(database_url):
    engine = connect(database_url)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notices (anything INTEGER)")
    with pytest.raises(migrate.ForeignTables, match=r"is not empty.*\(notices\).*give this program an empty database"):
        migrate.upgrade(engine)
    assert sa.inspect(engine).get_table_names() == ["notices"]
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
    engine = connect(database_url)
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
        ["upgrade", "0001"],
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
        store.calendar.book(lease, Plan((Allocation(HOST, 7, lease.id, lease.reservations[0].id, lease.window),)))


def test_db_manage_goes_both_ways(database_url, capsys):
    def run(*arguments):
        code = main(["--database-url", database_url, *arguments])
        return code, capsys.readouterr()

    assert run("current")[1].out == "no tables yet\n"
    assert run("check")[0] == 1
    assert run("upgrade")[1].out == f"{migrate.head()} (the newest)\n"
    assert run("check")[0] == 0
    assert migrate.head() in run("history")[1].out
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
