# SPDX-License-Identifier: Apache-2.0
"""One round of messages to one receiver, in the order of what has happened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.context import check_change
from blazar.model.base.clock import Clock
from blazar.model.subscriptions.messages import Message
from blazar.model.subscriptions.rounds import Round, Undelivered

ROUND_SECONDS = 30.0
"""After so long a round ends, and others have their turn."""


class Sending:
    """Sends messages by ``send``: ``calls`` of them in ``seconds``, by the clock that always goes on."""

    def __init__(self, send: Callable[[Message], WebhookReceipt], clock: Clock, stopping: threading.Event) -> None:
        self._send_one = send
        self._clock = clock
        self._stopping = stopping
        self.calls = 0
        self.seconds = 0.0

    def send_all(self, messages: Sequence[Message], *, through: int) -> Round:
        """Send messages one after the other; return what has become of them. ClaimLost.

        Nothing about an object is sent after a message about it that was refused, and nothing at all after a failure.
        """
        begun = self._clock.elapsed()
        accepted, held = 0, None
        refused: list[Undelivered] = []
        waiting: set[str] = set()
        for message in messages:
            first = message.entries[0][0]
            if self._stopping.is_set() or self._clock.elapsed() - begun > ROUND_SECONDS:
                return Round(through, accepted, tuple(refused), min(held or first, first))
            if message.objects & waiting:
                held = min(held or first, first)
                waiting |= message.objects
                continue
            receipt = self._send(message)
            match receipt.reception:
                case Reception.ACCEPTED:
                    accepted += 1
                case Reception.REFUSED:
                    waiting |= message.objects
                    refused += (Undelivered(*entry, receipt.reason or "") for entry in message.entries)
                case Reception.GONE:
                    return Round(through, accepted, tuple(refused), held, first, receipt.reason, gone=True)
                case Reception.FAILED:
                    return Round(through, accepted, tuple(refused), held, first, receipt.reason, receipt.after)
        return Round(through, accepted, tuple(refused), held)

    def _send(self, message: Message) -> WebhookReceipt:
        # Who may have lost the claim sends nothing: another manager may have gone on by now.
        check_change()
        begun = self._clock.elapsed()
        receipt = self._send_one(message)
        self.calls += 1
        self.seconds += self._clock.elapsed() - begun
        return receipt
