# SPDX-License-Identifier: Apache-2.0
"""What an application keeps for its routes of leases: caches of leases rendered as JSON, and the requests that wait.

The id and the revision of a lease determine its JSON. A list of thousands of leases of which a few have changed since
the last list takes milliseconds: one statement reads the revisions, and only new or changed leases are read and
rendered. A longer list goes through memory some hundred leases at a time.

Requests wait until an immediate lease is handed over or refused: few, as each holds a thread of the API. They hold no
thread of a manager: each look is a call of its own, and one statement. The limit itself is kept by the managers, so
that a lease is also decided if nobody waits any more.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import islice
from typing import Protocol

from blazar.api.leases.shown_pages import ShownPages
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import ManagerUnavailable, StoreUnavailable, TooManyRequests
from blazar.model.base.values import dataclass, field
from blazar.model.leases.details import ImmediateVerdict, LeaseRows, LeaseText
from blazar.model.leases.lease import LeaseRevision
from blazar.model.leases.requests import LeaseDefaults
from blazar.rpc.interface import Manager

MOST_BYTES = 24 * 1024 * 1024
"""Room for about 13 000 leases of typically 1.5 KB."""

READ_AT_ONCE = 500
"""Leases that are read by one call."""

SENT_AT_ONCE = 2000
"""Leases of a list that are in memory beside the cache."""

_OVERHEAD = 400
"""Approximate overhead of a cached lease in bytes."""


class RowWriter(Protocol):
    """Writes leases as JSON."""

    def write(self, rows: LeaseRows) -> Iterable[LeaseText]:
        """Return the leases of rows, in any order."""


def _size(kept: LeaseText) -> int:
    return len(kept.text) + _OVERHEAD


class RenderedLeases:
    """A thread-safe cache of leases as ``writer`` writes them, at most ``most_bytes`` large.

    It drops the leases written longest ago first; of a list that is longer it keeps the first ones, so that the next
    list finds these. A deleted lease is dropped by the first list that lacks it.
    """

    def __init__(self, writer: RowWriter, *, most_bytes: int = MOST_BYTES) -> None:
        self._writer = writer
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, LeaseText] = OrderedDict()
        self._of_project: dict[str, set[str]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The approximate size of the cache in bytes."""
        return self._bytes

    def pieces(self, manager: Manager, project_id: str | None) -> Iterator[list[bytes]]:
        """Yield the JSON of a project's leases (None: all leases), oldest first, some at a time."""
        wanted = manager.leases.revisions(project_id)
        self._drop_others(wanted, project_id)
        room = self._most_bytes
        while wanted:
            part, missing = self._take(wanted)
            wanted = wanted[len(part) :]
            if missing:
                for text in self._read(manager, missing):
                    # One that went to another project since is no lease of this one any more.
                    if project_id in (None, text.project_id):
                        part[text.id] = text
                        if room >= _size(text):
                            self._keep(text)
            room -= sum(_size(text) for text in part.values() if text is not None)
            # A lease that was deleted between the two reads is in neither.
            yield [text.text for text in part.values() if text is not None]

    def _take(self, wanted: Sequence[LeaseRevision]) -> tuple[dict[str, LeaseText | None], list[str]]:
        """Return the next leases of a list, as far as they are known, and the ids of those to be read."""
        part: dict[str, LeaseText | None] = {}
        missing: list[str] = []
        with self._lock:
            for revision in islice(wanted, SENT_AT_ONCE):
                kept = self._kept.get(revision.id)
                part[revision.id] = kept if kept is not None and kept.revision == revision.revision else None
                if part[revision.id] is None:
                    missing.append(revision.id)
                    if len(missing) == READ_AT_ONCE:
                        break
        return part, missing

    def _read(self, manager: Manager, lease_ids: list[str]) -> Iterator[LeaseText]:
        while lease_ids:
            rows = manager.leases.rows(lease_ids)
            yield from self._writer.write(rows)
            lease_ids = lease_ids[rows.read :]

    def _drop_others(self, wanted: Sequence[LeaseRevision], project_id: str | None) -> None:
        """Remove what a list lacks."""
        with self._lock:
            left = set(self._kept if project_id is None else self._of_project.get(project_id, ()))
            if left:
                left.difference_update(revision.id for revision in wanted)
            for lease_id in left:
                self._drop(lease_id)

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
            self._bytes -= _size(kept)
            of_project = self._of_project[kept.project_id]
            of_project.discard(lease_id)
            if not of_project:
                del self._of_project[kept.project_id]

    def _keep(self, text: LeaseText) -> None:
        with self._lock:
            self._drop(text.id)
            self._kept[text.id] = text
            self._of_project.setdefault(text.project_id, set()).add(text.id)
            self._bytes += _size(text)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))


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
    """What an application keeps for leases: caches of ``rendered`` leases by format, pages, and requests that wait.

    ``defaults`` are for what requests leave out.
    """

    rendered: Mapping[str, RenderedLeases]
    waiters: Waiters = field(default_factory=Waiters)
    defaults: LeaseDefaults = LeaseDefaults()
    pages: ShownPages = field(default_factory=ShownPages)
