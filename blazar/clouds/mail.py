# SPDX-License-Identifier: Apache-2.0
"""Mail by SMTP, to one recipient at a time, over TLS unless the server is on this machine."""

from __future__ import annotations

import hmac
import re
import smtplib
import socket
import ssl
import time
from contextlib import closing, suppress
from email.utils import parseaddr
from urllib.parse import parse_qs, unquote, urlsplit

from oslo_config import cfg

from blazar.clouds.outgoing import signing
from blazar.clouds.outgoing.deadlines import shut_down_at
from blazar.clouds.outgoing.posting import connect_first, resolve_host
from blazar.clouds.ports.people import NO_MAIL
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.model.base.errors import InvalidInput

SECTION = "mail"

SECONDS = 30.0
"""The time limit of a conversation with the server, of all its steps together."""

PORTS = {"smtp": 587, "smtps": 465}

_STATUS = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}")

_EXAMPLE = "smtp://user:password@mail.example:587?starttls=require"

DEFAULTS = (
    *("lease.before_end", "lease.promised", "lease.failed", "lease.moved", "lease.maintenance"),
    *("lease.unused_warning", "lease.released", "lease.offered", "lease.reminded", "subscription.disabled"),
)

MAIL_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "smtp_url",
        secret=True,
        help=f"The server that mail is given to, such as {_EXAMPLE}, or smtps://mail.example for TLS from the start. "
        "Without starttls=require a server that offers no TLS is refused, too, unless it is on this machine or "
        "starttls=never is given. Without it no mail is sent, and nobody can subscribe with it.",
    ),
    cfg.StrOpt("from", default="blazar@localhost", help="The address that mail comes from."),
    cfg.ListOpt(
        "defaults",
        default=list(DEFAULTS),
        help="What users are told by mail of their own leases unless they have said what else they want, by blazar "
        "subscription mine; an empty list for nothing. Users of whom Keystone has no address get no mail.",
    ),
    cfg.StrOpt(
        "service_url",
        help="Where users reach this service, such as https://cloud.example/reservation: links in mails begin with it. "
        "Without it, or without master_secret, mails have no link that ends them without a login.",
    ),
    cfg.StrOpt(
        "master_secret",
        secret=True,
        help="From it the secret of each such link is derived. Make one by: openssl rand -base64 32. The same for all "
        "managers. With another one, the links in mails that were sent work no more.",
    ),
    cfg.IntOpt(
        "pause",
        default=180,
        min=1,
        max=3600,
        help="Seconds from a mail of a subscription to its next one at least: what happens in between is told in one "
        "mail. So with 180 a subscription sends 20 mails in an hour at most.",
    ),
]


