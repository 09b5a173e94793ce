# SPDX-License-Identifier: Apache-2.0
"""One new cloud with the type on it, for one check: resources and reservations are made without a database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

from blazar.clouds.simulated import Faults
from blazar.model.base.amounts import Amounts
from blazar.model.base.json_text import Json
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import NO_CONTENT, Content, Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.requirements import matches
from blazar.model.resources.resource import Resource
from blazar.resources.contract.checked import CheckedKind, CheckedType
from blazar.resources.contract.values import Given, NotYet, Progress, Task
from blazarconformance.clock import NOON, ManualClock
from blazarconformance.harness import Harness, HasChildren, Surroundings

PROJECT = "physics"
HOUR = timedelta(hours=1)
ROUNDS = 200
"""How often an ensure may say that it is not done, for something that takes a few minutes."""

Act = Callable[[Task], Progress]


class Trial:
    """A cloud with all resources of the harness prepared, and a clock at noon. Use it in a ``with`` block."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.clock = ManualClock()
        self.faults = Faults(sleep=lambda _: None)
        self.site = harness.build(Surroundings(self.clock, self.faults))
        self.type = CheckedType(self.site.type)
        self._beside = self._types_beside()
        self.kind = CheckedKind(self.site.kind)
        self._stack = ExitStack()
        self._resources: tuple[Resource, ...] | None = None
        self._in_use: dict[str, Task] = {}
        self._parts: dict[str, tuple[Task, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def another(self) -> Trial:
        """Return a new trial of the same harness."""
        return self._stack.enter_context(Trial(self.harness))

    def taken_over(self) -> None:
        """Go on with the type of another manager."""
        self.type = CheckedType(self.site.another_type())
        self._beside = self._types_beside()

    def at_end(self, act: Callable[[], object]) -> None:
        """Do something when the trial is over, such as closing a database."""
        self._stack.callback(act)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All resources of the harness, prepared in the cloud."""
        if self._resources is None:
            numbered = enumerate(self.harness.registrations, 1)
            self._resources = tuple(self._registered(number, values) for number, values in numbered)
        return self._resources

    @property
    def known(self) -> frozenset[str]:
        """The properties that some resource has."""
        return frozenset(key for each in self.resources for key in each.properties)

    def parameters(self, values: Json | None = None) -> Content:
        """Return the parameters of a new reservation; by default of the plain request."""
        given = Given(self.harness.request if values is None else values)
        return self.type.parameters(self.type.resolve(given, project_id=PROJECT))

    def demand(self, parameters: Content) -> Demand:
        """Return what a new reservation demands."""
        return self.type.demand(parameters, known=self.known)

    def demands(self, parameters: Content) -> tuple[Demand, ...]:
        """Return what a new reservation demands; for one that is made of others, what each of these does."""
        if not self.type.has("children"):
            return (self.demand(parameters),)
        return tuple(kind.demand(found, known=self.known) for kind, found in self._children(parameters))

    def room_beside(self) -> int:
        """Return how many resources a plain reservation takes that no other can have meanwhile."""
        return sum(each.per_instance is None for each in self.demands(self.parameters()))

    def task(self, values: Json | None = None, *, number: int = 1, skip: int = 0) -> Task:
        """Return a reservation that has not started, on resources after the first few.

        One that is made of others has none itself; those have.
        """
        parameters = self.parameters(values)
        reservation = _pending(_id(number), self.type, parameters)
        children = [
            (kind, _pending(_id(number * 1000 + place), kind, found, parent=reservation.id))
            for place, (kind, found) in enumerate(self._children(parameters), 1)
        ]
        window = Window(NOON, NOON + 2 * HOUR)
        times = {EventType.START: window.start, EventType.BEFORE_END: NOON + HOUR, EventType.END: window.end}
        events = tuple(Event(_id(100), kind, at, EventStatus.UNDONE, NOON) for kind, at in times.items())
        lease = Lease(
            _id(1000 + number),
            "a lease",
            "curie",
            PROJECT,
            window,
            LeaseStatus.STARTING,
            NOON,
            reservations=(reservation, *(child for _, child in children)),
            events=events,
        )
        if children:
            self._parts[reservation.id] = tuple(
                self._on_resources(lease, child, kind, skip) for kind, child in children
            )
            return Task(lease, reservation, ())
        return self._on_resources(lease, reservation, self.type, skip)

    def prepared(self, task: Task) -> Task:
        """Ensure what must exist before the start; return the reservation with its cloud ids.

        What it is made of is in use then.
        """
        for part in self._parts.get(task.reservation.id, ()):
            kind = self._beside[part.reservation.resource_type]
            ready = with_ids(part, kind.prepare(part))
            started = as_active(self.done(kind.start, ready))
            task = replace(task, lease=_changed(task.lease, started.reservation))
        return with_ids(task, self.type.prepare(task))

    def promised(self, task: Task) -> frozenset[str]:
        """Return the names of the resources of a reservation, or of what it is made of."""
        parts = self._parts.get(task.reservation.id, ())
        return frozenset(each.name for part in (task, *parts) for each in part.resources)

    def started(self, task: Task) -> Task:
        """Start a reservation; return it as it is in use."""
        self._in_use[task.reservation.id] = task
        return as_active(self.done(self.type.start, task))

    def _shares_beside(self, reservation_id: str, resource_ids: Collection[int]) -> Mapping[int, Mapping[str, Amounts]]:
        """Return what reservations that were started have of shared resources, without one of them."""
        found: dict[int, dict[str, Amounts]] = {id_: {} for id_ in resource_ids}
        for task in () if self.type.has("children") else self._in_use.values():
            per_instance = self.demand(task.reservation.parameters).per_instance
            if per_instance is not None and task.reservation.id != reservation_id:
                for id_ in found.keys() & task.counts.keys():
                    found[id_][task.reservation.id] = per_instance.times(task.counts[id_])
        return found

    def in_use(self, values: Json | None = None, *, number: int = 1, skip: int = 0) -> Task:
        """Return a reservation that was prepared and started."""
        return self.started(self.prepared(self.task(values, number=number, skip=skip)))

    def in_use_again(self, task: Task) -> None:
        """Prepare and start a reservation of a manager once more, as if late calls took effect after its end."""
        pending = _with(task, replace(task.reservation, status=ReservationStatus.PENDING, cloud_ids=NO_CONTENT))
        self.started(self.prepared(pending))

    def ended(self, task: Task) -> None:
        """End a reservation."""
        self._in_use.pop(task.reservation.id, None)
        self.done(self.type.end, task)
        self.end_children(task)

    def end_children(self, task: Task) -> None:
        """End what a reservation is made of."""
        for part in self._parts.get(task.reservation.id, ()):
            now = task.lease.reservation(part.reservation.id) or part.reservation
            self.done(self._beside[now.resource_type].end, replace(part, lease=task.lease, reservation=now))

    def done(self, act: Act, task: Task) -> Task:
        """Act until it is done, letting time pass; return the reservation with its cloud ids."""
        last = ""
        for _ in range(ROUNDS):
            progress = act(task)
            if not isinstance(progress, NotYet):
                return task if progress.cloud_ids is None else with_ids(task, progress.cloud_ids)
            if progress.cloud_ids is not None:
                # As a manager stores them at once.
                task = with_ids(task, progress.cloud_ids)
            self.clock.instant += progress.after
            last = progress.reason
        raise TimeoutError(f"it was not done after {ROUNDS} rounds; the last said: {last}")

    def usable(self, task: Task) -> frozenset[str]:
        """Return the resources that the project can use by a reservation."""
        return frozenset(self.site.usable(task.reservation.id))

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """Yield the list of the calls to the cloud within the block, in their order."""
        calls: list[str] = []
        before, self.faults.on_call = (
            self.faults.on_call,
            lambda name, at: calls.append(name) if at == "before" else None,
        )
        try:
            yield calls
        finally:
            self.faults.on_call = before

    def _types_beside(self) -> dict[str, CheckedType]:
        plain = self.site.beside() if isinstance(self.site, HasChildren) else ()
        return {each.resource_type: CheckedType(each) for each in plain}

    def _children(self, parameters: Content) -> list[tuple[CheckedType, Content]]:
        """Return type and parameters of each reservation that one is made of."""
        found = []
        for child in self.type.children(parameters):
            if (kind := self._beside.get(child.resource_type)) is None:
                raise LookupError(f"a child is of the type {child.resource_type}, which the site has not beside")
            given = kind.resolve(Given(child.parameters), project_id=PROJECT)
            found.append((kind, kind.parameters(given)))
        return found

    def _on_resources(self, lease: Lease, reservation: Reservation, kind: CheckedType, skip: int) -> Task:
        counts = self._placed(kind.demand(reservation.parameters, known=self.known), skip)
        resources = tuple(r for r in self.resources if r.id in counts)
        return Task(lease, reservation, resources, counts, shares=partial(self._shares_beside, reservation.id))

    def _registered(self, number: int, values: Json) -> Resource:
        found = self.kind.find(Registration(values))
        details = self.kind.details(found)
        self.kind.enter(found)
        return Resource(
            number,
            self.kind.kind,
            found.external_id,
            found.name,
            details.attributes,
            {},
            details.inventory.capacity,
            True,
            NOON,
            limits=details.inventory.limits,
            traits=details.inventory.traits,
            label=f"r-{number}",
            region=found.region,
        )

    def _placed(self, demand: Demand, skip: int) -> dict[int, int]:
        fitting = [
            each
            for each in self.resources
            if matches(demand.requirement, each.properties) and demand.traits.met_by(each.traits)
        ]
        # What is required by name comes first.
        fitting = sorted(fitting[skip:], key=lambda each: each.name not in demand.required)
        counts: dict[int, int] = {}
        for each in fitting:
            room = 1 if demand.per_instance is None else each.count_beside(Amounts(), demand.per_instance)
            if count := min(room, demand.min_count - sum(counts.values())):
                counts[each.id] = count
        if sum(counts.values()) < demand.min_count:
            raise LookupError(f"the resources of the harness have no room for {demand}")
        return counts


def with_ids(task: Task, ids: Content) -> Task:
    """Return a reservation with these cloud ids stored."""
    return _with(task, replace(task.reservation, cloud_ids=ids))


def without_ids(task: Task) -> Task:
    """Return a reservation whose cloud ids were not stored, as the manager was killed before."""
    return _with(task, replace(task.reservation, cloud_ids=NO_CONTENT))


def as_active(task: Task) -> Task:
    """Return a reservation as it is after its start."""
    return _with(task, replace(task.reservation, status=ReservationStatus.ACTIVE), LeaseStatus.ACTIVE)


def _with(task: Task, reservation: Reservation, status: LeaseStatus | None = None) -> Task:
    lease = replace(_changed(task.lease, reservation), status=status or task.lease.status)
    return replace(task, lease=lease, reservation=reservation)


def _changed(lease: Lease, reservation: Reservation) -> Lease:
    mine = tuple(reservation if each.id == reservation.id else each for each in lease.reservations)
    return replace(lease, reservations=mine)


def _pending(id_: str, kind: CheckedType, parameters: Content, *, parent: str | None = None) -> Reservation:
    return Reservation(
        id_, kind.resource_type, None, ReservationStatus.PENDING, NOON, parameters=parameters, parent=parent
    )


def _id(number: int) -> str:
    return str(uuid.UUID(int=number))
