# SPDX-License-Identifier: Apache-2.0
"""Other resources in the place of some that a lease holds: which, by the same calendar and booking as everything else.

What is well stays. As much as can be had is taken; of the rest the lease keeps what it had, so that it has it again
when that recovers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from blazar.manager.booking import Booking, PlacementRequest
from blazar.model.demand import Allocation, Demand, Plan
from blazar.model.errors import InvalidInput, NotEnoughResources
from blazar.model.lease import ReservationStatus
from blazar.model.resource import ResourceKind
from blazar.resources.base import ResourceType, Work
from blazar.store.store import Store

Lost = Mapping[str, frozenset[int]]
"""Reservation → what it is to do without, by calendar id."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a lease is to hold, and what a booking of it must find; ``touched`` reservations get something new."""

    plan: Plan
    touched: frozenset[str]


class Replanner:
    """Finds other resources for reservations."""

    def __init__(self, store: Store, types: Mapping[str, ResourceType], booking: Booking) -> None:
        self._store = store
        self._types = types
        self._booking = booking

    def exchange(
        self,
        works: Collection[Work],
        allocations: Collection[Allocation],
        lost: Lost,
        *,
        now: datetime,
        attempt: int,
        avoid: bool = False,
    ) -> Exchange:
        """Return what a lease would hold without what is lost; what has failed is not chosen anyway.

        ``avoid``: what is lost is well, and not to be chosen again. First everything is placed that was lost, beside
        all that is kept; if that can not be, reservations that have not started may swap among themselves; and if that
        can not be either, each in turn gets as much as there is.
        """
        held = {w.reservation.id: tuple(a for a in allocations if a.reservation_id == w.reservation.id) for w in works}
        excluded = frozenset().union(*lost.values()) if avoid else frozenset()
        generations: dict[int, int] = {}
        for kind in sorted({kind for w in works if lost.get(w.reservation.id) and (kind := self._kind(w))}):
            mine = [work for work in works if self._kind(work) is kind and held[work.reservation.id]]
            known = self._store.inventory(kind).keys(private=True)
            rooms = [self._room(work, held[work.reservation.id], lost, known) for work in mine]
            search = _Search(self._booking, kind, rooms, excluded, now, attempt)
            held |= search.placed()
            generations |= search.generations
        before = {allocation.assignment for allocation in allocations}
        after = tuple(allocation for parts in held.values() for allocation in parts)
        new = [allocation for allocation in after if allocation.assignment not in before]
        taken = {allocation.resource_id for allocation in new}
        fresh = {id_: generation for id_, generation in generations.items() if id_ in taken}
        return Exchange(Plan(after, fresh), frozenset(allocation.reservation_id for allocation in new))

    def _kind(self, work: Work) -> ResourceKind | None:
        kind = self._types.get(work.reservation.resource_type)
        return None if kind is None else kind.kind

    def _room(self, work: Work, held: tuple[Allocation, ...], lost: Lost, known: frozenset[str]) -> _Room:
        shed = lost.get(work.reservation.id, frozenset())
        demand = self._demand(work, shed, known)
        if demand is not None and demand.required:
            # Nothing takes the place of what was asked for by its name; all of that is held, and stays.
            shed -= {resource.id for resource in work.resources if resource.name in demand.required}
        return _Room(work, held, shed, demand)

    def _demand(self, work: Work, lost: frozenset[int], known: frozenset[str]) -> Demand | None:
        """Return what a reservation asks of the calendar; None if it keeps what it has, or can not ask any more."""
        if not lost and work.reservation.status is not ReservationStatus.PENDING:
            return None
        kind = self._types[work.reservation.resource_type]
        try:
            return kind.demand_again(work, work.reservation.parameters, known=known)
        except InvalidInput:
            # It asks for a property that no resource has any more.
            return None


