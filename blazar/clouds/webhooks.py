# SPDX-License-Identifier: Apache-2.0
"""Web hooks of subscriptions over HTTPS, signed as Standard Webhooks 1.0.0 describes.

What operators name may be anywhere that the options allow; what members name may be in the internet only, as they
could else have the service call what they cannot reach themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from oslo_config import cfg

from blazar.clouds.hooks.http import read_retry_after
from blazar.clouds.outgoing import signing
from blazar.clouds.outgoing.addresses import Allowed, TargetNames
from blazar.clouds.outgoing.posting import FAILURES, Line, NotAllowed, Poster, Reply, describe_error
from blazar.clouds.ports.webhooks import NOT_SET, Reception, SendWebhook, WebhookMessage, WebhookReceipt
from blazar.model.base.clock import Clock, SystemClock
from blazar.model.base.errors import InvalidInput

SECTION = "webhooks"

SECONDS = 15.0
"""The time limit of a call, from the look-up of the host to the end of the answer."""

PASSING = frozenset({408, 409, 425, 429})
"""Statuses of 4xx that may be another one at the next attempt."""

GONE = 410

WEBHOOK_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "master_secrets",
        default=[],
        secret=True,
        help="Secrets from which the secret of each subscription is derived. Make one by: openssl rand -base64 32. "
        "Messages are signed with all of them: to replace one, put the new one in front, have subscribers set the "
        "secret that they are shown then, and remove the old one. The same for all managers. Without any, no web hook "
        "is sent, and nobody can subscribe with one.",
    ),
    cfg.ListOpt(
        "allowed_hosts",
        default=[],
        help="Names of hosts that web hooks of operators may be at, such as chat.example, or *.example for all below "
        "it. If neither this nor allowed_networks is set, any host but those that allowed_networks explains.",
    ),
    cfg.ListOpt(
        "allowed_networks",
        default=[],
        help="Networks that web hooks of operators may be at, such as 10.20.0.0/16. Addresses of this machine, "
        "link-local, multicast and reserved ones, and those of the metadata services of clouds, are only called if a "
        "network here has them. The address is checked when a connection is made.",
    ),
    cfg.ListOpt(
        "member_networks",
        default=[],
        help="Networks that web hooks of members may be at besides the internet, such as the floating IP addresses of "
        "this cloud. Without any, members can name public addresses only.",
    ),
]


class HttpWebhooks:
    """Sends messages over HTTPS."""

    def __init__(
        self,
        masters: Sequence[str],
        operators: Allowed,
        members: Allowed,
        *,
        cafile: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        signing.check_master_lengths(masters, SECTION)
        self._masters = tuple(masters)
        self._allowed = {True: operators, False: members}
        self._posters = {trusted: Poster(allowed, cafile) for trusted, allowed in self._allowed.items()}
        self._now = now
        self.seconds = SECONDS

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, clock: Clock | None = None) -> HttpWebhooks:
        """Return the adapter as configured; InvalidInput names the option.

        Messages are dated by the clock: receivers refuse those of a machine whose own is off.
        """
        dated = clock or SystemClock()
        options = conf[SECTION]
        named = TargetNames("url", SECTION, plain=None)
        operators = Allowed.of(options.allowed_hosts, options.allowed_networks, http=False, named=named)
        members = Allowed.public_only(options.member_networks, named=replace(named, networks="member_networks"))
        return cls(options.master_secrets, operators, members, cafile=conf.cafile, now=lambda: dated.now().timestamp())

    @property
    def enabled(self) -> bool:
        """Whether there is a master secret."""
        return bool(self._masters)

    def check_target(self, url: str, *, trusted: bool) -> None:
        """Raise InvalidInput, with the reason, if no message would be sent to this URL."""
        if not self._masters:
            raise InvalidInput(NOT_SET, at="/url")
        self._allowed[trusted].check_url(url)

    def reveal_secret(self, subscription_id: str, generation: int) -> str:
        """Return the secret of a generation, by the first master secret; InvalidInput if there is none."""
        if not self._masters:
            raise InvalidInput(NOT_SET)
        secret = signing.derive_subscription_secret(self._masters[0], subscription_id, generation)
        return signing.secret_text(secret)

    def send(self, message: WebhookMessage) -> WebhookReceipt:
        """Send a message by a connection of its own; the deadline holds for all of it."""
        with self.keep_connection() as send:
            return send(message)

    @contextmanager
    def keep_connection(self) -> Iterator[SendWebhook]:
        """Return what sends messages; those to one host by one connection, as long as it is open."""
        lines = {trusted: poster.open_line() for trusted, poster in self._posters.items()}
        with closing(lines[True]), closing(lines[False]):
            yield lambda message: self._send_by(lines[message.trusted], message)

    def _send_by(self, line: Line, message: WebhookMessage) -> WebhookReceipt:
        if not self._masters:
            return WebhookReceipt(Reception.FAILED, NOT_SET)
        try:
            parts = self._allowed[message.trusted].check_url(message.url)
        except InvalidInput as error:
            # The operator has changed the options since.
            return WebhookReceipt(Reception.REFUSED, error.message)
        headers = {"Content-Type": message.content_type, "Accept": "*/*", **self._sign(message)}
        try:
            reply = line.post(parts, headers, message.body, self.seconds)
        except NotAllowed as error:
            # What a name stands for inside of the site is nothing that members should learn.
            hidden = "its host has an address that must not be called"
            return WebhookReceipt(Reception.REFUSED, f"it is not called: {error if message.trusted else hidden}")
        except FAILURES as error:
            return WebhookReceipt(Reception.FAILED, f"it {describe_error(error)}")
        return read_receipt(reply, datetime.fromtimestamp(self._now(), UTC))

    def _sign(self, message: WebhookMessage) -> dict[str, str]:
        secrets = [
            signing.derive_subscription_secret(master, message.subscription_id, generation)
            for master in self._masters
            for generation in message.generations
        ]
        timestamp = int(self._now())
        return dict(signing.sign(secrets, message_id=message.message_id, timestamp=timestamp, body=message.body))


def read_receipt(reply: Reply, now: datetime) -> WebhookReceipt:
    """Return what an answer means. Of what it says only the status is told: it may be another project's text."""
    status = reply.status
    if 200 <= status < 300:
        return WebhookReceipt(Reception.ACCEPTED)
    if status == GONE:
        return WebhookReceipt(Reception.GONE, "it answered 410: it wants no messages any more")
    if 300 <= status < 400:
        return WebhookReceipt(
            Reception.REFUSED, f"it answered {status}, a redirect, which is never followed; correct the URL"
        )
    if 400 <= status < 500 and status not in PASSING:
        return WebhookReceipt(Reception.REFUSED, f"it refuses the message ({status})")
    after: timedelta | None = None
    if reply.retry_after is not None:
        after = read_retry_after(reply.retry_after, now)
    return WebhookReceipt(Reception.FAILED, f"it answered {status}", after)
