# SPDX-License-Identifier: Apache-2.0
"""A reservation gives up a host for another one: the re-planning of healing, with a host that is well and a chosen one.

It is an ordinary change of a lease in all else: checked by enforcement, measured against those who wait, and in use
made in steps that are finished or undone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import waiting
from blazar.manager.lease.flags import flagged
from blazar.manager.lease.replanning import Replanner
from blazar.manager.lease.under_way import check_not_under_way
from blazar.manager.requests.change_decisions import Change, Draft, changed_by_itself, changed_in_use
from blazar.manager.requests.operating import Patient, named, patient
from blazar.model.demand import Plan
from blazar.model.errors import Conflict, InvalidInput, NotEnoughResources, StaleLease
from blazar.model.lease import Lease, Reservation, ReservationStatus
from blazar.model.requests import LeaseChange
from blazar.model.resource import HOST, Resource
from blazar.model.surgery import SwapRequest, Terms
from blazar.resources.base import Task
from blazar.store.catalog import ResourceCatalog

MOST_NAMED = 10
"""More servers than this are not named in a refusal."""


class Swapping:
    """Decides on swaps of one lease."""

    def __init__(self, runtime: Runtime, replanner: Replanner) -> None:
        self._runtime = runtime
        self._replanner = replanner

    def check_free(self, lease_id: str, request: SwapRequest, terms: Terms) -> None:
        """Raise Conflict if servers of the lease run on the host that is given up; asks the cloud, outside any turn."""
        try:
            found = patient(self._runtime, lease_id, terms.revisions)
        except StaleLease:
            # Judged when it is decided on, after a moment.
            return
        task, host = self._given_up(found, request, terms)
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return
        kind = self._runtime.type_of(task.reservation)
        if not kind.in_use(replace(task, resources=(host,))).get(host.id):
            return
        servers = kind.users(task, host)
        listed = ", ".join(servers[:MOST_NAMED]) or "some that are not yours"
        raise Conflict(
            f"servers run on host {request.host}: {listed}; move or delete them first, a reservation in use gives up "
            "empty hosts only",
            code="host_has_servers",
            pointer="/host",
            data={"servers": list(servers[:MOST_NAMED])},
        )

    def decide(
        self, lease_id: str, request: SwapRequest, terms: Terms, attempt: int, avoided: frozenset[int]
    ) -> Change:
        """Return what a swap leads to, without ``avoided`` hosts.

        NotFound, InvalidInput, Conflict, WrongState, NotEnoughResources, StaleLease.
        """
        found = patient(self._runtime, lease_id, terms.revisions)
        lease, now = found.lease, found.now
        task, host = self._given_up(found, request, terms)
        check_not_under_way(self._runtime, lease, found.allocations, [request.reservation_id])
        only = None if request.target is None else frozenset({self._target(found, request, terms).id})
        replan = self._replanner.replan(
            found.tasks,
            found.allocations,
            {task.reservation.id: frozenset({host.id})},
            now=now,
            attempt=attempt,
            avoid=True,
            besides=avoided - {each.resource_id for each in found.allocations},
            only=only,
        )
        plan = replan.plan
        if any(a.resource_id == host.id and a.reservation_id == task.reservation.id for a in plan.allocations):
            raise _nothing_fits(lease, request)
        after = flagged(lease, plan.allocations, self._runtime.tasks(lease, plan.allocations), now=now)
        draft = Draft(as_changed(_without_gone(after, plan), lease, now), True, False, frozenset())
        new = changed_in_use(after, found.allocations, plan.allocations)
        return Change(lease, draft, plan, found.tasks, found.allocations, new)

    def _given_up(self, found: Patient, request: SwapRequest, terms: Terms) -> tuple[Task, Resource]:
        task = found.task(request.reservation_id)
        check_whole_host(self._runtime, task.reservation)
        what = f"host of reservation {request.reservation_id}"
        host = named(task.resources, request.host, terms, pointer="/host", what=what)
        check_not_emptied(host, request.host, "/host")
        return task, host

    def _target(self, found: Patient, request: SwapRequest, terms: Terms) -> Resource:
        assert request.target is not None
        catalog = self._runtime.store.resources.catalog(HOST)
        target = named(_visible(catalog, found.lease, terms), request.target, terms, pointer="/for", what="host")
        if any(a.resource_id == target.id for a in found.allocations):
            raise InvalidInput(f"the lease has host {request.target[:80]} already", pointer="/for")
        return target


def check_whole_host(runtime: Runtime, reservation: Reservation) -> None:
    """Raise Conflict if a reservation is not of whole hosts."""
    if reservation.resource_type != "physical:host":
        raise Conflict(
            f"reservation {reservation.id} is of type {reservation.resource_type}; only reservations of whole hosts "
            "(physical:host) have hosts that can be swapped",
            code="invalid_state",
        )


def check_not_emptied(host: Resource, text: str, pointer: str) -> None:
    """Raise Conflict if a host was emptied of others' servers for its lease: only the end returns it to these."""
    if host.evacuable:
        raise Conflict(
            f"host {text[:80]} was emptied for the lease and stays with it until its end; only hosts that are free for "
            "leases anyway are swapped",
            pointer=pointer,
        )


def as_changed(after: Lease, before: Lease, now: datetime) -> Lease:
    """Return a lease after an operation that its owner asked for, as after each change of it by itself."""
    return replace(
        after,
        series=changed_by_itself(before),
        wait=waiting.after_change(before, LeaseChange(), before.window),
        updated_at=now,
    )


def _without_gone(lease: Lease, plan: Plan) -> Lease:
    """Return the lease without notes on hosts that its reservations do not have any more."""
    reservations = []
    for each in lease.reservations:
        held = {a.resource_id for a in plan.allocations if a.reservation_id == each.id}
        left = each.unassigned & held
        reservations.append(each if left == each.unassigned else replace(each, unassigned=left))
    return replace(lease, reservations=tuple(reservations))


def _visible(catalog: ResourceCatalog, lease: Lease, terms: Terms) -> tuple[Resource, ...]:
    if terms.asked_by.operator:
        return catalog.resources
    return tuple(each for each in catalog.resources if each.is_open_to(lease.project_id))


def _nothing_fits(lease: Lease, request: SwapRequest) -> NotEnoughResources:
    window = f"from {lease.window.start:%Y-%m-%d %H:%M:%S} to {lease.window.end:%Y-%m-%d %H:%M:%S} UTC"
    if request.target is None:
        return NotEnoughResources(
            f"no other host meets the requirement of reservation {request.reservation_id} and is free {window}"
        )
    return NotEnoughResources(
        f"host {request.target[:80]} cannot serve reservation {request.reservation_id}: it has to meet its "
        f"requirement, be in service, open to the project, and free {window}; leave for out to get any host that fits",
        pointer="/for",
    )
