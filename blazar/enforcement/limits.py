# SPDX-License-Identifier: Apache-2.0
"""Filters that decide without another service: limits on lengths, counts and dates.

One rule holds for all of them: a change that does not ask for more than the lease has is not denied. So a limit that
was lowered, or introduced later, never prevents users from returning resources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from oslo_config import cfg, types

from blazar.enforcement.sentences import find_other_dates, next_minute, plural, propose_dates, seconds, span, spell
from blazar.enforcement.unified import PREFIX, UnifiedLimits
from blazar.enforcement.values import FilterNotification, Occasion, Question
from blazar.model.base.clock import later, to_minute, to_second, zulu
from blazar.model.base.errors import EnforcementUnavailable, InvalidInput
from blazar.model.base.service_info import StatedLimit
from blazar.model.base.window import Window
from blazar.model.leases.limits import RAISE_LIMIT, Exceeded, Fits
from blazar.model.resources.resource import HOST
from blazar.model.use.resource_hours import MEASURES, find_peak, measures

SECOND = timedelta(seconds=1)
NOTHING: frozenset[Occasion] = frozenset()


class LimitFilter:
    """The base of filters that only grant or deny."""

    needs_use: ClassVar[bool] = False
    occasions = NOTHING

    def notify(self, notification: FilterNotification) -> None:
        """Do nothing: limits do not keep records."""


class MaxLeaseDurationFilter(LimitFilter):
    """Limits the length of a lease; an active lease is extended only shortly before its end."""

    options: ClassVar[list[cfg.Opt]] = [
        cfg.IntOpt(
            "max_lease_duration",
            default=-1,
            min=-1,
            deprecated_name="max_reservation_length",
            help="Seconds that a lease may last, for MaxLeaseDurationFilter; -1 for any length.",
        ),
        cfg.ListOpt(
            "max_lease_duration_exempt_project_ids",
            default=[],
            deprecated_name="max_reservation_length_exempt_project_ids",
            help="Projects, by id, to which neither max_lease_duration nor reservation_extension_window applies.",
        ),
        cfg.IntOpt(
            "reservation_extension_window",
            default=-1,
            min=-1,
            help="Seconds before its end in which a lease that has started may be extended, for "
            "MaxLeaseDurationFilter, each time by up to max_lease_duration; -1 for at any time, up to a total length "
            "of max_lease_duration.",
        ),
    ]

    def __init__(
        self, longest: timedelta | None, *, extension: timedelta | None = None, exempt: Collection[str] = ()
    ) -> None:
        self._longest = longest
        self._extension = extension
        self._exempt = frozenset(exempt)

    @classmethod
    def configured(cls, section: Any, identity: Any) -> MaxLeaseDurationFilter:
        """Return the filter as configured."""
        return cls(
            _seconds(section.max_lease_duration),
            extension=_seconds(section.reservation_extension_window),
            exempt=section.max_lease_duration_exempt_project_ids,
        )

    def stated_limits(self, project_id: str) -> tuple[StatedLimit, ...]:
        """Return the longest duration of a lease."""
        if self._longest is None or project_id in self._exempt:
            return ()
        return (StatedLimit("max_lease_duration", seconds(self._longest), "seconds"),)

    def check(self, question: Question) -> None:
        """Deny a lease that is too long, or an extension that comes too early."""
        if question.wanted.project_id in self._exempt:
            return
        window = question.wanted.window
        before = question.current.window if question.current else None
        if before is None or self._extension is None or not before.start <= question.now < before.end:
            self._check_length(window, before)
        elif window.end > before.end:
            self._check_extension(window, before, self._extension, question.now)

    def _check_length(self, window: Window, before: Window | None) -> None:
        if (
            self._longest is not None
            and window.duration > self._longest
            and (before is None or window.duration > before.duration)
        ):
            end = later(window.start, self._longest)
            raise _too_long(self._longest, window.duration, end).make_denial(
                f"end_date: the lease would last {span(window.duration)}; the limit is {span(self._longest)} "
                f"(max_lease_duration); choose an end by {spell(end)}",
                at="/end_date",
            )

    def _check_extension(self, window: Window, before: Window, extension: timedelta, now: datetime) -> None:
        """Deny an extension that is too early or too long; one in time begins a new length at the previous end."""
        opens = before.end - extension
        if now < opens:
            early = Exceeded(
                "reservation_extension_window",
                "seconds",
                seconds(extension),
                seconds(before.end - now),
                fits={"retry_at": zulu(opens)},
            )
            raise early.make_denial(
                f"end_date: an active lease can be extended only in the last {span(extension)} before its end "
                f"(reservation_extension_window); try again from {spell(opens)} on",
                at="/end_date",
            )
        if self._longest is not None and window.end > later(before.end, self._longest):
            longer, end = window.end - before.end, later(before.end, self._longest)
            raise _too_long(self._longest, longer, end).make_denial(
                f"end_date: the lease would be extended by {span(longer)}; the limit is {span(self._longest)} at a "
                f"time (max_lease_duration); choose an end by {spell(end)}",
                at="/end_date",
            )


class _Number:
    """A limit that is one number: that of the configuration for all projects, or that of Keystone for each project."""

    def __init__(self, option: str, most: int | None, registered: str, unified: UnifiedLimits | None) -> None:
        self.name = option if unified is None else registered
        self._most = most
        self.unified = unified

    def limit_of(self, project_id: str, *, required: bool = True) -> int | None:
        """Return the limit of a project, None if there is none. EnforcementUnavailable.

        A ``required`` limit must be registered if limits come from Keystone.
        """
        if self.unified is None:
            return self._most
        found = self.unified.limits_of(project_id)
        if self.name not in found:
            if not required:
                return None
            raise EnforcementUnavailable(
                f"Keystone has no registered limit {self.name}; an operator must create it before leases can be granted"
            )
        return _number(found[self.name])


class MaxConcurrentLeasesFilter(LimitFilter):
    """Limits the number of leases that a project has at one time."""

    needs_use: ClassVar[bool] = True
    options: ClassVar[list[cfg.Opt]] = [
        cfg.IntOpt(
            "max_concurrent_leases",
            default=-1,
            min=-1,
            help="Leases that a project may have at one time, for MaxConcurrentLeasesFilter; -1 for any number.",
        ),
    ]

    def __init__(self, most: int | None, *, unified: UnifiedLimits | None = None) -> None:
        self._limit = _Number("max_concurrent_leases", most, "blazar:leases", unified)

    @classmethod
    def configured(cls, section: Any, identity: Any) -> MaxConcurrentLeasesFilter:
        """Return the filter as configured."""
        return cls(_number(section.max_concurrent_leases), unified=identity.limits)

    def check(self, question: Question) -> None:
        """Deny a lease at a time when the other leases of the project reach the limit."""
        window, current = question.wanted.window, question.current
        if current is not None and current.window.covers(window):
            return
        most = self._limit.limit_of(question.wanted.project_id)
        if most is None:
            return
        if most == 0:
            raise Exceeded(self._limit.name, "leases", most, 1).make_denial(
                f"the project may have no leases ({self._limit.name} is 0); ask {RAISE_LIMIT}"
            )
        uses = [(use.window, 1) for use in question.others]
        others = find_peak(window, uses)
        if others + 1 > most:
            dates = find_other_dates(window, uses, most - 1)
            raise Exceeded(self._limit.name, "leases", most, 1, others, list_dates(dates)).make_denial(
                f"start_date, end_date: the project has {others} other {plural(others, 'lease')} at one time between "
                f"{spell(window.start)} and {spell(window.end)}, and may have {most} at a time "
                f"({self._limit.name}); {propose_dates(dates)}, or end one of them"
            )


class MaxUnitsFilter(LimitFilter):
    """Limits the number of hosts, and of other measures, that a project has at one time."""

    needs_use: ClassVar[bool] = True
    options: ClassVar[list[cfg.Opt]] = [
        cfg.IntOpt(
            "max_units",
            default=-1,
            min=-1,
            help="Hosts that a project may have reserved at one time, over all its leases, for MaxUnitsFilter; -1 for "
            "any number.",
        ),
        cfg.Opt(
            "max_units_of",
            type=types.Dict(value_type=types.Integer(min=-1)),
            default={},
            help="The same for measures other than whole hosts: "
            f"{', '.join(name for name in MEASURES if name != HOST)}. For example instance:20,vcpu:80; a measure that "
            "is not named, or is -1, has no limit.",
        ),
    ]

    def __init__(
        self, most: int | None, *, of: Mapping[str, int] | None = None, unified: UnifiedLimits | None = None
    ) -> None:
        numbers = {name: _number(number) for name, number in (of or {}).items()} | {HOST: most}
        self.limits = {
            name: _Number(
                "max_units" if name == HOST else f"max_units_of {name}", numbers.get(name), f"{PREFIX}{name}s", unified
            )
            for name in measures()
        }

    @classmethod
    def configured(cls, section: Any, identity: Any) -> MaxUnitsFilter:
        """Return the filter as configured; InvalidInput."""
        others = read_numbers(section.max_units_of, "max_units_of", [name for name in measures() if name != HOST])
        return cls(_number(section.max_units), of=others, unified=identity.limits)

    def usage_window(self, window: Window) -> Window:
        """Return the time over which the filter needs the usage other than hosts: the window of the lease."""
        return window

    def check(self, question: Question) -> None:
        """Deny a lease with more than the project's limits leave at that time."""
        wanted, current = question.wanted, question.current
        within = current is not None and current.window.covers(wanted.window)
        before = current.measures if current is not None and within else {}
        for name, amount in wanted.measures.items():
            if name in self.limits and not (within and amount <= before.get(name, 0)):
                self._check(name, amount, question)

    def _check(self, name: str, amount: int, question: Question) -> None:
        limit, window = self.limits[name], question.wanted.window
        most = limit.limit_of(question.wanted.project_id, required=name == HOST)
        if most is None:
            return
        uses = [(use.window, use.hosts) for use in question.others]
        if name != HOST:
            # Use before now, also by this lease, does not count.
            window = Window(max(window.start, min(to_second(question.now), window.end - SECOND)), window.end)
            uses = [(record.window, record.measures.get(name, 0)) for record in question.usage]
        used = find_peak(window, uses)
        left = max(0, most - used)
        if amount > left:
            dates = find_other_dates(window, uses, most - amount)
            fits: Fits = {**({"amount": left} if left else {}), **list_dates(dates)}
            # Of more than all no other dates have room.
            fewer = f"for fewer, or {propose_dates(dates)}" if amount <= most else "for fewer"
            raise Exceeded(limit.name, name, most, amount, used, fits).make_denial(
                f"reservations: the lease would have {amount} {plural(amount, name)}, and of the {most} that the "
                f"project may have at a time ({limit.name}) {left} {'is' if left == 1 else 'are'} left between "
                f"{spell(window.start)} and {spell(window.end)}; ask {fewer if most else RAISE_LIMIT}"
            )


