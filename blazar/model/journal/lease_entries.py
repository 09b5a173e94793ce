# SPDX-License-Identifier: Apache-2.0
"""What the journal says of a lease: who did what to it, what that changed, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.base.window import Window
from blazar.model.journal.entries import (
    EXTENDABLE_UNTIL,
    KEEP_HOSTS,
    LONGEST,
    MAINTENANCE_END,
    MAINTENANCE_START,
    MOST_CHANGES,
    OFFERED_TO,
    OTHER_LEASE,
    PROJECT_ID,
    REMINDER,
    REMINDERS,
    USER_ID,
    WHY,
    Announcement,
    FieldChange,
    JournalEntry,
    ObjectType,
    ResourceMove,
    Subject,
    Verb,
)
from blazar.model.leases.lease import Lease, TransferOffer
from blazar.model.leases.reminders import find_told_reminder
from blazar.model.leases.requests import Actor
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EndReason, EventType, LeaseStatus
from blazar.model.use.policy import UseWatch


def make_entry(
    before: Lease | None,
    after: Lease,
    *,
    at: datetime,
    by: Actor | None = None,
    moves: Sequence[ResourceMove] = (),
    operation: str | None = None,
    sure: bool = False,
    other: str | None = None,
    why: str | None = None,
    announces: Announcement | None = None,
) -> JournalEntry | None:
    """Return what a write of a lease adds to the journal; None if nothing happened that anybody asks about.

    ``operation`` names what a request does where the values do not tell; ``sure``: it is what this write does, whatever
    the values tell. ``other`` is the id of the lease that it is done with, ``why``
    what an operator says for it. ``announces`` is what its owner is told with this write, if it does nothing else.
    """
    changes = tuple(_list_changes(before, after, by))
    verb = _choose_verb(before, after, changes, moves, by)
    if verb is None and announces is not None:
        return announce(after, announces, at=at)
    if operation is not None and (verb in _GENERAL or (verb is None and (sure or why))):
        verb = Verb(operation)
    if verb is None:
        return None
    if why is not None:
        changes = (FieldChange(WHY, None, why[:LONGEST]), *changes)
    if other is not None:
        changes = (FieldChange(OTHER_LEASE, None, other), *changes)
    reason = _find_reason_code(before, after)
    about = describe_lease(after)
    return JournalEntry(about, at, verb, by, changes[:MOST_CHANGES], tuple(moves), reason, snapshot_lease(after))


def tell_move(
    before: Lease | None, after: Lease, moves: Sequence[ResourceMove], reason: str, *, at: datetime
) -> Iterator[JournalEntry]:
    """Yield that the service has moved a lease, so that another one fits; nobody learns for whom."""
    told = make_entry(before, after, at=at, moves=moves)
    if told is not None:
        yield replace(told, reason=reason)


def describe_lease(lease: Lease) -> Subject:
    """Return a lease as the subject of an entry."""
    return Subject(ObjectType.LEASE, lease.id, lease.name, lease.project_id, lease.user_id, lease.revision)


def announce(lease: Lease, announces: Announcement, *, at: datetime) -> JournalEntry:
    """Return the entry of what the owner of a lease is told by the service."""
    said = announces
    return JournalEntry(
        describe_lease(lease), at, said.verb, None, said.changes, reason=said.reason, snapshot=snapshot_lease(lease)
    )


def warn_of_end(extendable_until: datetime | None) -> Announcement:
    """Return that a lease ends soon, and the latest end that it could have; None: it cannot be extended."""
    until = FieldChange(EXTENDABLE_UNTIL, None, zulu_or_none(extendable_until))
    return Announcement(Verb.BEFORE_END, (until,) if extendable_until else ())


def warn_of_maintenance(window: Window, outcome: str) -> Announcement:
    """Return that a lease keeps hosts that are planned to be in maintenance in a window, with what that means for it.

    What operators say for it is theirs.
    """
    times = ((MAINTENANCE_START, window.start), (MAINTENANCE_END, window.end))
    changes = tuple(FieldChange(name, None, zulu(time)) for name, time in times)
    return Announcement(Verb.MAINTENANCE, changes, outcome)


def tell_giver(told: JournalEntry, before: Lease) -> JournalEntry:
    """Return what the project is told that has given a lease away: the same, of the lease as it was theirs.

    It belongs to no revision, so that the history of the lease has it once.
    """
    about = replace(describe_lease(before), revision=None)
    return replace(told, about=about, snapshot=snapshot_lease(before))


def tell_takers(told: JournalEntry, before: Lease, after: Lease) -> Iterator[JournalEntry]:
    """Yield what other projects are told to which a lease is offered, or no longer offered; nothing of all else.

    A new offer takes the place of one that stands. They are about a lease that is not theirs: so they belong to no
    revision, and to no user if none is named.
    """
    if told.verb not in (Verb.OFFERED, Verb.WITHDRAWN):
        return
    old, new = before.offer, after.offer
    stood = old is not None and old.expires_at > told.at
    if old is not None and stood and (new is None or (new.project_id, new.user_id) != (old.project_id, old.user_id)):
        change = FieldChange(OFFERED_TO, old.project_id, None)
        yield from _tell_taker(replace(told, verb=Verb.WITHDRAWN, changes=(change,)), after, old)
    if new is not None:
        change = FieldChange(OFFERED_TO, None, new.project_id)
        yield from _tell_taker(replace(told, changes=(change,)), after, new)


def _tell_taker(told: JournalEntry, lease: Lease, offer: TransferOffer) -> Iterator[JournalEntry]:
    if offer.project_id != lease.project_id:
        about = replace(describe_lease(lease), project_id=offer.project_id, user_id=offer.user_id, revision=None)
        yield replace(told, about=about, moves=(), reason=None)


def snapshot_lease(lease: Lease) -> Mapping[str, Any]:
    """Return what a message shows of a lease besides its name, its owner and its revision."""
    return {
        "status": str(lease.status),
        "start_date": zulu(lease.window.start),
        "end_date": zulu(lease.window.end),
        "before_end_date": zulu_or_none(_warning_time(lease)),
    }


_GENERAL = frozenset({Verb.CREATED, Verb.CHANGED, Verb.EXTENDED, Verb.MOVED, Verb.DELETED})
"""Verbs that say less than the name of an operation."""

_ENDED_BY = {
    EndReason.REFUSED: Verb.REFUSED,
    EndReason.MERGED: Verb.MERGED,
    EndReason.UNCONFIRMED: Verb.LAPSED,
}
_BECOMES = {
    LeaseStatus.TERMINATED: Verb.ENDED,
    LeaseStatus.ERROR: Verb.FAILED,
    LeaseStatus.TIMED_OUT: Verb.TIMED_OUT,
    LeaseStatus.WAITING: Verb.WAITING,
}


def _choose_verb(
    before: Lease | None, after: Lease, changes: Sequence[FieldChange], moves: Sequence[ResourceMove], by: Actor | None
) -> Verb | None:
    if before is None:
        return Verb.CREATED
    if before.reminders and find_told_reminder(before.reminders, after.reminders) is not None:
        return Verb.REMINDED
    if after.end_reason is EndReason.UNUSED is not before.end_reason:
        # Its end is brought forward while it is in use; it ends with what it does before its end.
        return Verb.RELEASED
    if after.end_reason is EndReason.ENDED_EARLY is not before.end_reason:
        # It is told with who did it; that its resources are returned then is no other deed.
        return Verb.ENDED
    if (verb := _choose_status_verb(before, after)) is not None:
        return verb
    if changes:
        return _choose_change_verb(before, after, changes, moves, by)
    if moves:
        return Verb.MOVED if by is None else Verb.CHANGED
    if before.degraded is not after.degraded:
        return Verb.DEGRADED if after.degraded else Verb.HEALED
    return _choose_use_verb(_watch(before), _watch(after))


def _choose_use_verb(was: UseWatch | None, became: UseWatch | None) -> Verb | None:
    if was is None or became is None:
        return None
    if was.held is not became.held:
        return Verb.HELD if became.held else Verb.LET_GO
    if was.kept_at != became.kept_at:
        return Verb.KEPT
    warned = (became.warned_at, became.noticed_at)
    return Verb.UNUSED_WARNING if warned != (was.warned_at, was.noticed_at) and any(warned) else None


def _choose_status_verb(before: Lease, after: Lease) -> Verb | None:
    if before.status is after.status:
        is_confirmed = before.is_unconfirmed and not after.is_unconfirmed
        return Verb.CONFIRMED if is_confirmed else _choose_deletion_verb(before, after)
    if after.status in (LeaseStatus.DELETING, LeaseStatus.TERMINATING):
        reason = after.end_reason
        return _ENDED_BY.get(reason, Verb.DELETED) if reason and after.status is LeaseStatus.DELETING else None
    if after.status is LeaseStatus.ACTIVE and before.status is LeaseStatus.STARTING:
        return Verb.STARTED
    if after.status is LeaseStatus.PENDING and before.status is LeaseStatus.WAITING:
        return Verb.PROMISED
    if after.status is LeaseStatus.TERMINATED and before.end_reason is EndReason.ENDED_EARLY:
        return None
    return _BECOMES.get(after.status)


def _choose_deletion_verb(before: Lease, after: Lease) -> Verb | None:
    """Return what the end of a deletion is: nothing if its begin, which has a reason, was told."""
    if after.deleted_at is None or before.deleted_at is not None:
        return None
    begun = before.status is LeaseStatus.DELETING and before.end_reason is not None
    return None if begun else Verb.DELETED


def _choose_change_verb(
    before: Lease, after: Lease, changes: Sequence[FieldChange], moves: Sequence[ResourceMove], by: Actor | None
) -> Verb:
    if before.is_promised and by is None and after.window.start < before.window.start:
        return Verb.ADVANCED
    alone = not moves and [change.field for change in changes if change.field not in _PLANS] == ["end_date"]
    return Verb.EXTENDED if alone and after.window.end > before.window.end else Verb.CHANGED


def _list_changes(before: Lease | None, after: Lease, by: Actor | None) -> Iterator[FieldChange]:
    if before is None or before.name != after.name or before.window != after.window:
        old = {} if before is None else _list_fields(before)
        for field, value in _list_fields(after).items():
            if old.get(field) != value:
                yield FieldChange(field, old.get(field), value)
    if before is None:
        return
    if by is not None and after.end_reason is not EndReason.ENDED_EARLY:
        yield from _list_plan_changes(before, after)
    if before.project_id != after.project_id:
        yield FieldChange(PROJECT_ID, before.project_id, after.project_id)
    elif before.offer != after.offer:
        yield FieldChange(OFFERED_TO, _offer_project(before), _offer_project(after))
    if before.reminders or after.reminders:
        yield from _list_reminders(before, after)
    if before.keep_hosts is not after.keep_hosts:
        yield FieldChange(KEEP_HOSTS, *(json.dumps(lease.keep_hosts) for lease in (before, after)))
    if before.user_id != after.user_id:
        yield FieldChange(USER_ID, before.user_id, after.user_id)
    known, now = ({r.id: _list_parameters(r) for r in lease.asked_for} for lease in (before, after))
    for reservation_id in known | now:
        was, became = known.get(reservation_id, {}), now.get(reservation_id, {})
        # Of one that has come or gone the type says enough.
        kept = reservation_id in known and reservation_id in now
        for key in sorted(was | became) if kept else ["resource_type"]:
            if was.get(key) != became.get(key):
                yield FieldChange(key, was.get(key), became.get(key), reservation_id)


def _list_reminders(before: Lease, after: Lease) -> Iterator[FieldChange]:
    """Yield the reminder that is told, and how a user changes them; of another project's texts nothing is told."""
    if (told := find_told_reminder(before.reminders, after.reminders)) is not None:
        yield FieldChange(REMINDER, None, told.text[:LONGEST])
    was, became = ([reminder.spelled for reminder in lease.reminders] for lease in (before, after))
    if was != became and before.project_id == after.project_id:
        yield FieldChange(REMINDERS, "; ".join(was)[:LONGEST] or None, "; ".join(became)[:LONGEST] or None)


