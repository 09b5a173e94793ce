# SPDX-License-Identifier: Apache-2.0
"""blazar-manager: leases, reservations and events. Several managers can share a database and a message bus."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, TypeVar

from oslo_config import cfg
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.access import POOL, ServiceUser
from blazar.clouds.openstack.options import credentials
from blazar.clouds.openstack.people import KeystonePeople
from blazar.clouds.ports import Cloud
from blazar.clouds.power import open_power
from blazar.cmd import assemble, config, health, logs, monitoring, process, tracing
from blazar.cmd.config import ConfigurationError
from blazar.cmd.fingerprints import take_fingerprints
from blazar.cmd.orders import Orders
from blazar.enforcement import CloudIdentity
from blazar.manager.health import service_updates
from blazar.manager.service import ManagerService
from blazar.messaging import explain_refusal, transport
from blazar.model.base.clock import Clock, SystemClock
from blazar.model.base.errors import BlazarError, CloudUnavailable, StoreUnavailable
from blazar.model.base.log_lines import Trouble
from blazar.model.base.values import dataclass
from blazar.model.managers.presence import ManagerState
from blazar.observe.readiness import LIMIT, Readiness
from blazar.rpc import server as rpc
from blazar.rpc.client import ping_server
from blazar.store.sql import revisions
from blazar.store.sql.clock import DatabaseClock
from blazar.store.sql.engine import explain_failure

LOG = logging.getLogger("blazar.manager")

T = TypeVar("T")

OPEN_FILES = 4 * POOL + 256
"""Connections to Nova, Placement, Glance and Neutron after the largest bursts, and 256 for everything else."""

PARTING = 3.0
"""Seconds to wait for the message bus to disconnect."""

BUS_SECONDS = 5.0
"""Seconds without a connection to the message bus after which a starting manager says that it waits for it."""

BUS_POLL_SECONDS = 0.5

FINISH_POLL_SECONDS = 0.2

RETRY_SECONDS = 2.0
"""Seconds between two attempts to reach a service that a starting manager waits for."""


def main() -> int:
    """Run until SIGTERM, Ctrl-C, or SIGUSR2, which lets it drain; return the exit code."""
    stopping = Orders()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.stop())
    signal.signal(signal.SIGUSR2, lambda *_: stopping.drain())
    try:
        conf = config.load(sys.argv[1:], program="blazar-manager", conf=cfg.CONF)
        logs.start(conf)
        signal.signal(signal.SIGHUP, lambda *_: config.read_again(conf))
        run(conf, stopping)
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-manager: {error}", file=sys.stderr)
        return 1
    return 0


def run(conf: cfg.ConfigOpts, stopping: Orders) -> None:
    """Serve until ``stopping`` is set. Raises ConfigurationError and other errors that prevent the start."""
    for leftover in config.leftovers(conf):
        LOG.warning("Option %s is set in the configuration and not used", leftover)
    assemble.check_plugins(conf)
    stop_tracing = tracing.start(conf, "blazar-manager")
    tables = _tables(conf, stopping)
    try:
        started = _assemble(conf, tables, stopping)
        if started is not None:
            _serve(conf, started, stopping)
    finally:
        tables.dispose()
        stop_tracing()


@dataclass(frozen=True)
class _Started:
    """A manager, the project of its service user, and what looks whether services of its clouds answer, by name."""

    manager: ManagerService
    project_id: str
    looks: Mapping[str, Callable[[], None]]


def _assemble(conf: cfg.ConfigOpts, tables: Engine, stopping: threading.Event) -> _Started | None:
    """Return a manager once all that it needs is there; None if it is to stop."""
    login = credentials(conf)
    access = Access(login)
    identity = CloudIdentity(
        auth_url=getattr(login.auth, "auth_url", None),
        region_name=login.region,
        tokens=ServiceUser(access.session),
        cafile=conf.cafile,
    )
    project_id = _patiently(access.log_in, conf, stopping)
    if stopping.is_set():
        return None
    regions = config.regions(conf)
    process.allow_open_files(OPEN_FILES * max(1, len(regions.names)))
    clock = DatabaseClock(tables, SystemClock())
    # A login for each: what becomes of the services of one region concerns no other.
    accesses = {name: Access(credentials(conf, region=name)) for name in regions.names} or {"": access}
    clouds = _open_clouds(conf, accesses, clock)
    for name, cloud in clouds.items():
        _look_around(cloud, conf, f" of {name}" if name else "")
    people = KeystonePeople(access.session, region_name=login.region)

    def assembled() -> ManagerService:
        clock.synchronize()
        return assemble.manager(conf, engine=tables, clouds=clouds, clock=clock, identity=identity, people=people)

    manager = _patiently(assembled, conf, stopping)
    if manager is None:
        return None
    manager.journal_numbering.tell_configuration(take_fingerprints(conf))
    looks = {
        f"{service} of {region}" if region else service: look
        for region, one in accesses.items()
        for service, look in one.list_looks().items()
    }
    return _Started(manager, project_id or "", looks)


def _serve(conf: cfg.ConfigOpts, started: _Started, stopping: Orders) -> None:
    """Let a manager work, and answer what comes by the message bus, until ``stopping`` is set."""
    manager, bus = started.manager, transport(conf)
    pool = rpc.pool_of(conf)
    listener = rpc.server(conf, bus, manager, name=_server_name(conf), clock=manager.clock, pool=pool)
    updates = _service_updates(conf, manager)
    liveness = health.make_liveness(manager)
    readiness = _make_readiness(conf, bus, started)
    numbers = monitoring.list_pages(lambda: manager.readings.read(pool), manager.sampling.read)
    port = monitoring.open_port(conf, numbers | health.list_pages(liveness, readiness))
    process.settle()
    manager.start()
    process.feed_watchdog(liveness.list_stuck, threading.Event())
    # An unreachable message bus is waited for without a limit.
    listening = _run_in_daemon(lambda: listener.start(override_pool_size=conf.manager.rpc_threads))
    hearing = None if updates is None else _run_in_daemon(updates.start)
    said = f"blazar-manager {manager.claims.owner} has started, with the service user in project {started.project_id}"
    try:
        _wait_for_bus(listening, stopping)
        if not stopping.is_set():
            # Database, cloud and message bus have been reached.
            manager.presence.enter(ManagerState.RUNNING)
            if conf.monitoring.listen:
                readiness.start()
            LOG.info("%s", said)
            process.say_ready(said)
        _watch(listening, hearing, stopping)
    except Exception as error:
        # Drivers of the message bus pass on exceptions of their libraries, for example for a wrong password.
        raise ConfigurationError(f"cannot receive requests from the message bus: {explain_refusal(error)}") from error
    finally:
        _say_stopping(manager, drains=stopping.drains)
        if listening.done() and listening.exception() is None:
            _for_a_while(lambda: _no_more_of(listener), conf.manager.request_limit + PARTING)
        if updates is not None and hearing is not None and hearing.done() and hearing.exception() is None:
            _for_a_while(lambda: _no_more_of(updates), PARTING)
        _finish(manager, stopping.at_once, stopping.seconds_left(conf.manager.drain_timeout))
        _for_a_while(bus.cleanup, PARTING)
        port.stop()


def _make_readiness(conf: cfg.ConfigOpts, bus: Any, started: _Started) -> Readiness:
    """Return the checks of a manager that asks itself over the bus whether it is there."""
    ping = partial(ping_server, conf, bus, _server_name(conf), LIMIT)
    return health.make_manager_readiness(started.manager, ping, started.looks)


def _say_stopping(manager: ManagerService, *, drains: bool) -> None:
    """Let a manager begin nothing more, and say so."""
    if drains:
        LOG.info("blazar-manager is draining: it takes no request and no event, and ends when its work is finished")
        process.say_status("draining: finishing the work in progress")
    else:
        LOG.info("blazar-manager is stopping, after finishing the work in progress")
        process.say_stopping()
    manager.begin_stop(ManagerState.DRAINING if drains else ManagerState.STOPPING)


def _finish(manager: ManagerService, at_once: threading.Event, most_seconds: float) -> None:
    """Wait for the work in progress, so long at most or until it is to end at once; it ends with what is left then."""
    finishing, end = _run_in_daemon(manager.stop), time.monotonic() + most_seconds
    while not wait((finishing,), FINISH_POLL_SECONDS).done:
        if at_once.is_set():
            why = "This manager ends at once, as it is told to stop again"
        elif time.monotonic() >= end:
            why = "The time to drain, [manager] drain_timeout, is over"
        else:
            continue
        LOG.warning("%s; what it has not finished another manager takes over", why)
        logging.shutdown()
        # Its threads would be waited for otherwise.
        os._exit(0)
    finishing.result()


def _watch(listening: Future[None], hearing: Future[None] | None, stopping: threading.Event) -> None:
    """Return when ``stopping`` is set; raise what ends the listening for requests."""
    while not stopping.wait(1):
        if listening.done():
            listening.result()
        if hearing is not None and hearing.done() and (trouble := hearing.exception()) is not None:
            # Without Nova's notifications hosts are still polled.
            LOG.error("Nova's notifications cannot be received: %s", trouble)
            hearing = None


def _wait_for_bus(listening: Future[None], stopping: threading.Event) -> None:
    """Wait until requests can be received, without a limit; raise what the message bus refuses."""
    begin = time.monotonic()
    waiting = Trouble(LOG, "The message bus is connected")
    while not stopping.is_set():
        if wait((listening,), BUS_POLL_SECONDS).done:
            listening.result()
            waiting.log_recovery()
            return
        if time.monotonic() - begin >= BUS_SECONDS:
            sentence = "Waiting for the message bus; events are worked on, and requests are not received"
            waiting.log_failure(sentence, level=logging.WARNING)
            process.say_status(sentence)


def _service_updates(conf: cfg.ConfigOpts, manager: ManagerService) -> Any:
    hosts = conf["physical:host"]
    if not hosts.enable_notification_monitor:
        return None
    pool = service_updates.queue(conf.manager.rpc_topic)
    return service_updates.listener(conf, hosts.notification_topics, manager.monitor.hint, pool=pool)


def _no_more_of(listener: Any) -> None:
    listener.stop()
    listener.wait()


def _for_a_while(action: Callable[[], None], seconds: float) -> None:
    """Run an action for at most ``seconds``: disconnecting from an unreachable message bus blocks."""
    with contextlib.suppress(FutureTimeout):
        _run_in_daemon(action).result(seconds)


def _run_in_daemon(action: Callable[[], None]) -> Future[None]:
    """Run an action that may block forever in a daemon thread, so that the main thread can handle signals."""
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
            current = revisions.read_revision(engine)
        except SQLAlchemyError as error:
            raise StoreUnavailable(explain_failure(error)) from error
        if (text := revisions.explain_revision(current)) is not None:
            raise ConfigurationError(text)

    _patiently(look, conf, stopping, retries=conf.database.max_retries)
    return engine


def _patiently(
    look: Callable[[], T], conf: cfg.ConfigOpts, stopping: threading.Event, *, retries: int | None = None
) -> T | None:
    """Call ``look`` until it succeeds and return its result; log the reason, and give up after ``startup_wait``.

    With ``retries`` it is called as often again, however long that takes; -1: without a limit.
    """
    wait = conf.manager.startup_wait if retries is None else math.inf
    left = math.inf if retries is None or retries < 0 else retries
    end = time.monotonic() + wait
    limit = f"up to {wait} s" if retries is None else "as long as it takes" if retries < 0 else f"{retries} retries"
    said = ""
    while not stopping.is_set():
        try:
            return look()
        except (CloudUnavailable, StoreUnavailable) as error:
            if time.monotonic() >= end or left == 0:
                raise
            left -= 1
            reason = error.message
        if reason != said:
            said = reason
            LOG.warning("Waiting for %s: %s", limit, said)
            process.say_status(f"Waiting for: {said}")
        stopping.wait(min(RETRY_SECONDS, max(0.0, end - time.monotonic())))
    return None


def _open_clouds(conf: cfg.ConfigOpts, accesses: Mapping[str, Access], clock: Clock) -> dict[str, Cloud]:
    """Return the cloud of each region, without calling anything."""
    hooks = HttpHooks.configured(conf, clock)
    return {
        name: open_cloud(access, az_aware=conf.nova.az_aware, hooks=hooks, power=open_power(conf, access, hooks, clock))
        for name, access in accesses.items()
    }


def _look_around(cloud: Cloud, conf: cfg.ConfigOpts, where: str) -> None:
    """Log at the start what would otherwise fail with the first lease; the manager starts all the same."""
    try:
        if cloud.compute.aggregate(conf.nova.aggregate_freepool_name) is None:
            LOG.error(
                "Host aggregate %r does not exist in Nova%s: without it no host can be registered or leased. "
                "Create it (without an availability zone), or set its name in [nova] aggregate_freepool_name",
                conf.nova.aggregate_freepool_name,
                where,
            )
    except BlazarError as error:
        LOG.error("Nova%s does not list its aggregates yet: %s", where, error.message)


def _server_name(conf: cfg.ConfigOpts) -> str:
    # ``host`` is also the address on which the API listens; its default, any address, does not name a server.
    return socket.gethostname() if conf.host in ("0.0.0.0", "::") else str(conf.host)


if __name__ == "__main__":
    sys.exit(main())