class StartWindowFilter(LimitFilter):
    """Limits how soon and how far ahead a lease starts."""

    options: ClassVar[list[cfg.Opt]] = [
        cfg.IntOpt(
            "earliest_start",
            default=-1,
            min=-1,
            help="Seconds from now before which no lease may start, for StartWindowFilter; -1 for at once.",
        ),
        cfg.IntOpt(
            "latest_start",
            default=-1,
            min=-1,
            help="Seconds from now after which no lease may start, for StartWindowFilter; -1 for any time ahead.",
        ),
    ]

    def __init__(self, earliest: timedelta | None, latest: timedelta | None) -> None:
        self._earliest = earliest
        self._latest = latest

    @classmethod
    def configured(cls, section: Any, identity: Any) -> StartWindowFilter:
        """Return the filter as configured; InvalidInput if no start would be allowed."""
        earliest, latest = _seconds(section.earliest_start), _seconds(section.latest_start)
        if earliest is not None and latest is not None and earliest > latest:
            raise InvalidInput(
                f"[enforcement] earliest_start is {section.earliest_start} and latest_start {section.latest_start}, so "
                "that no lease could start at all; give a latest_start that is not before earliest_start"
            )
        return cls(earliest, latest)

    def check(self, question: Question) -> None:
        """Deny a new start that is too soon or too far ahead."""
        start, current = question.wanted.window.start, question.current
        if current is not None and start == current.window.start:
            return
        # Dates of users have minutes: the current minute counts as now.
        minute = to_minute(question.now)
        if self._earliest is not None and start < minute + self._earliest:
            raise _start_exceeded(
                "earliest_start", self._earliest, start - minute, next_minute(question.now)
            ).make_denial(
                f"start_date: a lease must be requested {span(self._earliest)} ahead (earliest_start); the earliest "
                f"start is {spell(next_minute(question.now) + self._earliest)}",
                at="/start_date",
            )
        if self._latest is not None and start > minute + self._latest:
            raise _start_exceeded("latest_start", self._latest, start - minute, minute).make_denial(
                f"start_date: a lease can start at most {span(self._latest)} from now (latest_start), by "
                f"{spell(minute + self._latest)}",
                at="/start_date",
            )


