# SPDX-License-Identifier: Apache-2.0
"""CADF of keystonemiddleware's audit: what may change something is told with what it does to what, and by whom."""

from __future__ import annotations

import logging
import re
import threading
import time
from pathlib import Path

import pytest
from keystonemiddleware.audit import OpenStackAuditApi
from oslo_messaging.notify import _impl_test
from webob import Request

from blazar.api.http.access import AccessLog, has_secret
from blazar.api.http.identity import KeystoneIdentity
from blazar.api.http.middleware import behind_keystone
from blazar.api.parts import BUILTIN
from blazar.cmd import audit, config
from blazar.cmd.sent_later import SentLater
from blazar.model.base.errors import InvalidInput
from tests.api.conftest import app_of
from tests.api.http.test_keystone import Client, keystone, of, token  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[3]
MAP = ROOT / "etc/blazar/api_audit_map.conf"
ID = "5f0c8f5e-3a52-4d1f-9a55-6f0f3c1f7b1d"
KINDS = ("host", "floatingip", "network", "volume", "device", "generic")


def changing_rows() -> list[tuple[str, str, str]]:
    """The name, method and path of each row that may change something."""
    values = {"kind": KINDS[0], "name": "rack", "action": "retry"}
    found = {
        (row.name, row.method, row.root.value + re.sub(r"{(\w+)}", lambda m: values.get(m[1], ID), row.path))
        for part in BUILTIN
        for row in part.routes
        if row.method not in audit.READING
    }
    # What has a secret in its path goes around it.
    return sorted(row for row in found if not has_secret(row[2]))


def named(method: str, path: str) -> tuple[str, str]:
    """The action and the type of the target of a request."""
    api = OpenStackAuditApi(str(MAP))
    request = Request.blank(path, method=method)
    return api.get_action(request), api._build_typeURI(request, "service/reservation")


def test_each_route_that_may_change_something_has_an_action_and_a_target_of_its_own():
    seen: dict[tuple[str, str], str] = {}
    for name, method, path in changing_rows():
        action, target = named(method, path)
        assert target.count("/") >= 2, (name, target)
        assert "unknown" not in (action, target)
        # Version 2 and the older way of 1.0 to hosts do what the routes of leases and of hosts do; an own one is one.
        same = name.removesuffix("_v2").replace("_own_", "_")
        assert seen.setdefault((action, target), same) == same, (name, action, target)
    assert len(seen) > 40


