# SPDX-License-Identifier: Apache-2.0
"""``blazar-db-manage purge``: the oldest part of the record goes, with all that belongs to it, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.cmd.db_manage import main
from blazar.model.base.errors import NotFound
from blazar.model.journal.entries import ObjectType
from blazar.model.leases.states import LeaseStatus
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.leases.leases import LeaseStore
from blazar.store.leases.purging import PARTS
from blazar.store.sql.tables import journal, leases, metadata, reservations
from tests.store.builders import HOUR, NOON
from tests.world import ManualClock, World, a_host, a_series, instances

DAY = timedelta(days=1)


def purged(url: str, before: str, *more: str) -> int:
    """Run the command, on the morning of the ninth day."""
    clock = ManualClock(NOON + 8 * DAY - 3 * HOUR)
    return main(["--database-url", url, "purge", "--before", before, *more], clock=clock)


@pytest.fixture
def url(engine) -> str:
    return engine.url.render_as_string(hide_password=False)


@pytest.fixture
def past(engine) -> tuple[World, dict[str, str]]:
    """A world with leases of all fates, a day apart; now it is the eighth day."""
    world = World(engine, hosts=4)
    ids = {}
    for name in ("ended", "deleted"):
        lease = world.lease(a_host(), instances(2), name=name)
        world.run_to(NOON + (HOUR if name == "deleted" else 3 * HOUR))
        ids[name] = lease.id
        if name == "deleted":
            world.manager.leases.delete(lease.id)
        world.run_to(world.clock.now().replace(hour=12, minute=0) + DAY)
    ids["runs"] = world.lease(a_host(), hours=24 * 30, name="runs").id
    ids["to come"] = world.lease(a_host(), start=10 * DAY, name="to come").id
    world.run_to(NOON + 7 * DAY)
    ids["ended today"] = world.lease(a_host(), name="ended today").id
    world.run_to(NOON + 7 * DAY + 3 * HOUR)
    return world, ids


def rows(engine) -> dict[str, int]:
    with engine.connect() as connection:
        tables = (table for table in metadata.sorted_tables if table.name not in ("resources", "resource_properties"))
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in tables
        }


def there(engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(sa.select(leases.c.id)).scalars())


@pytest.mark.slow
def test_leases_that_ended_or_were_deleted_before_a_date_go_with_all_that_belongs_to_them(past, engine, url, capsys):
    world, ids = past
    before = rows(engine)
    assert purged(url, "2030-04-08", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "2 leases" in said
    assert "would be deleted" in said
    assert rows(engine) == before
    assert purged(url, "2030-04-08") == 0
    assert "2 leases" in capsys.readouterr().out
    assert there(engine) == {ids["runs"], ids["to come"], ids["ended today"]}
    left = there(engine)
    with engine.connect() as connection:
        for table, column in PARTS:
            # The journal has entries of other objects, too.
            of_leases = [table.c.object_type == str(ObjectType.LEASE)] if table is journal else []
            owners = set(connection.execute(sa.select(column).where(*of_leases)).scalars())
            assert owners <= left, table.name
        assert connection.execute(sa.select(sa.func.count()).select_from(reservations)).scalar_one() == 3
    # What is left goes on.
    world.run_to(NOON + 40 * DAY)
    assert world.now_of(ids["runs"]).status is LeaseStatus.TERMINATED
    assert world.lease(a_host(4))


def test_leases_that_waited_in_vain_before_a_date_go_too(past, engine, url):
    world, ids = past
    world.waits = True
    early = world.lease(a_host(5), wait=HOUR)
    late = world.lease(a_host(5), wait=30 * HOUR)
    world.run_to(NOON + 8 * DAY)
    assert [world.now(each).status for each in (early, late)] == [LeaseStatus.TIMED_OUT, LeaseStatus.WAITING]
    clock = ManualClock(NOON + 20 * DAY)
    world.run_to(NOON + 9 * DAY)
    assert world.now(late).status is LeaseStatus.TIMED_OUT
    assert main(["--database-url", url, "purge", "--before", "2030-04-09"], clock=clock) == 0
    assert there(engine) & {early.id, late.id} == {late.id}


def test_a_second_time_there_is_nothing_to_do(past, url, capsys):
    for _ in range(2):
        assert purged(url, "2030-04-08") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 leases")


def test_it_goes_in_steps_each_as_small_as_wanted(past, engine, url, monkeypatch, capsys):
    steps = []
    whole = LeaseStore.purge
    monkeypatch.setattr(LeaseStore, "purge", lambda *args: steps.append(whole(*args)) or steps[-1])
    assert purged(url, "2030-04-08", "--batch", "1") == 0
    assert [step.get("leases", 0) for step in steps] == [1, 1, 0]
    assert "2 leases" in capsys.readouterr().out


def test_a_lease_of_which_somebody_is_still_to_be_told_stays(past, engine, url):
    world, ids = past
    ended = world.now_of(ids["ended"])
    message = OutboxMessage("n-1", ended.id, "{}", NOON, NOON + 30 * DAY, 0, ())
    world.store.leases.save(ended, replace(ended, name="told"), at=NOON, messages=[message])
    assert purged(url, "2030-04-08") == 0
    assert ids["ended"] in there(engine)
    assert ids["deleted"] not in there(engine)


def test_a_lease_with_work_still_to_do_stays(past, engine, url):
    world, ids = past
    ended = world.now_of(ids["ended"])
    busy = replace(ended.events[-1], due_at=NOON + 30 * DAY)
    world.store.leases.save(ended, replace(ended, events=(*ended.events[:-1], busy)), at=NOON)
    assert purged(url, "2030-04-08") == 0
    assert ids["ended"] in there(engine)
    assert ids["deleted"] not in there(engine)


def test_a_date_to_come_and_tables_of_another_revision_are_refused(engine, url, sqlite_url, capsys):
    assert purged(url, "2030-04-10") == 1
    assert "is not in the past" in capsys.readouterr().err
    assert purged(sqlite_url, "2020-01-01") == 1
    assert "upgrade" in capsys.readouterr().err


@pytest.mark.slow
def test_series_go_with_the_last_of_their_leases(engine, url, capsys):
    world = World(engine)
    over, lasting = (world.manager.series.create(a_series(rule=f"FREQ=DAILY;COUNT={n}")) for n in (2, 9))
    world.run_to(NOON + 8 * DAY)
    assert purged(url, "2030-04-09", "--dry-run") == 0
    assert purged(url, "2030-04-09") == 0
    assert "2 occurrences" in capsys.readouterr().out.splitlines()[-1]
    with pytest.raises(NotFound):
        world.manager.series.one(over.series.id)
    assert len(world.manager.series.one(lasting.series.id).occurrences) == 9
