# SPDX-License-Identifier: Apache-2.0
"""A budget of resource-hours for each project and period.

A period is a calendar month or week, or rolling: some days from any time on. All in UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from oslo_config import cfg, types

from blazar.enforcement.hours_room import MOST_STARTS, HoursExcess, HoursRoom, Period, Uses, add_periods
from blazar.enforcement.limits import LimitFilter, count_only_reservation, read_numbers
from blazar.enforcement.sentences import seconds, span, spell
from blazar.enforcement.unified import PREFIX, UnifiedLimits
from blazar.enforcement.values import Question
from blazar.model.base.clock import END_OF_TIME, later, to_second, zulu
from blazar.model.base.errors import EnforcementUnavailable, InvalidInput, UsageDenied
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetFacts, BudgetSource, ProjectBudget, hours_down, hours_up
from blazar.model.billing.fits import find_most
from blazar.model.leases.limits import RAISE_LIMIT, Exceeded, Fits
from blazar.model.use.resource_hours import (
    MEASURES,
    ReachedShare,
    UsageCurve,
    UsageRecord,
    epoch,
    find_reached,
    measures,
    roll_sums,
)

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
LONGEST = 3660
"""Maximum days of a rolling period."""


@dataclass(frozen=True, slots=True)
class PeriodCalendar:
    """Months from the first day at midnight, or weeks from Monday at midnight."""

    has_edges: ClassVar[bool] = True
    months: bool = True

    @property
    def words(self) -> str:
        """Return what people call one of them."""
        return "a month" if self.months else "a week"

    def whole_periods(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""
        return Window(self._start_of_period(window.start), self._next_start(self._start_of_period(window.end - SECOND)))

    def growing_periods(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield periods in which usage grows, one of which is the fullest.

        Where no use begins or ends for longer, each period equals the next one of its length; of two months one has 31
        days.
        """
        reach = self.whole_periods(window)
        first, last = epoch(reach.start), epoch(reach.end)
        starts: set[datetime] = set()
        for edge in {first, *total.instants, *growth.instants}:
            if first <= edge < last:
                start = self._start_of_period(datetime.fromtimestamp(edge, UTC))
                starts |= {start, self._next_start(start), self._next_start(self._next_start(start))}
        for start in sorted(start for start in starts if start < window.end):
            period = Window(start, self._next_start(start))
            if growth.sum_between(epoch(period.start), epoch(period.end)) > 0:
                yield period

    def list_starts(self, instants: Collection[int], length: timedelta) -> Iterator[datetime]:
        """Yield the first instants of the periods that follow the first of these, one after the other."""
        start = self._start_of_period(datetime.fromtimestamp(min(instants), UTC))
        for _ in range(MOST_STARTS):
            start = self._next_start(start)
            yield start

    def _start_of_period(self, instant: datetime) -> datetime:
        day = instant.replace(hour=0, minute=0, second=0)
        return day.replace(day=1) if self.months else day - day.weekday() * DAY

    def _next_start(self, start: datetime) -> datetime:
        following = later(start, 32 * DAY if self.months else 7 * DAY)
        return following.replace(day=1) if self.months and following != END_OF_TIME else following


@dataclass(frozen=True, slots=True)
class Rolling:
    """Rolling periods of ``days``, beginning at any time."""

    has_edges: ClassVar[bool] = False
    days: int

    @property
    def words(self) -> str:
        """Return what people call one of them."""
        return f"any {self.days} days" if self.days > 1 else "any 24 hours"

    def whole_periods(self, window: Window) -> Window:
        """Return the time of all periods that touch a window."""
        return Window(window.start - self.days * DAY, later(window.end, self.days * DAY))

    def growing_periods(self, total: UsageCurve, growth: UsageCurve, window: Window) -> Iterator[Window]:
        """Yield spans in which usage grows, one of which is the fullest."""
        for start in roll_sums(total, growth, window, self.days * 86400):
            begin = datetime.fromtimestamp(start, UTC)
            yield Window(begin, later(begin, self.days * DAY))

    def list_starts(self, instants: Collection[int], length: timedelta) -> Iterator[datetime]:
        """Yield the starts from which on a period does not reach a use of others any more, or less of it."""
        yield from add_periods(instants, length, self.days)


