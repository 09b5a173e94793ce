# SPDX-License-Identifier: Apache-2.0
"""What a search for free time reads: the calendar of a range, and what the project of the lease has then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from blazar.calendar.openings import Budget, KindSearch
from blazar.enforcement import LeaseView
from blazar.manager.billing.quoting import Quoting, price_nothing
from blazar.manager.booking.asleep import read_asleep
from blazar.manager.booking.booking import PlacementRequest, Selectable, find_whole_kinds, match_visible
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import find_spending, is_spending_read
from blazar.manager.search.free_time import FreeTime, SearchLimits
from blazar.manager.search.request_places import RequestPlace
from blazar.model.base.clock import Clock
from blazar.model.base.errors import OutOfTime
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor
from blazar.model.power.classes import POWERED
from blazar.model.power.states import ALL_AWAKE
from blazar.store.calendar.views import RangeView


@dataclass(frozen=True, slots=True)
class SoughtLease:
    """What is looked for: a lease with its placement requests; ``current`` is it before a change.

    ``asked`` has, for each reservation, where the question names it.
    """

    lease: Lease
    requests: Sequence[PlacementRequest]
    project_id: str
    asked: Mapping[str, RequestPlace]
    besides: str | None = None
    current: LeaseView | None = None

    @property
    def is_new(self) -> bool:
        """Return whether the lease is a new one."""
        return self.besides is None


def find_places(lease: Lease, named: Mapping[str, RequestPlace]) -> Mapping[str, RequestPlace]:
    """Return where a question names the reservations of a lease; the parts of one are where that is, without keys."""
    places = {r.id: named.get(r.id, RequestPlace(None, id=r.id)) for r in lease.asked_for}
    parents = {r.id: r.parent for r in lease.reservations if r.parent is not None}
    return {**places, **{id_: replace(places[parent], keys=frozenset()) for id_, parent in parents.items()}}


class Deadline:
    """When a search is given up: ``limit`` after now."""

    def __init__(self, clock: Clock, limit: timedelta) -> None:
        self._clock = clock
        self._limit = limit
        self._end = clock.elapsed() + limit.total_seconds()

    def check(self) -> None:
        """Raise OutOfTime if it has passed."""
        if self._clock.elapsed() >= self._end:
            raise OutOfTime(
                f"the search took longer than {self._limit.total_seconds():g} seconds and was given up; ask for fewer "
                "reservations or a shorter range, or try again later"
            )


@dataclass(frozen=True, slots=True)
class FreeTimeReader:
    """Reads what a search needs."""

    runtime: Runtime
    quoting: Quoting

    def read(self, wanted: SoughtLease, asker: Actor, range_: Window, now: datetime) -> FreeTime:
        """Read what is promised in a range, and what the project has then, in one transaction."""
        settings, enforcement = self.runtime.settings, self.runtime.enforcement
        budget = Budget(settings.search_placements, check=Deadline(self.runtime.clock, settings.search_limit).check)
        bounds = self.runtime.bounds_of(wanted.project_id) if wanted.is_new else Bounds()
        seen = self._view_range(wanted, bounds, range_, now)
        asleep = read_asleep(self.runtime, range_.start, now) if seen.timelines.keys() & set(POWERED) else ALL_AWAKE
        kinds = {
            kind: KindSearch(
                [request.demand for request in wanted.requests if request.demand.kind == kind],
                timeline,
                seen.catalogs[kind].resources,
                match_visible(seen.catalogs[kind], Selectable(wanted.project_id)),
                budget,
                settings.strategy_of(kind),
                asleep=asleep if kind in POWERED else ALL_AWAKE,
            )
            for kind, timeline in seen.timelines.items()
        }
        standing = bounds.refusals(*seen.so_far, more=len(wanted.lease.reservations))
        spending = find_spending(self.runtime, seen.use)
        limits = SearchLimits(enforcement, asker, now, seen.use, wanted.current, standing, spending, range_.end)
        # What is made of others takes nothing itself.
        taking = tuple(r for p in wanted.requests for r in wanted.lease.reservations if r.id == p.reservation_id)
        numbers = {r.id: number for number, r in enumerate(wanted.lease.asked_for)}
        return FreeTime(
            replace(wanted.lease, reservations=taking),
            wanted.requests,
            [wanted.asked[reservation.id] for reservation in taking],
            [numbers[reservation.parent or reservation.id] for reservation in taking],
            kinds,
            limits,
            budget,
            self.quoting.quote_windows(wanted.lease, now) if wanted.is_new else price_nothing,
        )

    def _view_range(self, wanted: SoughtLease, bounds: Bounds, range_: Window, now: datetime) -> RangeView:
        enforcement = self.runtime.enforcement
        return self.runtime.store.calendar.view_range(
            find_whole_kinds(wanted.requests),
            range_,
            now=now,
            besides=wanted.besides,
            use_of=wanted.project_id if enforcement.needs_use else None,
            reach=enforcement.usage_window(range_) if enforcement.needs_use else None,
            spends=is_spending_read(self.runtime),
            count_of=wanted.project_id if bounds.depends_on_project else None,
        )
