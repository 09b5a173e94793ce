"""The event engine: sleeps until something is due, and works through whatever is.

Starts have their own threads, so that no number of slow ends can keep one waiting; and nothing that waits for the
cloud holds a thread: it is looked at again later.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from blazar.clouds.scope import scope
from blazar.manager.claims import Claims
from blazar.manager.settings import Settings
from blazar.manager.worker import Worker
from blazar.model.clock import Clock
from blazar.model.errors import BlazarError
from blazar.model.lease import EventType
from blazar.store.store import DueEvent, Store

LOG = logging.getLogger(__name__)

PAGE = 200
"""How many due events beyond those at hand are read at a time."""

BUSY_LOOK = timedelta(milliseconds=50)
"""How long to wait while all that is due is in the hands of our own threads."""

STARTS = frozenset({EventType.START, EventType.CREATE, EventType.UPDATE})


class Engine:
    """Finds due events and has them worked on. Any number of engines may share a database."""

    def __init__(self, store: Store, worker: Worker, clock: Clock, claims: Claims, settings: Settings) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._claims = claims
        self._settings = settings
        self._changed = threading.Condition()
        self._woken = False
        self._stopping = threading.Event()
        self._at_hand: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._starters = ThreadPoolExecutor(settings.starters, thread_name_prefix="start")
        self._enders = ThreadPoolExecutor(settings.enders, thread_name_prefix="end")

    def start(self) -> None:
        """Begin to work, in threads of its own."""
        for name, target in (("engine", self._run), ("heartbeat", self._keep_claims)):
            thread = threading.Thread(target=target, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Take on nothing new, finish what is at hand, and return."""
        self._stopping.set()
        self.wake()
        self._starters.shutdown(cancel_futures=True)
        self._enders.shutdown(cancel_futures=True)
        for thread in self._threads:
            thread.join()

    def wake(self) -> None:
        """Look at the calendar now: something new may be due before what the engine sleeps for."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def run_due(self) -> int:
        """Work on everything that is due, here and now, until nothing is; return how many looks it took.

        For tests with a clock of their own and for tools; the running engine does the same in its threads.
        """
        looks = 0
        while due := self._store.due_events(self._clock.now(), PAGE):
            for event in due:
                self._worker.look_at(event.lease_id, event.event_id)
                looks += 1
        return looks

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._take_on():
                    continue
                pause = self._until_next()
            except BlazarError as error:
                LOG.error("The database does not answer (%s); trying again in a second", error.message)
                pause = timedelta(seconds=1)
            except Exception:
                # The border of the engine: it outlives whatever goes wrong in one round.
                LOG.exception("A round of the engine failed; trying again in a second")
                pause = timedelta(seconds=1)
            with self._changed:
                if not self._woken:
                    self._changed.wait(pause.total_seconds())
                self._woken = False

    def _take_on(self) -> bool:
        """Hand due events to the threads; tell whether there were any that were not at hand yet."""
        with self._changed:
            at_hand = len(self._at_hand)
        due = self._store.due_events(self._clock.now(), at_hand + PAGE)
        with self._changed:
            new = [event for event in due if event.event_id not in self._at_hand]
            self._at_hand.update(event.event_id for event in new)
        for event in new:
            pool = self._starters if event.event_type in STARTS else self._enders
            pool.submit(self._work_on, event)
        return bool(new)

    def _work_on(self, event: DueEvent) -> None:
        try:
            if not self._stopping.is_set():
                # The event's id is what the cloud's own logs know its doings by.
                with scope(request_id=f"req-{event.event_id}"):
                    self._worker.look_at(event.lease_id, event.event_id)
        except BlazarError as error:
            LOG.error("Event %s of lease %s has to wait: %s", event.event_id, event.lease_id, error.message)
            self._stopping.wait(1)
        except Exception:
            # The border of a thread. The event is still due in the database, and so comes back.
            LOG.exception("Event %s of lease %s failed; it will be tried again", event.event_id, event.lease_id)
            self._stopping.wait(1)
        finally:
            with self._changed:
                self._at_hand.discard(event.event_id)
                self._woken = True
                self._changed.notify_all()

    def _until_next(self) -> timedelta:
        due_at = self._store.next_due()
        if due_at is None:
            return self._settings.longest_sleep
        wait = due_at - self._clock.now()
        return max(BUSY_LOOK if self._at_hand else timedelta(0), min(wait, self._settings.longest_sleep))

    def _keep_claims(self) -> None:
        while not self._stopping.wait(self._settings.claim_ttl.total_seconds() / 4):
            try:
                self._claims.beat()
            except BlazarError as error:
                LOG.error("Claims could not be renewed: %s", error.message)
