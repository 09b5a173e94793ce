# SPDX-License-Identifier: Apache-2.0
"""Kinds of leases, and the states of leases, reservations and events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from blazar.model.base.values import dataclass


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
    while it waited, and had nothing. ``UNCONFIRMED``: nobody confirmed it in time.
    """

    ENDED = "ended"
    DELETED = "deleted"
    REFUSED = "refused"
    UNUSED = "unused"
    MERGED = "merged"
    ENDED_EARLY = "ended_early"
    LEFT_LINE = "left_line"
    UNCONFIRMED = "unconfirmed"


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
    before the start; its time is when it is given up. ``REMIND`` tells a reminder of the lease, the one that is next.
    ``CONFIRM_BY`` is the time at which a lease is deleted that is not confirmed; it is UNDONE until somebody does.
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
    REMIND = "remind"
    CONFIRM_BY = "confirm_by"


@dataclass(frozen=True, slots=True)
class EventKind:
    """What holds for all events of a type. What a manager does for them is a row of ``EventHandler`` (``Worker``).

    ``hidden``: it is never shown to users, and does not wait for its turn in the timetable. ``is_request``: it records
    a request while that is in progress, and undoes it after a crash. ``status`` is that of a lease while it is worked
    on, None for what leaves it. ``is_awaited``: a user waits for it, and other events, however many, never delay it.
    ``is_check``: it only looks, and changes nothing in the cloud and of the lease: nothing waits for its claim, neither
    a change nor the end, and it is no change of the lease itself. ``retries_at_end``: the end waits for it, and it has
    a last attempt then. ``while_deleting``, ``after_deletion``: it is worked on then, too.
    ``interrupts``: it does not wait for the claim on another event of the lease.
    """

    type: EventType
    hidden: bool = False
    is_request: bool = False
    status: LeaseStatus | None = None
    is_awaited: bool = False
    is_check: bool = False
    retries_at_end: bool = False
    while_deleting: bool = False
    after_deletion: bool = False
    interrupts: bool = False


_KINDS = (
    EventKind(EventType.START, status=LeaseStatus.STARTING, is_awaited=True, retries_at_end=True),
    EventKind(EventType.BEFORE_END, retries_at_end=True),
    EventKind(EventType.END, status=LeaseStatus.TERMINATING),
    EventKind(EventType.CREATE, hidden=True, is_request=True, status=LeaseStatus.CREATING, is_awaited=True),
    EventKind(
        EventType.UPDATE,
        hidden=True,
        is_request=True,
        status=LeaseStatus.UPDATING,
        is_awaited=True,
        retries_at_end=True,
    ),
    EventKind(EventType.DELETE, hidden=True, is_request=True, status=LeaseStatus.DELETING, while_deleting=True),
    EventKind(EventType.CLEAN_UP, hidden=True, is_request=True, while_deleting=True, after_deletion=True),
    EventKind(EventType.IMMEDIATE_BY, hidden=True, is_request=True, is_awaited=True, interrupts=True),
    EventKind(EventType.USAGE_CHECK, hidden=True, is_check=True),
    EventKind(EventType.EVACUATE, hidden=True, is_awaited=True),
    EventKind(EventType.REMIND, hidden=True, is_check=True),
    EventKind(EventType.CONFIRM_BY, hidden=True, is_awaited=True),
)
EVENT_KINDS: Mapping[str, EventKind] = {str(kind.type): kind for kind in _KINDS}
"""By type, also as the database has it."""

TIMETABLE = tuple(kind.type for kind in _KINDS if not kind.hidden)
"""The schedule of a lease, which users see, in its order."""

HIDDEN_EVENTS = frozenset(kind.type for kind in _KINDS if kind.hidden)
UNREAD_EVENTS = HIDDEN_EVENTS - {EventType.CONFIRM_BY}
"""Hidden events that no page of leases reads: nothing of what it shows is told by them."""
REQUEST_EVENTS = frozenset(kind.type for kind in _KINDS if kind.is_request)
AWAITED_EVENTS = frozenset(kind.type for kind in _KINDS if kind.is_awaited)
CHECK_EVENTS = frozenset(kind.type for kind in _KINDS if kind.is_check)
RETRIED_AT_THE_END = frozenset(kind.type for kind in _KINDS if kind.retries_at_end)
