# SPDX-License-Identifier: Apache-2.0
"""Transactional outbox for external accounting services: written with a change of a lease, sent later.

An ``OutboxMessage`` is a row that is written in the transaction which grants, changes or ends a lease. So it exists
exactly when the change does, also after a crash, and however many attempts its delivery takes, it delays no lease.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from blazar.context import check_change, scope
from blazar.enforcement import FilterNotification, NotDelivered, Occasion, stored
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import make_view
from blazar.model.base.errors import BlazarError, ClaimLost, EnforcementUnavailable, StoreUnavailable, UsageDenied
from blazar.model.base.log_lines import level_of
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.use.resource_hours import HELD_BY_REQUEST, OutboxMessage

LOG = logging.getLogger(__name__)

PAGE = 50
SENDERS = 4
"""Outbox messages sent at a time: a slow service delays only the next messages."""

POLL_SECONDS = 0.1
"""Seconds between two checks whether another thread or manager has delivered a message."""


@dataclass(frozen=True, slots=True)
class _Delivery:
    """The result of one attempt: the filters that have the message now, and the errors of others, by name."""

    delivered_to: tuple[str, ...]
    errors: tuple[tuple[str, Exception], ...]

    @property
    def passing(self) -> tuple[Exception, ...]:
        """Return the errors that a retry may not have."""
        return tuple(error for _, error in self.errors if not isinstance(error, UsageDenied))

    @property
    def reason(self) -> str:
        """Return all errors in a sentence."""
        return "; ".join(
            f"{name}: {error.message if isinstance(error, BlazarError) else f'internal error: {type(error).__name__}'}"
            for name, error in self.errors
        )


class Outbox(DueWork[OutboxMessage, OutboxMessage]):
    """Creates outbox messages and sends those that are due. Any number of instances may share a database."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("outbox", runtime, work="Outbox messages cannot be read or sent", page=PAGE)
        self._enforcement = runtime.enforcement
        self._senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="outbox")

    def messages_of(
        self,
        occasion: Occasion,
        lease: Lease,
        allocations: Collection[Allocation],
        *,
        by: Actor | None = None,
        before: tuple[Lease, Collection[Allocation]] | None = None,
    ) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages to write with a change; none if no filter listens to the occasion.

        ``before`` is the lease before the change, with its allocations then; ``by`` is the user who asked.
        """
        if not self._enforcement.listens_to(occasion):
            return ()
        now = self._runtime.clock.now()
        context = self._enforcement.context(lease, by)
        was = make_view(self._runtime.store, *before) if before else None
        notification = FilterNotification(
            occasion, context, now, make_view(self._runtime.store, lease, allocations), was
        )
        return (OutboxMessage(str(uuid.uuid4()), lease.id, stored.dump(notification), created_at=now, due_at=now),)

    def planned(
        self,
        occasion: Occasion,
        lease: Lease,
        allocations: Collection[Allocation],
        *,
        by: Actor,
        before: tuple[Lease, Collection[Allocation]] | None = None,
    ) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of a planned change: held, if a filter must accept the change first.

        A held message is written first, on its own; then it is sent (``commit``), and the result is written with the
        lease. A manager that undoes the request in between, this one or another, finds the message and sends a reversal
        of what may have been accepted (``reversals_of``).
        """
        messages = self.messages_of(occasion, lease, allocations, by=by, before=before)
        if not self._enforcement.must_accept(occasion, lease.project_id):
            return messages
        return tuple(replace(message, due_at=HELD_BY_REQUEST) for message in messages)

    def commit(self, held: Collection[OutboxMessage]) -> tuple[OutboxMessage, ...]:
        """Send held messages that are written; return what to write of them with the change.

        UsageDenied, EnforcementUnavailable: then the change must not be made.
        """
        return tuple(self._committed(replace(message, stored=True)) for message in held)

    def _committed(self, message: OutboxMessage) -> OutboxMessage:
        notification = stored.parse(message.content)
        try:
            # A manager that was held up sends nothing about a lease: another manager may be undoing the change.
            seconds = check_change()
        except BlazarError as error:
            dropped = replace(message, reason=error.message, finished=True)
            self._runtime.store.outbox.settle(dropped, at=self._runtime.clock.now())
            raise
        limit = None if seconds is None else timedelta(seconds=seconds)
        with scope(request_id=f"req-{message.id}", limit=limit):
            outcome = self._enforcement.commit(notification)
        now = self._runtime.clock.now()
        if outcome.error is None and not outcome.later:
            return replace(message, delivered_to=outcome.known, finished=True)
        if outcome.error is None:
            reason = "; ".join(f"{name}: {reason}" for name, reason in outcome.later.items())
            LOG.warning(
                "%s of lease %s was not delivered to all filters, retrying: %s",
                notification.occasion,
                message.lease_id,
                reason,
            )
            due_at = now + self._runtime.settings.first_retry
            return replace(message, delivered_to=outcome.known, reason=reason, attempts=1, due_at=due_at)
        nothing_to_do = tuple(
            name for name in self._enforcement.listeners(notification.occasion) if name not in outcome.known
        )
        reason = outcome.error.message
        LOG.warning("%s of lease %s was rejected or not answered: %s", notification.occasion, message.lease_id, reason)
        self._runtime.store.outbox.settle(
            replace(message, delivered_to=nothing_to_do, reason=reason, finished=not outcome.known), at=now
        )
        raise outcome.error

    def reversals_of(self, lease: Lease) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of an undone request, with reversals for filters that may have accepted it."""
        if not any(self._enforcement.listens_to(occasion) for occasion in (Occasion.CREATED, Occasion.UPDATED)):
            return ()
        written: list[OutboxMessage] = []
        for held in self._runtime.store.outbox.load_outstanding(lease.id):
            if held.held:
                written.append(replace(held, finished=True, reason=held.reason or "undone"))
                written += self._reversal(held, lease)
        return tuple(written)

    def _reversal(self, held: OutboxMessage, lease: Lease) -> tuple[OutboxMessage, ...]:
        notification = stored.parse(held.content)
        now = self._runtime.clock.now()
        if notification.occasion is Occasion.CREATED:
            # As if the lease had never existed: nothing of it was used.
            view = replace(notification.view, lease=replace(notification.view.lease, status=LeaseStatus.DELETING))
            reversal = FilterNotification(Occasion.ENDED, notification.context, min(now, view.window.start), view)
        elif lease.status is LeaseStatus.DELETING or notification.before is None:
            # The message of its end follows.
            return ()
        else:
            reversal = replace(notification, at=now, view=notification.before, before=notification.view)
        if not self._enforcement.listens_to(reversal.occasion):
            return ()
        content = stored.dump(reversal)
        due_at = now + self._runtime.settings.outbox_settling
        LOG.warning("%s of lease %s may have been accepted; a reversal is sent", notification.occasion, lease.id)
        return (
            OutboxMessage(
                str(uuid.uuid4()),
                lease.id,
                content,
                now,
                due_at,
                delivered_to=held.delivered_to,
                reason=f"undone: {held.reason or ''}",
            ),
        )

    def messages_of_end(self, before: Lease, after: Lease) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages for the write that begins the end of a lease, by its event or by a deletion.

        Only the first such write finds the end event UNDONE. A lease whose creation did not finish has no end: no
        filter was notified that it was granted.
        """
        end = before.event(EventType.END)
        begun = end is None or end.status is not EventStatus.UNDONE
        ungranted = before.status in (LeaseStatus.CREATING, LeaseStatus.WAITING, LeaseStatus.TIMED_OUT)
        if begun or ungranted or not self._enforcement.listens_to(Occasion.ENDED):
            return ()
        return self.messages_of(Occasion.ENDED, after, self._runtime.store.calendar.of_lease(after.id))

    def start(self) -> None:
        """Start the sending threads; none if no filter listens."""
        if any(self._enforcement.listens_to(occasion) for occasion in Occasion):
            super().start()

    def stop(self) -> None:
        """Finish the deliveries in progress, and return."""
        super().stop()
        self._senders.shutdown()

    def run_due(self) -> int:
        """Send all due messages in this thread; return the number of attempts.

        For tests with their own clock and for tools; the running threads do the same.
        """
        tries = 0
        while due := self._due():
            for message in due:
                self.work_on(message)
                tries += 1
        return tries

    def catch_up(self, lease_id: str) -> None:
        """Deliver the outstanding messages of a lease, or wait a moment until another thread has.

        A service cannot decide about a change of a lease whose current state it does not know. If they cannot be
        delivered: EnforcementUnavailable, if nothing may be granted without the service's consent.
        """
        if not any(self._enforcement.listens_to(occasion) for occasion in Occasion):
            return
        end = time.monotonic() + self._runtime.settings.outbox_wait.total_seconds()
        while left := self._runtime.store.outbox.load_outstanding(lease_id):
            first = left[0]
            if first.due_at <= self._runtime.clock.now():
                self.work_on(first)
            elif first.reason is None and time.monotonic() < end:
                # Another thread or manager is sending it.
                time.sleep(POLL_SECONDS)
            elif self._enforcement.mandatory:
                raise EnforcementUnavailable(
                    f"the external enforcement service does not know the current state of lease {lease_id} yet; "
                    "please try again later"
                )
            else:
                return

    def run_once(self) -> int:
        """Send the messages that are due, several at a time; return how many these are. StoreUnavailable."""
        due = self._due()
        list(self._senders.map(self._send_logging_errors, due))
        return len(due)

    def _due(self) -> Sequence[OutboxMessage]:
        return self._runtime.store.outbox.due(self._runtime.clock.now(), PAGE)

    def _next_due(self) -> datetime | None:
        return self._runtime.store.outbox.next_due()

    def _claim(self, due: OutboxMessage, claim: Claim) -> OutboxMessage | None:
        # Longer than a delivery may take: it is not renewed.
        until = self._runtime.clock.now() + self._runtime.settings.outbox_claim
        return due if self._runtime.store.outbox.claim(due, claim.token, until=until) else None

    def _send_logging_errors(self, message: OutboxMessage) -> None:
        try:
            if not self._stopping.is_set():
                self.work_on(message)
        except BlazarError as error:
            LOG.log(
                level_of(error),
                "Outbox message %s of lease %s is delayed: %s",
                message.id,
                message.lease_id,
                error.message,
            )
            self._stopping.wait(error.pause if isinstance(error, StoreUnavailable) else 1)
        except Exception:
            # The edge of a thread. The message is still in the database, and so is retried.
            LOG.exception("Outbox message %s of lease %s failed; it will be retried", message.id, message.lease_id)
            self._stopping.wait(1)

    def work(self, claimed: OutboxMessage, claim: Claim) -> None:
        """Deliver a claimed message, and record the result. StoreUnavailable."""
        store, lost = self._runtime.store.outbox, "it cannot be parsed"
        with suppress(ClaimLost):
            try:
                notification = stored.parse(claimed.content)
            except ValueError:
                LOG.exception(
                    "Outbox message %s of lease %s cannot be parsed, and is given up", claimed.id, claimed.lease_id
                )
                now = self._runtime.clock.now()
                store.finish(claimed, claim.token, delivered_to=claimed.delivered_to, reason=lost, at=now)
                return
            self._record(claimed, claim, notification, self._deliver(claimed, notification))

    def _deliver(self, message: OutboxMessage, notification: FilterNotification) -> _Delivery:
        """Send a message to the filters that do not have it yet."""
        errors: list[tuple[str, Exception]] = []

        def failed(name: str, error: Exception) -> None:
            errors.append((name, error))
            if not isinstance(error, BlazarError):
                LOG.error("Filter %s failed unexpectedly", name, exc_info=error)

        # Every attempt has the same id, so that a service can detect a message sent twice, as after a crash.
        with scope(request_id=f"req-{message.id}", limit=self._runtime.settings.outbox_claim / 2):
            delivered_to = self._enforcement.notify(notification, message.delivered_to, failed)
        return _Delivery(delivered_to, tuple(errors))

    def _record(
        self, message: OutboxMessage, claim: Claim, notification: FilterNotification, delivery: _Delivery
    ) -> None:
        """Write the result of an attempt: the message is delivered, given up, or retried later."""
        store, settings, now = self._runtime.store.outbox, self._runtime.settings, self._runtime.clock.now()
        occasion, lease_id = notification.occasion, message.lease_id
        delivered_to, reason, passing = delivery.delivered_to, delivery.reason, delivery.passing
        if not delivery.errors:
            store.finish(message, claim.token, delivered_to=delivered_to, reason=None, at=now)
        elif not passing:
            LOG.error("%s of lease %s was rejected for good: %s", occasion, lease_id, reason)
            store.finish(message, claim.token, delivered_to=delivered_to, reason=reason, at=now)
        elif message.attempts + 1 >= settings.outbox_attempts or self._delays_the_end(message, notification, passing):
            LOG.error("%s of lease %s is given up: %s", occasion, lease_id, reason)
            store.finish(message, claim.token, delivered_to=delivered_to, reason=reason, at=now)
        else:
            wait = min(settings.outbox_longest_retry, settings.first_retry * 2 ** min(message.attempts, 16))
            LOG.warning("%s of lease %s is retried in %s: %s", occasion, lease_id, wait, reason)
            store.postpone(message, claim.token, delivered_to=delivered_to, reason=reason, until=now + wait)

    def _delays_the_end(
        self, message: OutboxMessage, notification: FilterNotification, errors: Collection[Exception]
    ) -> bool:
        """Tell whether a commit fails at a reachable service while the message of its lease's end waits behind it.

        An unreachable service would not receive the end either: then both wait, and keep their order.
        """
        if (
            notification.occasion is Occasion.ENDED
            or self._runtime.clock.now() - message.created_at < self._runtime.settings.outbox_longest_retry
        ):
            return False
        if all(isinstance(error, NotDelivered) and not error.maybe_accepted for error in errors):
            return False
        lease = self._runtime.store.leases.one(message.lease_id, including_deleted=True)
        end = lease.event(EventType.END)
        return lease.status is LeaseStatus.DELETING or end is None or end.status is not EventStatus.UNDONE
