# SPDX-License-Identifier: Apache-2.0
"""Entries of the journal: what was done to an object of the service, by whom, and what that changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from blazar.model.base.paging import Position
from blazar.model.base.values import dataclass
from blazar.model.leases.requests import Actor

MOST_CHANGES = 40
"""Changes of fields that an entry keeps; a request with more of them is rare, and the object itself shows the rest."""
MOST_RESOURCES = 100
"""Resources that an entry names for each reservation; it counts all of them."""
LONGEST = 255
"""Characters of a value that an entry keeps."""

PROJECT_ID = "project_id"
USER_ID = "user_id"
OFFERED_TO = "offered_to"
ENTRIES = "entries"
"""Not a key of an object: how many entries were left out."""
EXTENDABLE_UNTIL = "extendable_until"
"""Not a key of a lease: the latest end that it could have, asked for when its owner is told that it ends."""
MAINTENANCE_START, MAINTENANCE_END = "maintenance_start_date", "maintenance_end_date"
"""Not keys of a lease: for when a maintenance window is planned, when its owner is told of it."""
SHARE, LIMIT, TAKEN, UNIT = "share", "limit", "taken", "unit"
PERIOD_START, PERIOD_END = "period_start", "period_end"
"""Of a budget: which share in percent is reached, by what, in which period."""
ENDS_AT, SAVED = "ends_at", "saved"
"""Of a preemptible server: when it is deleted, and whether an image of it is made before."""
WHY = "why"
"""Not a key of an object: what an operator says for doing it, in own words."""
REMINDERS = "reminders"
KEEP_HOSTS = "keep_hosts"
REMINDER = "reminder"
"""Not a key of the lease: the text of the reminder that is told."""
OTHER_LEASE = "other_lease"
"""Not a key of the lease: the id of the lease with which it was split, merged, or has exchanged resources."""


REPACKED = "repacked"
"""Why a lease was moved: it has not started, and others have room so."""
REPACKED_AGAIN = "repacked_again"
"""The same once more within a day: its owner is not told by a message."""


class ObjectType(StrEnum):
    """What an entry is about."""

    LEASE = "lease"
    SERIES = "series"
    RESOURCE = "resource"
    PROPERTY = "property"
    MAINTENANCE = "maintenance"
    FEED = "feed"
    SUBSCRIPTION = "subscription"
    PRICE_LIST = "price_list"
    RULE = "rule"
    CHARGE = "charge"
    BUDGET = "budget"
    SERVER = "server"
    SERVICE = "service"


class Verb(StrEnum):
    """What was done."""

    CREATED = "created"
    WAITING = "waiting"
    PROMISED = "promised"
    ADVANCED = "advanced"
    CHANGED = "changed"
    EXTENDED = "extended"
    CONFIRMED = "confirmed"
    LAPSED = "lapsed"
    SPLIT = "split"
    MERGED = "merged"
    SWAPPED = "swapped"
    OFFERED = "offered"
    WITHDRAWN = "withdrawn"
    DECLINED = "declined"
    TRANSFERRED = "transferred"
    MOVED = "moved"
    STARTED = "started"
    KEPT = "kept"
    HELD = "held"
    LET_GO = "let_go"
    RELEASED = "released"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    DELETED = "deleted"
    ENDED = "ended"
    DEGRADED = "degraded"
    HEALED = "healed"
    UNUSED_WARNING = "unused_warning"
    BEFORE_END = "before_end"
    MAINTENANCE = "maintenance"
    REMINDED = "reminded"
    RETRIED = "retried"
    CLAIM_ENDED = "claim_ended"
    GIVEN_UP = "given_up"
    CLEANED_UP = "cleaned_up"
    LEFT_OUT = "left_out"
    REGISTERED = "registered"
    DISABLED = "disabled"
    ENABLED = "enabled"
    RECOVERED = "recovered"
    REMOVED = "removed"
    CONFIGURED = "configured"
    REACHED = "reached"


_OF_OTHERS = frozenset(
    {Verb.REGISTERED, Verb.DISABLED, Verb.ENABLED, Verb.RECOVERED, Verb.REMOVED, Verb.CONFIGURED, Verb.REACHED},
)
LEASE_VERBS = tuple(verb for verb in Verb if verb not in _OF_OTHERS)
"""What may have been done to a lease."""


class By(StrEnum):
    """Who does something; ``SERVICE``: the life cycle of the lease, healing, maintenance, the waiting list."""

    USER = "user"
    OPERATOR = "operator"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A value before and after, as texts; None where there was or is none.

    ``reservation_id`` is None for a field of the object itself.
    """

    field: str
    before: str | None
    after: str | None
    reservation_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceMove:
    """Which resources a reservation gave up and got, by calendar id: the first ones, and how many in all."""

    reservation_id: str
    gone: tuple[int, ...] = ()
    come: tuple[int, ...] = ()
    gone_count: int = 0
    come_count: int = 0


@dataclass(frozen=True, slots=True)
class Announcement:
    """What the owner of a lease is told at a time, and what the values of the lease do not show."""

    verb: Verb
    changes: tuple[FieldChange, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What an entry is about, as it is then. ``project_id`` is whose it is; None: the operators'.

    Of an object with revisions an entry belongs to one, which orders them; others have the order in which they came.
    """

    object_type: ObjectType
    id: str
    name: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that was done; ``by`` None: by the service itself.

    ``reason`` is the code of a reason. ``snapshot`` is what a message shows of the object besides its subject, as JSON.
    ``id`` is that of an entry that is written once only; None: any.
    """

    about: Subject
    at: datetime
    verb: Verb
    by: Actor | None = None
    changes: tuple[FieldChange, ...] = ()
    moves: tuple[ResourceMove, ...] = ()
    reason: str | None = None
    snapshot: Mapping[str, Any] | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class NamedMove:
    """A move with the ids of the resources as users see them."""

    reservation_id: str
    gone: tuple[str, ...]
    come: tuple[str, ...]
    gone_count: int
    come_count: int


@dataclass(frozen=True, slots=True)
class PastEntry:
    """An entry as it was written. ``id`` is its number in the history of a lease, and else one of its own."""

    id: str
    at: datetime
    verb: Verb
    by: Actor | None
    changes: tuple[FieldChange, ...]
    moves: tuple[NamedMove, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class NumberedEntry:
    """An entry of the journal with its ``position``: the order of all entries, without gaps when they get it.

    ``request_id`` is the id of the request, or of the work, that did it, ``global_request_id`` the one that its caller
    sent with it.
    """

    position: int
    about: Subject
    past: PastEntry
    request_id: str | None = None
    global_request_id: str | None = None
    snapshot: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of a history, and where the next one begins.

    ``projects`` says whose the leases and reservations are now whose ids the entries name.
    """

    items: tuple[PastEntry, ...]
    following: Position | None = None
    count: int | None = None
    projects: Mapping[str, str] = dataclasses.field(default_factory=dict)
