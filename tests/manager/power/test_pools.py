# SPDX-License-Identifier: Apache-2.0
"""Pools of volumes sleep and wake by the same plan and the same steps as hosts: their cinder-volume is disabled."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from blazar.clouds.simulated.machines import PowerFault
from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, WrongState
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.power.states import MARK, HostPower, PowerState, WakingHosts
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import VOLUME, Resource
from blazar.model.search.availability import AvailabilityQuestion
from tests.configured import configured_world
from tests.manager.power.nights import HOUR, MINUTE, NO_SPARE, work
from tests.world import PROJECT, World, volumes

POOL = "storage-1@disks#1"
LATER = timedelta(hours=4)


def add_pool(world: World, name: str, type_name: str) -> Resource:
    _, _, rest = name.partition("@")
    backend, _, pool = rest.partition("#")
    world.simulated.volume_users.add_pool(PoolState(name, backend, pool, 30), type_name=type_name)
    given = {"pool": name, "volume_type": type_name, "gigabytes": 30}
    return world.manager.resources.register(VOLUME, Registration(given))


def give_switch(world: World, pool: Resource) -> None:
    address = PowerAddress(PowerAdapter.SIMULATED, pool.name)
    world.manager.power.change(pool.external_id, PowerChange(address), VOLUME)


@pytest.fixture
def world(sqlite, tmp_path) -> World:
    """A service with a pool that has been on for an hour, and hosts that nothing switches."""
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=1)
    give_switch(world, add_pool(world, POOL, "disks"))
    world.clock.by(hours=1)
    return world


def pools_of(world: World) -> list[Resource]:
    return list(world.manager.resources.all(VOLUME))


def power(world: World) -> HostPower:
    return world.manager.power.one(pools_of(world)[0].external_id, VOLUME).power


def service(world: World) -> tuple[bool, str | None]:
    """Return whether the cinder-volume of the pool is up, and why it is disabled."""
    found = world.simulated.cloud.volumes.volume_services()[0]
    return found.up, found.mark


def pass_time(world: World, span: timedelta) -> list[PowerState]:
    """Let time pass; return the states in which the pool was. What sleeps is closed, and has no volume."""
    until, found = world.clock.now() + span, [power(world).state]
    while world.clock.now() < until:
        work(world.manager)
        world.run()
        state = power(world).state
        if state is PowerState.OFF:
            assert service(world) == (False, MARK)
            assert not world.simulated.cloud.volumes.has_volumes("storage-1@disks")
        found += [state] if state is not found[-1] else []
        now = world.clock.now()
        world.clock.to(max(now, min(until, now + MINUTE, world.store.switches.next_due() or until)))
    return found


def sleep(world: World) -> None:
    assert pass_time(world, 10 * MINUTE) == [PowerState.ON, PowerState.GOING_OFF, PowerState.OFF]


def test_a_pool_that_nobody_needs_sleeps_and_has_not_failed(world):
    sleep(world)
    for _ in range(3):
        world.manager.monitor.run_once()
    assert not pools_of(world)[0].failure
    report = world.manager.power.report()
    assert (report.pools.switched, report.pools.asleep, report.pools.sums.switched_off) == (1, 1, 1)
    assert report.sums.switched_off == 0
    assert world.store.sample.read(world.clock.now()).power == {("host", "on"): 1, ("volume", "off"): 1}


def test_a_dry_run_tells_of_pools_apart_from_hosts(sqlite, tmp_path, caplog):
    world = configured_world(sqlite, tmp_path, "[power]", "mode = dry_run", "spare = 0", hosts=2)
    add_pool(world, POOL, "disks")
    with caplog.at_level(logging.INFO, logger="blazar.manager.power.work"):
        for _ in range(2):
            world.clock.by(hours=1)
            world.manager.power_work[0].run_once()
    told = [record.message.partition(", and")[0] for record in caplog.records if "dry run" in record.message]
    more = (
        "within a day they would have been switched off {} times, those that were woken had slept for 0 hours together"
    )
    assert told == [
        f"Power, dry run: 0 of 2 hosts would sleep now; {more.format(2)}",
        f"Power, dry run: 0 of 1 volume pool would sleep now; {more.format(1)}",
        f"Power, dry run: 2 of 2 hosts would sleep now; {more.format(2)}",
        f"Power, dry run: 1 of 1 volume pool would sleep now; {more.format(1)}",
    ]


@pytest.mark.slow
def test_a_pool_is_woken_by_the_lead_before_its_lease(world):
    lease = world.lease(volumes(2), start=LATER)
    sleep(world)
    world.clock.by(hours=3)
    assert pass_time(world, 15 * MINUTE) == [PowerState.OFF]
    assert pass_time(world, 10 * MINUTE) == [PowerState.OFF, PowerState.WAKING, PowerState.ON]
    assert service(world) == (True, None)
    pass_time(world, 40 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert power(world).state is PowerState.ON


def test_a_pool_with_a_volume_of_anybody_stays_on(world):
    type_ = world.simulated.cloud.volumes.volume_types()[0]
    world.simulated.cloud.volumes.grant_volume_type(type_.id, "someone")
    world.simulated.volume_users.create("someone", type_.id, 1)
    assert pass_time(world, 10 * MINUTE) == [PowerState.ON]
    assert service(world) == (True, None)


def test_a_volume_that_comes_before_the_pool_is_closed_keeps_it_on(world):
    type_ = world.simulated.cloud.volumes.volume_types()[0]
    world.simulated.cloud.volumes.grant_volume_type(type_.id, "someone")
    world.manager.power_work[0].run_once()
    assert power(world).state is PowerState.GOING_OFF
    world.simulated.volume_users.create("someone", type_.id, 1)
    assert pass_time(world, 10 * MINUTE) == [PowerState.GOING_OFF, PowerState.ON]
    assert service(world) == (True, None)


@pytest.mark.parametrize("steps", range(3))
def test_a_volume_that_comes_while_a_pool_is_going_off_keeps_it_on(world, steps):
    volumes_ = world.simulated.cloud.volumes
    type_ = volumes_.volume_types()[0]
    volumes_.grant_volume_type(type_.id, "someone")
    world.manager.power_work[0].run_once()
    for _ in range(steps):
        world.clock.to(world.store.switches.next_due() or world.clock.now())
        world.manager.power_work[1].run_once()
    assert power(world).state is PowerState.GOING_OFF
    # Its creation was sent to the pool before that was closed.
    mark = service(world)[1]
    volumes_.enable_volume_service("storage-1@disks")
    volume = world.simulated.volume_users.create("someone", type_.id, 1)
    if mark is not None:
        volumes_.disable_volume_service("storage-1@disks", mark)
    assert pass_time(world, 10 * MINUTE) == [PowerState.GOING_OFF, PowerState.ON]
    assert (volumes_.has_volumes("storage-1@disks"), service(world)) == (True, (True, None))
    world.simulated.volume_users.delete(volume.id)
    world.clock.by(hours=2)
    sleep(world)


def test_a_pool_whose_service_others_have_disabled_is_theirs(world):
    world.simulated.cloud.volumes.disable_volume_service("storage-1@disks", "broken disk")
    world.manager.power_work[0].run_once()
    pass_time(world, 5 * MINUTE)
    assert service(world) == (True, "broken disk")
    assert power(world).state is PowerState.ON


@pytest.mark.slow
def test_a_pool_that_ignores_its_switch_is_open_again(world):
    world.simulated.operators.spoil_power(POOL, PowerFault.IGNORES)
    found = pass_time(world, 30 * MINUTE)
    assert found[0] is PowerState.ON
    assert PowerState.OFF not in found
    assert (power(world).state, service(world)) == (PowerState.ON, (True, None))


def test_a_start_that_finds_its_pool_asleep_wakes_it_and_says_so_before(world):
    sleep(world)
    start = world.clock.now() + MINUTE
    asked = AvailabilityQuestion(
        Actor("curie", PROJECT), reservations=(volumes(),), start=start, end=start + HOUR, limit=1
    )
    waking = world.manager.availability.find(asked).openings[0].waking
    assert waking == WakingHosts(0, world.clock.now() + 11 * MINUTE, pools=1)
    with pytest.raises(NotEnoughResources, match="enough volume pools are free, but 1 of them sleeps"):
        world.lease(volumes(), kind=LeaseKind.IMMEDIATE)
    lease = world.lease(volumes())
    world.run()
    event = world.now(lease).event(EventType.START)
    assert event.cause.code is ReasonCode.HOST_WAKING
    assert pass_time(world, 5 * MINUTE) == [PowerState.WAKING, PowerState.ON]
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_an_operator_wakes_a_pool_and_keeps_it(world):
    sleep(world)
    (pool,) = pools_of(world)
    with pytest.raises(WrongState, match="wake it first"):
        world.manager.resources.unregister(VOLUME, pool.external_id)
    world.manager.power.wake(pool.external_id, VOLUME)
    assert pass_time(world, 5 * MINUTE) == [PowerState.WAKING, PowerState.ON]
    world.clock.by(hours=3)
    assert pass_time(world, 10 * MINUTE) == [PowerState.ON]


def test_a_pool_whose_backend_serves_others_cannot_be_switched(world):
    other = add_pool(world, "storage-2@fast#1", "second")
    add_pool(world, "storage-2@fast#2", "third")
    with pytest.raises(Conflict, match="serves storage-2@fast#2, too"):
        give_switch(world, other)


def test_a_pool_that_gets_a_neighbour_on_its_backend_stays_on(world):
    add_pool(world, "storage-1@disks#2", "second")
    assert pass_time(world, 10 * MINUTE) == [PowerState.ON]


def test_no_driver_switches_a_pool(world):
    (pool,) = pools_of(world)
    change = PowerChange(PowerAddress(PowerAdapter.REDFISH, "https://10.0.0.1/redfish/v1/Systems/1"))
    with pytest.raises(InvalidInput, match="a volume pool is switched by a hook: give hook"):
        world.manager.power.change(pool.external_id, change, VOLUME)
