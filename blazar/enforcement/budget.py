# SPDX-License-Identifier: Apache-2.0
"""A budget of resource-hours for each project and period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from oslo_config import cfg, types

from blazar.enforcement.limits import Limit, counted
from blazar.enforcement.periods import Period, parse
from blazar.enforcement.sentences import said, seconds, span
from blazar.enforcement.unified import PREFIX, UnifiedLimits
from blazar.enforcement.values import Question
from blazar.model.clock import to_second
from blazar.model.errors import EnforcementUnavailable, UsageDenied
from blazar.model.exceeded import Exceeded
from blazar.model.spending import MEASURES, UsageCurve, UsageRecord, measures, second
from blazar.model.usage import peak
from blazar.model.window import Window

HOURS = "_hours"
OPTION = "max_resource_hours"

Uses = list[tuple[Window, int]]


class ResourceHoursFilter(Limit):
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
        hours = counted(section.max_resource_hours, OPTION, measures())
        return cls(hours, parse(section.resource_hours_period), unified=identity.limits)

    def reach(self, window: Window) -> Window:
        """Return the time over which the filter needs the usage of the project."""
        return self._period.reach(window)

    def check(self, question: Question) -> None:
        """Deny a lease that takes more than the rest of the budget of a period."""
        before, after = _mine(question)
        limits = self._limits(question.wanted.project_id)
        for measure in sorted({name for record in after for name in record.measures} & limits.keys()):
            self._check(measure, limits[measure], question, _of(measure, before), _of(measure, after))

    def _check(self, measure: str, limit: int, question: Question, before: Uses, after: Uses) -> None:
        others = _of(measure, question.usage)
        lease, total = UsageCurve(after), UsageCurve([*others, *after])
        growth = UsageCurve([*after, *((window, -amount) for window, amount in before)])
        worst: Window | None = None
        fullest = limit * 3600
        for period in self._period.within(total, growth, question.wanted.window):
            sum_ = total.between(second(period.start), second(period.end))
            if sum_ > fullest:
                worst, fullest = period, sum_
        if worst is not None:
            taken = lease.between(second(worst.start), second(worst.end))
            raise self._refusal(measure, limit, worst, taken, fullest - taken, peak(worst, after))

    def _refusal(self, measure: str, limit: int, period: Window, taken: int, used: int, amount: int) -> UsageDenied:
        name = OPTION if self._unified is None else limit_name(measure)
        left = max(0, limit * 3600 - used)
        fits = timedelta(minutes=left // amount // 60)
        advice = f"for at most {span(fits)}, for less, or for another time" if fits else "for another time"
        exceeded = Exceeded(
            name,
            measure,
            limit,
            -(-taken // 3600),
            -(-used // 3600),
            {"duration_seconds": seconds(fits)} if fits else {},
        )
        return exceeded.denied(
            f"reservations, start_date, end_date: the lease would take {_up(taken)} {measure}-hours from "
            f"{said(period.start)} to {said(period.end)}, and of the {limit} that the project has in "
            f"{self._period.words} ({name}) {_down(left)} are left for it; ask {advice}"
        )

    def _limits(self, project_id: str) -> Mapping[str, int]:
        if self._unified is None:
            return {measure: hours for measure, hours in self._hours.items() if hours >= 0}
        found = self._unified.of(project_id)
        hours = {measure: found[limit_name(measure)] for measure in measures() if limit_name(measure) in found}
        if not hours:
            raise EnforcementUnavailable(
                f"Keystone has no registered limit on resource-hours, such as {limit_name(MEASURES[0])}; an operator "
                "must create it before leases can be granted"
            )
        return {measure: number for measure, number in hours.items() if number >= 0}


def limit_name(measure: str) -> str:
    """Return the name of a registered limit in Keystone."""
    return f"{PREFIX}{measure}{HOURS}"


def _mine(question: Question) -> tuple[list[UsageRecord], list[UsageRecord]]:
    """Return what the lease itself has without the change, and with it; the past does not change."""
    wanted, before = question.wanted, list(question.own_usage)
    if question.current is None or wanted.window.start >= question.now:
        return before, wanted.usage_records(wanted.window)
    now = to_second(question.now)
    after = [record for record in (_until(record, now) for record in before) if record is not None]
    if wanted.window.end > now:
        after += wanted.usage_records(Window(max(now, wanted.window.start), wanted.window.end))
    return before, after


def _until(record: UsageRecord, now: datetime) -> UsageRecord | None:
    window = record.window
    return replace(record, window=Window(window.start, min(window.end, now))) if window.start < now else None


def _of(measure: str, usage_records: Iterable[UsageRecord]) -> Uses:
    found = ((record.window, record.measures.get(measure, 0)) for record in usage_records)
    return [(window, amount) for window, amount in found if amount]


def _down(seconds: int) -> str:
    """Return hours, rounded down."""
    return _said(seconds * 100 // 3600)


def _up(seconds: int) -> str:
    """Return hours, rounded up."""
    return _said(-(-seconds * 100 // 3600))


def _said(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
