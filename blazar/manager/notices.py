# SPDX-License-Identifier: Apache-2.0
"""Transactional outbox for external accounting services: written with a change of a lease, sent later.

An outbox message (``Notice``) is a row that is written in the transaction which grants, changes or ends a lease. So it
exists exactly when the change does, also after a crash, and however many attempts its delivery takes, it delays no
lease.
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
"""Outbox messages sent at a time: a slow service delays only the next messages."""

LOOK_AGAIN = 0.1
"""Seconds between two checks whether another thread or manager has delivered a message."""

_NEWS = TypeAdapter(News)


class Notices:
    """Creates outbox messages and sends those that are due. Any number of instances may share a database."""

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
        """Return the outbox messages to write with a change; none if no filter listens to the occasion.

        ``before`` is the lease before the change, with its allocations then; ``by`` is the user who asked.
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
        """Return the outbox messages of a planned change: held, if a filter must accept the change first.

        A held message is written first, on its own; then it is sent (``commit``), and the result is written with the
        lease. A manager that undoes the request in between, this one or another, finds the message and sends a reversal
        of what may have been accepted (``taken_back``).
        """
        notices = self.of(occasion, lease, allocations, by=by, before=before)
        if not self._enforcement.binds(occasion, lease.project_id):
            return notices
        return tuple(replace(notice, due_at=HELD) for notice in notices)

    def commit(self, held: Collection[Notice]) -> tuple[Notice, ...]:
        """Send held messages that are written; return what to write of them with the change.

        UsageDenied, EnforcementUnavailable: then the change must not be made.
        """
        return tuple(self._committed(replace(notice, stored=True)) for notice in held)

    def _committed(self, notice: Notice) -> Notice:
        news = _NEWS.validate_json(notice.content)
        try:
            # A manager that was held up sends nothing about a lease: another manager may be undoing the change.
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
            LOG.warning(
                "%s of lease %s was not delivered to all filters, retrying: %s", news.occasion, notice.lease_id, reason
            )
            due_at = now + self._settings.first_retry
            return replace(notice, told=outcome.known, reason=reason, attempts=1, due_at=due_at)
        nothing_to_do = tuple(name for name in self._enforcement.hearing(news.occasion) if name not in outcome.known)
        reason = outcome.error.message
        LOG.warning("%s of lease %s was rejected or not answered: %s", news.occasion, notice.lease_id, reason)
        self._store.settle_notice(replace(notice, told=nothing_to_do, reason=reason, over=not outcome.known), at=now)
        raise outcome.error

    def taken_back(self, lease: Lease) -> tuple[Notice, ...]:
        """Return the outbox messages of an undone request, with reversals for filters that may have accepted it."""
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
            # As if the lease had never existed: nothing of it was used.
            view = replace(news.view, lease=replace(news.view.lease, status=LeaseStatus.DELETING))
            reversal = News(Occasion.ENDED, news.context, min(now, view.window.start), view)
        elif lease.status is LeaseStatus.DELETING or news.before is None:
            # The message of its end follows.
            return ()
        else:
            reversal = replace(news, at=now, view=news.before, before=news.view)
        if not self._enforcement.hears(reversal.occasion):
            return ()
        content = _NEWS.dump_json(reversal, by_alias=True).decode()
        due_at = now + self._settings.notice_settling
        LOG.warning("%s of lease %s may have been accepted; a reversal is sent", news.occasion, lease.id)
        return (
            Notice(
                str(uuid.uuid4()), lease.id, content, now, due_at, told=held.told, reason=f"undone: {held.reason or ''}"
            ),
        )

    def of_end(self, before: Lease, after: Lease) -> tuple[Notice, ...]:
        """Return the outbox messages for the write that begins the end of a lease, by its event or by a deletion.

        Only the first such write finds the end event UNDONE. A lease whose creation did not finish has no end: no
        filter was notified that it was granted.
        """
        end = before.event(EventType.END)
        begun = end is None or end.status is not EventStatus.UNDONE
        if begun or before.status is LeaseStatus.CREATING or not self._enforcement.hears(Occasion.ENDED):
            return ()
        return self.of(Occasion.ENDED, after, self._store.lease_allocations(after.id))

    def start(self) -> None:
        """Start the sending threads; none if no filter listens."""
        if any(self._enforcement.hears(occasion) for occasion in Occasion):
            self._thread.start()

    def stop(self) -> None:
        """Finish the deliveries in progress, and return."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._tellers.shutdown()

    def wake(self) -> None:
        """Check for due messages now: there may be a new one."""
        self._woken.set()

    def run_due(self) -> int:
        """Send all due messages in this thread; return the number of attempts.

        For tests with their own clock and for tools; the running threads do the same.
        """
        tries = 0
        while due := self._store.due_notices(self._clock.now(), PAGE):
            for notice in due:
                self._send(notice)
                tries += 1
        return tries

    def catch_up(self, lease_id: str) -> None:
        """Deliver the outstanding messages of a lease, or wait a moment until another thread has.

        A service cannot decide about a change of a lease whose current state it does not know. If they cannot be
        delivered: EnforcementUnavailable, if nothing may be granted without the service's consent.
        """
        if not any(self._enforcement.hears(occasion) for occasion in Occasion):
            return
        end = time.monotonic() + self._settings.notice_wait.total_seconds()
        while left := self._store.outstanding_notices(lease_id):
            first = left[0]
            if first.due_at <= self._clock.now():
                self._send(first)
            elif first.reason is None and time.monotonic() < end:
                # Another thread or manager is sending it.
                time.sleep(LOOK_AGAIN)
            elif self._enforcement.insists:
                raise EnforcementUnavailable(
                    f"the external enforcement service does not know the current state of lease {lease_id} yet; "
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
                LOG.error("Outbox messages cannot be read (%s); retrying in a second", error.message)
                pause = timedelta(seconds=1)
            except Exception:
                # The edge of the thread: it survives whatever goes wrong in one round.
                LOG.exception("Sending outbox messages failed; retrying in a second")
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
            LOG.error("Outbox message %s of lease %s is delayed: %s", notice.id, notice.lease_id, error.message)
            self._stopping.wait(1)
        except Exception:
            # The edge of a thread. The message is still in the database, and so is retried.
            LOG.exception("Outbox message %s of lease %s failed; it will be retried", notice.id, notice.lease_id)
            self._stopping.wait(1)

    def _send(self, notice: Notice) -> None:
        now = self._clock.now()
        claimed = self._store.claim_notice(notice, until=now + self._settings.notice_claim)
        if claimed is None:
            return
        try:
            news = _NEWS.validate_json(claimed.content)
        except ValueError:
            LOG.exception(
                "Outbox message %s of lease %s cannot be parsed, and is given up", claimed.id, claimed.lease_id
            )
            self._store.finish_notice(claimed, told=claimed.told, reason="it cannot be parsed", at=now)
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

        # Every attempt has the same id, so that a service can detect a message sent twice, as after a crash.
        with scope(request_id=f"req-{claimed.id}", limit=self._settings.notice_claim / 2):
            told = self._enforcement.tell(news, claimed.told, failed)
        reason = "; ".join(reasons)
        now = self._clock.now()
        if not reasons:
            self._store.finish_notice(claimed, told=told, reason=None, at=now)
        elif not passing:
            LOG.error("%s of lease %s was rejected for good: %s", news.occasion, claimed.lease_id, reason)
            self._store.finish_notice(claimed, told=told, reason=reason, at=now)
        elif claimed.attempts + 1 >= self._settings.notice_attempts or self._holds_up_the_end(claimed, news, passing):
            LOG.error("%s of lease %s is given up: %s", news.occasion, claimed.lease_id, reason)
            self._store.finish_notice(claimed, told=told, reason=reason, at=now)
        else:
            wait = min(self._settings.notice_longest_retry, self._settings.first_retry * 2 ** min(claimed.attempts, 16))
            LOG.warning("%s of lease %s is retried in %s: %s", news.occasion, claimed.lease_id, wait, reason)
            self._store.postpone_notice(claimed, told=told, reason=reason, until=now + wait)

    def _holds_up_the_end(self, notice: Notice, news: News, errors: Collection[Exception]) -> bool:
        """Tell whether a commit fails at a reachable service while the message of its lease's end waits behind it.

        An unreachable service would not receive the end either: then both wait, and keep their order.
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
