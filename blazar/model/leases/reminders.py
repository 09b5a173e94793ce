# SPDX-License-Identifier: Apache-2.0
"""Reminders: texts that a user wants to be told at times of a lease. Pure; they move with the dates of the lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from blazar.model.base.clock import later, zulu
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window

MOST_REMINDERS = 10
LONGEST_TEXT = 255
"""Characters of a text; the journal tells it as a whole."""


class Anchor(StrEnum):
    """The date of a lease from which the time of a reminder counts."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Reminder:
    """A text, and when it is told: so long after a date of the lease, before it if negative, or at a date of its own.

    The ``anchor`` is None with a date of its own. ``sent_at`` is when it was told last, ``skipped_at`` when its time
    was found to be past before there was anything to tell. It is told once, and again if its time moves past both.
    """

    at: timedelta | datetime
    text: str
    anchor: Anchor | None = None
    sent_at: datetime | None = None
    skipped_at: datetime | None = None

    def moment(self, window: Window) -> datetime:
        """Return when it is told, of a lease with this window."""
        if isinstance(self.at, datetime):
            return self.at
        return later(window.start if self.anchor is Anchor.START else window.end, self.at)

    def is_pending(self, window: Window) -> bool:
        """Tell whether it is still to be told; one whose time is not before the end of the lease is not."""
        moment = self.moment(window)
        told = [at for at in (self.sent_at, self.skipped_at) if at is not None]
        return moment < window.end and all(moment > at for at in told)

    @property
    def fresh(self) -> Reminder:
        """Return it as it was asked for."""
        return replace(self, sent_at=None, skipped_at=None)

    @property
    def spelled(self) -> str:
        """Return when it is told and its text, as one text."""
        if isinstance(self.at, datetime):
            return f"{zulu(self.at)}: {self.text}"
        word = "before" if self.at < timedelta(0) else "after"
        return f"{spell_duration(abs(self.at))} {word} the {self.anchor}: {self.text}"


def find_next(reminders: Iterable[Reminder], window: Window) -> Reminder | None:
    """Return the reminder that is told next, of equal times the first one; None if there is none."""
    pending = (reminder for reminder in reminders if reminder.is_pending(window))
    return min(pending, key=lambda reminder: reminder.moment(window), default=None)


def accept(
    asked: Sequence[Reminder] | None, window: Window, now: datetime, known: tuple[Reminder, ...] = ()
) -> tuple[Reminder, ...]:
    """Return the reminders of a lease that a request asks for; those that are ``known`` already stay as they are.

    None: all of them do. InvalidInput if the time of a new one is past, or not before the end of the lease.
    """
    if asked is None:
        return known
    there = {reminder.fresh: reminder for reminder in known}
    found: list[Reminder] = []
    for number, reminder in enumerate(asked):
        if reminder not in there:
            _check_moment(reminder.moment(window), window, now, number)
        found.append(there.get(reminder, reminder))
    return tuple(found)


def skip_past(
    asked: Iterable[Reminder], window: Window, now: datetime, known: Iterable[Reminder] = ()
) -> tuple[Reminder, ...]:
    """Return the reminders of a lease of a series: those whose time is past already are not told.

    Those that are ``known`` already stay as they are.
    """
    there = {reminder.fresh: reminder for reminder in known}

    def skip(reminder: Reminder) -> Reminder:
        return replace(reminder, skipped_at=now) if reminder.moment(window) <= now else reminder

    return tuple(there.get(reminder.fresh) or skip(reminder.fresh) for reminder in asked)


def check_recurring(asked: Iterable[Reminder], of_leases: Iterable[Window | None]) -> None:
    """Check the reminders of a series, whose leases have these windows. InvalidInput if none of them would tell one."""
    windows = [window for window in of_leases if window is not None]
    for number, reminder in enumerate(asked):
        if windows and all(reminder.moment(window) >= window.end for window in windows):
            longest = max(window.duration for window in windows)
            raise InvalidInput(
                f"reminders[{number}] would be after the end of each lease of the series, which lasts "
                f"{spell_duration(longest)}; give a time before its end",
                code="invalid_window",
                at=f"/reminders/{number}/at",
            )


def join(reminders: Sequence[Reminder], others: Sequence[Reminder]) -> tuple[Reminder, ...]:
    """Return those of two leases that become one: what both have is there once, and there are not too many."""
    known = {reminder.fresh for reminder in reminders}
    return (*reminders, *(reminder for reminder in others if reminder.fresh not in known))[:MOST_REMINDERS]


def find_told_reminder(before: Iterable[Reminder], after: Iterable[Reminder]) -> Reminder | None:
    """Return the reminder that is told by what lies between: it was there before, and has been sent since."""
    known = {reminder.fresh: reminder.sent_at for reminder in before}
    return next((r for r in after if r.fresh in known and r.sent_at not in (None, known[r.fresh])), None)


def _check_moment(moment: datetime, window: Window, now: datetime, number: int) -> None:
    if moment <= now:
        raise InvalidInput(
            f"reminders[{number}] would be at {zulu(moment)}, and it is {zulu(now)} now; give a time to come, or leave "
            "it out",
            code="date_in_past",
            at=f"/reminders/{number}/at",
            data={"now": zulu(now)},
        )
    if moment >= window.end:
        raise InvalidInput(
            f"reminders[{number}] would be at {zulu(moment)}, and the lease ends at {zulu(window.end)}; give a time "
            "before its end",
            code="invalid_window",
            at=f"/reminders/{number}/at",
        )


def spell_duration(length: timedelta) -> str:
    """Return a length as an ISO 8601 duration, as ``P1DT2H``; it is more than 0, and a day is 24 hours."""
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    time = "".join(f"{count}{unit}" for count, unit in parts if count)
    return "P" + (f"{length.days}D" if length.days else "") + (f"T{time}" if time else "")


def reminders_json(reminders: Iterable[Reminder]) -> list[dict[str, Any]]:
    """Return reminders as they are stored."""
    return [_reminder_json(reminder) for reminder in reminders]


def reminders_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Reminder, ...]:
    """Return stored reminders."""
    return tuple(_parse_reminder(reminder) for reminder in stored)


def _reminder_json(reminder: Reminder) -> dict[str, Any]:
    at = reminder.at
    stored: dict[str, Any] = {
        "at": at.isoformat() if isinstance(at, datetime) else int(at.total_seconds()),
        "text": reminder.text,
        "from": None if reminder.anchor is None else str(reminder.anchor),
        "sent": None if reminder.sent_at is None else reminder.sent_at.isoformat(),
        "skipped": None if reminder.skipped_at is None else reminder.skipped_at.isoformat(),
    }
    return {key: value for key, value in stored.items() if value is not None}


def _parse_reminder(stored: Mapping[str, Any]) -> Reminder:
    at, sent, skipped = stored["at"], stored.get("sent"), stored.get("skipped")
    return Reminder(
        datetime.fromisoformat(at) if isinstance(at, str) else timedelta(seconds=at),
        stored["text"],
        Anchor(stored["from"]) if "from" in stored else None,
        None if sent is None else datetime.fromisoformat(sent),
        None if skipped is None else datetime.fromisoformat(skipped),
    )
