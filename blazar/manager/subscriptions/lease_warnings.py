# SPDX-License-Identifier: Apache-2.0
"""What mails say of what owners act on: a lease ends soon, its hosts are to be repaired, or a reminder is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from blazar.model.journal.entries import (
    EXTENDABLE_UNTIL,
    MAINTENANCE_END,
    MAINTENANCE_START,
    REMINDER,
    NumberedEntry,
    Verb,
)
from blazar.model.maintenance.windows import Outcome


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


def find_warning(entry: NumberedEntry, zone: str) -> LeaseWarning | None:
    """Return what a mail says of an entry that warns of something, with times of a zone; None of all others."""
    changes = {change.field: change.after for change in entry.past.changes}
    match entry.past.verb:
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
    return None


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
