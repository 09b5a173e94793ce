# SPDX-License-Identifier: Apache-2.0
"""The event engine: sleeps until something is due, and works through whatever is.

Starts have their own threads, so that no number of slow ends can keep one waiting; projects take turns (``turns``), so
that no number of events of one keeps those of another waiting; and nothing that waits for the cloud holds a thread: it
is looked at again later. What has no thread yet stays in the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from blazar.context import scope
from blazar.manager.read_ahead import MOST
from blazar.manager.settings import Settings
from blazar.manager.turns import Turns
from blazar.manager.worker import Worker
from blazar.model.clock import Clock
from blazar.model.errors import BlazarError
from blazar.store.events import DueEvent
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

PAGE = 400
"""How many due events beyond those at hand are read at a time."""

BUSY_LOOK = 0.05
"""After how many seconds to look again at what is due while threads work: what they do makes something else due."""

WAITING_LOOK = 0.2
"""After how many seconds to look again at what is due while events wait for threads."""

REST = 9
"""How often as long as a look took no other follows: with very many due events, looking is no work of its own."""

RIVALRY_SECONDS = 30
"""How long to count on another manager that was faster once."""


class Engine:
    """Finds due events and has them worked on. Any number of engines may share a database."""

    def __init__(self, store: Store, worker: Worker, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._settings = settings
        self._changed = threading.Condition()
        # All that follows is guarded by it, but for what only the engine's own thread uses.
        self._woken = False
        self._asked = False
        self._finished = False
        self._rivals_until = float("-inf")
        self._submitted: set[str] = set()
        self._short_of_threads = False
        self._looked_at = float("-inf")
        self._rested_at = float("-inf")
        self._look_at = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._starters = ThreadPoolExecutor(settings.starters, thread_name_prefix="start")
        self._enders = ThreadPoolExecutor(settings.enders, thread_name_prefix="end")
        self._lanes = ((Turns(settings.starters), self._starters), (Turns(settings.enders), self._enders))

    def start(self) -> None:
        """Begin to work, in threads of its own."""
        for _, pool in self._lanes:
            # The first thread of each: with it everything gets done, even where no more can be started later.
            pool.submit(int)
        self._thread.start()

    def begin_stop(self) -> None:
        """Begin no more work on events; what has begun goes on."""
        self._stopping.set()
        self.wake()

    def stop(self) -> None:
        """Take on nothing new, finish what is at hand, and return."""
        self.begin_stop()
        # First: whatever hands events out finds somebody to take them.
        if self._thread.ident is not None:
            self._thread.join()
        self._starters.shutdown(cancel_futures=True)
        self._enders.shutdown(cancel_futures=True)

    def wake(self) -> None:
        """Look at the calendar now: something new may be due before what the engine sleeps for."""
        with self._changed:
            self._asked = self._woken = True
            self._changed.notify_all()

    def run_due(self) -> int:
        """Work on everything that is due, here and now, until nothing is; return how many looks it took.

        For tests with a clock of their own and for tools; the running engine does the same in its threads.
        """
        looks = 0
        while due := self._store.events.due(self._clock.now(), PAGE):
            for event in due:
                self._worker.process(event.lease_id, event.event_id)
                looks += 1
        return looks

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause = self._round()
            except BlazarError as error:
                LOG.error("The database does not answer (%s); trying again in a second", error.message)
                pause = 1.0
            except Exception:
                # The border of the engine: it outlives whatever goes wrong in one round.
                LOG.exception("A round of the engine failed; trying again in a second")
                pause = 1.0
            with self._changed:
                if not self._woken:
                    self._changed.wait(pause)
                self._woken = False

    def _round(self) -> float:
        """Give events to the threads that are free, after a look at what is due if it is time; return when it is."""
        now = time.monotonic()
        with self._changed:
            if self._asked:
                self._look_at = now
            elif self._finished:
                self._look_at = min(self._look_at, self._looked_at + BUSY_LOOK)
            self._asked = self._finished = False
        self._look_at = max(self._look_at, self._rested_at)
        looks = self._look_at <= now
        if looks:
            self._look()
        self._hand_out()
        if looks:
            with self._changed:
                waits = any(turns.waits for turns, _ in self._lanes)
            self._look_at = self._looked_at + (WAITING_LOOK if waits else self._until_next())
        return max(0.0, self._look_at - time.monotonic())

    def _look(self) -> None:
        """Read what is due, but for what is at hand."""
        begin = time.monotonic()
        with self._changed:
            running = {event_id for turns, _ in self._lanes for event_id in turns.running}
        due = self._store.events.due(self._clock.now(), len(running) + PAGE)
        self._looked_at = time.monotonic()
        self._rested_at = self._looked_at + REST * (self._looked_at - begin)
        new = [event for event in due if event.event_id not in running]
        with self._changed:
            rivals = self._looked_at < self._rivals_until
            for turns, starts in zip((turns for turns, _ in self._lanes), (True, False), strict=True):
                turns.offer((event for event in new if event.starts is starts), shuffled=rivals)

    def _hand_out(self) -> None:
        """Give events to free threads; what no thread could be started for waits for its turn again."""
        short = False
        for turns, pool in self._lanes:
            with self._changed:
                taken = deque(iter(turns.take, None))
                # With rivals about, what is read early is often theirs when its turn comes.
                coming = [] if time.monotonic() < self._rivals_until else turns.coming(MOST)
            try:
                self._read_ahead(taken, coming)
                while taken:
                    with self._changed:
                        self._submitted.add(taken[0].event_id)
                    pool.submit(self._work_on, taken[0], turns)
                    taken.popleft()
            except Exception as error:
                # Usually a limit of processes or memory. Threads that finish take what waits, so no event is lost.
                short = True
                if not self._short_of_threads:
                    LOG.error("No more threads can be started (%s); events wait for those that run", error)
            finally:
                with self._changed:
                    if taken and taken[0].event_id not in self._submitted:
                        # The pool keeps what it started no thread for, and one that runs has taken it already.
                        taken.popleft()
                    self._submitted -= {event.event_id for event in taken}
                    turns.put_back(taken)
        self._short_of_threads = short

    def _read_ahead(self, taken: Iterable[DueEvent], coming: Iterable[DueEvent]) -> None:
        try:
            self._worker.read_ahead.read(taken, coming)
        except Exception as error:
            # Each lease is read by itself then: only the one that cannot be read has to wait, and its traceback is
            # logged there.
            LOG.error("The starts that are due cannot be read at once (%s); each is read by itself", error)

    def _work_on(self, event: DueEvent, turns: Turns) -> None:
        with self._changed:
            if event.event_id not in self._submitted:
                # The pool keeps what it started no thread for, but the event was put back, and perhaps done since.
                return
            self._submitted.remove(event.event_id)
        mine = True
        try:
            if not self._stopping.is_set():
                # The event's id is what the cloud's own logs know its doings by.
                with scope(request_id=f"req-{event.event_id}"):
                    mine = self._worker.process(event.lease_id, event.event_id)
        except BlazarError as error:
            LOG.error("Event %s of lease %s has to wait: %s", event.event_id, event.lease_id, error.message)
            self._stopping.wait(1)
        except Exception:
            # The border of a thread. The event is still due in the database, and so comes back.
            LOG.exception("Event %s of lease %s failed; it will be tried again", event.event_id, event.lease_id)
            self._stopping.wait(1)
        finally:
            with self._changed:
                turns.done(event)
                if not mine:
                    self._rivals_until = time.monotonic() + RIVALRY_SECONDS
                self._finished = self._woken = True
                self._changed.notify_all()

    def _until_next(self) -> float:
        due_at, longest = self._store.events.next_due(), self._settings.longest_sleep.total_seconds()
        if due_at is None:
            return longest
        wait = (due_at - self._clock.now()).total_seconds()
        with self._changed:
            busy = any(turns.running for turns, _ in self._lanes)
        return max(BUSY_LOOK if busy else 0, min(wait, longest))
