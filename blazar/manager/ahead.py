"""What many starts need to know, read for all of them at once: so each of a burst costs half the statements."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from blazar.manager.works import works_of
from blazar.model.clock import Clock
from blazar.model.lease import EventType, Lease
from blazar.resources.base import Work
from blazar.store.store import DueEvent, LeaseAtStart, Store

FEWEST = 2
"""For fewer starts than these it is not worth it."""


class Ahead:
    """Leases as they were read a moment ago, each for one look at its start, by the thread that looks.

    What is decided on them is written against their revision, as always: whatever has changed since makes that fail,
    and the start is looked at again.
    """

    def __init__(self, store: Store, clock: Clock, cleaning: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._cleaning = cleaning
        self._read: dict[str, tuple[LeaseAtStart, datetime]] = {}
        self._here = threading.local()

    def read(self, events: Iterable[DueEvent]) -> None:
        """Read what the starts among these events need. StoreUnavailable."""
        starts = {event.lease_id: event.event_id for event in events if event.event_type == EventType.START}
        if len(starts) < FEWEST:
            return
        now = self._clock.now()
        found = self._store.starts(starts.keys(), now=now, cleaning=self._cleaning)
        self._read |= {starts[lease_id]: (seen, now) for lease_id, seen in found.items()}

    @contextmanager
    def taken(self, event_id: str) -> Iterator[tuple[Lease, datetime] | None]:
        """Open what was read for an event, and when, for this thread and once; None if nothing was."""
        known = self._read.pop(event_id, None)
        self._here.found = None if known is None else known[0]
        try:
            yield None if known is None else (known[0].lease, known[1])
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

    def _found(self) -> LeaseAtStart | None:
        return getattr(self._here, "found", None)
