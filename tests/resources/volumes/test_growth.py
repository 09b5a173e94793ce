# SPDX-License-Identifier: Apache-2.0
"""Volumes grow only when the booking of their new size is final: they cannot shrink, so that could not be undone."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from blazar.model.base.errors import (
    BlazarError,
    CloudRefused,
    CloudUnavailable,
    Conflict,
    NotEnoughResources,
    StoreUnavailable,
)
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.search.availability import AvailabilityQuestion
from blazar.resources.volumes.registration import GIGABYTES
from tests.oracle import check_at_rest
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, volumes

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


class Died(BaseException):
    """The manager process is killed."""


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_pools(1)
    return world


def grown(world: World) -> list[int]:
    """Return the sizes of the volumes."""
    with world.simulated.inspect() as state:
        return sorted(v.size_gb for v in state.block.volumes.values())


def in_use(world: World) -> Lease:
    """Return a lease with two volumes of 10 GiB, in use on a pool of 30."""
    lease = world.lease(volumes(2, size=10), hours=8)
    world.run_to(NOON)
    assert grown(world) == [10, 10]
    return lease


def growth(lease: Lease, size: int) -> ReservationChange:
    """Return the change of the first reservation to volumes of another size."""
    return ReservationChange(id=lease.reservations[0].id, parameters={"size": size})


def fail_from(world: World, name: str, error: BaseException, number: int) -> None:
    """Let each call of this name fail, from this one on."""
    before = world.faults.calls[name]

    def hook(called: str, phase: str) -> None:
        if (called, phase) == (name, "before") and world.faults.calls[name] - before >= number:
            raise error

    world.faults.on_call = hook


def never_promised_twice(world: World) -> None:
    """What is in use is promised: the rest of the pool, and no more, can be promised to others."""
    booked = world.store.calendar.of_lease(world.store.leases.of_project(None)[0].id)
    promised = sum(a.amounts.get(GIGABYTES) for a in booked if a.amounts)
    assert sum(grown(world)) <= promised
    with pytest.raises(NotEnoughResources):
        world.lease(volumes(1, size=30 - promised + 1), start=HOUR)


def heal(world: World) -> None:
    """Let time pass in which managers see to what leases lack."""
    world.run_to(world.clock.now() + 15 * MINUTE)
    world.manager.monitor.heal(at_once=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [CloudUnavailable("Cinder failed with 503"), CloudRefused("the project may have no more GiB")]
)
def test_what_has_grown_stays_promised_and_the_rest_grows_later(world, error):
    lease = in_use(world)
    fail_from(world, "begin_volume_growth", error, 2)
    changed = world.resize(lease, size=12)
    # The change is made, and says that something of it is missing.
    assert (changed.status, changed.reservations[0].parameters.values["size"]) == (LeaseStatus.ACTIVE, 12)
    assert (changed.degraded, changed.reservations[0].missing_resources) == (True, True)
    assert grown(world) == [10, 12]
    never_promised_twice(world)
    world.faults.clear()
    heal(world)
    assert grown(world) == [12, 12]
    assert not world.now(lease).degraded
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
def test_a_growth_without_faults_is_complete_when_the_change_is_answered(world):
    lease = in_use(world)
    changed = world.resize(lease, size=15)
    assert (grown(world), changed.degraded, changed.reservations[0].missing_resources) == ([15, 15], False, False)
    assert changed == world.now(lease)
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
def test_volumes_in_use_grow_only_into_what_is_promised_to_nobody_else(world):
    lease = in_use(world)
    world.lease(volumes(1, size=4), hours=2)
    growth = ReservationChange(id=lease.reservations[0].id, parameters={"size": 14})
    asked = AvailabilityQuestion(Actor("curie", PROJECT), lease_id=lease.id, changes=(growth,), end=lease.window.end)
    assert world.manager.availability.find(asked).openings == ()
    with pytest.raises(NotEnoughResources):
        world.resize(lease, size=14)
    assert world.now(lease).reservations[0].parameters.values["size"] == 10
    assert world.resize(lease, size=13).reservations[0].parameters.values["size"] == 13
    check_promises(world.store, since=world.clock.now())


def sent(world: World, before: int) -> list[str]:
    """Return which notifications have been sent, after so many."""
    return world.notifier.types[before:]


@pytest.mark.slow
def test_a_growth_without_faults_is_one_change_to_those_who_are_notified(world):
    lease = in_use(world)
    before = len(world.notifier.told)
    world.resize(lease, size=12)
    assert sent(world, before) == ["lease.update"]
    (_, told), *_ = world.notifier.told[before:]
    assert (told.degraded, told.reservations[0].parameters.values["size"]) == (False, 12)


def squeeze(world, **limits):
    """Let the project have less than a change needs, which shows only when it grows: before it cannot be read."""
    world.simulated.volume_users.limit(PROJECT, **limits)
    world.faults.fail_before("volume_quotas", CloudRefused("for operators only"), times=1)


@pytest.mark.slow
def test_what_does_not_grow_at_once_is_notified_once_and_again_when_it_has_grown(world):
    lease = in_use(world)
    before = len(world.notifier.told)
    squeeze(world, gigabytes=22)
    world.resize(lease, size=12)
    assert sent(world, before) == ["lease.update", "lease.degraded"]
    heal(world)
    world.simulated.volume_users.limit(PROJECT, gigabytes=-1)
    heal(world)
    assert sent(world, before) == ["lease.update", "lease.degraded", "lease.healed"]


@pytest.mark.slow
def test_a_change_that_completes_an_earlier_one_is_notified_as_healing(world):
    lease = in_use(world)
    squeeze(world, gigabytes=22)
    world.resize(lease, size=12)
    world.simulated.volume_users.limit(PROJECT, gigabytes=-1)
    before = len(world.notifier.told)
    world.change(lease, end=NOON + 9 * HOUR)
    assert sent(world, before) == ["lease.update", "lease.healed"]


@pytest.mark.slow
def test_a_quota_that_refuses_the_growth_is_tried_again_when_it_is_raised(world):
    lease = in_use(world)
    squeeze(world, gigabytes=22)
    world.resize(lease, size=12)
    assert grown(world) == [10, 12]
    heal(world)
    assert (grown(world), world.now(lease).degraded) == ([10, 12], True)
    never_promised_twice(world)
    world.simulated.volume_users.limit(PROJECT, gigabytes=-1)
    heal(world)
    assert (grown(world), world.now(lease).degraded) == ([12, 12], False)


def test_one_volume_that_cannot_grow_does_not_keep_the_others_from_it(world):
    lease = in_use(world)
    with world.simulated.change_state() as state:
        bad = next(iter(state.block.volumes.values()))
        bad.offered = True
    world.resize(lease, size=12)
    assert grown(world) == [10, 12]
    never_promised_twice(world)


@pytest.mark.slow
def test_each_change_tries_the_growth_again(world):
    lease = in_use(world)
    squeeze(world, gigabytes=22)
    world.resize(lease, size=12)
    world.simulated.volume_users.limit(PROJECT, gigabytes=-1)
    changed = world.change(lease, end=NOON + 9 * HOUR)
    assert (grown(world), changed.degraded) == ([12, 12], False)


def test_a_change_that_is_undone_has_grown_nothing(world):
    lease = in_use(world)
    fail_from(world, "begin_volume", CloudUnavailable("Cinder failed with 503"), 1)
    with pytest.raises(BlazarError):
        world.resize(lease, size=10, amount=3)
    with pytest.raises(NotEnoughResources):
        world.resize(lease, size=11, amount=3)
    lease = world.resize(lease, size=10)
    world.faults.clear()
    assert (grown(world), world.now(lease).reservations[0].parameters.values["size"]) == ([10, 10], 10)
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1])
def test_volumes_in_use_grow_no_further_than_the_pool_has_room(world, others):
    lease = in_use(world)
    for _ in range(others):
        world.lease(volumes(1, size=6), start=HOUR)
    size = 12 if others else 15
    question = AvailabilityQuestion(
        Actor("curie", PROJECT), lease_id=lease.id, changes=(growth(lease, size + 1),), end=NOON + 8 * HOUR
    )
    assert world.manager.availability.find(question).openings == ()
    with pytest.raises(NotEnoughResources, match="too little of it is free"):
        world.resize(lease, size=size + 1)
    assert grown(world) == [10, 10]
    world.resize(lease, size=size)
    assert grown(world) == [size, size]


@pytest.mark.slow
def test_of_two_reservations_that_grow_together_neither_takes_the_room_of_the_other(world):
    lease = world.lease(volumes(1, size=10), volumes(1, size=10), hours=8)
    world.run_to(NOON)
    changes = tuple(ReservationChange(id=each.id, parameters={"size": 16}) for each in lease.reservations)
    with pytest.raises(NotEnoughResources):
        world.change(lease, reservations=changes)
    world.change(lease, reservations=changes[:1])
    assert grown(world) == [10, 16]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["set_volume_quota", "begin_volume_growth", "volumes_of_type"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_manager_that_dies_leaves_nothing_in_use_that_is_not_promised(world, call, number):
    lease = in_use(world)
    fail_from(world, call, Died(), number)
    with suppress(Died):
        world.resize(lease, size=12)
    world.faults.clear()
    assert sum(grown(world)) <= 24
    for _ in range(3):
        heal(world)
    size = world.now(lease).reservations[0].parameters.values["size"]
    assert (grown(world), world.now(lease).degraded) == ([size, size], False)
    never_promised_twice(world)
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_a_lease_whose_volumes_cannot_grow_ends_clean(world):
    lease = in_use(world)
    fail_from(world, "begin_volume_growth", CloudUnavailable("Cinder failed with 503"), 2)
    world.resize(lease, size=12)
    world.run_to(NOON + 9 * HOUR)
    assert (world.now(lease).status, grown(world)) == (LeaseStatus.TERMINATED, [])


@pytest.mark.slow
def test_a_change_that_is_made_is_not_refused_if_nothing_is_known_of_the_growth(world, monkeypatch):
    lease = in_use(world)
    leases, one = world.store.leases, world.store.leases.one

    def away(*args, **more):
        raise StoreUnavailable("the database does not answer")

    # From the first growth on.
    world.faults.on_call = lambda called, _: (
        called == "begin_volume_growth" and monkeypatch.setattr(leases, "one", away)
    )
    changed = world.resize(lease, size=12)
    monkeypatch.setattr(leases, "one", one)
    assert changed.reservations[0].parameters.values["size"] == 12
    assert world.now(lease).reservations[0].parameters.values["size"] == 12


def quota(world: World, number: int) -> tuple[int, int]:
    """Return how many GiB and volumes of a pool's type the project may have."""
    with world.simulated.inspect() as state:
        limits = state.block.quotas[PROJECT]
        return limits[f"gigabytes_disks-{number}"], limits[f"volumes_disks-{number}"]


