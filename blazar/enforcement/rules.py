# SPDX-License-Identifier: Apache-2.0
"""Filters of the rules that operators write: opening hours, and gaps between the leases of a project.

They need no option: a rule holds from when it is written on. As for limits, a change that asks for no more time is not
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from oslo_config import cfg

from blazar.calendar.counting import Run, intersect_runs
from blazar.calendar.rules import (
    HoursFault,
    find_fault,
    find_last_end,
    follows_too_soon,
    list_allowed_starts,
    list_starts_apart,
)
from blazar.calendar.timeline import epoch, from_epoch
from blazar.enforcement.limits import LimitFilter, list_dates
from blazar.enforcement.sentences import next_minute, propose_dates, span, spell
from blazar.enforcement.values import Question
from blazar.model.base.clock import later, zulu
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Exceeded
from blazar.model.rules.open_time import Span
from blazar.model.rules.values import BookingRule, Gap, Hours, RuleKind
from blazar.model.use.resource_hours import UsageRecord

LOOK_AHEAD = timedelta(days=366)
"""How far a refusal looks for another start."""


class RuleFilter(LimitFilter):
    """The base of filters that take rules of one kind."""

    options: ClassVar[list[cfg.Opt]] = []

    def __init__(self, rules: Iterable[BookingRule] = ()) -> None:
        self.rules = tuple(rules)

    @classmethod
    def configured(cls, section: Any, identity: Any) -> RuleFilter:
        """Return a filter without rules: these are no options."""
        return cls()

    def check(self, question: Question) -> None:
        """Deny a lease at a time at which a rule does not allow it."""
        current = question.current
        if current is None or not current.window.covers(question.wanted.window):
            for rule in self.list_concerned(question.wanted.lease):
                _check_rule(rule, question)

    def list_concerned(self, lease: Lease) -> Sequence[BookingRule]:
        """Return the rules that hold for a lease."""
        types = {reservation.resource_type for reservation in lease.asked_for}
        return [rule for rule in self.rules if rule.applies_to.includes(lease.project_id, types)]


class HoursFilter(RuleFilter):
    """Denies leases that begin, end or last outside the opening hours of the site."""


class GapFilter(RuleFilter):
    """Denies leases that follow another one of the project too soon, or come too soon before another one."""

    needs_use: ClassVar[bool] = True

    def usage_window(self, window: Window) -> Window:
        """Return the time over which the other leases of a project count: the longest gap before and after."""
        gaps = [rule.terms.at_least for rule in self.rules if isinstance(rule.terms, Gap)]
        gap = timedelta(seconds=max(gaps, default=0))
        return Window(window.start - gap, later(window.end, gap))


def make_filters(rules: Iterable[BookingRule]) -> Sequence[RuleFilter]:
    """Return the filters that these rules need; none for those that are not active."""
    active = [rule for rule in rules if rule.active]
    kinds = {RuleKind.HOURS: HoursFilter, RuleKind.GAP: GapFilter}
    found = {kind: [rule for rule in active if rule.kind is kind] for kind in kinds}
    return [kinds[kind](some) for kind, some in found.items() if some]


def list_starts(
    filters: Iterable[RuleFilter],
    lease: Lease,
    kinds: Collection[str],
    usage: Sequence[UsageRecord],
    first: datetime,
    last: datetime,
) -> Sequence[Run]:
    """Return the first and the last of each run of starts, in a time, at which rules allow a lease of this length.

    ``kinds`` are those of which it takes resources.
    """
    whole: Run = (epoch(first), epoch(last))
    found: list[Run] = [whole]
    for one in filters:
        for rule in one.list_concerned(lease):
            found = intersect_runs(found, _list_starts(rule.terms, lease, kinds, usage, whole))
    return found


def _check_rule(rule: BookingRule, question: Question) -> None:
    match rule.terms:
        case Hours() as hours:
            _check_hours(rule, hours, question)
        case Gap() as gap:
            _check_gap(rule, gap, question)


def _list_starts(
    terms: Hours | Gap, lease: Lease, kinds: Collection[str], usage: Sequence[UsageRecord], within: Run
) -> list[Run]:
    match terms:
        case Hours():
            return list_allowed_starts(terms, _length(lease.window), *within)
        case Gap():
            return list_starts_apart(terms, _list_others(terms, lease, kinds, usage), _length(lease.window), *within)


def _check_hours(rule: BookingRule, hours: Hours, question: Question) -> None:
    window, had = question.wanted.window, None if question.current is None else question.current.window
    fault = find_fault(hours, _span(window), None if had is None else _span(had))
    if fault is None:
        return
    other = _find_window(question, lambda within: list_allowed_starts(hours, _length(window), *within))
    fits, advice = list_dates(other), propose_dates(other)
    if other is None:
        advice = "shorten it"
        if fault is not HoursFault.START and (end := _find_end(hours, window, had)) is not None:
            fits, advice = {"end_date": zulu(end)}, f"choose another end, as {spell(end)}"
    zone = hours.open_time.zone
    field, told = {
        HoursFault.START: ("start_date", f"{spell(window.start)} is not in the opening hours"),
        HoursFault.END: ("end_date", f"{spell(window.end)} is not in the opening hours"),
        HoursFault.BETWEEN: ("end_date", _tell_across(hours)),
    }[fault]
    denial = Exceeded(rule.name, "open_time", hours.apply, fault, fits=fits)
    raise denial.make_denial(f"{field}: {told} (rule {rule.name}, {zone}); {advice}", at=f"/{field}")


def _tell_across(hours: Hours) -> str:
    if not hours.longest_across:
        return "a lease ends before the next closing time, and begins after the last"
    return f"a lease may last over closed time of {span(timedelta(seconds=hours.longest_across))} at most"


def _find_window(question: Question, list_runs: Callable[[Run], Sequence[Run]]) -> Window | None:
    """Return the first window of the length that is asked for, at one of the starts within a time; None: there is none.

    It is looked for within a year; a lease that has begun keeps its start.
    """
    window, current = question.wanted.window, question.current
    if current is not None and current.window.start <= question.now:
        return None
    first = max(window.start, next_minute(question.now))
    runs = list_runs((epoch(first), epoch(later(first, LOOK_AHEAD))))
    return Window(start := from_epoch(runs[0][0]), later(start, window.duration)) if runs else None


def _find_end(hours: Hours, window: Window, before: Window | None) -> datetime | None:
    after = window.start if before is None else max(window.start, before.end)
    end = find_last_end(hours, epoch(window.start), epoch(after), epoch(window.end))
    return None if end is None else from_epoch(end)


def _check_gap(rule: BookingRule, gap: Gap, question: Question) -> None:
    window, lease = question.wanted.window, question.wanted.lease
    kinds = {str(one.resource.kind) for one in question.wanted.allocated_resources}
    others = _list_others(gap, lease, kinds, question.usage)
    near = [other for other in others if follows_too_soon(gap, _span(window), other)]
    if not near:
        return
    # What is further away than the gap is not known: it is looked at when that start is asked for.
    dates = _find_window(question, lambda within: list_starts_apart(gap, others, _length(window), *within))
    begins, ends = (spell(from_epoch(instant)) for instant in near[0])
    denial = Exceeded(
        rule.name, "seconds", gap.at_least, _find_distance(_span(window), near[0]), fits=list_dates(dates)
    )
    raise denial.make_denial(
        f"start_date, end_date: the project has a lease from {begins} to {ends}, and between it and the next lie "
        f"{span(timedelta(seconds=gap.at_least))} at least (rule {rule.name}); {propose_dates(dates)}"
    )


def _find_distance(one: Span, other: Span) -> int:
    first, following = sorted((one, other))
    return max(0, following[0] - first[1])


def _list_others(gap: Gap, lease: Lease, kinds: Collection[str], usage: Sequence[UsageRecord]) -> list[Span]:
    """Return the windows of other leases that a gap counts, one of each; occurrences of the same series are none.

    ``kinds`` are those of which the lease takes resources.
    """
    series = None if lease.series is None else lease.series.series_id
    found: dict[str, Span] = {}
    for record in usage:
        if record.lease_id == lease.id or (series is not None and record.series_id == series):
            continue
        if gap.same_kind and record.kind not in kinds:
            continue
        start, end = _span(record.window)
        known = found.get(record.lease_id, (start, end))
        found[record.lease_id] = min(start, known[0]), max(end, known[1])
    return sorted(found.values())


def _length(window: Window) -> int:
    return int(window.duration.total_seconds())


def _span(window: Window) -> Span:
    return epoch(window.start), epoch(window.end)