@dataclass(frozen=True, slots=True)
class _Room:
    """A reservation with what is promised to it, what of that is lost, and what it asks for instead, if it can."""

    work: Work
    held: tuple[Allocation, ...]
    lost: frozenset[int]
    demand: Demand | None

    @property
    def id(self) -> str:
        return self.work.reservation.id

    @property
    def total(self) -> int:
        return sum(allocation.count for allocation in self.held)

    @property
    def hopeless(self) -> bool:
        return bool(self.lost) and self.demand is None

    def firm(self, kind: ResourceKind, least: int | None = None) -> PlacementRequest:
        """Ask for what is kept and, in the place of what is lost, for anything: at least ``least`` in all."""
        kept = {a.resource_id: a.count for a in self.held if a.resource_id not in self.lost or self.hopeless}
        per_instance = self.held[0].per_instance
        base = self.demand or Demand(kind, self.total, self.total, per_instance=per_instance)
        fixed = frozenset(kept) if per_instance is None else frozenset()
        return PlacementRequest(
            self.id,
            replace(
                base,
                min_count=self.total if least is None or self.hopeless else max(least, sum(kept.values())),
                max_count=self.total,
                preferred=frozenset(),
                pinned=fixed,
                required=frozenset(),
                kept={} if per_instance is None else kept,
                # It was promised for all of this time, and is not given up because its resource has shrunk.
                entitled=True,
            ),
        )

    def loose(self, kind: ResourceKind) -> PlacementRequest:
        """Ask for as much as there is, of anything, before the start; what is kept comes first."""
        waits = self.work.reservation.status is ReservationStatus.PENDING
        if not waits or self.demand is None or self.demand.required:
            return self.firm(kind)
        kept = frozenset(a.resource_id for a in self.held if a.resource_id not in self.lost)
        return PlacementRequest(
            self.id,
            replace(
                self.demand, min_count=self.total, max_count=self.total, preferred=kept, pinned=frozenset(), kept={}
            ),
        )

    def having(self, given: tuple[Allocation, ...]) -> _Room:
        """Return the reservation with what was found, and of what is lost so much that nothing is given up for less."""
        rest = self.total - sum(allocation.count for allocation in given)
        left = []
        for allocation in self.held:
            if allocation.resource_id in self.lost and rest > 0:
                left.append(replace(allocation, count=min(rest, allocation.count)))
                rest -= left[-1].count
        return replace(self, held=(*given, *left), lost=frozenset(), demand=None)


@dataclass(slots=True)
class _Search:
    """The search for all reservations of a lease that take one kind of resource."""

    booking: Booking
    kind: ResourceKind
    rooms: list[_Room]
    excluded: frozenset[int]
    now: datetime
    attempt: int
    generations: dict[int, int] = field(default_factory=dict)

    def placed(self) -> Mapping[str, tuple[Allocation, ...]]:
        """Return what each reservation is to hold."""
        if not any(room.hopeless for room in self.rooms):
            found = self._planned(room.firm(self.kind) for room in self.rooms)
            if found is None and len(self.rooms) > 1:
                found = self._planned(room.loose(self.kind) for room in self.rooms)
            if found is not None:
                return found
        rooms = {room.id: room for room in self.rooms}
        for room in self.rooms:
            if not room.lost or room.hopeless:
                continue
            others = [_kept(other).firm(self.kind) for other in rooms.values() if other.id != room.id]
            found = self._planned([room.firm(self.kind, least=1), *others])
            if found is not None:
                rooms[room.id] = room.having(found[room.id])
        return {room.id: room.held for room in rooms.values()}

    def _planned(self, placement_requests: Iterable[PlacementRequest]) -> Mapping[str, tuple[Allocation, ...]] | None:
        lease = self.rooms[0].work.lease
        placement_requests = list(placement_requests)
        try:
            plan = self.booking.plan(
                lease.id,
                lease.window,
                placement_requests,
                now=self.now,
                attempt=self.attempt,
                project_id=lease.project_id,
                excluded=self.excluded,
            )
        except NotEnoughResources:
            return None
        # What was read first counts: everything since was decided on it.
        self.generations = {**plan.generations, **self.generations}
        return {
            w.reservation_id: tuple(a for a in plan.allocations if a.reservation_id == w.reservation_id)
            for w in placement_requests
        }


def _kept(room: _Room) -> _Room:
    """Return a reservation that keeps all that it has, whatever the state of that."""
    return replace(room, lost=frozenset(), demand=None)
