# SPDX-License-Identifier: Apache-2.0
"""What all surgery on leases begins and ends with: the lease as it is, the host that is named, and the write."""

from __future__ import annotations

from datetime import datetime

from blazar.manager.changing.change_decisions import busy_error, check_not_ended
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle
from blazar.model.base.errors import ClaimedLease, Conflict, InvalidInput, NotFound, WrongState
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.resources.contract.values import Task

LIVE = (ReservationStatus.PENDING, ReservationStatus.ACTIVE)


@dataclass(frozen=True, slots=True)
class LeaseToChange:
    """A lease before an operation, with what it has; ``now`` is before it was read."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    tasks: tuple[Task, ...]
    now: datetime

    def task(self, reservation_id: str) -> Task:
        """Return a reservation that a user asked for, with its resources. NotFound."""
        found = next((t for t in self.tasks if t.reservation.id == reservation_id), None)
        if found is None or found.reservation.status not in LIVE:
            sentence = f"lease {self.lease.id} has no reservation {reservation_id[:80]} that could be changed"
            raise NotFound(sentence, code="reservation_not_found")
        if found.reservation.parent is not None:
            raise Conflict(
                f"reservation {reservation_id} is a part of reservation {found.reservation.parent}, and stays with it"
            )
        return found


def load_changeable(runtime: Runtime, lease_id: str, revisions: tuple[int, ...] | None = None) -> LeaseToChange:
    """Return a lease that is booked or in use, and on which nobody works.

    NotFound, PreconditionFailed; WrongState and InvalidInput for leases that wait, have failed or are over; StaleLease
    if the work on it is over in a moment.
    """
    # Before the lease is read: a claim that had not ended then may have been renewed since.
    now = runtime.clock.now()
    lease = runtime.store.leases.one(lease_id)
    lease.check_revision(revisions)
    check_not_ended(lease)
    if lease.status is LeaseStatus.ERROR:
        raise WrongState(
            f"lease {lease.id} has failed; move its dates to have it started once more, or delete it",
            data={"status": str(lease.status)},
        )
    if lease.status not in (LeaseStatus.PENDING, LeaseStatus.ACTIVE) or lease.is_undecided or lease.is_unconfirmed:
        raise busy_error(lease)
    if lease.window.end <= now:
        raise WrongState(f"lease {lease.id} ends now", code="lease_ended", data={"status": str(lease.status)})
    if lifecycle.live_claim(lease, now) is not None:
        raise ClaimedLease(f"lease {lease.id} is being worked on")
    allocations = runtime.store.calendar.of_lease(lease.id)
    return LeaseToChange(lease, allocations, runtime.tasks(lease, allocations), now)


def load_other_changeable(runtime: Runtime, lease_id: str, pointer: str) -> LeaseToChange:
    """Return another lease that a request names, as ``load_changeable`` does; InvalidInput if it is gone."""
    try:
        return load_changeable(runtime, lease_id)
    except NotFound as error:
        raise InvalidInput(error.message, code="unknown_reference", at=pointer) from error
    except (WrongState, InvalidInput) as error:
        # The same error, as what waits for it to be over does: only that it is of the other lease.
        error.message, error.pointer = f"the other lease: {error.message}", pointer
        error.args = (error.message,)
        raise


def is_pending(reservation: Reservation) -> bool:
    """Tell whether a reservation has not started."""
    return reservation.status is ReservationStatus.PENDING
