# SPDX-License-Identifier: Apache-2.0
"""Changes of a lease.

A change that only affects the calendar is one transaction. A change that also needs the cloud (a reservation in use
gets more hosts, one that has not started another flavor), or that an enforcement service must accept, is booked first,
with the lease UPDATING and an event with the saved state; if the cloud or the service fails, or the manager dies, the
saved state is restored. Meanwhile the lease holds both its old and its new resources, so that no other lease can take
those that completing or undoing the change needs. What cannot be undone, as the growth of a volume, is done when the
change is final: until then the reservation lacks it, and healing sees to that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from blazar.context import scope
from blazar.manager.booking.booking import Booker
from blazar.manager.booking.lease_changes import ChangeQuestion, DecidedChange, RequestedChange, Unchanged
from blazar.manager.booking.quotas import QuotasNeeded, check_quotas
from blazar.manager.booking.repacking import count_repacked, tell_moved
from blazar.manager.changing.change_decisions import ChangeDecisions
from blazar.manager.changing.change_grants import ChangeGrant, ChangeProposal, Grants
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import WARNING_OFF
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges, prepare_reservations
from blazar.manager.events.starts import StartedInUse, start_in_use
from blazar.manager.health.healing import Healing
from blazar.manager.health.missing_resources import FlagReport, report_flags
from blazar.manager.leases import lifecycle
from blazar.manager.leases.flags import derive_degraded, mark_missing
from blazar.manager.leases.ordering import put_givers_first, sort_by_waits
from blazar.manager.leases.references import waits_at_start
from blazar.manager.outbox.messages import call_commit_hooks
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.queue.queue_guard import QueueGuard
from blazar.model.base.errors import BlazarError, Conflict, Contention, StaleCalendar, UsageDenied, pointing_at
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.leases.states import ReservationStatus
from blazar.model.use.resource_hours import OutboxMessage, ProjectUse
from blazar.resources.contract.values import Before, Given, ResolutionNeeded, Task, Unusable, UsageNeeded
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices

LOG = logging.getLogger(__name__)

T = TypeVar("T")

Decide = Callable[[RequestedChange, int], DecidedChange | Unchanged]
"""Decides on a change at an attempt, from the lease and the calendar as they are."""


class Updates:
    """Changes leases."""

    def __init__(
        self,
        runtime: Runtime,
        booker: Booker,
        changes: CloudChanges,
        outbox: Outbox,
        healing: Healing,
    ) -> None:
        self._runtime = runtime
        self._booker = booker
        self._changes = changes
        self._outbox = outbox
        self._healing = healing
        self._decisions = ChangeDecisions(runtime)
        self._queue_guard = QueueGuard(runtime)

    def update(
        self, lease_id: str, change: LeaseChange, decide: Decide | None = None, grants: Grants = ChangeGrant
    ) -> Lease:
        """Change a lease, all or nothing. NotFound, InvalidInput, WrongState, NotEnoughResources, CloudError.

        Busy if other work on the lease is in progress. ``decide`` says what the change leads to, if the change itself
        does not; ``grants`` how it is granted.
        """
        with scope(limit=self._runtime.settings.request_limit):
            grant = grants(self._runtime, self._changes, self._outbox, change)
            found, saved = self._changed(lease_id, grant, decide)
            if not isinstance(found, DecidedChange):
                return self._completed(saved, partial(report_flags, self._runtime)) or saved
            seen = [saved]
            done = self._completed(saved, lambda _, after: seen.append(after)) or seen[-1]
            # Of the change and what completes it together: what is only left for a moment is no news.
            self._notify(found, done, grant)
            return done

    def _completed(self, lease: Lease, report: FlagReport) -> Lease | None:
        """Heal a lease that has changed, as far as that can be done at once; return it as it is then.

        None if that is not known.
        """
        # The change may have replaced missing resources, or left something to do.
        left = any(r.unassigned - r.failed and r.status is ReservationStatus.ACTIVE for r in lease.reservations)
        if not lease.degraded and not left:
            return lease
        self._healing.heal_once(lease.id, in_use=left, at_once=left, report=report)
        try:
            return self._runtime.store.leases.one(lease.id)
        except BlazarError as error:
            # The change was made, whatever is known of what came after it.
            LOG.warning("Lease %s was changed, and cannot be read again: %s", lease.id, error.message)
            return None

    def _notify(self, found: DecidedChange, done: Lease, grant: ChangeGrant) -> None:
        if found.draft.warning_off:
            self._runtime.notifier.notify(WARNING_OFF, done)
        self._runtime.notifier.notify(grant.told, done, transfer=grant.parties(found))
        report_flags(self._runtime, found.lease, done)
        tell_moved(self._runtime, found.moved)

    def preview(
        self, lease_id: str, change: LeaseChange, decide: Decide | None = None, grants: Grants = ChangeGrant
    ) -> tuple[Lease, tuple[Allocation, ...], LeasePrice | None, int]:
        """Return what a dry run of a change would make of a lease, of what it holds, and of what it costs.

        The last is how many other leases would get other hosts. The errors of ``update``.
        """
        grant = grants(self._runtime, self._changes, self._outbox, change)
        with scope(limit=self._runtime.settings.request_limit):
            found, after = self._granted(lease_id, grant, decide)
        if isinstance(found, DecidedChange):
            return after, found.plan.allocations, grant.price, count_repacked(found.moved)
        return after, tuple(self._runtime.store.calendar.of_lease(lease_id)), grant.price, 0

    def _changed(
        self, lease_id: str, grant: ChangeGrant, decide: Decide | None
    ) -> tuple[DecidedChange | Unchanged, Lease]:
        found, saved = self._granted(lease_id, grant, decide)
        if isinstance(found, DecidedChange):
            if grant.in_steps(found):
                with self._runtime.claims.held(grant.claim):
                    saved = self._carry_out(saved, found, grant)
            self._runtime.signals.messages_written()
        return found, saved

    def question(self, lease: Lease, change: LeaseChange) -> ChangeQuestion:
        """Return what a change asks of the calendar; nothing is changed. As for ``update``."""
        return self._informed(lease.id, change, lambda asked: self._decisions.question(lease, asked))

    def _granted(
        self, lease_id: str, grant: ChangeGrant, decided: Decide | None
    ) -> tuple[DecidedChange | Unchanged, Lease]:
        """Decide and write."""
        decided = decided or (lambda asked, number: self._decisions.decide(lease_id, asked, number))

        def attempt(asked: RequestedChange) -> tuple[DecidedChange | Unchanged, Lease]:

            def propose(number: int) -> ChangeProposal:
                if grant.change.advances is not None:
                    # A promise stands before all that wait.
                    return grant.propose(decided(asked, number))
                return grant.propose(
                    self._queue_guard.without_delaying(lambda avoided: decided(replace(asked, avoided=avoided), number))
                )

            try:
                done = self._booker.book(
                    propose,
                    check=grant.check if grant.checked else None,
                    checks=(grant.enforcement_check,),
                    dry_run=grant.change.dry_run,
                )
            except UsageDenied as error:
                raise grant.explain(error) from error
            return done.found, next(iter(done.leases), done.found.lease)

        return self._informed(lease_id, grant.change, attempt)

    def _informed(self, lease_id: str, change: LeaseChange, attempt: Callable[[RequestedChange], T]) -> T:
        """Return the result of an attempt; if that needs the usage in the cloud, read it first, outside the turn."""
        requested = change.reservations
        asked = RequestedChange(change, {change.id: Given(change.parameters) for change in requested}, {})
        # Each reservation is read at most once. All are resolved at once, and so are quotas.
        for _ in range(len(requested) + 3):
            try:
                return attempt(asked)
            except ResolutionNeeded:
                asked = replace(asked, given=self._resolved(lease_id, change.asked_by, asked.given))
            except QuotasNeeded as more:
                check_quotas(more.needed)
                asked = replace(asked, quotas=more.needed)
            except UsageNeeded as needed:
                reservation = needed.task.reservation
                in_use = self._runtime.type_of(reservation).occupied(needed.task)
                asked = replace(asked, usage={**asked.usage, reservation.id: in_use})
        raise Contention(f"the reservations of lease {lease_id} kept changing; please retry")

    def _resolved(self, lease_id: str, asker: Actor | None, given: Mapping[str, Given]) -> Mapping[str, Given]:
        """Complete the parameters of a change from the cloud, outside the turn of a booking."""
        lease = self._runtime.store.leases.one(lease_id)
        user_id = lease.user_id if asker is None else asker.user_id
        resolved = {}
        for number, (id_, parameters) in enumerate(given.items()):
            if (reservation := lease.reservation(id_)) is not None:
                kind = self._runtime.type_of(reservation)
                with pointing_at(f"/reservations/{number}"), scope(user_id=user_id):
                    resolved[id_] = kind.resolve(parameters, project_id=lease.project_id, reservation=reservation)
        return {**given, **resolved}

    def _carry_out(self, updating: Lease, found: DecidedChange, grant: ChangeGrant) -> Lease:
        """Make the change in the cloud, and write the changed lease; or restore the saved state."""
        event = lifecycle.update_of(updating)
        wanted = found.draft.after
        with self._changes.undone_on_failure(updating, event, grant.claim):
            wanted = self._assigned(wanted, found)
            ready = prepare_reservations(self._runtime, wanted, found.draft.to_prepare)
            grant.confirm(found)
        now = self._runtime.clock.now()
        messages = grant.messages(found, settle_change(updating, ready, event.id, now))
        if held := tuple(message for message in messages if message.is_held_by_request):
            updating, accepted = self._accepted(updating, held, grant.claim)
            messages = (*accepted, *(message for message in messages if not message.is_held_by_request))

        def settle(current: Lease) -> Commit:
            after = settle_change(current, ready, event.id, now)
            return Commit(
                [LeaseWrite(current, after, found.plan.allocations)],
                at=now,
                most=limit_prices([after.id], grant.change.max_price),
                messages=messages,
                key=grant.change.key,
            )

        return self._finished(updating, found, grant, settle)

    def _finished(
        self,
        updating: Lease,
        found: DecidedChange,
        grant: ChangeGrant,
        settle: Callable[[Lease], Commit],
    ) -> Lease:
        """Make the last write of a change, which ``settle`` returns.

        If the use of the project, or what the lease costs, has changed meanwhile, that is checked again first.
        """
        event = lifecycle.update_of(updating)

        def write(use: ProjectUse | None, again: bool, current: Lease) -> Lease:
            last = replace(settle(current), uses=() if use is None else (use,))
            try:
                if again:
                    grant.check_last_price(last)
                return self._runtime.store.bookings.commit(last)[0]
            except (Conflict, UsageDenied):
                # A price list was published since it was begun.
                with self._changes.undone_on_failure(current, event, grant.claim):
                    raise

        for attempt in range(self._runtime.settings.booking_attempts):
            with self._changes.undone_on_failure(updating, event, grant.claim):
                use = grant.check_last(found)
            with suppress(StaleCalendar):
                last = partial(write, use, attempt > 0)
                return self._changes.finish(updating, event.id, grant.claim, last, what="changed")
        with self._changes.undone_on_failure(updating, event, grant.claim):
            raise Contention(f"the use of project {found.draft.after.project_id} kept changing; please retry")

    def _assigned(self, wanted: Lease, found: DecidedChange) -> Lease:
        """Assign the new resources of reservations in use; return the lease with the cloud ids of all that they have.

        Each has those that it refers to as they have become.
        """
        tasks = {task.reservation.id: task for task in self._runtime.tasks(wanted, found.plan.allocations)}
        before = {task.reservation.id: Before(task.reservation.parameters, task.counts) for task in found.tasks}
        begun: list[Task] = []
        waits = put_givers_first(waits_at_start(self._runtime, wanted), found.allocations, found.plan.allocations)
        for id_ in sort_by_waits(waits):
            if id_ in found.new:
                task = replace(tasks[id_], lease=wanted, before=replace(before[id_], begun=tuple(begun)))
                started = self._assign(task)
                begun.append(task)
                if started.cloud_ids is not None:
                    assigned = replace(task.reservation, cloud_ids=started.cloud_ids)
                    wanted = lifecycle.with_cloud_ids(wanted, [assigned])
                if new := started.unassigned - task.reservation.unassigned:
                    wanted = self._lacking(wanted, id_, new)
        return wanted

    def _lacking(self, lease: Lease, reservation_id: str, left: frozenset[int]) -> Lease:
        """Return the lease with resources of a reservation recorded as not, or not completely, assigned."""
        now = self._runtime.clock.now()
        lacks = [
            mark_missing(replace(r, unassigned=r.unassigned | left), now)
            for r in lease.reservations
            if r.id == reservation_id
        ]
        return derive_degraded(lifecycle.with_reservations(lease, lacks))

    def _assign(self, task: Task) -> StartedInUse:
        """Assign the resources of a reservation, without those that were left out before and have not recovered."""
        try:
            return start_in_use(self._runtime, task)
        except Unusable as error:
            public = "a resource that the change needs is not ready; retry later"
            raise Conflict(f"{error}; retry later", public=public) from error

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
            return updating, call_commit_hooks(self._runtime, held)


def settle_change(updating: Lease, wanted: Lease, event_id: str, now: datetime) -> Lease:
    """Return the ``updating`` lease with the wanted changes, and the event of the change settled."""
    theirs = {e.id: e for e in wanted.events if e.id != event_id}
    known = {e.id for e in updating.events}
    events = (*(theirs.get(e.id, e) for e in updating.events), *(e for e in wanted.events if e.id not in known))
    # All that a request may change is as wanted; the rest is as it has become meanwhile.
    changed = derive_degraded(
        replace(
            wanted,
            status=updating.status,
            updated_at=updating.updated_at,
            deleted_at=updating.deleted_at,
            revision=updating.revision,
            use=updating.use,
            events=events,
        )
    )
    event = next(e for e in events if e.id == event_id)
    return lifecycle.settle(changed, event, now=now)
