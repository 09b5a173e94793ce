# SPDX-License-Identifier: Apache-2.0
"""Tells reminders of leases: one at a time, each written with the entry of the journal that says so."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import REMINDED
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.records import EventRecord, FinishedEvent
from blazar.manager.events.results import Finished
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reminders import Reminder, find_next
from blazar.model.leases.states import EventStatus, EventType

LOG = logging.getLogger(__name__)


class Reminding:
    """Tells the reminder of a lease that is due; whether there is one is decided with the write that tells it.

    So a user who changes or removes reminders meanwhile is told what they are then, and nothing is told twice: who
    takes the event over after a crash finds in the lease what was told.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def act(self, lease: Lease, event: Event, claim: Claim) -> Finished:
        """Do nothing in the cloud."""
        return Finished(())

    def settle(self, finished: FinishedEvent) -> EventRecord:
        """Return the lease with its reminder told, if one is due, and with its event free for the next one."""
        event = replace(
            finished.event,
            status=EventStatus.UNDONE,
            due_at=None,
            claimed_by=None,
            claimed_at=None,
            attempts=0,
            updated_at=finished.now,
            trouble_since=None,
        )
        lease = finished.current
        free = replace(lease, events=tuple(event if e.id == event.id else e for e in lease.events))
        return EventRecord(tell_next(free, finished.now))

    def notify(self, lease: Lease) -> None:
        """Send what was told by the last work on the event; nothing if there was nothing to tell any more."""
        event = lease.event(EventType.REMIND)
        if event is None or (told := find_last_reminder(lease, event.updated_at)) is None:
            return
        LOG.info("Lease %s: its user is reminded", lease.id)
        self._runtime.notifier.notify(REMINDED, lease, reminder=told.text)


def find_last_reminder(lease: Lease, at: datetime | None) -> Reminder | None:
    """Return the reminder that was told last, if that was then; one that was late may be the second at one instant."""
    told = [
        reminder for reminder in reversed(lease.reminders) if reminder.sent_at is not None and reminder.sent_at == at
    ]
    return max(told, key=lambda reminder: reminder.moment(lease.window), default=None)


def tell_next(lease: Lease, now: datetime) -> Lease:
    """Return the lease with its next reminder told, if its time has come."""
    due = find_next(lease.reminders, lease.window) if lease.reminds else None
    if due is None or due.moment(lease.window) > now:
        return lease
    # Two that are the same are not taken.
    told = replace(due, sent_at=now, skipped_at=None)
    return replace(lease, reminders=tuple(told if reminder == due else reminder for reminder in lease.reminders))
