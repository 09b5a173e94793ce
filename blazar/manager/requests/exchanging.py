# SPDX-License-Identifier: Apache-2.0
"""Two leases exchange hosts before their start: each host must suit the other lease, and both are booked at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from blazar.calendar.occupancy import Snapshot
from blazar.calendar.placement import place
from blazar.calendar.timeline import second
from blazar.enforcement import Occasion
from blazar.manager.common.notifications import UPDATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.missing import report_flags
from blazar.manager.lease.booking import Booking, visible
from blazar.manager.lease.flags import flagged
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.line import Line
from blazar.manager.requests.operating import Patient, is_waiting, named, other_patient, patient, written
from blazar.manager.requests.swapping import as_changed, check_not_emptied, check_whole_host
from blazar.model.clock import to_second
from blazar.model.demand import Allocation, Demand
from blazar.model.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, StaleLease
from blazar.model.lease import Lease
from blazar.model.resource import HOST, Resource
from blazar.model.surgery import SwapRequest, Terms
from blazar.model.usage import OutboxMessage
from blazar.model.window import Window
from blazar.resources.base import Task
from blazar.store.surgery import Operated, Operation


@dataclass(frozen=True, slots=True)
class _Side:
    """A lease in an exchange: it gives one resource of a reservation."""

    found: Patient
    task: Task
    gives: Resource

    @property
    def lease(self) -> Lease:
        return self.found.lease

    def getting(self, resource: Resource) -> tuple[Allocation, ...]:
        """Return what it has after it got another resource for the one that it gives."""
        return tuple(
            replace(each, resource_id=resource.id)
            if (each.reservation_id, each.resource_id) == (self.task.reservation.id, self.gives.id)
            else each
            for each in self.found.allocations
        )


@dataclass(slots=True)
class _Exchange:
    sides: tuple[_Side, _Side]
    operation: Operation


class Exchanging:
    """Exchanges hosts of leases."""

    def __init__(self, runtime: Runtime, booking: Booking, outbox: Outbox) -> None:
        self._runtime = runtime
        self._booking = booking
        self._outbox = outbox
        self._line = Line(runtime)

    def exchange(self, lease_id: str, request: SwapRequest, terms: Terms) -> tuple[Operated, ...]:
        """Exchange a host of a lease with one of another lease; for a dry run return what would come of it.

        NotFound, InvalidInput, Conflict, WrongState, NotEnoughResources, UsageDenied, PreconditionFailed, KeyTaken.
        """
        checks = [EnforcementCheck(self._outbox.enforcement, self._runtime.store, self._runtime.clock) for _ in "12"]

        def decide(attempt: int) -> _Exchange:
            return self._decided(lease_id, request, terms)

        def check(found: _Exchange) -> None:
            for each, side, operated in zip(checks, found.sides, found.operation.changed, strict=True):
                before = side.found
                self._outbox.catch_up(before.lease.id)
                each.check(
                    terms.asked_by,
                    operated.after,
                    operated.allocations,
                    before=(before.lease, before.allocations),
                )

        def write(found: _Exchange) -> _Exchange:
            messages = partial(self._messages, found, terms)
            changed = written(self._runtime, found.operation, terms, checks=checks, messages=messages)
            return _Exchange(found.sides, replace(found.operation, changed=changed))

        enabled = self._outbox.enforcement.enabled
        done = self._booking.until_it_holds(decide, write, check if enabled else None)
        if not terms.dry_run:
            self._outbox.wake()
            for side, each in zip(done.sides, done.operation.changed, strict=True):
                self._runtime.notifier.notify(UPDATED, each.after)
                report_flags(self._runtime, side.lease, each.after)
        return tuple(done.operation.changed)

    def _messages(self, found: _Exchange, terms: Terms) -> list[OutboxMessage]:
        messages: list[OutboxMessage] = []
        for side, operated in zip(found.sides, found.operation.changed, strict=True):
            messages += self._outbox.of(
                Occasion.UPDATED,
                operated.after,
                operated.allocations,
                by=terms.asked_by,
                before=(side.lease, side.found.allocations),
            )
        return messages

    def _decided(self, lease_id: str, request: SwapRequest, terms: Terms) -> _Exchange:
        assert request.partner is not None
        assert request.target is not None
        if request.partner.lease_id == lease_id:
            raise InvalidInput("with names the same lease; name a reservation of another one", pointer="/with/lease_id")
        first = self._side(
            patient(self._runtime, lease_id, terms.revisions), request.reservation_id, request.host, terms
        )
        other = other_patient(self._runtime, request.partner.lease_id, "/with/lease_id")
        try:
            second_ = self._side(other, request.partner.reservation_id, request.target, terms, pointer="/for")
        except NotFound as error:
            raise InvalidInput(error.message, code="unknown_reference", pointer="/with/reservation_id") from error
        generations = {**self._fits(first, second_), **self._fits(second_, first)}
        self._line.check_exchange(
            (first.lease, second_.lease),
            (first.found.allocations, second_.found.allocations),
            (first.getting(second_.gives), second_.getting(first.gives)),
        )
        changed = [self._operated(first, second_.gives), self._operated(second_, first.gives)]
        return _Exchange((first, second_), Operation(changed, generations, key=terms.key, key_of=lease_id))

    def _side(self, found: Patient, reservation_id: str, host: str, terms: Terms, *, pointer: str = "/host") -> _Side:
        task = found.task(reservation_id)
        check_whole_host(self._runtime, task.reservation)
        if not is_waiting(task.reservation):
            raise Conflict(
                f"reservation {reservation_id} is in use; two leases exchange hosts before their start only. Swap each "
                "for a free one instead"
            )
        what = f"host of reservation {reservation_id}"
        gives = named(task.resources, host, terms, pointer=pointer, what=what)
        check_not_emptied(gives, host, pointer)
        return _Side(found, task, gives)

    def _fits(self, side: _Side, other: _Side) -> dict[int, int]:
        """Return the generation of the other's host if this lease can have it. Conflict, NotEnoughResources.

        Both leases count as if they had nothing: what else they have is not this host.
        """
        if other.gives.id in {each.resource_id for each in side.found.allocations}:
            raise Conflict(
                f"the lease of reservation {side.task.reservation.id} has the host of reservation "
                f"{other.task.reservation.id} already; name another host to get for it",
                pointer="/for",
            )
        now, window = self._runtime.clock.now(), side.lease.window
        begin = max(window.start, to_second(now))
        if window.end <= begin:
            raise StaleLease(f"lease {side.lease.id} has ended meanwhile")
        view = self._runtime.store.calendar.range(
            {HOST: True},
            Window(begin, window.end),
            now=now,
            besides=side.lease.id,
            without=[other.lease.id],
            generations=True,
        )
        requirement = self._runtime.type_of(side.task.reservation).requirement(side.task.reservation.parameters)
        occupancy = view.timelines[HOST].occupancy(second(begin), second(window.end))
        wanted = other.gives.id
        only = visible(view.catalogs[HOST], side.lease.project_id, only=frozenset({wanted}))
        try:
            place([Demand(HOST, 1, 1, requirement)], Snapshot(view.catalogs[HOST].resources, occupancy), matching=only)
        except NotEnoughResources as error:
            raise NotEnoughResources(
                f"the host of reservation {other.task.reservation.id} cannot serve reservation "
                f"{side.task.reservation.id}: it has to meet its requirement, be in service, open to the project, and "
                f"free from {window.start:%Y-%m-%d %H:%M:%S} to {window.end:%Y-%m-%d %H:%M:%S} UTC",
                pointer="/for",
            ) from error
        return {wanted: view.generations[wanted]}

    def _operated(self, side: _Side, gets: Resource) -> Operated:
        allocations, now = side.getting(gets), side.found.now
        after = flagged(side.lease, allocations, self._runtime.tasks(side.lease, allocations), now=now)
        return Operated(side.lease, as_changed(after, side.lease, now), allocations)
