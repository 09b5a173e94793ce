# SPDX-License-Identifier: Apache-2.0
"""New leases: from a request to the lease to book, and what its reservations ask of the calendar."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial

from blazar.context import scope
from blazar.manager.booking.booking import PlacementRequest, Selectable, match_visible
from blazar.manager.booking.quotas import LeaseNeeds, RegionNeed, check_quotas, find_leaving, needs_of, starts_at_once
from blazar.manager.changing.new_reservations import NewReservation, make_reservations, mask_errors_of, point_errors_at
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import confirming, dates, immediate, lifecycle
from blazar.manager.leases.timetable import new_timetable
from blazar.manager.queue import waiting_leases
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput, NotFound, pointing_at
from blazar.model.base.moments import NOW
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.leases import reminders
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.limits import LAPSES_COUNT
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.requests import IdempotencyKey, LeaseRequest
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.queue import Wait
from blazar.model.resources.regions import Choice, choose_regions
from blazar.model.resources.resource import ResourceKind, noun
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.regional import in_region
from blazar.store.resources.catalog import ResourceCatalog


@dataclass(frozen=True, slots=True)
class NewLease:
    """A lease to book, with a placement request for each of its reservations that takes resources.

    ``choice`` is in which regions these may lie; None where no regions are configured. ``place`` is its place on the
    waiting list if there is not enough; None if it does not wait. ``max_price`` is the most that it may cost.
    ``lapsed_at`` is when a price was quoted that does not hold any more.
    """

    lease: Lease
    placement_requests: tuple[PlacementRequest, ...]
    key: IdempotencyKey | None = None
    choice: Choice | None = None
    place: Wait | None = None
    max_price: str | None = None
    lapsed_at: datetime | None = None

    def options(self) -> tuple[NewLease, ...]:
        """Return the lease as it would be in each of the regions that are to be tried, in their order."""
        if self.choice is None:
            return (self,)
        options = []
        for regions in self.choice.iterate_options():
            located = zip(self.lease.reservations, regions, strict=True)
            lease = replace(self.lease, reservations=tuple(replace(r, region=name) for r, name in located))
            names = {r.id: r.region for r in lease.reservations}
            requests = (
                replace(p, demand=in_region(p.demand, names[p.reservation_id])) for p in self.placement_requests
            )
            options.append(replace(self, lease=lease, placement_requests=tuple(requests), choice=None))
        return tuple(options)

    def limit_to(self, resources: Mapping[str, frozenset[int]]) -> Turn:
        """Return its turn to take these resources, by reservation: others wait for the rest."""

        def with_preferred(request: PlacementRequest) -> PlacementRequest:
            chosen = request.demand.preferred | resources.get(request.reservation_id, frozenset())
            return replace(request, demand=replace(request.demand, preferred=chosen))

        preferring = replace(self, placement_requests=tuple(map(with_preferred, self.placement_requests)))
        return Turn(preferring, frozenset[int]().union(*resources.values()))


@dataclass(frozen=True, slots=True)
class Turn:
    """A new lease in one of the regions that may be tried.

    ``only`` are the resources that may be chosen, by calendar id, as others wait for the rest; None: any.
    """

    new: NewLease
    only: frozenset[int] | None = None


class NewLeases:
    """Checks requests for leases and completes them; nothing is written."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def make(self, request: LeaseRequest, claim: Claim) -> NewLease:
        """Return the lease to book for a request, its creation claimed. InvalidInput, UsageDenied, CloudError."""
        now = self._runtime.clock.now()
        settings = self._runtime.settings
        _check_kind(request, settings.kinds)
        window = dates.new_window(request.start, request.end, now, exact=request.exact)
        lead = settings.lead_before_end([r.resource_type for r in request.reservations])
        before_end = dates.new_before_end(window, dates.resolve_before_end(request.before_end, window), lead)
        wanted = self._limited_reservations(request)
        if any(reservation.kind.quotas is not None for reservation in wanted):
            self._check_quotas(request, wanted, window, now)
        if before_end is None and any(r.kind.action(r.parameters).saves_work for r in wanted):
            # No warning requested, but work to save: save it at the end itself, before anything is deleted.
            before_end = window.end
        events = (*_make_client_events(request, now), *new_timetable(window, before_end, now))
        if request.kind is LeaseKind.IMMEDIATE:
            events = (*events, immediate.refusal_event(settings.immediate_timeout, now))
        if request.confirm_within is not None:
            events = (*events, confirming.make_event(request, window, now, settings.confirm_within))
            self._check_lapsed(request.project_id, now)
        creation = _make_creation_event(claim, now=now, until=now + self._runtime.claims.ttl)
        lease = _make_lease(request, window, wanted, (*events, creation), now)
        if request.reminders:
            lease = replace(lease, reminders=_make_reminders(request, window, now))
        lapsed_at = None
        if request.quoted_at is not None:
            held_at, lapsed_at = dates.read_quote(request.quoted_at, now, settings.quote_holds)
            lease = replace(lease, quoted_at=held_at)
        if request.extend_until is not None:
            lease = replace(lease, extend=dates.new_extension(request.extend_until, window.end, now))
        if request.wait_until is None and request.kind is not LeaseKind.RETRIES:
            new = self._new(lease, wanted, request, checks_references=request.exact)
            return new if lapsed_at is None else replace(new, lapsed_at=lapsed_at)
        place = waiting_leases.read_wait(request, window, now, settings)
        if request.kind is LeaseKind.RETRIES:
            # Only one that may be tried again keeps its place when it is booked at once.
            lease = replace(lease, wait=place)
        new = self._new(lease, wanted, request, checks_references=request.exact)
        return replace(new, place=place, lapsed_at=lapsed_at)

    def draft(self, request: LeaseRequest, window: Window, *, checks_references: bool = True) -> NewLease:
        """Return the lease that a request leads to, for this window and without events, to look for free time for it.

        InvalidInput, NotFound, CloudError. Limits are not checked.
        """
        wanted = make_reservations(self._runtime, request)
        lease = _make_lease(request, window, wanted, (), self._runtime.clock.now())
        return self._new(lease, wanted, request, checks_references=checks_references)

    def _new(
        self, lease: Lease, wanted: Sequence[NewReservation], request: LeaseRequest, *, checks_references: bool
    ) -> NewLease:
        demands = {r.id: self._demand(r, request) for r in wanted if not r.kind.has("children")}
        if checks_references:
            # Read once for all reservations of a kind: each reading asks for the version.
            catalog_of = cache(self._runtime.store.resources.catalog)
            for reservation in wanted:
                if reservation.id in demands:
                    with mask_errors_of(next((one for one in wanted if one.id == reservation.parent), None)):
                        _check_reference(reservation, demands[reservation.id], request.project_id, catalog_of)
        requests = tuple([PlacementRequest(id_, demand) for id_, demand in demands.items()])
        if not self._runtime.regions.names:
            return NewLease(lease, requests, request.key, max_price=request.max_price)
        choice = choose_regions([self._allowed(reservation, demands.get(reservation.id)) for reservation in wanted])
        _check_together(wanted, choice)
        return NewLease(lease, requests, request.key, choice, max_price=request.max_price)

    def _limited_reservations(self, request: LeaseRequest) -> list[NewReservation]:
        """Return the reservations of a request, not more than a lease of its project may have. UsageDenied."""
        bounds, asked_for = self._runtime.bounds_of(request.project_id), len(request.reservations)
        bounds.check_lease(asked_for)
        wanted = make_reservations(self._runtime, request)
        if len(wanted) > asked_for:
            bounds.check_lease(len(wanted))
        return wanted

    def _check_lapsed(self, project_id: str, now: datetime) -> None:
        """Raise UsageDenied if the project books again and again what it then leaves unconfirmed. One statement."""
        bounds = self._runtime.bounds_of(project_id)
        if bounds.lapsed is not None:
            bounds.check_lapsed(self._runtime.store.leases.count_lapsed(project_id, since=now - LAPSES_COUNT))

    def _check_quotas(
        self, request: LeaseRequest, wanted: Sequence[NewReservation], window: Window, now: datetime
    ) -> None:
        """Raise Conflict if the quotas of the project let it have the reservations in none of their regions."""
        with scope(limit=self._runtime.settings.request_limit):
            going = partial(find_leaving, self._runtime, request.project_id, window.start)
            at_once = starts_at_once(window.start, now)
            check_quotas(
                *(LeaseNeeds(request.project_id, needs, at_once, going) for needs in self._options(wanted) if needs)
            )

    def _options(self, wanted: Sequence[NewReservation]) -> Iterator[tuple[RegionNeed, ...]]:
        """Yield what a lease needs of quotas, in the regions in which it may lie."""
        if not self._runtime.regions.names:
            yield tuple(self._needs(wanted, [reservation.region or "" for reservation in wanted]))
            return
        every = tuple(self._runtime.regions)
        allowed = [
            (reservation.region,)
            if reservation.region is not None
            else self._runtime.regions.list_allowed(reservation.kind.requirement(reservation.parameters)) or every
            for reservation in wanted
        ]
        for regions in choose_regions(allowed).iterate_options():
            yield tuple(self._needs(wanted, regions))

    def _needs(self, wanted: Sequence[NewReservation], regions: Sequence[str]) -> Iterator[RegionNeed]:
        kinds = {reservation.id: reservation.kind for reservation in wanted}
        for reservation, region in zip(wanted, regions, strict=True):
            # What a part needs is made by what it is a part of, unless it makes it itself.
            makes = (
                reservation.kind
                if reservation.kind.quotas is not None or reservation.parent is None
                else kinds[reservation.parent]
            )
            amounts = needs_of(reservation.kind, reservation.parameters, part=reservation.parent is not None)
            if amounts and (quotas := makes.within(region).quotas) is not None:
                yield RegionNeed(region, quotas, amounts, reservation.pointer)

    def _allowed(self, wanted: NewReservation, demand: Demand | None) -> tuple[str, ...]:
        """Return the regions in which a reservation may lie, at least one."""
        if wanted.region is None:
            every = tuple(self._runtime.regions)
            # What no resource can meet, as "not" of anything, can be met in no region, and is refused by the calendar.
            return every if demand is None else self._runtime.regions.list_allowed(demand.requirement) or every
        # Where the two contradict each other, there is nothing that it could get.
        return (wanted.region,)

    def _demand(self, wanted: NewReservation, request: LeaseRequest) -> Demand:
        kind, resources = wanted.kind, self._runtime.store.resources

        def known(catalog: ResourceCatalog) -> frozenset[str]:
            return catalog.property_names() if request.operator else catalog.property_names_for(request.project_id)

        latest = resources.latest_catalog(kind.kind)
        try:
            return kind.demand(wanted.parameters, known=known(latest) if latest else frozenset())
        except InvalidInput:
            # It may ask for a property that is newer than what this process has read.
            with pointing_at(wanted.pointer) if wanted.parent is None else point_errors_at(wanted.pointer):
                return kind.demand(wanted.parameters, known=known(resources.catalog(kind.kind)))


