# SPDX-License-Identifier: Apache-2.0
"""The rules for dates in requests. Pure: the current time is an argument.

Dates of API 1.0 are in minutes, so a request is compared with the current minute, which is not in the past. From 1.1
on they are in seconds (``exact``), and a start may be ``GRACE`` past.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.base.clock import END_OF_TIME, later, spell, to_minute, to_second, zulu
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, BeforeEnd, Duration, End, Moment
from blazar.model.base.window import Window
from blazar.model.leases.lease import SHORTEST, ExtendIfFree, Lease, move_warning
from blazar.model.leases.requests import LeaseChange

GRACE = timedelta(seconds=60)
"""How far in the past a start may lie: the time for which a form stands open."""
CLOCKS_DIFFER = timedelta(seconds=60)
"""How far the clocks of two managers may be apart."""
LAST_YEAR = 8999

LONGEST_EXTENSION = timedelta(days=366)
"""How long after its end a lease may be prolonged by itself."""

_EXTENSION_POINTER = "/extend_if_free/until"


def new_window(start: Moment, end: End, now: datetime, *, exact: bool = False) -> Window:
    """Return the window of a new lease. InvalidInput if it has begun before the current minute or ends at once."""
    minute = _round_now(now, exact)
    begins = _instant(start, minute)
    ends = _end(end, begins, minute)
    if begins < minute - (GRACE if exact else timedelta(0)):
        raise _past_error("Start", "start_date", begins, minute)
    if ends <= begins:
        raise _empty_error()
    _check_is_ahead(ends, now)
    return Window(begins, ends)


def changed_window(
    window: Window, start: Moment | None, end: End | None, now: datetime, *, exact: bool = False
) -> Window:
    """Return the window of a lease after a request for new dates.

    The start can be moved only while it is in the future, and never into the past; the end may be now, which ends a
    running lease at once. InvalidInput otherwise.
    """
    minute = _round_now(now, exact)
    begins = window.start if start is None else _instant(start, minute)
    has_begun = window.start <= now
    if window.end < minute:
        sentence = f"The lease ended at {spell(window.end)} UTC; only its name can be changed."
        raise InvalidInput(sentence, code="lease_ended")
    if has_begun and begins not in (window.start, to_minute(window.start)):
        sentence = f"The lease started at {spell(window.start)} UTC; its start_date can no longer be changed."
        raise InvalidInput(sentence, code="invalid_window", at="/start_date")
    if has_begun:
        begins = window.start
    elif begins < minute - (GRACE if exact else timedelta(0)):
        raise _past_error("Start", "start_date", begins, minute)
    ends = window.end if end is None else _end(end, begins, minute)
    if end is not None and ends < minute:
        raise _past_error("End", "end_date", ends, minute, more=", use 'now' to end")
    if has_begun and ends <= begins and ends == minute:
        # Started and ended within one minute: the shortest possible lease, which ends at once.
        return Window(begins, later(begins, SHORTEST))
    if ends <= begins:
        raise _empty_error()
    if not has_begun:
        _check_is_ahead(ends, now)
    return Window(begins, ends)


def new_before_end(window: Window, asked: datetime | None, lead: timedelta) -> datetime | None:
    """Return when to warn before the end of a new lease; None for never.

    What was asked must lie strictly inside the lease (InvalidInput); by default it is ``lead`` before the end, or
    at the start of a lease that is shorter than that.
    """
    if asked is not None:
        return _check_inside(asked, window)
    if not lead:
        return None
    return window.start if lead >= window.duration else window.end - lead


def resolve_before_end(asked: BeforeEnd, window: Window, default: timedelta | None = None) -> datetime | None:
    """Return when a request asks to warn: a duration counts from the start or, backward, before the end.

    None if it asks for nothing; with ``default``, the operator's lead time, it asks for that time before the end, or
    for the first second of a lease that is shorter.
    """
    if isinstance(asked, Duration):
        return _later(window.end if asked.backward else window.start, asked, "before_end_date")
    if asked is None and default:
        first = window.start + SHORTEST
        return max(first, window.end - default) if first < window.end else None
    return asked


def changed_before_end(
    current: datetime | None, window: Window, after: Window, asked: datetime | None, lead: timedelta
) -> datetime | None:
    """Return when to warn before the end of a lease with new dates: as requested, else as ``moved_warning`` says.

    That of a lease that is shorter than the operator's time is at its start, and where work is saved it may be at the
    end: neither can be asked for, and one that is sent back as it was shown asks for nothing.
    """
    shown = asked == current and asked is not None and not window.start < asked < window.end
    if asked is not None and not shown:
        return _check_inside(asked, after)
    return None if current is None else move_warning(current, window, after, lead)


def new_extension(until: datetime | Duration | None, end: datetime, now: datetime) -> ExtendIfFree | None:
    """Return what a request asks for a lease with this end; None if it asks for nothing. InvalidInput."""
    if until is None:
        return None
    try:
        at = to_second(until.after(end) if isinstance(until, Duration) else until)
    except (OverflowError, ValueError):
        at = END_OF_TIME
    if at <= max(end, now):
        raise InvalidInput(
            f"extend_if_free.until is {zulu(at)}, and the lease ends at {zulu(end)}; give a later date",
            at=_EXTENSION_POINTER,
        )
    if at - end > LONGEST_EXTENSION:
        raise InvalidInput(
            f"extend_if_free.until is more than {LONGEST_EXTENSION.days} days after the end of the lease; "
            "give an earlier date",
            at=_EXTENSION_POINTER,
        )
    return ExtendIfFree(at)


def changed_extension(lease: Lease, change: LeaseChange, end: datetime, now: datetime) -> ExtendIfFree | None:
    """Return what a lease has after a change of it, with this end then. InvalidInput.

    One that ends later than it would be prolonged is not prolonged any more.
    """
    if change.stops_extending:
        return None
    if change.extend_until is not None:
        return new_extension(change.extend_until, end, now)
    kept = lease.extend
    return None if kept is None or kept.until <= end else kept


def read_quote(quoted_at: datetime, now: datetime, holds: timedelta) -> tuple[datetime | None, datetime | None]:
    """Return when the price was quoted that holds for a lease, or when one was that does not any more. InvalidInput."""
    # The clock of the manager that told the price may be ahead of this one.
    if quoted_at > later(now, CLOCKS_DIFFER):
        raise InvalidInput(
            f"quoted_at is {zulu(quoted_at)}, which is in the future; send the quoted_at of a price that was told, or "
            "leave it out",
            at="/quoted_at",
        )
    at = to_second(min(quoted_at, now))
    return (at, None) if later(at, holds) >= to_second(now) else (None, at)


def _check_inside(asked: datetime, window: Window) -> datetime:
    if not window.start < asked < window.end:
        raise InvalidInput(
            f"before_end_date {spell(asked)} UTC is out of lease limits; it must lie between the start "
            f"{spell(window.start)} UTC and the end {spell(window.end)} UTC.",
            code="invalid_window",
            at="/before_end_date",
        )
    return asked


def _instant(moment: Moment, minute: datetime) -> datetime:
    return minute if moment is NOW else to_second(moment)


def _check_is_ahead(end: datetime, now: datetime) -> None:
    # Dates of API v2 are in seconds: an end may lie in the current minute and yet be past.
    if end <= now:
        raise InvalidInput(
            f"End date {end:%Y-%m-%d %H:%M:%S} is in the past; it is {now:%Y-%m-%d %H:%M:%S} UTC now.",
            code="date_in_past",
            at="/end_date",
            data={"now": zulu(now)},
        )


def _round_now(now: datetime, exact: bool) -> datetime:
    return to_second(now) if exact else to_minute(now)


def _end(end: End, begins: datetime, minute: datetime) -> datetime:
    return _later(begins, end, "end_date") if isinstance(end, Duration) else _instant(end, minute)


def _later(instant: datetime, by: Duration, field: str) -> datetime:
    try:
        found = to_second(by.after(instant))
    except (OverflowError, ValueError):
        found = None
    if found is None or found.year > LAST_YEAR:
        sentence = f"{field} would be beyond the year {LAST_YEAR}; give a shorter duration"
        raise InvalidInput(sentence, code="invalid_window", at=f"/{field}")
    return found


def _empty_error() -> InvalidInput:
    sentence = "End date must be later than start date."
    return InvalidInput(sentence, code="invalid_window", at="/end_date")


def _past_error(word: str, field: str, date: datetime, minute: datetime, *, more: str = "") -> InvalidInput:
    return InvalidInput(
        f"{word} date {spell(date)} is in the past; it is {spell(minute)} UTC now{more}.",
        code="date_in_past",
        at=f"/{field}",
        data={"now": zulu(minute)},
    )
