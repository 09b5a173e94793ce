# SPDX-License-Identifier: Apache-2.0
"""A kind of resource that has only what it must have, and kinds whose answers are wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudUnavailable, Conflict
from blazar.model.calendar.demand import Demand
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventType
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import Resource, ResourceDetails, ResourceInventory, ResourceKind
from blazar.resources.contract.kind import CloudResource, Kind, Polled, as_stored
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, NotYet, Unusable
from tests.world import NOON, TYPES, World, a_host, kinds_of

LOT = ResourceKind("lot")
HOUR = timedelta(hours=1)


class Lots(Kind):
    """Parking lots of ten spaces. Each attribute may be another function: the wrong answer of a test."""

    kind = LOT

    def find(self, request: Registration) -> CloudResource:
        return CloudResource(str(request.given["name"]), str(request.given["name"]))

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        return ResourceDetails({"level": 1}, ResourceInventory(Amounts.of({"SPACE": 10})))


class Preparing(Lots):
    """Lots that are prepared, and polled."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        self.failures: dict[str, Any] = {}

    def check_unused(self, in_cloud: CloudResource) -> None:
        pass

    def current(self, resource: Resource) -> CloudResource:
        return as_stored(resource)

    def enter(self, in_cloud: CloudResource) -> bool:
        self.prepared.add(in_cloud.name)
        return True

    def leave(self, in_cloud: CloudResource) -> None:
        self.prepared.discard(in_cloud.name)

    def poll(self, registered: Any, uses: Any) -> Polled:
        return Polled(self.failures)


class Parking(ResourceType):
    """A type of two spaces."""

    resource_type = "test:parking"
    kind = LOT

    def parameters(self, given: Any) -> Content:
        return Content({})

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        return Demand(LOT, 1, 1, per_instance=Amounts.of({"SPACE": 2}))

    def start(self, task: Any) -> Any:
        return Done()

    def end(self, task: Any) -> Any:
        return Done()


PARKING = ReservationRequest("test:parking", {})


@pytest.fixture
def lots() -> Preparing:
    return Preparing()


@pytest.fixture
def parking() -> Parking:
    return Parking()


@pytest.fixture
def world(sqlite, lots, parking) -> World:
    return World(
        sqlite, types=[*TYPES, lambda *_: parking], kinds=lambda *site: {**kinds_of(*site), LOT: lots}, register=False
    )


def register(world: World, name: str = "north") -> Resource:
    return world.manager.resources.register(LOT, Registration({"name": name}))


def test_what_a_kind_leaves_out_has_a_default(sqlite, parking):
    world = World(sqlite, types=[lambda *_: parking], kinds=lambda *_: {LOT: Lots()}, register=False)
    resources = world.manager.resources
    assert register(world).reservable
    assert resources.refresh(LOT, "north").failure is None
    lease = world.lease(PARKING, start=HOUR)
    assert [held.allocations[0].lease_id for held in resources.allocations(LOT)] == [lease.id]
    with pytest.raises(Conflict, match="the lot is allocated to lease"):
        resources.unregister(LOT, "north")
    world.manager.leases.delete(lease.id)
    resources.unregister(LOT, "north")
    assert resources.all(LOT) == ()


def boom(*_: object, **__: object) -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("member", "wrong", "words"),
    [
        ("find", lambda _: None, "find of the kind lot returned None, not a CloudResource"),
        ("find", lambda _: CloudResource("", "north"), "an id has 1 to 64 characters"),
        ("find", lambda _: CloudResource("p" * 300, "north"), "an id has 1 to 64 characters"),
        ("find", lambda _: CloudResource("p", "n" * 256), "a name at most 255"),
        ("details", lambda _: None, "details of the kind lot returned None, not ResourceDetails"),
        ("details", lambda _: ResourceDetails({}, {"SPACE": 1}), "not ResourceDetails"),
        ("details", lambda _: ResourceDetails({"x": object()}, ResourceInventory()), "is not JSON"),
    ],
)
def test_a_wrong_answer_registers_nothing_prepares_nothing_and_is_named(world, lots, member, wrong, words):
    setattr(lots, member, wrong)
    with pytest.raises(TypeError, match=words):
        register(world)
    assert (world.manager.resources.all(LOT), lots.prepared) == ((), set())


