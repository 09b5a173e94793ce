# SPDX-License-Identifier: Apache-2.0
"""Re-planning: chooses replacements for some resources of a lease, with the same calendar and booking as everything.

Healthy resources stay. As many failed ones as possible are replaced, by hosts that leases leave which have not started
if no other ones are free; the lease keeps its allocations of the others, so that it can use them again when they
recover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from blazar.manager.booking.booking import PlacementRequest, Selectable, plan_allocations
from blazar.manager.booking.repacking import MOST_ATTEMPTS, plan_first
from blazar.manager.common.runtime import Runtime, with_capabilities
from blazar.model.base.errors import InvalidInput, NotEnoughResources, WrongState
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import LeaseWrite
from blazar.store.resources.catalog import ResourceCatalog

ToReplace = Mapping[str, frozenset[int]]
"""Reservation → the resources to replace, by calendar id."""


@dataclass(frozen=True, slots=True)
class Replan:
    """The plan for a lease, with the generations to book against; ``replanned`` reservations get new resources.

    ``moved`` are leases of others that make room for it.
    """

    plan: AllocationPlan
    replanned: frozenset[str]
    moved: tuple[LeaseWrite, ...] = ()


def replan_allocations(
    runtime: Runtime,
    tasks: Collection[Task],
    allocations: Collection[Allocation],
    to_replace: ToReplace,
    *,
    now: datetime,
    attempt: int,
    avoid: bool = False,
    besides: frozenset[int] = frozenset(),
    only: frozenset[int] | None = None,
) -> Replan:
    """Return the allocations of a lease with those ``to_replace`` replaced; failed ones are never chosen.

    ``avoid``: the resources in ``to_replace`` are healthy, but must not be chosen again, nor those ``besides``.
    ``only`` are the resources to choose from; None: all. First all replacements are placed beside all that is kept;
    if that fails, reservations that have not started may exchange resources; then those of other leases get other
    hosts; if that fails too, each in turn gets as much as there is.
    """
    ids = [task.reservation.id for task in tasks]
    held = {id_: tuple(a for a in allocations if a.reservation_id == id_) for id_ in ids}
    excluded = besides.union(*to_replace.values()) if avoid else besides
    generations: dict[int, int] = {}
    moved: tuple[LeaseWrite, ...] = ()
    affected = [task for task in tasks if to_replace.get(task.reservation.id)]
    for kind in sorted({kind for task in affected if (kind := _kind_of(runtime, task))}):
        mine = [task for task in tasks if _kind_of(runtime, task) == kind and held[task.reservation.id]]
        catalog = runtime.store.resources.catalog(kind)
        reservations = [_hold(runtime, task, held[task.reservation.id], to_replace, catalog) for task in mine]
        search = _ReplacementSearch(runtime, kind, reservations, excluded, now, attempt, only)
        held |= search.placed()
        generations |= search.generations
        moved += search.moved
    before = {allocation.assignment for allocation in allocations}
    after = tuple(allocation for parts in held.values() for allocation in parts)
    new = [allocation for allocation in after if allocation.assignment not in before]
    taken = {allocation.resource_id for write in moved for allocation in write.allocations}
    taken |= {allocation.resource_id for allocation in new}
    fresh = {id_: generation for id_, generation in generations.items() if id_ in taken}
    return Replan(AllocationPlan(after, fresh), frozenset(allocation.reservation_id for allocation in new), moved)


def _kind_of(runtime: Runtime, task: Task) -> ResourceKind | None:
    kind = runtime.types.get(task.reservation.resource_type)
    return None if kind is None else kind.kind


def _hold(
    runtime: Runtime, task: Task, held: tuple[Allocation, ...], to_replace: ToReplace, catalog: ResourceCatalog
) -> _HeldReservation:
    shed = to_replace.get(task.reservation.id, frozenset())
    demand = _make_demand(runtime, task, shed, catalog)
    if demand is not None and demand.required:
        # Resources that were requested by name cannot be replaced; they stay.
        shed -= {resource.id for resource in task.resources if resource.name in demand.required}
    return _HeldReservation(task, held, shed, demand)


def _make_demand(runtime: Runtime, task: Task, to_replace: frozenset[int], catalog: ResourceCatalog) -> Demand | None:
    """Return the demand of a reservation; None if it keeps its resources, or its request is no longer valid."""
    if not to_replace and task.reservation.status is not ReservationStatus.PENDING:
        return None
    kind = runtime.types[task.reservation.resource_type]
    try:
        complete = with_capabilities(task, catalog)
        return kind.demand_again(complete, task.reservation.parameters, known=catalog.property_names())
    except InvalidInput:
        # It asks for a property that no resource has any longer.
        return None


@dataclass(frozen=True, slots=True)
class _HeldReservation:
    """A reservation with its allocations, the resources to replace, and its demand for others, if it has one."""

    task: Task
    held: tuple[Allocation, ...]
    to_replace: frozenset[int]
    demand: Demand | None

    @property
    def id(self) -> str:
        return self.task.reservation.id

    @property
    def total(self) -> int:
        return sum(allocation.count for allocation in self.held)

    @property
    def irreplaceable(self) -> bool:
        return bool(self.to_replace) and self.demand is None

    def firm(self, kind: ResourceKind, least: int | None = None) -> PlacementRequest:
        """Return the request for what is kept plus any replacements: at least ``least`` in all."""
        kept = {a.resource_id: a.count for a in self.held if a.resource_id not in self.to_replace or self.irreplaceable}
        per_instance = self.held[0].per_instance
        base = self.demand or Demand(kind, self.total, self.total, per_instance=per_instance)
        fixed = frozenset(kept) if per_instance is None else frozenset()
        return PlacementRequest(
            self.id,
            replace(
                base,
                min_count=self.total if least is None or self.irreplaceable else max(least, sum(kept.values())),
                max_count=self.total,
                preferred=frozenset(),
                pinned=fixed,
                required=frozenset(),
                kept={} if per_instance is None else kept,
                # It was allocated for this whole window, and stays even if its resource has shrunk.
                entitled=True,
            ),
        )

    def loose(self, kind: ResourceKind) -> PlacementRequest:
        """Return the request of a reservation before its start for any resources, preferring those it keeps."""
        waits = self.task.reservation.status is ReservationStatus.PENDING
        if not waits or self.demand is None or self.demand.required:
            return self.firm(kind)
        kept = frozenset(a.resource_id for a in self.held if a.resource_id not in self.to_replace)
        return PlacementRequest(
            self.id,
            replace(
                self.demand, min_count=self.total, max_count=self.total, preferred=kept, pinned=frozenset(), kept={}
            ),
        )

    def having(self, given: tuple[Allocation, ...]) -> _HeldReservation:
        """Return the reservation with what was found, plus enough failed resources that its total does not shrink."""
        rest = self.total - sum(allocation.count for allocation in given)
        left = []
        for allocation in self.held:
            if allocation.resource_id in self.to_replace and rest > 0:
                left.append(replace(allocation, count=min(rest, allocation.count)))
                rest -= left[-1].count
        return replace(self, held=(*given, *left), to_replace=frozenset(), demand=None)


@dataclass(slots=True)
class _ReplacementSearch:
    """The search for all reservations of a lease that use one kind of resource."""

    runtime: Runtime
    kind: ResourceKind
    reservations: list[_HeldReservation]
    excluded: frozenset[int]
    now: datetime
    attempt: int
    only: frozenset[int] | None = None
    generations: dict[int, int] = field(default_factory=dict)
    moved: tuple[LeaseWrite, ...] = ()

    def placed(self) -> Mapping[str, tuple[Allocation, ...]]:
        """Return the new allocations of each reservation."""
        if not any(reservation.irreplaceable for reservation in self.reservations):
            found = self._planned(reservation.firm(self.kind) for reservation in self.reservations)
            # Others of a reservation by itself are no better, unless all of it may lie elsewhere.
            lies = any(r.demand is not None and r.demand.topology for r in self.reservations)
            if found is None and (lies or len(self.reservations) > 1):
                found = self._planned(reservation.loose(self.kind) for reservation in self.reservations)
            found = found or self._plan_by_moves()
            if found is not None:
                return found
        reservations = {reservation.id: reservation for reservation in self.reservations}
        for reservation in self.reservations:
            if not reservation.to_replace or reservation.irreplaceable:
                continue
            others = [
                _keep_resources(other).firm(self.kind) for other in reservations.values() if other.id != reservation.id
            ]
            found = self._planned([reservation.firm(self.kind, least=1), *others])
            if found is not None:
                reservations[reservation.id] = reservation.having(found[reservation.id])
        return {reservation.id: reservation.held for reservation in reservations.values()}

    def _planned(self, placement_requests: Iterable[PlacementRequest]) -> Mapping[str, tuple[Allocation, ...]] | None:
        placement_requests = list(placement_requests)
        try:
            plan = plan_allocations(
                self.runtime,
                self._lease.id,
                self._lease.window,
                placement_requests,
                selectable=self._selectable,
                now=self.now,
                attempt=self.attempt,
            )
        except NotEnoughResources:
            return None
        return self._note(plan, placement_requests)

    def _plan_by_moves(self) -> Mapping[str, tuple[Allocation, ...]] | None:
        """Return all that is to be replaced, with hosts that others leave; None if no way is found."""
        requests = [reservation.firm(self.kind) for reservation in self.reservations]
        if self.kind != HOST or self.attempt >= MOST_ATTEMPTS:
            return None
        lease, select = self._lease, self._selectable
        found = plan_first(self.runtime, lease, lease.window, requests, selectable=select, now=self.now)
        if found is None:
            return None
        self.moved = found.moved
        return self._note(found.plan, requests)

    @property
    def _lease(self) -> Lease:
        return self.reservations[0].task.lease

    @property
    def _selectable(self) -> Selectable:
        return Selectable(self._lease.project_id, self.excluded, self.only)

    def _note(
        self, plan: AllocationPlan, placement_requests: Iterable[PlacementRequest]
    ) -> Mapping[str, tuple[Allocation, ...]]:
        """Return what each reservation gets by a plan."""
        # The generations read first count: everything since was decided on them.
        self.generations = {**plan.generations, **self.generations}
        return {
            request.reservation_id: tuple(a for a in plan.allocations if a.reservation_id == request.reservation_id)
            for request in placement_requests
        }


def _keep_resources(reservation: _HeldReservation) -> _HeldReservation:
    """Return a reservation that keeps all its resources, whatever their state."""
    return replace(reservation, to_replace=frozenset(), demand=None)


NOWHERE: Mapping[str, str] = MappingProxyType({})


def find_moving_reservations(runtime: Runtime, lease_id: str, allocations: Collection[Allocation]) -> frozenset[str]:
    """Return the reservations of a lease that have two hosts for one, as their servers move; one statement.

    To be asked after the lease was read: what begins later changes its revision.
    """
    held = {(allocation.reservation_id, allocation.resource_id) for allocation in allocations}
    return frozenset(
        id_
        for plan in runtime.store.maintenance_plans.load_moving(lease_id)
        for id_, sources in plan.targets.items()
        for source, targets in sources.items()
        if (id_, source) in held and any((id_, target) in held for target in targets)
    )


def check_not_moving(
    runtime: Runtime,
    lease: Lease,
    allocations: Collection[Allocation],
    reservation_ids: Collection[str],
    places: Mapping[str, str] = NOWHERE,
) -> None:
    """Raise WrongState if servers of one of these reservations are being moved to another of its hosts.

    One statement. ``places`` are the pointers to reservations in the request.
    """
    if moving := sorted(find_moving_reservations(runtime, lease.id, allocations).intersection(reservation_ids)):
        raise WrongState(
            f"servers of reservation {moving[0]} are being moved off a host before its maintenance; its hosts can be "
            "changed when that has finished",
            code="lease_busy",
            at=places.get(moving[0]),
            data={"status": str(lease.status)},
        )
