# SPDX-License-Identifier: Apache-2.0
"""A request that nobody waits for any more is not carried out, whatever clocks show and wherever it lay."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import oslo_messaging
import pytest

from blazar.context import check_awaited, limit_wait
from blazar.manager.booking.booking import Proposal
from blazar.model.base.errors import ManagerUnavailable, NothingDone, OtherVersion, TooLate
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.resources.resource import HOST
from blazar.rpc import client, codec
from blazar.rpc.client import ManagerClock, RemoteManager
from blazar.rpc.server import Endpoint
from blazar.store.booking.commit import Commit
from tests.api.conftest import app_of, client_of
from tests.api.leases.test_rest_v1 import HOST_RESERVATION, LEASE
from tests.observed import ObservedManager, ObservedStore, before
from tests.rpc.conftest import Bus
from tests.world import NOON, ManualClock, World, a_host

TIMEOUT = 1
"""Seconds that callers wait on the bus of these tests."""


@dataclass
class Way:
    """A way from the API to managers that a test can hold up: ``held`` are messages that lie with a stopped manager."""

    managers: list[Endpoint]
    stops: bool = False
    held: list[tuple[dict[str, Any], str, dict[str, str]]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, send: object, context: dict[str, Any], message: dict[str, Any]) -> Any:
        context = json.loads(json.dumps(context))
        call, arguments = message["args"]["call"], message["args"]["arguments"]
        self.sent.append(context)
        if self.stops:
            self.held.append((context, call, arguments))
            raise oslo_messaging.MessagingTimeout
        manager = self.managers.pop(0)
        self.managers.append(manager)
        return json.loads(json.dumps(manager.ask(context, call, arguments)))

    def goes_on(self) -> list[dict[str, str]]:
        """Let the stopped manager work on what it has; return its answers."""
        self.stops = False
        return [self.managers[0].ask(*message) for message in self.held]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(client._until_begun, "sleep", lambda _: None)


@pytest.fixture
def way_to(bus: Bus):
    """Put managers at the end of a way; return the way and what the API sees."""

    def make(*managers: Endpoint) -> tuple[Way, RemoteManager]:
        way = Way(list(managers))
        # Here no time goes by of itself, at the managers neither.
        return way, bus.wired(way, time=ManagerClock(lambda: 100.0))

    return make


def wish() -> LeaseRequest:
    return LeaseRequest("one wish", "u", "p", NOON + timedelta(hours=1), NOON + timedelta(hours=2), None, (a_host(),))


@pytest.mark.parametrize("change", ["create", "update"])
def test_a_request_that_lay_with_a_stopped_manager_is_not_carried_out_when_it_goes_on(world, way_to, change):
    lease = world.lease(start=timedelta(hours=3))
    way, remote = way_to(Endpoint(world.manager, world.clock))
    http = client_of(app_of(remote))
    assert http.get("/v1/leases").status_code == 200
    before = world.store.leases.of_project(None)
    way.stops = True
    dates = {"end_date": "2030-04-03 08:00"}
    url, method = ("/v1/leases", "POST") if change == "create" else (f"/v1/leases/{lease.id}", "PUT")
    told = http.open(url, method=method, json=LEASE if change == "create" else dates)
    assert told.status_code == 503
    world.clock.by(seconds=TIMEOUT)
    assert {answer["error"] for answer in way.goes_on()} <= {"TooLate"}
    assert world.store.leases.of_project(None) == before
    assert http.post("/v1/leases", json=LEASE).status_code == 201
    assert len(world.store.leases.of_project(None)) == len(before) + 1


@pytest.mark.parametrize("call", sorted(codec.CALLS.keys() - {"leases.all"}))
def test_no_call_begins_after_its_deadline(world, call, monkeypatch):
    begun = []
    manager = ObservedManager(world.manager, lambda name, *_, **__: begun.append(name))
    endpoint = Endpoint(manager, ManualClock())
    monkeypatch.setattr(codec, "decode_arguments", lambda call, texts: {})
    context = {"deadline": repr(NOON.timestamp())}
    assert endpoint.ask(context, call, {})["error"] == "TooLate"
    assert not begun


def test_a_manager_that_stops_between_beginning_and_booking_does_not_book(a_world, way_to):
    class Slow:
        """A filter in whose check the machine sleeps."""

        options = []
        needs_use = False
        occasions = frozenset()

        def check(self, question):
            world.clock.by(seconds=TIMEOUT)

        def notify(self, notification):
            pass

    world: World = a_world(filters=[Slow()])
    _, remote = way_to(Endpoint(world.manager, world.clock))
    remote.resources.all(HOST)
    with pytest.raises(TooLate, match="nothing was done"):
        remote.leases.create(wish())
    assert world.store.leases.of_project(None) == ()


@pytest.mark.parametrize("years", [-40, -1, 0, 1, 100])
def test_how_far_the_clocks_of_two_machines_differ_does_not_matter(world, way_to, years):
    world.clock.instant = NOON.replace(year=NOON.year + years)
    way, remote = way_to(Endpoint(world.manager, world.clock))
    assert len(remote.resources.all(HOST)) == 3
    deadline = datetime.fromtimestamp(float(way.sent[-1]["deadline"]), UTC)
    # A question waits half of that for one manager, and then for another.
    assert deadline == world.clock.now() + timedelta(seconds=TIMEOUT / 2)


def test_no_request_but_the_first_question_goes_out_without_a_deadline(world, way_to):
    way, remote = way_to(Endpoint(world.manager, world.clock))
    remote.leases.create(wish())
    remote.leases.all(None)
    assert ["deadline" in context for context in way.sent] == [False, *[True] * (len(way.sent) - 1)]


def test_when_nobody_answers_the_first_question_nothing_else_is_asked_for(world, way_to):
    way, remote = way_to(Endpoint(world.manager, world.clock))
    way.stops = True
    with pytest.raises(NothingDone, match="nothing was done"):
        remote.leases.create(wish())
    assert {call for _, call, _ in way.held} == {"resources.properties"}


def test_a_clock_that_was_set_back_or_forth_is_learnt_with_the_next_answer(world, way_to):
    _, remote = way_to(Endpoint(world.manager, world.clock))
    remote.resources.all(HOST)
    for days in (1, -2):
        world.clock.by(days=days)
        assert len(remote.resources.all(HOST)) == 3


def test_a_manager_of_an_earlier_version_tells_no_time_and_works_all_the_same(world, way_to):
    class Earlier(Endpoint):
        def ask(self, context, call, arguments):
            answer = super().ask(context, call, arguments)
            del answer["now"]
            return answer

    way, remote = way_to(Earlier(world.manager, world.clock))
    for _ in range(3):
        assert len(remote.resources.all(HOST)) == 3
    assert not any("deadline" in context for context in way.sent)
    assert len(way.sent) <= 5


def test_an_api_of_an_earlier_version_goes_on_after_as_many_items_as_it_has(world):
    answer = Endpoint(world.manager, world.clock).ask({"skip": "2"}, "resources.all", {"kind": '"host"'})
    assert [host.name for host in codec.decode_answer("resources.all", answer)] == ["node-3"]


def test_a_manager_of_an_earlier_version_is_told_how_many_items_the_api_has(world, way_to, monkeypatch):
    class Earlier(Endpoint):
        def ask(self, context, call, arguments):
            return super().ask({name: text for name, text in context.items() if name != "after"}, call, arguments)

    _, remote = way_to(Earlier(world.manager, world.clock))
    monkeypatch.setattr(codec, "MAX_LIST_BYTES", 10)
    assert [host.name for host in remote.resources.all(HOST)] == ["node-1", "node-2", "node-3"]


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-inf", "1e99", None, [], {}], ids=repr)
def test_a_deadline_that_is_none_keeps_nobody_from_work(world, text):
    answer = Endpoint(world.manager, world.clock).ask(
        {"deadline": text, "skip": text, "after": text}, "resources.all", {"kind": '"host"'}
    )
    assert "answer" in answer


class TestManagerClock:
    def test_it_is_not_known_before_the_first_answer(self):
        time = ManagerClock(lambda: 5.0)
        assert not time.known
        assert time.after(1) is None

    def test_it_is_never_thought_later_than_it_is(self):
        time = ManagerClock(lambda: 20.0)
        # Their clock is 1 000 ahead of ours, and was read at 11.
        time.learn(1011.0, asked=10.0, answered=14.0)
        assert time.after(5) == 1022.0 <= 1025.0

    def test_a_quicker_answer_tells_it_better_and_a_slower_one_no_worse(self):
        time = ManagerClock(lambda: 20.0)
        time.learn(1011.0, asked=10.0, answered=14.0)
        time.learn(1015.5, asked=15.0, answered=16.0)
        assert time.after(0) == 1019.5
        time.learn(1017.0, asked=16.0, answered=19.0)
        assert time.after(0) == 1019.5


def test_who_is_not_waited_for_may_work_for_ever():
    clock = ManualClock()
    check_awaited()
    with limit_wait(None, clock):
        clock.by(days=1)
        check_awaited()


def test_work_begun_in_time_is_finished_even_if_nobody_waits(world):
    booker = world.manager.leases.creator.booker
    nothing = Commit((), at=NOON)

    def write(_, __):
        world.clock.by(days=1)
        return ()

    def book():
        return booker.book(lambda _: Proposal("done", nothing), write=write).found

    with limit_wait(NOON + timedelta(seconds=1), world.clock):
        assert [book() for _ in range(2)] == ["done", "done"]
    with limit_wait(NOON + timedelta(days=3), world.clock):
        world.clock.by(days=3)
        with pytest.raises(TooLate):
            book()


def test_a_change_that_comes_too_late_leaves_the_lease_as_it_was(a_world, way_to):
    lease = (world := a_world()).lease(start=timedelta(hours=3))
    # The calendar is slow for as often as the request is sent.
    slow = before("calendar.view_window", *[lambda: world.clock.by(seconds=TIMEOUT)] * 3)
    _, remote = way_to(Endpoint(world.another_manager(store=ObservedStore(world.store, slow)), world.clock))
    remote.resources.all(HOST)
    as_it_was = world.now(lease)
    change = LeaseChange(end=lease.window.end + timedelta(hours=1))
    with pytest.raises(TooLate):
        remote.leases.update(lease.id, change)
    assert world.now(lease) == as_it_was
    assert remote.leases.update(lease.id, change).window != as_it_was.window


class Newer:
    """A manager of another version, which does not know what it is asked for."""

    def ask(self, context, call, arguments):
        return Endpoint(object(), ManualClock()).ask(context, "a call of tomorrow", arguments)


def test_a_request_that_no_manager_knows_yet_is_503_and_may_be_sent_again(way_to, caplog):
    way, remote = way_to(Newer())
    answer = client_of(app_of(remote)).post("/v1/leases", json=LEASE)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "of another version" in answer.json["error_message"]
    assert "nothing was done" in answer.json["error_message"]


def test_a_request_that_one_manager_does_not_know_is_given_to_the_next(world, way_to):
    _, remote = way_to(Newer(), Newer(), Endpoint(world.manager, world.clock))
    assert len(remote.resources.all(HOST)) == 3


@pytest.mark.parametrize("arguments", [{"lease_id": '"x"', "fields": '"name"'}, {}], ids=["one more", "one less"])
def test_arguments_of_another_version_are_no_bug(world, arguments):
    answer = Endpoint(world.manager, world.clock).ask({}, "leases.one", arguments)
    with pytest.raises(OtherVersion):
        codec.decode_answer("leases.one", answer)


@pytest.mark.parametrize(
    "error",
    [
        oslo_messaging.RemoteError("UnsupportedVersion", "no endpoint"),
        oslo_messaging.UnsupportedVersion("3.0", method="ask"),
        oslo_messaging.NoSuchMethod("ask"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_does_not_take_our_questions_at_all_is_one_of_another_version(bus, error):
    def fail(*_: Any) -> None:
        raise error

    with pytest.raises(OtherVersion):
        bus.wired(fail).resources.all(HOST)


def test_only_what_was_not_done_invites_another_try(way_to, world):
    way, remote = way_to(Endpoint(world.manager, world.clock))
    http = client_of(app_of(remote))
    http.get("/v1/leases")
    way.stops = True
    answer = http.post("/v1/leases", json={**LEASE, "reservations": [HOST_RESERVATION]})
    assert answer.status_code == 503
    assert "may or may not have been done" in answer.json["error_message"]
    assert "Retry-After" not in answer.headers
    assert issubclass(NothingDone, ManagerUnavailable)
