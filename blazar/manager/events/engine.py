# SPDX-License-Identifier: Apache-2.0
"""The event engine: sleeps until events are due, and processes those that are.

Starts have their own threads, so that slow ends never delay them, and so has each region, so that one whose cloud does
not answer delays no other; projects take turns (``turns``), so that the events of one never block those of another; and
an event that waits for the cloud holds no thread: it is processed again later.
Events without a thread stay in the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from blazar.context import Pool, scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.fairness import FairTurns
from blazar.manager.events.read_ahead import MOST
from blazar.manager.events.worker import Worker
from blazar.model.base.errors import BlazarError, StoreUnavailable
from blazar.model.base.log_lines import log_level
from blazar.model.base.values import dataclass
from blazar.store.work.events import DueEvent

LOG = logging.getLogger(__name__)

PAGE = 400
"""Due events read at a time, beyond those that have a thread."""

BUSY_POLL_SECONDS = 0.05
"""Pause between queries for due events while threads work: finished work makes other events due."""

WAITING_POLL_SECONDS = 0.2
"""Pause between queries for due events while events wait for threads."""

PAUSE_FACTOR = 9
"""The next query waits this many times the duration of the last one: so queries take a tenth of the time."""

RIVAL_SECONDS = 30
"""How long another manager that was faster once is expected to compete."""


PATIENCE = 5.0
"""Seconds that calls for events wait until others of the same service have ended."""

SEVERAL = ""
"""The lane of the leases that lie in several regions, or in one that is not configured any more."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads of their own for the starts, or for the other events, of a region; None: of all regions."""

    turns: FairTurns
    threads: ThreadPoolExecutor
    pool: Pool
    starts: bool
    region: str | None = None


