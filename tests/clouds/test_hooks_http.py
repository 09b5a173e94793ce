# SPDX-License-Identifier: Apache-2.0
"""Hooks over HTTP, with real receivers: good ones, slow ones, and liars."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from datetime import timedelta

import pytest

from blazar.clouds.outgoing import signing
from blazar.clouds.outgoing.addresses import Allowed
from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookResult
from blazar.context import scope
from blazar.model.base.errors import ClaimLost, CloudRefused, CloudUnavailable, InvalidInput
from tests.clouds.receivers import MASTER, a_call, answer, dripping, hooks, receiver, silent, verified


def test_a_message_is_a_signed_post_with_its_id_and_the_time_of_the_attempt():
    with receiver(answer(204)) as heard:
        assert hooks(now=lambda: 1_900_000_000.7).call_hook(a_call(heard.url)).result is HookResult.DONE
    ((line, headers, body),) = heard.heard
    assert line == "POST /hook?key=1 HTTP/1.1"
    assert headers["Host"] == f"127.0.0.1:{heard.port}"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("r-1:thing-1:start:1-1", "1900000000")
    data = {"reservation_id": "r-1", "amount": 1}
    assert json.loads(body) == {"type": "reservation.start", "timestamp": "2030-04-01T12:00:00Z", "data": data}
    (secret,) = signing.secrets_of([MASTER], "thing-1")
    assert verified(secret, headers, body, now=1_900_000_100)
    assert not verified(secret, headers, body + b" ", now=1_900_000_100)
    assert not verified(secret, headers, body, now=1_900_001_000)
    (other,) = signing.secrets_of([MASTER], "thing-2")
    assert not verified(other, headers, body, now=1_900_000_100)


def test_a_retry_has_the_same_id_and_body_and_a_signature_of_its_own():
    clock = iter((1_900_000_000.0, 1_900_000_000.0, 1_900_000_060.0, 1_900_000_060.0))
    with receiver(answer(503), answer(204)) as heard:
        calling = hooks(now=lambda: next(clock))
        with pytest.raises(CloudUnavailable, match="its hook answered 503"):
            calling.call_hook(a_call(heard.url))
        calling.call_hook(a_call(heard.url))
    (_, first, body), (_, second, again) = heard.heard
    assert (first["webhook-id"], body) == (second["webhook-id"], again)
    assert first["webhook-signature"] != second["webhook-signature"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer(200), HookAnswer(HookResult.DONE)),
        (answer(204), HookAnswer(HookResult.DONE)),
        (answer(200, {"url": "x"}), HookAnswer(HookResult.DONE, content={"url": "x"})),
        (answer(200, b"<html>"), HookAnswer(HookResult.DONE)),
        (answer(200, {"a": "x" * 5000}), HookAnswer(HookResult.DONE)),
        (answer(200, b'{"a": NaN}'), HookAnswer(HookResult.DONE)),
        (answer(200, b'{"a": "\\u0000"}'), HookAnswer(HookResult.DONE)),
        (answer(200, b'{"a": "\\ud800"}'), HookAnswer(HookResult.DONE)),
        (answer(200, b'{"a":' * 500 + b"1" + b"}" * 500), HookAnswer(HookResult.DONE)),
        (answer(200, b'{"a": ' + b"9" * 4000 + b"}"), HookAnswer(HookResult.DONE)),
        (b'HTTP/1.1 200 X\r\nContent-Length: 900\r\n\r\n{"a": 1}', HookAnswer(HookResult.DONE)),
    ],
)
def test_what_was_done_is_done_whatever_else_the_answer_says(given, expected):
    with receiver(given) as heard:
        assert hooks().call_hook(a_call(heard.url)) == expected


@pytest.mark.parametrize(
    ("retry_after", "after"),
    [
        ({"Retry_After": "90"}, timedelta(seconds=90)),
        ({}, timedelta(seconds=10)),
        ({"Retry_After": "0"}, timedelta(seconds=1)),
        ({"Retry_After": "-5"}, timedelta(seconds=10)),
        ({"Retry_After": "9" * 50}, timedelta(hours=1)),
        ({"Retry_After": "Sun, 17 Mar 2030 17:47:10 GMT"}, timedelta(seconds=30)),
        ({"Retry_After": "Sun, 17 Mar 2099 17:47:10 GMT"}, timedelta(hours=1)),
        ({"Retry_After": "soon"}, timedelta(seconds=10)),
    ],
)
def test_not_yet_is_asked_again_within_an_hour(retry_after, after):
    with receiver(answer(202, **retry_after)) as heard:
        found = hooks(now=lambda: 1_900_000_000.0).call_hook(a_call(heard.url))
    assert (found.result, found.after) == (HookResult.NOT_YET, after)


@pytest.mark.parametrize(
    ("status", "result"),
    [(409, HookResult.UNUSABLE), (400, HookResult.REFUSED), (404, HookResult.REFUSED), (410, HookResult.REFUSED)],
)
def test_a_refusal_has_the_sentence_of_its_receiver_on_one_line(status, result):
    with receiver(answer(status, {"message": "no\nlens \x1b[31m" + "x" * 500})) as heard:
        found = hooks().call_hook(a_call(heard.url))
    assert found.result is result
    assert "no lens [31mxxx" in found.reason
    assert found.reason.isprintable()
    assert len(found.reason) < 300


@pytest.mark.parametrize("action", [HookAction.END, HookAction.BEFORE_END])
def test_only_a_start_says_that_something_cannot_be_used(action):
    with receiver(answer(409, {"message": "nobody has it"})) as heard:
        found = hooks().call_hook(a_call(heard.url, action))
    assert found.result is HookResult.REFUSED
    assert found.reason == "its hook refuses the call (409): nobody has it"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_never_followed(status):
    with receiver(answer(204)) as elsewhere, receiver(answer(status, Location=elsewhere.url)) as heard:
        found = hooks().call_hook(a_call(heard.url))
    assert (found.result, elsewhere.connections) == (HookResult.REFUSED, 0)
    assert "redirect" in found.reason


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_retried(status):
    with receiver(answer(status)) as heard, pytest.raises(CloudUnavailable, match=f"its hook answered {status}"):
        hooks().call_hook(a_call(heard.url))


@pytest.mark.slow
@pytest.mark.parametrize(
    "liar",
    [
        silent,
        dripping(b"HTTP/1.1 200 "),
        dripping(b"HTTP/1.1 200 X\r\nA: "),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["hangs", "drips its status", "drips a header", "continues"],
)
def test_a_receiver_that_holds_the_line_is_cut_off(liar):
    begun = time.monotonic()
    with receiver(liar) as heard, pytest.raises(CloudUnavailable, match="its hook (did not answer in time|gave an)"):
        hooks(timeout=0.3).call_hook(a_call(heard.url))
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_a_body_that_never_ends_costs_its_content_alone():
    drips = dripping(b"HTTP/1.1 200 X\r\nContent-Length: 4000\r\n\r\n")
    with receiver(drips) as heard:
        assert hooks(timeout=0.3).call_hook(a_call(heard.url)) == HookAnswer(HookResult.DONE)


@pytest.mark.parametrize("garbage", [b"", b"\xff\xfe\x00", b"HTTP/9.9 banana\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_what_is_no_answer_is_an_outage(garbage):
    with receiver(garbage) as heard, pytest.raises(CloudUnavailable, match="its hook"):
        hooks().call_hook(a_call(heard.url))


def test_a_receiver_that_is_away_is_an_outage():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with pytest.raises(CloudUnavailable, match="its hook cannot be reached"):
        hooks().call_hook(a_call(url))


def test_a_certificate_that_nobody_knows_is_not_trusted():
    with receiver(answer(204)) as heard, pytest.raises(CloudUnavailable, match="certificate|in time|reached"):
        hooks(timeout=1).call_hook(a_call(heard.url.replace("http:", "https:")))
    assert heard.heard == []


def test_the_address_is_checked_when_the_connection_is_made(monkeypatch):
    names = {"lab.example": "127.0.0.1", "meta.example": "169.254.169.254", "v6.example": "::ffff:127.0.0.1"}

    def resolved(host: str, port: int, **_: object) -> list[object]:
        address = names.get(host, host)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    calling = hooks(allowed=Allowed.of(("*.example",), (), http=True))
    with receiver(answer(204)) as heard:
        for name in names:
            with pytest.raises(CloudRefused, match="and no network of .generic. allowed_networks has it"):
                calling.call_hook(a_call(f"http://{name}:{heard.port}/"))
    assert heard.connections == 0


def test_a_look_up_of_a_name_that_hangs_is_not_waited_for(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(30) and [])
    began = time.monotonic()
    with pytest.raises(CloudUnavailable, match="its hook did not answer in time"):
        hooks(timeout=0.2).call_hook(a_call("http://lab.example/"))
    assert time.monotonic() - began < 5
    answered.set()


def test_a_name_that_nobody_knows_is_told(monkeypatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(CloudUnavailable, match="its hook cannot be reached"):
        hooks(timeout=5).call_hook(a_call("http://lab.example/"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://lab.example/", "allow_http"),
        ("https://user:secret@lab.example/", "leave out the user name and password"),
        ("https://lab.example/#x", "leave out the part after #"),
        ("https://lab.example:0/", "the port 0"),
        ("https://lab.example:99999/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
        ("https://lab.example/a b", "printable ASCII"),
        ("https://lab.example/\r\nX: y", "printable ASCII"),
        ("https:///x", "names no host"),
        ("https://lab..example/", "an empty part"),
        ("https://" + "x" * 64 + ".example/", "more than 63 characters"),
        ("https://" + "x." * 130 + "example/", "more than 253"),
        ("file:///etc/passwd", "https:// URL"),
        ("https://" + "x" * 2000, "https:// URL"),
        ("https://127.0.0.1/", "an address of this machine"),
        ("https://[::ffff:127.0.0.1]/", "an address of this machine"),
        ("https://[2002:7f00:1::]/", "an address of this machine"),
        ("https://0.0.0.0/", "an address of this machine"),
        ("https://169.254.169.254/latest", "the address of a metadata service"),
        ("https://[fd00:ec2::254]/", "the address of a metadata service"),
        ("https://[fe80::1]/", "a link-local address"),
        ("https://224.0.0.1/", "a multicast address"),
        ("https://255.255.255.255/", "a reserved address"),
    ],
)
def test_a_url_that_would_not_be_called_is_refused_with_a_sentence_that_does_not_repeat_it(url, words):
    with pytest.raises(InvalidInput, match=words.replace("(", "\\(")) as refused:
        hooks(allowed=Allowed()).check_hook(url)
    assert "secret" not in refused.value.message
    assert refused.value.pointer == "/hook_url"


def test_a_list_of_hosts_or_networks_allows_what_is_in_it_and_nothing_else():
    listed = hooks(allowed=Allowed.of(("control.example", "*.lab.example"), ("10.1.0.0/16", "127.0.0.0/8"), http=False))
    for url in ("https://control.example/", "https://10.1.2.3/", "https://127.0.0.1/", "https://a.b.lab.example/"):
        listed.check_hook(url)
    with pytest.raises(InvalidInput, match="neither in allowed_hosts nor in allowed_networks"):
        listed.check_hook("https://10.2.0.1/")
    names = hooks(allowed=Allowed.of(("*.lab.example",), (), http=False))
    for url in ("https://lab.example/", "https://evil-lab.example/"):
        with pytest.raises(InvalidInput, match="is not in .generic. allowed_hosts"):
            names.check_hook(url)
    hooks(allowed=Allowed()).check_hook("https://10.2.0.1/")


@pytest.mark.parametrize(
    ("hosts", "networks"), [(("a b",), ()), (("https://x",), ()), ((), ("10.0.0.1/8",)), ((), ("x",))]
)
def test_a_wrong_list_stops_the_start_with_its_name(hosts, networks):
    with pytest.raises(InvalidInput, match=r"\[generic\] allowed_(hosts|networks)"):
        Allowed.of(hosts, networks, http=False)


def test_without_a_master_secret_nothing_is_called_and_a_short_one_is_refused_unseen():
    with pytest.raises(InvalidInput, match="master_secrets is not set"):
        hooks(masters=()).check_hook("https://lab.example/")
    with receiver(answer(204)) as heard, pytest.raises(CloudRefused, match="master_secrets is not set"):
        hooks(masters=()).call_hook(a_call(heard.url))
    assert heard.connections == 0
    with pytest.raises(InvalidInput, match="number 2 has 5 characters") as refused:
        hooks(masters=(MASTER, "abcde"))
    assert "abcde" not in refused.value.message


class Expired:
    """A claim that is about to expire."""

    longest_call = 10.0

    def remaining(self) -> float:
        return 3.0


def test_a_manager_that_may_have_lost_its_claim_calls_no_hook_but_may_ask():
    with receiver(answer(204)) as heard:
        with scope(fence=Expired()), pytest.raises(ClaimLost):
            hooks().call_hook(a_call(heard.url))
        assert heard.connections == 0
        with scope(fence=Expired()):
            hooks().ask_hook(a_call(heard.url, HookAction.HEALTH))
        assert heard.connections == 1


def test_no_proxy_of_the_environment_is_used(monkeypatch):
    with receiver(answer(204)) as proxy, receiver(answer(204)) as heard:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        hooks().call_hook(a_call(heard.url))
    assert (proxy.connections, heard.connections) == (0, 1)


def test_no_secret_and_no_url_is_in_a_log_or_an_error(caplog):
    caplog.set_level(logging.DEBUG)
    texts = []
    for given in (answer(500), answer(403, {"message": "no"}), b"", answer(204)):
        with receiver(given) as heard:
            try:
                texts.append(hooks().call_hook(a_call(heard.url)).reason)
            except CloudUnavailable as error:
                texts.append(error.message)
    (secret,) = signing.secrets_of([MASTER], "thing-1")
    for text in (caplog.text, *texts):
        assert not any(each in text for each in (MASTER, secret, secret.removeprefix("whsec_"), "key=1"))
