# SPDX-License-Identifier: Apache-2.0
"""How refusals write numbers, dates and lengths, and which other dates they propose. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from blazar.model.base.clock import later, to_minute
from blazar.model.base.window import Window
from blazar.model.use.resource_hours import find_longest_below


def plural(number: int, word: str) -> str:
    """Return a word as it is for a number."""
    return word if number == 1 else f"{word}s"


def find_other_dates(window: Window, uses: Collection[tuple[Window, int]], most: int) -> Window | None:
    """Return the longest part of a window in which no more than ``most`` is used; None if there is none."""
    part = find_longest_below(window, uses, most)
    if part is None:
        return None
    # Dates of users have minutes, so a part is only useful if it has at least one.
    start, end = next_minute(part.start), to_minute(part.end)
    return Window(start, end) if start < end else None


def propose_dates(dates: Window | None) -> str:
    """Return the advice to choose other dates, as these."""
    return "choose other dates" + (f", as from {spell(dates.start)} to {spell(dates.end)}" if dates else "")


def next_minute(instant: datetime) -> datetime:
    """Return the first whole minute not before an instant, so that a proposal is still valid when it is typed."""
    minute = to_minute(instant)
    return minute if minute == instant else later(minute, timedelta(minutes=1))


def spell(instant: datetime) -> str:
    """Return an instant in the format in which users write it."""
    return f"{instant:%Y-%m-%d %H:%M}"


def seconds(length: timedelta) -> int:
    """Return a length in whole seconds."""
    return int(length.total_seconds())


def span(length: timedelta) -> str:
    """Return a length in the largest units that express it exactly: ``2 days``, ``1 hour 30 minutes``."""
    left = seconds(length)
    words = []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(words) or "0 seconds"
