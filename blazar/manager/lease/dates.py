# SPDX-License-Identifier: Apache-2.0
"""The rules for dates in requests. Pure: the current time is an argument.

Dates of API 1.0 are in minutes, so a request is compared with the current minute, which is not in the past.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.clock import later, to_minute, to_second
from blazar.model.errors import InvalidInput
from blazar.model.requests import NOW, Moment
from blazar.model.window import Window

SHORTEST = timedelta(seconds=1)


def new_window(start: Moment, end: Moment, now: datetime) -> Window:
    """Return the window of a new lease. InvalidInput if it has begun before the current minute or ends at once."""
    minute = to_minute(now)
    begins, ends = _instant(start, minute), _instant(end, minute)
    if begins < minute:
        raise InvalidInput(f"Start date {_said(begins)} is in the past; it is {_said(minute)} UTC now.")
    if ends <= begins:
        raise InvalidInput("End date must be later than start date.")
    _check_is_ahead(ends, now)
    return Window(begins, ends)


def changed_window(window: Window, start: Moment | None, end: Moment | None, now: datetime) -> Window:
    """Return the window of a lease after a request for new dates.

    The start can be moved only while it is in the future, and never into the past; the end may be now, which ends a
    running lease at once. InvalidInput otherwise.
    """
    minute = to_minute(now)
    begins = window.start if start is None else _instant(start, minute)
    ends = window.end if end is None else _instant(end, minute)
    has_begun = window.start <= now
    if window.end < minute:
        raise InvalidInput(f"The lease ended at {_said(window.end)}; only its name can be changed.")
    if has_begun and begins not in (window.start, to_minute(window.start)):
        raise InvalidInput(f"The lease started at {_said(window.start)}; its start date can no longer be changed.")
    if has_begun:
        begins = window.start
    elif begins < minute:
        raise InvalidInput(f"Start date {_said(begins)} is in the past; it is {_said(minute)} UTC now.")
    if end is not None and ends < minute:
        raise InvalidInput(f"End date {_said(ends)} is in the past; it is {_said(minute)} UTC now, use 'now' to end.")
    if has_begun and ends <= begins and ends == minute:
        # Started and ended within one minute: the shortest possible lease, which ends at once.
        return Window(begins, later(begins, SHORTEST))
    if ends <= begins:
        raise InvalidInput("End date must be later than start date.")
    if not has_begun:
        _check_is_ahead(ends, now)
    return Window(begins, ends)


def new_before_end(window: Window, asked: datetime | None, lead: timedelta) -> datetime | None:
    """Return when to warn before the end of a new lease; None for never.

    What was asked must lie strictly inside the lease (InvalidInput); by default it is ``lead`` before the end, or
    at the start of a lease that is shorter than that.
    """
    if asked is not None:
        return _inside(asked, window)
    if not lead:
        return None
    return window.start if lead >= window.duration else window.end - lead


def changed_before_end(
    current: datetime | None, window: Window, after: Window, asked: datetime | None
) -> datetime | None:
    """Return when to warn before the end of a lease with new dates: as requested, else as long before as it was."""
    if asked is not None:
        return _inside(asked, after)
    if current is None:
        return None
    distance = window.end - current
    return max(after.start, after.end - distance)


def _inside(asked: datetime, window: Window) -> datetime:
    if not window.start < asked < window.end:
        raise InvalidInput(
            f"before_end_date {_said(asked)} is out of lease limits; it must lie between the start "
            f"{_said(window.start)} and the end {_said(window.end)}."
        )
    return asked


def _instant(moment: Moment, minute: datetime) -> datetime:
    return minute if moment is NOW else to_second(moment)


def _check_is_ahead(end: datetime, now: datetime) -> None:
    # Dates of API v2 are in seconds: an end may lie in the current minute and yet be past.
    if end <= now:
        raise InvalidInput(f"End date {end:%Y-%m-%d %H:%M:%S} is in the past; it is {now:%Y-%m-%d %H:%M:%S} UTC now.")


def _said(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"
