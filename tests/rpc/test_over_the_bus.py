# SPDX-License-Identifier: Apache-2.0
"""The API with its manager in another process: the same answers, and a clear one when nobody answers."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import oslo_messaging
import pytest

from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.clouds.openstack.service import VersionMissing
from blazar.context import current, scope
from blazar.messaging import NAMESPACE, VERSION, target
from blazar.model.base import errors
from blazar.model.base.errors import BlazarError, ManagerUnavailable
from blazar.model.base.window import Window
from blazar.model.leases.details import LeaseRows
from blazar.model.leases.lease import Lease, LeaseRevision
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.rpc import client, codec
from blazar.rpc.client import ping_server
from tests.api.conftest import app_of, client_of, token
from tests.api.leases.test_rest_v1 import HOST_RESERVATION, LEASE
from tests.observed import FailingManager, ObservedManager
from tests.rpc.conftest import Bus

# What 1.0 never answers: no route of it asks for a revision, or limits searches.
SINCE_1_1 = (errors.PreconditionFailed, errors.TooManyRequests)
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BlazarError)]
NEWEST = {"OpenStack-API-Version": f"reservation {as_text(MAX_VERSION)}"}
NOBODY = "00000000-0000-0000-0000-000000000000"


def create(http, **changes):
    answer = http.post("/v1/leases", json={**LEASE, **changes}, headers=token())
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


def told(answer):
    return answer.status_code, answer.data


def test_a_lease_is_created_shown_changed_and_deleted(http, near):
    lease = create(http)
    url = f"/v1/leases/{lease['id']}"
    assert near.get(url, headers=token()).json["lease"] == lease
    changed = http.put(url, json={"name": "renamed", "end_date": "2030-04-03 08:00"}, headers=token()).json["lease"]
    assert (changed["name"], changed["end_date"]) == ("renamed", "2030-04-03T08:00:00.000000")
    assert near.get(url, headers=token()).json["lease"] == changed
    assert told(http.delete(url, headers=token())) == (204, b"")
    assert told(http.get(url, headers=token())) == told(near.get(url, headers=token()))


def test_a_host_is_registered_changed_and_given_back(http, near, world):
    world.manager.resources.unregister(HOST, "3")
    host = http.post("/v1/os-hosts", json={"name": "node-3", "gpu": "A100"}).json["host"]
    assert near.get("/v1/os-hosts/3").json["host"] == host
    assert http.put("/v1/os-hosts/3", json={"gpu": None, "rack": "r1"}).json["host"]["rack"] == "r1"
    hidden = http.patch("/v1/os-hosts/properties/rack", json={"private": True}).json["resource_property"]
    assert hidden["private"] is True
    assert http.delete("/v1/os-hosts/3").status_code == 204


def test_what_is_read_is_the_same_to_the_byte(http, near):
    near.put("/v1/os-hosts/1", json={"gpu": "A100", "rack": "ä/1"})
    lease = create(near, reservations=[{**HOST_RESERVATION, "resource_properties": '["=", "$gpu", "A100"]', "max": 1}])
    for path in (
        "/v1/leases",
        f"/v1/leases/{lease['id']}",
        "/v1/os-hosts",
        "/v1/os-hosts/1",
        "/v1/os-hosts/1/allocation",
        "/v1/os-hosts/allocations",
        f"/v1/os-hosts/allocations?lease_id={lease['id']}",
        "/v1/os-hosts/properties?detail=True&all=True",
    ):
        here, there = near.get(path), http.get(path)
        assert (there.status_code, there.data) == (200, here.data), path


def test_so_are_pages(http, near, world):
    near.put("/v1/os-hosts/1", json={"gpu": "A100", "rack": "ä/1"})
    world.register_addresses(10, 11)
    lease = create(near)
    for path in (
        "/v1/leases?with_count=true",
        "/v1/resources/host?limit=1&sort_key=property:rack",
        "/v1/resources/host/1/allocations",
        "/v1/resources/host/allocations?limit=2&with_count=true",
        f"/v1/resources/host/allocations?lease_id={lease['id']}",
        "/v1/resources/host/properties?limit=1",
        "/v1/resources/floatingip?limit=1&sort_dir=desc",
        "/v1/calendar",
        "/v1/capacity?group_by=gpu",
        "/v1/properties",
        "/v1/info",
    ):
        here, there = near.get(path, headers=NEWEST), http.get(path, headers=NEWEST)
        assert (there.status_code, there.data) == (200, here.data), path
        assert there.headers.get("ETag") == here.headers.get("ETag")


def test_so_are_resources_of_any_kind_as_operators_and_as_members_see_them(http, near, world):
    near.put("/v1/os-hosts/1", json={"gpu": "A100", "rack": "ä/1"})
    world.register_addresses(10)
    create(near)
    label = world.manager.resources.one("host", "1").label
    member = {"X-Auth-Token": "curie:physics"}
    for path, caller, status in (
        ("", {}, 200),
        ("/host?property=gpu:A100", {}, 200),
        ("/host/1", {}, 200),
        ("/host/allocations?limit=1", {}, 200),
        ("/host/candidates", {}, 200),
        ("/host?limit=1&with_count=true", member, 200),
        (f"/host/{label}", member, 200),
        ("/floatingip", member, 200),
        ("/host/1", member, 404),
        ("/host?property=rack:x&condition=ok", member, 400),
    ):
        headers = {**NEWEST, **caller}
        here, there = (app.get(f"/v1/resources{path}", headers=headers) for app in (near, http))
        assert there.status_code == here.status_code == status, path
        assert status >= 400 or there.data == here.data, path
        faults = [[{**each, "request_id": ""} for each in answer.json.get("errors", ())] for answer in (here, there)]
        assert faults[0] == faults[1], path
    here, there = (app.get("/v1/resources/rocket", headers=NEWEST).json["errors"][0]["data"] for app in (near, http))
    assert here == there
    assert {"floatingip", "host"} <= set(there["kinds"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/v1/leases/{NOBODY}", None),
        ("PUT", f"/v1/leases/{NOBODY}", {"name": "x"}),
        ("DELETE", f"/v1/leases/{NOBODY}", None),
        ("POST", "/v1/leases", {**LEASE, "end_date": "2030-04-01 08:00"}),
        ("POST", "/v1/leases", {**LEASE, "reservations": [{**HOST_RESERVATION, "min": 99, "max": 99}]}),
        ("POST", "/v1/leases", {**LEASE, "reservations": [{**HOST_RESERVATION, "resource_properties": '["?"]'}]}),
        ("POST", "/v1/leases", {**LEASE, "reservations": [{**HOST_RESERVATION, "resource_type": "virtual:instance"}]}),
        ("GET", "/v1/os-hosts/99", None),
        ("POST", "/v1/os-hosts", {"name": "node-1"}),
        ("POST", "/v1/os-hosts", {"name": "nowhere"}),
        ("PATCH", "/v1/os-hosts/properties/nothing", {"private": True}),
    ],
)
def test_a_users_mistake_is_told_in_the_same_words(http, near, method, path, body):
    here, there = (app.open(path, method=method, json=body) for app in (near, http))
    assert 400 <= here.status_code < 500
    assert told(there) == told(here)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [*KINDS, VersionMissing], ids=lambda kind: kind.__name__)
def test_an_error_of_each_kind_arrives_with_its_status_and_sentence(serve, world, kind):
    manager = FailingManager(world.manager, {"leases.update": kind("what was wrong, and what would do")})
    near, http = (client_of(app_of(each)) for each in (manager, serve(manager)))
    url = f"/v1/leases/{world.lease().id}"
    if kind in SINCE_1_1:
        manager = FailingManager(world.manager, {"leases.change": kind("what was wrong", data={"revision": 3})})
        answer = app_of(serve(manager)).test_client().put(url, json={"name": "renamed"}, headers=NEWEST)
        assert answer.status_code == kind.status
        assert answer.json["errors"][0]["detail"] == "what was wrong"
        assert answer.json["errors"][0]["data"]["revision"] == 3
        return
    answer = http.put(url, json={"name": "renamed"})
    assert answer.status_code == kind.status
    assert answer.json["error_message"] == "what was wrong, and what would do"
    assert answer.data == near.put(url, json={"name": "renamed"}).data


def test_a_bug_of_the_manager_is_a_500_with_nothing_of_its_inside(serve, world, caplog):
    manager = FailingManager(world.manager, {"leases.revisions": RuntimeError("secret detail")})
    near, http = (client_of(app_of(each)) for each in (manager, serve(manager)))
    answer = http.get("/v1/leases")
    assert answer.status_code == 500
    assert answer.data == near.get("/v1/leases").data
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    logged = [record for record in caplog.records if record.name == "blazar.rpc.server"]
    assert [record.exc_info[0] for record in logged] == [RuntimeError]


def test_a_bug_is_logged_at_both_ends_under_one_id(serve, world, caplog):
    manager = FailingManager(world.manager, {"leases.revisions": ZeroDivisionError()})
    answer = client_of(app_of(serve(manager))).get("/v1/leases")
    ends = {
        r.name: r.getMessage() for r in caplog.records if answer.headers["x-openstack-request-id"] in r.getMessage()
    }
    assert set(ends) == {"blazar.rpc.server", "blazar.api.http.errors"}


def test_the_global_request_id_goes_along(serve, world):
    seen = []

    def note(name, call, **arguments):
        if name == "leases.revisions":
            seen.append(current().request_id)
        return call(**arguments)

    http = client_of(app_of(serve(ObservedManager(world.manager, note))))
    global_id = "req-11111111-2222-3333-4444-555555555555"
    http.get("/v1/leases", headers={"X-OpenStack-Request-ID": global_id})
    own = http.get("/v1/leases").headers["x-openstack-request-id"]
    assert seen == [global_id, own]


def test_who_asks_goes_along_with_what_may_change_something(serve, world):
    seen = []

    def note(name, call, **arguments):
        seen.append((name, current().actor))
        return call(**arguments)

    http = client_of(app_of(serve(ObservedManager(world.manager, note))))
    http.get("/v1/leases", headers=token("curie", "physics"))
    http.put(f"/v1/leases/{NOBODY}", json={"name": "x"}, headers=token("root", "admin", "admin"))
    assert {actor for name, actor in seen if name == "leases.revisions"} == {None}
    assert seen[-1][1] == Actor("root", "admin", operator=True)


def test_whose_a_lease_was_when_it_was_judged_goes_along(serve, world):
    seen = []

    def note(name, call, **arguments):
        seen.append((name, tuple((owner.id, owner.project_id, owner.user_id) for owner in current().owners)))
        return call(**arguments)

    lease = world.lease()
    http = client_of(app_of(serve(ObservedManager(world.manager, note))))
    http.get(f"/v1/leases/{lease.id}", headers={**token("curie", "physics"), **NEWEST})
    judged = ("leases.details", ((lease.id, "physics", "curie"),))
    # A read whose answer is late is asked again.
    assert list(dict.fromkeys(seen))[-2:] == [("leases.owner", ()), judged]


def test_a_call_leaves_no_scope_behind_in_its_thread(serve, world):
    remote, before = serve(world.manager), current()
    with scope(request_id="req-one"):
        remote.resources.all(HOST)
    assert current() == before


@dataclass
class Shelf:
    """A manager of nothing but leases, that notes how many were asked for at a time."""

    known: dict[str, Lease]
    asked: list[int] = field(default_factory=list)

    @property
    def leases(self) -> Shelf:
        return self

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        return tuple(LeaseRevision(lease.id, 0) for lease in self.known.values())

    def by_id(self, lease_ids: Any) -> tuple[Lease, ...]:
        self.asked.append(len(lease_ids))
        return tuple(self.known[i] for i in reversed(lease_ids) if i in self.known)

    def rows(self, lease_ids: Any) -> LeaseRows:
        return LeaseRows(len(lease_ids), waiting=self.by_id(lease_ids))


def shelf(count: int) -> Shelf:
    start = datetime(2030, 4, 1, tzinfo=UTC)
    window = Window(start, start + timedelta(days=1))
    ids = [f"{number:08}-0000-0000-0000-000000000000" for number in range(count)]
    return Shelf({i: Lease(i, f"lease {i}", "u", "p", window, LeaseStatus.PENDING, start) for i in ids})


def test_a_long_list_comes_in_pages_and_in_order(serve):
    many = shelf(1201)
    http = client_of(app_of(serve(many)))
    listed = http.get("/v1/leases").json["leases"]
    assert [lease["id"] for lease in listed] == list(many.known)
    assert many.asked == [500, 500, 201]


@pytest.mark.sample(1)
@pytest.mark.parametrize("fitting", [1, 3, 600])
def test_a_list_comes_in_messages_that_are_bounded_by_their_bytes_and_in_order(serve_patiently, monkeypatch, fitting):
    some = shelf(7 if fitting == 1 else 1201)
    size = len(codec.encode_answer("leases.one", next(iter(some.known.values())))["answer"])
    monkeypatch.setattr(codec, "MAX_LIST_BYTES", fitting * (size + 3))
    answers = []
    original = codec.encode_answer

    def note(call, answer, **more):
        answers.append((call, original(call, answer, **more)))
        return answers[-1][1]

    monkeypatch.setattr(codec, "encode_answer", note)
    assert serve_patiently(some).leases.all(None) == tuple(some.known.values())
    lists = [codec.decode_answer(call, message) for call, message in answers if call == "leases.by_id"]
    assert max(len(leases) for leases in lists) <= fitting
    # What did not fit is not read again and again.
    assert sum(some.asked) <= 2 * len(some.known) + 500


@pytest.mark.parametrize("path", ["/v1/os-hosts", "/v1/os-hosts/allocations", "/v1/os-hosts/properties"])
def test_every_list_may_come_in_several_messages(http, near, monkeypatch, path):
    near.put("/v1/os-hosts/1", json={"gpu": "A100", "rack": "r1"})
    whole = near.get(path).data
    monkeypatch.setattr(codec, "MAX_LIST_BYTES", 10)
    assert http.get(path).data == whole


def losing(manager: Any, call: str, arguments: dict[str, Any], gone: int) -> ObservedManager:
    """Return a manager of which one list loses an item after two messages."""
    messages = itertools.count(1)

    def lose(name: str, ask: Callable[..., Any], **given: Any) -> Any:
        items = ask(**given)
        if (name, given) != (call, arguments) or next(messages) <= 2:
            return items
        return items[:gone] + items[gone + 1 :]

    return ObservedManager(manager, lose)


def call_of(manager: Any, call: str) -> Any:
    """Return the method of a manager that a call names."""
    noun, name = call.split(".")
    return getattr(getattr(manager, noun), name)


ALL = {"resource_id": None, "lease_id": None, "reservation_id": None}
LISTS: list[tuple[str, dict[str, Any]]] = [
    ("leases.revisions", {"project_id": None}),
    ("resources.all", {"kind": HOST}),
    ("resources.allocations", {"kind": HOST, **ALL}),
    ("resources.properties", {"kind": HOST, "include_private": True}),
    ("resources.all", {"kind": FLOATING_IP}),
    ("resources.allocations", {"kind": FLOATING_IP, **ALL}),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("gone", [0, 1], ids=["told long ago", "told last"])
@pytest.mark.parametrize(("call", "arguments"), LISTS)
def test_an_item_that_goes_while_a_list_is_read_takes_no_other_with_it(
    serve, world, monkeypatch, call, arguments, gone
):
    world.register_addresses(*range(40, 44))
    for number in range(4):
        world.lease(start=timedelta(hours=number))
        world.manager.resources.change(HOST, "1", ResourceChange({f"rack{number}": "r1"}))
    whole = list(call_of(world.manager, call)(**arguments))
    remote = serve(losing(world.manager, call, arguments, gone))
    monkeypatch.setattr(codec, "MAX_LIST_BYTES", 10)
    listed = list(call_of(remote, call)(**arguments))
    assert len(whole) >= 3
    assert [item for item in listed if item != whole[gone]] == whole[:gone] + whole[gone + 1 :]


def test_a_lease_that_goes_while_a_list_is_read_is_left_out(serve):
    some = shelf(3)
    gone = LeaseRevision("gone", 0)
    original = some.revisions
    some.revisions = lambda project_id: (gone, *original(project_id))
    assert serve(some).leases.all(None) == tuple(some.known.values())


def test_an_empty_list_is_asked_for_once(serve):
    none = shelf(0)
    assert serve(none).leases.all("p") == ()
    assert none.asked == []


@pytest.mark.slow
def test_when_no_manager_listens_it_is_503_with_a_sentence(unheard):
    http = client_of(app_of(unheard))
    began = time.monotonic()
    answer = http.get("/v1/leases")
    assert answer.status_code == 503
    assert answer.json["error_message"].startswith("no blazar-manager answered in time")
    assert time.monotonic() - began < 5


def test_a_message_bus_in_trouble_is_503_without_its_words(bus: Bus, caplog):
    def fail(*_: Any) -> None:
        raise oslo_messaging.MessageDeliveryFailure("amqp://guest:geheim@bus is gone")

    answer = client_of(app_of(bus.wired(fail))).get("/v1/leases")
    assert answer.status_code == 503
    assert answer.json["error_message"] == "the message bus cannot be reached; please try again"
    assert "is gone" in caplog.text


def test_a_message_bus_that_was_never_there_keeps_nobody_waiting(bus: Bus, monkeypatch):
    back = threading.Event()

    def hang(send: Callable[[], Any], *_: Any) -> Any:
        back.wait()
        return send()

    http = client_of(app_of(bus.wired(hang)))
    with monkeypatch.context() as patch:
        patch.setattr(client, "PATIENCE", 0.05)
        answers = [http.get("/v1/leases") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert answers[0].json["error_message"] == "the message bus cannot be reached; please try again"
    bus.seat.manager = shelf(0)
    back.set()
    assert http.get("/v1/leases").status_code == 200


def test_what_a_driver_raises_of_its_own_is_503(bus: Bus):
    def fail(*_: Any) -> None:
        raise ConnectionRefusedError("login was refused")

    with pytest.raises(ManagerUnavailable, match="message bus cannot be reached"):
        bus.wired(fail).resources.all(HOST)


@pytest.mark.parametrize("message", [{}, {"answer": "?"}, ["x"], None, {"error": 1}], ids=repr)
def test_an_answer_that_is_garbled_is_503(bus: Bus, message):
    with pytest.raises(ManagerUnavailable, match="cannot be understood"):
        bus.wired(lambda *_: message).leases.one(NOBODY)


@pytest.fixture
def raw(bus: Bus, remote):
    """A client of the bus that may ask for anything; the manager listens."""

    def ask(method: str, *, namespace: str = NAMESPACE, version: str = VERSION, **arguments: Any) -> Any:
        aim = target(bus.conf.manager.rpc_topic)(namespace=namespace, version=version)
        return oslo_messaging.get_rpc_client(bus.transport, aim).call({}, method, **arguments)

    return ask


@pytest.mark.parametrize("method", ["lease", "leases", "_manager", "__init__", "target", "__class__", "start", "stop"])
def test_the_server_has_no_other_method(raw, method):
    with pytest.raises(oslo_messaging.rpc.dispatcher.NoSuchMethod):
        raw(method, lease_id="x")


@pytest.mark.parametrize(("namespace", "version"), [("manager.api", "1.0"), (NAMESPACE, "1.0"), (NAMESPACE, "3.0")])
def test_the_server_speaks_no_other_version(raw, namespace, version):
    with pytest.raises(oslo_messaging.UnsupportedVersion):
        raw("ask", namespace=namespace, version=version, call="resources.all", arguments={})


@pytest.mark.parametrize(
    "call", ["start", "engine", "claims", "__class__", "_leases", "stop", "claims.stop", "leases.__class__"]
)
def test_what_is_no_call_of_the_interface_is_not_made(raw, call, caplog):
    answer = raw("ask", call=call, arguments={})
    assert answer["error"] == "OtherVersion"
    assert "of another version" in answer["message"]
    assert "is not known to this version" in caplog.text


@pytest.mark.parametrize("arguments", [None, [], {"lease_id": 5}, {"lease_id": "no JSON"}, {}, {"x": '"y"'}], ids=repr)
def test_arguments_that_are_garbled_are_a_message_in_the_log_and_no_traceback(raw, arguments, caplog):
    answer = raw("ask", call="leases.one", arguments=arguments)
    assert answer["error"] == "OtherVersion"
    (record,) = [r for r in caplog.records if r.name == "blazar.rpc.server"]
    assert (record.levelno, record.exc_info) == (logging.ERROR, None)


def test_what_travels_is_plain_data(bus: Bus, world):
    sent = []

    def note(send, context, message):
        answer = send()
        sent.append((context, message, answer))
        return answer

    bus.seat.manager = world.manager
    remote = bus.wired(note)
    remote.resources.all(HOST)
    assert remote.resources.one(HOST, "1").name == "node-1"
    assert json.loads(json.dumps(sent)) == [list(one) for one in sent]
    assert all(isinstance(text, str) for _, _, answer in sent for text in answer.values())


@pytest.mark.slow
def test_no_page_is_longer_than_the_manager_allows():
    assert client.PAGE <= 1000


def test_a_manager_receives_its_own_ping_over_the_bus_or_says_that_it_does_not(bus, serve, world):
    serve(world.manager)
    assert ping_server(bus.conf, bus.transport, "a-manager", 10).manager_id == world.manager.claims.owner
    with pytest.raises(ManagerUnavailable, match="no answer came back over the message bus: MessagingTimeout"):
        ping_server(bus.conf, bus.transport, "nobody", 0.1)
