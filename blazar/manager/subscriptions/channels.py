# SPDX-License-Identifier: Apache-2.0
"""The ways by which receivers are told: web hooks and mail. What is told in a round goes by one connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blazar.clouds.ports.people import NO_ADDRESS
from blazar.clouds.ports.webhooks import Reception, WebhookMessage, WebhookReceipt
from blazar.manager.common.runtime import Runtime
from blazar.manager.subscriptions.sending import SendMessage
from blazar.model.journal.entries import NumberedEntry
from blazar.model.subscriptions.details import Channel, Subscription
from blazar.model.subscriptions.messages import Message, make_messages


class Channels:
    """Makes messages, and sends them by the channel of their subscription."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def enabled(self) -> bool:
        """Whether anything can be sent: there is a master secret to sign with, or a mail server."""
        return bool(self._runtime.channels)

    def make_messages(self, found: Subscription, entries: Sequence[NumberedEntry]) -> Sequence[Message] | None:
        """Return the messages about entries: by mail one about all of them, None if there is no address for it."""
        if found.channel is not Channel.MAIL:
            source = self._runtime.settings.event_source
            return make_messages(entries, source=source, trusted=found.trusted, batch=found.batch)
        if not entries:
            return []
        address = self._runtime.people.find_address(found.user_id)
        if address is None:
            return None
        # Imported with the first mail: what writes calendars and templates is large.
        from blazar.manager.subscriptions.mails import make_mail

        now = self._runtime.clock.now()
        mail = self._runtime.mail
        link = mail.reveal_link(found.id)
        return [make_mail(entries, found, sender=mail.sender, recipient=address, at=now, link=link)]

    @contextmanager
    def open(self, found: Subscription) -> Iterator[SendMessage]:
        """Return what sends the messages of a subscription."""
        if found.url is None:
            yield lambda message: self._send_mail(found, message)
            return
        with self._runtime.webhooks.keep_connection() as send:
            yield lambda message: send(self._call(found, message))

    def _send_mail(self, found: Subscription, message: Message) -> WebhookReceipt:
        address = self._runtime.people.find_address(found.user_id)
        if address is None:
            return WebhookReceipt(Reception.FAILED, NO_ADDRESS)
        return self._runtime.mail.send(address, message.body)

    def _call(self, found: Subscription, message: Message) -> WebhookMessage:
        return WebhookMessage(
            url=found.url or "",
            trusted=found.trusted,
            subscription_id=found.id,
            generations=found.generations(self._runtime.clock.now()),
            message_id=message.id,
            content_type=message.content_type,
            body=message.body,
        )
