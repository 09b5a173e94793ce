# SPDX-License-Identifier: Apache-2.0
"""Claims on due events: whether an event may be worked on now, and the write that says by whom."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import LAPSED, event_notification
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.records import Recorder
from blazar.manager.leases import confirming, immediate, lifecycle
from blazar.manager.leases.lifecycle import Defer, Drop
from blazar.manager.outbox.messages import make_end_messages
from blazar.manager.use import watch
from blazar.model.base.reasons import Reason, ReasonCode, reason
from blazar.model.journal.lease_entries import warn_of_end
from blazar.model.leases.lease import Event, Lease, reason_of
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus
from blazar.observe import metrics
from blazar.resources.contract.values import Action
from blazar.store.calendar.earlier_users import EarlierUser

LOG = logging.getLogger(__name__)


class EventClaims:
    """Claims due events, or postpones, drops or settles those that nobody has to work on now."""

    def __init__(
        self,
        runtime: Runtime,
        read_ahead: ReadAhead,
        recorder: Recorder,
        *,
        extendable_until: Callable[[Lease], datetime | None],
    ) -> None:
        self._runtime = runtime
        self._read_ahead = read_ahead
        self._recorder = recorder
        self._extendable_until = extendable_until

    def claim(self, lease: Lease, event: Event, claim: Claim, read_at: datetime) -> Lease | None:
        """Return the lease with its event claimed; None if there is nothing to do for it now. StaleLease."""
        now = self._runtime.clock.now()
        match lifecycle.decide(lease, event, read_at, recheck_interval=self._runtime.settings.recheck_interval):
            case Drop():
                if event.due_at is not None:
                    self._save(lease, lifecycle.with_event(lease, replace(event, due_at=None)), now)
                return None
            case Defer(until, text):
                if event.due_at is not None and event.due_at <= read_at:
                    self._postpone(lease, event, until, reason(text, ReasonCode.RESOURCE_NOT_READY), now)
                return None
        if event.event_type == EventType.USAGE_CHECK and self._needs_no_look(lease, event, now):
            return None
        if event.event_type == EventType.IMMEDIATE_BY or immediate.is_late(lease, event, now):
            self._refuse(lease, now)
            return None
        if confirming.has_lapsed(lease, event):
            self._lapse(lease, now)
            return None
        if event.event_type == EventType.START and not self._can_start(lease, event, claim, now):
            return None
        return self._claimed(lease, event, claim, now)

    def take(self, lease: Lease, event: Event, claim: Claim) -> Lease:
        """Return the lease with its event claimed, whatever it waits for: not to work on it, but to settle it."""
        return self._claimed(lease, event, claim, self._runtime.clock.now())

    def _needs_no_look(self, lease: Lease, event: Event, now: datetime) -> bool:
        """Tell whether the use of a lease is not looked at now; record when it is, if at all."""
        if watch.is_void(lease):
            self._save(lease, watch.end_watch(lease), now)
            return True
        if (until := watch.postponed_until(lease, now)) is not None:
            self._save(lease, watch.postpone_check(lease, event, until), now)
            return True
        return False

    def _refuse(self, lease: Lease, now: datetime) -> None:
        """Refuse an immediate lease that was not handed over in time; its deletion is due at once."""
        after = immediate.settle_late_start(lease, now=now)
        if after.end_reason is EndReason.REFUSED:
            LOG.info("Lease %s was not handed over in time, and is refused", lease.id)
        self._recorder.save(lease, after, now)
        self._runtime.signals.events_due()

    def _lapse(self, lease: Lease, now: datetime) -> None:
        """Give up a lease that nobody has confirmed in time; its deletion is due at once."""
        saved = self._recorder.save(lease, confirming.lapse(lease, now=now), now)
        LOG.info("Lease %s was not confirmed in time, and is deleted", lease.id)
        self._runtime.notifier.notify(LAPSED, saved)
        self._runtime.signals.events_due()

    def _can_start(self, lease: Lease, event: Event, claim: Claim, now: datetime) -> bool:
        """Tell whether there is something to start, now; if not, record what becomes of the start."""
        if lease.window.end <= now:
            self._fail_late_start(lease, event, claim, now)
            return False
        if not lease.reservations:
            started = self._recorder.finish_start(lifecycle.move(lease, LeaseStatus.STARTING), event, now)
            self._recorder.save_start(lease, started, now)
            return False
        if users := self._earlier_users(lease, now):
            self._postpone(lease, event, *self._waits_for(users, lease, now), now)
            return False
        return True

    def _fail_late_start(self, lease: Lease, event: Event, claim: Claim, now: datetime) -> None:
        """Settle the start of a lease that has ended before it could start."""
        until = self._runtime.claims.begin(claim)
        claimed = lifecycle.claim(lease, event, token=claim.token, now=now, until=until)
        text = "the lease ended before it could start" + (f": {event.reason}" if event.reason else "")
        error = reason(text, ReasonCode.LEASE_ENDED)
        ours = claimed.event_with(event.id) or event
        failed = lifecycle.fail_all(claimed, now)
        after = self._recorder.finish_start(failed, ours, now, error=error, delayed_by=reason_of(event))
        self._recorder.save_start(lease, after, now)

    def _earlier_users(self, lease: Lease, now: datetime) -> Sequence[EarlierUser]:
        if self._read_ahead.is_clear(lease):
            return ()
        return self._runtime.store.calendar.earlier_users(lease.id, before=lease.window.start, now=now)

    def _waits_for(self, users: Sequence[EarlierUser], lease: Lease, now: datetime) -> tuple[datetime, Reason]:
        """Return when to check again whether earlier leases have released the resources, and why to wait."""
        first = users[0]
        if first.clean_at is not None:
            text = f"the resources that lease {first.lease_id} released late are being cleaned"
            until = max(now, first.clean_at)
            return until, reason(text, ReasonCode.PREVIOUS_USER_NOT_LEFT, until=until)
        # A lease that is long overdue is not polled four times a second: this delays a start by 5 % at most.
        later = now + max(self._runtime.settings.recheck_interval, (now - lease.window.start) / 20)
        text = f"lease {first.lease_id} has not released its resources yet"
        return later, reason(text, ReasonCode.PREVIOUS_USER_NOT_LEFT)

    def _claimed(self, lease: Lease, event: Event, claim: Claim, now: datetime) -> Lease:
        """Write the claim, with what has to be written or sent once, when work on the event begins."""
        first = event.status is EventStatus.UNDONE
        if event.claimed_by is not None:
            LOG.warning(
                "Event %s of lease %s: claim of %s expired, taking it over", event.id, lease.id, event.claimed_by
            )
            self._runtime.signals.work_taken_over()
        until = self._runtime.claims.begin(claim)
        claimed = lifecycle.claim(lease, event, token=claim.token, now=now, until=until)
        # The outbox message of the end is written with the claim of the end event, so that it is sent once.
        messages = make_end_messages(self._runtime, lease, claimed) if event.event_type == EventType.END else ()
        # So is the warning before the end, which comes before the action: it is of no use after slow snapshots.
        warns = event.event_type == EventType.BEFORE_END and first and self._warns(lease)
        latest = self._extendable_until(lease) if warns else None
        # What ends before its time has been told of that already.
        announces = warn_of_end(latest) if warns and lease.end_reason is None else None
        saved = self._runtime.store.leases.save(lease, claimed, at=now, messages=messages, announces=announces)
        metrics.CLAIMS.add("taken" if event.claimed_by is None else "taken_over")
        if first and event.due_at is not None:
            metrics.EVENT_LATENESS.note((now - event.due_at).total_seconds(), event.event_type)
        if messages:
            self._runtime.signals.messages_written()
        if warns:
            self._runtime.notifier.notify(event_notification(EventType.BEFORE_END), saved, extendable_until=latest)
        return saved

    def _warns(self, lease: Lease) -> bool:
        """Tell whether to send the warning before the end: not if the action of every reservation is ``none``."""
        # A type that is no longer enabled has no action here; the action itself fails later, with a reason.
        known = [r for r in lease.reservations if r.resource_type in self._runtime.types]
        actions = {self._runtime.type_of(r).action(r.parameters) for r in known}
        return lease.status is LeaseStatus.ACTIVE and actions != {Action.NONE}

    def _postpone(self, lease: Lease, event: Event, at: datetime, why: Reason, now: datetime) -> None:
        self._save(lease, lifecycle.postpone(lease, event, at=at, reason=why, failed=False, now=now), now)

    def _save(self, before: Lease, after: Lease, now: datetime) -> Lease:
        return self._runtime.store.leases.save(before, after, at=now)
