# SPDX-License-Identifier: Apache-2.0
"""Claims on work, each with its own token and a TTL, and the heartbeat that renews them.

A claim is written to the row of its work with an expiry time, by the clock that all managers share. Its owner measures
the TTL with a clock that also counts while the process is suspended (``Clock.elapsed``), from before the write: so it
never relies on a claim for longer than others respect it. The owner of a claim that is about to expire changes nothing
in the cloud (fencing, ``blazar.context.check_change``).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.background import BackgroundThread, Signal
from blazar.model.base.clock import Clock
from blazar.model.managers.presence import make_token
from blazar.observe import metrics
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

BEATS = 4
"""Renewals within the TTL of a claim."""


class Claim:
    """The right to work on what is due, until it expires. Only ``Claims`` makes and renews claims."""

    __slots__ = ("_clock", "_deadline", "longest_call", "token")

    def __init__(self, token: str, clock: Clock, ttl: timedelta) -> None:
        self.token = token
        self.longest_call = ttl.total_seconds() / 2
        self._clock = clock
        self._deadline = clock.elapsed() + ttl.total_seconds()

    def remaining(self) -> float:
        """Return the seconds until another manager may take the work over; 0 or less if it may already."""
        return self._deadline - self._clock.elapsed()

    def ends_at(self, deadline: float) -> None:
        """Set the expiry, in seconds of ``Clock.elapsed``."""
        self._deadline = deadline


class Claims(BackgroundThread):
    """The claims of one manager process.

    A claim lasts ``ttl``. The thread renews those that are held and have not expired, several times within a ``ttl``,
    and sends ``beaten`` after that. Work under claims must have finished before it is stopped.
    """

    def __init__(self, store: Store, clock: Clock, ttl: timedelta) -> None:
        self._interval = ttl.total_seconds() / BEATS
        super().__init__("heartbeat", work="Claims cannot be renewed", retry=self._interval)
        self.beaten = Signal()
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.ttl = ttl
        self._store = store
        self._clock = clock
        self._held: dict[str, Claim] = {}
        self._lock = threading.Lock()

    def new(self) -> Claim:
        """Return a claim that is not written yet; its TTL runs from now on, so it has to be written soon."""
        return Claim(make_token(self.owner), self._clock, self.ttl)

    def begin(self, claim: Claim) -> datetime:
        """Restart the TTL of a claim that is about to be written; return the expiry time to write."""
        claim.ends_at(self._clock.elapsed() + self.ttl.total_seconds())
        return self._clock.now() + self.ttl

    @contextmanager
    def held(self, claim: Claim) -> Iterator[Claim]:
        """Renew a written claim while the block runs; changes of the cloud in the block are fenced by it."""
        with self._lock:
            self._held[claim.token] = claim
        try:
            with scope(fence=claim):
                yield claim
        finally:
            with self._lock:
                self._held.pop(claim.token, None)
            # One that was taken over, or settled meanwhile, has no end.
            if float("-inf") < claim.remaining() <= 0:
                metrics.CLAIMS.add("expired")

    @property
    def held_number(self) -> int:
        """How many claims are held."""
        return len(self._held)

    def beat(self) -> None:
        """Renew the claims that are held and have not expired; no statement if there are none. StoreUnavailable."""
        with self._lock:
            held = {token: claim for token, claim in self._held.items() if claim.remaining() > 0}
        if not held:
            return
        deadline = self._clock.elapsed() + self.ttl.total_seconds()
        now = self._clock.now()
        renewed = self._store.claims.renew_claims(held.keys(), now=now, until=now + self.ttl)
        for token, claim in held.items():
            if token in renewed:
                # Else the database took so long that others may have read the claim as expired before it was renewed.
                if claim.remaining() > 0:
                    claim.ends_at(deadline)
            else:
                # Settled a moment ago, or taken over: in both cases no work may follow under it.
                claim.ends_at(float("-inf"))

    def drop_all(self) -> None:
        """End the claims of all managers, none of which runs any more."""
        self._store.claims.drop_claims(at=self._clock.now() - timedelta(seconds=1))

    def _round(self) -> float:
        self._clock.synchronize()
        self.beat()
        # The claims first: what else is written may take its time.
        self.beaten()
        return self._interval
