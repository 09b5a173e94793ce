# SPDX-License-Identifier: Apache-2.0
"""Spares that operators fix by class and hour: how many free hosts stay awake for leases that start at once. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.base.week_hours import DAY, WEEKDAYS, WeekHours
from blazar.model.resources.resource import PropertyValue

LEARNED = "learned"
"""What a rule says in place of a number, where the spare is learned."""

MOST_HOSTS = 1_000_000
_DAYS = re.compile(rf"({'|'.join(WEEKDAYS)})(?:-({'|'.join(WEEKDAYS)}))?")
_HOURS = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")


@dataclass(frozen=True, slots=True)
class SpareRule:
    """How many ``hosts`` of a class are its spare at some hours; None: as many as learned.

    ``values`` are the properties of the class, by name, as they are written; those that are not named are any.
    ``hours`` are those of the site's wall clock. ``text`` is the rule without its number, as operators wrote it.
    """

    values: Mapping[str, str]
    hours: WeekHours
    hosts: int | None
    text: str

    def holds(self, values: Mapping[str, PropertyValue | None], at: datetime) -> bool:
        """Return whether it is about a class with these values, at an instant in the time of the site."""
        second = at.weekday() * DAY + at.hour * 3600 + at.minute * 60 + at.second
        mine = all(write_value(values.get(name)) == value for name, value in self.values.items())
        return mine and self.hours.holds_at(second)


def write_value(value: PropertyValue | None) -> str:
    """Return a property of a host as rules and names of classes have it."""
    return "none" if value is None else str(value)


def parse_rule(text: str, class_by: Collection[str]) -> SpareRule:
    """Return a rule such as ``gpu=A100; MO-FR; 07:00-19:00: 4``. InvalidInput says what is wrong with it."""
    head, colon, number = (part.strip() for part in text.rpartition(":"))
    parts = [part.strip() for part in head.split(";")]
    if not colon or not head or not all(parts):
        raise _wrong(text, "it has no number; write it like gpu=A100; MO-FR; 07:00-19:00: 4")
    values: dict[str, str] = {}
    days, hours = frozenset(range(len(WEEKDAYS))), (0, 0)
    for part in parts:
        if found := _HOURS.fullmatch(part):
            hours = _read_time(text, found[1], found[2]), _read_time(text, found[3], found[4])
        elif (listed := _read_days(part)) is not None:
            days = listed
        else:
            name, equals, value = (one.strip() for one in part.partition("="))
            if not equals or name not in class_by:
                known = ", ".join(f"{one}=…" for one in class_by) or "none, as class_by is empty"
                raise _wrong(
                    text,
                    f"{part!r} is no day such as MO-FR, no hours such as 07:00-19:00, and no property of class_by: "
                    f"{known}",
                )
            values[name] = value
    times = WeekHours(days, *hours)
    return SpareRule(values, times, _read_number(text, number), "; ".join(parts))


def _read_days(part: str) -> frozenset[int] | None:
    """Return the days that a part names, as ``MO-FR`` or ``SA SU``; None if it names none."""
    days: set[int] = set()
    for word in part.split():
        if (found := _DAYS.fullmatch(word)) is None:
            return None
        first = WEEKDAYS.index(found[1])
        last = first if found[2] is None else WEEKDAYS.index(found[2])
        days |= {(first + ahead) % len(WEEKDAYS) for ahead in range((last - first) % len(WEEKDAYS) + 1)}
    return frozenset(days)


def _read_time(text: str, hour: str, minute: str) -> int:
    seconds = int(hour) * 3600 + int(minute) * 60
    if int(minute) > 59 or seconds > DAY:
        raise _wrong(text, f"{hour}:{minute} is no time of day; give one from 00:00 to 24:00")
    return seconds % DAY


def _read_number(text: str, number: str) -> int | None:
    if number == LEARNED:
        return None
    if not (number.isascii() and number.isdigit() and len(number) <= 7 and int(number) <= MOST_HOSTS):
        raise _wrong(text, f"{number!r} is no number of hosts; give one up to {MOST_HOSTS}, or {LEARNED}")
    return int(number)


def _wrong(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"[power] spares cannot be {text[:80]!r}: {why}")
