# SPDX-License-Identifier: Apache-2.0
"""The port of web hooks: signed messages to the receivers of subscriptions, which tell what has happened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass

NOT_SET = "this service sends no web hooks: [webhooks] master_secrets is not set in blazar.conf; ask its operators"


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """One call. ``message_id`` and ``body`` are the same at every attempt.

    It is signed with the secrets of the subscription of these ``generations``. ``trusted``: an operator has named the
    URL, and not a member.
    """

    url: str
    trusted: bool
    subscription_id: str
    generations: tuple[int, ...]
    message_id: str
    content_type: str
    body: bytes


class Reception(StrEnum):
    """What has become of a call."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    """It may be accepted later."""
    REFUSED = "refused"
    """A living receiver would refuse it again."""
    GONE = "gone"
    """The receiver wants no message any more."""


@dataclass(frozen=True, slots=True)
class WebhookReceipt:
    """The result of a call: why it was not accepted, and after what time the receiver asks to be called again."""

    reception: Reception
    reason: str | None = None
    after: timedelta | None = None


SendWebhook = Callable[[WebhookMessage], WebhookReceipt]


class Webhooks(Protocol):
    """The calls of web hooks."""

    @property
    def enabled(self) -> bool:
        """Whether there is a master secret to sign with; without one nothing is called."""

    def check_target(self, url: str, *, trusted: bool) -> None:
        """Raise InvalidInput, with the reason, if no message would be sent to this URL."""

    def reveal_secret(self, subscription_id: str, generation: int) -> str:
        """Return a secret as its receiver is given it; InvalidInput if there is none."""

    def send(self, message: WebhookMessage) -> WebhookReceipt:
        """Send a message within 15 seconds, whatever the receiver does. No errors of its own."""

    def keep_connection(self) -> AbstractContextManager[SendWebhook]:
        """Return what sends messages as ``send`` does, if it can by one connection; of one thread."""


class NoWebhooks:
    """The web hooks of a process that sends none."""

    enabled = False

    def check_target(self, url: str, *, trusted: bool) -> None:
        """Raise InvalidInput."""
        raise InvalidInput(NOT_SET, at="/url")

    def reveal_secret(self, subscription_id: str, generation: int) -> str:
        """Raise InvalidInput."""
        raise InvalidInput(NOT_SET)

    def send(self, message: WebhookMessage) -> WebhookReceipt:
        """Send nothing: it may be delivered once there is a master secret."""
        return WebhookReceipt(Reception.FAILED, NOT_SET)

    def keep_connection(self) -> AbstractContextManager[SendWebhook]:
        """Return what sends nothing."""
        return nullcontext(self.send)
