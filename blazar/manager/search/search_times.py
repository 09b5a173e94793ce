# SPDX-License-Identifier: Apache-2.0
"""Which starts and which range of time a question about free time is about. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from blazar.manager.leases.dates import LAST_YEAR, changed_window
from blazar.model.base.clock import END_OF_TIME, later, to_second, zulu
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.search.availability import AvailabilityQuestion

DEFAULT_RANGE = timedelta(days=30)
LAST = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The last end of a lease."""
PAST = timedelta(seconds=60)
"""How far a date may lie in the past: it was now when the user wrote it."""


@dataclass(frozen=True, slots=True)
class Times:
    """The first window that is asked for, the last start, and the last end up to which anything is looked for."""

    window: Window
    last_start: datetime
    latest: datetime

    @property
    def range(self) -> Window:
        """Return the time that is searched."""
        return Window(self.window.start, self.latest)


def read_times(question: AvailabilityQuestion, now: datetime, most: timedelta) -> Times:
    """Return the times of a question. InvalidInput names the field."""
    second = to_second(now)
    if question.duration is None:
        start = _read_start(question.start or NOW, "start_date", second)
        end = _read_end(question.end, "end_date", start, second)
        if end <= start:
            raise _invalid("end_date", f"it is {zulu(end)}; give a later date than {zulu(start)}")
        return _make_times(question, Window(start, end), second, most)
    start = _read_start(question.earliest, "earliest", second)
    end = _read_end(question.duration, "duration", start, second)
    latest = _read_latest(question, second, start, most)
    if end <= start:
        raise _invalid("duration", "it is not longer than a second; give a longer one")
    if end > latest:
        raise _invalid("duration", f"it ends at {zulu(end)}; give a latest that is not before, or a shorter duration")
    _check_range(latest - start, "latest", most)
    return Times(Window(start, end), latest - (end - start), latest)


def read_changed_times(question: AvailabilityQuestion, lease: Window, now: datetime, most: timedelta) -> Times:
    """Return the times of a question about other dates of a lease, as an update with these dates would read them.

    The range counts from its present end on: a lease may be longer than a range. InvalidInput, as of the update.
    """
    window = changed_window(lease, question.start, question.end, now, exact=True)
    return _make_times(question, window, to_second(now), most, held_until=lease.end)


def _make_times(
    question: AvailabilityQuestion, window: Window, now: datetime, most: timedelta, held_until: datetime | None = None
) -> Times:
    begin = max(window.start, now)
    latest = max(window.end, _read_latest(question, now, begin, most))
    since = begin if held_until is None else max(begin, held_until)
    _check_range(latest - since, "end_date" if latest == window.end else "latest", most)
    return Times(window, window.start, latest)


def read_extension(question: AvailabilityQuestion, lease: Window, now: datetime, most: timedelta) -> datetime:
    """Return up to when an extension of a lease is looked for, counted from its present end. InvalidInput."""
    begin = max(to_second(now), lease.start)
    asked = question.latest is not None
    latest = (
        _read_latest(question, to_second(now), begin, most)
        if asked
        else max(lease.end, _default_latest(lease.end, most))
    )
    if asked and latest <= lease.end:
        raise _invalid("latest", f"the lease ends at {zulu(lease.end)}; give a later date")
    _check_range(latest - lease.end, "latest", most)
    return latest


def _read_start(asked: Moment, field: str, now: datetime) -> datetime:
    if not isinstance(asked, datetime):
        return now
    if asked < now - PAST:
        raise InvalidInput(
            f"{field} {zulu(asked)} is in the past; it is {zulu(now)} now",
            code="date_in_past",
            at=f"/{field}",
            data={"now": zulu(now)},
        )
    return max(asked, now)


def _read_latest(question: AvailabilityQuestion, now: datetime, start: datetime, most: timedelta) -> datetime:
    return _default_latest(start, most) if question.latest is None else _read_end(question.latest, "latest", start, now)


def _default_latest(start: datetime, most: timedelta) -> datetime:
    """Return the end of the default range: no lease can end later than the last year."""
    return min(later(start, min(DEFAULT_RANGE, most)), LAST)


def _read_end(asked: Moment | Duration | None, field: str, start: datetime, now: datetime) -> datetime:
    if isinstance(asked, Duration):
        try:
            end = to_second(asked.after(start))
        except (OverflowError, ValueError):
            end = END_OF_TIME
        if end > LAST:
            raise _invalid(field, f"it ends beyond the year {LAST.year}; give a shorter one")
        return end
    return to_second(asked) if isinstance(asked, datetime) else now


def _check_range(length: timedelta, field: str, most: timedelta) -> None:
    if length > most:
        raise InvalidInput(
            f"{field}: the range is longer than {most.days} days; give an earlier date",
            code="out_of_bounds",
            at=f"/{field}",
            data={"maximum": int(most.total_seconds())},
        )


def _invalid(field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field}: {why}", code="invalid_window", at=f"/{field}")
