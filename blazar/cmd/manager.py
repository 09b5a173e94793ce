# SPDX-License-Identifier: Apache-2.0
"""blazar-manager: leases, reservations and events. Any number of them share a database and a message bus."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import FrameType
from typing import Any, TypeVar

from oslo_config import cfg
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar.clouds.openstack import connect, open_cloud
from blazar.clouds.openstack.access import POOL
from blazar.clouds.openstack.options import credentials
from blazar.clouds.ports import Cloud
from blazar.cmd import assemble, config, files, memory
from blazar.cmd.config import ConfigurationError
from blazar.cmd.tokens import ServiceUser
from blazar.enforcement import Identity
from blazar.manager import service_updates
from blazar.manager.service import ManagerService
from blazar.model.clock import SystemClock
from blazar.model.errors import BlazarError, CloudUnavailable, StoreUnavailable
from blazar.rpc import server as rpc
from blazar.rpc.target import transport
from blazar.store import migrate
from blazar.store.clock import DatabaseClock

LOG = logging.getLogger("blazar.manager")

T = TypeVar("T")

OPEN_FILES = 4 * POOL + 256
"""Connections to Nova, Placement, Glance and Neutron after the largest bursts, and what else there is."""

PARTING = 3.0
"""Seconds for the message bus to take leave of us."""

LOOK_AGAIN = 2.0
"""Seconds between two attempts to reach what a starting manager waits for."""


def main() -> int:
    """Run until SIGTERM or Ctrl-C; return the exit code."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        conf = config.load(sys.argv[1:], program="blazar-manager", conf=cfg.CONF)
        config.start_log(conf)
        signal.signal(signal.SIGHUP, lambda *_: config.read_again(conf))
        run(conf, stopping)
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-manager: {error}", file=sys.stderr)
        return 1
    return 0


def run(conf: cfg.ConfigOpts, stopping: threading.Event) -> None:
    """Serve until told to stop. ConfigurationError and others say what must be mended first."""
    for leftover in config.leftovers(conf):
        LOG.warning("The configuration sets %s, which nothing reads", leftover)
    assemble.check_plugins(conf)
    tables = _tables(conf, stopping)
    login = credentials(conf)
    access = connect(login)
    identity = Identity(
        auth_url=getattr(login.auth, "auth_url", None),
        region_name=login.region,
        tokens=ServiceUser(access.session),
        cafile=conf.cafile,
    )
    project_id = _patiently(access.check, conf, stopping)
    if stopping.is_set():
        return
    files.allow(OPEN_FILES)
    cloud = open_cloud(access, az_aware=conf.nova.az_aware)
    _look_around(cloud, conf)
    clock = DatabaseClock(tables, SystemClock())
    clock.synchronize()
    manager = assemble.manager(conf, engine=tables, cloud=cloud, clock=clock, identity=identity)
    bus = transport(conf)
    listener = rpc.server(conf, bus, manager, name=_server_name(conf), clock=manager.clock)
    updates = _service_updates(conf, manager)
    memory.settle()
    manager.start()
    # A message bus that is not there is waited for, for as long as it takes.
    listening = _beside(lambda: listener.start(override_pool_size=conf.manager.rpc_threads))
    hearing = None if updates is None else _beside(updates.start)
    LOG.info("blazar-manager %s works for the cloud as project %s", manager.claims.owner, project_id)
    try:
        while not stopping.wait(1):
            if listening.done():
                listening.result()
            if hearing is not None and hearing.done() and (trouble := hearing.exception()) is not None:
                # Without Nova's notifications hosts are still looked at, if less often.
                LOG.error("Nova's notifications can not be heard: %s", trouble)
                hearing = None
    except Exception as error:
        # The border to a message bus: its drivers raise what their libraries do, as for a wrong password.
        raise ConfigurationError(f"the message bus does not let us take requests: {error}") from error
    finally:
        LOG.info("blazar-manager stops; what is going on is finished first")
        manager.take_no_more()
        if listening.done() and listening.exception() is None:
            _for_a_while(lambda: _no_more_of(listener), conf.manager.request_limit + PARTING)
        if updates is not None and hearing is not None and hearing.done():
            _for_a_while(lambda: _no_more_of(updates), PARTING)
        manager.stop()
        tables.dispose()
        _for_a_while(bus.cleanup, PARTING)


def _service_updates(conf: cfg.ConfigOpts, manager: ManagerService) -> Any:
    hosts = conf["physical:host"]
    if not hosts.enable_notification_monitor:
        return None
    pool = service_updates.queue(conf.manager.rpc_topic)
    return service_updates.listener(conf, hosts.notification_topics, manager.monitor.hear, pool=pool)


def _no_more_of(listener: Any) -> None:
    listener.stop()
    listener.wait()


def _for_a_while(action: Callable[[], None], seconds: float) -> None:
    """Do something for so many seconds at most: a message bus that is away lets nobody say goodbye."""
    with contextlib.suppress(FutureTimeout):
        _beside(action).result(seconds)


def _beside(action: Callable[[], None]) -> Future[None]:
    """Do something that may take for ever in a thread that nobody waits for, so that a signal finds us awake."""
    outcome: Future[None] = Future()

    def work() -> None:
        try:
            action()
        except Exception as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=work, name="listening", daemon=True).start()
    return outcome


def _tables(conf: cfg.ConfigOpts, stopping: threading.Event) -> Engine:
    engine = assemble.database_engine(conf)

    def look() -> None:
        try:
            current = migrate.current(engine)
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StoreUnavailable(f"the database can not be used: {reason}") from error
        if current != migrate.head():
            raise ConfigurationError(
                f"the tables of the database are at revision {current or 'none'}, and this version works with "
                f"{migrate.head()}; run: blazar-db-manage --config-file … upgrade head"
            )

    _patiently(look, conf, stopping)
    return engine


def _patiently(look: Callable[[], T], conf: cfg.ConfigOpts, stopping: threading.Event) -> T | None:
    """Return what is seen when it can be seen; say meanwhile what is waited for, and give up after a while."""
    end = time.monotonic() + conf.manager.startup_wait
    said = ""
    while not stopping.is_set():
        try:
            return look()
        except (CloudUnavailable, StoreUnavailable) as error:
            if time.monotonic() >= end:
                raise
            reason = error.message
        if reason != said:
            said = reason
            LOG.warning("Waiting for up to %d s: %s", conf.manager.startup_wait, said)
        stopping.wait(min(LOOK_AGAIN, max(0.0, end - time.monotonic())))
    return None


def _look_around(cloud: Cloud, conf: cfg.ConfigOpts) -> None:
    """Say at once what would only fail with the first lease. None of it keeps the manager from its work."""
    try:
        if cloud.compute.aggregate(conf.nova.aggregate_freepool_name) is None:
            LOG.error(
                "The cloud has no host aggregate named %r: no host can be registered or leased before there is one. "
                "Create it (without an availability zone), or name yours in [nova] aggregate_freepool_name",
                conf.nova.aggregate_freepool_name,
            )
    except BlazarError as error:
        LOG.error("Nova can not be asked for its aggregates yet: %s", error.message)


def _server_name(conf: cfg.ConfigOpts) -> str:
    # ``host`` is where the API listens, too; its usual value, every address, is the name of no server.
    return socket.gethostname() if conf.host in ("0.0.0.0", "::") else str(conf.host)


if __name__ == "__main__":
    sys.exit(main())
