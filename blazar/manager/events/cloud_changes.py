# SPDX-License-Identifier: Apache-2.0
"""Changes of a lease that need the cloud: begun with a write, then finished, or undone.

The first write holds what the lease has and what it is to have, together with the claim of the event that can undo the
change. So both outcomes stay possible, and any manager can undo the change after a crash. The same three steps serve
the creation of a lease, a user's change, and healing. What reservations have in the cloud before their start is made
here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from blazar.calendar.changing import union
from blazar.context import RETRY_SECONDS
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.worker import Worker
from blazar.manager.leases import lifecycle
from blazar.manager.leases.ordering import sort_by_waits
from blazar.manager.leases.references import waits_at_start
from blazar.model.base.errors import BlazarError, ClaimLost, StaleLease, WrongState
from blazar.model.base.reasons import ReasonCode, reason
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Event, Lease, set_reason
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import Commit, LeaseWrite


class CloudChanges:
    """Begins, finishes and undoes changes of leases that need the cloud."""

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._worker = worker

    def begin(
        self, lease: Lease, held: Collection[Allocation], plan: AllocationPlan, claim: Claim, *, turn: int | None = None
    ) -> Commit:
        """Return the beginning of a change: the lease is UPDATING, and has what it ``held`` and what is planned.

        ``turn`` is the version of the waiting list that makes it.
        """
        now = self._runtime.clock.now()
        updating = lifecycle.begin_update(lease, held=held, token=claim.token, now=now, until=now)
        both = LeaseWrite(lease, updating, union(held, plan.allocations))
        return Commit([both], at=now, generations=plan.generations, turn=turn)

    @contextmanager
    def undone_on_failure(self, lease: Lease, event: Event, claim: Claim) -> Iterator[None]:
        """Undo the change if the block fails, with the reason on its event; the failure is raised again."""
        try:
            yield
        except BaseException as error:
            internal = reason("internal error", ReasonCode.INTERNAL_ERROR)
            why = error.reason if isinstance(error, BlazarError) else internal
            marked = lifecycle.with_event(lease, set_reason(event, why))
            self._worker.perform(marked, event.id, claim)
            raise

    def finish(
        self, updating: Lease, event_id: str, claim: Claim, write: Callable[[Lease], Lease], *, what: str
    ) -> Lease:
        """Make the last write of a change; ``write`` gets the current lease.

        Other managers may have postponed events that wait for the change to finish. If more than that has changed, the
        claim is lost or the lease is being deleted: ClaimLost or WrongState.
        """
        while True:
            try:
                return write(updating)
            except StaleLease:
                fresh = self._runtime.store.leases.one(updating.id, including_deleted=True)
                event = next(event for event in fresh.events if event.id == event_id)
                if fresh.status is not LeaseStatus.UPDATING or event.claimed_by != claim.token:
                    raise self.lost(updating.id, event_id, claim, what) from None
                updating = fresh

    def lost(self, lease_id: str, event_id: str, claim: Claim, what: str) -> BlazarError:
        """Return the error for the caller of a request whose last write came too late, while it was being ``what``.

        If the lease is being deleted and its event is still claimed by us, release the claim: the deletion continues.
        """
        fresh = self._runtime.store.leases.one(lease_id, including_deleted=True)
        self._worker.perform(fresh, event_id, claim)
        if fresh.event(EventType.DELETE) is not None:
            return WrongState(f"lease {lease_id} was deleted while it was being {what}", code="lease_ended")
        if fresh.status is LeaseStatus.DELETING:
            undone = ClaimLost(
                f"this manager was held up while lease {lease_id} was being {what}, and another manager has undone "
                f"that: nothing of it stays, and the request may be sent again"
            )
            undone.retry_after = RETRY_SECONDS
            return undone
        return ClaimLost(
            f"this manager was held up while lease {lease_id} was being {what}, and another manager undoes that; check "
            f"the lease before you retry"
        )


def prepare_reservations(runtime: Runtime, lease: Lease, ids: Collection[str]) -> Lease:
    """Make the cloud objects that these reservations need before their start; return the lease with their cloud ids.

    Each is prepared after those that it refers to. CloudError.
    """
    several = len(lease.reservations) > 1
    for id_ in sort_by_waits(waits_at_start(runtime, lease)) if several else ids:
        reservation = lease.reservation(id_)
        if reservation is None or id_ not in ids:
            continue
        # No resources are read: objects from before the start belong to the reservation as a whole.
        cloud_ids = runtime.type_of(reservation).prepare(Task(lease, reservation, ()))
        made = replace(reservation, cloud_ids=cloud_ids, unassigned=frozenset())
        lease = lifecycle.with_reservations(lease, [made])
    return lease