def _check_reference(
    wanted: NewReservation, demand: Demand, project_id: str, catalog_of: Callable[[ResourceKind], ResourceCatalog]
) -> None:
    """Raise NotFound if a parameter names something that no resource open to the project belongs to."""
    field = demand.reference
    if field is None:
        return
    if not match_visible(catalog_of(demand.kind), Selectable(project_id))(demand.requirement):
        raise NotFound(
            f"{field}: there is no {quote(wanted.parameters.values.get(field))} with {noun(demand.kind)}s that "
            "the project can reserve; give another one",
            at=wanted.pointer if wanted.parent else f"{wanted.pointer}/{field}",
        )


def _check_together(wanted: Sequence[NewReservation], choice: Choice) -> None:
    """Raise InvalidInput if a reservation refers to one that has to lie in another region."""
    at = {reservation.id: number for number, reservation in enumerate(wanted)}
    for number, reservation in enumerate(wanted):
        if reservation.parent is not None:
            continue
        for reference in reservation.kind.references(reservation.parameters):
            other = at[str(reference.reservation)]
            if any(regions[number] != regions[other] for regions in choice.iterate_options()):
                raise InvalidInput(
                    f"{reference.pointer.lstrip('/')} names a reservation that lies in another region; name one region "
                    f"for both",
                    at=reservation.pointer + reference.pointer,
                )


