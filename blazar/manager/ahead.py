# SPDX-License-Identifier: Apache-2.0
"""What many starts need to know, read for many of them at once: so each of a burst costs half the statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from blazar.manager.works import works_of
from blazar.model.clock import Clock
from blazar.model.lease import EventType, Lease
from blazar.resources.base import Work
from blazar.store.store import DueEvent, LeaseAtStart, Store

FEWEST = 2
"""For fewer starts than these it is not worth it."""

MOST = 64
"""For so many starts to come it is read besides, if it has to be read at all: as quickly done as for a few."""

FRESH_SECONDS = 1.0
"""How long what was read is good for."""


@dataclass(frozen=True, slots=True)
class Found:
    """A lease as it was read ``at`` an instant, good until then (``time.monotonic``)."""

    seen: LeaseAtStart
    at: datetime
    until: float


class Ahead:
    """Leases as they were read a moment ago, each for one look at its start, by the thread that looks.

    What is decided on them is written against their revision, as always: whatever has changed since makes that fail,
    and the start is looked at again.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, Found] = {}
        self._here = threading.local()

    def read(self, events: Iterable[DueEvent], coming: Iterable[DueEvent] = ()) -> None:
        """Read what the starts among these events need, and those that come after them. StoreUnavailable.

        For one thread only, which hands the events out.
        """
        now = time.monotonic()
        # What nobody has come for: a start may have gone to another manager.
        for event_id, found in list(self._read.items()):
            if found.until <= now:
                self._read.pop(event_id, None)
        wanted = self._missing(events)
        if wanted:
            wanted |= self._missing(coming)
        if len(wanted) < FEWEST:
            return
        at = self._clock.now()
        starts = self._store.starts(wanted.keys(), now=at)
        self._read |= {wanted[id_]: Found(seen, at, now + FRESH_SECONDS) for id_, seen in starts.items()}

    @contextmanager
    def taken(self, event_id: str) -> Iterator[tuple[Lease, datetime] | None]:
        """Open what was read for an event, and when, for this thread and once; None if nothing was."""
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

    def works(self, lease: Lease) -> tuple[Work, ...] | None:
        """Return the reservations of a lease with what is promised to it; None if more than its claim was written."""
        found = self._found()
        if found is None or (found.lease.id, found.lease.revision + 1) != (lease.id, lease.revision):
            return None
        return works_of(lease, found.allocations, found.resources)

    def _missing(self, events: Iterable[DueEvent]) -> dict[str, str]:
        """Return the starts that are not read yet, as events by lease."""
        starts = (event for event in events if event.event_type == EventType.START)
        return {event.lease_id: event.event_id for event in starts if event.event_id not in self._read}

    def _found(self) -> LeaseAtStart | None:
        return getattr(self._here, "found", None)
