# SPDX-License-Identifier: Apache-2.0
"""Who works on what: claims, each with a token of its own, and the heartbeat that renews those that are held.

A claim is written to its event with an end, by the clock that all managers share. Its holder knows when that is by a
clock of its own that also counts while the process stands still (``Clock.elapsed``), and reckons from the moment before
the write: so it never believes in a claim for longer than others respect it. Whoever holds a claim that is about to
end changes nothing in the cloud (``clouds.scope.check_change``).
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
from blazar.model.clock import Clock
from blazar.model.errors import BlazarError
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

BEATS = 4
"""Renewals within the time that a claim lasts."""


class Claim:
    """The right to work on one event, until it ends. Only ``Claims`` makes and renews these."""

    __slots__ = ("_clock", "_deadline", "longest_call", "token")

    def __init__(self, token: str, clock: Clock, ttl: timedelta) -> None:
        self.token = token
        self.longest_call = ttl.total_seconds() / 2
        self._clock = clock
        self._deadline = clock.elapsed() + ttl.total_seconds()

    def remaining(self) -> float:
        """Return for how many seconds nobody else takes the event over; 0 or less when that is over."""
        return self._deadline - self._clock.elapsed()

    def ends_at(self, deadline: float) -> None:
        """Set the end, in seconds of ``Clock.elapsed``."""
        self._deadline = deadline


class Claims:
    """The claims of one manager process.

    A claim lasts ``ttl``; ``beat`` renews those that are held and still valid, and has to be called several times
    within that.
    """

    def __init__(self, store: Store, clock: Clock, ttl: timedelta) -> None:
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.ttl = ttl
        self._store = store
        self._clock = clock
        self._held: dict[str, Claim] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def new(self) -> Claim:
        """Return a claim that is not written yet; it counts from now on, so that it has to be written soon."""
        return Claim(f"{self.owner}:{uuid.uuid4().hex[:12]}", self._clock, self.ttl)

    def begin(self, claim: Claim) -> datetime:
        """Let a claim that is about to be written count from now on; return the end to write."""
        claim.ends_at(self._clock.elapsed() + self.ttl.total_seconds())
        return self._clock.now() + self.ttl

    @contextmanager
    def held(self, claim: Claim) -> Iterator[Claim]:
        """Keep a written claim alive while the block runs; what the block changes in the cloud, it does under it."""
        with self._lock:
            self._held[claim.token] = claim
        try:
            with scope(fence=claim):
                yield claim
        finally:
            with self._lock:
                self._held.pop(claim.token, None)

    def beat(self) -> None:
        """Renew the claims that are held and have not ended; costs nothing while there are none. StoreUnavailable."""
        with self._lock:
            held = {token: claim for token, claim in self._held.items() if claim.remaining() > 0}
        if not held:
            return
        deadline = self._clock.elapsed() + self.ttl.total_seconds()
        now = self._clock.now()
        renewed = self._store.renew_claims(held.keys(), now=now, until=now + self.ttl)
        for token, claim in held.items():
            if token in renewed:
                # Else the database took so long that others may have read the claim as ended before it was renewed.
                if claim.remaining() > 0:
                    claim.ends_at(deadline)
            else:
                # Settled a moment ago, or lost: in neither case is there anything left to do under it.
                claim.ends_at(float("-inf"))

    def start(self) -> None:
        """Begin to renew claims, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to renew. Whatever works under a claim has to be stopped before."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self.ttl.total_seconds() / BEATS):
            try:
                self._clock.synchronize()
                self.beat()
            except BlazarError as error:
                LOG.error("Claims could not be renewed: %s", error.message)
            except Exception:
                # The border of the thread: without a heartbeat no work is ever finished here again.
                LOG.exception("Claims could not be renewed; the next heartbeat tries again")