@pytest.mark.parametrize("error", [RuntimeError("boom"), CloudUnavailable("away")], ids=["a bug", "the cloud"])
@pytest.mark.parametrize("member", ["check_unused", "leave"])
def test_whatever_fails_a_resource_that_cannot_leave_can_still_be_reserved(world, lots, monkeypatch, member, error):
    def fail(_: object) -> None:
        raise error

    register(world)
    with monkeypatch.context() as patch:
        patch.setattr(lots, member, fail)
        with pytest.raises(type(error)):
            world.manager.resources.unregister(LOT, "north")
    assert world.manager.resources.one(LOT, "north").reservable
    assert lots.prepared == {"north"}


@pytest.mark.parametrize(
    ("poll", "words"),
    [
        (boom, "RuntimeError: boom"),
        (lambda *_: None, "poll of the kind lot returned NoneType, not Polled"),
        (lambda *_: Polled({"north": False}), "returned False as the failure of north; give its reason, or None"),
        (lambda *_: Polled({"north": ""}), "returned '' as the failure of north"),
        (lambda *_: Polled({"north": None}, {1: None}), "not ResourceDetails"),
    ],
)
def test_a_kind_whose_poll_is_wrong_keeps_no_other_from_being_healed(world, lots, caplog, poll, words):
    register(world)
    for number in (1, 2):
        world.register(f"node-{number}")
    lease = world.lease(a_host(), start=HOUR)
    (name,) = world.hosts_of(lease)
    lots.poll = poll
    world.simulated.operators.host_down(name)
    for _ in range(3):
        world.manager.monitor.run_once()
    assert world.hosts_of(lease) == {"node-1", "node-2"} - {name}
    said = [r.getMessage() for r in caplog.records if "Cannot poll" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("Cannot poll the state of lots, keeping the last known one: ")
    assert words in said[0]


def test_what_a_poll_says_of_resources_that_are_not_registered_is_ignored(world, lots):
    register(world)
    lots.poll = lambda *_: Polled({"north": None, "south": "gone"}, {999: ResourceDetails({}, ResourceInventory())})
    world.manager.monitor.run_once()
    assert world.manager.resources.one(LOT, "north").failure is None


def test_a_refresh_of_one_that_the_cloud_does_not_name_counts_as_failed(world, lots):
    register(world)
    lots.failures = {"south": None}
    assert world.manager.resources.refresh(LOT, "north").failure == "the cloud no longer knows it"
    lots.failures = {"north": None}
    assert world.manager.resources.refresh(LOT, "north").failure is None


def test_a_type_whose_leftovers_cannot_be_listed_keeps_no_other_from_being_swept(sqlite, lots, parking, caplog):
    parking.reservations_in_cloud = boom
    world = World(sqlite, types=[*TYPES, lambda *_: parking], kinds=lambda *site: {**kinds_of(*site), LOT: lots})
    assert world.manager.sweep.run_once() == 0
    assert "Leftovers of test:parking cannot be listed" in caplog.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Done({"lot": "north"}), "start of test:parking returned dict, not Content"),
        (Done(Content({"lot": object()})), "start of test:parking returned values that are not JSON"),
        (NotYet(5, "later"), "give a timedelta and a reason"),
        (NotYet(HOUR, None), "give a timedelta and a reason"),
        (Unusable({}), "start of test:parking raised Unusable for none of its resources"),
        (Unusable({999: "stuck"}), "start of test:parking raised Unusable for none of its resources"),
    ],
    ids=["no content", "no JSON", "no time", "no reason", "nothing unusable", "another's unusable"],
)
def test_a_wrong_answer_of_a_start_is_named_and_the_lease_can_still_end(world, parking, caplog, answer, words):
    def start(_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    register(world)
    parking.start = start
    lease = world.lease(PARKING, start=HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).event(EventType.START).reason == "internal error: TypeError"
    assert words in caplog.text
    world.manager.leases.delete(lease.id)
    assert world.now(lease).deleted_at is not None


@pytest.mark.parametrize(
    ("member", "wrong", "words"),
    [
        ("parameters", lambda _: {"spaces": 2}, "parameters of test:parking returned dict, not Content"),
        (
            "parameters",
            lambda _: Content({"spaces": {2}}),
            "parameters of test:parking returned values that are not JSON",
        ),
        ("demand", lambda *_, **__: None, "not a Demand for its kind"),
        ("demand", lambda *_, **__: Demand(ResourceKind("host"), 1, 1), "not a Demand for its kind"),
    ],
)
def test_a_wrong_answer_to_a_request_books_nothing_and_is_named(world, parking, member, wrong, words):
    register(world)
    setattr(parking, member, wrong)
    with pytest.raises(TypeError, match=words):
        world.lease(PARKING, start=HOUR)
    assert world.manager.leases.all(None) == ()
