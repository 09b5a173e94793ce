# SPDX-License-Identifier: Apache-2.0
"""Reservations that are made of others: booked, changed, started and ended together."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from flask import Flask

from blazar.api.leases.rules import View
from blazar.api.leases.v1_0 import render
from blazar.api.leases.v1_1 import render as full
from blazar.manager.common.notifications import render_payload
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import InvalidInput, NotEnoughResources, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.feeds import FeedKind, FeedOwner, FeedRequest
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange, ReservationRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Child, Done, Given, Progress, Rank, Task
from tests.world import NOON, PROJECT, TYPES, World

HOUR = timedelta(hours=1)


class Kit(ResourceType):
    """A number of hosts, each of them a reservation of its own."""

    resource_type = "test:kit"
    kind = HOST
    rank = Rank.ORCHESTRATION

    def __init__(self, *_: object) -> None:
        self.seen: list[tuple[str, list[ReservationStatus]]] = []

    def parameters(self, given: Given) -> Content:
        return Content(dict(given.values))

    def children(self, parameters: Content) -> tuple[Child, ...]:
        wanted = parameters.values.get("needs", "")
        hosts = {"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": wanted}
        count = int(str(parameters.values["count"]))
        kind = str(parameters.values.get("of", "physical:host"))
        return tuple(Child(kind, hosts, "/count") for _ in range(count))

    def start(self, task: Task) -> Progress:
        return self._note("start", task)

    def end(self, task: Task) -> Progress:
        return self._note("end", task)

    def _note(self, what: str, task: Task) -> Progress:
        self.seen.append((what, [child.status for child in task.children]))
        return Done()


@pytest.fixture
def kits() -> Kit:
    return Kit()


@pytest.fixture
def world(sqlite, kits) -> World:
    return World(sqlite, types=[lambda *_: kits, *TYPES])


def kit(count: int, **more: object) -> ReservationRequest:
    return ReservationRequest("test:kit", {"count": count, **more})


def held(world: World, lease: Lease) -> list[str]:
    """Return the reservation of each resource that a lease holds."""
    return sorted(a.reservation_id for a in world.store.calendar.of_lease(lease.id))


def test_what_it_is_made_of_is_booked_with_it(world):
    lease = world.lease(kit(2), start=HOUR)
    parent, *children = world.now(lease).reservations
    assert [child.parent for child in children] == [parent.id, parent.id]
    assert [child.resource_type for child in children] == ["physical:host", "physical:host"]
    assert held(world, lease) == sorted(child.id for child in children)


def test_it_starts_after_them_and_ends_before_them(world, kits):
    lease = world.lease(kit(2), start=HOUR)
    world.run_to(NOON + HOUR)
    assert {r.status for r in world.now(lease).reservations} == {ReservationStatus.ACTIVE}
    assert len(world.hosts_of(lease)) == 2
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert kits.seen == [("start", [ReservationStatus.ACTIVE] * 2), ("end", [ReservationStatus.ACTIVE] * 2)]
    assert world.reservation_aggregates() == []


def test_it_is_booked_whole_or_not_at_all(world):
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(kit(4), start=HOUR)
    assert refused.value.pointer == "/reservations/0"
    assert world.store.leases.of_project(None) == ()


def test_a_change_of_dates_moves_them(world):
    lease = world.lease(kit(2), start=HOUR)
    world.change(lease, end=NOON + 5 * HOUR)
    ends = {a.window.end for a in world.store.calendar.of_lease(lease.id)}
    assert (ends, len(held(world, lease))) == ({NOON + 5 * HOUR}, 2)


def test_a_lease_in_use_that_is_extended_keeps_them(world):
    lease = world.lease(kit(2), start=HOUR)
    world.run_to(NOON + HOUR)
    before = world.hosts_of(lease)
    world.change(lease, end=NOON + 5 * HOUR)
    world.run_to(NOON + 4 * HOUR)
    assert world.hosts_of(lease) == before


def test_users_cannot_change_them(world):
    lease = world.lease(kit(1), start=HOUR)
    child = lease.reservations[1]
    with pytest.raises(InvalidInput, match="changes with that") as refused:
        world.manager.leases.update(
            lease.id, LeaseChange(reservations=(ReservationChange(child.id, {"max": 2}),), exact=True)
        )
    assert refused.value.pointer == "/reservations/0/id"


def test_a_failed_host_of_one_is_replaced(world):
    lease = world.lease(kit(1), start=HOUR)
    (first,) = world.store.calendar.of_lease(lease.id)
    world.store.resource_health.set_failed(HOST, {first.resource_id: "it burns"}, at=world.clock.now())
    world.manager.monitor.heal(at_once=True)
    (second,) = world.store.calendar.of_lease(lease.id)
    assert (second.resource_id != first.resource_id, second.reservation_id) == (True, first.reservation_id)


def test_a_deletion_leaves_nothing(world, kits):
    lease = world.lease(kit(2), start=HOUR)
    world.run_to(NOON + HOUR)
    world.manager.leases.delete(lease.id)
    assert (held(world, lease), world.reservation_aggregates()) == ([], [])
    assert [what for what, _ in kits.seen] == ["start", "end"]


def test_what_is_wrong_with_one_points_at_what_it_follows_from(world):
    with pytest.raises(InvalidInput) as refused:
        world.lease(kit(1, needs='["==", "$colour", "blue"]'), start=HOUR)
    assert refused.value.pointer == "/reservations/0/count"


def test_a_type_that_the_service_does_not_have_is_named(world):
    with pytest.raises(InvalidInput, match="needs reservations of the type lab:desk"):
        world.lease(kit(1, of="lab:desk"), start=HOUR)


def test_they_count_for_the_bounds_of_a_lease(sqlite, kits):
    settings = Settings(bounds=Bounds(reservations_of_lease=2))
    world = World(sqlite, types=[lambda *_: kits, *TYPES], settings=settings)
    world.lease(kit(1), start=HOUR)
    with pytest.raises(UsageDenied, match="reservations_per_lease"):
        world.lease(kit(2), start=HOUR)


def test_a_search_for_free_time_looks_for_all_of_them(world):
    world.lease(kit(2), start=HOUR, hours=1)
    question = AvailabilityQuestion(
        Actor("ada", PROJECT),
        reservations=(kit(2), kit(1)),
        earliest=NOON + HOUR,
        latest=NOON + 10 * HOUR,
        duration=Duration(seconds=3600),
    )
    found = world.manager.availability.find(question)
    assert found.openings[0].window.start == NOON + 2 * HOUR
    assert found.openings[0].counts == (2, 1)
    assert {(reason.reservation, reason.pointer) for reason in found.reasons} <= {
        (0, "/reservations/0"),
        (1, "/reservations/1"),
    }
    assert found.reasons
    assert all(each.counts is None for each in found.alternatives)


def test_a_feed_names_it_once(world):
    lease = world.lease(kit(2), start=HOUR)
    secret = hashlib.sha256(b"secret").hexdigest()
    world.manager.feeds.create(FeedRequest(FeedKind.USER, "mine", FeedOwner("curie", PROJECT)), secret)
    (item,) = world.manager.feeds.content(secret).items
    assert (item.lease_id, item.reserves) == (lease.id, (("test:kit", 1),))


def test_1_0_does_not_show_them(world):
    lease = world.now(world.lease(kit(2), start=HOUR))
    details = world.manager.leases.details(lease.id)
    parent, *children = lease.reservations
    assert [r["id"] for r in render.lease(lease)["reservations"]] == [parent.id]
    assert [r["id"] for r in render_payload(lease)["reservations"]] == [parent.id]
    with Flask("tests").test_request_context():
        (shown,) = full.lease(details, View(operator=False, names=False))["reservations"]
    assert [child["id"] for child in shown["children"]] == [child.id for child in children]
    assert [len(child["allocations"]) for child in shown["children"]] == [1, 1]
