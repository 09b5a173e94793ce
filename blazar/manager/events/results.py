# SPDX-License-Identifier: Apache-2.0
"""Results of one attempt to process an event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from blazar.model.lease import Reservation


@dataclass(frozen=True, slots=True)
class Finished:
    """The event is finished; with ``error`` it failed for good. ``note`` is kept as the reason of a success."""

    reservations: tuple[Reservation, ...] = ()
    error: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """The event has to be retried; ``after`` None means after the usual back-off of a failure."""

    reason: str
    after: timedelta | None = None
    reservations: tuple[Reservation, ...] = ()


Result = Finished | Retry


def joined(one: Result, other: Result) -> Result:
    """Return the combined result of two rounds of work on one event."""
    reservations = (*one.reservations, *other.reservations)
    if isinstance(one, Finished) and isinstance(other, Finished):
        return Finished(reservations, "; ".join(filter(None, (one.error, other.error))) or None)
    retries = [result for result in (one, other) if isinstance(result, Retry)]
    after = None if any(result.after is None for result in retries) else min(r.after for r in retries if r.after)
    return Retry("; ".join(result.reason for result in retries), after, reservations)


def note_of(result: Result) -> str | None:
    """Return the note of a success; None if there is none."""
    return result.note if isinstance(result, Finished) else None
