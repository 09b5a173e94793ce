# SPDX-License-Identifier: Apache-2.0
"""What rules of operators say of the window of a lease, and from which starts on they allow one. Pure.

Instants are seconds since the epoch, spans are ``[start, end)``, and runs have their first and last start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

from blazar.calendar.counting import Run, intersect_runs
from blazar.model.rules.open_time import Span
from blazar.model.rules.values import Gap, Hours, OpenAt


class HoursFault(StrEnum):
    """What of a lease lies in closed time though it must not."""

    START = "start"
    END = "end"
    BETWEEN = "between"


def find_fault(hours: Hours, window: Span, before: Span | None = None) -> HoursFault | None:
    """Return what of a window lies in closed time; None if nothing does that is not there ``before`` a change."""
    start, end = window
    spans = hours.open_time.list_spans(start, end)
    if (before is None or before[0] != start) and not _opens_at(spans, start):
        return HoursFault.START
    if hours.apply is OpenAt.START:
        return None
    if (before is None or before[1] != end) and not _lasts_to(spans, end):
        return HoursFault.END
    if hours.apply is OpenAt.ALL:
        # What lies in the window before a change has been allowed.
        covered = spans if before is None else sorted([*spans, before])
        groups = _join(covered, hours.longest_across)
        if any(group[0][0] <= start and end <= max(over for _, over in group) for group in groups):
            return None
        return HoursFault.BETWEEN
    return None


def list_allowed_starts(hours: Hours, length: int, first: int, last: int) -> list[Run]:
    """Return the starts from ``first`` to ``last`` of windows of a length that have no fault."""
    spans = hours.open_time.list_spans(first, last + length)
    if hours.apply is OpenAt.START:
        return intersect_runs([(start, end - 1) for start, end in spans], [(first, last)])
    groups = _join(spans, hours.longest_across) if hours.apply is OpenAt.ALL else [spans]
    found: list[Run] = []
    for group in groups:
        starts = [(start, end - 1) for start, end in group]
        found += intersect_runs(starts, [(start - length, end - length) for start, end in group])
    return intersect_runs(found, [(first, last)])


def find_last_end(hours: Hours, start: int, after: int, until: int) -> int | None:
    """Return the last end after ``after``, up to ``until``, of a window from ``start`` on without a fault at it."""
    for opened, closed in reversed(hours.open_time.list_spans(after + 1, until)):
        end = min(closed, until)
        if end > after and end >= opened and find_fault(hours, (start, end), (start, after)) is None:
            return end
    return None


def follows_too_soon(gap: Gap, one: Span, other: Span) -> bool:
    """Return whether of two leases the later one begins before the gap after the earlier one is over.

    The later one starts and ends later: a lease within the time of another one is not the next one after that.
    """
    first, following = sorted((one, other))
    if first[0] == following[0] or following[1] <= first[1] or first[1] - first[0] <= gap.over:
        return False
    return following[0] < first[1] + gap.at_least


def list_starts_apart(gap: Gap, others: Iterable[Span], length: int, first: int, last: int) -> list[Run]:
    """Return the starts from ``first`` to ``last`` of windows of a length that keep the gap from others."""
    shut = sorted(run for other in others for run in _list_starts_too_near(gap, other, length) if run[0] <= run[1])
    found: list[Run] = []
    at = first
    for begin, over in shut:
        if at < begin and at <= last:
            found.append((at, min(begin - 1, last)))
        at = max(at, over + 1)
    return [*found, (at, last)] if at <= last else found


def _list_starts_too_near(gap: Gap, other: Span, length: int) -> Iterator[Run]:
    start, end = other
    if end - start > gap.over:
        yield max(start, end - length) + 1, end + gap.at_least - 1
    if length > gap.over:
        yield start - length - gap.at_least + 1, min(start, end - length) - 1


def _opens_at(spans: Collection[Span], instant: int) -> bool:
    return any(start <= instant < end for start, end in spans)


def _lasts_to(spans: Collection[Span], instant: int) -> bool:
    return any(start <= instant <= end for start, end in spans)


def _join(spans: Iterable[Span], across: int) -> list[list[Span]]:
    """Return spans in groups, within which no more than ``across`` lies between two."""
    groups: list[list[Span]] = []
    reached = 0
    for span in spans:
        if groups and span[0] - reached <= across:
            groups[-1].append(span)
            reached = max(reached, span[1])
        else:
            groups.append([span])
            reached = span[1]
    return groups
