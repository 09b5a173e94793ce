# SPDX-License-Identifier: Apache-2.0
"""Leases of generic resources: what their hooks hear from the start to the end, and in trouble."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.hooks import HookAnswer, HookCall, HookResult
from blazar.clouds.simulated.state import ThingState
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, InvalidInput, NotEnoughResources
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import GENERIC, Resource
from tests.world import NOON, World, a_host, things, units

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, hosts=0)


@pytest.fixture
def pair(world) -> tuple[Resource, Resource]:
    return world.register_thing("microscope-1"), world.register_thing("microscope-2")


def state_of(world: World, resource: Resource) -> ThingState:
    with world.simulated.inspect() as state:
        return state.things.get(resource.external_id, ThingState())


def users(world: World, resource: Resource) -> dict[str, int]:
    return state_of(world, resource).users


def heard(world: World, resource: Resource) -> list[str]:
    """Return what a hook was told, without the ids of reservation and resource."""
    return [":".join(each.split(":")[2:]) for each in state_of(world, resource).heard]


def names(world: World, lease: Lease) -> set[str]:
    return set(world.hosts_of(lease))


def test_a_thing_is_handed_over_at_the_start_and_taken_back_at_the_end(world):
    thing = world.register_thing()
    lease = world.lease(things(), start=HOUR, before_end=NOON + 2 * HOUR)
    world.run()
    assert state_of(world, thing).heard == []
    world.run_to(NOON + HOUR)
    (reservation,) = world.now(lease).reservations
    assert users(world, thing) == {reservation.id: 1}
    answer = {"address": f"{thing.external_id}.simulated.example"}
    assert reservation.shown["resources"] == [{"id": thing.external_id, "name": "microscope-1", "answer": answer}]
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, users(world, thing)) == (LeaseStatus.TERMINATED, {})
    announced = int((NOON + 2 * HOUR).timestamp())
    assert heard(world, thing) == ["start:1-1", f"before_end:1-{announced}", "end:final"]
    assert state_of(world, thing).heard[0] == f"{reservation.id}:{thing.external_id}:start:1-1"


def test_reservations_share_a_thing_while_its_units_last_and_a_whole_one_is_not_shared(world):
    licence = world.register_thing("licence", capacity=5)
    first, second = world.lease(units(3), start=HOUR), world.lease(units(2), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(units(1), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    assert sorted(users(world, licence).values()) == [2, 3]
    world.manager.leases.delete(first.id)
    assert list(users(world, licence)) == [second.reservations[0].id]
    world.run_to(NOON + 3 * HOUR)
    whole = world.lease(things(), start=HOUR)
    world.run_to(NOON + 4 * HOUR)
    assert users(world, licence) == {whole.reservations[0].id: 5}


def test_units_are_all_on_one_thing(world, pair):
    for resource in pair:
        world.manager.resources.unregister(GENERIC, resource.external_id)
    for number in (1, 2):
        world.register_thing(f"pool-{number}", capacity=4)
    with pytest.raises(NotEnoughResources):
        world.lease(units(5), start=HOUR)
    assert len(names(world, world.lease(units(4), start=HOUR))) == 1


def test_a_lease_takes_only_things_of_its_class_with_its_properties(world):
    world.register_thing("small", capabilities={"lens": "20"})
    world.register_thing("big", capabilities={"lens": "60"})
    world.register_thing("laser", **{"class": "laser"})
    lease = world.lease(things(resource_properties='[">", "$lens", "40"]'), start=HOUR)
    assert names(world, lease) == {"big"}
    with pytest.raises(NotEnoughResources):
        world.lease(things(3), start=HOUR)
    with pytest.raises(NotEnoughResources, match="0 with class == telescope"):
        world.lease(things(**{"class": "telescope"}), start=HOUR)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"resource_properties": '["==", "$hook_url", "https://lab.example/microscope-1"]'}, r"asks for \$hook_url"),
        ({"resource_properties": '["==", "$colour", "red"]'}, r"asks for \$colour, which no generic resource has"),
        ({"amount": 1}, "give either min and max"),
        ({"min": None}, "min is null"),
        ({"min": 2, "max": 1}, "max is 1, less than min"),
        ({"class": "A b"}, "class is .A b."),
        ({"before_end": "snapshot"}, "before_end is 'snapshot', which saves servers"),
    ],
)
def test_a_bad_reservation_is_refused_with_a_sentence(world, pair, more, words):
    with pytest.raises(InvalidInput, match=words):
        world.lease(things(**more), start=HOUR)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": "a b"}, "name is .a b."),
        ({"class": None}, "class is null"),
        ({"capacity": 0}, "capacity is 0"),
        ({"hook_url": None}, "Missing parameter hook_url"),
        ({"capacity": None}, "capacity is null"),
        ({"hook_url": "ftp://lab.example/"}, "hook_url cannot be used"),
    ],
)
def test_a_bad_registration_is_refused_with_a_sentence(world, more, words):
    with pytest.raises(InvalidInput, match=words):
        world.register_thing(**more)
    assert world.manager.resources.all(GENERIC) == ()


def test_a_name_is_registered_once_and_a_thing_in_use_stays(world):
    thing = world.register_thing()
    with pytest.raises(Conflict, match="generic resource microscope-1 is registered already"):
        world.register_thing()
    world.lease(things(), start=HOUR)
    with pytest.raises(Conflict, match="the generic resource is allocated to lease"):
        world.manager.resources.unregister(GENERIC, thing.external_id)


def test_a_hook_that_is_not_ready_is_asked_again_with_the_same_id(world):
    thing = world.register_thing()
    world.simulated.durations.hook = 5 * MINUTE
    lease = world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR + 4 * MINUTE)
    assert world.now(lease).status is LeaseStatus.STARTING
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert (world.now(lease).status, heard(world, thing)) == (LeaseStatus.ACTIVE, ["start:1-1"])
    assert world.faults.calls["call_hook"] == 2
    world.run_to(NOON + 3 * HOUR + 4 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    world.run_to(NOON + 3 * HOUR + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_thing_that_cannot_be_used_at_the_start_is_replaced(world, pair):
    lease = world.lease(things(), start=HOUR)
    (name,) = names(world, lease)
    first, other = sorted(pair, key=lambda each: each.name != name)
    world.simulated.operators.break_thing(first.external_id, unusable="its laser is off")
    world.run_to(NOON + HOUR)
    assert names(world, lease) == {other.name}
    assert users(world, other) == {lease.reservations[0].id: 1}
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.now(lease).reservations[0].shown["resources"][0]["name"] == other.name
    assert world.manager.resources.one(GENERIC, first.external_id).failure == f"{first.name}: its laser is off"


def test_a_refusal_is_permanent_and_other_reservations_of_the_lease_start(sqlite):
    world = World(sqlite, hosts=1)
    world.register_thing()
    world.faults.fail_before("call_hook", CloudRefused("its hook refuses the call (403)"))
    lease = world.lease(things(), a_host(), start=HOUR)
    world.run_to(NOON + HOUR)
    assert [r.status for r in world.now(lease).reservations] == [ReservationStatus.ERROR, ReservationStatus.ACTIVE]
    assert world.now(lease).event(EventType.START).reason == "microscope-1: its hook refuses the call (403)"


@pytest.mark.parametrize("lost", ["fail_before", "fail_after"])
def test_an_outage_at_the_start_is_waited_for_and_nothing_is_done_twice(world, lost):
    thing = world.register_thing()
    getattr(world.faults, lost)("call_hook", CloudUnavailable("its hook did not answer in time"), times=3)
    lease = world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.STARTING
    world.run_to(NOON + HOUR + MINUTE)
    assert (world.now(lease).status, heard(world, thing)) == (LeaseStatus.ACTIVE, ["start:1-1"])


@pytest.mark.slow
@pytest.mark.parametrize("error", [CloudUnavailable("away"), CloudRefused("its hook refuses the call (410)")])
def test_an_end_is_retried_for_ever_and_nobody_else_gets_the_thing_meanwhile(world, error):
    thing = world.register_thing()
    lease = world.lease(things(), start=HOUR)
    following = world.lease(things(), start=3 * HOUR)
    world.run_to(NOON + HOUR)
    world.faults.fail_before("call_hook", error, times=200)
    world.run_to(NOON + 3 * HOUR + 15 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    assert error.message in world.now(lease).event(EventType.END).reason
    assert world.now(following).status is LeaseStatus.PENDING
    assert list(users(world, thing)) == [lease.reservations[0].id]
    world.faults.clear()
    world.run_to(NOON + 3 * HOUR + 20 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert list(users(world, thing)) == [following.reservations[0].id]


def test_a_lease_that_never_started_calls_no_hook(world):
    thing = world.register_thing()
    lease = world.lease(things(), start=HOUR)
    world.manager.leases.delete(lease.id)
    assert (world.now(lease).deleted_at, heard(world, thing)) == (NOON, [])


def test_a_deleted_lease_gives_its_thing_back_at_once(world):
    thing = world.register_thing()
    lease = world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    world.manager.leases.delete(lease.id)
    assert (users(world, thing), heard(world, thing)) == ({}, ["start:1-1", "end:final"])


def test_units_grow_and_shrink_in_use_and_each_number_has_a_message_of_its_own(world):
    thing = world.register_thing(capacity=5)
    lease = world.lease(units(2), start=HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    for amount in (3, 2, 3):
        world.clock.by(minutes=1)
        world.resize(lease, amount=amount)
        assert users(world, thing) == {lease.reservations[0].id: amount}
    told = state_of(world, thing).heard
    assert len(told) == len(set(told)) == 4
    world.run_to(NOON + 3 * HOUR)
    assert users(world, thing) == {}


def test_whole_things_are_added_in_use_and_a_new_end_changes_nothing_else(world, pair):
    lease = world.lease(things(1), start=HOUR)
    world.run_to(NOON + HOUR)
    world.resize(lease, min=2, max=2)
    assert all(users(world, each) == {lease.reservations[0].id: 1} for each in pair)
    shown = world.now(lease).reservations[0].shown["resources"]
    assert {(each["id"], each["answer"]["address"]) for each in shown} == {
        (thing.external_id, f"{thing.external_id}.simulated.example") for thing in pair
    }
    calls = world.faults.calls["call_hook"]
    world.change(lease, end=NOON + 5 * HOUR)
    assert world.faults.calls["call_hook"] == calls
    with pytest.raises(Conflict, match="max cannot be 1: reservation .* uses 2 resources"):
        world.resize(lease, min=1, max=1)
    with pytest.raises(InvalidInput, match="class cannot be changed"):
        world.resize(lease, **{"class": "laser"})


def test_parameters_of_a_lease_change_before_its_start(world, pair):
    lease = world.lease(things(1), start=HOUR)
    changed = world.resize(lease, min=1, max=2, before_end="none")
    assert len(names(world, changed)) == 2
    world.run_to(NOON + 3 * HOUR)
    assert {tuple(heard(world, each)) for each in pair} == {("start:1-1", "end:final")}


def test_a_thing_that_an_operator_replaces_is_taken_back_before_the_change_is_done(world, pair):
    lease = world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    (name,) = names(world, lease)
    first, other = sorted(pair, key=lambda each: each.name != name)
    world.manager.resources.move(GENERIC, first.external_id, lease.reservations[0].id)
    assert (users(world, first), users(world, other)) == ({}, {lease.reservations[0].id: 1})
    world.manager.resources.move(GENERIC, other.external_id, lease.reservations[0].id)
    assert (users(world, first), users(world, other)) == ({lease.reservations[0].id: 1}, {})
    told = heard(world, first)
    assert [each.partition("-")[0] for each in told] == ["start:1", "end:1", "start:2"]
    assert len(set(told)) == 3
    world.run_to(NOON + 3 * HOUR)
    assert (users(world, first), users(world, other)) == ({}, {})


def test_a_change_whose_thing_cannot_be_taken_back_is_undone(world, pair):
    lease = world.lease(things(), start=HOUR)
    world.run_to(NOON + HOUR)
    (name,) = names(world, lease)
    first, other = sorted(pair, key=lambda each: each.name != name)
    calls: list[str] = []

    def fail_the_end(call: str, phase: str) -> None:
        if call == "call_hook" and phase == "before":
            calls.append(call)
            if len(calls) == 2:
                raise CloudUnavailable("away")

    world.faults.on_call = fail_the_end
    with pytest.raises(CloudUnavailable, match="away"):
        world.manager.resources.move(GENERIC, first.external_id, lease.reservations[0].id)
    world.run_to(NOON + HOUR + 5 * MINUTE)
    assert names(world, lease) == {first.name}
    assert (users(world, first), users(world, other)) == ({lease.reservations[0].id: 1}, {})


def test_a_thing_that_fails_before_the_start_is_replaced_and_its_hook_is_not_needed(world, pair):
    lease = world.lease(things(), start=HOUR)
    (name,) = names(world, lease)
    first, other = sorted(pair, key=lambda each: each.name != name)
    world.simulated.operators.break_thing(first.external_id, "its lamp is broken")
    for _ in range(world.settings.failures_before_healing):
        world.manager.monitor.run_once()
    assert names(world, lease) == {other.name}
    world.run_to(NOON + 3 * HOUR)
    assert (heard(world, first), heard(world, other)[0]) == ([], "start:1-1")
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_an_operator_refreshes_a_thing_at_once(world, pair):
    id_ = pair[0].external_id
    world.simulated.operators.break_thing(id_, "its lamp is broken")
    assert world.manager.resources.refresh(GENERIC, id_).failure == "its lamp is broken"
    world.simulated.operators.break_thing(id_)
    assert world.manager.resources.refresh(GENERIC, id_).failure is None


def test_hooks_that_cannot_be_reached_all_at_once_fail_no_thing(world, pair):
    for _ in range(3):
        world.faults.fail_before("ask_hook", CloudUnavailable("its hook cannot be reached"), times=2)
        world.manager.monitor.run_once()
    assert [each.failure for each in world.manager.resources.all(GENERIC)] == [None, None]


def test_a_thing_whose_hook_alone_cannot_be_reached_fails(world, pair, monkeypatch):
    ask = world.simulated.hooks.ask_hook

    def away(call: HookCall) -> HookAnswer:
        if call.url.endswith("/microscope-1"):
            raise CloudUnavailable("its hook cannot be reached")
        return ask(call)

    monkeypatch.setattr(world.simulated.hooks, "ask_hook", away)
    for _ in range(world.settings.failures_before_healing):
        world.manager.monitor.run_once()
    failures = {each.name: each.failure for each in world.manager.resources.all(GENERIC)}
    assert failures == {"microscope-1": "its hook cannot be reached", "microscope-2": None}


def test_one_question_is_asked_for_all_things_with_one_hook(world):
    for number in range(45):
        world.register_thing(f"bench-{number}", hook_url="https://lab.example/benches")
    (second,) = [each for each in world.manager.resources.all(GENERIC) if each.name == "bench-2"]
    world.simulated.operators.break_thing(second.external_id, "it burns")
    for _ in range(world.settings.failures_before_healing):
        before = world.faults.calls["ask_hook"]
        world.manager.monitor.run_once()
        assert world.faults.calls["ask_hook"] == before + 2
    failures = {each.name: each.failure for each in world.manager.resources.all(GENERIC) if each.failure}
    assert failures == {"bench-2": "it burns"}


def test_a_hook_that_names_a_thing_with_null_says_that_it_is_well(world, pair, monkeypatch):
    answer = HookAnswer(HookResult.DONE, content={"failures": {pair[0].external_id: None, pair[1].external_id: ""}})
    monkeypatch.setattr(world.simulated.hooks, "ask_hook", lambda call: answer)
    for _ in range(world.settings.failures_before_healing):
        world.manager.monitor.run_once()
    failures = {each.name: each.failure for each in world.manager.resources.all(GENERIC)}
    assert failures == {"microscope-1": None, "microscope-2": "its hook says that it has failed"}
