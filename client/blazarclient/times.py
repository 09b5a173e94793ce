# SPDX-License-Identifier: Apache-2.0
"""Times as people write them, in their own zone.

* a date: ``2026-12-01 09:00``, ``2026-12-01T09:00:30``, with ``Z`` or ``+01:00``; a day alone is its midnight;
* ``now``; ``today 18:00``, ``tomorrow 9:00``, ``friday 9:00`` (the next one to come); ``9:00``: today, or tomorrow if
  that is over;
* ``+3d``, ``+2h30m``, ``+1w``: from now, or from the start of what it ends; ``-2h``: before the end.

Days and weeks are counted on the clock of the zone, hours and less as they pass: over a change of clocks, ``+1d`` is
the same time of day, and ``+24h`` is not. A local time that a change of clocks leaves out is taken as the time before
the change would have it; one that comes twice is the first (RFC 5545, 3.3.5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from pathlib import Path

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_UNITS = {
    "w": ("w", "wk", "wks", "week", "weeks"),
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_PART = re.compile(r"(\d+)\s*([a-z]+)\s*")
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(am|pm)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.0+)?)?)?\s*(Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE
)

_DIGITS = 30
"""A length of time with more is a slip; Python would read thousands."""

EXAMPLES = "2026-12-01 09:00, 2026-12-01T09:00:00Z, tomorrow 9:00, friday 14:00, +3d or now"


class BadTime(ValueError):
    """A text that is no time; the message says what would be."""


@contextmanager
def named(option: str) -> Iterator[None]:
    """Have a BadTime within begin with the option that the text is of: ``--end: 'soon' is no time; …``."""
    try:
        yield
    except BadTime as error:
        raise BadTime(f"{option}: {error}") from None


@dataclass(frozen=True)
class Duration:
    """A length of time: ``days`` on the clock, ``seconds`` as they pass."""

    days: int = 0
    seconds: int = 0

    def after(self, start: datetime) -> datetime:
        """Return the end of what begins at an aware datetime."""
        return self._moved(start, 1)

    def before(self, end: datetime) -> datetime:
        """Return the start of what ends at an aware datetime."""
        return self._moved(end, -1)

    def iso(self) -> str:
        """Return the duration as ISO 8601 has it: ``P3DT12H``."""
        hours, rest = divmod(self.seconds, 3600)
        minutes, seconds = divmod(rest, 60)
        clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if number)
        days = f"{self.days}D" if self.days else ""
        return "P" + days + (f"T{clock}" if clock else "") if days or clock else "PT0S"

    def _moved(self, instant: datetime, sign: int) -> datetime:
        try:
            day = instant
            if self.days:
                # Without days, a time that comes twice stays the one of the two that it is.
                day = _local(instant.replace(tzinfo=None) + timedelta(days=sign * self.days), instant.tzinfo)
            moved = day.astimezone(timezone.utc) + timedelta(seconds=sign * self.seconds)
            return moved.astimezone(instant.tzinfo)
        except OverflowError:
            raise BadTime(f"{self.iso()} is too long: there is no such year") from None


def read_duration(text: str) -> Duration:
    """Return a length of time: ``3d12h``, ``90m``, ``2 days``, ``P3D``, ``PT72H``. BadTime."""
    plain = text.strip()
    iso = _ISO.fullmatch(plain)
    if sum(map(str.isdigit, plain)) > _DIGITS:
        raise BadTime(f"{text!r} is too long: there is no such year")
    if iso and any(iso.groups()):
        weeks, days, hours, minutes, seconds = (int(group or 0) for group in iso.groups())
        return _positive(text, Duration(7 * weeks + days, 3600 * hours + 60 * minutes + seconds))
    amounts: dict[str, int] = {}
    end = 0
    for part in _PART.finditer(plain.lower()):
        unit = _UNIT_OF.get(part[2])
        if part.start() != end or unit is None or unit in amounts:
            break
        amounts[unit] = int(part[1])
        end = part.end()
    if not amounts or end != len(plain):
        raise BadTime(f"{text!r} is no length of time; write it in whole units, as 3d, 12h, 90m, 1h30m, 2w or P3DT12H")
    days = 7 * amounts.get("w", 0) + amounts.get("d", 0)
    seconds = 3600 * amounts.get("h", 0) + 60 * amounts.get("m", 0) + amounts.get("s", 0)
    return _positive(text, Duration(days, seconds))


def read_time(text: str, *, now: datetime, start: datetime | None = None, end: datetime | None = None) -> datetime:
    """Return the instant that a text means to somebody in the zone of ``now``, in that zone. BadTime.

    ``now``: aware. ``start``: what ``+3d`` counts from, ``now`` if None. ``end``: what ``-2h`` counts from; without
    it such a text is no time.
    """
    plain = " ".join(text.split())
    low = plain.lower()
    if low == "now":
        return now
    if low.startswith("+"):
        return read_duration(plain[1:]).after(start or now)
    if low.startswith("-"):
        if end is None:
            raise BadTime(f"{text!r} is before now; write a time such as {EXAMPLES}")
        return read_duration(plain[1:]).before(end)
    if found := _DATE.fullmatch(plain):
        return _written(found, text, now.tzinfo)
    word, _, rest = low.partition(" ")
    if word == "next":
        word, _, rest = rest.partition(" ")
    if word in ("today", "tomorrow") or word in DAYS or word in {day[:3] for day in DAYS}:
        return _day(word, rest, text, now)
    if clock := _CLOCK.fullmatch(low):
        return _next(now.date(), clock, text, now, 1)
    raise BadTime(f"{text!r} is no time; write it as {'' if end is None else '-2d, '}{EXAMPLES}")


def utc(value: datetime) -> datetime:
    """Return an aware datetime in UTC, where it can be compared and subtracted.

    Python compares two of one zone by their clocks, and of an hour that comes twice the clocks are the same.
    """
    return value.astimezone(timezone.utc)


def zone(name: str | None = None) -> tzinfo:
    """Return the zone of an IANA name, or the user's: that of ``TZ``, or of the machine. BadTime if unknown."""
    # Lists of microversion 1.0 have no zones, and start sooner without it.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    wanted = name or os.environ.get("TZ", "").removeprefix(":") or _machine()
    if not wanted:
        return MachineZone()
    try:
        return timezone.utc if wanted == "UTC" else ZoneInfo(wanted)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if name is None:
            # TZ may be a rule, such as CET-1CEST, or a file, both of which the C library reads.
            return MachineZone()
        raise BadTime(f"There is no time zone {name!r}; write a name such as Europe/Berlin or UTC") from error


