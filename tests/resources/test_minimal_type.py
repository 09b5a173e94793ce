# SPDX-License-Identifier: Apache-2.0
"""A resource type that has only what it must have: everything else has a default."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST
from blazar.resources.contract.checked import CheckedType
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, Given, Progress, Task
from tests.world import NOON, World

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


class Bench(ResourceType):
    """A type of whole hosts that does nothing in the cloud but to note who uses what."""

    resource_type = "test:bench"
    kind = HOST
    in_use_by: dict[str, list[str]]

    def __init__(self, *_: object) -> None:
        self.in_use_by = {}

    def parameters(self, given: Given) -> Content:
        return Content({"count": given.values["count"], "purpose": given.values.get("purpose")})

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        count = int(str(parameters.values["count"]))
        return Demand(kind=self.kind, min_count=count, max_count=count)

    def start(self, task: Task) -> Progress:
        self.in_use_by[task.reservation.id] = [resource.name for resource in task.resources]
        return Done()

    def end(self, task: Task) -> Progress:
        self.in_use_by.pop(task.reservation.id, None)
        return Done()


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def world(sqlite, bench) -> World:
    return World(sqlite, types=[lambda *_: bench])


def names_of(world: World, lease: Lease) -> set[str]:
    held = {a.resource_id for a in world.store.calendar.of_lease(lease.id)}
    return {resource.name for resource in world.store.resources.by_ids(held).values()}


def benches(count: int, **more: object) -> ReservationRequest:
    return ReservationRequest("test:bench", {"count": count, **more})


def test_a_lease_of_it_lives_from_its_creation_to_its_end(world, bench):
    lease = world.lease(benches(2), start=HOUR, before_end=NOON + 2 * HOUR)
    assert (lease.status, bench.in_use_by) == (LeaseStatus.PENDING, {})
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert set(bench.in_use_by[lease.reservations[0].id]) == names_of(world, lease)
    assert len(names_of(world, lease)) == 2
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE
    assert "lease.event.before_end_lease" in world.notifier.types
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, bench.in_use_by) == (LeaseStatus.TERMINATED, {})


@pytest.mark.parametrize("started", [False, True])
def test_its_dates_change_and_its_resources_stay(world, bench, started):
    lease = world.lease(benches(2), start=HOUR)
    if started:
        world.run_to(NOON + HOUR)
    held = {a.resource_id for a in world.store.calendar.of_lease(lease.id)}
    longer = world.change(lease, end=NOON + 5 * HOUR)
    assert longer.window.end == NOON + 5 * HOUR
    assert {a.resource_id for a in world.store.calendar.of_lease(lease.id)} == held


def test_its_parameters_can_be_sent_back_but_not_changed(world):
    lease = world.lease(benches(2, purpose="a course"), start=HOUR)
    same = world.resize(lease, count=2, purpose="a course", unknown="x")
    assert same.reservations[0].parameters == lease.reservations[0].parameters
    with pytest.raises(InvalidInput, match="count of a test:bench reservation cannot be changed"):
        world.resize(lease, count=3)
    assert world.now(lease).reservations[0].parameters == lease.reservations[0].parameters


def test_a_host_of_it_that_fails_before_the_start_is_replaced(world, bench):
    lease = world.lease(benches(1), start=HOUR)
    (first,) = world.store.calendar.of_lease(lease.id)
    failed = names_of(world, lease)
    world.store.resource_health.set_failed(HOST, {first.resource_id: "it burns"}, at=world.clock.now())
    world.manager.monitor.heal(at_once=True)
    world.run_to(NOON + HOUR)
    assert set(bench.in_use_by[lease.reservations[0].id]) == names_of(world, lease)
    assert not names_of(world, lease) & failed


def test_a_start_that_returns_nothing_stops_only_its_own_reservation(sqlite, bench):
    class Forgetful(Bench):
        resource_type = "test:forgetful"

        def start(self, task: Task) -> Progress:
            super().start(task)

    world = World(sqlite, types=[Forgetful, lambda *_: bench])
    forgetful = ReservationRequest("test:forgetful", {"count": 1})
    lease = world.lease(forgetful, benches(1), start=HOUR)
    world.run_to(NOON + HOUR)
    assert [r.status for r in world.now(lease).reservations] == [ReservationStatus.PENDING, ReservationStatus.ACTIVE]
    assert world.now(lease).event(EventType.START).reason == "internal error: TypeError"


@pytest.mark.parametrize("method", ["start", "end", "before_end", "restore"])
def test_a_method_that_returns_nothing_is_named(world, method):
    forgetful = type("Forgetful", (Bench,), {method: lambda self, *_: None})
    lease = world.lease(benches(1), start=HOUR)
    task = Task(lease, lease.reservations[0], ())
    with pytest.raises(TypeError, match=f"{method} of test:bench returned NoneType, not Done or NotYet"):
        getattr(CheckedType(forgetful()), method)(task, *([()] if method == "restore" else []))


@pytest.mark.parametrize(("given", "found"), [(["r-1"], {"r-1"}), (("r-1",), {"r-1"}), ("r-1", None), ([1], None)])
def test_what_a_type_has_in_the_cloud_is_a_set_of_texts(given, found):
    checked = CheckedType(type("Listing", (Bench,), {"reservations_in_cloud": lambda self, _: given})())
    if found is not None:
        assert checked.reservations_in_cloud([]) == frozenset(found)
        return
    with pytest.raises(TypeError, match="reservations_in_cloud of test:bench returned .*, not a set of texts"):
        checked.reservations_in_cloud([])


@pytest.mark.parametrize("status", [ReservationStatus.PENDING, ReservationStatus.ACTIVE])
def test_an_undo_starts_it_with_what_it_had_if_it_was_in_use(world, bench, status):
    lease = world.lease(benches(1), start=HOUR)
    reservation = replace(lease.reservations[0], status=status)
    hosts = tuple(host for host in world.manager.resources.all(HOST) if host.name == "node-3")
    assert CheckedType(bench).restore(Task(lease, reservation, hosts), ()) == Done()
    assert bench.in_use_by == ({reservation.id: ["node-3"]} if status is ReservationStatus.ACTIVE else {})
