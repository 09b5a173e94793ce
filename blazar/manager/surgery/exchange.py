# SPDX-License-Identifier: Apache-2.0
"""Two leases exchange hosts before their start: each host must suit the other lease, and both are booked at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.calendar.occupancy import Snapshot
from blazar.calendar.placement import place
from blazar.calendar.timeline import epoch
from blazar.enforcement import Occasion
from blazar.manager.booking.booking import Booker, Proposal, Selectable, match_visible
from blazar.manager.changing.named_hosts import check_not_emptied, check_whole_host, find_named
from blazar.manager.common.notifications import UPDATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.missing_resources import report_flags
from blazar.manager.leases.flags import set_flags
from blazar.manager.outbox.enforcement_check import Examined
from blazar.manager.outbox.messages import make_messages
from blazar.manager.queue.queue_guard import QueueGuard
from blazar.manager.surgery.common import LeaseToChange, is_pending, load_changeable, load_other_changeable
from blazar.manager.surgery.swap import mark_changed
from blazar.model.base.clock import to_second
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, StaleLease
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import lie_alike
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import Resource
from blazar.model.surgery import SwapRequest, Terms
from blazar.model.use.resource_hours import OutboxMessage
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import Commit, LeaseWrite


@dataclass(frozen=True, slots=True)
class _Side:
    """A lease in an exchange: it gives one resource of a reservation."""

    found: LeaseToChange
    task: Task
    gives: Resource

    @property
    def lease(self) -> Lease:
        return self.found.lease

    def getting(self, resource: Resource) -> tuple[Allocation, ...]:
        """Return what it has after it got another resource for the one that it gives."""
        return tuple(
            replace(allocation, resource_id=resource.id)
            if (allocation.reservation_id, allocation.resource_id) == (self.task.reservation.id, self.gives.id)
            else allocation
            for allocation in self.found.allocations
        )


_Sides = tuple[_Side, _Side]


class Exchanger:
    """Exchanges hosts of leases."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker
        self._queue_guard = QueueGuard(runtime)

    def exchange(self, lease_id: str, request: SwapRequest, terms: Terms) -> Commit:
        """Exchange hosts of two leases, and return what is written; for a dry run what would be.

        NotFound, InvalidInput, Conflict, WrongState, NotEnoughResources, UsageDenied, PreconditionFailed, KeyTaken.
        """
        done = self._booker.book(lambda attempt: self._propose(lease_id, request, terms), dry_run=terms.dry_run)
        if not terms.dry_run:
            self._runtime.signals.messages_written()
            for side, lease in zip(done.found, done.leases, strict=True):
                self._runtime.notifier.notify(UPDATED, lease)
                report_flags(self._runtime, side.lease, lease)
        assert done.commit is not None
        return done.commit

    def _messages(self, examined: Sequence[Examined], terms: Terms) -> list[OutboxMessage]:
        messages: list[OutboxMessage] = []
        for side in examined:
            messages += make_messages(
                self._runtime, Occasion.UPDATED, side.lease, side.allocations, by=terms.asked_by, before=side.before
            )
        return messages

    def _propose(self, lease_id: str, request: SwapRequest, terms: Terms) -> Proposal[_Sides]:
        assert request.partner is not None
        assert request.target is not None
        if request.partner.lease_id == lease_id:
            raise InvalidInput("with names the same lease; name a reservation of another one", at="/with/lease_id")
        first = self._side(
            load_changeable(self._runtime, lease_id, terms.revisions), request.reservation_id, request.host, terms
        )
        other = load_other_changeable(self._runtime, request.partner.lease_id, "/with/lease_id")
        try:
            second_ = self._side(other, request.partner.reservation_id, request.target, terms, pointer="/for")
        except NotFound as error:
            raise InvalidInput(error.message, code="unknown_reference", at="/with/reservation_id") from error
        generations = {**self._fits(first, second_), **self._fits(second_, first)}
        self._queue_guard.check_exchange(
            (first.lease, second_.lease),
            (first.found.allocations, second_.found.allocations),
            (first.getting(second_.gives), second_.getting(first.gives)),
        )
        changed = [self._lease_write(first, second_.gives), self._lease_write(second_, first.gives)]
        sides = first, second_
        examined = tuple(
            Examined(terms.asked_by, write.after, write.allocations, before=(side.lease, side.found.allocations))
            for side, write in zip(sides, changed, strict=True)
        )
        commit = Commit(
            changed,
            at=first.found.now,
            joint=True,
            generations=generations,
            key=terms.key,
            key_of=lease_id,
        )
        return Proposal(sides, commit, examined, messages=partial(self._messages, examined, terms))

    def _side(
        self, found: LeaseToChange, reservation_id: str, host: str, terms: Terms, *, pointer: str = "/host"
    ) -> _Side:
        task = found.task(reservation_id)
        check_whole_host(self._runtime, task.reservation)
        if not is_pending(task.reservation):
            raise Conflict(
                f"reservation {reservation_id} is in use; two leases exchange hosts before their start only. Swap each "
                "for a free one instead"
            )
        what = f"host of reservation {reservation_id}"
        gives = find_named(task.resources, host, terms, pointer=pointer, what=what)
        check_not_emptied(gives, host, pointer)
        return _Side(found, task, gives)

    def _fits(self, side: _Side, other: _Side) -> dict[int, int]:
        """Return the generation of the other's host if this lease can have it. Conflict, NotEnoughResources.

        Both leases count as if they had nothing: what else they have is not this host.
        """
        _check_exchangeable(side, other)
        now, window, wanted = self._runtime.clock.now(), side.lease.window, other.gives.id
        begin = max(window.start, to_second(now))
        if window.end <= begin:
            raise StaleLease(f"lease {side.lease.id} has ended meanwhile")
        type_ = self._runtime.type_of(side.task.reservation)
        view = self._runtime.store.calendar.view_range(
            {type_.kind: True},
            Window(begin, window.end),
            now=now,
            besides=side.lease.id,
            without=[other.lease.id],
            generations=True,
        )
        catalog, timeline = view.catalogs[type_.kind], view.timelines[type_.kind]
        asked = type_.demand(side.task.reservation.parameters, known=catalog.property_names())
        demand = Demand(type_.kind, 1, 1, asked.requirement)
        snapshot = Snapshot(catalog.resources, timeline.occupancy(epoch(begin), epoch(window.end)))
        only = match_visible(catalog, Selectable(side.lease.project_id, only=frozenset({wanted})))
        try:
            # Of what a lease has, only the catalog knows the capabilities.
            here, there = (catalog.by_id.get(one.gives.id, one.gives) for one in (side, other))
            if not lie_alike(asked.topology, here, there):
                raise NotEnoughResources("it lies elsewhere")
            place([demand], snapshot, matching=only)
        except NotEnoughResources as error:
            raise NotEnoughResources(
                f"the host of reservation {other.task.reservation.id} cannot serve reservation "
                f"{side.task.reservation.id}: it has to meet its requirement, be in service, open to the project, and "
                f"free from {window.start:%Y-%m-%d %H:%M:%S} to {window.end:%Y-%m-%d %H:%M:%S} UTC",
                at="/for",
            ) from error
        return {wanted: view.generations[wanted]}

    def _lease_write(self, side: _Side, gets: Resource) -> LeaseWrite:
        allocations, now = side.getting(gets), side.found.now
        after = set_flags(side.lease, allocations, self._runtime.tasks(side.lease, allocations), now=now)
        return LeaseWrite(side.lease, mark_changed(after, side.lease, now), allocations)


def _check_exchangeable(side: _Side, other: _Side) -> None:
    """Raise Conflict if a lease has the other's host already, or reserves in another region."""
    reservation, host = side.task.reservation, other.gives
    if host.id in {allocation.resource_id for allocation in side.found.allocations}:
        raise Conflict(
            f"the lease of reservation {reservation.id} has the host of reservation {other.task.reservation.id} "
            "already; name another host to get for it",
            at="/for",
        )
    if host.region != reservation.region:
        raise Conflict(
            f"reservation {reservation.id} lies in the region {reservation.region}, and the host of reservation "
            f"{other.task.reservation.id} in {host.region}; hosts are exchanged within a region only",
            at="/for",
        )
