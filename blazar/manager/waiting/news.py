# SPDX-License-Identifier: Apache-2.0
"""What becomes of those that wait while a plan is carried out, and what those are told that go on waiting.

A plan is made often, and most of it is what they know already: only what differs is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from blazar.calendar.timeline import from_epoch
from blazar.manager.outbox.enforcement_check import EnforcementCheck
from blazar.manager.queue.snapshot import WaitingLease
from blazar.model.base.clock import spell
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.store.queue.waiting_list import QueueUpdate


@dataclass(slots=True)
class QueueRound:
    """What becomes of those that wait, by lease, while one plan is carried out."""

    wanted: Mapping[str, WaitingLease]
    checks: dict[str, EnforcementCheck] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    """Those whom enforcement denied a grant when the plan was made."""
    granted: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """Why those were not granted at their turn."""
    moved: int = 0
    """How many promised starts are earlier now."""


def find_news(
    now: datetime, lease: Lease, position: int | None, start: int | None, reasons: Mapping[str, str]
) -> QueueUpdate | None:
    """Return what is new to a lease that goes on waiting; None if nothing is.

    ``start`` is when it fits, in seconds since 1970; None if that is not known. ``reasons`` are by lease.
    """
    assert lease.wait is not None
    reason = reasons.get(lease.id)
    estimate = None if start is None else from_epoch(start)
    begin = max(estimate or now.replace(microsecond=0), lease.wait.earliest)
    window = Window(begin, begin + (lease.window.end - lease.window.start))
    before = lease.wait.position, lease.wait.estimate, lease.wait.reason
    if before == (position, estimate, reason) and (estimate is None or lease.window == window):
        return None
    return QueueUpdate(lease.id, position, estimate, window.start, window.end, reason)


def tell_too_late(lease: Lease, start: int) -> str:
    """Return that a lease stops waiting, or may not start any more, before it fits."""
    wait = lease.wait
    assert wait is not None
    if wait.latest is not None and wait.latest < wait.until:
        bound = f"it is to start at {spell(wait.latest)} UTC at the latest"
    else:
        bound = f"it waits only until {spell(wait.until)} UTC"
    return f"it would fit from {spell(from_epoch(start))} UTC on, but {bound}"
