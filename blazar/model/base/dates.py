# SPDX-License-Identifier: Apache-2.0
"""Dates and durations as clients write them, from microversion 1.1 on.

What depends on the server's clock, or on another date of the request, is passed on as it is: ``now`` and durations are
resolved by the manager.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from blazar.model.base.errors import FaultPlace, InvalidInput, pointer_to, query_field
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.values import dataclass

FIRST_YEAR, LAST_YEAR = 1970, 8999
LONGEST = timedelta(days=5 * 365.25)
MOST_CHARACTERS = 64

_NO_ZONES = frozenset({"Factory", "localtime", "posixrules"})
"""Files beside the zones of a database: what they mean depends on the machine, or they mean nothing."""

DATE_ONLY = "a date such as 2030-04-01T08:00:00Z, 2030-04-01T10:00+02:00 or 2030-04-01 08:00"
DATE_FORMAT = f"{DATE_ONLY}, or 'now'"
DURATION_FORMAT = "a duration in whole units such as P3D, PT90M, P1M, 72h, 3d12h or 2w"

LOCAL_DATE = r"\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?"
"""Matches a date without an offset. Programs write fractions of a second, which are cut off."""

_DATE = re.compile(rf"{LOCAL_DATE}([Zz]|[+-]\d\d(:?\d\d)?)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LOST_PLUS = re.compile(rf"{LOCAL_DATE} \d\d(:?\d\d)?", re.ASCII)
_FRACTION = re.compile(r"\.\d+", re.ASCII)
_ISO = re.compile(
    r"P(?=.)((?P<years>\d+)Y)?((?P<months>\d+)M)?((?P<weeks>\d+)W)?((?P<days>\d+)D)?"
    r"(T(?=.)((?P<hours>\d+)H)?((?P<minutes>\d+)M)?((?P<seconds>\d+)S)?)?",
    re.ASCII,
)
_SHORT = re.compile(
    r"(?=.)((?P<weeks>\d+)w)?((?P<days>\d+)d)?((?P<hours>\d+)h)?((?P<minutes>\d+)m)?((?P<seconds>\d+)s)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is in a request, and its name in sentences."""

    name: str
    at: FaultPlace

    def invalid(self, text: str, wanted: str, code: str = "invalid_date") -> InvalidInput:
        """Return the error for a text that does not fit."""
        shown = repr(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…")
        sentence = f"{self.name} is {shown}, which is invalid; give {wanted}"
        return InvalidInput(sentence, code=code, at=self.at)


def in_body(*path: str | int) -> Place:
    """Return the place of a field of the body."""
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return Place(name.removeprefix("."), FaultPlace(pointer_to(path)))


def in_query(name: str) -> Place:
    """Return the place of a query parameter."""
    return Place(name, query_field(name))


def zone(text: str, place: Place) -> str:
    """Return the name of a time zone of the IANA database; InvalidInput if there is none of this name."""
    if text not in _zones():
        raise place.invalid(text, "the name of a time zone such as Europe/Paris, or UTC", "invalid_value")
    return text


def date(text: str, place: Place, *, zone: str = "UTC", wanted: str = DATE_ONLY) -> datetime:
    """Return a date in UTC, to the second; without an offset it is a local time of ``zone``.

    InvalidInput says what is ``wanted``.
    """
    if place.at.kind == "parameter" and _LOST_PLUS.fullmatch(text[: MOST_CHARACTERS + 1]):
        raise place.invalid(text, "the + of the offset as %2B: in a query a + is a space")
    if len(text) > MOST_CHARACTERS or not _DATE.fullmatch(text):
        raise place.invalid(text, wanted)
    try:
        named = datetime.fromisoformat(to_the_second(text))
        # Of two equal local times the first counts, and in a gap the offset before it.
        found = (named.replace(tzinfo=ZoneInfo(zone), fold=0) if named.tzinfo is None else named).astimezone(UTC)
    except (OverflowError, ValueError):
        raise place.invalid(text, wanted) from None
    if not (FIRST_YEAR <= named.year <= LAST_YEAR and FIRST_YEAR <= found.year <= LAST_YEAR):
        raise place.invalid(text, f"a date of the years {FIRST_YEAR} to {LAST_YEAR}")
    return found


def day_or_date(text: str, place: Place, *, zone: str) -> datetime:
    """Return a date in UTC; a day alone begins at midnight of ``zone``. InvalidInput."""
    if _DAY.fullmatch(text):
        try:
            return date(f"{text}T00:00", place, zone=zone)
        except InvalidInput:
            raise place.invalid(text, "a day of the years 1970 to 8999, such as 2030-04-01") from None
    return date(text, place, wanted=f"{DATE_ONLY}, or a day such as 2030-04-01")


def to_the_second(text: str) -> str:
    """Return the text of a date as the library reads it: in capitals, without the fraction of a second."""
    return _FRACTION.sub("", text).upper()


def moment(text: str, place: Place, *, zone: str = "UTC") -> Moment:
    """Return a date, or ``NOW``. InvalidInput."""
    return NOW if text == "now" else date(text, place, zone=zone, wanted=DATE_FORMAT)


def duration(text: str, place: Place, *, zone: str = "UTC") -> Duration:
    """Return a duration without a sign; its months and days are those of ``zone``. InvalidInput."""
    return _duration(text, text, place, zone)


def moment_or_duration(text: str, place: Place, *, zone: str = "UTC", backward: bool = False) -> Moment | Duration:
    """Return a date, ``NOW``, or a duration with its sign; ``-`` only if it may go ``backward``. InvalidInput."""
    if text[:1] == "+" or (backward and text[:1] == "-"):
        found = _duration(text[1:], text, place, zone)
        return _backward(found) if text[0] == "-" else found
    if text[:1] == " " and place.at.kind == "parameter":
        raise place.invalid(text, "the + as %2B: in a query a + is a space")
    if text[:1] in ("-", "P") or _SHORT.fullmatch(text):
        signs = "+ or -" if backward else "+"
        raise place.invalid(text, f"{DATE_FORMAT}, or a duration with its sign, {signs}")
    return moment(text, place, zone=zone)


def _backward(found: Duration) -> Duration:
    return Duration(found.years, found.months, found.days, found.seconds, found.zone, backward=True)


def _duration(text: str, shown: str, place: Place, zone: str) -> Duration:
    match = (_ISO.fullmatch(text) or _SHORT.fullmatch(text)) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        raise place.invalid(shown, DURATION_FORMAT)
    parts = {name: int(number) for name, number in match.groupdict().items() if number is not None}
    found = Duration(
        years=parts.get("years", 0),
        months=parts.get("months", 0),
        days=7 * parts.get("weeks", 0) + parts.get("days", 0),
        seconds=3600 * parts.get("hours", 0) + 60 * parts.get("minutes", 0) + parts.get("seconds", 0),
        zone=zone,
    )
    if not timedelta(0) < found.longest <= LONGEST:
        raise place.invalid(shown, "a duration of more than 0 and at most 5 years")
    return found


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) - _NO_ZONES
