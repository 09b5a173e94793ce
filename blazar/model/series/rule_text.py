# SPDX-License-Identifier: Apache-2.0
"""Recurrence rules as text, in the words of RFC 5545, 3.3.10: ``FREQ=WEEKLY;BYDAY=MO,WE;COUNT=30``.

What is not in the subset is refused by its name, as is all that other libraries read in different ways: lower case,
parts that are empty or given twice, several lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time

from blazar.model.base.errors import InvalidInput
from blazar.model.series.rule import MOST_INTERVAL, Frequency, Rule, Weekday

MOST_CHARACTERS = 500
MOST_COUNT = 1000
MOST_ORDINAL = 5
FIRST_YEAR, LAST_YEAR = 1970, 8999

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_FREQUENCIES = "DAILY, WEEKLY, MONTHLY or YEARLY"
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST")
_TIMES = "each occurrence begins at the time of the start; leave it out, and create one series for each time of day"
_UNSUPPORTED = {
    "BYHOUR": _TIMES,
    "BYMINUTE": _TIMES,
    "BYSECOND": _TIMES,
    "BYWEEKNO": "use FREQ=WEEKLY with INTERVAL, or FREQ=YEARLY with BYMONTH and BYDAY",
    "BYYEARDAY": "use BYMONTH and BYMONTHDAY",
    "BYEASTER": "list the dates as additional ones",
    "RSCALE": "leave it out; dates are those of the Gregorian calendar",
    "SKIP": "leave it out; what a month does not have is left out",
}
_ORDINARY = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=;,+-")
_WEEKDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)
_SIGNED = re.compile(r"[+-]?\d{1,4}", re.ASCII)
_UNTIL = re.compile(r"(\d{8})(T(\d{6})(Z?))?", re.ASCII)
_SHOWN = 40


def parse_rule(text: str) -> Rule:
    """Return the rule of a text; InvalidInput with a sentence that names the part that is wrong."""
    parts = _split_parts(text)
    frequency = _parse_frequency(parts)
    if "COUNT" in parts and "UNTIL" in parts:
        raise _invalid("COUNT and UNTIL cannot both be given; leave one of them out")
    rule = Rule(
        frequency,
        interval=_parse_number(parts, "INTERVAL", MOST_INTERVAL) or 1,
        count=_parse_number(parts, "COUNT", MOST_COUNT),
        until=_parse_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        weekdays=_parse_weekdays(parts, frequency),
        month_days=_parse_numbers(parts, "BYMONTHDAY", 31, signed=True),
        months=_parse_numbers(parts, "BYMONTH", 12),
        positions=_parse_numbers(parts, "BYSETPOS", 31, signed=True),
        week_start=_parse_week_start(parts),
    )
    if rule.month_days and frequency is Frequency.WEEKLY:
        raise _invalid("BYMONTHDAY cannot be given with FREQ=WEEKLY; use BYDAY, or FREQ=MONTHLY")
    if rule.positions:
        _check_positions(rule)
    return rule


def rule_text(rule: Rule) -> str:
    """Return the text of a rule, which ``parse_rule`` reads; parts with their default values are left out."""
    until = rule.until and rule.until.strftime("%Y%m%dT%H%M%S") + ("Z" if rule.until.tzinfo else "")
    parts = {
        "FREQ": rule.frequency.value,
        "INTERVAL": str(rule.interval) if rule.interval > 1 else "",
        "COUNT": "" if rule.count is None else str(rule.count),
        "UNTIL": until or "",
        **days_of(rule),
        "WKST": WEEKDAYS[rule.week_start] if rule.week_start else "",
    }
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def days_of(rule: Rule) -> Mapping[str, str]:
    """Return the parts of a rule that choose days, by name; empty texts for those that are not given."""
    weekdays = (
        f"{'' if weekday.ordinal is None else weekday.ordinal}{WEEKDAYS[weekday.day]}" for weekday in rule.weekdays
    )
    return {
        "BYDAY": ",".join(weekdays),
        "BYMONTHDAY": ",".join(map(str, rule.month_days)),
        "BYMONTH": ",".join(map(str, rule.months)),
        "BYSETPOS": ",".join(map(str, rule.positions)),
    }


def _split_parts(text: str) -> Mapping[str, str]:
    if len(text) > MOST_CHARACTERS:
        raise _invalid(f"it has {len(text)} characters; the limit is {MOST_CHARACTERS}")
    if text.startswith("RRULE"):
        raise _invalid("leave RRULE: out, and begin with FREQ=")
    if strange := next((character for character in text if character not in _ORDINARY), None):
        raise _invalid(
            f"{strange!r} cannot be in a rule; write one rule in capital letters, without spaces and line breaks, such "
            "as FREQ=WEEKLY;BYDAY=MO,WE;COUNT=30"
        )
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if name in _UNSUPPORTED:
            raise _invalid(f"{name} is not supported: {_UNSUPPORTED[name]}")
        if name and name not in _PARTS:
            raise _invalid(f"{_shorten(name)} is no part of a rule; the parts are {', '.join(_PARTS)}")
        if not value:
            raise _invalid(
                f"{_shorten(part)!r} is not a part such as FREQ=WEEKLY; parts are separated by one semicolon"
            )
        if name in parts:
            raise _invalid(f"{name} is given twice; give it once, with its values separated by commas")
        parts[name] = value
    return parts


def _parse_frequency(parts: Mapping[str, str]) -> Frequency:
    if "FREQ" not in parts:
        raise _invalid(f"FREQ is missing; give {_FREQUENCIES}")
    try:
        return Frequency(parts["FREQ"])
    except ValueError:
        raise _invalid(f"FREQ={_shorten(parts['FREQ'])} is not supported; give {_FREQUENCIES}") from None


def _parse_number(parts: Mapping[str, str], name: str, most: int) -> int | None:
    if name not in parts:
        return None
    value = parts[name]
    if not _NUMBER.fullmatch(value) or not 1 <= int(value) <= most:
        raise _invalid(f"{name}={_shorten(value)} is not a whole number from 1 to {most}")
    return int(value)


def _parse_numbers(parts: Mapping[str, str], name: str, most: int, *, signed: bool = False) -> tuple[int, ...]:
    found: list[int] = []
    for value in _split_values(parts, name):
        number = int(value) if (_SIGNED if signed else _NUMBER).fullmatch(value) else 0
        if not 1 <= (abs(number) if signed else number) <= most:
            range_ = f"1 to {most}" + (f" or -1 to -{most}" if signed else "")
            raise _invalid(f"{name}: {_shorten(value)!r} is not a whole number from {range_}")
        if number in found:
            raise _invalid(f"{name}: {number} is given twice; leave one out")
        found.append(number)
    return tuple(found)


def _parse_weekdays(parts: Mapping[str, str], frequency: Frequency) -> tuple[Weekday, ...]:
    found: list[Weekday] = []
    for value in _split_values(parts, "BYDAY"):
        match = _WEEKDAY.fullmatch(value)
        if match is None:
            raise _invalid(
                f"BYDAY: {_shorten(value)!r} is none of {', '.join(WEEKDAYS)}, with a number as in -1FR or without"
            )
        ordinal = None if match[1] is None else int(match[1])
        if ordinal is not None:
            if frequency not in (Frequency.MONTHLY, Frequency.YEARLY):
                raise _invalid(f"BYDAY: {value} has a number: only with FREQ=MONTHLY or YEARLY; give {match[2]}")
            if not 1 <= abs(ordinal) <= MOST_ORDINAL:
                raise _invalid(f"BYDAY: the number of {value} is not from 1 to {MOST_ORDINAL} or -1 to -{MOST_ORDINAL}")
        weekday = Weekday(WEEKDAYS.index(match[2]), ordinal)
        if weekday in found:
            raise _invalid(f"BYDAY: {value} is given twice; leave one out")
        found.append(weekday)
    return tuple(found)


def _split_values(parts: Mapping[str, str], name: str) -> list[str]:
    return parts[name].split(",") if name in parts else []


def _parse_week_start(parts: Mapping[str, str]) -> int:
    value = parts.get("WKST", WEEKDAYS[0])
    if value not in WEEKDAYS:
        raise _invalid(f"WKST={_shorten(value)} is no weekday; they are {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(value)


def _parse_until(value: str) -> datetime:
    """Return the last instant: in UTC with a Z, else local; a date is all of that day."""
    match = _UNTIL.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        found = datetime.strptime(match[1], "%Y%m%d")
        end_of_day = time(23, 59, 59)
        at = datetime.strptime(match[3], "%H%M%S").time() if match[3] else end_of_day
    except ValueError:
        raise _invalid(f"UNTIL={_shorten(value)} is not a date such as 20301231 or 20301231T235959Z") from None
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        raise _invalid(
            f"UNTIL={value} is not of the years {FIRST_YEAR} to {LAST_YEAR}; choose another, or leave it out"
        )
    return datetime.combine(found, at, UTC if match[4] else None)


def _check_positions(rule: Rule) -> None:
    if rule.frequency not in (Frequency.MONTHLY, Frequency.YEARLY):
        raise _invalid(f"BYSETPOS cannot be given with FREQ={rule.frequency}; give the days with BYDAY instead")
    if not (rule.weekdays or rule.month_days or rule.months):
        raise _invalid("BYSETPOS counts the days that another part chooses; give BYDAY or BYMONTHDAY with it")


def _shorten(value: str) -> str:
    return value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"


def _invalid(sentence: str) -> InvalidInput:
    return InvalidInput(f"rule: {sentence}", at="/rule")
