# SPDX-License-Identifier: Apache-2.0
"""At the end the addresses are detached and gone."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import CloudRefused
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.resources.resource import FLOATING_IP
from blazar.resources.floating_ips.type import VirtualFloatingIp
from tests.resources.floating_ips.steps import DOWN, HOUR, MINUTE, created, in_cloud
from tests.world import NOON, addresses


def test_at_the_end_every_address_is_detached_and_gone_and_free_for_the_next(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    world.simulated.users.attach(in_cloud(world)[10].id)
    following = world.lease(addresses(required=[10]), start=2 * HOUR, project="art")
    other = created(world, 50, project="art")
    world.run_to(NOON + 2 * HOUR)
    ended = world.now(lease)
    assert (ended.status, ended.event(EventType.END).status) == (LeaseStatus.TERMINATED, EventStatus.DONE)
    assert world.now(following).status is LeaseStatus.ACTIVE
    assert {n: f.project_id for n, f in in_cloud(world).items()} == {10: "art", 50: "art"}
    assert in_cloud(world)[50] == other


def test_marks_that_cannot_be_ids_of_reservations_hide_no_address(world):
    lease = world.lease(addresses(1))
    world.run()
    (found,) = in_cloud(world).values()
    false = [f"reservation:{text}" for text in ("", "\0", "\n", "!" * 37)]
    world.simulated.network.set_address_tags(found.id, [*found.tags, *false])
    registered = world.manager.resources.all(FLOATING_IP)
    assert VirtualFloatingIp(world.simulated.cloud).reservations_in_cloud(registered) == {lease.reservations[0].id}


def test_addresses_that_their_users_deleted_keep_no_end_waiting(world):
    lease = world.lease(addresses(2))
    world.run()
    gone, stays = in_cloud(world).values()
    world.simulated.network.delete_floating_ip(gone.id)
    world.simulated.network.set_address_tags(stays.id, [])
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["floating_ips", "detach_floating_ip", "delete_floating_ip"])
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("error", [DOWN, CloudRefused("not now")], ids=["down", "refused"])
def test_an_end_is_tried_again_until_nothing_is_left(world, call, phase, error):
    lease = world.lease(addresses(3))
    world.run()
    for found in in_cloud(world).values():
        world.simulated.users.attach(found.id)
    getattr(world.faults, f"fail_{phase}")(call, error, times=2)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    world.faults.clear()
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


def test_one_address_that_cannot_be_deleted_keeps_the_others_not_waiting(world):
    world.lease(addresses(3))
    world.run()
    world.faults.fail_before("delete_floating_ip", CloudRefused("not this one"))
    world.clock.to(NOON + 2 * HOUR)
    world.run()
    assert len(in_cloud(world)) == 1


def test_a_pending_lease_that_is_deleted_deletes_nothing_of_the_one_before(world):
    active = world.lease(addresses(required=[10]), project="art")
    world.run()
    pending = world.lease(addresses(required=[10]), start=3 * HOUR)
    before = in_cloud(world)
    world.manager.leases.delete(pending.id)
    world.run()
    assert in_cloud(world) == before
    assert before[10].project_id == "art"
    # The same of one and the same project.
    own = world.lease(addresses(required=[10]), start=3 * HOUR, project="art")
    world.manager.leases.delete(own.id)
    world.run()
    assert in_cloud(world) == before
    assert world.now(active).status is LeaseStatus.ACTIVE
