"""Telling those who keep books about leases: written with the change itself, sent afterwards, apart from all else.

A notice is a row of the database that the transaction writes which grants, changes or ends a lease. So it is there if
and only if that is so, once, whoever dies; and sending it, with however many tries, delays no lease.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from pydantic import TypeAdapter

from blazar.clouds.scope import scope
from blazar.enforcement import Enforcement, News, Occasion
from blazar.manager.enforcing import view
from blazar.manager.settings import Settings
from blazar.model.clock import Clock
from blazar.model.demand import Allocation
from blazar.model.errors import BlazarError
from blazar.model.lease import EventStatus, EventType, Lease, LeaseStatus
from blazar.model.requests import Actor
from blazar.model.usage import Notice
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

PAGE = 50
TELLERS = 4
"""How many notices are sent at a time: a slow service keeps the next ones waiting, and nothing else."""

_NEWS = TypeAdapter(News)


class Notices:
    """Writes notices, and sends those that are due. Any number of these may share a database."""

    def __init__(self, store: Store, enforcement: Enforcement, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._enforcement = enforcement
        self._clock = clock
        self._settings = settings
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._tellers = ThreadPoolExecutor(TELLERS, thread_name_prefix="notice")

    def of(
        self, occasion: Occasion, lease: Lease, allocations: Collection[Allocation], *, by: Actor | None = None
    ) -> tuple[Notice, ...]:
        """Return what to write with a change, so that those are told who want to hear: nothing if nobody does."""
        if not self._enforcement.hears(occasion):
            return ()
        actor = by or Actor(lease.user_id, lease.project_id)
        now = self._clock.now()
        context = self._enforcement.context(actor.user_id, actor.project_id)
        news = News(occasion, context, now, view(self._store, lease, allocations))
        return (Notice(str(uuid.uuid4()), lease.id, _NEWS.dump_json(news).decode(), created_at=now, due_at=now),)

    def of_end(self, before: Lease, after: Lease) -> tuple[Notice, ...]:
        """Return what to write with the write that begins the end of a lease, by its event or by a deletion.

        Only the first such write finds the end event undone. What never came to be, as its creation was not finished,
        has no end: nobody was told that it was granted.
        """
        end = before.event(EventType.END)
        begun = end is None or end.status is not EventStatus.UNDONE
        if begun or before.status is LeaseStatus.CREATING or not self._enforcement.hears(Occasion.ENDED):
            return ()
        return self.of(Occasion.ENDED, after, self._store.lease_allocations(after.id))

    def start(self) -> None:
        """Begin to send, in threads of its own; there are none if there is nobody to tell."""
        if any(self._enforcement.hears(occasion) for occasion in Occasion):
            self._thread.start()

    def stop(self) -> None:
        """Finish what is being sent, and return."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._tellers.shutdown()

    def wake(self) -> None:
        """Look now: there may be something new."""
        self._woken.set()

    def run_due(self) -> int:
        """Send everything that is due, here and now; return how many tries that took.

        For tests with a clock of their own and for tools; the running threads do the same.
        """
        tries = 0
        while due := self._store.due_notices(self._clock.now(), PAGE):
            for notice in due:
                self._send(notice)
                tries += 1
        return tries

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                due = self._store.due_notices(self._clock.now(), PAGE)
                list(self._tellers.map(self._send_calmly, due))
                pause = timedelta(0) if due else self._until_next()
            except BlazarError as error:
                LOG.error("Notices can not be read (%s); trying again in a second", error.message)
                pause = timedelta(seconds=1)
            except Exception:
                # The border of the thread: it outlives whatever goes wrong in one round.
                LOG.exception("A round of notices failed; trying again in a second")
                pause = timedelta(seconds=1)
            self._woken.wait(pause.total_seconds())

    def _until_next(self) -> timedelta:
        due_at = self._store.next_notice()
        wait = self._settings.longest_sleep if due_at is None else due_at - self._clock.now()
        return max(timedelta(0), min(wait, self._settings.longest_sleep))

    def _send_calmly(self, notice: Notice) -> None:
        try:
            if not self._stopping.is_set():
                self._send(notice)
        except BlazarError as error:
            LOG.error("Notice %s of lease %s has to wait: %s", notice.id, notice.lease_id, error.message)
            self._stopping.wait(1)
        except Exception:
            # The border of a thread. The notice is still in the database, and so comes back.
            LOG.exception("Notice %s of lease %s failed; it will be tried again", notice.id, notice.lease_id)
            self._stopping.wait(1)

    def _send(self, notice: Notice) -> None:
        now = self._clock.now()
        claimed = self._store.claim_notice(notice, until=now + self._settings.notice_claim)
        if claimed is None:
            return
        try:
            news = _NEWS.validate_json(claimed.content)
        except ValueError:
            LOG.exception("Notice %s of lease %s can not be read, and is given up", claimed.id, claimed.lease_id)
            self._store.finish_notice(claimed, told=claimed.told, reason="it can not be read", at=now)
            return
        reasons: list[str] = []

        def failed(name: str, error: Exception) -> None:
            reason = error.message if isinstance(error, BlazarError) else f"internal error: {type(error).__name__}"
            reasons.append(f"{name}: {reason}")
            if not isinstance(error, BlazarError):
                LOG.error("Filter %s failed unexpectedly", name, exc_info=error)

        # The same id with every try, so that whoever is told twice, since a manager died in between, can notice.
        with scope(request_id=f"req-{claimed.id}", limit=self._settings.notice_claim / 2):
            told = self._enforcement.tell(news, claimed.told, failed)
        reason = "; ".join(reasons)
        now = self._clock.now()
        if not reasons:
            self._store.finish_notice(claimed, told=told, reason=None, at=now)
        elif claimed.attempts + 1 >= self._settings.notice_attempts:
            LOG.error("%s of lease %s is given up: %s", news.occasion, claimed.lease_id, reason)
            self._store.finish_notice(claimed, told=told, reason=reason, at=now)
        else:
            wait = min(self._settings.notice_longest_retry, self._settings.first_retry * 2 ** min(claimed.attempts, 16))
            LOG.warning("%s of lease %s is tried again in %s: %s", news.occasion, claimed.lease_id, wait, reason)
            self._store.postpone_notice(claimed, told=told, reason=reason, until=now + wait)
