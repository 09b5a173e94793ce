# SPDX-License-Identifier: Apache-2.0
"""Leases and their events."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import later
from blazar.model.base.errors import NotFound, check_revision
from blazar.model.base.reasons import Cause, Reason, ReasonCode
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.reminders import Reminder, find_next
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import TIMETABLE, EndReason, EventStatus, EventType, LeaseKind, LeaseStatus
from blazar.model.queue import Wait
from blazar.model.use.policy import LeaseUse, UseWatch

SHORTEST = timedelta(seconds=1)


def move_warning(warning: datetime, before: Window, after: Window, lead: timedelta) -> datetime:
    """Return when to warn before the end of a lease that had another window: as long before the end as it was.

    A warning that the start had cut off is ``lead`` before the end again, the operator's time; zero: there is none.
    None is before the start.
    """
    if after == before:
        return warning
    distance = before.end - warning
    if lead and _comes_too_soon(warning, before, lead):
        distance = lead
    return after.start if distance >= after.duration else after.end - distance


def _comes_too_soon(warning: datetime, window: Window, lead: timedelta) -> bool:
    # What is asked for is after the start; so is the operator's time where a change asks for it.
    return warning <= window.start or (warning <= window.start + SHORTEST and window.end - warning < lead)


def unknown_lease(lease_id: str) -> NotFound:
    """Return the error for a lease that does not exist; clients rely on its wording."""
    return NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found", code="lease_not_found")


@dataclass(frozen=True, slots=True)
class SavedAllocation:
    """What a reservation held of one resource: ``count`` times ``per_instance``, None for the whole resource."""

    reservation_id: str
    resource_id: int
    count: int
    per_instance: Amounts | None


@dataclass(frozen=True, slots=True)
class SavedState:
    """What an event keeps for later attempts.

    ``allocations`` are those from before a change, which undoing it restores; None if there is no change to undo, while
    an empty tuple means that the lease held nothing. ``undone`` is how many changes in a row were undone.
    ``action_asked_at`` is when a user last asked for the action before the end after it had been done. ``watch`` is
    what looks at the use of the lease have found.
    """

    allocations: tuple[SavedAllocation, ...] | None = None
    undone: int = 0
    action_asked_at: datetime | None = None
    watch: UseWatch | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An action on a lease at a time.

    ``due_at`` is when a manager should next process the event: its time while it is UNDONE, the time of the next
    attempt after a failure, or the expiry of the claim of the manager that works on it; None when nothing is left to
    do. ``claimed_by`` and ``claimed_at`` are the owner of the claim and the time of the claim. ``attempts`` counts
    failed attempts, and ``reason`` is why the last one failed, for operators; ``cause`` is the same as a code and
    numbers, None for a reason that an earlier version wrote. ``trouble_since`` is since when it is late, or when it
    failed for good. ``saved_state`` is what later attempts need. Events of a client's own types are stored but do
    nothing.
    """

    id: str
    event_type: str
    time: datetime | None
    status: EventStatus | None
    created_at: datetime
    updated_at: datetime | None = None
    due_at: datetime | None = None
    claimed_by: str | None = None
    claimed_at: datetime | None = None
    attempts: int = 0
    reason: str | None = None
    saved_state: SavedState | None = None
    cause: Cause | None = None
    trouble_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExtendIfFree:
    """Up to when a lease is prolonged by itself if nobody else wants its resources; ``reason`` is why not so far."""

    until: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PartOfSeries:
    """The occurrence of a series that a lease is: its local start by the rule, which names it.

    ``changed``: somebody changed the lease by itself, and changes of the series leave it as it is.
    """

    series_id: str
    recurrence_id: datetime
    changed: bool = False


