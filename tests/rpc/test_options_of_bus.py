# SPDX-License-Identifier: Apache-2.0
"""The topics of the message bus, and how many requests a manager takes at a time, are what ``blazar.conf`` says."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from blazar.cmd import config, manager
from blazar.messaging import transport
from blazar.model.base.errors import ManagerUnavailable
from blazar.model.resources.resource import HOST
from blazar.rpc import server as rpc
from blazar.rpc.client import RemoteManager

pytestmark = pytest.mark.usefixtures("_quick_bus")


@pytest.fixture
def load(tmp_path) -> Iterator[Callable[..., cfg.ConfigOpts]]:
    """Load a configuration with a bus in memory, and these lines."""

    def made(*lines: str) -> cfg.ConfigOpts:
        file = tmp_path / "blazar.conf"
        bus = ("[DEFAULT]", "transport_url = fake://", "rpc_response_timeout = 1")
        file.write_text("\n".join([*bus, *lines, ""]), encoding="utf-8")
        cfg.CONF.reset()
        # Parts of the library look for their options nowhere but there.
        return config.load(["--config-file", str(file)], program="blazar-test", conf=cfg.CONF)

    yield made
    cfg.CONF.reset()


class Hosts:
    """A manager whose list of hosts is what a function says."""

    def __init__(self, every: Callable[[], None] = lambda: None) -> None:
        self.resources = self
        self._every = every

    def properties(self, **_: Any) -> tuple[()]:
        return ()

    def all(self, *_: Any, **__: Any) -> tuple[()]:
        self._every()
        return ()


@pytest.fixture
def serve() -> Iterator[Callable[..., RemoteManager]]:
    """Put a manager behind the bus, as ``blazar-manager`` does; return what an API with the same file sees."""
    servers = []

    def begin(conf: cfg.ConfigOpts, hosts: Hosts) -> RemoteManager:
        server = rpc.server(conf, transport(conf), hosts, name="a-manager")
        server.start(override_pool_size=conf.manager.rpc_threads)
        servers.append(server)
        return RemoteManager(conf, transport(conf))

    yield begin
    for server in servers:
        server.stop()
        server.wait()


@pytest.mark.slow
def test_managers_are_asked_on_the_topic_of_the_file(load, serve):
    topic = f"topic-{uuid.uuid4()}"
    remote = serve(load("[manager]", f"rpc_topic = {topic}"), Hosts())
    assert remote.resources.all(HOST) == ()
    conf = load("[manager]", f"rpc_topic = another-{topic}")
    with pytest.raises(ManagerUnavailable):
        RemoteManager(conf, transport(conf)).resources.all(HOST)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
def test_a_manager_takes_as_many_requests_at_a_time_as_the_file_says(load, serve, threads):
    three = threading.Barrier(3, timeout=0.3)
    met: list[bool] = []

    def meet() -> None:
        try:
            three.wait()
        except threading.BrokenBarrierError:
            met.append(False)
        else:
            met.append(True)

    topic = f"rpc_topic = topic-{uuid.uuid4()}"
    remote = serve(load("[manager]", topic, f"rpc_threads = {threads}"), Hosts(meet))
    remote.resources.properties(HOST, include_private=False)
    with ThreadPoolExecutor(3) as callers:
        for answer in [callers.submit(remote.resources.all, HOST) for _ in range(3)]:
            answer.result()
    assert met == [threads == 3] * 3


@pytest.mark.parametrize("heard", [True, False])
def test_the_notifications_of_nova_are_heard_if_the_file_says_so_and_where(load, heard):
    hints: list[str] = []
    one, other = (f"topic_{uuid.uuid4().hex}" for _ in range(2))
    bus = ("control_exchange = nova", "[oslo_messaging_notifications]", "driver = messaging", "transport_url = fake://")
    lines = ("[physical:host]", f"enable_notification_monitor = {heard}", f"notification_topics = {one}")
    conf = load(*bus, *lines)
    there = threading.Event()

    def hint(host: str) -> None:
        hints.append(host)
        there.set()

    listener = manager._service_updates(conf, SimpleNamespace(monitor=SimpleNamespace(hint=hint)))
    if not heard:
        assert listener is None
        return
    listener.start()
    try:
        nova = oslo_messaging.get_notification_transport(conf)
        for topic, host in ((other, "cn1"), (one, "cn2")):
            notifier = oslo_messaging.Notifier(nova, publisher_id="nova-compute:cn", topics=[topic])
            data = {"nova_object.name": "ServiceStatusPayload", "nova_object.data": {"host": host}}
            notifier.info({}, "service.update", data)
        assert there.wait(10)
        assert hints == ["cn2"]
    finally:
        listener.stop()
        listener.wait()