class Engine(BackgroundThread):
    """Finds due events and processes them. Any number of engines may share a database."""

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        super().__init__("engine", work="Due events cannot be read")
        runtime.signals.events_due.connect(self.wake)
        self._runtime = runtime
        self.worker = worker
        self._lock = threading.Lock()
        # It guards all that follows, except what only the engine's own thread uses.
        self._asked = False
        self._finished = False
        self._rivals_until = float("-inf")
        self._submitted: set[str] = set()
        self._short_of_threads = False
        self._polled_at = float("-inf")
        self._earliest_poll_at = float("-inf")
        self._poll_at = float("-inf")
        self._regions = frozenset(runtime.regions.names)
        names = (*runtime.regions, SEVERAL) if self._regions else (None,)
        self._lanes = tuple(self._lane(starts, name) for name in names for starts in (True, False))

    def _lane(self, starts: bool, region: str | None) -> Lane:
        settings = self._runtime.settings
        threads, name = (settings.starters, "start") if starts else (settings.enders, "end")
        prefix = f"{name}-{region}" if region else name
        executor = ThreadPoolExecutor(threads, thread_name_prefix=prefix)
        regions = max(1, len(self._regions)) if region == SEVERAL else 1
        pool = Pool(f"{name}-{region or ''}", threads, regions=regions, patience=PATIENCE)
        return Lane(FairTurns(threads), executor, pool, starts, region)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The threads that work on events, of each lane."""
        return tuple(lane.pool for lane in self._lanes)

    def start(self) -> None:
        """Start the threads of the engine."""
        for lane in self._lanes:
            # The first thread of each: it does all the work if no more threads can be started later.
            lane.threads.submit(int)
        super().start()

    def stop(self) -> None:
        """Begin no new work, finish the work in progress, and return."""
        # First, so that the engine submits nothing to pools that are shut down.
        super().stop()
        for lane in self._lanes:
            lane.threads.shutdown(wait=False, cancel_futures=True)
        for lane in self._lanes:
            lane.threads.shutdown()

    def wake(self) -> None:
        """Query for due events now: a new event may be due before the one that the engine sleeps for."""
        with self._lock:
            self._asked = True
        super().wake()

    def run_due(self) -> int:
        """Process due events in this thread until none is due; return how many were processed.

        For tests with their own clock and for tools; the running engine does the same in its threads.
        """
        processed = 0
        while due := self._runtime.store.events.due(self._runtime.clock.now(), PAGE):
            for event in due:
                self.worker.process(event.lease_id, event.event_id)
                processed += 1
        return processed

    def _round(self) -> float:
        """Query for due events if it is time, and give events to threads; return the seconds until the next query."""
        now = time.monotonic()
        with self._lock:
            if self._asked:
                self._poll_at = now
            elif self._finished:
                self._poll_at = min(self._poll_at, self._polled_at + BUSY_POLL_SECONDS)
            self._asked = self._finished = False
        self._poll_at = max(self._poll_at, self._earliest_poll_at)
        polls = self._poll_at <= now
        if polls:
            self._poll()
        self._assign_threads()
        if polls:
            with self._lock:
                waits = any(lane.turns.waits for lane in self._lanes)
            self._poll_at = self._polled_at + (WAITING_POLL_SECONDS if waits else self._until_next())
        return max(0.0, self._poll_at - time.monotonic())

    def _poll(self) -> None:
        """Read the due events, except those that have a thread."""
        begin = time.monotonic()
        with self._lock:
            running = {event_id for lane in self._lanes for event_id in lane.turns.running}
        by_region = bool(self._regions)
        due = self._runtime.store.events.due(self._runtime.clock.now(), len(running) + PAGE, by_region=by_region)
        self._polled_at = time.monotonic()
        self._earliest_poll_at = self._polled_at + PAUSE_FACTOR * (self._polled_at - begin)
        new = [event for event in due if event.event_id not in running]
        with self._lock:
            rivals = self._polled_at < self._rivals_until
            for lane in self._lanes:
                lane.turns.offer((event for event in new if self._belongs(event, lane)), shuffled=rivals)

    def _belongs(self, event: DueEvent, lane: Lane) -> bool:
        region = event.region if event.region in self._regions else SEVERAL
        return event.is_start is lane.starts and (lane.region is None or lane.region == region)

    def _assign_threads(self) -> None:
        """Give events to free threads; an event for which no thread could be started waits for its turn again."""
        short = False
        for lane in self._lanes:
            turns = lane.turns
            with self._lock:
                taken = deque(iter(turns.take, None))
                # With rivals, an event that is read ahead is often claimed by another manager before its turn.
                coming = [] if time.monotonic() < self._rivals_until else turns.coming(MOST)
            try:
                self._read_ahead(taken, coming)
                while taken:
                    with self._lock:
                        self._submitted.add(taken[0].event_id)
                    lane.threads.submit(self._work_on, taken[0], lane)
                    taken.popleft()
            except Exception as error:
                # Usually a limit of processes or memory. Threads that finish take waiting events, so none is lost.
                short = True
                if not self._short_of_threads:
                    LOG.error("No more threads can be started (%s); events wait for running ones", error)
            finally:
                with self._lock:
                    if taken and taken[0].event_id not in self._submitted:
                        # The pool keeps an event that it started no thread for, and a running thread has taken it.
                        taken.popleft()
                    self._submitted -= {event.event_id for event in taken}
                    turns.put_back(taken)
        self._short_of_threads = short

    def _read_ahead(self, taken: Iterable[DueEvent], coming: Iterable[DueEvent]) -> None:
        try:
            self.worker.read_ahead.read(taken, coming)
        except Exception as error:
            # Each lease is read separately then: only the one that cannot be read has to wait, and its traceback is
            # logged there.
            LOG.log(log_level(error), "Due starts cannot be read together (%s); reading each separately", error)

    def _work_on(self, event: DueEvent, lane: Lane) -> None:
        with self._lock:
            if event.event_id not in self._submitted:
                # The pool kept an event that it started no thread for; it was put back, and perhaps processed since.
                return
            self._submitted.remove(event.event_id)
        claimed = True
        try:
            if not self._stopping.is_set():
                # The event's id is the global request id of its calls to OpenStack.
                with scope(request_id=f"req-{event.event_id}", pool=lane.pool):
                    claimed = self.worker.process(event.lease_id, event.event_id)
        except BlazarError as error:
            LOG.log(
                log_level(error), "Event %s of lease %s is delayed: %s", event.event_id, event.lease_id, error.message
            )
            self._stopping.wait(error.pause if isinstance(error, StoreUnavailable) else 1)
        except Exception:
            # The edge of a thread. The event is still due in the database, so it will be retried.
            LOG.exception("Event %s of lease %s failed; it will be retried", event.event_id, event.lease_id)
            self._stopping.wait(1)
        finally:
            with self._lock:
                lane.turns.done(event)
                if not claimed:
                    self._rivals_until = time.monotonic() + RIVAL_SECONDS
                self._finished = True
            super().wake()

    def _until_next(self) -> float:
        due_at, longest = self._runtime.store.events.next_due(), self._runtime.settings.longest_sleep.total_seconds()
        if due_at is None:
            return longest
        wait = (due_at - self._runtime.clock.now()).total_seconds()
        with self._lock:
            busy = any(lane.turns.running for lane in self._lanes)
        return max(BUSY_POLL_SECONDS if busy else 0, min(wait, longest))