class SmtpMail:
    """Gives mail to a server, in a conversation for each, which has its time however slowly the server answers."""

    def __init__(
        self, url: str | None, sender: str, *, cafile: str | None = None, service_url: str = "", master: str = ""
    ) -> None:
        self.sender = sender
        self._service_url, self._master = service_url.rstrip("/"), master
        if master:
            signing.check_master_lengths([master], SECTION)
        if service_url and urlsplit(service_url).scheme not in ("http", "https"):
            raise InvalidInput(f"[{SECTION}] service_url is no URL; write it as https://cloud.example/reservation")
        self._cafile = cafile
        self._tls, self._host, self._port, self._user, self._password, self._starttls = _parse_url(url)
        if "@" not in parseaddr(sender)[1]:
            raise InvalidInput(
                f"[{SECTION}] from is {sender[:80]!r}, which is no address; give one such as a@b.example"
            )

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> SmtpMail:
        """Return the adapter as configured; InvalidInput names the option."""
        options = conf[SECTION]
        return cls(
            options.smtp_url,
            options["from"],
            cafile=conf.cafile,
            service_url=options.service_url or "",
            master=options.master_secret or "",
        )

    @property
    def enabled(self) -> bool:
        """Whether there is a server."""
        return bool(self._host)

    def send(self, address: str, message: bytes) -> WebhookReceipt:
        """Send a message; an address that the server refuses for good is gone, and the rest is tried again."""
        if not self._host:
            return WebhookReceipt(Reception.FAILED, NO_MAIL)
        try:
            self._converse(address, message)
        except smtplib.SMTPRecipientsRefused as error:
            code, text = next(iter(error.recipients.values()), (450, b""))
            reception = Reception.GONE if _is_unknown(code, text) else Reception.FAILED
            return WebhookReceipt(reception, f"the mail server does not take this recipient ({code})")
        except smtplib.SMTPResponseException as error:
            # Of the server, or of its configuration: others' mail would fail, too.
            return WebhookReceipt(Reception.FAILED, f"the mail server refuses the message ({error.smtp_code})")
        except smtplib.SMTPServerDisconnected:
            sentence = "the mail server closed the connection, or did not answer in time"
            return WebhookReceipt(Reception.FAILED, sentence)
        except ssl.SSLError:
            return WebhookReceipt(Reception.FAILED, "the mail server has a certificate that cannot be trusted")
        except TimeoutError:
            return WebhookReceipt(Reception.FAILED, "the mail server did not answer in time")
        except (OSError, smtplib.SMTPException, ValueError):
            return WebhookReceipt(Reception.FAILED, "the mail server cannot be used, or offers no TLS")
        return WebhookReceipt(Reception.ACCEPTED)

    def reveal_link(self, subscription_id: str) -> str | None:
        """Return the link that ends the mail of a subscription; None if the options for it are not set."""
        if not self._service_url or not self._master:
            return None
        secret = signing.derive_unsubscribe_secret(self._master, subscription_id)
        return f"{self._service_url}/unsubscribe/{subscription_id}/{secret}"

    def is_secret_of(self, subscription_id: str, secret: str) -> bool:
        """Return whether a secret is that of the link of a subscription."""
        if not self._master:
            return False
        wanted = signing.derive_unsubscribe_secret(self._master, subscription_id)
        return hmac.compare_digest(secret.encode(), wanted.encode())

    def _converse(self, address: str, message: bytes) -> None:
        """Connect, say who sends what to whom, and leave; TimeoutError, OSError, among them those of SMTP."""
        deadline = time.monotonic() + SECONDS
        wire = connect_first(resolve_host(self._host, self._port, deadline), deadline)
        # Another handle: TLS takes over the one that it wraps.
        with wire.dup() as handle, shut_down_at(handle, deadline), closing(wire):
            # The deadline cuts the connection before that.
            wire.settimeout(SECONDS)
            with closing(self._greet(wire)) as server:
                server.sendmail(parseaddr(self.sender)[1], [address], message)
                # It has taken the message: what it says to the farewell changes nothing.
                with suppress(OSError):
                    server.quit()

    def _greet(self, wire: socket.socket) -> smtplib.SMTP:
        context = ssl.create_default_context(cafile=self._cafile)
        if self._tls:
            wire = context.wrap_socket(wire, server_hostname=self._host)
        server = _Conversation(wire, self._host, self._port)
        try:
            if self._starttls:
                server.starttls(context=context)
            if self._user:
                server.login(self._user, self._password)
        except BaseException:
            server.close()
            raise
        return server


class _Conversation(smtplib.SMTP):
    """A conversation by a connection that is there already."""

    def __init__(self, wire: socket.socket, host: str, port: int) -> None:
        self._wire = wire
        super().__init__(host, port)

    def _get_socket(self, *_: object) -> socket.socket:
        """Return the connection, where one would be made."""
        return self._wire


def _is_unknown(code: int, text: bytes) -> bool:
    """Return whether a server refused an address since there is none, or not any more.

    A full mailbox, a relay that is not allowed, and a blocked sender are others' faults, and are mended: a server that
    says more than a number says so in its status (RFC 3463).
    """
    if status := _STATUS.match(text):
        return status[0].startswith(b"5.1.") or status[0] == b"5.2.1"
    return code in (550, 551, 553)


def _parse_url(url: str | None) -> tuple[bool, str, int, str, str, bool]:
    """Return whether TLS is there from the start, host, port, user, password, and whether TLS has to be asked for."""
    if not url:
        return False, "", 0, "", "", False
    # The URL itself is not shown: there may be a password in it.
    refusal = InvalidInput(f"[{SECTION}] smtp_url cannot be used; write it as {_EXAMPLE}")
    try:
        parts = urlsplit(url)
        port, query = parts.port, parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise refusal from None
    wanted = query.pop("starttls", ["require"])[0]
    if parts.scheme not in PORTS or not parts.hostname or query or wanted not in ("require", "never"):
        raise refusal
    secure = parts.scheme == "smtps"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    local = parts.hostname in ("localhost", "127.0.0.1", "::1") and "starttls" not in parts.query
    starttls = not secure and wanted == "require" and not local
    if user and not secure and not starttls and not local:
        raise InvalidInput(
            f"[{SECTION}] smtp_url has a password, which would be sent unencrypted; remove starttls=never"
        )
    return secure, parts.hostname, port or PORTS[parts.scheme], user, password, starttls