def count_only_reservation(question: Question) -> int:
    """Return how many the only reservation of a lease has; 0 if one cannot ask for fewer of it alone."""
    wanted = question.wanted
    if len(wanted.lease.reservations) != 1:
        return 0
    return sum(allocated.count for allocated in wanted.allocated_resources)


def _too_long(longest: timedelta, asked: timedelta, end: datetime) -> Exceeded:
    fits: Fits = {"end_date": zulu(end), "duration_seconds": seconds(longest)}
    return Exceeded("max_lease_duration", "seconds", seconds(longest), seconds(asked), fits=fits)


def _start_exceeded(name: str, limit: timedelta, ahead: timedelta, now: datetime) -> Exceeded:
    return Exceeded(name, "seconds", seconds(limit), seconds(ahead), fits={"start_date": zulu(now + limit)})


def list_dates(window: Window | None) -> Fits:
    """Return a window as what would fit; nothing if there is none."""
    return {} if window is None else {"start_date": zulu(window.start), "end_date": zulu(window.end)}


def _seconds(value: int) -> timedelta | None:
    return None if value < 0 else timedelta(seconds=value)


def _number(value: int) -> int | None:
    return None if value < 0 else value


def read_numbers(numbers: Mapping[str, int | None], option: str, names: Collection[str]) -> Mapping[str, int]:
    """Return the numbers by measure, as an operator configured them; InvalidInput."""
    unknown = sorted(set(numbers) - set(names))
    if unknown:
        raise InvalidInput(
            f"[enforcement] {option} names {', '.join(unknown)}, which is not a measure; available are: "
            f"{', '.join(names)}"
        )
    empty = sorted(name for name, number in numbers.items() if number is None)
    if empty:
        raise InvalidInput(f"[enforcement] {option} gives no number for {', '.join(empty)}; write it as {empty[0]}:10")
    return {name: number for name, number in numbers.items() if number is not None}