def quotas_from_now(world: World, *numbers: int) -> dict[int, list[tuple[int, int]]]:
    """Return what the quotas of pools will be after each call that sets one."""
    seen: dict[int, list[tuple[int, int]]] = {number: [] for number in numbers}

    def hook(called: str, phase: str) -> None:
        if (called, phase) == ("set_volume_quota", "after"):
            for number, found in seen.items():
                found.append(quota(world, number))

    world.faults.on_call = hook
    return seen


@pytest.mark.slow
def test_a_change_that_is_undone_never_lets_the_project_have_more_than_the_change_makes(world):
    """What users made in that moment would be theirs: the pool is promised to others then."""
    world.register_pools(2)
    room = volumes(2, size=5, mode="quota", volume_type="disks-1"), volumes(1, size=10, volume_type="disks-2")
    lease = world.lease(*room, hours=8)
    world.run_to(NOON)
    seen = quotas_from_now(world, 1, 2)
    squeeze(world, volumes=1)
    by_id = zip(lease.reservations, ({"size": 9}, {"size": 12, "amount": 2}), strict=True)
    change = LeaseChange(reservations=tuple(ReservationChange(id=each.id, parameters=values) for each, values in by_id))
    with pytest.raises(Conflict, match="no more volumes.*ask for a larger quota"):
        world.manager.leases.update(lease.id, change)
    assert set(seen[1]) == {(10, 2)}
    assert (max(seen[2]), seen[2][-1]) == ((22, 2), (10, 1))
    world.faults.clear()
    check_at_rest(world.store, world.simulated, now=world.clock.now())
    # When nothing refuses it, all is there when the change is answered.
    world.simulated.volume_users.limit(PROJECT, volumes=-1)
    assert not world.manager.leases.update(lease.id, change).degraded
    assert (quota(world, 1), quota(world, 2), grown(world)) == ((18, 2), (24, 2), [12, 12])
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_a_quota_grows_when_the_change_is_final(world):
    lease = world.lease(volumes(2, size=5, mode="quota"), hours=8)
    world.run_to(NOON)
    fail_from(world, "set_volume_quota", CloudUnavailable("Cinder failed with 503"), 1)
    changed = world.resize(lease, size=6)
    assert (changed.reservations[0].missing_resources, quota(world, 1)) == (True, (10, 2))
    world.faults.clear()
    heal(world)
    assert (world.now(lease).degraded, quota(world, 1)) == (False, (12, 2))