_PLANS = ("before_end_date", "extend_if_free")
"""Times that follow the dates of the lease by themselves."""


def _list_plan_changes(before: Lease, after: Lease) -> Iterator[FieldChange]:
    """Yield what was changed of the warning and of how far the lease goes on, unless it has only followed the dates."""
    was, became = _warning_time(before), _warning_time(after)
    if was != became and (was is None or became is None or before.window.end - was != after.window.end - became):
        yield FieldChange("before_end_date", zulu_or_none(was), zulu_or_none(became))
    was, became = _extend_until(before), _extend_until(after)
    if was != became and (was is None or became is None or was - before.window.start != became - after.window.start):
        yield FieldChange("extend_if_free", zulu_or_none(was), zulu_or_none(became))


def _warning_time(lease: Lease) -> datetime | None:
    warning = lease.event(EventType.BEFORE_END)
    return None if warning is None else warning.time


def _extend_until(lease: Lease) -> datetime | None:
    return None if lease.extend is None else lease.extend.until


def _offer_project(lease: Lease) -> str | None:
    return None if lease.offer is None else lease.offer.project_id


def _list_fields(lease: Lease) -> dict[str, str]:
    return {"name": lease.name[:LONGEST], "start_date": zulu(lease.window.start), "end_date": zulu(lease.window.end)}


def _list_parameters(reservation: Reservation) -> dict[str, str]:
    """Return the parameters that are one text or number, as texts: amounts, names, requirements."""
    values = reservation.shown_parameters
    kept = {key: str(value)[:LONGEST] for key, value in values.items() if isinstance(value, str | int | float)}
    return {**kept, "resource_type": reservation.resource_type}


def _watch(lease: Lease) -> UseWatch | None:
    event = lease.event(EventType.USAGE_CHECK)
    return None if event is None or event.saved_state is None else event.saved_state.watch


def _find_reason_code(before: Lease | None, after: Lease) -> str | None:
    """Return the code of why, where a write says it: of a failure its cause, of an end its reason."""
    if before is not None and before.end_reason is not after.end_reason and after.end_reason is not None:
        return str(after.end_reason)
    if before is not None and after.status is LeaseStatus.ERROR is not before.status:
        known = {event.id: event.cause for event in before.events}
        new = (event.cause for event in after.events if event.cause and event.cause != known.get(event.id))
        return next((str(cause.code) for cause in new), None)
    return None
