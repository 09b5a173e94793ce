# SPDX-License-Identifier: Apache-2.0
"""What users delete of what was made for them during the lease: it is told, and never guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.manager.leases import lifecycle
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import EventType
from tests.statements import counted
from tests.world import NOON, World, a_network, servers, volumes

MINUTE = timedelta(minutes=1)


@pytest.fixture
def lease(world) -> Lease:
    world.register_segments(1001)
    world.register_pools(1)
    made = world.lease(servers(2), volumes(2), a_network(), hours=4)
    world.run_to(NOON + 2 * MINUTE)
    return world.now(made)


def look(world: World) -> int:
    return world.manager.sweep.deleted.run_once()


def gone(world: World, lease: Lease):
    """Return the ids of what is gone of each reservation, with the minute in which that was seen."""
    return [{g.id: (g.since - NOON) // MINUTE for g in r.gone} for r in world.now(lease).reservations]


def delete_one_of_each(world: World, lease: Lease) -> list[str]:
    server, volume, network = (r.made_ids[0] for r in lease.reservations)
    world.simulated.compute.begin_server_deletion(server)
    world.simulated.volume_users.delete(volume)
    world.simulated.segments.delete_network(network)
    return [server, volume, network]


def test_while_everything_is_there_a_look_is_one_statement_and_changes_nothing(world, lease):
    assert [len(r.made_ids) for r in lease.reservations] == [2, 2, 1]
    with counted(world.engine) as statements:
        assert look(world) == 0
    assert statements.count == 1
    assert world.now(lease) == lease


def test_what_is_deleted_is_recorded_with_the_time_at_which_that_was_seen_first(world, lease):
    ids = delete_one_of_each(world, lease)
    assert look(world) == 1
    assert gone(world, lease) == [{id_: 2} for id_ in ids]
    world.run_to(NOON + 12 * MINUTE)
    assert look(world) == 0
    assert gone(world, lease) == [{id_: 2} for id_ in ids]
    assert not world.now(lease).degraded


def test_what_a_list_lacks_is_looked_up_by_its_id(world, lease, monkeypatch):
    everything = world.simulated.segments.segment_networks
    monkeypatch.setattr(world.simulated.compute, "servers_of_flavor", lambda _: ())
    monkeypatch.setattr(world.simulated.volumes, "service_volumes", lambda: ())
    monkeypatch.setattr(
        world.simulated.segments, "segment_networks", lambda **asked: everything(**asked) if asked else ()
    )
    assert look(world) == 0


def test_what_a_service_does_not_tell_is_not_gone_and_the_others_are_looked_at(world, lease):
    ids = delete_one_of_each(world, lease)
    world.faults.fail_before("servers_of_flavor", CloudUnavailable("down"))
    assert look(world) == 1
    assert [list(each) for each in gone(world, lease)] == [[], [ids[1]], [ids[2]]]
    world.faults.fail_before("service_volumes", CloudUnavailable("down"))
    assert look(world) == 1
    assert [list(each) for each in gone(world, lease)] == [[id_] for id_ in ids]


def test_what_is_seen_again_is_not_gone(world, lease, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(world.simulated.volumes, "service_volumes", lambda: ())
        patched.setattr(world.simulated.volumes, "volume", lambda _: None)
        assert look(world) == 1
    assert len(gone(world, lease)[1]) == 2
    assert look(world) == 1
    assert gone(world, lease)[1] == {}


def test_a_lease_that_is_being_worked_on_is_looked_at_later(world, lease):
    delete_one_of_each(world, lease)
    end = lease.event(EventType.END)
    due = replace(end, claimed_by="other", due_at=NOON + 5 * MINUTE)
    busy = world.store.leases.save(lease, lifecycle.with_event(lease, due), at=world.clock.now())
    assert look(world) == 0
    assert world.now(lease) == busy


def test_a_lease_that_is_ending_or_has_not_begun_is_left_alone(world):
    later = world.lease(servers(), start=timedelta(hours=1))
    assert look(world) == 0
    world.run_to(NOON + timedelta(hours=4))
    assert look(world) == 0
    assert gone(world, later) == [{}]


def test_what_is_known_to_be_gone_survives_a_change(world, lease):
    ids = delete_one_of_each(world, lease)
    look(world)
    world.manager.leases.update(lease.id, LeaseChange(end=NOON + 300 * MINUTE))
    assert [list(each) for each in gone(world, lease)] == [[id_] for id_ in ids]
