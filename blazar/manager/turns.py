# SPDX-License-Identifier: Apache-2.0
"""Whose event is worked on next: projects take turns, and none gets all threads."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from blazar.store.store import DueEvent


class Turns:
    """The due events of one kind, for a number of threads. Not safe for several threads at a time.

    A free thread goes to the project with the fewest threads at that moment. A project gets at most three quarters of
    the threads that others leave it, so that there is a free one for whoever comes next, even while every call takes
    long. Events of empty leases have their turn when nothing else waits.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._waiting: dict[tuple[bool, str], deque[DueEvent]] = {}
        self._at_hand: dict[str, DueEvent] = {}
        self._of: Counter[str] = Counter()

    @property
    def at_hand(self) -> Collection[str]:
        """The ids of the events that have a thread."""
        return self._at_hand.keys()

    @property
    def waits(self) -> bool:
        """Tell whether an event waits for its turn."""
        return bool(self._waiting)

    def offer(self, due: Iterable[DueEvent], *, shuffled: bool = False) -> None:
        """Let these events wait for their turn, in this order, and no others; what is at hand must not be among them.

        ``shuffled``: each project's in any order, so that managers that see the same events mostly try others.
        """
        self._waiting = {}
        for event in due:
            self._waiting.setdefault((event.empty, event.project_id), deque()).append(event)
        if shuffled:
            for events in self._waiting.values():
                random.shuffle(events)

    def take(self) -> DueEvent | None:
        """Return the event whose turn it is, which is at hand from now on; None if there is none, or no thread."""
        entitled = [key for key in self._waiting if self._of[key[1]] < self._most(key[1])]
        if not entitled:
            return None
        key = min(entitled, key=lambda key: (key[0], self._of[key[1]]))
        event = self._waiting[key].popleft()
        if not self._waiting[key]:
            del self._waiting[key]
        self._at_hand[event.event_id] = event
        self._of[event.project_id] += 1
        return event

    def put_back(self, events: Sequence[DueEvent]) -> None:
        """Let events that were taken wait again, before all others of their projects."""
        for event in reversed(events):
            self.done(event)
            self._waiting.setdefault((event.empty, event.project_id), deque()).appendleft(event)

    def coming(self, most: int) -> list[DueEvent]:
        """Return at most so many of the events that wait, of each project the first ones."""
        share = -(-most // max(1, len(self._waiting)))
        return list(islice((e for events in self._waiting.values() for e in islice(events, share)), most))

    def done(self, event: DueEvent) -> None:
        """Note that an event needs its thread no more."""
        del self._at_hand[event.event_id]
        self._of[event.project_id] -= 1
        if not self._of[event.project_id]:
            del self._of[event.project_id]

    def _most(self, project_id: str) -> int:
        """Return how many threads a project may have at this moment."""
        left = self._threads - len(self._at_hand) + self._of[project_id]
        return left - left // 4