def _check_kind(request: LeaseRequest, kinds: Collection[LeaseKind]) -> None:
    """Raise InvalidInput if a lease of this kind may not be booked, or not for that start."""
    if request.kind not in kinds:
        allowed = sorted(kinds)
        raise InvalidInput(
            f"leases of the kind {request.kind} cannot be booked here; use one of: {', '.join(allowed)}",
            at="/kind",
            data={"allowed": allowed},
        )
    if request.kind is LeaseKind.BEST_EFFORT and request.start is not NOW:
        raise InvalidInput(
            "a lease of the kind best_effort starts as soon as there is room; leave start_date out", at="/start_date"
        )
    if request.kind is LeaseKind.IMMEDIATE and request.start is not NOW:
        raise InvalidInput(
            "an immediate lease starts now; leave start_date out, or ask for a scheduled lease", at="/start_date"
        )


def _make_client_events(request: LeaseRequest, now: datetime) -> tuple[Event, ...]:
    """Return the events of the client's own types."""
    return tuple(
        Event(id=str(uuid.uuid4()), event_type=e.event_type, time=e.time, status=None, created_at=now)
        for e in request.events
    )


def _make_reminders(request: LeaseRequest, window: Window, now: datetime) -> tuple[Reminder, ...]:
    """Return the reminders of a new lease. InvalidInput."""
    if request.of_series:
        return reminders.skip_past(request.reminders, window, now)
    return reminders.accept(request.reminders, window, now)


def _make_creation_event(claim: Claim, *, now: datetime, until: datetime) -> Event:
    """Return the event that undoes the creation if its manager dies."""
    return replace(
        lifecycle.new_event(EventType.CREATE, to_second(now), now, due_at=until),
        status=EventStatus.IN_PROGRESS,
        claimed_by=claim.token,
        claimed_at=now,
    )


def _make_lease(
    request: LeaseRequest, window: Window, wanted: Sequence[NewReservation], events: tuple[Event, ...], now: datetime
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
                id=reservation.id,
                resource_type=reservation.kind.resource_type,
                resource_id=str(uuid.uuid4()),
                status=ReservationStatus.PENDING,
                created_at=now,
                parameters=reservation.parameters,
                parent=reservation.parent,
            )
            for reservation in wanted
        ),
        events=events,
        kind=request.kind,
        keep_hosts=request.keep_hosts,
    )
