# SPDX-License-Identifier: Apache-2.0
"""The same requests with the message bus between API and manager, as a cloud runs them."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import cache

from oslo_config import cfg

from bench.ground import Ground, database
from bench.requests import Figure, cell
from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.cmd import config
from blazar.messaging import transport
from blazar.rpc import server as rpc
from blazar.rpc.client import RemoteManager

RABBITMQ = os.environ.get("BLAZAR_TEST_RABBITMQ", "rabbit://guest:guest@127.0.0.1:5672/")


@cache
def configuration() -> cfg.ConfigOpts:
    """Return a configuration with an exchange of its own; a process can have but one."""
    name = f"blazar_bench_{uuid.uuid4().hex[:8]}"
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(
            f"[DEFAULT]\ntransport_url = {RABBITMQ}\ncontrol_exchange = {name}\n[manager]\nrpc_topic = {name}\n"
            "[oslo_messaging_rabbit]\namqp_auto_delete = true\n"
        )
        file.flush()
        return config.load(["--config-file", file.name], program="bench", conf=cfg.CONF)


def measure(kind: str, hosts: int, leases: int, say: Callable[[Figure], None]) -> Iterator[Figure]:
    """Measure requests over RabbitMQ; API and manager share a process here, and so one core at a time."""
    conf = configuration()
    with database(kind) as engine:
        ground = Ground(engine, hosts)
        ground.fill(leases, most=leases)
        bus = transport(conf)
        listener = rpc.server(conf, bus, ground.manager, name="bench")
        listener.start()
        ground.app = create_app(RemoteManager(conf, bus), identity=StandaloneIdentity())
        ground.http = ground.app.test_client()
        try:
            for figure in cell(f"{kind} over RabbitMQ", ground, hosts, leases):
                say(figure)
                yield figure
        finally:
            listener.stop()
            listener.wait()
            bus.cleanup()
