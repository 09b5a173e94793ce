# SPDX-License-Identifier: Apache-2.0
"""What the world is told, and how it gets there."""

from __future__ import annotations

import threading
import uuid

import oslo_messaging
import pytest
from oslo_config import cfg

from blazar.cmd import assemble, config
from blazar.manager.common.notifications import MessagingNotifier, render_payload
from tests.conftest import RABBITMQ, missing
from tests.openstack import eventually


def a_configuration(*lines: str, tmp_path) -> cfg.ConfigOpts:
    file = tmp_path / "blazar.conf"
    file.write_text("\n".join(lines))
    conf = cfg.ConfigOpts()
    conf([], project="blazar", default_config_files=[str(file)], default_config_dirs=[])
    return conf


def test_the_payload_is_the_lease_as_the_api_shows_it(world):
    told = render_payload(world.lease())
    assert set(told) == {
        "lease_id",
        "user_id",
        "project_id",
        "trust_id",
        "start_date",
        "end_date",
        "status",
        "reservations",
        "events",
        "name",
        "created_at",
        "updated_at",
        "degraded",
    }
    assert told["start_date"] == "2030-04-01T12:00:00.000000"
    assert {event["event_type"] for event in told["events"]} == {"start_lease", "before_end_lease", "end_lease"}
    assert told["reservations"][0]["min"] == 1


def test_the_payload_of_a_warning_has_the_latest_end_that_the_lease_could_have(world):
    lease = world.lease()
    assert render_payload(lease, lease.window.end)["extendable_until"] == render_payload(lease)["end_date"]


def test_a_bus_that_is_not_there_harms_no_lease(world, tmp_path, caplog):
    conf = a_configuration(
        "[oslo_messaging_notifications]",
        "driver = messagingv2",
        "transport_url = fake://",
        "retry = 0",
        tmp_path=tmp_path,
    )
    notifier = MessagingNotifier(conf, "blazar.lease")

    def fail(*_):
        raise ConnectionError("no bus")

    notifier._send = fail
    notifier.notify("lease.create", world.lease())
    assert "could not be sent" in caplog.text
    notifier.notify_moved("physics", ())
    assert "servers.moved to project physics could not be sent" in caplog.text


def test_no_work_on_a_lease_waits_for_a_bus_that_does_not_answer(world, tmp_path, monkeypatch):
    gate, sent, called = threading.Event(), [], threading.current_thread()

    def send(self, context, event_type, payload):
        assert threading.current_thread() is not called
        gate.wait(20)
        sent.append((event_type, payload["lease_id"]))

    monkeypatch.setattr(oslo_messaging.Notifier, "info", send)
    file = tmp_path / "blazar.conf"
    file.write_text("")
    notifier, lease = (
        assemble._notifier(config.load(["--config-file", str(file)], program="blazar-test")),
        world.lease(),
    )
    for kind in ("lease.create", "lease.update", "lease.delete"):
        notifier.notify(kind, lease)
    assert sent == []
    gate.set()
    eventually(lambda: len(sent) == 3)
    assert sent == [(kind, lease.id) for kind in ("lease.create", "lease.update", "lease.delete")]


@pytest.mark.slow
@pytest.mark.servers
def test_notifications_arrive_over_rabbitmq(world, tmp_path):
    topic = f"blazar_test_{uuid.uuid4().hex[:8]}"
    conf = a_configuration(
        "[DEFAULT]",
        # An exchange of its own, which goes when the test does: others may have declared the usual one otherwise.
        f"control_exchange = {topic}",
        "[oslo_messaging_notifications]",
        "driver = messagingv2",
        f"transport_url = {RABBITMQ}",
        f"topics = {topic}",
        "retry = 2",
        "[oslo_messaging_rabbit]",
        "amqp_auto_delete = true",
        tmp_path=tmp_path,
    )
    arrived = threading.Event()
    heard = []

    class Endpoint:
        def info(self, context, publisher_id, event_type, body, metadata):
            heard.append((publisher_id, event_type, body))
            arrived.set()

    transport = oslo_messaging.get_notification_transport(conf)
    target = oslo_messaging.Target(topic=topic)
    listener = oslo_messaging.get_notification_listener(transport, [target], [Endpoint()], executor="threading")
    try:
        listener.start()
    except Exception as error:
        missing("rabbitmq", error)
    lease = world.lease()
    MessagingNotifier(conf, "blazar.lease").notify("lease.create", lease)
    assert arrived.wait(15)
    listener.stop()
    listener.wait()
    assert heard[0][:2] == ("blazar.lease", "lease.create")
    assert heard[0][2]["lease_id"] == lease.id
