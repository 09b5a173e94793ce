# SPDX-License-Identifier: Apache-2.0
"""The filter that asks another service, over real HTTP: every answer that there can be."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from datetime import timedelta

import pytest

from blazar.context import scope
from blazar.enforcement import NotDelivered, NotificationRefused, Occasion
from blazar.enforcement.external import (
    CHECK_CREATE,
    CHECK_UPDATE,
    Credential,
    ExternalServiceFilter,
    Patience,
    ServiceUserToken,
    StaticToken,
)
from blazar.model.base.errors import CloudUnavailable, EnforcementUnavailable, UsageDenied
from tests.enforcement.builders import a_view, asking, hours, notification
from tests.enforcement.conftest import TOKEN

EVERYTHING = (CHECK_CREATE, CHECK_UPDATE, *map(str, Occasion))


def a_filter(url: str, *, names=EVERYTHING, seconds=1.0, attempts=2, credential=None, allow_on_error=False):
    return ExternalServiceFilter(
        {name: url + name for name in names},
        credential=credential or StaticToken("X-Auth-Token", TOKEN),
        patience=Patience(seconds, attempts, allow_on_error),
    )


@pytest.fixture
def rule(service):
    return a_filter(service.url)


def test_a_lease_that_the_service_grants_may_be(service, rule):
    rule.check(asking())
    assert service.asked == ["check-create"]


def test_a_denial_is_told_with_the_reason_of_the_service(service, rule):
    with pytest.raises(UsageDenied) as denied:
        rule.check(asking(a_view(hours(0, 60), hosts=2)))
    assert denied.value.message == "the lease costs 120 host-hours, and the project has 100 left"
    assert denied.value.status == 400
    assert denied.value.data == {"limit": "external"}
    assert service.asked == ["check-create"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no",
        b'"no"',
        b"[]",
        b'{"why": "no"}',
        b'{"message": " ", "detail": ["no"]}',
        b'{"message": 5}',
        b"\xff",
        b"[" * 9999,
    ],
)
def test_a_denial_without_a_reason_is_a_denial(service, rule, text):
    service.answers(403, text)
    with pytest.raises(UsageDenied, match="gives no reason"):
        rule.check(asking())


def test_a_reason_is_one_line_of_a_length_that_can_be_read(service, rule):
    service.answers(403, b'{"message": "a\\n\\u0007b' + b"x" * 1000 + b'"}')
    with pytest.raises(UsageDenied) as denied:
        rule.check(asking())
    assert denied.value.message.startswith("a bxxx")
    assert len(denied.value.message) == 500


WRONG = {
    "a page of another service": (200, b"<html>", {}),
    "nothing found": (404, b"", {}),
    "a redirect": (302, b"", {"Location": "http://127.0.0.1:1/"}),
    "an error": (500, b"Traceback", {}),
    "a denial without end": (403, b"x" * 200_000, {}),
    "a token that is not accepted": (401, b"", {}),
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_answer_denies_or_allows_as_the_operator_says(service, answer, caplog):
    status, text, headers = answer
    service.answers(status, text, **headers)
    with pytest.raises(EnforcementUnavailable, match="please try again later") as refused:
        a_filter(service.url).check(asking())
    assert refused.value.status == 503
    caplog.clear()
    a_filter(service.url, allow_on_error=True).check(asking())
    assert "is granted without an answer of the external service" in caplog.text


def test_a_redirect_is_not_followed(service, rule):
    service.answers(307, b"", Location=service.url + "on-end")
    with pytest.raises(EnforcementUnavailable):
        rule.check(asking())
    assert service.asked == ["check-create"]


def test_what_may_pass_is_tried_again(service, rule):
    answers = [503]

    def once(handler, path):
        if not answers:
            return False
        handler.send_response(answers.pop())
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    service.manners = [once]
    rule.check(asking())
    assert service.asked == ["check-create", "check-create"]


def test_a_service_that_is_down_is_no_answer(caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(EnforcementUnavailable):
        a_filter(f"http://127.0.0.1:{port}/").check(asking())
    assert "it cannot be reached" in caplog.text


@pytest.mark.slow
def test_a_service_that_says_nothing_is_waited_for_only_so_long(service):
    service.sleeps(5)
    begun = time.monotonic()
    with pytest.raises(EnforcementUnavailable):
        a_filter(service.url, seconds=0.4, attempts=5).check(asking())
    assert time.monotonic() - begun < 1.5


@pytest.mark.slow
def test_a_service_that_drips_is_not_waited_for_to_the_end(service):
    service.drips(b'{"message": "' + b"x" * 100 + b'"}', pause=0.1)
    begun = time.monotonic()
    with pytest.raises(EnforcementUnavailable):
        a_filter(service.url, seconds=0.4, attempts=1).check(asking())
    assert time.monotonic() - begun < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 403 No\r\nX-Long: "], ids=["status", "header"])
def test_a_service_whose_headers_drip_is_not_waited_for_to_the_end(begin):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip():
            wire, _ = listening.accept()
            with wire, contextlib.suppress(OSError):
                wire.recv(65536)
                wire.sendall(begin)
                for _ in range(60):
                    wire.sendall(b"H")
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        begun = time.monotonic()
        with pytest.raises(EnforcementUnavailable):
            a_filter(f"http://127.0.0.1:{listening.getsockname()[1]}/", seconds=0.4, attempts=1).check(asking())
        assert time.monotonic() - begun < 1.5


@pytest.mark.sample(3)
@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"", b"HTTP/1.1 20x\r\n\r\n", b"HTTP/1.1 204"])
def test_what_does_not_speak_http_is_no_answer(answer):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak():
            with contextlib.suppress(OSError):
                while True:
                    wire, _ = listening.accept()
                    with wire:
                        wire.recv(65536)
                        wire.sendall(answer)

        threading.Thread(target=speak, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        if answer == b"HTTP/1.1 204":
            # The status is there, and nothing else is needed of it.
            a_filter(url).check(asking())
        else:
            with pytest.raises(EnforcementUnavailable):
                a_filter(url).check(asking())


def test_a_denial_in_chunks_is_put_together(service, rule):
    def so(handler, path):
        handler.send_response(403)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in (b'{"mess', b'age": "no', b' more"}'):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\n\r\n")
        return True

    service.manners = [so]
    with pytest.raises(UsageDenied, match="^no more$"):
        rule.check(asking())


def test_the_time_of_the_request_counts_as_well(service):
    service.sleeps(5)
    begun = time.monotonic()
    with scope(limit=timedelta(seconds=0.3)), pytest.raises(EnforcementUnavailable):
        a_filter(service.url, seconds=60).check(asking())
    assert time.monotonic() - begun < 1.5


def test_a_hook_without_an_endpoint_is_skipped(service):
    rule = a_filter(service.url, names=[CHECK_UPDATE])
    rule.check(asking())
    assert service.asked == []
    rule.check(asking(before=a_view()))
    assert service.asked == ["check-update"]
    assert rule.occasions == frozenset()


def test_the_headers_of_a_check_have_the_token_and_the_request_id(service, rule):
    with scope(request_id="req-1"):
        rule.check(asking())
    ((_, _, headers),) = service.got
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Auth-Token"] == TOKEN
    assert headers["X-OpenStack-Request-ID"] == "req-1"


def test_the_body_of_a_check_of_a_new_lease(service, rule):
    with scope(request_id="req-1"):
        rule.check(asking())
    ((_, body, _),) = service.got
    assert body == {
        "context": {
            "user_id": "curie",
            "project_id": "physics",
            "auth_url": "https://keystone.example/v3",
            "region_name": "RegionOne",
            "requested_by": None,
        },
        "lease": {
            "id": "l-1",
            "name": "lab",
            "user_id": "curie",
            "project_id": "physics",
            "start_date": "2030-04-01T13:00:00",
            "end_date": "2030-04-01T15:00:00",
            "before_end_date": "2030-04-01T14:00:00",
            "status": "CREATING",
            "degraded": False,
            "trust_id": None,
            "created_at": "2030-04-01 12:00:00",
            "updated_at": None,
            "resource_requests": {"VCPU": 16},
            "reservations": [
                {
                    "min": 1,
                    "max": 1,
                    "resource_properties": "",
                    "id": "r-1",
                    "lease_id": "l-1",
                    "resource_id": "x-1",
                    "resource_type": "physical:host",
                    "status": "pending",
                    "missing_resources": False,
                    "resources_changed": False,
                    "created_at": "2030-04-01 12:00:00",
                    "updated_at": None,
                    "allocations": [
                        {
                            "gpu": "A100",
                            "vcpus": 16,
                            "hypervisor_hostname": "node-1",
                            "id": "1",
                            "reservable": True,
                            "created_at": "2030-03-31 12:00:00",
                            "updated_at": None,
                        }
                    ],
                }
            ],
            "events": [
                _event("e-1", "start_lease", "2030-04-01T13:00:00"),
                _event("e-2", "end_lease", "2030-04-01T15:00:00"),
                _event("e-3", "before_end_lease", "2030-04-01T14:00:00"),
            ],
        },
    }


def _event(id, kind, time):
    return {
        "id": id,
        "lease_id": "l-1",
        "event_type": kind,
        "time": time,
        "status": "UNDONE",
        "created_at": "2030-04-01 12:00:00",
        "updated_at": None,
    }


def test_the_body_of_a_check_of_a_change_has_the_lease_before_and_all_of_it_after(service, rule):
    rule.check(asking(a_view(hours(1, 9), hosts=3), before=a_view(hours(1, 3))))
    (body,) = service.bodies("check-update")
    assert body["current_lease"]["end_date"] == "2030-04-01T15:00:00"
    assert body["lease"]["end_date"] == "2030-04-01T21:00:00"
    assert body["lease"]["id"] == body["current_lease"]["id"]
    assert [len(body[name]["reservations"][0]["allocations"]) for name in ("current_lease", "lease")] == [1, 3]


def test_the_body_of_a_message(service, rule):
    rule.notify(notification(Occasion.ENDED))
    (body,) = service.bodies("on-end")
    assert sorted(body) == ["context", "lease", "lease_id", "occurred_at"]
    assert (body["lease_id"], body["occurred_at"]) == ("l-1", "2030-04-01T12:00:00")
    assert body["lease"]["reservations"][0]["allocations"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("status", [302, 401, 408, 425, 429, 500, 501, 503])
def test_a_message_that_is_not_accepted_is_an_error_for_the_sender(service, rule, status):
    service.answers(status)
    with pytest.raises(EnforcementUnavailable):
        rule.notify(notification(Occasion.ENDED))
    service.answers(200, b"fine")
    rule.notify(notification(Occasion.ENDED))


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422])
def test_a_message_is_refused_for_good_by_what_says_that_it_is_wrong(service, rule, status):
    service.answers(status, b'{"detail": "there is no such lease"}')
    with pytest.raises(NotificationRefused, match="^there is no such lease$") as refused:
        rule.notify(notification(Occasion.ENDED))
    assert not refused.value.maybe_accepted
    assert refused.value.data == {"limit": "external"}
    assert service.asked == ["on-end"]


def test_a_refusal_after_a_lost_answer_may_be_of_what_was_accepted(service, rule):
    answers = [500, 409]

    def so(handler, path):
        handler.send_response(answers.pop(0))
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    service.manners = [so]
    with pytest.raises(NotificationRefused) as refused:
        rule.notify(notification(Occasion.CREATED))
    assert refused.value.maybe_accepted


@pytest.mark.slow
def test_it_is_known_whether_the_service_may_have_heard(service, rule):
    service.answers(500)
    with pytest.raises(NotDelivered) as unheard:
        rule.notify(notification(Occasion.CREATED))
    assert unheard.value.maybe_accepted
    service.sleeps(2)
    with pytest.raises(NotDelivered) as unheard:
        a_filter(service.url, seconds=0.2).notify(notification(Occasion.CREATED))
    assert unheard.value.maybe_accepted
    service.answers(429)
    with pytest.raises(NotDelivered) as unheard:
        rule.notify(notification(Occasion.CREATED))
    assert not unheard.value.maybe_accepted
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotDelivered) as unheard:
        a_filter(f"http://127.0.0.1:{port}/").notify(notification(Occasion.CREATED))
    assert not unheard.value.maybe_accepted


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"message": "a", "error": "b", "detail": "c", "reason": "d"}, "a"),
        ({"message": "", "error": "b", "detail": "c"}, "b"),
        ({"message": None, "error": {"code": 1}, "detail": "c", "reason": "d"}, "c"),
        ({"reason": "d"}, "d"),
    ],
)
def test_the_reason_is_the_first_text_of_those_that_services_use(service, rule, body, reason):
    service.answers(403, json.dumps(body).encode())
    with pytest.raises(UsageDenied) as denied:
        rule.check(asking())
    assert denied.value.message == reason


def test_what_a_service_says_to_a_mistake_is_logged_without_our_secrets(service, rule, caplog):
    caplog.set_level(logging.INFO)
    said = b"<p>X-Auth-Token %s is not\n known\x07</p>" % TOKEN.encode() + b"x" * 1000
    for status in (400, 401, 403, 404, 429):
        caplog.clear()
        service.answers(status, said)
        with pytest.raises((EnforcementUnavailable, UsageDenied)):
            rule.check(asking())
        (line,) = {r.getMessage() for r in caplog.records if "answered check-create of lease l-1" in r.getMessage()}
        told = line.partition(f"with {status}: ")[2]
        assert told.startswith("<p>X-Auth-Token *** is not known </p>xxx")
        assert len(told) == 500


def test_no_secret_that_a_service_repeats_is_shown_to_a_user(service, rule):
    service.answers(403, json.dumps({"message": f"token {TOKEN} is too old"}).encode())
    with pytest.raises(UsageDenied, match=r"^token \*\*\* is too old$"):
        rule.check(asking())


class Tokens:
    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    def token(self) -> str:
        if not self.tokens:
            raise CloudUnavailable("Keystone is away")
        return self.tokens[0]

    def renew(self) -> None:
        self.tokens.pop(0)


def test_the_service_users_token_is_renewed_when_it_is_not_accepted(service):
    a_filter(service.url, credential=ServiceUserToken(Tokens("old", TOKEN))).check(asking())
    assert [headers["X-Auth-Token"] for _, _, headers in service.got] == ["old", TOKEN]


def test_without_a_token_of_the_service_user_there_is_no_answer(service, caplog):
    with pytest.raises(EnforcementUnavailable):
        a_filter(service.url, credential=ServiceUserToken(Tokens())).check(asking())
    assert "Keystone is away" in caplog.text
    assert service.got == []


def test_a_bearer_token_goes_where_such_tokens_go(service):
    service.answers(204)
    a_filter(service.url, credential=StaticToken("Authorization", f"Bearer {TOKEN}")).check(asking())
    assert service.got[0][2]["Authorization"] == f"Bearer {TOKEN}"


def test_nothing_of_a_netrc_file_is_sent(service, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    service.answers(204)
    a_filter(service.url, credential=Credential()).check(asking())
    assert "Authorization" not in service.got[0][2]


@pytest.mark.slow
def test_no_secret_is_in_the_log_or_in_a_message(service, caplog):
    caplog.set_level(logging.DEBUG)
    for url in (f"{service.url}?key={TOKEN}&", f"http://127.0.0.1:1/{TOKEN}/"):
        service.answers(500)
        with pytest.raises(EnforcementUnavailable) as refused:
            a_filter(url).check(asking())
        assert TOKEN not in refused.value.message
        with pytest.raises(EnforcementUnavailable) as refused:
            a_filter(url).notify(notification(Occasion.CREATED))
        assert TOKEN not in refused.value.message
    ours = [record for record in caplog.records if record.name.startswith("blazar")]
    assert ours
    assert not [record for record in ours if TOKEN in record.getMessage()]
