# SPDX-License-Identifier: Apache-2.0
"""Changes of a series from one of its occurrences on: what is left of it before, and how it recurs from then on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from blazar.model.base.clock import spell
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import Duration
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.series.checks import FIRST_YEAR, LAST_YEAR, Fit
from blazar.model.series.recurrence import MOST_DAYS, LocalEnd, Recurrence
from blazar.model.series.rule import Rule

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_DECISIVE = ("rule", "exdates", "rdates", "start", "time_zone", "duration", "until_local", "from")
"""Fields of a change from which the occurrences follow, those that take some away first."""


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """Changes of a series ``since`` one of its occurrences, None for all that have not begun.

    None leaves a value as it is. ``sets_before_end``: the warning changes, with ``before_end`` None to the operator's
    lead time; ``sets_max_price``: so does the most that each lease may cost. ``with_changed``: leases that somebody
    changed by themselves are changed, too. ``revisions``: those that the series may have, None for any.
    """

    since: datetime | None = None
    name: str | None = None
    rule: Rule | None = None
    start: datetime | None = None
    zone: str | None = None
    length: timedelta | LocalEnd | None = None
    excluded: frozenset[datetime] | None = None
    added: frozenset[datetime] | None = None
    before_end: Duration | None = None
    sets_before_end: bool = False
    reservations: tuple[ReservationRequest, ...] | None = None
    reminders: tuple[Reminder, ...] | None = None
    fit: Fit | None = None
    max_price: str | None = None
    sets_max_price: bool = False
    keep_hosts: bool | None = None
    with_changed: bool = False
    asked_by: Actor | None = None
    dry_run: bool = False
    revisions: tuple[int, ...] | None = None


def is_as_before(change: SeriesChange, recurrence: Recurrence, fit: Fit, name: str) -> bool:
    """Tell whether a change gives a series only the name, the dates and the way to fit that it has already.

    What names an occurrence, or asks for leases that were changed by themselves, means more than its values.
    """
    if change.since is not None or change.with_changed:
        return False
    pairs: tuple[tuple[object, object], ...] = (
        (change.name, name),
        (change.rule, recurrence.rule),
        (change.start, recurrence.start),
        (change.zone, recurrence.zone),
        (change.length, recurrence.length),
        (change.excluded, recurrence.excluded),
        (change.added, recurrence.added),
        (change.fit, fit),
    )
    return all(given is None or given == known for given, known in pairs)


@contextmanager
def point_errors_at_changed_field(change: SeriesChange) -> Iterator[None]:
    """Have errors about a change point at a field that it has: what is wrong may follow from another one."""
    fields = {
        "from": change.since,
        "rule": change.rule,
        "start": change.start,
        "time_zone": change.zone,
        "until_local" if isinstance(change.length, LocalEnd) else "duration": change.length,
        "exdates": change.excluded,
        "rdates": change.added,
        "name": change.name,
        "reservations": change.reservations,
        "reminders": change.reminders,
        "keep_hosts": change.keep_hosts,
        "fit": change.fit,
    }
    given = [name for name, value in fields.items() if value is not None]
    given += ["before_end_date"] if change.sets_before_end else []
    try:
        yield
    except InvalidInput as error:
        if error.pointer is not None and error.pointer.split("/")[1] not in given:
            error.pointer = next((f"/{field}" for field in _DECISIVE if field in given), None)
        raise


def cut_before(recurrence: Recurrence, first: datetime) -> Recurrence:
    """Return what is left of a series before one of its occurrences."""
    rule = replace(recurrence.rule, count=None, until=first - _SECOND)
    return replace(
        recurrence,
        rule=rule,
        excluded=frozenset(local for local in recurrence.excluded if local < first),
        added=frozenset(local for local in recurrence.added if local < first),
    )


def resume_from(
    recurrence: Recurrence, first: datetime, change: SeriesChange, last: datetime | None = None
) -> Recurrence:
    """Return how a series recurs from one of its occurrences on, after a change. InvalidInput.

    ``last`` is the one before it. Of a COUNT the rest is left. Dates that are left out or added stay, at another time
    of day if the starts get one; what the rule no longer has need not be left out, nor what it has now be added.
    """
    start, rule = _find_rule_start(recurrence, first, last, named=change.since is not None), recurrence.rule
    if rule.count is not None:
        before = list(recurrence.rule_starts(recurrence.start.date(), start.date()))
        rule = replace(rule, count=rule.count - before.index(start))
    plain = Recurrence(
        start=start if change.start is None else change.start,
        zone=change.zone or recurrence.zone,
        rule=rule if change.rule is None else change.rule,
        length=recurrence.length if change.length is None else change.length,
    )

    if not FIRST_YEAR <= plain.start.year <= LAST_YEAR:
        # It is refused, and a rule cannot be expanded that far.
        return plain
    kept, more = (
        frozenset(_move_to_time(plain, date, recurrence) for date in dates if date >= first)
        for dates in (recurrence.excluded, recurrence.added)
    )
    days = [local.date() for local in kept | more]
    starts = frozenset(plain.rule_starts(min(days), max(days)) if days else ())
    return replace(
        plain,
        excluded=(kept & starts) - {change.start} if change.excluded is None else change.excluded,
        added=more - starts if change.added is None else change.added,
    )


def _move_to_time(after: Recurrence, local: datetime, before: Recurrence) -> datetime:
    """Return a start at the time of day of a changed series; one that had a time of its own keeps that."""
    return datetime.combine(local.date(), after.start.time()) if local.time() == before.start.time() else local


def _find_rule_start(recurrence: Recurrence, first: datetime, last: datetime | None, *, named: bool) -> datetime:
    """Return the start by the rule with which a series goes on from one of its occurrences on. InvalidInput.

    That is another one only for an occurrence that has kept its time while the starts of the series changed, and for an
    additional date that nobody has named (not ``named``).
    """
    begin = max(first, recurrence.start).date()
    coming = recurrence.rule_starts(begin, begin + MOST_DAYS * _DAY)
    found = next((local for local in coming if last is None or local > last), None)
    if found is None or (named and found != first and first in recurrence.added):
        raise InvalidInput(
            f"from: {spell(first)} is an additional date; name an occurrence of the rule, or change its lease by "
            "itself",
            at="/from",
        )
    return found