def parse_period(text: str) -> Period:
    """Return the period that an operator configures: ``month``, ``week`` or a number of days. InvalidInput."""
    match text.strip().lower():
        case "month":
            return PeriodCalendar()
        case "week":
            return PeriodCalendar(months=False)
        case digits if digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= LONGEST:
            return Rolling(int(digits))
    raise InvalidInput(
        f"[enforcement] resource_hours_period cannot be {text[:40]!r}; give month, week, or a number of days from 1 "
        f"to {LONGEST}"
    )


HOURS = "_hours"
OPTION = "max_resource_hours"


class ResourceHoursFilter(LimitFilter):
    """Limits the resource-hours of a project in a period.

    What counts is what its leases have in the period, whether they have ended, are active or are to come; each resource
    counts from its assignment to its return.
    """

    needs_use: ClassVar[bool] = True
    options: ClassVar[list[cfg.Opt]] = [
        cfg.Opt(
            OPTION,
            type=types.Dict(value_type=types.Integer(min=-1)),
            default={},
            help="Resource-hours that a project may use in a period, for ResourceHoursFilter, by measure: "
            f"{', '.join(MEASURES)}. For example host:1000,vcpu:20000; a measure that is not named, or is -1, has no "
            "limit.",
        ),
        cfg.StrOpt(
            "resource_hours_period",
            default="month",
            help="The period of the budget: month, week (from Monday), both in UTC, or a number of days for a rolling "
            "period.",
        ),
    ]

    def __init__(self, hours: Mapping[str, int], period: Period, *, unified: UnifiedLimits | None = None) -> None:
        self._hours = dict(hours)
        self._period = period
        self._unified = unified

    @classmethod
    def configured(cls, section: Any, identity: Any) -> ResourceHoursFilter:
        """Return the filter as configured; InvalidInput."""
        hours = read_numbers(section.max_resource_hours, OPTION, measures())
        return cls(hours, parse_period(section.resource_hours_period), unified=identity.limits)

    def usage_window(self, window: Window) -> Window:
        """Return the time over which the filter needs the usage of the project."""
        return self._period.whole_periods(window)

    def budget_window(self, at: datetime) -> Window:
        """Return the time of the periods in which an instant lies."""
        return self._period.whole_periods(_second_at(at))

    def list_budgets(self, facts: BudgetFacts) -> tuple[ProjectBudget, ...]:
        """Return the budget of each measure that has a limit; of a rolling period the fullest one."""
        limits = self._limits(facts.project_id)
        return tuple(self._make_budget(measure, limit, facts) for measure, limit in sorted(limits.items()))

    def _make_budget(self, measure: str, limit: int, facts: BudgetFacts) -> ProjectBudget:
        instant = _second_at(facts.at)
        total, growth = UsageCurve(_uses_of_measure(measure, facts.usage)), UsageCurve([(instant, 1)])
        period = max(
            self._period.growing_periods(total, growth, instant),
            key=lambda one: total.sum_between(epoch(one.start), epoch(one.end)),
        )
        start, end = epoch(period.start), epoch(period.end)
        now = min(max(epoch(facts.now), start), end)
        return ProjectBudget(
            project_id=facts.project_id,
            source=BudgetSource.CONFIGURATION if self._unified is None else BudgetSource.UNIFIED_LIMITS,
            limit_name=self._name_limit(measure),
            measure=measure,
            window=period,
            limit=limit * 3600,
            used=total.sum_between(start, now),
            held=total.sum_between(now, end),
        )

    def _name_limit(self, measure: str) -> str:
        return OPTION if self._unified is None else limit_name(measure)

    def check(self, question: Question) -> None:
        """Deny a lease that takes more than the rest of the budget of a period."""
        before, after = _records_of_lease(question)
        limits = self._limits(question.wanted.project_id)
        for measure in sorted({name for record in after for name in record.measures} & limits.keys()):
            self._check(
                measure, limits[measure], question, _uses_of_measure(measure, before), _uses_of_measure(measure, after)
            )

    def _check(self, measure: str, limit: int, question: Question, before: Uses, after: Uses) -> None:
        room = HoursRoom(self._period, limit * 3600, _uses_of_measure(measure, question.usage), before)
        excess = room.find_excess(after, question.wanted.window)
        if excess is not None:
            period = excess.period
            taken = UsageCurve(after).sum_between(epoch(period.start), epoch(period.end))
            raise self._refusal(measure, limit, excess, taken, _list_fits(measure, room, question))

    def list_reached(self, question: Question, shares: tuple[int, ...]) -> tuple[ReachedShare, ...]:
        """Return the largest share that a lease reaches of each budget and period; of rolling periods none."""
        if not isinstance(self._period, PeriodCalendar):
            return ()
        before, after = _records_of_lease(question)
        limits = self._limits(question.wanted.project_id)
        found = []
        for measure in sorted({name for record in after for name in record.measures} & limits.keys()):
            others = _uses_of_measure(measure, question.usage)
            had, has = _uses_of_measure(measure, before), _uses_of_measure(measure, after)
            growth = UsageCurve([*has, *((window, -amount) for window, amount in had)])
            was, total = UsageCurve([*others, *had]), UsageCurve([*others, *has])
            for period in self._period.growing_periods(total, growth, question.wanted.window):
                ends = epoch(period.start), epoch(period.end)
                limit, taken = limits[measure], total.sum_between(*ends)
                share = find_reached(shares, was.sum_between(*ends), taken, limit * 3600)
                if share is not None:
                    name, project_id = self._name_limit(measure), question.wanted.project_id
                    told = (f"{measure}-hours", period, share, str(limit), hours_up(taken))
                    found.append(ReachedShare(project_id, name, *told))
        return tuple(found)

    def _refusal(self, measure: str, limit: int, excess: HoursExcess, taken: int, fits: _HoursFits) -> UsageDenied:
        name, period, used = self._name_limit(measure), excess.period, excess.sum - taken
        exceeded = Exceeded(name, measure, limit, -(-taken // 3600), -(-used // 3600), fits.values)
        return exceeded.make_denial(
            f"reservations, start_date, end_date: the lease would take {hours_up(taken)} {measure}-hours from "
            f"{spell(period.start)} to {spell(period.end)}, and of the {limit} that the project has in "
            f"{self._period.words} ({name}) {hours_down(max(0, limit * 3600 - used))} are left for it; ask "
            f"{', '.join(fits.advice) if limit else RAISE_LIMIT}"
        )

    def _limits(self, project_id: str) -> Mapping[str, int]:
        if self._unified is None:
            return {measure: hours for measure, hours in self._hours.items() if hours >= 0}
        found = self._unified.limits_of(project_id)
        hours = {measure: found[limit_name(measure)] for measure in measures() if limit_name(measure) in found}
        if not hours:
            raise EnforcementUnavailable(
                f"Keystone has no registered limit on resource-hours, such as {limit_name(MEASURES[0])}; an operator "
                "must create it before leases can be granted"
            )
        return {measure: number for measure, number in hours.items() if number >= 0}


def _second_at(instant: datetime) -> Window:
    """Return the second that begins at an instant; at the end of time, the one before."""
    start = min(instant, END_OF_TIME - SECOND)
    return Window(start, start + SECOND)


def limit_name(measure: str) -> str:
    """Return the name of a registered limit in Keystone."""
    return f"{PREFIX}{measure}{HOURS}"


@dataclass(frozen=True, slots=True)
class _HoursFits:
    """What of a lease would be granted, each by itself; None or 0: that is not known, or nothing is."""

    longest: timedelta
    fewer: int
    later: Window | None

    @property
    def values(self) -> Fits:
        """Return them as a refusal has them."""
        return {
            **({"duration_seconds": seconds(self.longest)} if self.longest else {}),
            **({"amount": self.fewer} if self.fewer else {}),
            **({"start_date": zulu(self.later.start), "end_date": zulu(self.later.end)} if self.later else {}),
        }

    @property
    def advice(self) -> list[str]:
        """Return them in words."""
        less = [f"for at most {self.fewer} of what it would have"] if self.fewer else ["for less"]
        shorter = [f"for at most {span(self.longest)}", *less] if self.longest else less if self.fewer else []
        other = f"for a start at {zulu(self.later.start)}" if self.later else "for another time"
        return [*shorter, f"or {other}" if shorter else other]


def _list_fits(measure: str, room: HoursRoom, question: Question) -> _HoursFits:
    """Return what would fit into a budget that a lease exceeds."""
    wanted, current = question.wanted, question.current
    window, count = wanted.window, count_only_reservation(question)

    def make_uses(part: Window) -> Uses:
        shorter = replace(question, wanted=replace(wanted, lease=replace(wanted.lease, window=part)))
        return _uses_of_measure(measure, _records_of_lease(shorter)[1])

    longest = room.find_longest(window, make_uses)
    counts = count == wanted.measures.get(measure)
    last = question.last_start
    if current is not None and current.window.start <= question.now:
        # What is in use keeps its start.
        last = None
    later_start = None if last is None else room.find_later(window, make_uses(window), last)
    moved = None if later_start is None else Window(later_start, later_start + window.duration)
    if current is not None:
        # What it has is no advice.
        is_more = longest > current.window.duration and window.start + longest > question.now
        grown = _find_growth(measure, room, question, count) if counts else 0
        return _HoursFits(longest if is_more else timedelta(0), grown, moved)
    fewer = room.find_fewer(window, count) if counts else 0
    return _HoursFits(longest, fewer, moved)


def _find_growth(measure: str, room: HoursRoom, question: Question, count: int) -> int:
    """Return the largest number that the only reservation of a lease may grow to in place of ``count``; 0: none."""
    wanted, current = question.wanted, question.current
    had = 0 if current is None else current.measures.get(measure, 0)

    def fits(fewer: int) -> bool:
        one = replace(wanted.allocated_resources[0], count=fewer)
        smaller = replace(question, wanted=replace(wanted, allocated_resources=(one,)))
        after = _uses_of_measure(measure, _records_of_lease(smaller)[1])
        return room.find_excess(after, wanted.window) is None

    most = find_most(count, fits)
    return most if most > had else 0


def _records_of_lease(question: Question) -> tuple[list[UsageRecord], list[UsageRecord]]:
    """Return what the lease itself has without the change, and with it; the past does not change."""
    wanted, before = question.wanted, list(question.own_usage)
    if question.current is None or wanted.window.start >= question.now:
        return before, wanted.usage_records(wanted.window)
    now = to_second(question.now)
    after = [record for record in (_cut_record(record, now) for record in before) if record is not None]
    if wanted.window.end > now:
        after += wanted.usage_records(Window(max(now, wanted.window.start), wanted.window.end))
    return before, after


def _cut_record(record: UsageRecord, now: datetime) -> UsageRecord | None:
    window = record.window
    return replace(record, window=Window(window.start, min(window.end, now))) if window.start < now else None


def _uses_of_measure(measure: str, usage_records: Iterable[UsageRecord]) -> list[tuple[Window, int]]:
    found = ((record.window, record.measures.get(measure, 0)) for record in usage_records)
    return [(window, amount) for window, amount in found if amount]
