# SPDX-License-Identifier: Apache-2.0
"""What a lease gets at its turn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from blazar.calendar.queue.values import Grant
from blazar.calendar.timeline import from_epoch
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.common.claims import Claim
from blazar.manager.outbox.enforcement_check import Examined
from blazar.manager.queue.snapshot import WaitingLease
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.requests import Actor


@dataclass(frozen=True, slots=True)
class GrantedLease:
    """A lease whose turn it is: what a plan of this version of the list grants it, and when it will probably start."""

    wanted: WaitingLease
    grant: Grant
    claim: Claim
    turn: int
    estimate: datetime
    before: tuple[Grant, ...] | None = None
    """Others get other hosts for it, but what is planned for those before it; None: none do."""


def window_of(grant: Grant) -> Window:
    """Return the window of a grant."""
    return Window(from_epoch(grant.start), from_epoch(grant.end))


def examine_grant(wanted: WaitingLease, window: Window, allocations: Collection[Allocation]) -> Examined:
    """Return what enforcement has to allow of a lease that gets these allocations for a window."""
    lease = replace(wanted.lease, window=window)
    most = None if lease.wait is None else lease.wait.max_price
    return Examined(Actor(lease.user_id, lease.project_id), lease, allocations, max_price=most)


def group_resources(grant: Grant, requests: Sequence[PlacementRequest]) -> dict[str, frozenset[int]]:
    """Return the resources of a grant, by reservation."""
    return {
        request.reservation_id: frozenset(part.resource_id for part in grant.parts if part.demand == number)
        for number, request in enumerate(requests)
    }
