# SPDX-License-Identifier: Apache-2.0
"""Read-ahead: reads the data of many due starts at once, so that each of a burst costs half the statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from blazar.manager.common.runtime import Runtime, tasks_of
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType
from blazar.resources.contract.values import Task
from blazar.store.leases.leases import LeaseAtStart
from blazar.store.work.events import DueEvent

FEWEST = 2
"""Minimum number of due starts to read ahead: for fewer it is not worth it."""

MOST = 64
"""Starts waiting for a thread that are read in the same query: it takes as long as for a few."""

FRESH_SECONDS = 1.0
"""How long read-ahead data may be used."""


@dataclass(frozen=True, slots=True)
class ReadStart:
    """A lease as read ``at`` an instant; to be used before ``until`` (``time.monotonic``)."""

    seen: LeaseAtStart
    at: datetime
    until: float


class ReadAhead:
    """Keeps leases that were read a moment ago, each for one use by the thread that processes its start.

    Decisions on them are written against their revision, as always: if the lease has changed since, the write fails
    and the start is processed again.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._read: dict[str, ReadStart] = {}
        self._here = threading.local()

    def read(self, events: Iterable[DueEvent], coming: Iterable[DueEvent] = ()) -> None:
        """Read the leases of the starts among these events, and of those ``coming`` after them. StoreUnavailable.

        Only the engine's thread, which assigns events to threads, may call this.
        """
        now = time.monotonic()
        # Drop what was not used in time: another manager may have claimed the start.
        for event_id, found in list(self._read.items()):
            if found.until <= now:
                self._read.pop(event_id, None)
        wanted = self._missing(events)
        if wanted:
            wanted |= self._missing(coming)
        if len(wanted) < FEWEST:
            return
        at = self._runtime.clock.now()
        starts = self._runtime.store.leases.load_starts(wanted.keys(), now=at)
        self._read |= {wanted[id_]: ReadStart(seen, at, now + FRESH_SECONDS) for id_, seen in starts.items()}

    @contextmanager
    def taken(self, event_id: str) -> Iterator[tuple[Lease, datetime] | None]:
        """Give this thread the lease that was read for an event, and when, once; None if it was not read."""
        known = self._read.pop(event_id, None)
        self._here.found = None if known is None else known.seen
        try:
            yield None if known is None else (known.seen.lease, known.at)
        finally:
            self._here.found = None

    def is_clear(self, lease: Lease) -> bool:
        """Tell whether no earlier user was in the way of this lease: then none can have come since."""
        found = self._found()
        return found is not None and found.lease is lease and not found.late

    def tasks(self, lease: Lease) -> tuple[Task, ...]:
        """Return the reservations of a lease with its resources; they are read if more than its claim was written."""
        found = self._found()
        stale = found is None or (found.lease.id, found.lease.revision + 1) != (lease.id, lease.revision)
        if found is None or stale or self._runtime.reads_history(lease):
            return self._runtime.tasks(lease, self._runtime.store.calendar.of_lease(lease.id))
        return self._runtime.with_shares(tasks_of(lease, found.allocations, found.resources))

    def _missing(self, events: Iterable[DueEvent]) -> dict[str, str]:
        """Return the event ids, by lease, of the starts that are not read yet."""
        starts = (event for event in events if event.event_type == EventType.START)
        return {event.lease_id: event.event_id for event in starts if event.event_id not in self._read}

    def _found(self) -> LeaseAtStart | None:
        return getattr(self._here, "found", None)
