# SPDX-License-Identifier: Apache-2.0
"""Nova's notifications on their way over a message bus to the monitor, and the monitor in its thread."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from itertools import pairwise

import oslo_messaging
import pytest

from blazar.manager.common.settings import Settings
from blazar.manager.health import service_updates
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import CloudUnavailable, Contention, InvalidInput
from blazar.model.resources.resource import HOST
from tests.conftest import RABBITMQ
from tests.manager.leases.test_notifications import a_configuration
from tests.observed import ObservedStore, before, failing
from tests.openstack import eventually
from tests.world import ManualClock


class RunningClock(ManualClock):
    """The real time: what a thread sleeps for passes."""

    def now(self):
        return SystemClock().now()


def payload(host: str, binary: str = "nova-compute") -> dict:
    return {"nova_object.name": "ServiceStatusPayload", "nova_object.data": {"host": host, "binary": binary}}


@pytest.mark.slow
@pytest.mark.servers
def test_notifications_of_nova_are_heard_over_rabbitmq(tmp_path):
    topic = f"blazar_test_{uuid.uuid4().hex[:8]}"
    lines = (
        "[DEFAULT]",
        "control_exchange = nova",
        "[oslo_messaging_notifications]",
        "driver = messagingv2",
        f"transport_url = {RABBITMQ}",
        "retry = 2",
    )
    conf = a_configuration(*lines, tmp_path=tmp_path)
    heard: list[str] = []
    listener = service_updates.listener(conf, [topic], heard.append, pool=service_updates.queue(topic))
    listener.start()
    try:
        transport = oslo_messaging.get_notification_transport(conf)
        nova = oslo_messaging.Notifier(transport, publisher_id="nova-compute:cn1", topics=[topic])
        nova.info({}, "service.update", payload("conductor", "nova-conductor"))
        nova.info({}, "instance.update", payload("cn0"))
        nova.info({}, "service.update", payload("cn1"))
        nova.info({}, "service.update", ["garbled"])
        nova.info({}, "service.update", payload("cn2"))
        eventually(lambda: len(heard) >= 2, patience=20)
        assert heard == ["cn1", "cn2"]
    finally:
        listener.stop()
        listener.wait()


def test_a_bus_that_cannot_be_is_said_in_a_sentence(tmp_path):
    conf = a_configuration("[oslo_messaging_notifications]", "transport_url = nonsense://x", tmp_path=tmp_path)
    with pytest.raises(InvalidInput, match="transport_url"):
        service_updates.listener(conf, ["t"], print, pool="p")


def watching(a_world, **settings):
    return a_world(clock=RunningClock(), settings=Settings(claim_ttl=timedelta(seconds=30), **settings))


@pytest.mark.slow
def test_a_burst_of_notifications_is_one_look(a_world):
    world = watching(a_world, polling_interval=timedelta(0))
    monitor = world.manager.monitor
    monitor.start()
    try:
        before = world.faults.calls["hypervisors"]
        for number in (1, 2, 3):
            world.simulated.operators.host_disabled(f"node-{number}")
            for _ in range(20):
                monitor.hint(f"node-{number}")
        eventually(lambda: not any(host.reservable for host in world.manager.resources.all(HOST)), patience=5)
        assert world.faults.calls["hypervisors"] - before <= 2
    finally:
        monitor.stop()


@pytest.mark.slow
def test_the_thread_looks_by_itself_and_outlives_what_goes_wrong(a_world, monkeypatch, caplog):
    world = watching(a_world, polling_interval=timedelta(seconds=0.1))
    world.faults.fail_before("hypervisors", CloudUnavailable("Nova is away"), times=2)
    broken = before("resource_health.set_failed", failing(RuntimeError("a bug")))
    monkeypatch.setattr("blazar.manager.health.monitor.SOON", timedelta(seconds=0.1))
    monitor = world.another_manager(store=ObservedStore(world.store, broken)).monitor
    world.simulated.operators.host_down("node-1")
    monitor.start()
    try:
        eventually(lambda: not world.manager.resources.one(HOST, "1").reservable, patience=5)
        world.simulated.operators.host_up("node-1")
        eventually(lambda: world.manager.resources.one(HOST, "1").reservable, patience=5)
    finally:
        monitor.stop()
    assert "a bug" in caplog.text
    assert caplog.text.count("Nova is away") == 1


@pytest.mark.slow
def test_a_look_that_fails_for_a_bug_is_not_tried_again_at_once(a_world, monkeypatch):
    world = watching(a_world, polling_interval=timedelta(seconds=60))
    looks = []

    def fail(name, operation, *arguments, **more):
        if name == "resource_health.set_failed":
            looks.append(time.monotonic())
            raise RuntimeError("a bug")
        return operation(*arguments, **more)

    monkeypatch.setattr("blazar.manager.health.monitor.SOON", timedelta(seconds=0.3))
    monitor = world.another_manager(store=ObservedStore(world.store, fail)).monitor
    monitor.start()
    try:
        eventually(lambda: len(looks) >= 3, patience=5)
    finally:
        monitor.stop()
    assert all(later - earlier >= 0.25 for earlier, later in pairwise(looks))


@pytest.mark.slow
def test_what_a_busy_lease_lacks_is_looked_at_again_soon_also_without_polling(a_world, monkeypatch):
    world = watching(a_world, polling_interval=timedelta(0))
    monkeypatch.setattr("blazar.manager.health.monitor.SOON", timedelta(seconds=0.1))
    lease = world.lease()
    world.run()
    (name,) = world.hosts_of(lease)
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes(name))
    busy = before("leases.save", *[failing(Contention("somebody works on it"))] * 2)
    world.manager = world.another_manager(store=ObservedStore(world.store, busy))
    monitor = world.manager.monitor
    monitor.start()
    try:
        assert world.manager.resources.refresh(HOST, name.removeprefix("node-")).reservable
        eventually(lambda: world.pool(lease.reservations[0].id) == {name}, patience=5)
    finally:
        monitor.stop()


@pytest.mark.slow
def test_what_was_exchanged_in_vain_is_tried_again_when_it_has_rested(a_world, monkeypatch):
    world = watching(a_world, polling_interval=timedelta(0))
    monkeypatch.setattr("blazar.manager.health.healing.FIRST_BACKOFF", timedelta(seconds=0.2))
    lease = world.lease()
    world.run()
    (name,) = world.hosts_of(lease)
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes(name))
    stranger = world.simulated.users.boot_server("stranger", host=name, project_id="art", user_id="u")
    world.manager.resources.refresh(HOST, name.removeprefix("node-"))
    assert world.manager.monitor.heal() == 1
    world.simulated.compute.begin_server_deletion(stranger.id)
    monitor = world.manager.monitor
    monitor.start()
    try:
        eventually(lambda: world.pool(lease.reservations[0].id) == {name}, patience=5)
    finally:
        monitor.stop()


def test_what_was_said_while_nova_did_not_answer_is_looked_at_when_it_does(world):
    world.faults.fail_before("hypervisors", CloudUnavailable("Nova is away"))
    world.simulated.operators.host_disabled("node-1")
    world.manager.monitor.hint("node-1")
    world.manager.monitor.run_once()
    assert world.manager.resources.one(HOST, "1").reservable
    world.manager.monitor.run_once()
    assert not world.manager.resources.one(HOST, "1").reservable
