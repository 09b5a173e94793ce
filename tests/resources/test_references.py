# SPDX-License-Identifier: Apache-2.0
"""Reservations that refer to others of their lease: they start after these, and end before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.base.moments import Duration
from blazar.model.base.reasons import ReasonCode
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange, ReservationRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion
from blazar.resources.contract.parameters import reference_of
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, Given, NotYet, Progress, Rank, Reference, Task, Unusable
from tests.world import NOON, PROJECT, World

PARTS = ("test:part", "test:wire")
HOUR, SOON = timedelta(hours=1), timedelta(seconds=2)
REFUSED, AWAY = CloudRefused("the cloud refused it"), CloudUnavailable("the cloud is away")


@dataclass
class Lab:
    """What was done with the parts, in order, and what is to come of the next calls: Done, if nothing is said."""

    done: list[str] = field(default_factory=list)
    coming: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    left: frozenset[str] = frozenset()

    def call(self, what: str, task: Task, ids: Content | None = None) -> Progress:
        call = f"{what} {task.reservation.parameters.values['name']}"
        self.done.append(call)
        outcome = self.coming[call].pop(0) if self.coming[call] else Done(ids)
        if isinstance(outcome, Callable):
            outcome = outcome(task)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def taken(self) -> list[str]:
        """Return what was done since the last look."""
        done, self.done = self.done, []
        return done


class Part(ResourceType):
    """A whole host with a name, which can use other parts."""

    resource_type = "test:part"
    kind = HOST
    rank = Rank.COMPUTE

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def parameters(self, given: Given) -> Content:
        uses = given.values.get("uses", [])
        assert isinstance(uses, list)
        content = Content({"name": given.values.get("name", ""), "uses": uses})
        self.references(content)
        return content

    def changed(self, current: Content, change: Given) -> Content:
        return self.parameters(Given({**current.values, **change.values}))

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        uses = enumerate(parameters.values["uses"])
        return tuple(reference_of(use, f"/uses/{number}", *PARTS) for number, use in uses)

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        return Demand(HOST, 1, 1)

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        return Demand(HOST, 1, 1, pinned=frozenset(task.counts))

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        return before.values["name"] != after.values["name"]

    def prepare(self, task: Task) -> Content:
        progress = self._lab.call("prepare", task, Content({"seen": self._seen(task)}))
        assert isinstance(progress, Done)
        assert progress.cloud_ids
        return progress.cloud_ids

    def start(self, task: Task) -> Progress:
        return self._lab.call("start", task, Content({"address": str(task.reservation.parameters.values["name"])}))

    def end(self, task: Task) -> Progress:
        return self._lab.call("end", task)

    def reservations_in_cloud(self, resources: object) -> frozenset[str]:
        return self._lab.left

    def _seen(self, task: Task) -> list[object]:
        names = [each.reservation for each in self.references(task.reservation.parameters)]
        return [dict(task.referent(str(name)).cloud_ids.values) for name in names]


class Wire(Part):
    """A part that ends after all others."""

    resource_type = "test:wire"
    rank = Rank.NETWORK


class Lamp(Part):
    """A part that no other can use."""

    resource_type = "test:lamp"


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def world(sqlite, lab) -> World:
    return World(sqlite, hosts=5, types=[lambda *_, made=made: made(lab) for made in (Part, Wire, Lamp)])


def a_part(name: str = "a", *uses: object, type: str = "test:part") -> ReservationRequest:
    return ReservationRequest(
        type, {"name": name, "uses": [use if isinstance(use, dict) else ref(use) for use in uses]}
    )


def a_wire(name: str, *uses: object) -> ReservationRequest:
    return a_part(name, *uses, type="test:wire")


def ref(reservation: object) -> dict[str, object]:
    return {"reservation": reservation}


def states(world: World, lease: Lease) -> dict[str, str]:
    return {str(r.parameters.values["name"]): str(r.status) for r in world.now(lease).reservations}


def later(world: World, after: timedelta) -> None:
    world.run_to(world.clock.now() + after)


# Requests


def test_an_index_becomes_the_id_of_the_reservation(world):
    lease = world.lease(a_part("a", 2, 1), a_part("b"), a_part("c"), start=HOUR)
    _, b, c = lease.reservations
    assert lease.reservations[0].shown["uses"] == [ref(c.id), ref(b.id)]
    assert world.now(lease).reservations[0].parameters == lease.reservations[0].parameters


REFUSALS = [
    ([a_part("a", 1)], "/reservations/0/uses/0", "names reservation 1, and the request has none; give an index"),
    ([a_part("a", "x")], "/reservations/0/uses/0", 'names reservation "x", and the request has none'),
    ([a_part(), a_part("b", 0, 1)], "/reservations/1/uses/1", "names reservation 1, which is the reservation itself"),
    ([a_part("a", 1), a_part("b", 2), a_part("c", 1)], "/reservations/1/uses/0", "in a cycle of 2; leave one"),
    (
        [a_part("a", {"reservation": -1})],
        "/reservations/0/uses/0",
        "uses/0 is .* name another reservation of the lease",
    ),
    ([a_part("a", {"reservation": True})], "/reservations/0/uses/0", "name another reservation"),
    ([a_part("a", {"reservation": 0, "port": 1})], "/reservations/0/uses/0", "name another reservation"),
]


@pytest.mark.parametrize(("wanted", "pointer", "sentence"), REFUSALS)
def test_what_cannot_be_kept_is_refused_where_it_stands(world, lab, wanted, pointer, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        world.lease(*wanted, start=HOUR)
    assert caught.value.pointer == pointer
    assert lab.done == []


def test_free_time_is_found_for_them(world):
    asked = AvailabilityQuestion(
        reservations=(a_part("a", 1), a_part("b")),
        latest=Duration(seconds=7200),
        duration=Duration(seconds=3600),
        asked_by=Actor("curie", PROJECT),
    )
    assert world.manager.availability.find(asked).openings


def renamed(lease: Lease, number: int, *uses: object) -> LeaseChange:
    return LeaseChange(
        reservations=(ReservationChange(id=lease.reservations[number].id, parameters={"uses": [*map(ref, uses)]}),)
    )


def test_a_change_names_reservations_of_the_lease_by_id(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b"), a_part("c"), start=HOUR)
    a, b, c = (r.id for r in lease.reservations)
    leases = world.manager.leases
    assert leases.update(lease.id, renamed(lease, 0, c)).reservations[0].shown["uses"] == [ref(c)]
    other = world.lease(a_part("d"), start=HOUR).reservations[0].id
    for number, uses, sentence in (
        (0, (other,), "and the lease has none; give the id of another reservation of this lease"),
        (0, (1,), "names reservation 1, and the lease has none"),
        (1, (b,), "which is the reservation itself"),
        (2, (a,), "in a cycle of 2"),
    ):
        with pytest.raises(InvalidInput, match=sentence) as caught:
            leases.update(lease.id, renamed(lease, number, *uses))
        assert caught.value.pointer == "/reservations/0/uses/0"
    world.run_to(NOON + HOUR)
    # Leases start in any order.
    started = [call for call in lab.taken() if call.startswith("start") and call != "start d"]
    assert started == ["start b", "start c", "start a"]


# Starts


def test_they_are_prepared_and_started_after_what_they_refer_to_in_one_attempt(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b", 2), a_part("c"), start=HOUR)
    assert lab.taken() == ["prepare c", "prepare b", "prepare a"]
    assert lease.reservations[0].cloud_ids.values == {"seen": [{"seen": [{"seen": []}]}]}
    seen: dict[str, object] = {}

    def look(task: Task) -> Progress:
        b = task.referent(task.lease.reservations[1].id)
        seen.update(b.cloud_ids.values, status=str(b.status))
        return Done()

    lab.coming["start a"] = [look]
    world.run_to(NOON + HOUR)
    assert lab.taken() == ["start c", "start b", "start a"]
    assert seen == {"address": "b", "status": "active"}
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_that_is_not_ready_holds_those_that_refer_to_it_and_no_others(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b"), a_part("c"), start=HOUR)
    lab.taken()
    lab.coming["start b"] = [NotYet(SOON, "b is building"), AWAY]
    world.run_to(NOON + HOUR)
    start = world.now(lease).event(EventType.START)
    assert (start.reason, start.attempts, start.due_at) == ("b is building", 0, NOON + HOUR + SOON)
    assert states(world, lease) == {"a": "pending", "b": "pending", "c": "active"}
    later(world, 2 * SOON)
    assert world.now(lease).event(EventType.START).attempts == 1
    later(world, HOUR / 60)
    assert lab.taken() == ["start b", "start c", "start b", "start b", "start a"]
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_that_fails_fails_all_that_need_it_and_the_event_has_its_reason(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b", 2), a_part("c"), a_part("d"), start=HOUR)
    lab.taken()
    lab.coming["start c"] = [REFUSED]
    world.run_to(NOON + HOUR)
    assert lab.taken() == ["start c", "start d"]
    assert states(world, lease) == {"a": "error", "b": "error", "c": "error", "d": "active"}
    start = world.now(lease).event(EventType.START)
    assert start.cause.code is ReasonCode.CLOUD_REFUSED
    assert f"reservation {lease.reservations[0].id} refers to reservation {lease.reservations[1].id}" in start.reason


def test_one_that_gets_other_resources_is_started_with_those_that_need_it_in_one_attempt(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b"), start=HOUR)
    lab.taken()
    lab.coming["start b"] = [lambda task: Unusable({task.resources[0].id: "it burns"})]
    world.run_to(NOON + HOUR)
    assert lab.taken() == ["start b", "start b", "start a"]
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_without_resources_fails_those_that_need_it(world, lab):
    lease = world.lease(a_part("a", 1), a_part("b"), *map(a_part, "cde"), start=HOUR)
    lab.taken()
    lab.coming["start b"] = [lambda task: Unusable({task.resources[0].id: "it burns"})]
    world.run_to(NOON + HOUR)
    assert lab.taken() == ["start b", "start c", "start d", "start e"]
    assert states(world, lease) == {"a": "error", "b": "error", "c": "active", "d": "active", "e": "active"}


# Ends


def test_they_end_before_what_they_refer_to_and_by_their_ranks(world, lab):
    lease = world.lease(a_wire("w"), a_part("a"), a_part("b", 1), a_part("c", 0), start=HOUR)
    world.run_to(NOON + HOUR)
    lab.taken()
    world.run_to(NOON + 3 * HOUR)
    assert lab.taken() == ["end b", "end a", "end c", "end w"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


@pytest.mark.sample(2)
@pytest.mark.parametrize("trouble", [AWAY, REFUSED, NotYet(SOON, "servers are left")])
def test_what_fails_to_end_delays_only_what_it_refers_to_and_higher_ranks(world, lab, trouble):
    lease = world.lease(a_wire("w"), a_part("a"), a_part("b", 1), a_part("c"), start=HOUR)
    world.run_to(NOON + HOUR)
    lab.taken()
    lab.coming["end b"] = [trouble]
    world.run_to(NOON + 3 * HOUR)
    assert lab.taken() == ["end b", "end c"]
    assert states(world, lease) == {"w": "active", "a": "active", "b": "active", "c": "deleted"}
    assert {a.reservation_id for a in world.store.calendar.of_lease(lease.id)} == {
        r.id for r in world.now(lease).reservations if r.status == "active"
    }
    later(world, HOUR / 60)
    assert lab.taken() == ["end b", "end a", "end w"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_deletion_and_the_undo_of_a_creation_end_them_in_the_same_order(world, lab):
    lease = world.lease(a_part("a"), a_part("b", 0), start=HOUR)
    lab.taken()
    world.manager.leases.delete(lease.id)
    assert lab.taken() == ["end b", "end a"]
    lab.coming["prepare b"] = [REFUSED]
    with pytest.raises(CloudRefused):
        world.lease(a_part("a"), a_part("b", 0), start=HOUR)
    assert lab.taken() == ["prepare a", "prepare b", "end b", "end a"]


def test_leftovers_are_removed_in_the_same_order(world, lab):
    lease = world.lease(a_wire("w"), a_part("a"), a_part("b", 1))
    world.run()
    world.run_to(NOON + 3 * HOUR)
    lab.taken()
    lab.coming["end b"] = [AWAY]
    lab.left = frozenset(r.id for r in lease.reservations)
    assert world.manager.sweep.run_once() == 1
    world.run()
    assert lab.taken() == ["end b"]
    later(world, HOUR / 60)
    assert lab.taken() == ["end b", "end a", "end w"]
