# SPDX-License-Identifier: Apache-2.0
"""Telling those who keep books about leases: written with the change itself, sent afterwards, apart from all else.

A notice is a row of the database that the transaction writes which grants, changes or ends a lease. So it is there if
and only if that is so, once, whoever dies; and sending it, with however many tries, delays no lease.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from pydantic import TypeAdapter

from blazar.context import check_change, scope
from blazar.enforcement import Enforcement, News, Occasion, Unheard
from blazar.manager.enforcing import view
from blazar.manager.settings import Settings
from blazar.model.clock import Clock
from blazar.model.demand import Allocation
from blazar.model.errors import BlazarError, EnforcementUnavailable, UsageDenied
from blazar.model.lease import EventStatus, EventType, Lease, LeaseStatus
from blazar.model.requests import Actor
from blazar.model.usage import HELD, Notice
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

PAGE = 50
TELLERS = 4
"""How many notices are sent at a time: a slow service keeps the next ones waiting, and nothing else."""

LOOK_AGAIN = 0.1
"""Seconds between two looks at what somebody else is telling."""

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
        self,
        occasion: Occasion,
        lease: Lease,
        allocations: Collection[Allocation],
        *,
        by: Actor | None = None,
        before: tuple[Lease, Collection[Allocation]] | None = None,
    ) -> tuple[Notice, ...]:
        """Return what to write with a change, so that those are told who want to hear: nothing if nobody does.

        ``before`` is the lease before the change, with what was promised to it then; ``by`` is who asked.
        """
        if not self._enforcement.hears(occasion):
            return ()
        now = self._clock.now()
        context = self._enforcement.context(lease, by)
        was = view(self._store, *before) if before else None
        news = News(occasion, context, now, view(self._store, lease, allocations), was)
        return (
            Notice(
                str(uuid.uuid4()), lease.id, _NEWS.dump_json(news, by_alias=True).decode(), created_at=now, due_at=now
            ),
        )

    def ahead(
        self,
        occasion: Occasion,
        lease: Lease,
        allocations: Collection[Allocation],
        *,
        by: Actor,
        before: tuple[Lease, Collection[Allocation]] | None = None,
    ) -> tuple[Notice, ...]:
        """Return what to write about a lease as it is to be: held, if somebody must accept that before it is so.

        What is held is written first, on its own; then it is told (``commit``), and what came of that is written with
        the lease. Whoever undoes the request in between, this manager or another, finds it and takes back what may have
        been accepted (``taken_back``).
        """
        notices = self.of(occasion, lease, allocations, by=by, before=before)
        if not self._enforcement.binds(occasion, lease.project_id):
            return notices
        return tuple(replace(notice, due_at=HELD) for notice in notices)

    def commit(self, held: Collection[Notice]) -> tuple[Notice, ...]:
        """Tell what is held and written; return what to write when what it tells of becomes so.

        UsageDenied, EnforcementUnavailable: then it must not become so.
        """
        return tuple(self._committed(replace(notice, stored=True)) for notice in held)

    def _committed(self, notice: Notice) -> Notice:
        news = _NEWS.validate_json(notice.content)
        try:
            # No service hears of a lease from a manager that was held up: another one may be undoing it.
            seconds = check_change()
        except BlazarError as error:
            self._store.settle_notice(replace(notice, reason=error.message, over=True), at=self._clock.now())
            raise
        limit = None if seconds is None else timedelta(seconds=seconds)
        with scope(request_id=f"req-{notice.id}", limit=limit):
            outcome = self._enforcement.commit(news)
        now = self._clock.now()
        if outcome.error is None and not outcome.later:
            return replace(notice, told=outcome.known, over=True)
        if outcome.error is None:
            reason = "; ".join(f"{name}: {reason}" for name, reason in outcome.later.items())
            LOG.warning("%s of lease %s is told again: %s", news.occasion, notice.lease_id, reason)
            due_at = now + self._settings.first_retry
            return replace(notice, told=outcome.known, reason=reason, attempts=1, due_at=due_at)
        nothing_to_do = tuple(name for name in self._enforcement.hearing(news.occasion) if name not in outcome.known)
        reason = outcome.error.message
        LOG.warning("%s of lease %s is not accepted: %s", news.occasion, notice.lease_id, reason)
        self._store.settle_notice(replace(notice, told=nothing_to_do, reason=reason, over=not outcome.known), at=now)
        raise outcome.error

    def taken_back(self, lease: Lease) -> tuple[Notice, ...]:
        """Return what to write when a request is undone, so that those hear of it who may have accepted it."""
        if not any(self._enforcement.hears(occasion) for occasion in (Occasion.CREATED, Occasion.UPDATED)):
            return ()
        written: list[Notice] = []
        for held in self._store.outstanding_notices(lease.id):
            if held.held:
                written.append(replace(held, over=True, reason=held.reason or "undone"))
                written += self._reversal(held, lease)
        return tuple(written)

    def _reversal(self, held: Notice, lease: Lease) -> tuple[Notice, ...]:
        news = _NEWS.validate_json(held.content)
        now = self._clock.now()
        if news.occasion is Occasion.CREATED:
            # As if it had never been: nothing of it was used.
            view = replace(news.view, lease=replace(news.view.lease, status=LeaseStatus.DELETING))
            reversal = News(Occasion.ENDED, news.context, min(now, view.window.start), view)
        elif lease.status is LeaseStatus.DELETING or news.before is None:
            # Its end is told next.
            return ()
        else:
            reversal = replace(news, at=now, view=news.before, before=news.view)
        if not self._enforcement.hears(reversal.occasion):
            return ()
        content = _NEWS.dump_json(reversal, by_alias=True).decode()
        due_at = now + self._settings.notice_settling
        LOG.warning("%s of lease %s may have been accepted, and is taken back", news.occasion, lease.id)
        return (
            Notice(
                str(uuid.uuid4()), lease.id, content, now, due_at, told=held.told, reason=f"undone: {held.reason or ''}"
            ),
        )

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

    def catch_up(self, lease_id: str) -> None:
        """Tell what is still to be told of a lease, or wait a moment until somebody has told it.

        A question about a change means nothing to a service that does not know the lease as it is. If it can not be
        told: EnforcementUnavailable, if the service is one without whose word nothing is granted.
        """
        if not any(self._enforcement.hears(occasion) for occasion in Occasion):
            return
        end = time.monotonic() + self._settings.notice_wait.total_seconds()
        while left := self._store.outstanding_notices(lease_id):
            first = left[0]
            if first.due_at <= self._clock.now():
                self._send(first)
            elif first.reason is None and time.monotonic() < end:
                # Somebody else is telling it.
                time.sleep(LOOK_AGAIN)
            elif self._enforcement.insists:
                raise EnforcementUnavailable(
                    f"the external service that decides about leases does not know lease {lease_id} as it is yet; "
                    "please try again later"
                )
            else:
                return

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
        passing: list[Exception] = []

        def failed(name: str, error: Exception) -> None:
            reason = error.message if isinstance(error, BlazarError) else f"internal error: {type(error).__name__}"
            reasons.append(f"{name}: {reason}")
            if not isinstance(error, UsageDenied):
                passing.append(error)
            if not isinstance(error, BlazarError):
                LOG.error("Filter %s failed unexpectedly", name, exc_info=error)

        # The same id with every try, so that whoever is told twice, since a manager died in between, can notice.
        with scope(request_id=f"req-{claimed.id}", limit=self._settings.notice_claim / 2):
            told = self._enforcement.tell(news, claimed.told, failed)
        reason = "; ".join(reasons)
        now = self._clock.now()
        if not reasons:
            self._store.finish_notice(claimed, told=told, reason=None, at=now)
        elif not passing:
            LOG.error("%s of lease %s is refused for good: %s", news.occasion, claimed.lease_id, reason)
            self._store.finish_notice(claimed, told=told, reason=reason, at=now)
        elif claimed.attempts + 1 >= self._settings.notice_attempts or self._holds_up_the_end(claimed, news, passing):
            LOG.error("%s of lease %s is given up: %s", news.occasion, claimed.lease_id, reason)
            self._store.finish_notice(claimed, told=told, reason=reason, at=now)
        else:
            wait = min(self._settings.notice_longest_retry, self._settings.first_retry * 2 ** min(claimed.attempts, 16))
            LOG.warning("%s of lease %s is tried again in %s: %s", news.occasion, claimed.lease_id, wait, reason)
            self._store.postpone_notice(claimed, told=told, reason=reason, until=now + wait)

    def _holds_up_the_end(self, notice: Notice, news: News, errors: Collection[Exception]) -> bool:
        """Tell whether a commit fails although its service can be reached, while the end of its lease waits behind it.

        A service that can not be reached at all would not hear of the end either: then both wait, and keep their order.
        """
        if (
            news.occasion is Occasion.ENDED
            or self._clock.now() - notice.created_at < self._settings.notice_longest_retry
        ):
            return False
        if all(isinstance(error, Unheard) and not error.heard for error in errors):
            return False
        lease = self._store.lease(notice.lease_id, including_deleted=True)
        end = lease.event(EventType.END)
        return lease.status is LeaseStatus.DELETING or end is None or end.status is not EventStatus.UNDONE
