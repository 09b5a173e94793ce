# SPDX-License-Identifier: Apache-2.0
"""Leases, their reservations and their events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model import secrets
from blazar.model.amounts import Amounts
from blazar.model.clock import later
from blazar.model.errors import NotFound
from blazar.model.made import Gone, made_of
from blazar.model.reasons import Cause, ReasonCode
from blazar.model.unused import LeaseUse, UseWatch
from blazar.model.warning import moved_warning
from blazar.model.window import Window

Json = Mapping[str, object]
"""A JSON object as a client sent it or as the API shows it."""

_OF_INSTANCES = ("flavor_id", "aggregate_id", "server_group_id")
SHOWN_IDS: Mapping[str, tuple[str, ...]] = {
    "physical:host": (),
    "virtual:instance": _OF_INSTANCES,
    "flavor:instance": _OF_INSTANCES,
    "network": ("network_id",),
    "virtual:volume": ("volume_ids", "volume_types", "image_ids", "backup_ids"),
    "virtual:server": (*_OF_INSTANCES, "server_ids"),
    "virtual:stack": ("stack_id", "stack_reason"),
}
"""Cloud ids that users of a reservation need to know, by resource type; of types of other packages, all of them."""


def unknown_lease(lease_id: str) -> NotFound:
    """Return the error for a lease that does not exist; clients rely on its wording."""
    return NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found", code="lease_not_found")


class LeaseKind(StrEnum):
    """When the resources of a lease are handed over, and what becomes of it if that fails.

    ``SCHEDULED``: at its start. ``IMMEDIATE``: now with the answer to the request. ``RETRIES``: at its start; if it
    cannot have them, or the start fails, it waits for its turn and is tried again, a number of times. ``BEST_EFFORT``:
    now; if servers of others stand in the way on hosts that can be emptied, these are moved away first.
    """

    SCHEDULED = "scheduled"
    IMMEDIATE = "immediate"
    RETRIES = "retries"
    BEST_EFFORT = "best_effort"


class EndReason(StrEnum):
    """Why a lease has ended, or is being ended.

    ``ENDED``: its end has come. ``DELETED``: somebody deleted it. ``REFUSED``: the request for it was refused after it
    had been booked. ``UNUSED``: it was released because nobody used it. ``MERGED``: another lease has what it had.
    ``ENDED_EARLY``: somebody ended it while it was in use, before its end had come. ``LEFT_LINE``: somebody deleted it
    while it waited, and had nothing.
    """

    ENDED = "ended"
    DELETED = "deleted"
    REFUSED = "refused"
    UNUSED = "unused"
    MERGED = "merged"
    ENDED_EARLY = "ended_early"
    LEFT_LINE = "left_line"


class LeaseStatus(StrEnum):
    """The state of a lease; the transitions are in ``lifecycle``."""

    CREATING = "CREATING"
    WAITING = "WAITING"
    """It has no resources, and gets them when its turn comes."""
    TIMED_OUT = "TIMED_OUT"
    """It waited in vain, or room could not be made for it in time."""
    IN_PROGRESS = "IN_PROGRESS"
    """Servers of others are being moved off its hosts."""
    PENDING = "PENDING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    DELETING = "DELETING"
    ERROR = "ERROR"


OVER = frozenset({LeaseStatus.TERMINATED, LeaseStatus.TERMINATING, LeaseStatus.DELETING, LeaseStatus.TIMED_OUT})
"""States of leases that have ended, or are about to."""


class ReservationStatus(StrEnum):
    """The state of a reservation."""

    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class EventStatus(StrEnum):
    """The state of an event."""

    UNDONE = "UNDONE"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    ERROR = "ERROR"


class EventType(StrEnum):
    """What an event does.

    The first three are the schedule of a lease and are shown to users. The next three record a user's request while it
    is in progress, so that a manager can finish it after a crash, and so does ``IMMEDIATE_BY``: the time at which an
    immediate lease that is not handed over is refused. ``CLEAN_UP`` removes what the sweep found in the cloud of a
    lease that has ended. ``USAGE_CHECK`` looks whether a lease is used. ``EVACUATE`` moves servers of others off hosts
    before the start; its time is when it is given up.
    """

    START = "start_lease"
    BEFORE_END = "before_end_lease"
    END = "end_lease"
    CREATE = "create_lease"
    UPDATE = "update_lease"
    DELETE = "delete_lease"
    CLEAN_UP = "clean_up_lease"
    IMMEDIATE_BY = "immediate_by"
    USAGE_CHECK = "usage_check"
    EVACUATE = "evacuate"


TIMETABLE = (EventType.START, EventType.BEFORE_END, EventType.END)

REQUEST_EVENTS = frozenset(
    {EventType.CREATE, EventType.UPDATE, EventType.DELETE, EventType.CLEAN_UP, EventType.IMMEDIATE_BY}
)
"""Events that record a request while it is in progress."""

HIDDEN_EVENTS = REQUEST_EVENTS | {EventType.USAGE_CHECK, EventType.EVACUATE}
"""Events that are never shown to users."""


@dataclass(frozen=True, slots=True)
class Content:
    """Values of a resource type that are kept with a reservation.

    Only the resource type reads them, by a typed value of its own (such as ``HostParameters``); everything else stores,
    compares and shows them. ``values`` is a JSON object.
    """

    values: Json


NO_CONTENT = Content({})


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
class Reservation:
    """What one lease reserves of one resource type.

    ``resource_id`` is an id that API 1.0 shows and nothing uses. ``parameters`` are the type's own values as the API
    shows them; ``cloud_ids`` are the cloud ids of what the type created (such as the id of an aggregate).
    ``unassigned`` are allocated resources that could not be assigned, ``failed`` those that have failed, by calendar
    id. ``missing_since`` and ``changed_since`` are since when ``missing_resources`` and ``resources_changed`` hold;
    None where they do not, or where an earlier version set them. ``region`` is that of its resources, empty where no
    regions are configured. ``parent`` is the id of the reservation of the lease that it is a part of, None for one that
    a user asked for. ``gone`` is what it has made in the project and the cloud does not have any more.
    """

    id: str
    resource_type: str
    resource_id: str | None
    status: ReservationStatus
    created_at: datetime
    updated_at: datetime | None = None
    missing_resources: bool = False
    resources_changed: bool = False
    parameters: Content = NO_CONTENT
    cloud_ids: Content = NO_CONTENT
    unassigned: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    missing_since: datetime | None = None
    changed_since: datetime | None = None
    region: str = ""
    parent: str | None = None
    gone: tuple[Gone, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        """Return the ids of what it has made in the project; none of a type that makes nothing there."""
        return made_of(self.resource_type, self.cloud_ids.values)

    @property
    def lost(self) -> frozenset[int]:
        """Return the resources that are promised and cannot be used, by calendar id."""
        return self.unassigned | self.failed

    @property
    def shown_parameters(self) -> Json:
        """Return the parameters without those that are secret."""
        return secrets.shown(self.parameters.values)

    @property
    def without_secrets(self) -> Reservation:
        """Return the reservation with null in place of the secrets of its users."""
        kept = self.parameters.values
        left = secrets.forgotten(kept)
        return self if left is kept else replace(self, parameters=Content(left))

    @property
    def shown(self) -> Json:
        """Return the parameters and the cloud ids that users need to know; an id that does not exist yet is None."""
        ids = SHOWN_IDS.get(self.resource_type, self.cloud_ids.values)
        return {**self.shown_parameters, **{key: self.cloud_ids.values.get(key) for key in ids}}


class TryFailure(StrEnum):
    """Why a try failed for which there were resources.

    ``DENIED``: enforcement denied it. ``OTHERS_FASTER``: every attempt to book them lost a race. ``NOT_PREPARED``:
    what the lease needs before its start could not be made. ``NOT_STARTED``: its start failed.
    """

    DENIED = "denied"
    OTHERS_FASTER = "others_faster"
    NOT_PREPARED = "not_prepared"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A try that failed; the ``text`` is for operators, but that of a denial for everybody.

    ``cause`` is why a start failed.
    """

    at: datetime
    why: TryFailure
    text: str
    cause: ReasonCode | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The place of a lease on the waiting list, or the place that it had.

    It asked for resources at ``queued_at``, from ``earliest`` on, and gives up ``until`` then. ``position`` counts from
    1, None before the first plan; ``estimate`` is when it will probably start, None if nothing is known; of a promised
    start, as it was when that last changed. ``reason`` is why no waiting helps as things are. ``tries`` is how many
    tries may fail, None if they are not counted, and ``failed`` are those that did. ``advance``: it is booked at a
    start that was promised, and that becomes earlier if possible. It starts no later than ``latest``, None if any start
    will do. If ``shortest`` is given, that is how long it has to be at least, and ``longest`` how long it was asked
    for: it gets as much of that as fits.
    """

    queued_at: datetime
    until: datetime
    earliest: datetime
    position: int | None = None
    estimate: datetime | None = None
    reason: str | None = None
    tries: int | None = None
    failed: tuple[FailedTry, ...] = ()
    advance: bool = False
    latest: datetime | None = None
    shortest: timedelta | None = None
    longest: timedelta | None = None

    @property
    def ends_at(self) -> datetime:
        """Return when it gives up: after that no start is of use to it."""
        return self.until if self.latest is None else min(self.until, later(self.latest, timedelta(seconds=1)))

    @property
    def is_spent(self) -> bool:
        """Tell whether it has no try left."""
        return self.tries is not None and len(self.failed) >= self.tries


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
class ReservationOwner:
    """The lease of a reservation; ``over`` if that lease is terminated or deleted."""

    lease_id: str
    over: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A promise of resources to a project for a window.

    Every write raises ``revision``, and succeeds only if the lease still has the revision that was read. ``deleted_at``
    is set on a lease that the API no longer shows and that is kept for the record. ``end_reason`` is None before its
    end, and of leases that an earlier version has ended. ``use`` is None while nobody looks whether it is used.
    ``wait`` is None of a lease that never waited; the window of one that waits is the one that it will probably have.
    ``series`` is None of a lease that is no occurrence of a series, ``offer`` of one that is not offered to anybody.
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

    def event(self, event_type: EventType) -> Event | None:
        """Return the lease's event of this type; of request events the latest one."""
        return next((e for e in reversed(self.events) if e.event_type == event_type), None)

    def event_with(self, event_id: str) -> Event | None:
        """Return the event with this id."""
        return next((e for e in self.events if e.id == event_id), None)

    def in_window(self, window: Window, lead: timedelta = timedelta(0)) -> Lease:
        """Return the lease with its timetable, and the time up to which it is prolonged by itself, in another window.

        ``lead`` is that of ``moved_warning``.
        """
        known = {event.event_type: event.time for event in self.events}
        before = Window(known.get(EventType.START) or self.window.start, known.get(EventType.END) or self.window.end)
        moved = window.end - before.end

        def time(event: Event, at: datetime) -> datetime:
            if event.event_type == EventType.START:
                return window.start
            return window.end if event.event_type == EventType.END else moved_warning(at, before, window, lead)

        events = tuple(
            replace(event, time=time(event, event.time)) if event.event_type in TIMETABLE and event.time else event
            for event in self.events
        )
        extend = None if self.extend is None else replace(self.extend, until=later(self.extend.until, moved))
        return replace(self, window=window, events=events, extend=extend)

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
    def without_secrets(self) -> Lease:
        """Return the lease with null in place of the secrets of its users."""
        return replace(self, reservations=tuple(each.without_secrets for each in self.reservations))

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
