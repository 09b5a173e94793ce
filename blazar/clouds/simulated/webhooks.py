# SPDX-License-Identifier: Apache-2.0
"""The simulated web hooks: they keep what they are sent, and answer as they are told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from urllib.parse import urlsplit

from blazar.clouds.ports.webhooks import Reception, SendWebhook, WebhookMessage, WebhookReceipt
from blazar.model.base.errors import InvalidInput

Answering = Callable[[WebhookMessage], WebhookReceipt]
"""Returns what a receiver makes of a message; an exception is a bug of the adapter."""


def accept(message: WebhookMessage) -> WebhookReceipt:
    """Accept whatever comes."""
    return WebhookReceipt(Reception.ACCEPTED)


class SimulatedWebhooks:
    """Implements the port of web hooks in memory: ``sent`` are all calls, ``accepted`` those that were accepted.

    ``answers`` has the receivers that do something else than to accept, by their URL.
    """

    enabled = True

    def __init__(self) -> None:
        self.sent: list[WebhookMessage] = []
        self.accepted: list[WebhookMessage] = []
        self.answers: dict[str, Answering] = {}
        self._lock = threading.Lock()

    def check_target(self, url: str, *, trusted: bool) -> None:
        """Refuse what is no HTTPS URL; every host is allowed, but for members none of this machine."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise InvalidInput("url cannot be used: give an https:// URL", at="/url")
        if not trusted and parts.hostname in ("localhost", "127.0.0.1"):
            raise InvalidInput("url: it is an address of this machine", at="/url")

    def reveal_secret(self, subscription_id: str, generation: int) -> str:
        """Return a text that is another for each subscription and generation, and nothing secret."""
        return f"whsec_{subscription_id}.{generation}"

    def send(self, message: WebhookMessage) -> WebhookReceipt:
        """Let the receiver of the URL answer."""
        with self._lock:
            self.sent.append(message)
        receipt = self.answers.get(message.url, accept)(message)
        if receipt.reception is Reception.ACCEPTED:
            with self._lock:
                self.accepted.append(message)
        return receipt

    def keep_connection(self) -> AbstractContextManager[SendWebhook]:
        """Return what sends messages."""
        return nullcontext(self.send)
