"""Who works on what: this process's name on its claims, and the heartbeat that keeps them."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from datetime import datetime, timedelta

from blazar.model.clock import Clock
from blazar.store.store import Store


class Claims:
    """The claims of one manager process.

    A claim lasts ``ttl``; ``beat`` renews all of them at once and has to be called several times within that.
    """

    def __init__(self, store: Store, clock: Clock, ttl: timedelta) -> None:
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.ttl = ttl
        self._store = store
        self._clock = clock
        self._held = 0
        self._lock = threading.Lock()

    def until(self, now: datetime) -> datetime:
        """Return when a claim made now expires unless it is renewed."""
        return now + self.ttl

    def __enter__(self) -> Claims:
        with self._lock:
            self._held += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._held -= 1

    def beat(self) -> None:
        """Renew every claim of this process; costs nothing while there is none."""
        if self._held:
            now = self._clock.now()
            self._store.extend_claims(self.owner, until=self.until(now))
