# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ itself between the API and managers that stand still, and lists of the longest leases there are."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import string
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import amqp
import pytest
from oslo_config import cfg

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.leases.limits import MOST_TEXT
from blazar.cmd import config
from blazar.messaging import transport
from blazar.model.base.errors import ManagerUnavailable
from blazar.model.base.window import Window
from blazar.model.leases.details import LeaseRows
from blazar.model.leases.lease import Lease, LeaseRevision
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST
from blazar.rpc import server as rpc
from blazar.rpc.client import RemoteManager
from blazar.rpc.server import PREFETCH, Endpoint
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.conftest import RABBITMQ, missing
from tests.world import NOON, World, a_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

TIMEOUT = 3
BIGGEST_MESSAGE = 16 * 1024 * 1024
"""What RabbitMQ 4 takes by default."""


def configured(folder: Path, topic: str) -> cfg.ConfigOpts:
    file = folder / "blazar.conf"
    lines = ["[DEFAULT]", f"transport_url = {RABBITMQ}", f"rpc_response_timeout = {TIMEOUT}", "[manager]"]
    file.write_text("\n".join([*lines, f"rpc_topic = {topic}"]), encoding="utf-8")
    # Parts of the library look for their options nowhere but there.
    return config.load(["--config-file", str(file)], program="blazar-test", conf=cfg.CONF)


@pytest.fixture
def topic() -> str:
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def conf(tmp_path: Path, topic: str) -> Iterator[cfg.ConfigOpts]:
    with reached():
        yield configured(tmp_path, topic)
    cfg.CONF.reset()


@pytest.fixture
def serve(conf: cfg.ConfigOpts) -> Iterator[Callable[..., RemoteManager]]:
    """Put a manager behind RabbitMQ; return what the API sees of it."""
    way = transport(conf)
    servers = []

    def begin(manager: Any, *, threads: int = 8, timeout: float = 60) -> RemoteManager:
        conf.set_override("rpc_threads", threads, group="manager")
        server = rpc.server(conf, way, manager, name="a-manager")
        server.start(override_pool_size=threads)
        servers.append(server)
        remote = RemoteManager(conf, way)
        conf.set_override("rpc_response_timeout", timeout)
        remote.resources.properties(HOST, include_private=False)
        return remote

    yield begin
    for server in servers:
        server.stop()
        server.wait()
    way.cleanup()


@contextlib.contextmanager
def reached() -> Iterator[None]:
    try:
        with amqp.Connection("127.0.0.1:5672", connect_timeout=5):
            pass
    except OSError as error:
        missing("RabbitMQ", error)
    yield


def waiting_in(topic: str) -> int:
    """Return how many messages no manager has taken."""
    with amqp.Connection("127.0.0.1:5672") as connection:
        return int(connection.channel().queue_declare(topic, passive=True).message_count)


class Hotel:
    """A manager that lets callers wait."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    @property
    def resources(self) -> Hotel:
        return self

    def properties(self, **_: Any) -> tuple[()]:
        return ()

    def all(self, kind: str) -> tuple[()]:
        self.begun.release()
        self.go_on.wait(60)
        return ()


def test_a_busy_manager_leaves_requests_to_others(serve, topic):
    hotel = Hotel()
    remote = serve(hotel, threads=1)
    callers = [threading.Thread(target=remote.resources.all, args=(HOST,), daemon=True) for _ in range(12)]
    for caller in callers:
        caller.start()
    assert hotel.begun.acquire(timeout=20)
    # One is worked on, and the next one is at hand.
    left = 12 - 2 - PREFETCH
    try:
        assert any(waiting_in(topic) == left or time.sleep(0.1) for _ in range(100)), waiting_in(topic)
        time.sleep(0.5)
        assert waiting_in(topic) == left
    finally:
        hotel.go_on.set()
        for caller in callers:
            caller.join(30)


@pytest.fixture
def stopped_at_will(tmp_path: Path, topic: str, conf: cfg.ConfigOpts) -> Iterator[subprocess.Popen[str]]:
    """A manager in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-m", __name__, str(tmp_path), topic], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "ready"
    yield child
    child.send_signal(signal.SIGCONT)
    child.kill()
    child.communicate()


