# SPDX-License-Identifier: Apache-2.0
"""What mails say of what owners act on: a lease ends soon, is offered, or hosts of it are to be repaired; reminders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass
from blazar.model.journal.entries import (
    ENDS_AT,
    EXTENDABLE_UNTIL,
    LIMIT,
    MAINTENANCE_END,
    MAINTENANCE_START,
    PERIOD_END,
    PERIOD_START,
    REMINDER,
    SAVED,
    SHARE,
    TAKEN,
    UNIT,
    NumberedEntry,
    ObjectType,
    Verb,
)
from blazar.model.maintenance.windows import Outcome
from blazar.model.subscriptions.details import Subscription


@dataclass(frozen=True, slots=True)
class LeaseWarning:
    """What is said of a lease, after its name, and what its owner can do, line by line."""

    says: str
    lines: Sequence[str]


_OF_OUTCOMES: Mapping[str | None, str] = {
    Outcome.NEEDS_OTHER_TIME: "No other hosts are free in its time. Move it to another time, if that does for you.",
    Outcome.STAYS: "It is not given other hosts.",
    Outcome.ACTIVE: "It is in use, and keeps its hosts. Save your work before.",
}


def find_warning(entry: NumberedEntry, reader: Subscription) -> LeaseWarning | None:
    """Return what a mail says of an entry that warns of something, with times of its reader; None of all others."""
    zone = reader.time_zone
    changes = {change.field: change.after for change in entry.past.changes}
    match entry.past.verb:
        case Verb.BEFORE_END if entry.about.object_type is ObjectType.SERVER:
            is_saved = changes[SAVED] == "true"
            image = "An image of it is being made." if is_saved else "No image of it is made: save your work before."
            end = write_zulu(changes[ENDS_AT], zone)
            return LeaseWarning(f"is deleted at {end}", ["A lease needs its host.", image])
        case Verb.BEFORE_END:
            end = write_zulu((entry.snapshot or {})["end_date"], zone)
            return LeaseWarning(f"ends at {end}", _explain_end(entry.about.id, changes, zone))
        case Verb.MAINTENANCE:
            start, end = (write_zulu(changes[key], zone) for key in (MAINTENANCE_START, MAINTENANCE_END))
            times = f"Maintenance is planned from {start} to {end}."
            advice = _OF_OUTCOMES.get(entry.past.reason)
            return LeaseWarning("keeps hosts that will be in maintenance", [times, *([advice] if advice else ())])
        case Verb.REMINDED:
            # One line, and as its user has written it.
            return LeaseWarning("reminds you", [text] if (text := changes[REMINDER]) else [])
        case Verb.REACHED:
            start, end = (write_zulu(changes[key], zone) for key in (PERIOD_START, PERIOD_END))
            taken = f"{changes[TAKEN]} of {changes[LIMIT]} {changes[UNIT]} are used or booked from {start} to {end}."
            return LeaseWarning(f"has reached {changes[SHARE]} %", [taken, "What is left: blazar budget list"])
        case Verb.OFFERED if _is_offered_to(entry, reader):
            # To whom it is offered, it is not theirs yet.
            id_ = entry.about.id
            commands = [f"    blazar transfer {does} {id_}" for does in ("accept", "decline")]
            return LeaseWarning("is offered to you", ["It is yours once you accept it:", *commands])
        case Verb.WITHDRAWN if _is_offered_to(entry, reader):
            return LeaseWarning("is no longer offered to you", [])
    return None


def _is_offered_to(entry: NumberedEntry, reader: Subscription) -> bool:
    """Return whether an offer that an entry tells of is to its reader, who does not have the lease.

    Operators read of offers to others, and members of a project of those to one of them alone.
    """
    about = entry.about
    return about.revision is None and not reader.trusted and (not about.user_id or about.user_id == reader.user_id)


def _explain_end(lease_id: str, changes: Mapping[str, str | None], zone: str) -> Sequence[str]:
    """Return what becomes of a lease at its end, and up to when it could be extended."""
    until = changes.get(EXTENDABLE_UNTIL)
    if until is None:
        return ["What it has is returned then: save your work before.", "As things are, it cannot be extended."]
    return [
        "What it has is returned then: save your work before, or extend it.",
        f"It can be extended until {write_zulu(until, zone)}, as things are:",
        f"    blazar lease extend {lease_id} --until {until}",
    ]


def write_time(at: datetime, zone: str) -> str:
    """Return an instant as the clocks of a zone show it, with what they are called then: 2030-04-01 15:00 CEST."""
    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M %Z}"


def write_zulu(text: str | None, zone: str) -> str:
    """Return an instant that is written in UTC as the clocks of a zone show it."""
    return "-" if text is None else write_time(datetime.fromisoformat(text), zone)
