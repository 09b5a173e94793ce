# SPDX-License-Identifier: Apache-2.0
"""Fair scheduling of due events: projects take turns, and none gets all threads."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice, zip_longest

from blazar.store.work.events import DueEvent


class FairTurns:
    """The due events of one kind, for a number of threads. Not safe for several threads at a time.

    A free thread goes to the project with the fewest threads at that moment. A project gets at most three quarters of
    the threads that others leave it, so that there is a free one for the next project, even while every call is slow.
    Events of empty leases have their turn when nothing else waits.

    Within a project events that were begun and new ones alternate. In the order in which they are due, each look at
    what the cloud makes would wait for all of a burst to begin, ready or not. And if all looks came first, a cloud that
    is slow to make much would let nothing else begin.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._waiting: dict[tuple[bool, str], deque[DueEvent]] = {}
        self._running: dict[str, DueEvent] = {}
        self._of: Counter[str] = Counter()
        self._begun_last: set[str] = set()

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
        waiting: dict[tuple[bool, str], tuple[list[DueEvent], list[DueEvent]]] = {}
        for event in due:
            waiting.setdefault((event.empty, event.project_id), ([], []))[event.begun].append(event)
        # Whose turn it was is of no use where nothing waits any more.
        self._begun_last &= {project_id for _, project_id in waiting}
        self._waiting = {key: self._in_turn(key[1], *kinds, shuffled=shuffled) for key, kinds in waiting.items()}

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
        (self._begun_last.add if event.begun else self._begun_last.discard)(event.project_id)
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

    def _in_turn(
        self, project_id: str, new: list[DueEvent], begun: list[DueEvent], *, shuffled: bool
    ) -> deque[DueEvent]:
        """Return the events of a project, one that was begun and a new one in turn."""
        if shuffled:
            random.shuffle(new)
            random.shuffle(begun)
        # It goes on where it was, however few events have a thread before the next ones are offered.
        pairs = zip_longest(*((new, begun) if project_id in self._begun_last else (begun, new)))
        return deque(event for event in chain.from_iterable(pairs) if event is not None)

    def _most(self, project_id: str) -> int:
        """Return the maximum number of threads of a project at this moment."""
        left = self._threads - len(self._running) + self._of[project_id]
        return left - left // 4
