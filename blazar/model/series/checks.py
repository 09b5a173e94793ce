# SPDX-License-Identifier: Apache-2.0
"""Which series can be had: a request for one is looked at as a whole, before anything is booked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo

from blazar.model.base.clock import spell
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.series.recurrence import MOST_DAYS, LocalEnd, Occurrence, Recurrence
from blazar.model.series.rule import Walk
from blazar.model.series.rule_text import days_of

FIRST_YEAR, LAST_YEAR = 1970, 8990
MOST_DATES = 200
LONGEST = timedelta(days=5 * 365.25)
_FARTHEST = timedelta(days=MOST_DAYS)
_SECOND = timedelta(seconds=1)


class Fit(StrEnum):
    """What is booked of a series that does not fit as a whole."""

    ALL = "all"
    """Nothing."""
    AS_MANY = "as_many"
    """The occurrences that fit."""


@dataclass(frozen=True, slots=True)
class SeriesLimits:
    """How many occurrences a series may have, and how far ahead one without an end is booked."""

    max_occurrences: int = 1000
    horizon: timedelta = timedelta(days=180)


def check_series(
    recurrence: Recurrence, fit: Fit, limits: SeriesLimits, now: datetime, *, since: datetime | None = None
) -> tuple[Occurrence, ...]:
    """Return the occurrences that a new series has: all of them, or without an end those within the horizon from now.

    ``since`` is the one that it begins with, which may be an additional date before its start by the rule; None: it
    begins with that. InvalidInput names the part that is wrong and what would help. The zone must exist.
    """
    if not FIRST_YEAR <= recurrence.start.year <= LAST_YEAR:
        raise _invalid("start", f"the year {recurrence.start.year} is not from {FIRST_YEAR} to {LAST_YEAR}")
    _check_length(recurrence)
    _check_start(recurrence)
    first = recurrence.start.date()
    within = list(recurrence.rule_starts(first, first + _FARTHEST))
    if recurrence.rule.has_end:
        _check_end(recurrence, within)
    elif fit is Fit.ALL:
        raise _invalid("rule", "a series booked as a whole needs an end; give COUNT or UNTIL, or book as many as fit")
    _check_excluded(recurrence, within)
    _check_added(recurrence, within, now, since)
    every = _list_occurrences(recurrence, within, now)
    if not every:
        raise _invalid("exdates", f"no occurrence is left in the next {MOST_DAYS} days; leave fewer out")
    _check_overlaps(every, recurrence)
    booked = every if recurrence.rule.has_end else [o for o in every if o.start < now + limits.horizon]
    _check_limits(booked, recurrence, fit, limits, now)
    return tuple(booked)


def _check_limits(
    booked: Sequence[Occurrence], recurrence: Recurrence, fit: Fit, limits: SeriesLimits, now: datetime
) -> None:
    """Check that a series has not too many occurrences, and none that is too far ahead; InvalidInput."""
    if len(booked) > limits.max_occurrences:
        days = "" if recurrence.rule.has_end else f" in the next {limits.horizon.days} days"
        raise _invalid(
            "rule",
            f"the series has {len(booked)} occurrences{days}; the limit is {limits.max_occurrences}; choose an earlier "
            "end or a larger INTERVAL",
        )
    if fit is Fit.ALL and booked[-1].start >= now + limits.horizon:
        last = booked[-1].recurrence_id
        field, remedy = ("rdates", "leave it out") if last in recurrence.added else ("rule", "choose an earlier end")
        raise _invalid(
            field,
            f"the last occurrence starts {spell(last)}, and a series is booked as a whole at most "
            f"{limits.horizon.days} days ahead; {remedy}, or book as many as fit",
        )


def _list_occurrences(recurrence: Recurrence, within: Collection[datetime], now: datetime) -> Sequence[Occurrence]:
    """Return all occurrences of a series, or without an end those of the years from now on.

    ``within`` are the starts of the rule in its first years.
    """
    if recurrence.rule.has_end:
        starts = {*within} - recurrence.excluded | recurrence.added
        return sorted((recurrence.occurrence(local) for local in starts), key=Occurrence.sort_key)
    begin = max(recurrence.occurrence(min((recurrence.start, *recurrence.added))).start, now)
    return recurrence.occurrences(Window(begin, begin + _FARTHEST))


def _check_length(recurrence: Recurrence) -> None:
    length = recurrence.length
    if isinstance(length, timedelta):
        if not timedelta(0) < length <= LONGEST or length.microseconds:
            raise _invalid("duration", "it is not more than 0 and at most 5 years, in whole seconds")
    elif not 0 <= length.days <= MOST_DAYS:
        raise _invalid("until_local", f"{length.days} days after the start is not from 0 to {MOST_DAYS}")
    elif length.after(recurrence.start) <= recurrence.start:
        raise _invalid(
            "until_local",
            f"{length.at:%H:%M:%S} is not after the start at {recurrence.start:%H:%M:%S}; say how many days later it "
            "is",
        )


def _check_start(recurrence: Recurrence) -> None:
    """Check that the first start is an occurrence of the rule; the RFC leaves open what else it would be."""
    first = recurrence.start.date()
    found = next(Walk(recurrence.rule, first).dates(first, first + _FARTHEST), None)
    if found == first:
        return
    days = [f"{name}={value}" for name, value in days_of(recurrence.rule).items() if value]
    if found is None:
        raise _invalid(
            "rule",
            f"it has no occurrence within {MOST_DAYS} days of the start: hardly any day meets "
            f"{' and '.join(days)}; leave one out or choose other values",
        )
    raise _invalid(
        "start",
        f"{spell(recurrence.start)} is not an occurrence of the rule, with {' and '.join(days)}; start at "
        f"{spell(datetime.combine(found, recurrence.start.time()))}, or change the rule",
    )


def _check_end(recurrence: Recurrence, within: Collection[datetime]) -> None:
    rule = recurrence.rule
    if rule.count is not None and len(within) < rule.count:
        raise _invalid(
            "rule",
            f"COUNT={rule.count}: only {len(within)} occurrences are within {MOST_DAYS} days of the start; give at "
            f"most COUNT={len(within)}, or leave it out for a series without an end",
        )
    if rule.until is None:
        return
    until = rule.until if rule.until.tzinfo is None else rule.until.astimezone(ZoneInfo(recurrence.zone))
    if not within:
        raise _invalid("rule", f"UNTIL: {spell(until)} is before the start; choose a later one")
    if until.date() > recurrence.start.date() + _FARTHEST:
        raise _invalid(
            "rule",
            f"UNTIL: {spell(until)} is more than {MOST_DAYS} days after the start; choose an earlier one, or leave it "
            "out for a series without an end",
        )


def _check_excluded(recurrence: Recurrence, within: Collection[datetime]) -> None:
    _check_number("exdates", recurrence.excluded)
    if missed := recurrence.excluded - _find_rule_dates(recurrence, recurrence.excluded, within):
        raise _invalid("exdates", f"{_spell_dates(missed)} is no occurrence of the rule; leave it out, or correct it")


def _check_added(recurrence: Recurrence, within: Collection[datetime], now: datetime, since: datetime | None) -> None:
    _check_number("rdates", recurrence.added)
    earliest = recurrence.start if since is None else min(recurrence.start, since - _SECOND)
    last = max(recurrence.start, now.astimezone(ZoneInfo(recurrence.zone)).replace(tzinfo=None)) + _FARTHEST
    if far := {local for local in recurrence.added if not earliest < local < last}:
        raise _invalid(
            "rdates", f"{_spell_dates(far)} is not after the start and at most {MOST_DAYS} days ahead; leave it out"
        )
    if doubled := _find_rule_dates(recurrence, recurrence.added, within):
        raise _invalid("rdates", f"{_spell_dates(doubled)} is an occurrence of the rule already; leave it out")


def _find_rule_dates(
    recurrence: Recurrence, dates: frozenset[datetime], within: Collection[datetime]
) -> frozenset[datetime]:
    """Return those of some local times that are starts of the rule; ``within`` are those of its first years."""
    found = dates.intersection(within)
    if recurrence.rule.has_end:
        return found
    walk = Walk(recurrence.rule, recurrence.start.date())
    at = recurrence.start.time()
    later = (date for date in dates - found if date.time() == at and date.year <= LAST_YEAR)
    return found.union(local for local in later if any(walk.dates(local.date(), local.date())))


def _check_number(field: str, dates: Collection[datetime]) -> None:
    if len(dates) > MOST_DATES:
        raise _invalid(field, f"{len(dates)} dates are given; the limit is {MOST_DATES}; change the rule instead")


def _check_overlaps(occurrences: Sequence[Occurrence], recurrence: Recurrence) -> None:
    """Check that no occurrence begins before the one before it has ended; those without time are in nobody's way."""
    zone = ZoneInfo(recurrence.zone)
    for one, other in pairwise(occurrence for occurrence in occurrences if occurrence.window is not None):
        if one.end <= other.start:
            continue
        if added := recurrence.added & {one.recurrence_id, other.recurrence_id}:
            (own, *_) = sorted(added)
            near = one if own == other.recurrence_id else other
            raise _invalid(
                "rdates",
                f"the occurrence of {spell(own)} overlaps that of {spell(near.recurrence_id)}; leave it out, or choose "
                "another time",
            )
        shorter = "give fewer days or an earlier end"
        if isinstance(recurrence.length, timedelta):
            shorter = "choose a shorter duration, or give the end by the wall clock"
            if recurrence.zone == "UTC" or recurrence.length < timedelta(hours=12):
                shorter = "choose a shorter duration"
        field = "until_local" if isinstance(recurrence.length, LocalEnd) else "duration"
        raise _invalid(
            field,
            f"the occurrence of {spell(one.recurrence_id)} ends {spell(one.end.astimezone(zone))}, after that of "
            f"{spell(other.recurrence_id)} has started {spell(other.start.astimezone(zone))}; {shorter}, or change "
            "the rule",
        )


def _spell_dates(dates: Collection[datetime]) -> str:
    """Return the first of some dates, and how many more there are."""
    first, *others = sorted(dates)
    return spell(first) + (f" (and {len(others)} more)" if others else "")


def _invalid(field: str, sentence: str) -> InvalidInput:
    return InvalidInput(f"{field}: {sentence}", at=f"/{field}")
