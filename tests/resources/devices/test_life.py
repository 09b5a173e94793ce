# SPDX-License-Identifier: Apache-2.0
"""Leases of devices: with a hook that hands them over, and with none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import DEVICE, Resource
from tests.world import NOON, World, devices

HOUR = timedelta(hours=1)
NO_HOOK = {"device_driver": "none", "hook_url": None}


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


def users(world: World, device: Resource) -> set[str]:
    with world.simulated.inspect() as state:
        return set(state.things[device.external_id].users) if device.external_id in state.things else set()


def test_a_device_is_handed_over_at_the_start_and_taken_back_at_the_end(world):
    device = world.register_device()
    lease = world.lease(devices(), start=HOUR)
    world.run_to(NOON + HOUR)
    (reservation,) = world.now(lease).reservations
    assert users(world, device) == {reservation.id}
    (shown,) = reservation.shown["resources"]
    assert (shown["id"], shown["name"]) == (device.external_id, "edge-1")
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, users(world, device)) == (LeaseStatus.TERMINATED, set())


def test_a_device_without_a_hook_is_promised_and_nobody_is_called(world):
    device = world.register_device(**NO_HOOK)
    lease = world.lease(devices(), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(devices(), start=2 * HOUR)
    world.run_to(NOON + HOUR)
    (reservation,) = world.now(lease).reservations
    assert reservation.status is ReservationStatus.ACTIVE
    assert reservation.shown["resources"] == [{"id": device.external_id, "name": "edge-1"}]
    world.run_to(NOON + 3 * HOUR)
    with world.simulated.inspect() as state:
        assert (world.now(lease).status, state.things) == (LeaseStatus.TERMINATED, {})


@pytest.mark.parametrize("wanted", ["$name", "$machine_name", "$uid", "$device_type", "$id"])
def test_a_lease_takes_only_devices_with_its_properties(world, wanted):
    other = {"device_type": "vm", "uid": "u-2", "capabilities": {"machine_name": "jetson-2"}}
    world.register_device("edge-1", capabilities={"machine_name": "jetson-1"})
    device = world.register_device("edge-2", **other)
    value = device.external_id if wanted == "$id" else device.properties[wanted[1:]]
    lease = world.lease(devices(resource_properties=f'["==", "{wanted}", "{value}"]'), start=HOUR)
    assert set(world.hosts_of(lease)) == {"edge-2"}


def test_a_device_of_other_projects_is_not_given(world):
    device = world.register_device()
    world.manager.resources.change(DEVICE, device.external_id, changed := restricted("chemistry"))
    with pytest.raises(NotEnoughResources):
        world.lease(devices(), start=HOUR)
    assert set(world.hosts_of(world.lease(devices(), start=HOUR, project="chemistry"))) == {"edge-1"}
    assert changed.open_to == ("chemistry",)


def restricted(*projects: str) -> ResourceChange:
    return ResourceChange({}, open_to=projects, sets_projects=True)


def test_another_device_takes_over_also_while_the_lease_goes_on(world):
    first, second = world.register_device("edge-1"), world.register_device("edge-2", **NO_HOOK)
    lease = world.lease(devices(resource_properties='["==", "$name", "edge-1"]'), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.manager.resources.move(DEVICE, first.external_id, lease.reservations[0].id)
    lease = world.lease(devices(), start=4 * HOUR)
    (name,) = world.hosts_of(lease)
    at, other = (first, second) if name == "edge-1" else (second, first)
    world.run_to(NOON + 4 * HOUR)
    (held,) = world.manager.resources.allocations(DEVICE, resource_id=at.external_id)
    assert [each.lease_id for each in held.allocations] == [lease.id]
    world.manager.resources.move(DEVICE, at.external_id, lease.reservations[0].id)
    world.run()
    assert set(world.hosts_of(lease)) == {other.name}
    assert users(world, first) == ({lease.reservations[0].id} if other is first else set())
    with pytest.raises(NotFound):
        world.manager.resources.move(DEVICE, at.external_id, lease.reservations[0].id)


def test_a_device_that_fails_is_replaced_and_one_without_a_hook_never_fails(world):
    hooked, _ = world.register_device("edge-1"), world.register_device("edge-2", **NO_HOOK)
    world.simulated.operators.break_thing(hooked.external_id, "it is unplugged")
    for _ in range(3):
        world.manager.monitor.run_once()
    failures = {each.name: each.failure for each in world.manager.resources.all(DEVICE)}
    assert failures == {"edge-1": "it is unplugged", "edge-2": None}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"min": ""}, 'min is ""; give'),
        ({"min": 2, "max": 1}, "max is 1, less than min"),
        ({"resource_properties": '["==", "$hook_url", "x"]'}, r"\$hook_url, which no device has; use \$name"),
        ({"before_end": "snapshot"}, "saves servers, and devices have none"),
    ],
)
def test_a_bad_reservation_is_refused_with_a_sentence(world, more, words):
    with pytest.raises(InvalidInput, match=words):
        world.lease(devices(**more), start=HOUR)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"device_driver": "zun", "hook_url": None}, "Blazar drives no devices itself; give hook_url"),
        ({"device_driver": "none"}, "no hook is called; leave hook_url out"),
        ({"device_driver": "balena"}, "use one of zun, k8s, hook, none"),
        ({"device_type": "rocket"}, "use one of container, vm, shell"),
        ({"hook_url": None}, "Missing parameter hook_url"),
        ({"hook_url": "ftp://edge.example/"}, "hook_url cannot be used"),
        ({"name": "a b"}, "name is .a b."),
        ({"uid": "../x"}, "uid is"),
    ],
)
def test_a_bad_registration_is_refused_with_a_sentence(world, more, words):
    with pytest.raises(InvalidInput, match=words):
        world.register_device(**more)
    assert world.manager.resources.all(DEVICE) == ()


def test_a_name_is_registered_once_and_a_device_in_use_stays(world):
    device = world.register_device(**NO_HOOK)
    with pytest.raises(Conflict, match="device edge-1 is registered already"):
        world.register_device(**NO_HOOK)
    world.lease(devices(), start=HOUR)
    with pytest.raises(Conflict, match="the device is allocated to lease"):
        world.manager.resources.unregister(DEVICE, device.external_id)
