# SPDX-License-Identifier: Apache-2.0
"""What operators change of a generic resource and of a device after their registration."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import Conflict, InvalidInput, PreconditionFailed
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import DEVICE, GENERIC, HOST, Resource
from tests.world import NOON, World, device_request, things, units

HOUR = timedelta(hours=1)
ELSEWHERE = "https://elsewhere.example/hook"


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


def change(world: World, resource: Resource, **attributes: object) -> Resource:
    change = ResourceChange({}, attributes=attributes)
    return world.manager.resources.change(resource.kind, resource.external_id, change)


def stored(world: World, resource: Resource) -> Resource:
    return world.manager.resources.one(resource.kind, resource.external_id)


def test_class_capacity_and_hook_change_and_leases_take_what_is_there_then(world):
    thing = world.register_thing("bench", capacity=2)
    world.lease(units(2), start=HOUR)
    changed = change(world, thing, capacity="5", hook_url=ELSEWHERE)
    assert changed == stored(world, thing)
    assert changed.attributes == {"class": "microscope", "capacity": 5, "hook_url": ELSEWHERE}
    assert (changed.external_id, changed.name) == (thing.external_id, thing.name)
    world.lease(units(3), start=HOUR)
    with pytest.raises(Conflict):
        world.lease(units(1), start=HOUR)
    world.run_to(NOON + 4 * HOUR)
    change(world, thing, **{"class": "telescope"})
    world.lease(units(1, **{"class": "telescope"}), start=HOUR)


@pytest.mark.parametrize("capacity", [1, 4])
def test_a_capacity_is_never_below_what_is_promised_at_one_time(engine, capacity):
    world = World(engine, hosts=0)
    thing = world.register_thing("bench", capacity=9)
    for start, amount in ((1, 2), (1, 3), (3, 4)):
        world.lease(units(amount), start=start * HOUR, hours=1)
    with pytest.raises(Conflict, match="bench has 5 UNIT promised at one time; give it at least that capacity"):
        change(world, thing, capacity=capacity)
    assert stored(world, thing) == thing
    assert change(world, thing, capacity=5).attributes["capacity"] == 5
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    assert change(world, thing, capacity=4).attributes["capacity"] == 4


def test_who_has_the_whole_of_it_has_all_that_there_is(world):
    thing = world.register_thing("bench", capacity=9)
    world.lease(things(), start=HOUR)
    assert change(world, thing, capacity=1).attributes["capacity"] == 1


def test_a_class_stays_while_a_lease_has_asked_for_it(world):
    thing = world.register_thing("bench")
    lease = world.lease(things(), start=HOUR)
    with pytest.raises(Conflict, match="class cannot be changed: reservation .* asks for it on this generic resource"):
        change(world, thing, **{"class": "telescope"})
    change(world, thing, **{"class": "microscope", "hook_url": ELSEWHERE})
    world.manager.leases.delete(lease.id)
    assert change(world, thing, **{"class": "telescope"}).attributes["class"] == "telescope"


@pytest.mark.parametrize(
    ("attributes", "pointer", "words"),
    [
        ({"capacity": 0}, "/attributes/capacity", "at least 1"),
        ({"capacity": None}, "/attributes/capacity", "at least 1"),
        ({"class": ""}, "/attributes/class", "class"),
        ({"hook_url": "ftp://x"}, "/attributes/hook_url", "https://"),
        ({"hook_url": None}, "/attributes", "hook_url"),
        ({"name": "other"}, "/attributes/name", "name of a generic resource cannot be changed; what can be changed is"),
        ({"x" * 500: 1}, "/attributes/" + "x" * 500, "cannot be changed"),
    ],
)
def test_what_a_registration_would_refuse_is_refused(world, attributes, pointer, words):
    thing = world.register_thing("bench")
    with pytest.raises(InvalidInput, match=words) as refused:
        change(world, thing, **attributes)
    assert refused.value.pointer == pointer
    assert stored(world, thing) == thing


def test_it_is_all_or_nothing_together_with_properties(world):
    thing = world.register_thing("bench", capacity=2)
    world.lease(units(2), start=HOUR)
    both = ResourceChange({"lens": "40"}, attributes={"capacity": 1})
    with pytest.raises(Conflict):
        world.manager.resources.change(GENERIC, thing.external_id, both)
    assert stored(world, thing) == thing


def test_a_change_of_what_somebody_else_has_changed_is_refused(world):
    thing = world.register_thing("bench")
    change(world, thing, capacity=3)
    late = ResourceChange({}, attributes={"hook_url": ELSEWHERE}, revisions=(thing.revision,))
    with pytest.raises(PreconditionFailed):
        world.manager.resources.change(GENERIC, thing.external_id, late)


def test_the_end_of_a_lease_calls_the_hook_that_there_is_then(world):
    thing = world.register_thing("bench")
    world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    change(world, thing, hook_url=ELSEWHERE)
    world.run_to(NOON + 4 * HOUR)
    with world.simulated.inspect() as state:
        assert state.things[thing.external_id].users == {}


def test_of_a_device_only_the_hook_changes(world):
    device = world.manager.resources.register(DEVICE, device_request("edge-1"))
    changed = change(world, device, hook_url=ELSEWHERE)
    assert changed.attributes == {**device.attributes, "hook_url": ELSEWHERE}
    with pytest.raises(InvalidInput, match="device_driver of a device cannot be changed; what can be changed is hook_"):
        change(world, device, device_driver="none")


def test_attributes_that_the_cloud_tells_do_not_change(sqlite):
    world = World(sqlite, hosts=1)
    (host,) = world.manager.resources.all(HOST)
    with pytest.raises(InvalidInput, match="vcpus of a host cannot be changed$"):
        change(world, host, vcpus=1)
    assert stored(world, host) == host
