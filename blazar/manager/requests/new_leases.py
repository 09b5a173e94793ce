# SPDX-License-Identifier: Apache-2.0
"""New leases: from a request to the lease to book, and what its reservations ask of the calendar."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from blazar.context import scope
from blazar.enforcement import Enforcement
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import dates, extending, immediate, waiting
from blazar.manager.lease.booking import PlacementRequest, visible
from blazar.manager.lease.references import Referrer, of_new_lease
from blazar.manager.requests.locating import located_in, settled
from blazar.manager.requests.quotas import Need, Needed, check_quotas, leaving, needs_of, starts_at_once
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput, NotFound, pointing_at
from blazar.model.lease import (
    Content,
    Event,
    EventStatus,
    EventType,
    Lease,
    LeaseKind,
    LeaseStatus,
    Reservation,
    ReservationStatus,
    Wait,
)
from blazar.model.regions import Choice, choose
from blazar.model.requests import NOW, IdempotencyKey, LeaseRequest
from blazar.model.resource import ResourceKind, noun
from blazar.model.secrets import parts_of, untold
from blazar.model.window import Window
from blazar.resources.base import Given
from blazar.resources.complete import CompleteType
from blazar.resources.parameters import quoted
from blazar.resources.references import with_ids
from blazar.resources.regional import in_region
from blazar.store.catalog import ResourceCatalog


@dataclass(frozen=True, slots=True)
class NewLease:
    """A lease to book, with a placement request for each of its reservations that takes resources.

    ``choice`` is in which regions these may lie; None where no regions are configured. ``place`` is its place on the
    waiting list if there is not enough; None if it does not wait.
    """

    lease: Lease
    placement_requests: tuple[PlacementRequest, ...]
    key: IdempotencyKey | None = None
    choice: Choice | None = None
    place: Wait | None = None

    def options(self) -> Iterator[NewLease]:
        """Yield the lease as it would be in each of the regions that are to be tried, in their order."""
        if self.choice is None:
            yield self
            return
        for regions in self.choice.options():
            located = zip(self.lease.reservations, regions, strict=True)
            lease = replace(self.lease, reservations=tuple(replace(r, region=name) for r, name in located))
            names = {r.id: r.region for r in lease.reservations}
            requests = (
                replace(p, demand=in_region(p.demand, names[p.reservation_id])) for p in self.placement_requests
            )
            yield NewLease(lease, tuple(requests), self.key, place=self.place)

    def preferring(self, resources: Mapping[str, frozenset[int]]) -> NewLease:
        """Return it with resources to choose before others, by reservation."""

        def with_preferred(request: PlacementRequest) -> PlacementRequest:
            chosen = request.demand.preferred | resources.get(request.reservation_id, frozenset())
            return replace(request, demand=replace(request.demand, preferred=chosen))

        return replace(self, placement_requests=tuple(map(with_preferred, self.placement_requests)))


@dataclass(frozen=True, slots=True)
class Turn:
    """A new lease in one of the regions that may be tried.

    ``resources`` are those that it may take, by reservation, as others wait for the rest; None: any.
    """

    new: NewLease
    resources: Mapping[str, frozenset[int]] | None = None


@dataclass(frozen=True, slots=True)
class _NewReservation:
    """The id and the type of a reservation, and its parameters, checked and completed.

    ``region`` is where it must lie, None if that is not said: then its resources decide. ``pointer`` is where the
    request has it; of a part of another, which is the ``parent``, where that one has what it follows from.
    """

    id: str
    kind: CompleteType
    parameters: Content
    region: str | None
    pointer: str
    parent: str | None = None


class NewLeases:
    """Checks requests for leases and completes them; nothing is written."""

    def __init__(self, runtime: Runtime, enforcement: Enforcement) -> None:
        self._runtime = runtime
        self._enforcement = enforcement

    def of(self, request: LeaseRequest, claim: Claim) -> NewLease:
        """Return the lease to book for a request, its creation claimed. InvalidInput, UsageDenied, CloudError."""
        now = self._runtime.clock.now()
        settings = self._runtime.settings
        _check_kind(request, settings.kinds)
        window = dates.new_window(request.start, request.end, now, exact=request.exact)
        lead = settings.lead_before_end([r.resource_type for r in request.reservations])
        before_end = dates.new_before_end(window, dates.asked_before_end(request.before_end, window), lead)
        if not self._enforcement.exempts(request.project_id):
            settings.bounds.check_lease(len(request.reservations))
        wanted = self._reservations(request)
        if not self._enforcement.exempts(request.project_id):
            settings.bounds.check_lease(len(wanted))
        with scope(limit=settings.request_limit):
            going = partial(leaving, self._runtime, request.project_id, window.start)
            at_once = starts_at_once(window.start, now)
            check_quotas(
                *(Needed(request.project_id, needs, at_once, going) for needs in self._options(wanted) if needs)
            )
        if before_end is None and any(each.kind.action(each.parameters).saves_work for each in wanted):
            # No warning requested, but work to save: save it at the end itself, before anything is deleted.
            before_end = window.end
        events = (*_their_events(request, now), *_timetable(window, before_end, now))
        if request.kind is LeaseKind.IMMEDIATE:
            events = (*events, immediate.refusal_event(settings.immediate_timeout, now))
        creation = _creation(claim, now=now, until=now + self._runtime.claims.ttl)
        lease = _lease(request, window, wanted, (*events, creation), now)
        place = waiting.asked(request, lease.window, now, settings)
        lease = replace(
            lease,
            extend=extending.asked(request.extend_until, lease.window.end, now),
            # Only one that may be tried again keeps its place when it is booked at once.
            wait=place if request.kind is LeaseKind.RETRIES else None,
        )
        return replace(self._new(lease, wanted, request, checks_references=request.exact), place=place)

    def draft(self, request: LeaseRequest, window: Window, *, checks_references: bool = True) -> NewLease:
        """Return the lease that a request leads to, for this window and without events, to look for free time for it.

        InvalidInput, NotFound, CloudError. Limits are not checked.
        """
        wanted = self._reservations(request)
        lease = _lease(request, window, wanted, (), self._runtime.clock.now())
        return self._new(lease, wanted, request, checks_references=checks_references)

    def _new(
        self, lease: Lease, wanted: Sequence[_NewReservation], request: LeaseRequest, *, checks_references: bool
    ) -> NewLease:
        demands = {each.id: self._demand(each, request) for each in wanted if not each.kind.expands}
        if checks_references:
            # Read once for all reservations of a kind: each reading asks for the version.
            catalog_of = cache(self._runtime.store.resources.catalog)
            for each in wanted:
                if each.id in demands:
                    with _untold(next((one for one in wanted if one.id == each.parent), None)):
                        _check_reference(each, demands[each.id], request.project_id, catalog_of)
        requests = (PlacementRequest(id_, demand) for id_, demand in demands.items())
        choice = choose([self._allowed(each, demands.get(each.id)) for each in wanted])
        if self._runtime.regions:
            _check_together(wanted, choice)
        return NewLease(lease, tuple(requests), request.key, choice if self._runtime.regions else None)

    def _options(self, wanted: Sequence[_NewReservation]) -> Iterator[tuple[Need, ...]]:
        """Yield what a lease needs of quotas, in the regions in which it may lie."""
        if not self._runtime.regions:
            yield tuple(self._needs(wanted, [each.region or "" for each in wanted]))
            return
        every = tuple(self._runtime.regions)
        allowed = [
            (each.region,)
            if each.region is not None
            else self._runtime.regions.allowed(each.kind.requirement(each.parameters)) or every
            for each in wanted
        ]
        for regions in choose(allowed).options():
            yield tuple(self._needs(wanted, regions))

    def _needs(self, wanted: Sequence[_NewReservation], regions: Sequence[str]) -> Iterator[Need]:
        kinds = {each.id: each.kind for each in wanted}
        for each, region in zip(wanted, regions, strict=True):
            # What a part needs is made by what it is a part of, unless it makes it itself.
            makes = each.kind if each.kind.quotas is not None or each.parent is None else kinds[each.parent]
            amounts = needs_of(each.kind, each.parameters, part=each.parent is not None)
            if amounts and (quotas := makes.within(region).quotas) is not None:
                yield Need(region, quotas, amounts, each.pointer)

    def _allowed(self, wanted: _NewReservation, demand: Demand | None) -> tuple[str, ...]:
        """Return the regions in which a reservation may lie, at least one."""
        if wanted.region is None:
            every = tuple(self._runtime.regions)
            # What no resource can meet, as "not" of anything, can be met in no region, and is refused by the calendar.
            return every if demand is None else self._runtime.regions.allowed(demand.requirement) or every
        # Where the two contradict each other, there is nothing that it could get.
        return (wanted.region,)

    def _reservations(self, request: LeaseRequest) -> list[_NewReservation]:
        found: list[_NewReservation] = []
        with scope(limit=self._runtime.settings.request_limit, user_id=request.user_id):
            kinds = [self._type(each.resource_type, number) for number, each in enumerate(request.reservations)]
            located = located_in(self._runtime.regions, request)
            resolved = []
            for number, (kind, each) in enumerate(zip(kinds, located, strict=True)):
                with pointing_at(f"/reservations/{number}"):
                    # Ids of flavors, images and networks mean something in one region only.
                    region = settled(located, number) if kind.resolves or kind.expands else each.region
                    found_in = kind.within(region or "")
                    given = found_in.resolve(Given(each.parameters), project_id=request.project_id)
                    resolved.append((kind, given, region))
            for number, (kind, given, region) in enumerate(resolved):
                pointer = f"/reservations/{number}"
                with pointing_at(pointer):
                    found.append(_NewReservation(str(uuid.uuid4()), kind, kind.parameters(given), region, pointer))
            # After all that the request has: references in it are indices.
            found = _identified(found)
            for parent in tuple(found):
                found += self._children(parent, request.project_id)
        return found

    def _children(self, parent: _NewReservation, project_id: str) -> Iterator[_NewReservation]:
        """Yield the reservations that another is made of. InvalidInput and NotFound point at what they follow from."""
        for child in parent.kind.children(parent.parameters):
            pointer = parent.pointer + child.pointer
            if child.resource_type not in self._runtime.types:
                raise InvalidInput(
                    f"it needs reservations of the type {child.resource_type}, which this service does not have",
                    pointer=pointer,
                )
            kind = self._runtime.types[child.resource_type]
            with _untold(parent), _at(pointer):
                given = kind.within(parent.region or "").resolve(Given(child.parameters), project_id=project_id)
                parameters = kind.parameters(given)
            yield _NewReservation(str(uuid.uuid4()), kind, parameters, parent.region, pointer, parent.id)

    def _type(self, resource_type: str, number: int) -> CompleteType:
        types = self._runtime.types
        if resource_type not in types:
            raise InvalidInput(
                f"resource_type {resource_type[:80]!r} is not available; use one of: {', '.join(sorted(types))}",
                pointer=f"/reservations/{number}/resource_type",
                data={"allowed": sorted(types)},
            )
        return types[resource_type]

    def _demand(self, wanted: _NewReservation, request: LeaseRequest) -> Demand:
        kind, resources = wanted.kind, self._runtime.store.resources

        def known(catalog: ResourceCatalog) -> frozenset[str]:
            return catalog.keys() if request.operator else catalog.keys_of(request.project_id)

        latest = resources.latest_catalog(kind.kind)
        try:
            return kind.demand(wanted.parameters, known=known(latest) if latest else frozenset())
        except InvalidInput:
            # It may ask for a property that is newer than what this process has read.
            with pointing_at(wanted.pointer) if wanted.parent is None else _at(wanted.pointer):
                return kind.demand(wanted.parameters, known=known(resources.catalog(kind.kind)))


def _untold(parent: _NewReservation | None) -> AbstractContextManager[None]:
    """Mask in errors about a part of a reservation what that keeps secret: it may say the names that the part has."""
    return nullcontext() if parent is None else untold(lambda: parts_of(parent.parameters.values))


def _check_reference(
    wanted: _NewReservation, demand: Demand, project_id: str, catalog_of: Callable[[ResourceKind], ResourceCatalog]
) -> None:
    """Raise NotFound if a parameter names something that no resource open to the project belongs to."""
    field = demand.reference
    if field is None:
        return
    if not visible(catalog_of(demand.kind), project_id)(demand.requirement):
        raise NotFound(
            f"{field}: there is no {quoted(wanted.parameters.values.get(field))} with {noun(demand.kind)}s that "
            "the project can reserve; give another one",
            pointer=wanted.pointer if wanted.parent else f"{wanted.pointer}/{field}",
        )


def _identified(wanted: Sequence[_NewReservation]) -> list[_NewReservation]:
    """Return reservations whose references name others by id, where the request has their index. InvalidInput."""
    of_each = [each.kind.references(each.parameters) for each in wanted]
    if not any(of_each):
        return list(wanted)
    of_new_lease(
        [
            Referrer(each.id, each.kind.resource_type, references, each.pointer, each.parameters)
            for each, references in zip(wanted, of_each, strict=True)
        ]
    )
    ids = [each.id for each in wanted]
    return [
        replace(each, parameters=with_ids(each.parameters, {r.pointer: ids[int(r.reservation)] for r in references}))
        for each, references in zip(wanted, of_each, strict=True)
    ]


@contextmanager
def _at(pointer: str) -> Iterator[None]:
    """Have an error point at this place of the request, which has nothing of what was wrong itself."""
    try:
        yield
    except (InvalidInput, NotFound) as error:
        error.pointer = pointer
        raise


def _check_together(wanted: Sequence[_NewReservation], choice: Choice) -> None:
    """Raise InvalidInput if a reservation refers to one that has to lie in another region."""
    at = {each.id: number for number, each in enumerate(wanted)}
    for number, each in enumerate(wanted):
        if each.parent is not None:
            continue
        for reference in each.kind.references(each.parameters):
            other = at[str(reference.reservation)]
            if any(regions[number] != regions[other] for regions in choice.options()):
                raise InvalidInput(
                    f"{reference.pointer.lstrip('/')} names a reservation that lies in another region; name one region "
                    f"for both",
                    pointer=each.pointer + reference.pointer,
                )


def _check_kind(request: LeaseRequest, kinds: Collection[LeaseKind]) -> None:
    """Raise InvalidInput if a lease of this kind may not be booked, or not for that start."""
    if request.kind not in kinds:
        allowed = sorted(kinds)
        raise InvalidInput(
            f"leases of the kind {request.kind} cannot be booked here; use one of: {', '.join(allowed)}",
            pointer="/kind",
            data={"allowed": allowed},
        )
    if request.kind is LeaseKind.BEST_EFFORT and request.start is not NOW:
        raise InvalidInput(
            "a lease of the kind best_effort starts as soon as there is room; leave start_date out",
            pointer="/start_date",
        )
    if request.kind is LeaseKind.IMMEDIATE and request.start is not NOW:
        raise InvalidInput(
            "an immediate lease starts now; leave start_date out, or ask for a scheduled lease", pointer="/start_date"
        )


def _their_events(request: LeaseRequest, now: datetime) -> tuple[Event, ...]:
    """Return the events of the client's own types."""
    return tuple(
        Event(id=str(uuid.uuid4()), event_type=e.event_type, time=e.time, status=None, created_at=now)
        for e in request.events
    )


