# SPDX-License-Identifier: Apache-2.0
"""Recording of results: what is written and sent when an attempt to process an event is over."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import (
    DELETED,
    TIMED_OUT,
    UNUSED_RELEASED,
    UNUSED_WARNING,
    WAITING,
    of_event,
)
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.results import Finished, Result, Retry
from blazar.manager.lease import immediate, lifecycle, making_room, waiting, watching
from blazar.manager.lease.watching import Looked
from blazar.manager.outbox.outbox import Outbox
from blazar.model.clock import later
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import StaleLease
from blazar.model.event_reasons import reason_of
from blazar.model.lease import REQUEST_EVENTS, EndReason, Event, EventType, Lease, LeaseStatus, ReservationStatus
from blazar.model.reasons import ReasonCode, reason
from blazar.model.unused import Usage, UsePolicy, UseStep
from blazar.model.usage import OutboxMessage

LOG = logging.getLogger(__name__)

RETRIED_AT_THE_END = (EventType.START, EventType.BEFORE_END, EventType.UPDATE)
"""Events that the end waits for: however long their back-off, they get a last attempt when the lease ends."""


@dataclass(frozen=True, slots=True)
class Record:
    """What to write: the lease, the reservations to release, and the allocations to restore, if there are any."""

    lease: Lease
    release: frozenset[str] = frozenset()
    restored: tuple[Allocation, ...] | None = None


class Recording:
    """Writes the results of work on claimed events, and sends the notifications of those that are finished."""

    def __init__(self, runtime: Runtime, outbox: Outbox, use_policy: Callable[[Lease], UsePolicy | None]) -> None:
        self._runtime = runtime
        self._outbox = outbox
        self._use_policy = use_policy

    def record(self, lease: Lease, event: Event, result: Result | Looked, claim: Claim) -> Lease:
        """Settle or postpone a claimed event, unless another manager has taken it over; return the lease as saved."""
        while True:
            now = self._runtime.clock.now()
            current = lease.event_with(event.id)
            if current is None or current.claimed_by != claim.token:
                LOG.warning(
                    "Event %s of lease %s was taken over by another manager; its result is dropped", event.id, lease.id
                )
                return lease
            try:
                record = self._recorded(lease, current, result, now)
                messages = (*self._reversals(lease, current, result), *self._refunds(lease, record.lease))
                saved = self._write(lease, record, messages, now)
            except StaleLease:
                lease = self._runtime.store.leases.one(lease.id, including_deleted=True)
                continue
            if messages:
                self._outbox.wake()
            if record.release:
                self._runtime.freed()
            self._notify(saved, current, result)
            return saved

    def _write(self, lease: Lease, record: Record, messages: tuple[OutboxMessage, ...], now: datetime) -> Lease:
        store = self._runtime.store
        if record.restored is not None:
            return store.calendar.rebook(lease, record.lease, Plan(record.restored), at=now, messages=messages)
        return store.leases.save(lease, record.lease, release=record.release, at=now, messages=messages)

    def _reversals(self, lease: Lease, event: Event, result: Result | Looked) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of an undone request, once the outcome of the lease is certain."""
        restoring = event.event_type == EventType.UPDATE and lease.status is not LeaseStatus.DELETING
        if event.event_type not in REQUEST_EVENTS or (restoring and isinstance(result, Retry)):
            return ()
        return self._outbox.reversals_of(lease)

    def _refunds(self, before: Lease, after: Lease) -> tuple[OutboxMessage, ...]:
        """Return the outbox messages of a lease whose failed start is undone by this write, or that is refused."""
        is_refused = before.is_undecided and after.end_reason is EndReason.REFUSED
        is_undone = waiting.is_undone(after) and not waiting.is_undone(before)
        is_given_up = before.status is LeaseStatus.IN_PROGRESS and after.status is LeaseStatus.TIMED_OUT
        return self._outbox.of_end(before, after) if is_refused or is_undone or is_given_up else ()

    def _recorded(self, lease: Lease, event: Event, result: Result | Looked, now: datetime) -> Record:
        kind = EventType(event.event_type)
        if isinstance(result, Looked | Retry) and kind is EventType.USAGE_CHECK:
            if (until := watching.postponed_until(lease, now)) is not None:
                return Record(watching.postponed(lease, event, until))
            if lease.status is not LeaseStatus.ACTIVE:
                return Record(lifecycle.abandon(lease, event, now=now))
            looked = result if isinstance(result, Looked) else Looked(Usage.UNKNOWN, result.reason.text)
            return Record(watching.after(lease, event, self._use_policy(lease), looked, now))
        assert not isinstance(result, Looked)
        going = lease.status is LeaseStatus.DELETING and lease.deleted_at is None and kind is not EventType.DELETE
        if going:
            # What was made just now must be found, whatever users do to its marks.
            return Record(lifecycle.abandon(lifecycle.with_cloud_ids(lease, result.reservations), event, now=now))
        changed = result.reservations
        if kind is EventType.CREATE and lease.wait is not None:
            changed = waiting.keeping_secrets(lease, changed)
        current = lifecycle.with_reservations(lease, changed)
        if isinstance(result, Finished):
            return self._settled(lease, current, event, result, now)
        release = _returned(result)
        if kind is EventType.CREATE and not waiting.is_undone(lease):
            # The allocations were never used: release them while the rest is cleaned up.
            release = frozenset(r.id for r in lease.reservations)
        return Record(self._postponed(current, event, result, now), release)

    def _settled(self, lease: Lease, current: Lease, event: Event, result: Finished, now: datetime) -> Record:
        """Return the record of an event that is finished; ``current`` is the lease with the changed reservations."""
        error = result.error
        match EventType(event.event_type):
            case EventType.DELETE | EventType.CREATE as kind:
                everything = frozenset(r.id for r in lease.reservations)
                undone = reason_of(event) if kind is EventType.CREATE else None
                if kind is EventType.CREATE and lease.wait is not None:
                    # Nothing is left of its turn, and it keeps its place; if its time is over, it gives up there.
                    lead = self._runtime.lead_before_end(lease)
                    return Record(waiting.waits_again(lease, event, lead=lead, now=now), everything)
                return Record(lifecycle.deleted(current, event, now=now, error=undone), everything)
            case EventType.UPDATE if error:
                # Not undone: keep all allocations until the end has returned their resources.
                return Record(lifecycle.settle(current, event, now=now, error=error))
            case EventType.UPDATE:
                error = reason_of(event) or reason("taken over and undone", ReasonCode.INTERNAL_ERROR)
                settled = lifecycle.settle(current, event, now=now, error=error)
                return Record(settled, restored=lifecycle.held_before(lease, event, self._runtime.kinds_of(lease)))
            case EventType.EVACUATE:
                settled = lifecycle.settle(current, event, now=now, error=error)
                # A start that is not late any more says nothing.
                told = making_room.told(settled, error)
                return Record(told if error else lifecycle.arm(told, now=now), _returned(result))
            case EventType.START:
                if any(r.status is ReservationStatus.ERROR for r in current.reservations):
                    error = error or reason_of(event) or reason("failed", ReasonCode.RESOURCE_NOT_READY)
                # A start that was late says why, also when it is done.
                note = result.note or reason_of(event)
                settled = lifecycle.settle(current, event, now=now, error=error, note=note)
                watched = watching.armed(settled, self._use_policy(settled), now)
                return Record(waiting.after_start(immediate.decided(watched, now=now), now=now), _returned(result))
        settled = lifecycle.settle(current, event, now=now, error=error)
        over = watching.unwatched(settled) if settled.status is LeaseStatus.TERMINATED else settled
        return Record(over, _returned(result))

    def _postponed(self, lease: Lease, event: Event, result: Retry, now: datetime) -> Lease:
        wait = result.after
        if wait is None:
            settings = self._runtime.settings
            wait = min(settings.longest_retry, settings.first_retry * 2 ** min(event.attempts, 16))
        at = now + wait
        if event.event_type in RETRIED_AT_THE_END and now < lease.window.end < at:
            # A last attempt at the end itself, so that a long back-off does not delay the end.
            at = lease.window.end
        elif event.event_type == EventType.BEFORE_END:
            # What it waits for may take as long as it likes; when the grace is over, the end comes all the same.
            over = later(lease.window.end, self._runtime.settings.snapshot_grace)
            at = min(at, over) if now < over else at
        elif event.event_type == EventType.EVACUATE:
            # What is given up is given up in time; until then the start says what it waits for.
            at = min(at, event.time) if event.time is not None and now < event.time else at
            lease = making_room.told(lease, result.reason)
        return lifecycle.postpone(lease, event, at=at, reason=result.reason, failed=result.after is None, now=now)

    def _notify(self, lease: Lease, event: Event, result: Result | Looked) -> None:
        """Send the notification of a finished event, if there is one."""
        if event.event_type == EventType.USAGE_CHECK:
            self._tell_use(lease)
            return
        if isinstance(result, Retry):
            return
        ends_otherwise = event.event_type == EventType.EVACUATE and lease.status is LeaseStatus.DELETING
        if isinstance(result, Finished) and not ends_otherwise:
            self._tell_moves(result)
        match event.event_type:
            case EventType.START | EventType.END:
                if lease.status is not LeaseStatus.DELETING:
                    self._runtime.notifier.notify(of_event(event.event_type), lease)
            case EventType.DELETE:
                self._runtime.notifier.notify(DELETED, lease)
            case EventType.CREATE if lease.status is LeaseStatus.WAITING:
                self._runtime.notifier.notify(WAITING, lease)
            case EventType.CREATE | EventType.EVACUATE if lease.status is LeaseStatus.TIMED_OUT:
                self._runtime.notifier.notify(TIMED_OUT, lease)

    def _tell_moves(self, result: Finished) -> None:
        """Tell each project which of its servers were moved away; not for whom."""
        for project_id in sorted({server.project_id for server in result.moved}):
            servers = [server for server in result.moved if server.project_id == project_id]
            self._runtime.notifier.notify_moved(project_id, servers)

    def _tell_use(self, lease: Lease) -> None:
        """Send what a look has led to."""
        match watching.last_step(lease):
            case UseStep.WARNED | UseStep.NOTICED:
                LOG.info(
                    "Lease %s is not used, and will be released at %s", lease.id, lease.use and lease.use.release_at
                )
                self._runtime.notifier.notify(UNUSED_WARNING, lease)
            case UseStep.RELEASED:
                LOG.warning("Lease %s is released, because it is not used", lease.id)
                self._runtime.notifier.notify(UNUSED_RELEASED, lease)
                self._runtime.wake()
            case UseStep.HELD_BACK:
                LOG.error("Lease %s is not released: too many would be in one hour, so a probe may be broken", lease.id)


def _returned(result: Result) -> frozenset[str]:
    """Return the reservations whose resources were returned."""
    return frozenset(r.id for r in result.reservations if r.status is ReservationStatus.DELETED)
