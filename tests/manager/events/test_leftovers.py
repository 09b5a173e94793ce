# SPDX-License-Identifier: Apache-2.0
"""After a backup was restored, an operator lists what is not on record, and gives it back to the cloud."""

from __future__ import annotations

import pytest

from blazar.cmd.leftovers import report
from blazar.model.base.errors import NotFound
from tests.tables import contents, fill, new_sqlite
from tests.world import World, a_host, instances

LEFT = ("1 reservation is not on record, and has", "0 reservations are not on record, and have")


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
    return sorted(each.reservations[0].id for each in world.lost)


def test_what_is_not_on_record_is_listed_and_stays(restored):
    before = restored.pool()
    assert [each.reservation_id for each in restored.manager.leftovers.all()] == ids(restored)
    lines = list(report(restored.manager.leftovers, (), dry_run=False))
    assert lines[-1] == "2 reservations are not on record, and have something in the cloud"
    first, _ = ids(restored)
    (line,) = report(restored.manager.leftovers, [first], dry_run=True)
    assert line == f"{first} would be ended"
    restored.run()
    assert restored.pool() == before


def test_what_an_operator_ends_is_given_back_and_others_can_have_it(restored):
    assert len(restored.pool()) < 3
    for id_ in ids(restored):
        (line,) = report(restored.manager.leftovers, [id_], dry_run=False)
        assert "managers remove now" in line
        left = list(report(restored.manager.leftovers, (), dry_run=False))[-1]
        assert left == f"{LEFT[ids(restored).index(id_)]} something in the cloud"
    restored.run()
    assert restored.pool() == {"node-1", "node-2", "node-3"}
    assert restored.manager.leftovers.all() == ()
    assert restored.manager.leases.all(None) == ()
    lease = restored.lease(a_host(3))
    restored.run()
    assert restored.now(lease).status == "ACTIVE"


def test_what_is_on_record_or_nowhere_is_not_ended(restored):
    lease = restored.lease(a_host())
    restored.run()
    for id_ in (lease.reservations[0].id, "no-such-reservation"):
        with pytest.raises(NotFound):
            restored.manager.leftovers.end(id_)
    assert restored.now(lease).status != "DELETING"
