# SPDX-License-Identifier: Apache-2.0
"""Web hooks over HTTPS: where members may have them, what is signed, and receivers that lie, hang, or redirect."""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import threading
import time
from datetime import timedelta

import pytest

from blazar.clouds.outgoing.addresses import Allowed, TargetNames
from blazar.clouds.ports.webhooks import Reception, WebhookMessage, WebhookReceipt
from blazar.clouds.webhooks import HttpWebhooks
from blazar.model.base.errors import InvalidInput
from tests.certificates import make_certificate
from tests.clouds.receivers import MASTER, answer, dripping, receiver, silent, verified

NAMED = TargetNames("url", "webhooks", "member_networks")
LOOPBACK = ("127.0.0.0/8", "::1/128")

SPECIAL = (  # noqa: SIM905  # one can read them so
    "0.0.0.0 0.1.2.3 10.0.0.5 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254 127.0.0.1 127.1.2.3 "
    "127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.7 "
    "192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.4 203.0.113.9 224.0.0.1 239.255.255.250 "
    "240.0.0.1 255.255.255.254 255.255.255.255 :: ::1 ::ffff:10.0.0.5 ::ffff:127.0.0.1 ::ffff:169.254.169.254 "
    "::ffff:192.168.1.1 ::ffff:0.0.0.0 ::ffff:100.64.0.1 ::127.0.0.1 ::10.0.0.5 64:ff9b::a00:1 64:ff9b::7f00:1 "
    "64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 64:ff9b::808:808 100::1 2001::1 2001:0:a00:1::1 2001:2::1 2001:10::1 "
    "2001:db8::1 2002:a00:1:: 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:c0a8:101::1 3fff::1 fc00::1 fd00:ec2::254 "
    "fd12::1 fe80::1 fe80::5efe:a00:1 febf::1 fec0::1 ff01::1 ff02::1 ff0e::1 5f00::1 "
).split()
"""Addresses that are not everybody's: of this machine, private, shared, local, of examples, translated, mapped."""


def webhooks(*, networks=LOOPBACK, masters=(MASTER,), seconds: float = 15.0, **more) -> HttpWebhooks:
    made = HttpWebhooks(
        masters,
        Allowed.of((), networks, http=False, named=TargetNames("url", "webhooks")),
        Allowed.public_only(networks, named=NAMED),
        **more,
    )
    made.seconds = seconds
    return made