def test_what_a_stopped_manager_held_is_not_carried_out_when_it_goes_on(stopped_at_will, conf, tmp_path):
    remote = RemoteManager(conf, transport(conf))
    wish = LeaseRequest("one wish", "u", "p", NOON + timedelta(hours=1), NOON + timedelta(hours=2), None, (a_host(),))
    assert remote.leases.all(None) == ()
    stopped_at_will.send_signal(signal.SIGSTOP)
    callers = [threading.Thread(target=refused, args=(remote, wish)) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    stopped_at_will.send_signal(signal.SIGCONT)
    # Whatever it held it has worked on by the time that it answers new questions.
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(ManagerUnavailable):
            remote.resources.all(HOST)
            break
    time.sleep(1)
    assert remote.leases.all(None) == ()
    assert remote.leases.create(wish).name == "one wish"
    assert len(remote.leases.all(None)) == 1


def test_all_that_reads_goes_on_while_one_of_two_managers_stands_still(stopped_at_will, serve, record_property):
    remote = serve(Shelf(1, 10), timeout=2 * TIMEOUT)
    stopped_at_will.send_signal(signal.SIGSTOP)
    took = []
    for _ in range(12):
        begin = time.monotonic()
        assert [revision.id for revision in remote.leases.revisions(None)] == ["0"]
        took.append(time.monotonic() - begin)
    record_property("seconds", [round(seconds, 1) for seconds in took])
    print("seconds:", [round(seconds, 1) for seconds in took])
    # What it has taken it keeps; the bus gives it no more than that, and the rest is answered at once.
    assert sum(seconds > 1 for seconds in took) <= PREFETCH + 1
    assert max(took) < TIMEOUT + 2
    assert took[-1] < 1


def refused(remote: RemoteManager, wish: LeaseRequest) -> None:
    with pytest.raises(ManagerUnavailable):
        remote.leases.create(wish)


class Shelf:
    """A manager of nothing but leases, with texts that cannot be packed."""

    def __init__(self, count: int, text: int) -> None:
        dice = random.Random(5)
        start = datetime(2030, 4, 1, tzinfo=UTC)
        window = Window(start, start + timedelta(days=1))

        def lease(number: int) -> Lease:
            words = "".join(dice.choices(string.printable, k=text))
            room = Reservation(
                f"r{number}",
                "physical:host",
                None,
                ReservationStatus.PENDING,
                start,
                None,
                False,
                False,
                Content({"text": words}),
            )
            return Lease(str(number), "n", "u", "p", window, LeaseStatus.PENDING, start, reservations=(room,))

        self._leases = {str(number): lease(number) for number in range(count)}

    @property
    def leases(self) -> Any:
        return self

    @property
    def resources(self) -> Any:
        return self

    def properties(self, **_: Any) -> tuple[()]:
        return ()

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        return tuple(LeaseRevision(lease_id, 0) for lease_id in self._leases)

    def by_id(self, lease_ids: Any) -> tuple[Lease, ...]:
        return tuple(self._leases[lease_id] for lease_id in lease_ids)

    def rows(self, lease_ids: Any) -> LeaseRows:
        # As the store does, which counts what fits into a message.
        return LeaseRows(len(lease_ids[:50]), waiting=self.by_id(lease_ids[:50]))


@pytest.mark.parametrize(
    ("text", "what"),
    [(MOST_TEXT, "the most that a lease may have"), (100_000, "more than that, from before there was a bound")],
)
def test_an_operator_lists_three_hundred_of_the_longest_leases(serve, monkeypatch, record_property, text, what):
    sizes = []
    original = Endpoint.ask

    def ask(self, context, call, arguments):
        answer = original(self, context, call, arguments)
        sizes.append(len(json.dumps({"oslo.message": json.dumps({"result": answer})})))
        return answer

    ask.exposed = True
    monkeypatch.setattr(Endpoint, "ask", ask)
    remote = serve(Shelf(300, text))
    http = create_app(remote, identity=StandaloneIdentity()).test_client()
    began = time.monotonic()
    answer = http.get("/v1/leases")
    took = time.monotonic() - began
    assert answer.status_code == 200
    assert len(answer.json["leases"]) == 300
    assert max(sizes) < BIGGEST_MESSAGE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for name, value in {
        "seconds": took,
        "largest message": max(sizes),
        "messages": len(sizes),
        "peak MiB": peak,
    }.items():
        record_property(name, value)
    print(f"{text} bytes: {took:.1f} s, {len(sizes)} messages, the largest of {max(sizes)} bytes, peak {peak} MiB")


def main(folder: str, topic: str) -> None:
    """Be a manager on RabbitMQ until killed."""
    conf = configured(Path(folder), topic)
    engine = make_engine(f"sqlite:///{folder}/blazar.sqlite")
    upgrade(engine)
    world = World(engine)
    # It has the time of this machine, but for where leases are: the world's hosts are booked by its own clock.
    server = rpc.server(conf, transport(conf), world.manager, name="a-manager")
    server.start(override_pool_size=8)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
