# SPDX-License-Identifier: Apache-2.0
"""Transactional outbox for external accounting services: sends what was written with a change of a lease."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from blazar.context import scope
from blazar.enforcement import FilterNotification, NotDelivered, Occasion, stored
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import BlazarError, ClaimLost, EnforcementUnavailable, StoreUnavailable, UsageDenied
from blazar.model.base.log_lines import log_level
from blazar.model.base.values import dataclass
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.use.resource_hours import OutboxMessage
from blazar.observe import metrics

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
    """Sends the messages that are due. Any number of instances may share a database."""

    page = PAGE

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("outbox", runtime, work="Outbox messages cannot be read or sent")
        runtime.signals.messages_written.connect(self.wake)
        self._enforcement = runtime.enforcement
        self._senders = ThreadPoolExecutor(SENDERS, thread_name_prefix="outbox")
        self._sending = 0

    def start(self) -> None:
        """Start the sending threads; none if no filter listens."""
        if any(self._enforcement.listens_to(occasion) for occasion in Occasion):
            super().start()

    def stop(self) -> None:
        """Finish the deliveries in progress, and return."""
        super().stop()
        self._senders.shutdown()

    @property
    def threads(self) -> tuple[int, int]:
        """How many threads send messages, and how many have none."""
        busy = min(self._sending, SENDERS)
        return busy, SENDERS - busy

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
        self._sending = len(due)
        for _ in self._senders.map(self._send_logging_errors, due):
            self._sending -= 1
        self._sending = 0
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
                log_level(error),
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
                metrics.DELIVERIES.add("enforcement", "dead")
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
        outcome = "dead"
        if not delivery.errors:
            outcome = "delivered"
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
            outcome = "retried"
        metrics.DELIVERIES.add("enforcement", outcome)

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
