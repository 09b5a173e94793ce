# SPDX-License-Identifier: Apache-2.0
"""A manager at one end of a message bus in memory, and the API at the other."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from flask.testing import FlaskClient
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from blazar.cmd import config
from blazar.messaging import transport
from blazar.rpc import server as rpc
from blazar.rpc.client import RemoteManager
from tests.api.conftest import app_of, client_of

Serve = Callable[[Any], RemoteManager]


class Seat:
    """Where the manager of the present test sits: a server takes a second to end, so all tests share one."""

    def __init__(self) -> None:
        self.manager: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)


class Wire:
    """A driver of the message bus with the test in between.

    ``around`` gets what sends a message on its way and returns the answer, the context and the message.
    """

    def __init__(self, bus: Bus, around: Callable[..., Any]) -> None:
        self.conf = bus.conf
        self._driver = bus.transport._driver
        self._around = around

    def send(self, target: Any, context: dict[str, Any], message: dict[str, Any], **more: Any) -> Any:
        return self._around(partial(self._driver.send, target, context, message, **more), context, message)


@dataclass(frozen=True)
class Bus:
    """A message bus in memory on which one server listens, and callers wait for a second."""

    conf: cfg.ConfigOpts
    transport: Any
    seat: Seat
    remote: RemoteManager

    def wired(self, around: Callable[..., Any], **more: Any) -> RemoteManager:
        """Return what another API sees, whose messages go through a function of the test as those of a ``Wire``."""
        return RemoteManager(self.conf, RPCTransport(Wire(self, around)), **more)


@pytest.fixture(scope="module")
def _quick_bus() -> Iterator[None]:
    """Let the bus in memory look for messages all the time, and not twenty times a second."""
    hasty = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(min(seconds, 0.002)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oslo_messaging._drivers.impl_fake.time", hasty)
        yield


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory, _quick_bus: None) -> Iterator[Bus]:
    file = tmp_path_factory.mktemp("bus") / "blazar.conf"
    lines = ["[DEFAULT]", "transport_url = fake://", "rpc_response_timeout = 1"]
    file.write_text("\n".join([*lines, "[manager]", f"rpc_topic = {uuid.uuid4()}"]), encoding="utf-8")
    # Parts of the library look for their options nowhere but there.
    conf = config.load(["--config-file", str(file)], program="blazar-test", conf=cfg.CONF)
    way = transport(conf)
    made = Bus(conf, way, Seat(), RemoteManager(conf, way))
    server = rpc.server(conf, made.transport, made.seat, name="a-manager")
    server.start()
    yield made
    server.stop()
    server.wait()
    conf.reset()


@pytest.fixture
def serve(bus: Bus) -> Iterator[Serve]:
    """Put a manager behind the bus; return what the API sees of it."""

    def begin(manager: Any) -> RemoteManager:
        bus.seat.manager = manager
        return bus.remote

    yield begin
    bus.seat.manager = None


@pytest.fixture
def serve_patiently(bus: Bus, serve: Serve) -> Iterator[Serve]:
    """Do the same for answers that take their time: on a busy machine a second may be too little."""
    bus.conf.set_override("rpc_response_timeout", 30)
    patient = RemoteManager(bus.conf, bus.transport)

    def begin(manager: Any) -> RemoteManager:
        serve(manager)
        return patient

    yield begin
    bus.conf.clear_override("rpc_response_timeout")


@pytest.fixture
def unheard(bus: Bus) -> Iterator[RemoteManager]:
    """What the API sees where no manager listens."""
    bus.conf.set_override("rpc_topic", str(uuid.uuid4()), group="manager")
    yield RemoteManager(bus.conf, bus.transport)
    bus.conf.clear_override("rpc_topic", group="manager")


@pytest.fixture
def remote(serve: Serve, world) -> RemoteManager:
    """The world's manager, by way of the bus."""
    return serve(world.manager)


@pytest.fixture
def http(remote: RemoteManager) -> FlaskClient:
    """An HTTP client of an API that has its manager elsewhere."""
    return client_of(app_of(remote))


@pytest.fixture
def near(world) -> FlaskClient:
    """An HTTP client of an API that has the same manager in its own process."""
    return client_of(app_of(world.manager))
