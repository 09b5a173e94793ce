# SPDX-License-Identifier: Apache-2.0
"""Hosts that can be emptied for a lease: everybody's servers use them until then, and no other lease gets them."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from tests.world import World, a_host


@pytest.fixture
def bare(a_world) -> World:
    return a_world(hosts=4, register=False)


def evacuable(world: World, name: str):
    return world.manager.resources.register(HOST, Registration({"name": name, "evacuable": True}))


def test_one_with_servers_can_be_registered_and_stays_out_of_the_freepool(bare):
    bare.simulated.users.boot_server("busy", project_id="p", user_id="u", host="node-1")
    host = evacuable(bare, "node-1")
    assert (host.evacuable, host.reservable, host.attributes["evacuable"]) == (True, False, True)
    assert bare.pool() == frozenset()
    bare.simulated.users.boot_server("too", project_id="p", user_id="u", host="node-2")
    with pytest.raises(Conflict, match="runs 1 server"):
        bare.manager.resources.register(HOST, Registration({"name": "node-2", "evacuable": False}))


def test_no_other_lease_gets_it(bare):
    evacuable(bare, "node-1")
    bare.register("node-2")
    with pytest.raises(NotEnoughResources):
        bare.lease(a_host(2))
    bare.lease(a_host())
    with pytest.raises(NotEnoughResources):
        bare.lease(a_host())


def test_it_is_well_outside_of_all_aggregates(bare):
    host = evacuable(bare, "node-1")
    bare.manager.monitor.run_once()
    assert bare.manager.resources.one(HOST, host.external_id).failure is None
    refreshed = bare.manager.resources.refresh(HOST, host.external_id)
    assert (refreshed.failure, refreshed.evacuable) == (None, True)
    assert bare.pool() == frozenset()
    bare.simulated.operators.host_down("node-1")
    for _ in range(2):
        bare.manager.monitor.run_once()
    assert "down" in bare.manager.resources.one(HOST, host.external_id).failure


def test_it_leaves_the_freepool_when_it_is_registered(bare):
    bare.register("node-1")
    (host,) = bare.manager.resources.all(HOST)
    bare.store.resources.withdraw(host.id, at=bare.clock.now())
    bare.store.resources.retire(host.id, at=bare.clock.now())
    assert bare.pool() == {"node-1"}
    evacuable(bare, "node-1")
    assert bare.pool() == frozenset()


def test_it_can_be_unregistered_with_servers(bare):
    host = evacuable(bare, "node-1")
    bare.simulated.users.boot_server("busy", project_id="p", user_id="u", host="node-1")
    bare.manager.resources.unregister(HOST, host.external_id)
    assert bare.manager.resources.all(HOST) == ()


def test_what_is_no_truth_is_refused(bare):
    with pytest.raises(InvalidInput, match="evacuable is .yes.; give true or false"):
        bare.manager.resources.register(HOST, Registration({"name": "node-1", "evacuable": "yes"}))
