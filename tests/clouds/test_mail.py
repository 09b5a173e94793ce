# SPDX-License-Identifier: Apache-2.0
"""Mail by SMTP, to real servers: what is given to them, and what becomes of what they refuse."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP
from keystoneauth1 import exceptions as ksa

from blazar.clouds import mail
from blazar.clouds.mail import SmtpMail
from blazar.clouds.openstack.people import KeystonePeople
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.cmd import assemble, config
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from tests.certificates import make_certificate

MESSAGE = b"Subject: x\r\n\r\nhello\r\n"
SENDER = "Blazar <blazar@cloud.example>"


class Server:
    """What a server answers to recipients and to messages, and the messages that it has taken."""

    def __init__(self, recipient: str = "250 OK", message: str = "250 OK") -> None:
        self.recipient, self.message = recipient, message
        self.taken: list[tuple[str, list[str], bytes]] = []

    async def handle_RCPT(self, server, session, envelope, address, options) -> str:
        if self.recipient.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.recipient

    async def handle_DATA(self, server, session, envelope) -> str:
        if self.message.startswith("250"):
            self.taken.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return self.message


@contextmanager
def serving(server: Server, *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server on 127.0.0.1; return its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    class Listening(Controller):
        def factory(self) -> SMTP:
            return SMTP(self.handler, tls_context=tls, require_starttls=tls is not None)

    controller = Listening(server, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        controller.stop()


@pytest.fixture
def load(tmp_path):
    """Return what loads a file of options with these lines."""

    def load(*lines: str):
        path = tmp_path / "blazar.conf"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return config.load(["--config-file", str(path)], program="blazar-test")

    return load


def test_the_server_of_the_file_gets_mail_from_the_address_of_the_file(load):
    server = Server()
    with serving(server) as place:
        mail = SmtpMail.configured(load("[mail]", f"smtp_url = smtp://{place}", f"from = {SENDER}"))
        assert mail.enabled
        assert mail.send("curie@physics.example", MESSAGE).reception is Reception.ACCEPTED
    ((sender, recipients, content),) = server.taken
    assert (sender, recipients) == ("blazar@cloud.example", ["curie@physics.example"])
    assert b"hello" in content
    assert not SmtpMail.configured(load("[mail]")).enabled
    with pytest.raises(InvalidInput, match=r"\[mail\] from"):
        SmtpMail.configured(load("[mail]", "from = nobody"))


def test_the_file_says_how_long_after_a_mail_a_subscription_sends_the_next_one(load):
    assert assemble.settings(load("[mail]", "pause = 600")).mail_pause == timedelta(minutes=10)
    assert assemble.settings(load("[mail]")).mail_pause == timedelta(minutes=3)


def test_the_file_says_what_users_are_told_of_their_own_leases(load):
    assert assemble.settings(load("[mail]", "defaults = lease.failed")).own_events == ("lease.failed",)
    assert "lease.before_end" in assemble.settings(load("[mail]")).own_events
    with pytest.raises(config.ConfigurationError, match=r"\[mail\] defaults: .*lease.exploded"):
        assemble.settings(load("[mail]", "defaults = lease.exploded"))


def test_a_link_that_ends_mail_begins_where_the_file_says(load):
    lines = ("[mail]", "service_url = https://cloud.example/reservation/", f"master_secret = {'m' * 40}")
    mail = SmtpMail.configured(load(*lines))
    begin, _, secret = mail.reveal_link("s-1").rpartition("/")
    assert begin == "https://cloud.example/reservation/unsubscribe/s-1"
    assert mail.is_secret_of("s-1", secret)
    assert not mail.is_secret_of("s-2", secret)
    other = SmtpMail.configured(load(*lines[:2], f"master_secret = {'n' * 40}"))
    assert not other.is_secret_of("s-1", secret)
    assert not SmtpMail.configured(load("[mail]")).is_secret_of("s-1", secret)
    for some in (lines[:2], (lines[0], lines[2])):
        assert SmtpMail.configured(load(*some)).reveal_link("s-1") is None
    for wrong, words in (("service_url = cloud", "no URL"), ("master_secret = short", "at least 32")):
        with pytest.raises(InvalidInput, match=words):
            SmtpMail.configured(load("[mail]", wrong))


@pytest.mark.parametrize(
    ("server", "reception", "words"),
    [
        (Server(recipient="550 no such user"), Reception.GONE, r"does not take this recipient \(550\)"),
        (Server(recipient="550 5.1.1 no such user"), Reception.GONE, r"\(550\)"),
        (Server(recipient="550 5.2.1 mailbox disabled"), Reception.GONE, r"\(550\)"),
        (Server(recipient="550 5.7.1 blocked using zen.example"), Reception.FAILED, r"\(550\)"),
        (Server(recipient="554 5.7.1 relay access denied"), Reception.FAILED, r"\(554\)"),
        (Server(recipient="554 no"), Reception.FAILED, r"\(554\)"),
        (Server(recipient="552 5.2.2 mailbox full"), Reception.FAILED, r"\(552\)"),
        (Server(recipient="552 mailbox full"), Reception.FAILED, r"\(552\)"),
        (Server(recipient="451 try later"), Reception.FAILED, r"\(451\)"),
        (Server(message="554 spam"), Reception.FAILED, r"refuses the message \(554\)"),
        (Server(message="421 busy"), Reception.FAILED, "mail server"),
    ],
)
def test_an_address_that_is_refused_for_good_is_gone_and_the_rest_is_tried_again(server, reception, words):
    with serving(server) as place:
        receipt = SmtpMail(f"smtp://{place}", SENDER).send("curie@physics.example", MESSAGE)
    assert receipt.reception is reception
    assert receipt.reason is not None
    assert re.search(words, receipt.reason)
    assert server.taken == []


class Silent(Server):
    """Does not answer when it hears to whom a mail is."""

    async def handle_RCPT(self, server, session, envelope, address, options) -> str:
        await asyncio.Event().wait()
        raise AssertionError


async def talk_on(server: SMTP) -> str:
    """Begin an answer that has no end, each line of which comes soon."""
    while True:
        await server.push("250-one moment")
        await asyncio.sleep(0.02)


class SlowToGreet(Server):
    async def handle_EHLO(self, server, session, envelope, hostname, responses) -> list[str]:
        return [await talk_on(server)]


class SlowToTake(Server):
    async def handle_DATA(self, server, session, envelope) -> str:
        return await talk_on(server)


@pytest.mark.parametrize("server", [Silent, SlowToGreet, SlowToTake])
def test_a_conversation_ends_in_its_time_however_slowly_the_server_talks(server, monkeypatch):
    monkeypatch.setattr(mail, "SECONDS", 0.5)
    begun = time.monotonic()
    with serving(server()) as place:
        receipt = SmtpMail(f"smtp://{place}", SENDER).send("curie@physics.example", MESSAGE)
    assert receipt == WebhookReceipt(Reception.FAILED, "the mail server did not answer in time")
    assert time.monotonic() - begun < 10


def test_a_message_that_was_taken_is_sent_whatever_the_server_says_to_the_farewell():
    class Rude(Server):
        async def handle_QUIT(self, server, session, envelope) -> str:
            return "500 no"

    server = Rude()
    with serving(server) as place:
        receipt = SmtpMail(f"smtp://{place}", SENDER).send("curie@physics.example", MESSAGE)
    assert receipt.reception is Reception.ACCEPTED
    assert len(server.taken) == 1


def test_tls_is_needed_and_its_certificate_is_checked(tmp_path):
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Server()
    with serving(server, tls=context) as place:
        url = f"smtp://{place}?starttls=require"
        assert SmtpMail(url, SENDER).send("a@b.example", MESSAGE).reception is Reception.FAILED
        assert (
            SmtpMail(url, SENDER, cafile=str(certificate)).send("a@b.example", MESSAGE).reception is Reception.ACCEPTED
        )
    with serving(Server()) as place:
        receipt = SmtpMail(f"smtp://{place}?starttls=require", SENDER).send("a@b.example", MESSAGE)
        assert "offers no TLS" in (receipt.reason or "")


@pytest.mark.parametrize(
    "url",
    [
        "http://mail.example",
        "smtp://",
        "smtp://mail.example:x",
        "smtp://mail.example?colour=red",
        "smtp://mail.example?starttls=maybe",
        "smtp://me:s3cret@mail.example?starttls=never",
    ],
)
def test_a_wrong_url_of_a_server_is_refused_without_its_password(url):
    with pytest.raises(InvalidInput, match=r"\[mail\] smtp_url") as refused:
        SmtpMail(url, SENDER)
    assert "s3cret" not in refused.value.message


def test_a_server_that_is_away_is_told_without_its_password(caplog):
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = f"127.0.0.1:{closed.getsockname()[1]}"
    receipt = SmtpMail(f"smtp://me:s3cret@{place}", SENDER).send("a@b.example", MESSAGE)
    assert receipt.reception is Reception.FAILED
    assert "s3cret" not in f"{receipt}{caplog.text}"


class Keystone:
    """A session whose Keystone answers with users, or with an error."""

    def __init__(self, answer: object) -> None:
        self.answer, self.asked = answer, []

    def get_endpoint(self, **_: object) -> str:
        return "https://keystone.example/v3"

    def get(self, path: str, **more: object) -> SimpleNamespace:
        self.asked.append(f"{more['endpoint_override']}{path}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(json=lambda: self.answer)


def test_keystone_is_asked_for_an_address_once_in_an_hour():
    now = [0.0]
    keystone = Keystone({"user": {"email": "curie@physics.example"}})
    people = KeystonePeople(keystone, clock=lambda: now[0])
    assert [people.find_address("curie") for _ in range(3)] == ["curie@physics.example"] * 3
    assert keystone.asked == ["https://keystone.example/v3/users/curie"]
    now[0] = 3601.0
    people.find_address("curie")
    assert len(keystone.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {"user": {}},
        {"user": {"email": None}},
        {"user": {"email": ""}},
        {"user": {"email": "a@b.example, c@d.example"}},
        {"user": {"email": "a@b.example\r\nBcc: c@d.example"}},
        *({"user": {"email": text}} for text in ("a..b@c.example", ".a@b.example", "a@b..example", "a@b.example.")),
        *({"user": {"email": text}} for text in ("ü@b.example", "a@ü.example", "a[b@c.example", "a\x01@b.example")),
        ksa.NotFound(),
    ],
)
def test_who_has_no_address_gets_no_mail(answer):
    assert KeystonePeople(Keystone(answer)).find_address("curie") is None


def test_an_id_that_is_none_is_not_asked_for():
    keystone = Keystone({"user": {"email": "a@b.example"}})
    assert KeystonePeople(keystone).find_address("../users") is None
    assert keystone.asked == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [(ksa.Forbidden(), CloudRefused), (ksa.ConnectFailure(), CloudUnavailable), ({"users": []}, CloudUnavailable)],
)
def test_a_keystone_that_does_not_say_is_asked_again(answer, error):
    keystone = Keystone(answer)
    people = KeystonePeople(keystone)
    for _ in range(2):
        with pytest.raises(error):
            people.find_address("curie")
    assert len(keystone.asked) == 2
