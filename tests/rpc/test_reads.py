# SPDX-License-Identifier: Apache-2.0
"""Calls that only read are made once more without an answer, and say that nothing was changed; no other call is."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import oslo_messaging
import pytest

from blazar.api.http.context import EXTENSION
from blazar.context import effects, may_change
from blazar.model.base.errors import ManagerUnavailable, OutOfTime
from blazar.model.resources.resource import HOST
from blazar.rpc import codec
from blazar.rpc.client import ManagerClock, RemoteManager
from blazar.rpc.reads import FIRST_WAIT, QUICK, READS, SLOW, share_wait
from blazar.rpc.server import Endpoint
from tests.api.conftest import app_of, client_of, token
from tests.api.leases.test_rest_v1 import LEASE
from tests.observed import ObservedManager
from tests.rpc.conftest import Bus
from tests.statements import counted
from tests.world import NOON, a_host

CHANGES = codec.CALLS.keys() - READS


@dataclass
class Line:
    """The queue of a topic: its managers take messages in turn. One that stands still (None) does not answer."""

    managers: list[Endpoint | None]
    taken: list[tuple[str, float]] = field(default_factory=list)

    def __call__(self, send: Any, context: dict[str, Any], message: dict[str, Any]) -> Any:
        call, arguments = message["args"]["call"], message["args"]["arguments"]
        self.taken.append((call, send.keywords["timeout"]))
        manager = self.managers.pop(0)
        self.managers.append(manager)
        if manager is None:
            raise oslo_messaging.MessagingTimeout
        return json.loads(json.dumps(manager.ask(json.loads(json.dumps(context)), call, arguments)))

    def count(self, call: str) -> int:
        return [name for name, _ in self.taken].count(call)


@pytest.fixture
def line_of(bus: Bus) -> Callable[..., tuple[Line, RemoteManager]]:
    """Put managers into a line; return it, and what an API sees that knows their time already."""

    def make(*managers: Endpoint | None) -> tuple[Line, RemoteManager]:
        line, clock = Line(list(managers)), ManagerClock(lambda: 100.0)
        clock.learn(NOON.timestamp(), asked=100.0, answered=100.0)
        remote = bus.wired(line, time=clock)
        remote.connect().join()
        line.taken.clear()
        line.managers[:] = managers
        return line, remote

    return make


def asked(remote: RemoteManager, call: str) -> Any:
    """Make a call without its arguments: on a line on which nobody answers nobody reads them."""
    return remote.ask(call)


def test_every_call_that_reads_is_one_of_the_interface():
    assert codec.CALLS.keys() >= READS
    assert QUICK.keys() | SLOW <= READS


@pytest.mark.parametrize("call", sorted(READS))
def test_a_read_without_an_answer_says_that_nothing_was_changed(line_of, call):
    line, remote = line_of(None)
    with effects(), pytest.raises(OutOfTime) as told:
        asked(remote, call)
    assert told.value.message == "no blazar-manager answered in time; nothing was changed, please try again"
    assert told.value.retry_after
    assert line.count(call) == (1 if call in SLOW else 2)


@pytest.mark.parametrize("call", sorted(CHANGES))
def test_a_change_without_an_answer_is_sent_once_and_says_that_it_may_have_been_done(line_of, call):
    line, remote = line_of(None)
    with effects(), pytest.raises(ManagerUnavailable, match="may or may not have been done") as told:
        asked(remote, call)
    assert told.value.retry_after is None
    assert line.count(call) == 1


def test_a_read_after_a_change_of_the_same_request_does_not_say_that_nothing_was_changed(line_of):
    _, remote = line_of(None)
    with effects():
        may_change()
        with pytest.raises(ManagerUnavailable, match="may or may not have been done"):
            remote.resources.all(HOST)


def test_a_read_that_a_manager_which_stands_still_has_taken_is_answered_by_another(world, line_of, caplog):
    line, remote = line_of(None, Endpoint(world.manager, world.clock))
    with caplog.at_level(logging.WARNING):
        assert [host.name for host in remote.resources.all(HOST)] == ["node-1", "node-2", "node-3"]
    assert line.count("resources.all") == 2
    assert "did not answer in 0.5 s, and another one is asked" in caplog.text


def test_pages_and_programs_read_while_one_of_two_managers_stands_still(world, line_of):
    line, remote = line_of(None, Endpoint(world.manager, world.clock))
    http = client_of(app_of(remote))
    assert http.get("/v1/leases").status_code == 200
    line.managers[:] = [None, Endpoint(world.manager, world.clock)]
    told = http.post("/v1/leases", json=LEASE)
    assert (told.status_code, "may or may not" in told.json["error_message"]) == (503, True)
    assert world.store.leases.of_project(None) == ()


def test_the_first_question_of_an_api_is_asked_twice_too(world, bus):
    there = Endpoint(world.manager, world.clock)
    # The first one takes the message by which an API connects.
    line = Line([None, None, there, there])
    remote = bus.wired(line, time=ManagerClock(lambda: 100.0))
    assert len(remote.resources.all(HOST)) == 3


@pytest.fixture
def patient(bus: Bus) -> Iterator[Bus]:
    """Let callers wait as long as they do unless an operator says otherwise; on a line nobody does in truth."""
    bus.conf.set_override("rpc_response_timeout", 30)
    yield bus
    bus.conf.clear_override("rpc_response_timeout")


@pytest.mark.parametrize(("call", "waits"), [("service.facts", [3.0, 3.0]), ("leases.page", [10.0, 20.0])])
def test_a_call_waits_no_longer_for_the_time_of_managers_than_for_its_answer(patient, call, waits):
    line = Line([None])
    remote = patient.wired(line, time=ManagerClock(lambda: 100.0))
    remote.connect().join()
    line.taken.clear()
    with pytest.raises(ManagerUnavailable, match="nothing was done"):
        asked(remote, call)
    assert [seconds for _, seconds in line.taken] == waits


def test_a_get_says_when_to_try_again_and_not_that_something_may_have_been_done(line_of):
    _, remote = line_of(None)
    told = client_of(app_of(remote)).get("/v1/leases")
    assert told.status_code == 503
    assert "nothing was changed" in told.json["error_message"]
    assert told.headers["Retry-After"] == "5"


@pytest.mark.parametrize(
    ("call", "seconds", "shares"),
    [
        ("leases.one", 30.0, (FIRST_WAIT, 20.0)),
        ("leases.one", 12.0, (6.0, 6.0)),
        ("leases.create", 30.0, (30.0,)),
        ("availability.find", 30.0, (30.0,)),
        ("service.facts", 30.0, (3.0, 3.0)),
        ("service.facts", 4.0, (2.0, 2.0)),
    ],
)
def test_the_time_that_a_caller_waits_is_shared(call, seconds, shares):
    assert share_wait(call, seconds) == shares


NOT_BY_GET = {
    "availability.find",
    "feeds.content",
    "leases.all",
    "leases.by_id",
    "leases.replay",
    "leases.verdict",
    "series.one",
    "series.replay",
    "service.ping",
    "subscriptions.failures",
    "subscriptions.replay",
    "charges.replay",
}
"""Reads that no GET makes, or none in this world: of POST, of the service itself, of what a world has none of."""

ROOT = token("root", "admin", "admin")
WRITES = ("INSERT", "UPDATE", "DELETE")


@pytest.mark.slow
def test_what_a_get_asks_of_a_manager_only_reads_and_writes_nothing(world):
    lease = world.lease(a_host())
    world.run()
    seen: dict[str, int] = {}

    def note(name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        with counted(world.engine) as statements:
            try:
                return call(*arguments, **more)
            finally:
                writes = sum(text.lstrip().upper().startswith(WRITES) for text in statements.texts)
                seen[name] = seen.get(name, 0) + writes

    app = app_of(ObservedManager(world.manager, note))
    http, served = client_of(app), app.extensions[EXTENSION].served
    ids = {"lease_id": lease.id, "kind": "host", "resource_id": "1", "host_id": "1", "version": "1", "month": "2030-04"}
    span = "from=2030-04-01T00:00:00Z&to=2030-04-02T00:00:00Z"
    for row in (row for row in served.routes if row.method == "GET"):
        path = re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "x"), row.url)
        for version, query, who in (("1.0", "", ROOT), ("1.1", "", ROOT), ("1.1", span, ROOT), ("1.1", "", token())):
            http.get(f"{path}?{query}", headers={"OpenStack-API-Version": f"reservation {version}", **who})
    assert not {name for name, writes in seen.items() if writes}
    assert seen.keys() <= READS
    assert READS - seen.keys() <= NOT_BY_GET