@dataclass(frozen=True, slots=True)
class TransferOffer:
    """To whom a lease is offered: to a project, and there to a user; None: the one who accepts it becomes its user.

    ``offered_by`` is the id of the user who offers it. From ``expires_at`` on the offer stands no more.
    """

    project_id: str
    user_id: str | None
    message: str | None
    offered_by: str
    offered_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LeaseRevision:
    """One revision of one lease: what is derived from it stays valid while the revision is the same."""

    id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A promise of resources to a project for a window.

    Every write raises ``revision``, and succeeds only if the lease still has the revision that was read. ``deleted_at``
    is set on a lease that the API no longer shows and that is kept for the record. ``end_reason`` is None before its
    end, and of leases that an earlier version has ended. ``use`` is None while nobody looks whether it is used.
    ``wait`` is None of a lease that never waited; the window of one that waits is the one that it will probably have.
    ``series`` is None of a lease that is no occurrence of a series, ``offer`` of one that is not offered to anybody.
    ``reminders`` are in the order in which the user has given them. One that is to ``keep_hosts`` does not leave its
    hosts before its start for the sake of another one. ``quoted_at`` is when the price was quoted that holds for it
    while it is booked; it is not stored.
    """

    id: str
    name: str
    user_id: str
    project_id: str
    window: Window
    status: LeaseStatus
    created_at: datetime
    updated_at: datetime | None = None
    trust_id: str | None = None
    degraded: bool = False
    deleted_at: datetime | None = None
    revision: int = 0
    reservations: tuple[Reservation, ...] = ()
    events: tuple[Event, ...] = ()
    kind: LeaseKind = LeaseKind.SCHEDULED
    end_reason: EndReason | None = None
    use: LeaseUse | None = None
    wait: Wait | None = None
    extend: ExtendIfFree | None = None
    series: PartOfSeries | None = None
    offer: TransferOffer | None = None
    reminders: tuple[Reminder, ...] = ()
    keep_hosts: bool = False
    quoted_at: datetime | None = None

    def event(self, event_type: EventType) -> Event | None:
        """Return the lease's event of this type; of request events the latest one."""
        return next((e for e in reversed(self.events) if e.event_type == event_type), None)

    def event_with(self, event_id: str) -> Event | None:
        """Return the event with this id."""
        return next((e for e in self.events if e.id == event_id), None)

    def check_revision(self, wanted: Collection[int] | None) -> None:
        """Raise PreconditionFailed if the lease has none of the revisions that were asked for; None: any."""
        check_revision(self.revision, wanted, f"the lease has changed: its revision is {self.revision}")

    def in_window(self, window: Window, lead: timedelta = timedelta(0)) -> Lease:
        """Return the lease with its timetable, and the time up to which it is prolonged by itself, in another window.

        ``lead`` is that of ``move_warning``.
        """
        known = {event.event_type: event.time for event in self.events}
        before = Window(known.get(EventType.START) or self.window.start, known.get(EventType.END) or self.window.end)
        moved = window.end - before.end

        def time(event: Event, at: datetime) -> datetime:
            if event.event_type == EventType.START:
                return window.start
            return window.end if event.event_type == EventType.END else move_warning(at, before, window, lead)

        events = tuple(
            replace(event, time=time(event, event.time)) if event.event_type in TIMETABLE and event.time else event
            for event in self.events
        )
        extend = None if self.extend is None else replace(self.extend, until=later(self.extend.until, moved))
        return replace(self, window=window, events=events, extend=extend)

    @property
    def as_estimated(self) -> Lease:
        """Return a lease that waits, or did so until it was deleted, with the timetable of its dates; any other as is.

        While it waits its dates are those of the estimate, and what is stored of the timetable is what it asked for.
        """
        if self.wait is None:
            return self
        start = self.event(EventType.START)
        return self.in_window(self.window) if start is not None and start.status is EventStatus.UNDONE else self

    @property
    def reminds(self) -> bool:
        """Tell whether its reminders are told: its dates stand, and nobody has given it up before its end.

        What a manager was too late for is told after the end, too.
        """
        start = self.event(EventType.START)
        failed = start is not None and start.status is EventStatus.ERROR
        kept = self.end_reason in (None, EndReason.ENDED) and self.deleted_at is None
        return kept and not failed and self.status in _REMINDING

    @property
    def with_reminder_due(self) -> Lease:
        """Return the lease with the event of its next reminder at the time of that, and due by then.

        Each lease is written so: whatever moves its dates, or ends it, need not know of reminders.
        """
        event = self.event(EventType.REMIND)
        if (event is None and not self.reminders) or (event is not None and event.claimed_by):
            return self
        coming = find_next(self.reminders, self.window)
        moment = None if coming is None else coming.moment(self.window)
        due_at = moment if self.reminds else None
        if event is None:
            if moment is None:
                return self
            id_ = str(uuid.uuid5(uuid.NAMESPACE_URL, f"reminder of lease {self.id}"))
            now = self.updated_at or self.created_at
            new = Event(id_, EventType.REMIND, moment, EventStatus.UNDONE, now, due_at=due_at)
            return replace(self, events=(*self.events, new))
        if event.time == (moment or event.time) and (event.due_at is None) is (due_at is None):
            # Due later than its time if it waits for something.
            return self
        moved = replace(event, time=moment or event.time, due_at=due_at, status=EventStatus.UNDONE)
        return replace(self, events=tuple(moved if e.id == event.id else e for e in self.events))

    @property
    def is_promised(self) -> bool:
        """Tell whether it is booked at a promised start, which becomes earlier if possible."""
        return self.status is LeaseStatus.PENDING and self.wait is not None and self.wait.advance

    @property
    def is_undecided(self) -> bool:
        """Tell whether it is immediate and the request for it is neither granted nor refused yet."""
        event = self.event(EventType.IMMEDIATE_BY)
        return self.kind is LeaseKind.IMMEDIATE and event is not None and event.status is EventStatus.UNDONE

    @property
    def confirm_by(self) -> datetime | None:
        """Return when it is deleted unless somebody confirms it before; None: it is confirmed, or need not be.

        It stays on record of one that nobody has confirmed.
        """
        event = self.event(EventType.CONFIRM_BY)
        return event.time if event is not None and event.status is EventStatus.UNDONE else None

    @property
    def is_unconfirmed(self) -> bool:
        """Tell whether nobody has confirmed it that has to: it does not start so, and costs nothing."""
        return self.confirm_by is not None

    @property
    def without_secrets(self) -> Lease:
        """Return the lease with null in place of the secrets of its users."""
        return replace(self, reservations=tuple(reservation.without_secrets for reservation in self.reservations))

    @property
    def asked_for(self) -> tuple[Reservation, ...]:
        """Return the reservations that a user asked for: those that are no part of another.

        What one is made of lacks, or got instead of something else, it lacks or got itself.
        """
        parts = [r for r in self.reservations if r.parent is not None]
        if not parts:
            return self.reservations
        missing = {r.parent for r in parts if r.missing_resources}
        changed = {r.parent for r in parts if r.resources_changed}
        return tuple(
            replace(
                r,
                missing_resources=r.missing_resources or r.id in missing,
                resources_changed=r.resources_changed or r.id in changed,
            )
            for r in self.reservations
            if r.parent is None
        )

    def children(self, reservation_id: str) -> tuple[Reservation, ...]:
        """Return the reservations that are part of another, in their order."""
        return tuple(r for r in self.reservations if r.parent == reservation_id)

    def reservation(self, reservation_id: str) -> Reservation | None:
        """Return the reservation with this id."""
        return next((r for r in self.reservations if r.id == reservation_id), None)


