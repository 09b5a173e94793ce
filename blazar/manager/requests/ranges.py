# SPDX-License-Identifier: Apache-2.0
"""What a range of time that was asked for means, and whether it is within bounds. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.calendar import Range
from blazar.model.clock import to_second, zulu
from blazar.model.duration import Duration
from blazar.model.errors import InvalidInput
from blazar.model.reading import ReadBounds
from blazar.model.requests import NOW, Moment
from blazar.model.window import Window

DEFAULT_LENGTH = timedelta(days=14)


def window_of(asked: Range, now: datetime, bounds: ReadBounds, *, operator: bool) -> Window:
    """Return the window that is meant. InvalidInput names the parameter ``from`` or ``to``."""
    second, back = to_second(now), bounds.back_for(operator=operator)
    latest = second + bounds.ahead
    start = _instant(asked.start, "from", second, second)
    if start < second - back:
        raise _beyond("from", f"from is {zulu(start)}, before the earliest date, {zulu(second - back)}", back)
    longest = start + bounds.longest_range
    if asked.end is None:
        if start >= latest:
            raise _beyond("from", f"from is {zulu(start)}, not before the latest date, {zulu(latest)}", bounds.ahead)
        return Window(start, min(start + DEFAULT_LENGTH, longest, latest))
    end = _instant(asked.end, "to", second, start)
    check_order(start, end)
    if end > latest:
        raise _beyond("to", f"to is {zulu(end)}, after the latest date, {zulu(latest)}", bounds.ahead)
    if end > longest:
        raise _beyond(
            "to", f"to is {zulu(end)}, too long after from; the latest is {zulu(longest)}", bounds.longest_range
        )
    return Window(start, end)


def check_order(start: datetime, end: datetime) -> None:
    """Raise InvalidInput if ``to`` is not after ``from``."""
    if end <= start:
        raise InvalidInput(
            f"to is {zulu(end)}, which is not after from, {zulu(start)}; give a later one",
            code="invalid_window",
            parameter="to",
        )


def _instant(asked: Moment | Duration | None, name: str, now: datetime, base: datetime) -> datetime:
    if asked is None or asked is NOW:
        return now
    if isinstance(asked, Duration):
        try:
            return asked.after(base)
        except (OverflowError, ValueError):
            raise InvalidInput(f"{name} is beyond the last date", code="out_of_bounds", parameter=name) from None
    assert isinstance(asked, datetime)
    return asked


def _beyond(name: str, sentence: str, most: timedelta) -> InvalidInput:
    return InvalidInput(sentence, code="out_of_bounds", parameter=name, data={"maximum": int(most.total_seconds())})
