# SPDX-License-Identifier: Apache-2.0
"""Refuses calls at once to a service that does not answer, so that waiting for it does not use up our threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from blazar.clouds.openstack.bulkhead import Bulkhead, has_idle_threads
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudUnavailable
from blazar.observe import metrics

LOG = logging.getLogger(__name__)

FAILURES = 3
"""Calls in a row that were waited for in vain, after which no more are made for a while."""

PAUSE = 5.0
"""Seconds until the next call is made, to see whether the service is back."""

WAITING = 8
"""Calls that may wait at a time for a service that has been silent for longer than its ``patience``.

More may while at least half of the threads that make them are idle: it may be slow."""

PATIENCE = 5.0


class BreakerCall:
    """A call in progress."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.is_answered = False

    def note_answer(self) -> None:
        """Note that the service has answered, whatever it says."""
        self.is_answered = True


class Breaker:
    """What is known of one service of one region: whether it answers. The calls for all projects share one.

    After ``FAILURES`` calls in a row that got no answer within ``patience`` seconds, calls are refused; every ``PAUSE``
    seconds one is let through, and an answer ends that. What fails at once, as a connection that is refused, costs no
    thread and does not count. ``bulkhead`` bounds the calls in progress at any time.
    """

    def __init__(
        self,
        name: str,
        *,
        patience: float = PATIENCE,
        bulkhead: Bulkhead | None = None,
        clock: Callable[[], float] = monotonic,
        region: str = "",
    ) -> None:
        self._name = name
        self.region = region
        self._labels = name.partition(" ")[0].lower(), region
        metrics.CLOUD_BREAKER_OPEN.set(0, *self._labels)
        self._bulkhead = bulkhead or Bulkhead(name)
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting = 0
        self._failures = 0
        self._silent_since = 0.0
        self._ask_at: float | None = None
        """When to ask a service again that does not answer; None while it does."""

    @contextmanager
    def call(self) -> Iterator[BreakerCall]:
        """Make a call within this, and note its answer. CloudUnavailable, and no call, if it would wait in vain."""
        with self._bulkhead.admit_call():
            call = BreakerCall(self._enter())
            try:
                yield call
            finally:
                if call.is_answered:
                    self._bulkhead.note_answer()
                self._leave(call)

    def _enter(self) -> float:
        with self._lock:
            now = self._clock()
            silent = now - self._silent_since
            if self._ask_at is not None:
                if now < self._ask_at:
                    raise CloudUnavailable(f"{self._name} has not answered for {silent:.0f} s; it is asked again soon")
                # This one looks whether it is back; until it knows, others are refused.
                self._ask_at = now + PAUSE
            elif self._waiting >= WAITING and silent > self._patience and not has_idle_threads():
                raise CloudUnavailable(
                    f"{self._name} has not answered for {silent:.0f} s, and {self._waiting} calls wait"
                )
            elif not self._waiting and not self._failures:
                self._silent_since = now
            self._waiting += 1
            return now

    def _leave(self, call: BreakerCall) -> None:
        with self._lock:
            now = self._clock()
            self._waiting -= 1
            if call.is_answered:
                if self._ask_at is not None:
                    LOG.info("%s answers again", self._name)
                    metrics.CLOUD_BREAKER_OPEN.set(0, *self._labels)
                self._silent_since, self._failures, self._ask_at = now, 0, None
            elif now - call.began >= self._patience:
                self._failures += 1
                if self._failures >= FAILURES:
                    if self._ask_at is None:
                        LOG.warning("%s does not answer; from now on it is asked every %.0f s", self._name, PAUSE)
                        metrics.CLOUD_BREAKER_OPEN.set(1, *self._labels)
                    self._ask_at = now + PAUSE
