# SPDX-License-Identifier: Apache-2.0
"""Fair scheduling of due events: projects take turns, and none gets all threads."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from blazar.store.events import DueEvent


class Turns:
    """The due events of one kind, for a number of threads. Not safe for several threads at a time.

    A free thread goes to the project with the fewest threads at that moment. A project gets at most three quarters of
    the threads that others leave it, so that there is a free one for the next project, even while every call is slow.
    Events of empty leases have their turn when nothing else waits.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._waiting: dict[tuple[bool, str], deque[DueEvent]] = {}
        self._running: dict[str, DueEvent] = {}
        self._of: Counter[str] = Counter()

    @property
    def running(self) -> Collection[str]:
        """The ids of the events that have a thread."""
        return self._running.keys()

    @property
    def waits(self) -> bool:
        """Tell whether an event waits for its turn."""
        return bool(self._waiting)

    def offer(self, due: Iterable[DueEvent], *, shuffled: bool = False) -> None:
        """Replace the waiting events by these, in this order; events that have a thread must not be among them.

        ``shuffled``: in random order within a project, so that managers that see the same events mostly differ.
        """
        self._waiting = {}
        for event in due:
            self._waiting.setdefault((event.empty, event.project_id), deque()).append(event)
        if shuffled:
            for events in self._waiting.values():
                random.shuffle(events)

    def take(self) -> DueEvent | None:
        """Return the event whose turn it is, which has a thread from now on; None if there is none, or no thread."""
        entitled = [key for key in self._waiting if self._of[key[1]] < self._most(key[1])]
        if not entitled:
            return None
        key = min(entitled, key=lambda key: (key[0], self._of[key[1]]))
        event = self._waiting[key].popleft()
        if not self._waiting[key]:
            del self._waiting[key]
        self._running[event.event_id] = event
        self._of[event.project_id] += 1
        return event

    def put_back(self, events: Sequence[DueEvent]) -> None:
        """Return taken events to the waiting ones, before all others of their projects."""
        for event in reversed(events):
            self.done(event)
            self._waiting.setdefault((event.empty, event.project_id), deque()).appendleft(event)

    def coming(self, most: int) -> list[DueEvent]:
        """Return at most ``most`` of the waiting events, the first ones of each project."""
        share = -(-most // max(1, len(self._waiting)))
        return list(islice((e for events in self._waiting.values() for e in islice(events, share)), most))

    def done(self, event: DueEvent) -> None:
        """Release the thread of an event."""
        del self._running[event.event_id]
        self._of[event.project_id] -= 1
        if not self._of[event.project_id]:
            del self._of[event.project_id]

    def _most(self, project_id: str) -> int:
        """Return the maximum number of threads of a project at this moment."""
        left = self._threads - len(self._running) + self._of[project_id]
        return left - left // 4