_REMINDING = frozenset(
    {
        LeaseStatus.PENDING,
        LeaseStatus.STARTING,
        LeaseStatus.ACTIVE,
        LeaseStatus.TERMINATING,
        LeaseStatus.TERMINATED,
    }
)
"""States of leases whose reminders are told. One that is being changed tells them when that has come to an end."""

# The cause of a reason that is on record as text only is told from its words: it was written before there were causes,
# or by a manager of an earlier version.
_WORDS: tuple[tuple[str, ReasonCode], ...] = (
    (r"ended before it could start|when its before_end event was due", ReasonCode.LEASE_ENDED),
    (r"^not (finished|undone) (at|before) the end", ReasonCode.NOT_FINISHED_AT_END),
    (r"internal error", ReasonCode.INTERNAL_ERROR),
    (r"quota", ReasonCode.QUOTA_EXCEEDED),
    (
        r"being cleaned|released late|has not (left|returned)|still (use|has|hold)|waits for",
        ReasonCode.PREVIOUS_USER_NOT_LEFT,
    ),
    (r"belongs? to no reservation|runs servers|in the way", ReasonCode.SERVER_IN_THE_WAY),
    (r"has failed|is (down|disabled|dead)|does not (exist|report)", ReasonCode.RESOURCE_FAILED),
    (r" refused ", ReasonCode.CLOUD_REFUSED),
    (r"not available|does not answer|timed? ?out|unavailable|retry later|try again", ReasonCode.CLOUD_UNAVAILABLE),
)
_OTHERWISE: Mapping[str, ReasonCode] = {
    EventType.BEFORE_END: ReasonCode.SAVE_FAILED,
    EventType.START: ReasonCode.RESOURCE_NOT_READY,
    EventType.END: ReasonCode.CLOUD_UNAVAILABLE,
}


def reason_of(event: Event) -> Reason | None:
    """Return the reason of an event; None if it has none."""
    if event.reason is None:
        return None
    return Reason(event.reason, event.cause or Cause(_guess_reason_code(event.reason, event.event_type)))


def set_reason(event: Event, reason: Reason | None) -> Event:
    """Return the event with this reason, or with none."""
    if reason is None:
        return replace(event, reason=None, cause=None)
    return replace(event, reason=reason.text, cause=reason.cause)


def _guess_reason_code(text: str, event_type: str) -> ReasonCode:
    for words, code in _WORDS:
        if re.search(words, text, re.IGNORECASE):
            return code
    return _OTHERWISE.get(event_type, ReasonCode.INTERNAL_ERROR)