class MachineZone(tzinfo):
    """The zone that the C library goes by, whatever says so, with its changes of clocks."""

    def utcoffset(self, instant: datetime | None) -> timedelta:
        """Return what the clocks of the machine are ahead of UTC."""
        local = (instant or datetime.now()).replace(tzinfo=None)
        return local.astimezone().utcoffset() or timedelta()

    def dst(self, instant: datetime | None) -> timedelta | None:
        """Return None: how much of that is daylight saving is not known."""
        return None

    def tzname(self, instant: datetime | None) -> str | None:
        """Return the abbreviation of the zone."""
        return (instant or datetime.now()).replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, instant: datetime) -> datetime:
        """Return a time of UTC on the clocks of the machine."""
        fixed = instant.replace(tzinfo=timezone.utc).astimezone()
        local = fixed.replace(tzinfo=self, fold=0)
        return local if local.utcoffset() == fixed.utcoffset() else local.replace(fold=1)


def _machine() -> str:
    """Return the name of the machine's zone, or nothing if it has none to be found."""
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    if found:
        return name
    try:
        return Path("/etc/timezone").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _positive(text: str, duration: Duration) -> Duration:
    if duration.days == duration.seconds == 0:
        raise BadTime(f"{text!r} is no time at all; write how long, such as 3d or 90m")
    return duration


def _written(found: re.Match[str], text: str, local: tzinfo | None) -> datetime:
    year, month, day, hour, minute, second, offset = found.groups()
    try:
        naive = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as error:
        raise BadTime(f"{text!r} is no time: {error}") from None
    if offset is None:
        return _local(naive, local)
    if offset.upper() == "Z":
        return naive.replace(tzinfo=timezone.utc)
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    shift = timedelta(hours=hours, minutes=minutes)
    if minutes > 59:
        raise BadTime(f"{text!r} is no time: an offset has at most 59 minutes")
    try:
        return naive.replace(tzinfo=timezone(-shift if offset[0] == "-" else shift))
    except ValueError as error:
        raise BadTime(f"{text!r} is no time: {error}") from None


def _day(word: str, rest: str, text: str, now: datetime) -> datetime:
    clock = _CLOCK.fullmatch(rest.removeprefix("at ").strip() or "0:00")
    if clock is None:
        raise BadTime(f"{text!r} is no time; after the day comes a time such as 9:00")
    if word in ("today", "tomorrow"):
        return _at(now.date() + timedelta(days=word == "tomorrow"), clock, text, now.tzinfo)
    number = next(n for n, day in enumerate(DAYS) if day.startswith(word))
    return _next(now.date() + timedelta(days=(number - now.weekday()) % 7), clock, text, now, 7)


def _next(day: date, clock: re.Match[str], text: str, now: datetime, days: int) -> datetime:
    """Return a time of day on a day, or so many days later if it is over."""
    first = _at(day, clock, text, now.tzinfo)
    for wanted in (first, first.replace(fold=1)):
        if utc(wanted) >= utc(now):
            return wanted
    return _at(day + timedelta(days=days), clock, text, now.tzinfo)


def _at(day: date, clock: re.Match[str], text: str, local: tzinfo | None) -> datetime:
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    if clock[4]:
        if not 1 <= hour <= 12:
            raise BadTime(f"{text!r} is no time: with am and pm there are the hours 1 to 12")
        hour = hour % 12 + (12 if clock[4] == "pm" else 0)
    try:
        return _local(datetime.combine(day, time(hour, minute, second)), local)
    except ValueError as error:
        raise BadTime(f"{text!r} is no time: {error}") from None


def _local(naive: datetime, local: tzinfo | None) -> datetime:
    """Return a local time. One that the clocks leave out is moved on by the gap, by way of UTC."""
    aware = naive.replace(tzinfo=local, fold=0)
    return aware.astimezone(timezone.utc).astimezone(local)