@pytest.mark.parametrize(
    ("method", "path", "action", "target"),
    [
        ("POST", "/v1/leases", "create", "leases"),
        ("PUT", f"/v1/leases/{ID}", "update", "leases/lease"),
        ("DELETE", f"/v1/leases/{ID}", "delete", "leases/lease"),
        ("POST", f"/v1/leases/{ID}/split", "update/split", "leases/lease"),
        ("PUT", f"/v1/leases/{ID}/hold", "update/hold", "leases/lease"),
        ("DELETE", f"/v1/leases/{ID}/hold", "update/let_go", "leases/lease"),
        ("POST", "/v1/resources/host", "create", "resources/host"),
        ("PUT", "/v1/resources/host/7", "update", "resources/host/resource"),
        ("PATCH", "/v1/resources/host/properties/rack", "update", "resources/host/properties/property"),
        ("POST", f"/v1/problems/event:{ID}/give_up", "update/give_up", "problems/problem"),
        ("POST", "/v1/availability", "read", "availability"),
        ("POST", "/v1/any/action", "update", ""),
    ],
)
def test_what_a_request_does_is_named_as_operators_would(method, path, action, target):
    assert named(method, path) == (action, "service/reservation" + (target and f"/{target}"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_resource_is_named(kind):
    assert named("DELETE", f"/v1/resources/{kind}/7") == ("delete", f"service/reservation/resources/{kind}/resource")


@pytest.fixture
def audited(world, tmp_path):
    """Make an HTTP client of the API as a cloud serves it, with the audit if it is on."""

    def make(*lines: str) -> Client:
        file = tmp_path / "blazar.conf"
        login = ["auth_type = v3password", "auth_url = http://127.0.0.1:9/v3", "username = blazar", "password = x"]
        more = ["user_domain_id = default", "http_request_max_retries = 0"]
        told = ["[audit_middleware_notifications]", "driver = test"]
        file.write_text("\n".join(["[keystone_authtoken]", *login, *more, *told, *lines]), encoding="utf-8")
        conf = config.load(["--config-file", str(file)], program="blazar-test")
        conf.set_override("transport_url", "fake:/") if "transport_url" in conf else None
        inside = audit.put_audit_before(app_of(world.manager, KeystoneIdentity(), auth_uri=None), conf)
        _impl_test.reset()
        sending.extend(one.messages for one in [inside] if isinstance(one, audit.AuditedChanges))
        return Client(AccessLog(behind_keystone(inside, conf)))

    sending.clear()
    return make


ON = ("[audit]", "enabled = true", f"map_file = {MAP}")


sending: list[SentLater] = []


def told() -> list[tuple[str, dict]]:
    assert all(messages.wait_until_sent(20) for messages in sending)
    return [(message["event_type"], message["payload"]) for _, message, _, _ in _impl_test.NOTIFICATIONS]


def test_a_change_is_told_before_and_after_with_the_ids_of_the_request(audited, keystone, caplog):  # noqa: F811
    caplog.set_level(logging.WARNING, "keystonemiddleware")
    http = audited(*ON)
    mine = "req-11111111-2222-3333-4444-555555555555"
    answer = http.delete(f"/v1/leases/{ID}", headers={**of("t-member"), "X-OpenStack-Request-ID": mine})
    assert answer.status_code == 404
    (asked, before), (answered, after) = told()
    assert (asked, answered) == ("audit.http.request", "audit.http.response")
    assert (before["action"], before["outcome"], after["outcome"]) == ("delete", "pending", "failure")
    assert after["reason"]["reasonCode"] == "404"
    assert before["requestPath"] == f"/v1/leases/{ID}"
    assert before["initiator"]["request_id"] == answer.headers["X-OpenStack-Request-ID"]
    assert before["initiator"]["global_request_id"] == mine
    assert before["initiator"]["id"] != "unknown"
    assert [one.getMessage() for one in caplog.records if "not known" in one.getMessage()] == []


def test_what_only_reads_and_the_secret_of_a_feed_are_not_told(audited, keystone):  # noqa: F811
    http = audited(*ON)
    for method, path in (
        ("GET", "/v1/leases"),
        ("HEAD", "/v1/leases"),
        ("OPTIONS", "/v1/leases"),
        ("POST", "/feeds/geheim.ics"),
        ("POST", "/v1/feeds/geheim"),
        ("DELETE", "/v1//feeds/geheim"),
    ):
        http.open(path, method=method, headers=of("t-member"))
    assert told() == []
    assert not has_secret("/v1/feeds")
    endpoint = {"id": "e", "interface": "public", "url": "http://blazar.example", "region": "one", "region_id": "one"}
    catalog = [{"id": "s", "type": "reservation", "name": "blazar", "endpoints": [endpoint]}]
    keystone["t-catalog"] = token("member", "reader", catalog=catalog)
    http.delete(f"/v1/feeds/{ID}", headers=of("t-catalog"))
    assert [payload["target"]["typeURI"] for _, payload in told()] == ["service/reservation/feeds/feed"] * 2


def test_without_the_option_nothing_is_told_and_the_application_is_as_it_was(audited, keystone, world):  # noqa: F811
    http = audited()
    http.delete(f"/v1/leases/{ID}", headers=of("t-member"))
    assert told() == []


class Bus:
    """Notes what it is sent, once it is let."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.sent: list[str] = []

    def notify(self, context, event_type, payload) -> None:
        self.open.wait(20)
        if event_type == "lost":
            try:
                raise ConnectionError("the bus is away")
            except ConnectionError:
                logging.getLogger("oslo_messaging.notify.messaging").exception("Could not send %s", payload)
        elif event_type == "odd":
            raise KeyError(event_type)
        else:
            self.sent.append(payload["id"])


def test_no_request_waits_for_the_bus_and_what_it_does_not_take_is_lost_in_one_sentence(caplog):
    caplog.set_level(logging.INFO)
    bus = Bus()
    messages = SentLater(bus.notify, "Messages of the audit", most=3)
    begin = time.monotonic()
    for number in range(5):
        messages.notify({}, "audit.http.request", {"id": number})
    assert time.monotonic() - begin < 5
    assert not messages.wait_until_sent(0.02)
    assert "Messages of the audit are lost: 3 wait for the bus" in caplog.text
    bus.open.set()
    assert messages.wait_until_sent(20)
    # One was on its way, and three waited.
    assert bus.sent[:3] == [0, 1, 2]
    assert len(bus.sent) in (3, 4)
    caplog.clear()
    for _ in range(3):
        messages.notify({}, "lost", {"id": "secret of the payload"})
        assert messages.wait_until_sent(20)
    assert "lost meanwhile: ConnectionError: the bus is away" in caplog.text
    assert "secret of the payload" not in caplog.text
    assert "Traceback" not in caplog.text
    messages.notify({}, "odd", {})
    messages.notify({}, "audit.http.request", {"id": "last"})
    assert messages.wait_until_sent(20)
    assert bus.sent[-1] == "last"


def test_a_message_tells_what_was_when_it_was_written():
    bus, payload = Bus(), {"id": ["pending"]}
    messages = SentLater(bus.notify, "Messages of the audit", copied=True)
    messages.notify({}, "audit.http.request", payload)
    payload["id"][0] = "success"
    bus.open.set()
    assert messages.wait_until_sent(20)
    assert bus.sent == [["pending"]]


def test_a_map_that_is_not_there_is_said_at_the_start(audited):
    with pytest.raises(InvalidInput, match=r"\[audit\] map_file /nowhere.* cannot be read: .*copy etc/blazar"):
        audited("[audit]", "enabled = true", "map_file = /nowhere")
