# SPDX-License-Identifier: Apache-2.0
"""Changes of a lease.

A change that only affects the calendar is one transaction. A change that also needs the cloud (a reservation in use
gets more hosts, one that has not started another flavor), or that an enforcement service must accept, is booked first,
with the lease UPDATING and an event with the saved state; if the cloud or the service fails, or the manager dies, the
saved state is restored. Meanwhile the lease holds both its old and its new resources, so that no other lease can take
those that completing or undoing the change needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from blazar.context import scope
from blazar.enforcement import Occasion
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import UPDATED, WARNING_OFF
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.starting import start_in_use
from blazar.manager.health.healing import Healing
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.change_decisions import Asked, Change, ChangeDecisions, Unchanged
from blazar.model.demand import Plan
from blazar.model.errors import Conflict, Contention
from blazar.model.lease import Lease, Reservation
from blazar.model.requests import Actor, LeaseChange
from blazar.model.usage import OutboxMessage
from blazar.resources.base import Given, ResolutionNeeded, Task, Unusable, UsageNeeded


class Updates:
    """Changes leases."""

    def __init__(
        self, runtime: Runtime, booking: Booking, changes: CloudChanges, outbox: Outbox, healing: Healing
    ) -> None:
        self._runtime = runtime
        self._booking = booking
        self._changes = changes
        self._outbox = outbox
        self._enforcement = outbox.enforcement
        self._healing = healing
        self._decisions = ChangeDecisions(runtime, booking)

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease, all or nothing. NotFound, InvalidInput, WrongState, NotEnoughResources, CloudError.

        Busy if other work on the lease is in progress.
        """
        lease = self._changed(lease_id, change)
        # The change may have replaced missing resources.
        seen = lease.degraded and self._healing.heal_once(lease_id, in_use=False)
        return self._runtime.store.leases.one(lease_id) if seen else lease

    def _changed(self, lease_id: str, change: LeaseChange) -> Lease:
        enforcement_check = EnforcementCheck(self._enforcement, self._runtime.store, self._runtime.clock)
        claim = self._runtime.claims.new()

        def check(found: Change | Unchanged) -> None:
            # A new name needs no check: it uses no resources.
            if isinstance(found, Change):
                lease = found.lease
                self._outbox.catch_up(lease.id)
                enforcement_check.check(
                    _caller(change, lease), found.draft.after, found.plan.allocations, before=(lease, found.allocations)
                )

        with scope(limit=self._runtime.settings.request_limit):
            found, saved = self._decided(
                lease_id, change, enforcement_check, check if self._enforcement.enabled else None, claim
            )
            if isinstance(found, Change) and self._in_steps(found):
                with self._runtime.claims.held(claim):
                    saved = self._carry_out(saved, found, change, claim)
        if isinstance(found, Change):
            self._outbox.wake()
            if found.draft.warning_off:
                self._runtime.notifier.notify(WARNING_OFF, saved)
            self._runtime.notifier.notify(UPDATED, saved)
        return saved

    def _decided(
        self,
        lease_id: str,
        change: LeaseChange,
        enforcement_check: EnforcementCheck,
        check: Callable[[Change | Unchanged], None] | None,
        claim: Claim,
    ) -> tuple[Change | Unchanged, Lease]:
        """Decide and write; if the decision needs the usage in the cloud, read that in between, outside the turn."""
        asked = Asked(change, {each.id: Given(each.parameters) for each in change.reservations}, {})
        # Each reservation is read at most once. All are resolved at once.
        for _ in range(len(change.reservations) + 2):
            try:
                return self._booking.until_it_holds(
                    partial(self._decisions.decide, lease_id, asked),
                    lambda found: (found, self._commit(found, change, enforcement_check, claim)),
                    check,
                )
            except ResolutionNeeded:
                asked = replace(asked, given=self._resolved(lease_id, asked.given))
            except UsageNeeded as needed:
                reservation = needed.task.reservation
                in_use = self._runtime.type_of(reservation).in_use(needed.task)
                asked = replace(asked, usage={**asked.usage, reservation.id: in_use})
        raise Contention(f"the reservations of lease {lease_id} kept changing; please retry")

    def _resolved(self, lease_id: str, given: Mapping[str, Given]) -> Mapping[str, Given]:
        """Complete the parameters of a change from the cloud, outside the turn of a booking."""
        lease = self._runtime.store.leases.one(lease_id)
        known = {r.id: r for r in lease.reservations if r.id in given}
        resolved = {
            id_: self._runtime.type_of(r).resolve(given[id_], project_id=lease.project_id, reservation=r)
            for id_, r in known.items()
        }
        return {**given, **resolved}

    def _commit(
        self, found: Change | Unchanged, change: LeaseChange, enforcement_check: EnforcementCheck, claim: Claim
    ) -> Lease:
        """Write a decided change, or its beginning if it is done in steps. StaleLease, StaleCalendar."""
        now = self._runtime.clock.now()
        if isinstance(found, Unchanged):
            if found.after is found.lease:
                return found.lease
            return self._runtime.store.leases.save(found.lease, found.after, at=now)
        if self._in_steps(found):
            return self._changes.begin(found.lease, found.allocations, found.plan, claim, use=enforcement_check.use)
        after, plan = found.draft.after, found.plan
        return self._runtime.store.calendar.rebook(
            found.lease,
            after,
            plan,
            at=now,
            use=enforcement_check.use,
            messages=self._outbox.of(
                Occasion.UPDATED,
                after,
                plan.allocations,
                by=_caller(change, after),
                before=(found.lease, found.allocations),
            ),
        )

    def _in_steps(self, found: Change) -> bool:
        """Tell whether a change can fail after it is booked: in the cloud, or because a service rejects it."""
        return found.needs_cloud or self._enforcement.must_accept(Occasion.UPDATED, found.lease.project_id)

    def _carry_out(self, updating: Lease, found: Change, change: LeaseChange, claim: Claim) -> Lease:
        """Make the change in the cloud, and write the changed lease; or restore the saved state."""
        event = lifecycle.update_of(updating)
        wanted = found.draft.after
        with self._changes.undone_on_failure(updating, event, claim):
            for task in self._runtime.tasks(wanted, found.plan.allocations):
                if task.reservation.id in found.new:
                    self._assign(task)
            prepared = [self._prepared(wanted, r) for r in wanted.reservations if r.id in found.draft.to_prepare]
        ready = lifecycle.with_reservations(wanted, prepared)
        now = self._runtime.clock.now()
        messages = self._outbox.planned(
            Occasion.UPDATED,
            settled(updating, ready, event.id, now),
            found.plan.allocations,
            by=_caller(change, wanted),
            before=(found.lease, found.allocations),
        )
        if any(message.held for message in messages):
            updating, messages = self._accepted(updating, messages, claim)

        def write(current: Lease) -> Lease:
            return self._runtime.store.calendar.rebook(
                current,
                settled(current, ready, event.id, now),
                Plan(found.plan.allocations),
                at=now,
                messages=messages,
            )

        return self._changes.finish(updating, event.id, claim, write, what="changed")

    def _prepared(self, lease: Lease, reservation: Reservation) -> Reservation:
        """Make the cloud objects that must exist before the start of a reservation, from its new parameters."""
        # No resources are read: objects from before the start belong to the reservation as a whole.
        cloud_ids = self._runtime.type_of(reservation).prepare(Task(lease, reservation, ()))
        return replace(reservation, cloud_ids=cloud_ids, unassigned=frozenset())

    def _assign(self, task: Task) -> None:
        """Assign the resources of a reservation, without those that were left out before and have not recovered."""
        try:
            start_in_use(self._runtime, task)
        except Unusable as error:
            raise Conflict(f"{error}; retry later") from error

    def _accepted(
        self, updating: Lease, held: tuple[OutboxMessage, ...], claim: Claim
    ) -> tuple[Lease, tuple[OutboxMessage, ...]]:
        """Send the change to the filters that must accept it, or restore the saved state if they do not.

        Return the lease as saved, and the outbox messages to write with the change. The messages are written before
        they are sent: so a manager that undoes the change knows that it may have been accepted.
        """

        def note(current: Lease) -> Lease:
            return self._runtime.store.leases.save(current, current, at=self._runtime.clock.now(), messages=held)

        updating = self._changes.finish(updating, lifecycle.update_of(updating).id, claim, note, what="changed")
        with self._changes.undone_on_failure(updating, lifecycle.update_of(updating), claim):
            return updating, self._outbox.commit(held)


def settled(updating: Lease, wanted: Lease, event_id: str, now: datetime) -> Lease:
    """Return the ``updating`` lease with the wanted changes, and the event of the change settled."""
    theirs = {e.id: e for e in wanted.events if e.id != event_id}
    known = {e.id for e in updating.events}
    events = (*(theirs.get(e.id, e) for e in updating.events), *(e for e in wanted.events if e.id not in known))
    changed = replace(updating, name=wanted.name, window=wanted.window, reservations=wanted.reservations, events=events)
    event = next(e for e in events if e.id == event_id)
    return lifecycle.settle(changed, event, now=now)


def _caller(change: LeaseChange, lease: Lease) -> Actor:
    return change.asked_by or Actor(lease.user_id, lease.project_id)
