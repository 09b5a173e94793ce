# SPDX-License-Identifier: Apache-2.0
"""What is saved of volumes before the end, and what of a request is looked up in the cloud."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.simulated.state import BootImageState
from blazar.model.base.errors import CloudUnavailable, InvalidInput, NotFound
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from tests.world import NOON, PROJECT, World, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LEAD = HOUR
"""From the event before the end to the end."""


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_pools(1, 2)
    with world.simulated.change_state() as state:
        state.block.backups = True
    return world


def copies(world: World) -> list[str]:
    """Return the names of the images and backups of volumes of the project."""
    with world.simulated.inspect() as state:
        made = [*state.images.values(), *(b for b in state.block.copies.values() if not b.fails)]
        return sorted(each.name for each in made if each.project_id == PROJECT)


def ids(world: World, lease) -> list[str]:
    """Return the ids of the volumes of the first reservation."""
    return world.now(lease).reservations[0].shown["volume_ids"]


def event(world: World, lease):
    """Return the event before the end."""
    return world.now(lease).event(EventType.BEFORE_END)


def change(world: World, lease, **values):
    """Change the first reservation of a lease."""
    wanted = ReservationChange(id=lease.reservations[0].id, parameters=values)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=(wanted,)))


@pytest.mark.slow
@pytest.mark.parametrize(("action", "shown"), [("snapshot", "image_ids"), ("backup", "backup_ids")])
def test_each_volume_is_copied_before_the_end_and_the_copies_survive_it(world, action, shown):
    world.simulated.durations.snapshot = 3 * MINUTE
    lease = world.lease(volumes(2, before_end=action, name="data"))
    world.run_to(NOON + HOUR + MINUTE)
    made = sorted(f"reserved_data-{id_}" for id_ in ids(world, lease))
    assert copies(world) == made
    assert event(world, lease).status is EventStatus.IN_PROGRESS
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert event(world, lease).status is EventStatus.DONE
    reservation = world.now(lease).reservations[0].shown
    assert len(reservation[shown]) == 2
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert copies(world) == made
    with world.simulated.inspect() as state:
        assert not state.block.volumes


@pytest.mark.parametrize(("action", "call"), [("snapshot", "begin_upload"), ("backup", "begin_backup")])
def test_a_copy_whose_answer_was_lost_is_made_once(world, action, call):
    lease = world.lease(volumes(before_end=action))
    world.faults.fail_after(call, CloudUnavailable("no answer"))
    world.run_to(NOON + 2 * HOUR - MINUTE)
    assert event(world, lease).status is EventStatus.DONE
    assert copies(world) == [f"reserved_volume-{ids(world, lease)[0]}"]


@pytest.mark.slow
@pytest.mark.parametrize("action", ["snapshot", "backup"])
def test_a_copy_that_fails_is_made_again_but_not_for_ever(world, action):
    lease = world.lease(volumes(before_end=action))
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        state.block.failing = 2
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert event(world, lease).status is EventStatus.DONE
    other = world.lease(volumes(before_end=action), hours=4)
    with world.simulated.change_state() as state:
        state.block.failing = 100
    world.run_to(NOON + 8 * HOUR)
    assert "could not be copied, 3 times" in event(world, other).reason
    with world.simulated.inspect() as state:
        assert state.block.failing == 97
    assert world.now(other).status is LeaseStatus.TERMINATED


def test_no_image_is_made_of_an_attached_volume_until_it_is_detached(world):
    lease = world.lease(volumes(before_end="snapshot"))
    world.run_to(NOON)
    (volume,) = ids(world, lease)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=None)
    world.simulated.volume_users.attach(volume, server.id)
    world.run_to(NOON + HOUR + MINUTE)
    assert "detach it first" in event(world, lease).reason
    assert copies(world) == []
    world.simulated.cloud.volumes.begin_detachment(volume, server.id)
    world.run_to(NOON + 2 * HOUR - MINUTE)
    assert copies(world) == [f"reserved_volume-{volume}"]


def test_a_backup_is_made_of_an_attached_volume(world):
    lease = world.lease(volumes(before_end="backup"))
    world.run_to(NOON)
    (volume,) = ids(world, lease)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=None)
    world.simulated.volume_users.attach(volume, server.id)
    world.run_to(NOON + HOUR + MINUTE)
    assert copies(world) == [f"reserved_volume-{volume}"]


@pytest.mark.slow
def test_the_end_waits_for_a_copy_that_takes_long(world):
    world.simulated.durations.snapshot = HOUR + 5 * MINUTE
    lease = world.lease(volumes(before_end="snapshot"))
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 2 * HOUR + 10 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert event(world, lease).status is EventStatus.DONE


def test_a_volume_that_is_gone_needs_no_copy(world):
    lease = world.lease(volumes(before_end="snapshot"))
    world.run_to(NOON)
    world.simulated.volume_users.delete(ids(world, lease)[0])
    world.run_to(NOON + 2 * HOUR)
    assert (event(world, lease).status, copies(world)) == (EventStatus.DONE, [])


@pytest.mark.slow
def test_a_volume_does_not_grow_while_it_is_copied(world):
    world.simulated.durations.snapshot = 10 * MINUTE
    lease = world.lease(volumes(1, size=5, before_end="snapshot"), hours=3)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    changed = change(world, lease, size=6)
    assert changed.reservations[0].missing_resources
    assert "is uploading" in changed.event(EventType.UPDATE).reason
    world.run_to(NOON + 2 * HOUR + 20 * MINUTE)
    assert (event(world, lease).status, len(copies(world))) == (EventStatus.DONE, 1)
    world.manager.monitor.heal()
    assert not world.now(lease).degraded
    with world.simulated.inspect() as state:
        assert [v.size_gb for v in state.block.volumes.values()] == [6]


def test_a_backup_needs_a_service_that_makes_it(world):
    with world.simulated.change_state() as state:
        state.block.backups = False
    with pytest.raises(InvalidInput, match="no service for backups") as raised:
        world.lease(volumes(before_end="backup"))
    assert raised.value.pointer == "/reservations/0/before_end"
    lease = world.lease(volumes())
    with pytest.raises(InvalidInput, match="no service for backups"):
        change(world, lease, before_end="backup")
    assert change(world, lease, before_end="snapshot")


def test_a_transfer_is_refused_with_the_reason(world):
    with pytest.raises(InvalidInput, match="would stay on the pool"):
        world.lease(volumes(before_end="transfer"))
    with pytest.raises(InvalidInput, match="save yours yourself"):
        world.lease(volumes(before_end="snapshot", mode="quota"))


def images(world: World, *made: BootImageState) -> None:
    """Add images to the cloud."""
    with world.simulated.change_state() as state:
        state.boot.images |= {each.id: each for each in made}


def test_an_image_is_looked_up_as_the_project_sees_it(world):
    images(
        world,
        BootImageState("mine", project_id=PROJECT, min_disk_gb=8),
        BootImageState("foreign", project_id="another"),
        BootImageState("half", status="saving"),
    )
    for image in ("none", "foreign"):
        with pytest.raises(NotFound, match=f'no image "{image}" that your project can use'):
            world.lease(volumes(image=image))
    with pytest.raises(InvalidInput, match="is saving"):
        world.lease(volumes(image="half"))
    with pytest.raises(InvalidInput, match="needs 8 GiB") as raised:
        world.lease(volumes(size=7, image="mine"))
    assert raised.value.pointer == "/reservations/0/size"
    lease = world.lease(volumes(size=10, image="mine"), start=HOUR)
    with pytest.raises(InvalidInput, match="needs 8 GiB"):
        change(world, lease, size=7)
    assert change(world, lease, size=8).reservations[0].parameters.values["size"] == 8
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
