# SPDX-License-Identifier: Apache-2.0
"""Recording of results: what is written and sent when an attempt to process an event is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import (
    DELETED,
    TIMED_OUT,
    WAITING,
    event_notification,
)
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.evacuation import set_start_reason
from blazar.manager.events.results import Finished, Result, Retry
from blazar.manager.leases import immediate, lifecycle
from blazar.manager.outbox.messages import make_end_messages, make_reversals
from blazar.manager.queue import waiting_leases
from blazar.manager.use import watch
from blazar.manager.use.watch import UsageFinding
from blazar.model.base.clock import later
from blazar.model.base.errors import StaleLease
from blazar.model.base.reasons import Reason, ReasonCode, reason
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Event, Lease, reason_of
from blazar.model.leases.states import (
    REQUEST_EVENTS,
    RETRIED_AT_THE_END,
    EndReason,
    EventType,
    LeaseStatus,
    ReservationStatus,
)
from blazar.model.use.resource_hours import OutboxMessage
from blazar.observe import metrics
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)
FIRST_MARK = 5 * MINUTE
"""How late something is when the log says so for the first time."""

OVERDUE_AFTER: Mapping[str, timedelta] = {
    EventType.START: 10 * MINUTE,
    EventType.BEFORE_END: 30 * MINUTE,
    EventType.END: 30 * MINUTE,
}
"""How late an event that is not done yet is a case for operators. Hosts may be emptied for longer, by an option."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What to write: the lease, the reservations to release, and the allocations to restore, if there are any."""

    lease: Lease
    release: frozenset[str] = frozenset()
    restored: tuple[Allocation, ...] | None = None


@dataclass(frozen=True, slots=True)
class FinishedEvent:
    """A finished event to record: its lease as read, and ``current`` with the changed reservations."""

    lease: Lease
    current: Lease
    event: Event
    result: Finished
    now: datetime

    @property
    def everything(self) -> frozenset[str]:
        """Return all reservations of the lease, to release them."""
        return frozenset(r.id for r in self.lease.reservations)


@dataclass(frozen=True, slots=True)
class EventHandler:
    """What a manager does for events of one type: a row of the table in ``Worker``.

    ``act`` works in the cloud. ``settle`` returns the record of an event that is finished; None if only it and its
    reservations change. ``on_failure`` returns the lease, and when to try again, of an attempt that failed and would be
    repeated at an instant. ``conclude`` returns the lease after a look, which is not repeated if it failed. ``notify``
    sends the notification of what is finished. ``after_start`` returns a lease whose start is over, done or failed,
    with this event if it follows.
    """

    act: Callable[[Lease, Event, Claim], Result | UsageFinding]
    settle: Callable[[FinishedEvent], EventRecord] | None = None
    on_failure: Callable[[Lease, Event, Retry, datetime], tuple[Lease, datetime]] | None = None
    conclude: Callable[[Lease, Event, UsageFinding | Retry, datetime], Lease] | None = None
    notify: Callable[[Lease], None] | None = None
    after_start: Callable[[Lease, datetime], Lease] | None = None


