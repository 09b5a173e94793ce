# SPDX-License-Identifier: Apache-2.0
"""What an application keeps for its routes of leases: caches of leases rendered as JSON, and the requests that wait.

The id and the revision of a lease determine its JSON. A list of thousands of leases of which a few have changed since
the last list takes milliseconds: one statement reads the revisions, and only new or changed leases are read and
rendered.

Requests wait until an immediate lease is handed over or refused: few, as each holds a thread of the API. They hold no
thread of a manager: each look is a call of its own, and one statement. The limit itself is kept by the managers, so
that a lease is also decided if nobody waits any more.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from blazar.model.base.clock import monotonic
from blazar.model.base.errors import ManagerUnavailable, StoreUnavailable, TooManyRequests
from blazar.model.leases.details import ImmediateVerdict
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseKind
from blazar.rpc.interface import Manager

MOST_BYTES = 128 * 1024 * 1024
"""Room for about 80 000 leases of typically 1.5 KB."""

MOST_BY_ID = 500
"""If more leases than this are missing from the cache, the whole list is read instead."""

_OVERHEAD = 300
"""Approximate overhead of a cached lease in bytes."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
"""One shared encoder: ``json.dumps`` creates a new one at every call."""


@dataclass(frozen=True, slots=True)
class _Kept:
    revision: int
    project_id: str
    text: bytes

    @property
    def size(self) -> int:
        return len(self.text) + _OVERHEAD


class RenderedLeases:
    """A thread-safe cache of leases rendered by ``shown``, at most ``most_bytes`` large.

    It drops the leases rendered longest ago first. A deleted lease is dropped by the first list that lacks it.
    """

    def __init__(self, shown: Callable[[Lease], dict[str, Any]], *, most_bytes: int = MOST_BYTES) -> None:
        self._shown = shown
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._of_project: dict[str, set[str]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The approximate size of the cache in bytes."""
        return self._bytes

    def all(self, manager: Manager, project_id: str | None) -> list[bytes]:
        """Return the JSON of a project's leases (None: all leases), oldest first. The caller may modify the list."""
        wanted = manager.leases.revisions(project_id)
        with self._lock:
            found = {w.id: kept.text for w in wanted if (kept := self._kept.get(w.id)) and kept.revision == w.revision}
            known = self._kept.keys() if project_id is None else self._of_project.get(project_id, set())
            if len(known) > len(found):
                for lease_id in known - {w.id for w in wanted}:
                    self._drop(lease_id)
        missing = [w.id for w in wanted if w.id not in found]
        if missing:
            fresh = manager.leases.by_id(missing) if len(missing) <= MOST_BY_ID else manager.leases.all(project_id)
            # One that went to another project since is no lease of this one any more.
            ours = (lease for lease in fresh if project_id in (None, lease.project_id))
            found |= {lease.id: self._keep(lease) for lease in ours if lease.id not in found}
        # A lease that was deleted between the two reads is in neither.
        return [found[w.id] for w in wanted if w.id in found]

    def drop(self, lease_id: str) -> None:
        """Remove a lease from the cache."""
        with self._lock:
            self._drop(lease_id)

    def forget(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept.clear()
            self._of_project.clear()
            self._bytes = 0

    def _drop(self, lease_id: str) -> None:
        if (kept := self._kept.pop(lease_id, None)) is not None:
            self._bytes -= kept.size
            of_project = self._of_project[kept.project_id]
            of_project.discard(lease_id)
            if not of_project:
                del self._of_project[kept.project_id]

    def _keep(self, lease: Lease) -> bytes:
        text = _encode(self._shown(lease)).encode()
        kept = _Kept(lease.revision, lease.project_id, text)
        with self._lock:
            self._drop(lease.id)
            self._kept[lease.id] = kept
            self._of_project.setdefault(lease.project_id, set()).add(lease.id)
            self._bytes += kept.size
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return text


MOST = 8
"""Maximum of waiting requests: half of the threads that an API has by default."""

MOST_OF_PROJECT = 4
"""Maximum of waiting requests of one project."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks: they grow."""

GRACE = 5.0
"""Seconds beyond the limit in which managers refuse a lease, and return what it had."""


def most_of(threads: int) -> int:
    """Return how many requests may wait in an API with so many threads: at most half of them, so that others work."""
    return max(1, min(MOST, threads // 2))


class Waiters:
    """The places for waiting requests, and the wait. TooManyRequests without a place, before anything is booked."""

    def __init__(
        self,
        *,
        most: int = MOST,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most = most
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, project_id: str) -> Iterator[None]:
        """Take a place while the block runs."""
        with self._lock:
            if self._of.total() >= self._most or self._of[project_id] >= MOST_OF_PROJECT:
                raise TooManyRequests(
                    "too many requests wait for immediate leases, and nothing was booked; wait for one of them, and "
                    "try again"
                )
            self._of[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._of[project_id] -= 1
                if not self._of[project_id]:
                    del self._of[project_id]

    def outcome(self, look: Callable[[], ImmediateVerdict], limit: timedelta) -> ImmediateVerdict:
        """Look until a lease is handed over, or refused and gone, a little longer than the limit; return the last."""
        end, pause, found = self._clock() + limit.total_seconds() + GRACE, FIRST_PAUSE, ImmediateVerdict.WAITING
        while True:
            with suppress(ManagerUnavailable, StoreUnavailable):
                found = look()
            if found in (ImmediateVerdict.GRANTED, ImmediateVerdict.GONE) or self._clock() >= end:
                return found
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class LeaseServices:
    """What an application keeps for leases: caches of ``rendered`` leases by format, and requests that wait.

    ``default_kind`` is the kind of a lease whose request names none.
    """

    rendered: Mapping[str, RenderedLeases]
    waiters: Waiters = field(default_factory=Waiters)
    default_kind: LeaseKind = LeaseKind.SCHEDULED
