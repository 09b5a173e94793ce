# SPDX-License-Identifier: Apache-2.0
"""When load balancers may send requests to an API: once it has reached a manager and Keystone, and until it drains."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time

import pytest
from werkzeug.test import Client

from blazar.clouds.openstack import Access
from blazar.clouds.openstack.options import credentials
from blazar.cmd import api, web
from blazar.cmd.config import ConfigurationError
from blazar.cmd.health import KeystoneCheck, list_pages, make_api_readiness, make_manager_readiness
from blazar.model.base.errors import CloudUnavailable, ManagerUnavailable, OtherVersion, StoreUnavailable
from blazar.observe.readiness import DRAINING, Liveness
from tests.cmd.stub import PASSWORD
from tests.cmd.test_api import BUS, login_at
from tests.cmd.test_web import ask, serve
from tests.observed import FailingManager, ObservedStore, before, failing
from tests.openstack import eventually

__all__ = ["serve"]


@pytest.fixture
def conf(load, stub):
    return load(*BUS, *login_at(stub, PASSWORD))


def health_of(conf, readiness) -> Client:
    return Client(api.build(conf, readiness=readiness))


def test_an_api_is_well_once_it_has_reached_a_manager_and_keystone_and_stays_so(conf, stub, world):
    readiness = make_api_readiness(conf, world.manager)
    readiness.start = lambda: None
    http = health_of(conf, readiness)
    answer = http.get("/healthcheck")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "manager: it was not looked at yet" in answer.text
    readiness.look_at_all()
    assert http.get("/healthcheck").status_code == 200
    stub.statuses["/v3"] = 503
    readiness.look_at_all()
    assert http.get("/healthcheck").status_code == 200
    assert [state.name for state in readiness.list_states() if state.error] == ["keystone"]
    readiness.begin_drain()
    assert http.get("/healthcheck").text == f"{DRAINING}\n"
    assert http.head("/healthcheck").status_code == 503


def test_an_api_without_a_manager_is_not_well(conf, world):
    for error in (ManagerUnavailable("the message bus cannot be reached; please try again"), ZeroDivisionError("x")):
        readiness = make_api_readiness(conf, FailingManager(world.manager, {"service.ping": error}))
        readiness.look_at_all()
        assert (readiness.explain_refusal() or "").startswith("manager: ")
    assert "ZeroDivisionError" in (readiness.explain_refusal() or "")


def test_an_api_with_a_wrong_password_is_not_well_and_says_so(conf, world, stub, load):
    readiness = make_api_readiness(load(*BUS, *login_at(stub, "wrong")), world.manager)
    readiness.look_at_all()
    refusal = readiness.explain_refusal()
    assert refusal.startswith(
        "keystone: Keystone does not accept the user of [keystone_authtoken]: wrong user, password"
    )


def test_a_manager_of_an_earlier_version_is_a_manager(conf, world):
    readiness = make_api_readiness(conf, FailingManager(world.manager, {"service.ping": OtherVersion("what?")}))
    readiness.look_at_all()
    assert readiness.explain_refusal() is None


def test_a_manager_without_its_database_is_told_and_which_one_it_is(conf, world):
    store = ObservedStore(world.store, before("managers.measure_answer", failing(StoreUnavailable("it is away"))))
    manager = world.another_manager(store=store)
    readiness = make_api_readiness(conf, manager)
    readiness.look_at_all()
    assert readiness.list_failures() == (f"database: the manager {manager.claims.owner} says: it is away",)
    readiness.look_at_all()
    assert readiness.list_failures() == ()


def test_keystone_is_asked_for_a_token_until_it_gives_one_and_then_only_whether_it_is_there(conf, stub):
    check = KeystoneCheck(conf)
    stub.statuses["/v3"] = 503
    with pytest.raises(CloudUnavailable, match="Keystone does not answer"):
        check.look()
    stub.statuses.clear()
    check.look()
    stub.asked.clear()
    check.look()
    assert stub.asked
    assert not [line for line in stub.asked if "tokens" in line]
    stub.close()
    with pytest.raises(CloudUnavailable, match="Keystone does not answer"):
        check.look()


def test_the_stacks_of_threads_are_told_to_nobody(load, stub, world):
    conf = load(*BUS, *login_at(stub, PASSWORD), "[healthcheck]", "detailed = true")
    readiness = make_api_readiness(conf, world.manager)
    readiness.look_at_all()
    answer = health_of(conf, readiness).get("/healthcheck", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    assert "threads" not in answer.text
    assert "python_version" not in answer.text


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_an_api_that_is_told_to_stop_drains_at_once_and_serves_as_long_as_the_file_says(seconds):
    drained, ended = threading.Event(), threading.Event()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))

    def app(environ, start_response):
        start_response("503 draining" if drained.is_set() else "200 OK", [])
        return [b""]

    serving = web.Serving(web.server(app, trusts_proxy=False, listener=listener, threads=2))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        serving.stop_on_signals(drained.set, seconds)

        def run() -> None:
            serving.run()
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        assert "200 OK" in ask(listener.getsockname()[1])
        begun_at = time.monotonic()
        signal.raise_signal(signal.SIGTERM)
        assert drained.is_set()
        if seconds:
            assert "503 draining" in ask(listener.getsockname()[1])
        assert ended.wait(20)
        assert time.monotonic() - begun_at >= seconds
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_the_loop_that_accepts_tells_how_long_its_turn_lasts():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    serving = web.Serving(web.server(lambda *_: [], trusts_proxy=False, listener=listener, threads=1))
    assert serving.seconds_in_turn() == 0
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    eventually(lambda: 0 < serving.seconds_in_turn() < 10, patience=5)
    serving.begin_stop()
    thread.join(10)


def test_the_seconds_of_draining_are_those_of_the_file(conf, load, stub, monkeypatch):
    given = []

    class Enough(Exception):
        pass

    def stop_on_signals(serving, begin_drain, seconds):
        given.append(seconds)
        raise Enough

    monkeypatch.setattr(web.Serving, "stop_on_signals", stop_on_signals)
    lines = (*BUS, "host = 127.0.0.1", "port = 0", *login_at(stub, PASSWORD))
    for more in ((), ("[api]", "drain_seconds = 7")):
        with pytest.raises(Enough):
            api._serve(load(*lines, *more))
    assert given == [0, 7]


def test_a_login_that_is_refused_is_no_outage(load, stub):
    with pytest.raises(ConfigurationError, match="does not accept the user"):
        KeystoneCheck(load(*BUS, *login_at(stub, "wrong"))).look()


def test_people_and_alerts_read_what_does_not_work_and_supervisors_what_is_stuck(thing_of_two):
    turns, readiness, pages = thing_of_two
    tell = lambda path, **query: pages[path].handler(query)  # noqa: E731
    assert (tell("/livez").status, tell("/livez").body) == (200, b"ok")
    turns["engine"] = 140.0
    assert (tell("/livez").status, tell("/livez").body) == (503, b"engine has been in one turn for 140 s")
    answer = tell("/readyz")
    assert (answer.status, answer.body) == (503, b"bus: it was not looked at yet\ndatabase: it was not looked at yet")
    readiness.look_at_all()
    assert tell("/readyz").body == b"bus: away"
    told = json.loads(tell("/readyz", detailed="").body)
    assert (told["status"], [(check["name"], check["status"], check["error"]) for check in told["checks"]]) == (
        "failing",
        [("bus", "failing", "away"), ("database", "ok", None)],
    )
    readiness.look_at_all()
    assert (tell("/readyz").status, tell("/readyz").body) == (200, b"ok")
    assert not any(page.needs_token for page in pages.values())


def test_a_manager_says_which_service_of_which_region_does_not_answer(world):
    def fail() -> None:
        raise CloudUnavailable("Nova does not answer: refused")

    readiness = make_manager_readiness(world.manager, looks={"nova of North": fail, "nova of South": lambda: None})
    readiness.look_at_all()
    assert readiness.list_failures() == ("nova of North: Nova does not answer: refused",)
    assert [state.name for state in readiness.list_states()] == ["database", "nova of North", "nova of South"]


def test_all_services_of_a_cloud_are_looked_at_without_a_token_and_those_that_fail_are_named(load, stub, working):
    looks = Access(credentials(load(*working()))).list_looks()
    assert set(looks) == {"keystone", "nova", "placement", "glance", "neutron", "cinder", "heat"}
    for look in looks.values():
        look()
    stub.statuses["/placement"] = 503
    with pytest.raises(CloudUnavailable, match="Placement answers with status 503"):
        looks["placement"]()
    stub.statuses["/placement"] = 401
    looks["placement"]()
    stub.close()
    for name in ("keystone", "nova", "heat"):
        with pytest.raises(CloudUnavailable, match="does not answer"):
            looks[name]()


@pytest.fixture
def thing_of_two(world):
    """The turns of an engine, checks of a manager whose bus is away at first, and their pages."""
    turns, errors = {"engine": 0.0}, [ManagerUnavailable("away")]

    def ping() -> None:
        if errors:
            raise errors.pop()

    readiness = make_manager_readiness(world.manager, ping)
    return turns, readiness, list_pages(Liveness({"engine": lambda: turns["engine"]}), readiness)