class Recorder:
    """Writes the results of work on claimed events, and sends the notifications of those that are finished.

    ``follow_start`` returns a lease whose start is over with what follows from that.
    """

    def __init__(self, runtime: Runtime, follow_start: Callable[[Lease, datetime], Lease]) -> None:
        self._runtime = runtime
        self._follow_start = follow_start

    def record(
        self, lease: Lease, event: Event, result: Result | UsageFinding, claim: Claim, handler: EventHandler
    ) -> Lease:
        """Settle or postpone a claimed event, unless another manager has taken it over; return the lease as saved."""
        while True:
            now = self._runtime.clock.now()
            current = lease.event_with(event.id)
            if current is None or current.claimed_by != claim.token:
                LOG.warning(
                    "Event %s of lease %s was taken over by another manager; its result is dropped", event.id, lease.id
                )
                metrics.EVENT_ATTEMPTS.add(event.event_type, "fenced")
                return lease
            try:
                record = self._recorded(lease, current, result, now, handler)
                messages = (*self._reversals(lease, current, result), *self._refunds(lease, record.lease))
                saved = self._write(lease, record, messages, now)
            except StaleLease:
                lease = self._runtime.store.leases.one(lease.id, including_deleted=True)
                continue
            _count_attempt(current, result, now)
            if messages:
                self._runtime.signals.messages_written()
            if record.release:
                self._runtime.signals.resources_freed()
            self._notify(saved, current, result, handler)
            if current.event_type == EventType.START and isinstance(result, Finished):
                _count_promise(saved)
            return saved

    def _write(self, lease: Lease, record: EventRecord, messages: tuple[OutboxMessage, ...], now: datetime) -> Lease:
        store = self._runtime.store
        if record.restored is not None:
            restored = LeaseWrite(lease, record.lease, record.restored)
            (saved,) = store.bookings.commit(Commit([restored], at=now, messages=messages, undoes=True))
            return saved
        return store.leases.save(lease, record.lease, release=record.release, at=now, messages=messages)

    def _reversals(self, lease: Lease, event: Event, result: Result | UsageFinding) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of an undone request, once the outcome of the lease is certain."""
        restoring = event.event_type == EventType.UPDATE and lease.status is not LeaseStatus.DELETING
        if event.event_type not in REQUEST_EVENTS or (restoring and isinstance(result, Retry)):
            return ()
        return make_reversals(self._runtime, lease)

    def _refunds(self, before: Lease, after: Lease) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of a lease that is refused, lapses, or whose failed start this write undoes."""
        is_refused = before.is_undecided and after.end_reason is EndReason.REFUSED
        is_undone = waiting_leases.is_undone(after) and not waiting_leases.is_undone(before)
        is_given_up = before.status is LeaseStatus.IN_PROGRESS and after.status is LeaseStatus.TIMED_OUT
        has_lapsed = after.end_reason is EndReason.UNCONFIRMED is not before.end_reason
        ends = is_refused or is_undone or is_given_up or has_lapsed
        return make_end_messages(self._runtime, before, after) if ends else ()

    def _recorded(
        self, lease: Lease, event: Event, result: Result | UsageFinding, now: datetime, handler: EventHandler
    ) -> EventRecord:
        kind = EventType(event.event_type)
        if handler.conclude is not None and isinstance(result, UsageFinding | Retry):
            return EventRecord(handler.conclude(lease, event, result, now))
        assert not isinstance(result, UsageFinding)
        going = lease.status is LeaseStatus.DELETING and lease.deleted_at is None and kind is not EventType.DELETE
        if going:
            # What was made just now must be found, whatever users do to its marks.
            return EventRecord(lifecycle.abandon(lifecycle.with_cloud_ids(lease, result.reservations), event, now=now))
        changed = result.reservations
        if kind is EventType.CREATE and lease.wait is not None:
            changed = waiting_leases.restore_secrets(lease, changed)
        current = lifecycle.with_reservations(lease, changed)
        if isinstance(result, Finished):
            finished = FinishedEvent(lease, current, event, result, now)
            return handler.settle(finished) if handler.settle else settle_event(finished)
        release = _find_returned(result)
        if kind is EventType.CREATE and not waiting_leases.is_undone(lease):
            # The allocations were never used: release them while the rest is cleaned up.
            release = frozenset(r.id for r in lease.reservations)
        return EventRecord(self._postponed(current, event, result, now, handler), release)

    def settle_creation(self, finished: FinishedEvent) -> EventRecord:
        """Return the record of a creation that is undone; a lease that waits keeps its place, or gives up there."""
        lease, now = finished.lease, finished.now
        if lease.wait is None:
            error = reason_of(finished.event)
            gone = lifecycle.mark_deleted(finished.current, finished.event, now=now, error=error)
            return EventRecord(gone, finished.everything)
        lead = self._runtime.lead_before_end(lease)
        return EventRecord(waiting_leases.requeue(lease, finished.event, lead=lead, now=now), finished.everything)

    def settle_change(self, finished: FinishedEvent) -> EventRecord:
        """Return the record of a change that is undone; if it cannot be, the lease keeps all its allocations.

        Until the end has returned their resources.
        """
        event, now, error = finished.event, finished.now, finished.result.error
        if error:
            return EventRecord(lifecycle.settle(finished.current, event, now=now, error=error))
        why = reason_of(event) or reason("taken over and undone", ReasonCode.INTERNAL_ERROR)
        settled = lifecycle.settle(finished.current, event, now=now, error=why)
        kinds = self._runtime.kinds_of(finished.lease)
        return EventRecord(settled, restored=lifecycle.load_allocations_before(finished.lease, event, kinds))

    def settle_start(self, finished: FinishedEvent) -> EventRecord:
        """Return the record of a start; one that was late says why, also when it is done."""
        result, error, now = finished.result, finished.result.error, finished.now
        if any(r.status is ReservationStatus.ERROR for r in finished.current.reservations):
            error = error or reason_of(finished.event) or reason("failed", ReasonCode.RESOURCE_NOT_READY)
        note = result.note or reason_of(finished.event)
        over = self.finish_start(finished.current, finished.event, now, error=error, note=note)
        return EventRecord(over, _find_returned(result))

    def finish_start(
        self,
        lease: Lease,
        event: Event,
        now: datetime,
        *,
        error: Reason | None = None,
        note: Reason | None = None,
        delayed_by: Reason | None = None,
    ) -> Lease:
        """Return a lease whose start is over, with all that follows: each start ends here, also one without work."""
        settled = self._follow_start(lifecycle.settle(lease, event, now=now, error=error, note=note), now)
        decided = immediate.settle_start(settled, now=now)
        return waiting_leases.retry_failed_start(decided, now=now, delayed_by=delayed_by)

    def save_start(self, before: Lease, after: Lease, now: datetime) -> None:
        """Write a lease whose start needed no work in the cloud, and notify of it."""
        saved = self.save(before, after, now)
        self.notify_step(EventType.START)(saved)
        _count_promise(saved)

    def save(self, before: Lease, after: Lease, now: datetime) -> Lease:
        """Write a lease, with the outbox messages if its start is undone or it is refused."""
        messages = self._refunds(before, after)
        saved = self._runtime.store.leases.save(before, after, at=now, messages=messages)
        if messages:
            self._runtime.signals.messages_written()
        return saved

    def _postponed(self, lease: Lease, event: Event, result: Retry, now: datetime, handler: EventHandler) -> Lease:
        at = now + (self._runtime.settings.pause_after(event.attempts) if result.after is None else result.after)
        if event.event_type in RETRIED_AT_THE_END and now < lease.window.end < at:
            # A last attempt at the end itself, so that a long back-off does not delay the end.
            at = lease.window.end
        elif handler.on_failure is not None:
            lease, at = handler.on_failure(lease, event, result, at)
        if event.time is not None and _reaches_mark(event.time, event.claimed_at or now, at):
            minutes = -((event.time - now) // MINUTE)
            LOG.warning("Lease %s: %s is %d min late: %s", lease.id, event.event_type, minutes, result.reason.text)
        return lifecycle.postpone(lease, event, at=at, reason=result.reason, failed=result.after is None, now=now)

    def retry_in_grace(self, lease: Lease, event: Event, result: Retry, at: datetime) -> tuple[Lease, datetime]:
        """Try an action before the end again; it may take as long as it likes until the grace is over."""
        now, over = self._runtime.clock.now(), later(lease.window.end, self._runtime.settings.snapshot_grace)
        return lease, min(at, over) if now < over else at

    def _notify(self, lease: Lease, event: Event, result: Result | UsageFinding, handler: EventHandler) -> None:
        """Send the notification of a finished event, if there is one."""
        if isinstance(result, Retry) and handler.conclude is None:
            return
        ends_otherwise = event.event_type == EventType.EVACUATE and lease.status is LeaseStatus.DELETING
        if isinstance(result, Finished) and not ends_otherwise:
            self._tell_moves(result)
        if handler.notify is not None:
            handler.notify(lease)

    def notify_step(self, event_type: EventType) -> Callable[[Lease], None]:
        """Return what notifies of a step of the timetable, unless the lease is deleted meanwhile."""

        def notify(lease: Lease) -> None:
            if lease.status is not LeaseStatus.DELETING:
                self._runtime.notifier.notify(event_notification(event_type), lease)

        return notify

    def notify_deleted(self, lease: Lease) -> None:
        """Notify of a deletion."""
        self._runtime.notifier.notify(DELETED, lease)

    def notify_waiting(self, lease: Lease) -> None:
        """Notify of a lease that waits again, or has given up."""
        if lease.status is LeaseStatus.WAITING:
            self._runtime.notifier.notify(WAITING, lease)
        self.notify_timed_out(lease)

    def notify_timed_out(self, lease: Lease) -> None:
        """Notify of a lease that has given up."""
        if lease.status is LeaseStatus.TIMED_OUT:
            self._runtime.notifier.notify(TIMED_OUT, lease)

    def _tell_moves(self, result: Finished) -> None:
        """Tell each project which of its servers were moved away; not for whom."""
        for project_id in sorted({server.project_id for server in result.moved}):
            servers = [server for server in result.moved if server.project_id == project_id]
            self._runtime.notifier.notify_moved(project_id, servers)


def _count_promise(lease: Lease) -> None:
    """Count whether a lease whose start is over has started as it was promised."""
    if lease.wait is not None and lease.wait.advance and lease.status is not LeaseStatus.DELETING:
        metrics.PROMISES.add("kept" if lease.status is LeaseStatus.ACTIVE else "broken")


def _reaches_mark(time: datetime, begin: datetime, end: datetime) -> bool:
    """Tell whether what was to be done at a time becomes 5, 10, 20, 40 … minutes late from a begin to an end."""
    mark = FIRST_MARK
    while time + mark < begin:
        mark *= 2
    return time + mark < end


def _count_attempt(event: Event, result: Result | UsageFinding, now: datetime) -> None:
    """Count a try of an event whose result is written, and note how long after its time it is done."""
    if isinstance(result, Retry):
        metrics.EVENT_ATTEMPTS.add(event.event_type, "failed" if result.after is None else "retried")
        limit = OVERDUE_AFTER.get(event.event_type)
        if limit is not None and event.time is not None and now - event.time > limit:
            metrics.OVERDUE_ATTEMPTS.add(event.event_type)
        return
    is_given_up = isinstance(result, Finished) and result.error is not None
    metrics.EVENT_ATTEMPTS.add(event.event_type, "gave_up" if is_given_up else "done")
    if event.time is not None:
        metrics.EVENT_COMPLETION.note((now - event.time).total_seconds(), event.event_type)


def settle_event(finished: FinishedEvent) -> EventRecord:
    """Return the record of an event that is finished, and changes its reservations at most."""
    result = finished.result
    settled = lifecycle.settle(finished.current, finished.event, now=finished.now, error=result.error, note=result.note)
    over = watch.end_watch(settled) if settled.status is LeaseStatus.TERMINATED else settled
    return EventRecord(over, _find_returned(result))


def settle_deletion(finished: FinishedEvent) -> EventRecord:
    """Return the record of a deletion."""
    return EventRecord(lifecycle.mark_deleted(finished.current, finished.event, now=finished.now), finished.everything)


def settle_evacuation(finished: FinishedEvent) -> EventRecord:
    """Return the record of an evacuation; a start that is not late any more says nothing."""
    error, now = finished.result.error, finished.now
    settled = lifecycle.settle(finished.current, finished.event, now=now, error=error)
    explained = set_start_reason(settled, error)
    return EventRecord(explained if error else lifecycle.arm(explained, now=now), _find_returned(finished.result))


def _find_returned(result: Result) -> frozenset[str]:
    """Return the reservations whose resources were returned."""
    return frozenset(r.id for r in result.reservations if r.status is ReservationStatus.DELETED)
