# SPDX-License-Identifier: Apache-2.0
"""What reservations have in the cloud that are not on record, as after a backup was restored; an operator ends them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from blazar.manager.common.runtime import Runtime
from blazar.manager.events.sweep import Sweep
from blazar.manager.lease import lifecycle
from blazar.model.demand import Plan
from blazar.model.errors import NotFound
from blazar.model.lease import EndReason, Lease, LeaseStatus, Reservation, ReservationStatus
from blazar.model.window import Window

NAME = "not on record"
"""The name, user and project of the lease under which such a reservation is put on record."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A reservation that is not on record, and has something in the cloud of a region."""

    reservation_id: str
    resource_type: str
    region: str


class Leftovers:
    """Lists reservations that are not on record, and puts them on record as ended."""

    def __init__(self, runtime: Runtime, sweeps: Iterable[Sweep]) -> None:
        self._runtime = runtime
        self._sweeps = tuple(sweeps)

    def all(self) -> tuple[Leftover, ...]:
        """Return them, in the order of their ids. CloudError if a service does not tell."""
        found = [
            Leftover(id_, resource_type, sweep.region)
            for sweep in self._sweeps
            for id_, resource_type in sweep.unknown().items()
        ]
        return tuple(sorted(found, key=lambda each: (each.reservation_id, each.region)))

    def end(self, reservation_id: str) -> Leftover:
        """Put one on record as part of a lease that has ended, whose leftovers managers remove at once. NotFound."""
        found = next((each for each in self.all() if each.reservation_id == reservation_id), None)
        if found is None:
            raise NotFound(f"no reservation {reservation_id} that is not on record has anything in the cloud")
        now = self._runtime.clock.now().replace(microsecond=0)
        ended = Reservation(
            found.reservation_id, found.resource_type, None, ReservationStatus.DELETED, now, region=found.region
        )
        lease = Lease(
            str(uuid.uuid4()),
            NAME,
            NAME,
            NAME,
            Window(now - timedelta(seconds=1), now),
            LeaseStatus.DELETING,
            now,
            deleted_at=now,
            end_reason=EndReason.DELETED,
            reservations=(ended,),
        )
        due = lifecycle.begin_clean_up(lease, event_id=str(uuid.uuid4()), now=now)
        self._runtime.store.calendar.book(due, Plan(()))
        return found
