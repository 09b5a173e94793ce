# SPDX-License-Identifier: Apache-2.0
"""Faults in the life of volumes: whatever fails, in the end the lease has its volumes, and then nothing is left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.base.errors import CloudUnavailable, NotEnoughResources
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import VOLUME
from tests.oracle import check_at_rest
from tests.world import NOON, PROJECT, World, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
OUTAGE = CloudUnavailable("Cinder failed with 503")
READS = ("volume_type", "volume_type_access", "volume_quota", "volumes_of_type", "backups_of", "volume")
CHANGES = (
    "grant_volume_type",
    "set_volume_quota",
    "begin_volume",
    "begin_backup",
    "begin_volume_deletion",
    "revoke_volume_type",
)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_pools(1)
    with world.simulated.change_state() as state:
        state.block.backups = True
    return world


@pytest.mark.slow
@pytest.mark.parametrize("call", [*READS, *CHANGES])
def test_an_outage_at_any_call_delays_a_lease_and_leaves_nothing(world, call):
    world.simulated.durations.volume = world.simulated.durations.deletion = timedelta(seconds=5)
    lease = world.lease(volumes(2, size=5, before_end="backup"), start=HOUR)
    # What is changed although the answer is lost is the worse of the two.
    plan = world.faults.fail_before if call in READS else world.faults.fail_after
    plan(call, OUTAGE, 3)
    world.run_to(NOON + HOUR + 20 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    check_at_rest(world.store, world.simulated, now=world.clock.now())
    plan(call, OUTAGE, 3)
    world.run_to(NOON + 5 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE
    check_at_rest(world.store, world.simulated, now=world.clock.now())
    with world.simulated.inspect() as state:
        assert len(state.block.copies) == 2


def test_a_start_that_the_projects_quota_refuses_waits_for_its_users(world):
    lease = world.lease(volumes(2, size=5))
    world.simulated.volume_users.limit(PROJECT, volumes=1)
    world.run_to(NOON + MINUTE)
    start = world.now(lease).event(EventType.START)
    assert "the project may have no more volumes" in start.reason
    before = world.faults.calls["begin_volume"]
    world.run_to(NOON + 31 * MINUTE)
    assert world.faults.calls["begin_volume"] - before <= 6
    world.simulated.volume_users.limit(PROJECT, volumes=-1)
    world.run_to(NOON + 40 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
def test_a_lease_whose_quota_never_suffices_ends_clean(world):
    lease = world.lease(volumes(2, size=5))
    world.simulated.volume_users.limit(PROJECT, volumes=1)
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status in (LeaseStatus.TERMINATED, LeaseStatus.ERROR)
    with world.simulated.inspect() as state:
        assert not state.block.volumes
        assert not any(each.projects for each in state.block.types.values())


@pytest.mark.slow
def test_a_lease_that_is_deleted_while_its_volumes_are_made_leaves_nothing(world):
    world.simulated.durations.volume = 10 * MINUTE
    lease = world.lease(volumes(2, size=5))
    world.run_to(NOON + MINUTE)
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + HOUR)
    with world.simulated.inspect() as state:
        assert not state.block.volumes
        assert not any(each.projects for each in state.block.types.values())
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_two_leases_of_a_project_that_touch_share_one_quota_without_a_gap(world):
    first = world.lease(volumes(1, size=10), hours=1)
    second = world.lease(volumes(1, size=15), start=HOUR, hours=1)
    world.run_to(NOON + HOUR + MINUTE)
    assert (world.now(first).status, world.now(second).status) == (LeaseStatus.TERMINATED, LeaseStatus.ACTIVE)
    check_at_rest(world.store, world.simulated, now=world.clock.now())
    with world.simulated.inspect() as state:
        assert state.block.quotas[PROJECT]["gigabytes_disks-1"] == 15


@pytest.mark.slow
def test_a_lease_starts_as_soon_as_the_volumes_of_the_projects_former_lease_are_gone(world):
    world.simulated.durations.deletion = timedelta(seconds=20)
    world.lease(volumes(1, size=10), hours=1)
    second = world.lease(volumes(1, size=15), start=HOUR, hours=1)
    world.run_to(NOON + HOUR + timedelta(seconds=10))
    assert "former reservation" in world.now(second).event(EventType.START).reason
    world.run_to(NOON + HOUR + timedelta(seconds=30))
    assert world.now(second).status is LeaseStatus.ACTIVE
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_a_thin_pool_is_promised_as_often_as_its_ratio_allows(world):
    pool = PoolState("node@disks#2", "disks", "2", 20, ratio=2.0)
    world.simulated.volume_users.add_pool(pool, type_name="disks-2")
    given = {"pool": pool.name, "volume_type": "disks-2", "gigabytes": 40}
    world.manager.resources.register(VOLUME, Registration(given))
    lease = world.lease(volumes(4, size=10, volume_type="disks-2"))
    with pytest.raises(NotEnoughResources):
        world.lease(volumes(1, size=1, volume_type="disks-2"))
    world.run_to(NOON + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
def test_what_users_make_with_the_quota_goes_with_its_snapshots(world):
    lease = world.lease(volumes(3, size=10, mode="quota"))
    world.run_to(NOON)
    (type_,) = world.simulated.cloud.volumes.volume_types()
    made = world.simulated.volume_users.create(PROJECT, type_.id, 10)
    world.simulated.volume_users.snapshot(made.id)
    server = world.simulated.users.boot_server("work", project_id="another", user_id="eve", host=None)
    world.simulated.volume_users.attach(made.id, server.id, root=True)
    world.run_to(NOON + 3 * HOUR)
    # A server that has booted from it has to go first, and the event says so.
    assert "cannot be deleted yet" in world.now(lease).event(EventType.END).reason
    world.simulated.compute.begin_server_deletion(server.id)
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    check_at_rest(world.store, world.simulated, now=world.clock.now())
