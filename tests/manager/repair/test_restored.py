# SPDX-License-Identifier: Apache-2.0
"""After a backup was restored, an operator sees what is not on record, and gives it back to the cloud."""

from __future__ import annotations

import pytest

from blazar.cmd import manage
from blazar.model.base.errors import NotFound
from blazar.model.problems.problems import ProblemAction, RepairRequest
from tests.tables import contents, fill, new_sqlite
from tests.world import World, a_host, instances


@pytest.fixture
def restored(a_world, tmp_path) -> World:
    """A backup, then two leases that start, then the backup is restored: their hosts are not in the freepool."""
    world = a_world()
    backup = contents(world.engine)
    world.lost = [world.lease(a_host(2)), world.lease(instances(2))]
    world.run()
    engine = new_sqlite(tmp_path / "restored.sqlite")
    assert fill(engine, backup)
    after = World(engine, cloud=world.simulated, clock=world.clock, register=False)
    after.lost = world.lost
    return after


def ids(world: World) -> list[str]:
    return sorted(lease.reservations[0].id for lease in world.lost)


def command(world: World, *words: str) -> int:
    """Run blazar-manage in this world."""
    return manage.run(world.manager, manage.parse(words))


def test_what_is_not_on_record_is_listed_and_stays(restored, capsys):
    before = restored.pool()
    assert command(restored, "problems", "list", "--kind", "unknown") == manage.DONE
    assert command(restored, "problems", "list", "--kind", "unknown", "--look") == manage.FOUND
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [f"unknown::{id_}" for id_ in ids(restored)]
    restored.run()
    assert restored.pool() == before


def test_what_an_operator_ends_is_given_back_and_others_can_have_it(restored, capsys):
    assert len(restored.pool()) < 3
    command(restored, "problems", "list", "--look")
    restored.clock.by(seconds=3601)
    for id_ in ids(restored):
        end = ["problems", "end", f"unknown::{id_}", "--reason", "the old backup"]
        assert command(restored, *end) == manage.DONE
        assert command(restored, *end, "--yes") == manage.REFUSED
        assert command(restored, *end, "--yes", "--confirm", id_) == manage.DONE
    told = capsys.readouterr()
    assert "would be removed" in told.out
    assert "once more" in told.err
    restored.run()
    assert restored.pool() == {"node-1", "node-2", "node-3"}
    assert command(restored, "problems", "list", "--look") == manage.DONE
    assert restored.manager.leases.all(None) == ()
    lease = restored.lease(a_host(3))
    restored.run()
    assert restored.now(lease).status == "ACTIVE"


def test_what_is_on_record_or_nowhere_is_not_ended(restored):
    lease = restored.lease(a_host())
    restored.run()
    restored.manager.sweep.look()
    restored.clock.by(seconds=3601)
    for id_ in (lease.reservations[0].id, "no-such-reservation"):
        with pytest.raises(NotFound):
            restored.manager.problems.act(f"unknown::{id_}", ProblemAction.END, RepairRequest("x", False, id_))
    assert restored.now(lease).status != "DELETING"
