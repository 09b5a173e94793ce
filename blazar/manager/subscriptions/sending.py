# SPDX-License-Identifier: Apache-2.0
"""One round of messages to one receiver, those about one object in the order of what has happened."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.context import check_change
from blazar.model.base.clock import Clock
from blazar.model.base.values import dataclass, field
from blazar.model.subscriptions.messages import Message
from blazar.model.subscriptions.rounds import Round, Undelivered

ROUND_SECONDS = 30.0
"""After so long a round ends, and others have their turn."""

MANY = 20
"""Messages from which on a receiver that does well is sent several at a time."""

LANES = 4
"""Messages that are sent to one receiver at a time, each about another object than the others."""

SendMessage = Callable[[Message], WebhookReceipt]


@dataclass(slots=True)
class MessageLane:
    """Messages that are sent one after the other, and what has become of them."""

    messages: Sequence[Message]
    accepted: int = 0
    refused: list[Undelivered] = field(default_factory=list)
    held: int | None = None
    failed: int | None = None
    receipt: WebhookReceipt | None = None
    calls: int = 0
    seconds: float = 0.0

    def hold(self, position: int) -> None:
        """Note that nothing was sent from a place on, or about an object whose turn it is not yet."""
        self.held = min(self.held or position, position)


class Sending:
    """Sends messages: ``calls`` of them in ``seconds``, by the clock that always goes on.

    ``open_line`` returns what sends them one after the other.
    """

    def __init__(
        self, open_line: Callable[[], AbstractContextManager[SendMessage]], clock: Clock, stopping: threading.Event
    ) -> None:
        self._open_line = open_line
        self._clock = clock
        self._stopping = stopping
        self._failed = threading.Event()
        self._begun = clock.elapsed()
        self.calls = 0
        self.seconds = 0.0

    def send_all(self, messages: Sequence[Message], *, through: int, several: bool = False) -> Round:
        """Send messages in their order, ``several`` at a time; return what has become of them. ClaimLost.

        Nothing about an object is sent after a message about it that was refused, and nothing at all after a failure.
        """
        lanes = share_messages(messages, LANES if several else 1)
        if len(lanes) == 1:
            self._send_lane(lanes[0])
        elif lanes:
            with ThreadPoolExecutor(len(lanes), thread_name_prefix="lane") as pool:
                # The threads know the claim of this one.
                futures = [pool.submit(copy_context().run, self._send_lane, lane) for lane in lanes]
            for future in futures:
                future.result()
        self.calls = sum(lane.calls for lane in lanes)
        self.seconds = sum(lane.seconds for lane in lanes)
        return merge_lanes(lanes, through=through)

    def _send_lane(self, lane: MessageLane) -> None:
        waiting: set[str] = set()
        with self._open_line() as send:
            for message in lane.messages:
                first = message.entries[0][0]
                late = self._clock.elapsed() - self._begun > ROUND_SECONDS
                if late or self._stopping.is_set() or self._failed.is_set():
                    lane.hold(first)
                    return
                if message.objects & waiting:
                    lane.hold(first)
                    waiting |= message.objects
                    continue
                receipt = self._send(lane, send, message)
                match receipt.reception:
                    case Reception.ACCEPTED:
                        lane.accepted += 1
                    case Reception.REFUSED:
                        waiting |= message.objects
                        lane.refused += (Undelivered(*entry, receipt.reason or "") for entry in message.entries)
                    case Reception.GONE | Reception.FAILED:
                        lane.failed, lane.receipt = first, receipt
                        self._failed.set()
                        return

    def _send(self, lane: MessageLane, send: SendMessage, message: Message) -> WebhookReceipt:
        # Who may have lost the claim sends nothing: another manager may have gone on by now.
        check_change()
        begun = self._clock.elapsed()
        receipt = send(message)
        lane.calls += 1
        lane.seconds += self._clock.elapsed() - begun
        return receipt


def share_messages(messages: Sequence[Message], lanes: int) -> list[MessageLane]:
    """Share messages out to some lanes, each with all about its objects; to one if there are few, or some are lists."""
    if lanes == 1 or len(messages) < MANY or any(len(message.objects) > 1 for message in messages):
        return [MessageLane(messages)] if messages else []
    places: dict[frozenset[str], int] = {}
    shared: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        shared[places.setdefault(message.objects, len(places) % lanes)].append(message)
    return [MessageLane(found) for found in shared.values()]


def merge_lanes(lanes: Sequence[MessageLane], *, through: int) -> Round:
    """Return what has become of the messages of all lanes."""
    held = [lane.held for lane in lanes if lane.held is not None]
    failed = sorted((lane.failed, number) for number, lane in enumerate(lanes) if lane.failed is not None)
    receipt = lanes[failed[0][1]].receipt if failed else None
    return Round(
        through,
        accepted=sum(lane.accepted for lane in lanes),
        refused=tuple(sorted((message for lane in lanes for message in lane.refused), key=lambda one: one.position)),
        held=min(held, default=None),
        failed=failed[0][0] if failed else None,
        failure=None if receipt is None else receipt.reason,
        after=None if receipt is None else receipt.after,
        gone=any(lane.receipt is not None and lane.receipt.reception is Reception.GONE for lane in lanes),
    )
