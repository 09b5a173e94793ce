# SPDX-License-Identifier: Apache-2.0
"""A search for free time: what one question has read, and what follows from it. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from blazar.calendar.counting import Run
from blazar.calendar.openings import Budget, Found, KindSearch, Opening, last_fitting_end, search_openings
from blazar.calendar.placement import Placement
from blazar.calendar.reasons import RequirementPart, explain_misfits
from blazar.calendar.timeline import epoch, from_epoch
from blazar.enforcement import AllocatedResource, Enforcement, LeaseView, Question
from blazar.manager.billing.quoting import QuoteWindow, price_nothing
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.search.request_places import RequestPlace, find_parts
from blazar.model.base.errors import UsageDenied
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.billing.spending import ProjectSpending
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.power.classes import POWERED
from blazar.model.power.states import WakingHosts
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.model.search.availability import (
    EnforcementRefusal,
    Extension,
    FreeWindow,
    LimitedBy,
    WindowReason,
)
from blazar.model.use.resource_hours import ProjectUse

SECOND = timedelta(seconds=1)

MOST_MOVES = 8
"""Starts that are tried one after the other, as each limit offers its own."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What is needed to judge a window: who asks, the project's use, and the lease before a change.

    ``standing`` is what is objected to whatever the window is. Up to ``until`` the project's use is known.
    """

    enforcement: Enforcement
    actor: Actor
    now: datetime
    use: ProjectUse | None = None
    current: LeaseView | None = None
    standing: tuple[UsageDenied, ...] = ()
    spending: ProjectSpending | None = None
    until: datetime | None = None


def extend_to(
    before: Window,
    until: datetime,
    latest: datetime,
    refusals_to: Callable[[datetime], tuple[EnforcementRefusal, ...]],
) -> Extension:
    """Return the latest end of a lease up to which there is room, and to which nobody objects."""
    limited_by = LimitedBy.RANGE if until >= latest else LimitedBy.PROMISED
    refusals = refusals_to(until)
    if not refusals:
        return Extension(until, limited_by)
    # The longer the lease, the more is objected to: the last end without an objection is found by bisection.
    low, high = 0, (until - before.end) // SECOND - 1
    while low < high:
        middle = (low + high + 1) // 2
        if some := refusals_to(before.end + middle * SECOND):
            high, refusals = middle - 1, some
        else:
            low = middle
    return Extension(before.end + low * SECOND, LimitedBy.LIMIT, refusals)


@dataclass(slots=True)
class FreeTime:
    """The search for one lease: its placement requests, and the calendars of their kinds.

    ``lease`` has the reservations that take resources, each with its placement request. ``asked`` has, for each of
    them, where the request names it, and ``numbers`` which one of the request it is, or is a part of.
    """

    lease: Lease
    requests: Sequence[PlacementRequest]
    asked: Sequence[RequestPlace]
    numbers: Sequence[int]
    kinds: Mapping[ResourceKind, KindSearch]
    limits: SearchLimits
    budget: Budget
    quote: QuoteWindow = price_nothing
    places: list[tuple[ResourceKind, int]] = field(default_factory=list)
    _known: dict[int, Resource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = dict.fromkeys(self.kinds, 0)
        for request in self.requests:
            kind = request.demand.kind
            self.places.append((kind, counts[kind]))
            counts[kind] += 1

    @property
    def searches(self) -> list[KindSearch]:
        """Return the searches, one for each kind."""
        return list(self.kinds.values())

    def find(self, window: Window, last_start: datetime, latest: datetime, limit: int) -> Found:
        """Return the earliest openings for the length of a window, from its start on, at which rules allow a lease.

        A single start is looked at in any case: what rules object to is said then.
        """
        return search_openings(
            self.searches,
            self.budget,
            length=epoch(window.end) - epoch(window.start),
            earliest=epoch(window.start),
            last_start=epoch(last_start),
            latest=epoch(latest),
            limit=limit,
            allowed=self.list_allowed(window, last_start) if last_start > window.start else None,
        )

    def list_allowed(self, window: Window, last_start: datetime) -> Sequence[Run]:
        """Return the runs of starts, from that of a window on, at which rules allow a lease of its length."""
        lease = replace(self.lease, window=window)
        return self.limits.enforcement.list_starts(lease, self.kinds, self.limits.use, window.start, last_start)

    def free_window(self, opening: Opening, length: timedelta) -> FreeWindow:
        """Return an opening with what enforcement objects to."""
        start = from_epoch(opening.start)
        window = Window(start, start + length)
        placements = dict(zip(self.kinds, opening.placements, strict=True))
        counts = [0] * len({*self.numbers})
        regions = [""] * len(counts)
        for number, reservation, (kind, index) in zip(self.numbers, self.lease.reservations, self.places, strict=True):
            counts[number] += sum(share.count for share in placements[kind].assignments[index])
            regions[number] = reservation.region
        return FreeWindow(
            window,
            from_epoch(opening.last_start),
            None if opening.open_until is None else from_epoch(opening.open_until),
            tuple(counts),
            self.refusals(window, placements, moves=True),
            tuple(regions),
            self.quote(window, partial(self.allocated, placements)),
            self._find_waking(placements, start),
        )

    def _find_waking(self, placements: Mapping[ResourceKind, Placement], start: datetime) -> WakingHosts | None:
        """Return what a lease that starts then waits for; None if all of its hosts and pools are awake."""
        kinds = [kind for kind in POWERED if kind in self.kinds]
        ids = [id_ for kind in kinds for id_ in placements[kind].resource_ids]
        return self.kinds[kinds[0]].asleep.find_waking(ids, start) if kinds else None

    def find_granted(
        self, openings: Sequence[FreeWindow], length: timedelta, last_start: datetime, latest: datetime
    ) -> FreeWindow | None:
        """Return the first opening to which nobody objects, or at the start that a refusal of one offers; None."""
        for opening in openings:
            if not opening.refusals:
                return opening
            if (moved := self._follow_offers(opening, length, opening.last_start, latest)) is not None:
                return moved
        return self._follow_offers(openings[-1], length, last_start, latest) if openings else None

    def _follow_offers(
        self, opening: FreeWindow, length: timedelta, last_start: datetime, latest: datetime
    ) -> FreeWindow | None:
        """Return the first window, at a start that refusals of an opening offer or later, to which nobody objects.

        Where they offer none, it may be once another lease of the project has ended.
        """
        for _ in range(MOST_MOVES):
            begin = opening.window.start
            offered = (refusal.data.get("fits", {}).get("start_date") for refusal in opening.refusals)
            starts = [at for one in offered if one is not None and (at := datetime.fromisoformat(one)) > begin]
            ends = (one.window.end for one in self.limits.use.leases) if self.limits.use is not None else ()
            starts = [start for start in starts or ends if begin < start <= last_start]
            if not starts:
                return None
            start = min(starts)
            found = self.find(Window(start, start + length), last_start, latest, 1).openings
            if not found:
                return None
            opening = self.free_window(found[0], length)
            if not opening.refusals:
                return opening
        return None

    def refusals(
        self, window: Window, placements: Mapping[ResourceKind, Placement], *, moves: bool = False
    ) -> tuple[EnforcementRefusal, ...]:
        """Return what the limits of the project object to in a window with these placements.

        They say at which later start they would not, as far as that is known, if the lease ``moves``.
        """
        return self._objections(window, lambda: self.allocated(placements), moves=moves)

    def kept_refusals(self, window: Window) -> tuple[EnforcementRefusal, ...]:
        """Return what they object to in a window in which the lease keeps the resources that it has."""
        current = self.limits.current
        return () if current is None else self._objections(window, lambda: current.allocated_resources)

    def _objections(
        self, window: Window, allocated: Callable[[], tuple[AllocatedResource, ...]], *, moves: bool = False
    ) -> tuple[EnforcementRefusal, ...]:
        limits = self.limits
        denied = self._denied(window, allocated(), moves=moves) if limits.enforcement.enabled else ()
        found = [*limits.standing, *denied]
        return tuple(EnforcementRefusal(error.message, error.data or {}) for error in found)

    def _denied(
        self, window: Window, allocated: tuple[AllocatedResource, ...], *, moves: bool
    ) -> tuple[UsageDenied, ...]:
        limits = self.limits
        last_start = limits.until - window.duration if moves and limits.until is not None else None
        self.budget.check()
        lease = replace(self.lease, window=window)
        question = Question(
            limits.enforcement.identity.make_context(lease, limits.actor),
            limits.now,
            LeaseView(lease.without_secrets, allocated),
            limits.current,
            limits.use.leases if limits.use else (),
            limits.use.usage if limits.use else (),
            limits.use.own_usage if limits.use else (),
            limits.spending,
            last_start=last_start,
        )
        return limits.enforcement.refusals(question)

    def reasons(self, window: Window, latest: datetime) -> tuple[WindowReason, ...]:
        """Return why the reservations that take resources and do not fit into a window do not."""
        parts: dict[ResourceKind, list[tuple[RequirementPart, ...]]] = {kind: [] for kind in self.kinds}
        for number, request in enumerate(self.requests):
            parts[request.demand.kind].append(self.parts(number))
        times = epoch(window.start), epoch(window.end), epoch(latest)
        explained = {kind: explain_misfits(search, parts[kind], *times) for kind, search in self.kinds.items()}
        found = []
        for number, (request, (kind, index)) in enumerate(zip(self.requests, self.places, strict=True)):
            why = explained[kind][index]
            if why is not None:
                asked = request.demand.min_count
                pointer = self.asked[number].pointer
                found.append(WindowReason(number, window, asked, why.free, why.steps, why.message, pointer))
        return tuple(found)

    def of_request(self, reasons: Sequence[WindowReason]) -> tuple[WindowReason, ...]:
        """Return reasons with the numbers of the reservations that the request has."""
        return tuple(replace(reason, reservation=self.numbers[reason.reservation]) for reason in reasons)

    def kept_until(self, window: Window, latest: datetime) -> datetime | None:
        """Return the last end, up to ``latest``, for a lease that has its resources throughout a window.

        None if it would not get again what it has already, as after a failure: then it ends with the window.
        """
        start, end = epoch(window.start), epoch(window.end)
        if any(search.find_placement(start, end) is None for search in self.searches):
            return None
        return from_epoch(last_fitting_end(self.searches, start, end, epoch(latest)))

    def extension(self, latest: datetime) -> Extension:
        """Return how far the lease can be extended, up to ``latest``."""
        before = self.lease.window
        until = self.kept_until(before, latest)
        if until is None:
            return Extension(before.end, None)
        return extend_to(before, until, latest, self._refusals_to)

    def _refusals_to(self, end: datetime) -> tuple[EnforcementRefusal, ...]:
        window = Window(self.lease.window.start, end)
        if end <= self.lease.window.end:
            return ()
        placements = {
            kind: placement
            for kind, search in self.kinds.items()
            if (placement := search.find_placement(epoch(window.start), epoch(end))) is not None
        }
        return self.refusals(window, placements) if len(placements) == len(self.kinds) else ()

    def parts(self, number: int) -> tuple[RequirementPart, ...]:
        """Return the parts of what a reservation requires, by its number."""
        reservation, demand = self.lease.reservations[number], self.requests[number].demand
        return find_parts(reservation.parameters, demand, self.asked[number], region=reservation.region)

    def allocated(self, placements: Mapping[ResourceKind, Placement]) -> tuple[AllocatedResource, ...]:
        """Return what the reservations that take resources have with these placements."""
        if not self._known:
            self._known.update({r.id: r for kind in self.kinds.values() for r in kind.resources})
        known = self._known
        return tuple(
            AllocatedResource(
                request.reservation_id, known[share.resource_id], share.count, size is None, request.demand.per_instance
            )
            for request, (kind, index) in zip(self.requests, self.places, strict=True)
            if kind in placements
            for size in (request.demand.per_instance,)
            for share in placements[kind].assignments[index]
        )
