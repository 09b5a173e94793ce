# SPDX-License-Identifier: Apache-2.0
"""What a project gets of pools at the start, and that nothing of it is left at the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudRefused, Conflict, NotEnoughResources
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from tests.oracle import check_at_rest
from tests.world import NOON, PROJECT, World, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_pools(1, 2)
    return world


def in_cloud(world: World):
    """Return the volumes, the oldest first."""
    with world.simulated.inspect() as state:
        now = world.clock.now()
        return sorted((v for v in state.block.volumes.values() if not v.is_gone(now)), key=lambda v: v.name)


def quota(world: World, number: int) -> tuple[int, int] | None:
    """Return the GiB and volumes that the project may have of a pool; None without access."""
    with world.simulated.inspect() as state:
        found = next(each for each in state.block.types.values() if each.name == f"disks-{number}")
        limits = state.block.quotas.get(PROJECT, {})
        if PROJECT not in found.projects:
            return None
        return limits[f"gigabytes_{found.name}"], limits[f"volumes_{found.name}"]


def type_id(world: World, number: int) -> str:
    """Return the id of the type of a pool."""
    with world.simulated.inspect() as state:
        return next(each.id for each in state.block.types.values() if each.name == f"disks-{number}")


def change(world: World, lease, **values):
    """Change the first reservation of a lease."""
    wanted = ReservationChange(id=lease.reservations[0].id, parameters=values)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=(wanted,)))


def test_from_the_start_to_the_end_the_project_has_volumes(world):
    lease = world.lease(volumes(2, size=10, volume_type="disks-2", name="data"), start=HOUR)
    assert (in_cloud(world), quota(world, 2)) == ([], None)
    world.run_to(NOON + HOUR)
    found = in_cloud(world)
    assert [(v.name, v.project_id, v.size_gb, v.pool) for v in found] == [
        ("data-1", PROJECT, 10, "node@disks#2"),
        ("data-2", PROJECT, 10, "node@disks#2"),
    ]
    assert quota(world, 2) == (20, 2)
    shown = world.now(lease).reservations[0].shown
    assert set(shown["volume_ids"]) == {v.id for v in found}
    assert shown["volume_types"] == ["disks-2"]
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, in_cloud(world), quota(world, 2)) == (LeaseStatus.TERMINATED, [], None)


@pytest.mark.slow
def test_ids_are_stored_one_by_one_while_cinder_makes_the_volumes(world):
    world.simulated.durations.volume = MINUTE
    lease = world.lease(volumes(2))
    world.run_to(NOON)
    # The second is made after the id of the first is stored.
    assert len(in_cloud(world)) == 1
    assert world.now(lease).reservations[0].shown["volume_ids"] == [in_cloud(world)[0].id]
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert set(world.now(lease).reservations[0].shown["volume_ids"]) == {v.id for v in in_cloud(world)}


def test_in_the_mode_quota_the_project_makes_its_volumes_and_no_more(world):
    world.lease(volumes(2, size=5, mode="quota", volume_type="disks-1"))
    world.run_to(NOON)
    users = world.simulated.volume_users
    assert (in_cloud(world), quota(world, 1)) == ([], (10, 2))
    made = users.create(PROJECT, type_id(world, 1), 7)
    with pytest.raises(CloudRefused, match="quota"):
        users.create(PROJECT, type_id(world, 1), 4)
    world.run_to(NOON + 2 * HOUR)
    assert made.id not in {v.id for v in in_cloud(world)}
    assert quota(world, 1) is None


def test_the_quota_is_that_of_all_reservations_of_the_project(world):
    world.lease(volumes(1, volume_type="disks-1"), hours=2)
    world.lease(volumes(1, size=5, volume_type="disks-1"), hours=4)
    world.run_to(NOON)
    assert quota(world, 1) == (15, 2)
    world.run_to(NOON + 2 * HOUR)
    assert (quota(world, 1), [v.size_gb for v in in_cloud(world)]) == ((5, 1), [5])
    world.run_to(NOON + 4 * HOUR)
    assert (quota(world, 1), in_cloud(world)) == (None, [])


@pytest.mark.slow
def test_the_end_detaches_and_waits_for_deletions(world):
    lease = world.lease(volumes())
    world.run_to(NOON)
    (volume,) = in_cloud(world)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=None)
    world.simulated.volume_users.attach(volume.id, server.id)
    world.simulated.durations.deletion = 3 * MINUTE
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).reservations[0].status is ReservationStatus.ACTIVE
    assert [v.servers for v in in_cloud(world)] == [{}]
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, [])


@pytest.mark.slow
def test_a_root_volume_waits_until_its_server_is_gone(world):
    lease = world.lease(volumes())
    world.run_to(NOON)
    (volume,) = in_cloud(world)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=None)
    world.simulated.volume_users.attach(volume.id, server.id, root=True)
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    assert len(in_cloud(world)) == 1
    with world.simulated.change_state() as state:
        state.block.volumes[volume.id].servers.clear()
        state.block.volumes[volume.id].roots.clear()
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, [])


def test_what_users_write_in_metadata_is_no_proof(world):
    lease = world.lease(volumes(volume_type="disks-1"))
    stranger = "chemistry"
    with world.simulated.change_state() as state:
        state.block.types[type_id(world, 1)].projects.append(stranger)
    world.run_to(NOON)
    users = world.simulated.volume_users
    forged = users.create(stranger, type_id(world, 1), 1)
    users.rename(forged.id, metadata={"blazar:reservation": lease.reservations[0].id})
    # Nor is it needed: the volume of the reservation is known by its id.
    users.rename(next(v.id for v in in_cloud(world) if v.project_id == PROJECT))
    world.run_to(NOON + 2 * HOUR)
    assert [v.id for v in in_cloud(world)] == [forged.id]


@pytest.mark.slow
def test_volumes_grow_in_use_and_never_shrink(world):
    lease = world.lease(volumes(1, volume_type="disks-1"))
    world.run_to(NOON)
    (before,) = in_cloud(world)
    change(world, lease, size=15, amount=2)
    world.run_to(NOON + 5 * MINUTE)
    assert before.id in {v.id for v in in_cloud(world)}
    assert ([v.size_gb for v in in_cloud(world)], quota(world, 1)) == ([15, 15], (30, 2))
    with pytest.raises(Conflict, match="size cannot be 5"):
        change(world, lease, size=5)
    # A change of the size alone leaves the counts on the pool as they are.
    lease = world.lease(volumes(1, volume_type="disks-2", size=4))
    world.run()
    change(world, lease, size=6)
    world.run_to(NOON + 10 * MINUTE)
    assert (sorted(v.size_gb for v in in_cloud(world)), quota(world, 2)) == ([6, 15, 15], (6, 1))
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_pools_are_never_promised_twice(world):
    world.lease(volumes(6))
    with pytest.raises(NotEnoughResources):
        world.lease(volumes(1))


@pytest.mark.slow
def test_a_volume_that_its_users_have_deleted_is_not_made_again_unless_they_ask(world):
    lease = world.lease(volumes(2, volume_type="disks-1", name="data"))
    world.run_to(NOON)
    first, second = in_cloud(world)
    world.simulated.volume_users.delete(second.id)
    world.manager.leases.update(lease.id, LeaseChange(end=NOON + 4 * HOUR))
    change(world, lease, size=11)
    world.run_to(NOON + MINUTE)
    assert [(v.id, v.size_gb) for v in in_cloud(world)] == [(first.id, 11)]
    # A third one is one more, and one in place of the second takes two steps.
    change(world, lease, amount=1)
    change(world, lease, amount=2)
    world.run_to(NOON + 2 * MINUTE)
    assert [(v.name, v.size_gb) for v in in_cloud(world)] == [("data-1", 11), ("data-2", 11)]
    assert quota(world, 1) == (22, 2)
    check_at_rest(world.store, world.simulated, now=world.clock.now())
    world.run_to(NOON + 4 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, [])