def _timetable(window: Window, before_end: datetime | None, now: datetime) -> tuple[Event, ...]:
    times = {EventType.START: window.start, EventType.END: window.end, EventType.BEFORE_END: before_end}
    return tuple(
        Event(id=str(uuid.uuid4()), event_type=kind, time=time, status=EventStatus.UNDONE, created_at=now)
        for kind, time in times.items()
        if time is not None
    )


def _creation(claim: Claim, *, now: datetime, until: datetime) -> Event:
    """Return the event that undoes the creation if its manager dies."""
    return Event(
        id=str(uuid.uuid4()),
        event_type=EventType.CREATE,
        time=now.replace(microsecond=0),
        status=EventStatus.IN_PROGRESS,
        created_at=now,
        due_at=until,
        claimed_by=claim.token,
        claimed_at=now,
    )


def _lease(
    request: LeaseRequest, window: Window, wanted: Sequence[_NewReservation], events: tuple[Event, ...], now: datetime
) -> Lease:
    return Lease(
        id=str(uuid.uuid4()),
        name=request.name,
        user_id=request.user_id,
        project_id=request.project_id,
        window=window,
        status=LeaseStatus.CREATING,
        created_at=now,
        reservations=tuple(
            Reservation(
                id=each.id,
                resource_type=each.kind.resource_type,
                resource_id=str(uuid.uuid4()),
                status=ReservationStatus.PENDING,
                created_at=now,
                parameters=each.parameters,
                parent=each.parent,
            )
            for each in wanted
        ),
        events=events,
        kind=request.kind,
    )