@pytest.mark.slow
def test_reservations_of_one_pool_get_their_quota_together_when_the_change_is_final(world):
    room = volumes(2, size=3), volumes(2, size=2, mode="quota")
    lease = world.lease(*room, hours=8)
    world.run_to(NOON)
    seen = quotas_from_now(world, 1)
    by_id = zip(lease.reservations, ({"size": 4, "amount": 3}, {"size": 4}), strict=True)
    change = LeaseChange(reservations=tuple(ReservationChange(id=each.id, parameters=values) for each, values in by_id))
    squeeze(world, volumes=2)
    with pytest.raises(BlazarError, match="no more volumes"):
        world.manager.leases.update(lease.id, change)
    # Two of 3 GiB, 4 GiB to make volumes of, and for a moment one of 4.
    assert (max(seen[1]), quota(world, 1)) == ((14, 5), (10, 4))
    world.simulated.volume_users.limit(PROJECT, volumes=-1)
    assert not world.manager.leases.update(lease.id, change).degraded
    assert (quota(world, 1), grown(world)) == ((20, 5), [4, 4, 4])


def test_two_reservations_of_one_pool_that_both_get_more_volumes(world):
    room = volumes(1, size=3, volume_type="disks-1"), volumes(1, size=2, volume_type="disks-1")
    lease = world.lease(*room, hours=8)
    world.run_to(NOON)
    changes = tuple(ReservationChange(id=each.id, parameters={"amount": 2}) for each in lease.reservations)
    world.manager.leases.update(lease.id, LeaseChange(reservations=changes))
    assert (world.now(lease).degraded, quota(world, 1)) == (False, (10, 4))
