# SPDX-License-Identifier: Apache-2.0
"""A manager that drains finishes what it has begun; one that is stuck is heard of no more by systemd."""

from __future__ import annotations

import contextlib
import math
import signal
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest

from blazar.cmd import health, manager, process
from blazar.cmd.orders import Orders
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import StoreUnavailable
from blazar.model.leases.states import LeaseStatus
from blazar.model.managers.presence import ManagerState
from blazar.observe.readiness import Liveness
from tests.observed import ObservedStore
from tests.openstack import eventually
from tests.world import NOON, a_host

pytestmark = pytest.mark.timeout(60)

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """What systemd is told, and how often it wants to hear."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "40000")
        yield channel


def heard(channel: socket.socket, seconds: float) -> list[bytes]:
    """Return what is said within some seconds."""
    found, end = [], time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        channel.settimeout(left)
        with contextlib.suppress(TimeoutError):
            found.append(channel.recv(1000))
    channel.settimeout(20)
    return found


def test_systemd_hears_of_a_process_while_nothing_is_stuck(systemd, caplog):
    stuck: list[str] = []
    stopping = threading.Event()
    thread = process.feed_watchdog(lambda: stuck, stopping)
    assert systemd.recv(1000) == b"WATCHDOG=1"
    stuck.append("engine has been in one turn for 31 s")
    eventually(lambda: "does" not in caplog.text and "engine has been in one turn for 31 s" in caplog.text, patience=5)
    heard(systemd, 0.01)
    assert heard(systemd, 0.2) == []
    assert caplog.text.count("engine has been") == 1
    stuck.clear()
    assert systemd.recv(1000) == b"WATCHDOG=1"
    stopping.set()
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("microseconds", "pid"),
    [("", ""), ("60000000", "1")],
    ids=["none", "of another"],
)
def test_who_is_not_watched_says_nothing(monkeypatch, caplog, microseconds, pid):
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", pid)
    assert process.feed_watchdog(lambda: (), threading.Event()) is None
    assert caplog.records == []


@pytest.mark.parametrize("microseconds", ["0", "soon", "-1", "1.5", "\u0663", "9" * 30])
def test_an_interval_that_cannot_be_is_told_and_not_kept(systemd, monkeypatch, caplog, microseconds):
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    assert process.feed_watchdog(lambda: (), threading.Event()) is None
    assert "WATCHDOG_USEC" in caplog.text
    assert heard(systemd, 0.05) == []


def test_an_outage_of_the_database_is_no_reason_to_be_killed_and_an_engine_that_is_blocked_is_one(world):
    gate, blocked = threading.Event(), threading.Event()
    outage = False

    def around(name, call, *arguments, **more):
        if outage:
            raise StoreUnavailable("the database is away")
        if name == "events.due":
            blocked.set()
            assert gate.wait(30)
        return call(*arguments, **more)

    served = world.another_manager(store=ObservedStore(world.store, around))
    liveness = health.make_liveness(served)
    impatient = Liveness(dict(liveness._turning), limit=0.1)
    assert set(liveness._turning) == {"heartbeat", "engine"}
    outage = True
    served.start()
    try:
        eventually(lambda: served.engine.rounds.failing_since and served.claims.rounds.failing_since, patience=10)
        time.sleep(0.3)
        assert impatient.list_stuck() == ()
        outage = False
        served.engine.wake()
        assert blocked.wait(10)
        eventually(lambda: any("engine has been" in stuck for stuck in impatient.list_stuck()), patience=5)
    finally:
        gate.set()
        served.stop()


def test_one_that_drains_begins_no_event_and_finishes_what_it_has(a_world):
    world = a_world(settings=Settings(claim_ttl=10 * MINUTE, promises=0))
    first, second = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR + MINUTE)
    reached, gate = threading.Event(), threading.Event()

    def hook(name, when):
        if (name, when) == ("add_host", "before") and not reached.is_set():
            reached.set()
            assert gate.wait(30)

    world.faults.on_call = hook
    world.clock.to(NOON + HOUR)
    world.manager.start()
    assert reached.wait(20)
    world.manager.begin_stop(ManagerState.DRAINING)
    world.clock.to(NOON + HOUR + MINUTE)
    world.manager.engine.wake()

    def states() -> list[str]:
        known = world.store.managers.all(now=world.clock.now(), claim_ttl=world.settings.claim_ttl)
        return [one.facts.state for one in known]

    eventually(lambda: states() == ["draining"], patience=10)
    gate.set()
    world.manager.stop()
    assert (world.now(first).status, world.now(second).status) == (LeaseStatus.ACTIVE, LeaseStatus.PENDING)
    assert states() == []
    world.another_manager().engine.run_due()
    assert world.now(second).status is LeaseStatus.ACTIVE


def served_by(load, lines, orders) -> threading.Thread:
    thread = threading.Thread(target=manager.run, args=(load(*lines), orders), name="starting")
    thread.start()
    return thread


def test_a_manager_that_drains_gives_up_after_the_seconds_of_the_file(load, working, own_tables, monkeypatch, caplog):
    caplog.set_level("INFO", "blazar.manager")
    monkeypatch.setattr(manager.logs, "start", lambda conf: None)
    given = []

    def finish(served, at_once, most_seconds):
        given.append(most_seconds)
        served.stop()

    monkeypatch.setattr(manager, "_finish", finish)
    for lines, ends in (([], "drain"), (["drain_timeout = 7"], "drain"), (["drain_timeout = 7"], "stop")):
        caplog.clear()
        orders = Orders()
        thread = served_by(load, [*working(database=own_tables, wait=30), *lines], orders)
        eventually(lambda: "has started" in caplog.text, patience=20)
        getattr(orders, ends)()
        thread.join(20)
        assert ("is draining: it takes no request" in caplog.text) is (ends == "drain")
    # What the requests in progress have taken is a part of it.
    assert [590 < given[0] <= 600, 0 < given[1] <= 7, given[2]] == [True, True, math.inf]


class Ended(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def hung(monkeypatch) -> Iterator[SimpleNamespace]:
    """A manager whose work does not end; the process may."""

    def end(code: int) -> None:
        assert code == 0
        raise Ended

    gate = threading.Event()
    monkeypatch.setattr(manager.os, "_exit", end)
    yield SimpleNamespace(stop=lambda: gate.wait(30))
    gate.set()


def test_work_that_does_not_end_in_time_is_left_to_others_and_the_process_ends(hung, caplog):
    with pytest.raises(Ended):
        manager._finish(hung, threading.Event(), 0.05)
    assert "The time to drain, [manager] drain_timeout, is over; what it has not finished another" in caplog.text
    manager._finish(SimpleNamespace(stop=lambda: None), threading.Event(), 20)


@pytest.mark.parametrize("drains", [True, False])
def test_who_is_told_to_stop_again_leaves_its_work_to_others_at_once(hung, caplog, monkeypatch, drains):
    orders = Orders()
    if drains:
        orders.drain()
    orders.stop()
    # As make does, which passes on what the shell has sent to both.
    orders.stop()
    assert (orders.is_set(), orders.drains, orders.at_once.is_set()) == (True, drains, False)
    monkeypatch.setattr("blazar.cmd.orders.AGAIN_SECONDS", 0)
    orders.stop()
    with pytest.raises(Ended):
        manager._finish(hung, orders.at_once, math.inf)
    assert "ends at once, as it is told to stop again; what it has not finished another manager takes" in caplog.text


def test_who_stops_does_not_begin_to_drain():
    orders = Orders()
    orders.stop()
    orders.drain()
    orders.drain()
    assert (orders.drains, orders.at_once.is_set()) == (False, False)


@pytest.mark.slow
def test_a_signal_lets_a_manager_drain_and_a_stopped_one_is_heard_of_no_more(start, working, own_tables, systemd):
    program = start("manager", *working(database=own_tables))
    program.says("has started")
    eventually(lambda: b"WATCHDOG=1" in heard(systemd, 0.2), patience=20)
    program.process.send_signal(signal.SIGSTOP)
    heard(systemd, 0.2)
    assert heard(systemd, 0.5) == []
    program.process.send_signal(signal.SIGCONT)
    assert b"WATCHDOG=1" in heard(systemd, 1)
    program.process.send_signal(signal.SIGUSR2)
    program.says("is draining")
    assert program.ended() == 0
    assert "Traceback" not in program.said
