# SPDX-License-Identifier: Apache-2.0
"""A reservation gives up a host for another one: the re-planning of healing, with a host that is well and a chosen one.

It is an ordinary change of a lease in all else: checked by enforcement, measured against those who wait, and in use
made in steps that are finished or undone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from blazar.manager.booking.lease_changes import ChangeDraft, DecidedChange, find_changed_in_use
from blazar.manager.booking.replanning import check_not_moving, replan_allocations
from blazar.manager.changing.change_decisions import mark_changed_by_itself
from blazar.manager.changing.named_hosts import check_not_emptied, check_whole_host, find_named
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases.flags import set_flags
from blazar.manager.queue import waiting_leases
from blazar.manager.surgery.common import LeaseToChange, load_changeable
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, StaleLease
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.model.surgery import SwapRequest, Terms
from blazar.resources.contract.values import Task
from blazar.store.resources.catalog import ResourceCatalog

MOST_NAMED = 10
"""More servers than this are not named in a refusal."""


class Swapper:
    """Decides on swaps of one lease."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def check_free(self, lease_id: str, request: SwapRequest, terms: Terms) -> None:
        """Raise Conflict if servers of the lease run on the host that is given up; asks the cloud, outside any turn."""
        try:
            found = load_changeable(self._runtime, lease_id, terms.revisions)
        except StaleLease:
            # Judged when it is decided on, after a moment.
            return
        task, host = self._given_up(found, request, terms)
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return
        kind = self._runtime.type_of(task.reservation)
        if not kind.occupied(replace(task, resources=(host,))).get(host.id):
            return
        servers = kind.users(task, host)
        listed = ", ".join(servers[:MOST_NAMED]) or "some that are not yours"
        raise Conflict(
            f"servers run on host {request.host}: {listed}; move or delete them first, a reservation in use gives up "
            f"empty hosts only{kind.advise_lender(task)}",
            code="host_has_servers",
            at="/host",
            data={"servers": list(servers[:MOST_NAMED])},
        )

    def decide(
        self, lease_id: str, request: SwapRequest, terms: Terms, attempt: int, avoided: frozenset[int]
    ) -> DecidedChange:
        """Return what a swap leads to, without ``avoided`` hosts.

        NotFound, InvalidInput, Conflict, WrongState, NotEnoughResources, StaleLease.
        """
        found = load_changeable(self._runtime, lease_id, terms.revisions)
        lease, now = found.lease, found.now
        task, host = self._given_up(found, request, terms)
        check_not_moving(self._runtime, lease, found.allocations, [request.reservation_id])
        only = None if request.target is None else frozenset({self._target(found, request, terms).id})
        replan = replan_allocations(
            self._runtime,
            found.tasks,
            found.allocations,
            {task.reservation.id: frozenset({host.id})},
            now=now,
            attempt=attempt,
            avoid=True,
            besides=avoided - {allocation.resource_id for allocation in found.allocations},
            only=only,
        )
        plan = replan.plan
        if any(a.resource_id == host.id and a.reservation_id == task.reservation.id for a in plan.allocations):
            raise _nothing_fits(lease, request)
        after = set_flags(lease, plan.allocations, self._runtime.tasks(lease, plan.allocations), now=now)
        draft = ChangeDraft(mark_changed(_forget_lost_hosts(after, plan), lease, now), True, False, frozenset())
        new = find_changed_in_use(after, found.allocations, plan.allocations)
        return DecidedChange(lease, draft, plan, found.tasks, found.allocations, new, replan.moved)

    def _given_up(self, found: LeaseToChange, request: SwapRequest, terms: Terms) -> tuple[Task, Resource]:
        task = found.task(request.reservation_id)
        check_whole_host(self._runtime, task.reservation)
        what = f"host of reservation {request.reservation_id}"
        host = find_named(task.resources, request.host, terms, pointer="/host", what=what)
        check_not_emptied(host, request.host, "/host")
        return task, host

    def _target(self, found: LeaseToChange, request: SwapRequest, terms: Terms) -> Resource:
        assert request.target is not None
        reservation = found.task(request.reservation_id).reservation
        catalog = self._runtime.store.resources.catalog(self._runtime.type_of(reservation).kind)
        # Another region may have a host of the same name, which cannot be what is meant.
        visible = [r for r in _visible_resources(catalog, found.lease, terms) if r.region == reservation.region]
        target = find_named(visible, request.target, terms, pointer="/for", what="host")
        if any(a.resource_id == target.id for a in found.allocations):
            raise InvalidInput(f"the lease has host {request.target[:80]} already", at="/for")
        return target


def mark_changed(after: Lease, before: Lease, now: datetime) -> Lease:
    """Return a lease after an operation that its owner asked for, as after each change of it by itself."""
    return replace(
        after,
        series=mark_changed_by_itself(before),
        wait=waiting_leases.keep_place(before, LeaseChange(), before.window),
        updated_at=now,
    )


def _forget_lost_hosts(lease: Lease, plan: AllocationPlan) -> Lease:
    """Return the lease without notes on hosts that its reservations do not have any more."""
    reservations = []
    for reservation in lease.reservations:
        held = {a.resource_id for a in plan.allocations if a.reservation_id == reservation.id}
        left = reservation.unassigned & held
        reservations.append(reservation if left == reservation.unassigned else replace(reservation, unassigned=left))
    return replace(lease, reservations=tuple(reservations))


def _visible_resources(catalog: ResourceCatalog, lease: Lease, terms: Terms) -> tuple[Resource, ...]:
    if terms.asked_by.operator:
        return catalog.resources
    return tuple(resource for resource in catalog.resources if resource.is_open_to(lease.project_id))


def _nothing_fits(lease: Lease, request: SwapRequest) -> NotEnoughResources:
    window = f"from {lease.window.start:%Y-%m-%d %H:%M:%S} to {lease.window.end:%Y-%m-%d %H:%M:%S} UTC"
    if request.target is None:
        return NotEnoughResources(
            f"no other host meets the requirement of reservation {request.reservation_id} and is free {window}"
        )
    return NotEnoughResources(
        f"host {request.target[:80]} cannot serve reservation {request.reservation_id}: it has to meet its "
        f"requirement, be in service, open to the project, and free {window}; leave for out to get any host that fits",
        at="/for",
    )