def a_message(url: str, *, trusted: bool = False, generations: tuple[int, ...] = (1,)) -> WebhookMessage:
    return WebhookMessage(url, trusted, "s-1", generations, "e-1", "application/cloudevents+json", b'{"id": "e-1"}')


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Return the certificate to trust, and the context of a server that has it."""
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return str(certificate), context


def https(heard) -> str:
    return heard.url.replace("http:", "https:")


def test_there_are_sixty_special_addresses():
    assert len(set(SPECIAL)) == len(SPECIAL) >= 60


@pytest.mark.parametrize("address", SPECIAL)
def test_a_member_cannot_name_a_special_address(address):
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(InvalidInput, match="no network of .webhooks. member_networks has it") as refused:
        webhooks(networks=()).check_target(f"https://{host}/", trusted=False)
    assert refused.value.pointer == "/url"


@pytest.mark.parametrize("address", SPECIAL)
def test_a_name_that_stands_for_a_special_address_is_not_called(address, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def resolve(host: str, port: int, **_: object) -> list[object]:
        # A good address does not make up for a bad one.
        good = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))
        return [good, (family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it was called"))
    receipt = webhooks(networks=()).send(a_message("https://ci.example/"))
    assert receipt == WebhookReceipt(
        Reception.REFUSED, "it is not called: its host has an address that must not be called"
    )


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700::1111]", "ci.example", "ci.example:8443", "ci.example:443"])
def test_a_member_can_name_what_is_in_the_internet(host):
    webhooks(networks=()).check_target(f"https://{host}/x?y=1", trusted=False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://ci.example/", "give an https:// URL"),
        ("https://ci.example:22/", "the port 22"),
        ("https://ci.example:80/", "the port 80"),
        ("https://ci.example:1023/", "the port 1023"),
        ("https://me:secret@ci.example/", "leave out the user name"),
        ("ftp://ci.example/", "https:// URL"),
    ],
)
def test_a_member_cannot_name_another_service_of_a_host(url, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        webhooks().check_target(url, trusted=False)
    assert "secret" not in refused.value.message
    assert refused.value.pointer == "/url"


def test_an_operator_can_name_hosts_of_the_site_on_any_port():
    free = webhooks(networks=())
    for url in ("https://10.0.0.5/", "https://192.168.1.1:22/", "https://[fd12::1]/"):
        free.check_target(url, trusted=True)
        with pytest.raises(InvalidInput):
            free.check_target(url, trusted=False)
    with pytest.raises(InvalidInput, match="an address of this machine, and no network of .webhooks. allowed_networks"):
        free.check_target("https://127.0.0.1/", trusted=True)


def test_networks_for_members_open_these_and_no_others():
    opened = webhooks(networks=("198.18.0.0/15",))
    opened.check_target("https://198.18.0.1/", trusted=False)
    with pytest.raises(InvalidInput):
        opened.check_target("https://10.0.0.5/", trusted=False)


def test_a_message_is_sent_as_it_is_and_signed_with_each_secret(tls):
    cafile, context = tls
    sender = webhooks(cafile=cafile, masters=(MASTER, "n" * 40), now=lambda: 1_900_000_000.5)
    with receiver(answer(202), tls=context) as heard:
        assert sender.send(a_message(https(heard), generations=(2, 1))).reception is Reception.ACCEPTED
    ((line, headers, body),) = heard.heard
    assert (line, body) == ("POST /hook?key=1 HTTP/1.1", b'{"id": "e-1"}')
    assert headers["Content-Type"] == "application/cloudevents+json"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("e-1", "1900000000")
    assert len(headers["webhook-signature"].split(" ")) == 4
    for generation in (1, 2):
        assert verified(sender.reveal_secret("s-1", generation), headers, body, now=1_900_000_010)
    for other in (sender.reveal_secret("s-1", 3), sender.reveal_secret("s-2", 1)):
        assert not verified(other, headers, body, now=1_900_000_010)


@pytest.mark.parametrize(
    ("given", "reception", "words"),
    [
        (answer(200, {"any": "thing"}), Reception.ACCEPTED, None),
        (answer(204), Reception.ACCEPTED, None),
        (answer(410), Reception.GONE, "410"),
        (answer(301, Location="https://127.0.0.1/"), Reception.REFUSED, "redirect, which is never followed"),
        (answer(307, Location="http://169.254.169.254/"), Reception.REFUSED, "redirect"),
        (answer(400, {"message": "internal text"}), Reception.REFUSED, r"it refuses the message \(400\)"),
        (answer(404), Reception.REFUSED, "404"),
        (answer(408), Reception.FAILED, "it answered 408"),
        (answer(409), Reception.FAILED, "409"),
        (answer(425), Reception.FAILED, "425"),
        (answer(429), Reception.FAILED, "429"),
        (answer(500), Reception.FAILED, "500"),
        (answer(503), Reception.FAILED, "503"),
        (b"", Reception.FAILED, "gave an answer that is not HTTP|cannot be reached"),
        (b"\xff\xfe\x00 garbage\r\n\r\n", Reception.FAILED, "not HTTP"),
    ],
)
def test_what_an_answer_means(tls, given, reception, words):
    cafile, context = tls
    with receiver(answer(204), tls=context) as elsewhere, receiver(given, tls=context) as heard:
        receipt = webhooks(cafile=cafile).send(a_message(https(heard)))
    assert receipt.reception is reception
    assert (receipt.reason is None) is (words is None)
    if words is not None:
        assert re.search(words, receipt.reason)
        assert "internal text" not in receipt.reason
    assert elsewhere.connections == 0


def test_a_receiver_says_when_it_wants_to_be_called_again(tls):
    cafile, context = tls
    with receiver(answer(429, Retry_After="90"), tls=context) as heard:
        receipt = webhooks(cafile=cafile).send(a_message(https(heard)))
    assert receipt.after == timedelta(seconds=90)


@pytest.mark.slow
@pytest.mark.parametrize(
    "liar",
    [silent, dripping(b"HTTP/1.1 200 "), dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["hangs", "drips", "goes on"],
)
def test_a_receiver_that_holds_the_line_is_cut_off(tls, liar):
    cafile, context = tls
    begun = time.monotonic()
    with receiver(liar, tls=context) as heard:
        receipt = webhooks(cafile=cafile, seconds=0.4).send(a_message(https(heard)))
    assert receipt.reception is Reception.FAILED
    assert time.monotonic() - begun < 5


def test_a_certificate_that_nobody_knows_is_not_trusted(tls):
    with receiver(answer(204), tls=tls[1]) as heard:
        receipt = webhooks(seconds=2).send(a_message(https(heard)))
    assert receipt.reception is Reception.FAILED
    assert "certificate" in (receipt.reason or "")
    assert heard.heard == []


def test_no_secret_and_no_url_is_in_a_log_or_a_reason(tls, caplog):
    caplog.set_level(logging.DEBUG)
    cafile, context = tls
    sender = webhooks(cafile=cafile)
    texts = []
    for given in (answer(500), answer(403), b"", answer(204)):
        with receiver(given, tls=context) as heard:
            texts.append(json.dumps(str(sender.send(a_message(https(heard))))))
    for text in (caplog.text, *texts):
        assert not any(part in text for part in (MASTER, sender.reveal_secret("s-1", 1), "key=1"))


def test_without_a_master_secret_nothing_is_sent(tls):
    with receiver(answer(204), tls=tls[1]) as heard:
        receipt = webhooks(masters=()).send(a_message(https(heard)))
    assert (receipt.reception, heard.connections) == (Reception.FAILED, 0)
    with pytest.raises(InvalidInput, match="master_secrets is not set"):
        webhooks(masters=()).reveal_secret("s-1", 1)


class Keeping:
    """A receiver that keeps connections open: it reads ``calls`` messages of each, and answers all of them so."""

    def __init__(self, calls: int, given: bytes) -> None:
        self.calls, self.given = calls, given
        self.receiver = None

    def __call__(self, wire) -> None:
        wire.sendall(self.given)
        for _ in range(self.calls - 1):
            self.receiver.read(wire)
            wire.sendall(self.given)


def send_some(sender: HttpWebhooks, url: str, count: int) -> list[Reception]:
    with sender.keep_connection() as send:
        return [send(a_message(url)).reception for _ in range(count)]


@pytest.mark.parametrize(("calls", "connections"), [(6, 1), (1, 6), (2, 3), (4, 2)])
def test_messages_go_by_one_connection_as_long_as_the_receiver_keeps_it(tls, calls, connections):
    cafile, context = tls
    keeping = Keeping(calls, answer(204))
    with receiver(keeping, tls=context) as heard:
        keeping.receiver = heard
        assert send_some(webhooks(cafile=cafile), https(heard), 6) == [Reception.ACCEPTED] * 6
        assert (len(heard.heard), heard.connections) == (6, connections)


@pytest.mark.parametrize(
    "given",
    [
        answer(204, Connection="close"),
        answer(200, b"x" * 5000),
        b"HTTP/1.0 204 X\r\n\r\n",
    ],
    ids=["it says so", "a long answer", "an old protocol"],
)
def test_a_connection_is_given_up_after_an_answer_that_is_not_as_it_should_be(tls, given):
    cafile, context = tls
    keeping = Keeping(9, given)
    with receiver(keeping, tls=context) as heard:
        keeping.receiver = heard
        assert send_some(webhooks(cafile=cafile, seconds=3), https(heard), 3) == [Reception.ACCEPTED] * 3
        assert heard.connections == 3


def test_an_answer_that_comes_before_its_message_is_none(tls):
    cafile, context = tls
    said = threading.Event()

    def foresee(wire) -> None:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(answer(204))
        wire.sendall(answer(410))
        said.set()
        silent(wire)

    with receiver(foresee, answer(204), tls=context) as heard, webhooks(cafile=cafile).keep_connection() as send:
        assert send(a_message(https(heard))).reception is Reception.ACCEPTED
        assert said.wait(5)
        assert send(a_message(https(heard))).reception is Reception.ACCEPTED
        assert heard.connections == 2


def test_the_address_is_checked_whenever_a_connection_is_made(tls, monkeypatch):
    cafile, context = tls
    keeping = Keeping(2, answer(204))
    with receiver(keeping, tls=context) as heard:
        keeping.receiver = heard
        sender, asked = webhooks(cafile=cafile), []
        inward = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.5", heard.port))]

        def resolve(host: str, port: int, **_: object) -> list[object]:
            asked.append(host)
            here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            return [here] if len(asked) == 1 else inward

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        got = send_some(sender, https(heard), 4)
    # The receiver has closed the first connection after two messages.
    assert got == [Reception.ACCEPTED, Reception.ACCEPTED, Reception.REFUSED, Reception.REFUSED]
    assert len(asked) == 3


def test_each_message_of_a_connection_has_its_time(tls):
    cafile, context = tls
    keeping = Keeping(2, answer(204))

    def hang(wire) -> None:
        wire.sendall(answer(204))
        heard.read(wire)
        silent(wire)

    with receiver(hang, keeping, tls=context) as heard:
        keeping.receiver = heard
        begun = time.monotonic()
        got = send_some(webhooks(cafile=cafile, seconds=0.4), https(heard), 3)
        assert got == [Reception.ACCEPTED, Reception.FAILED, Reception.ACCEPTED]
        assert time.monotonic() - begun < 5
