# SPDX-License-Identifier: Apache-2.0
"""Plans of series: the calendar is read once for all occurrences, and those who wait keep what they are to get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction

from blazar.calendar.openings import Budget, KindSearch
from blazar.calendar.series import PlannedOccurrence, SeriesPlan, plan_series
from blazar.calendar.timeline import Timeline, Use, epoch
from blazar.enforcement import Question
from blazar.enforcement.pricing import add_lease
from blazar.manager.billing.quoting import Quoting
from blazar.manager.billing.refusals import refuse_price, tell_excess
from blazar.manager.booking.booking import Selectable, find_whole_kinds, match_visible
from blazar.manager.booking.unique_names import find_taken_names
from blazar.manager.changing.new_leases import NewLease
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import find_spending, is_spending_read, make_view
from blazar.manager.series.moved_occurrences import add_by_moves
from blazar.manager.series.occurrences import PlannedSeries
from blazar.manager.waiting.waiting_list import WaitingList
from blazar.model.base.clock import later, to_second
from blazar.model.base.errors import BlazarError, UsageDenied
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window, enclose
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.resources.resource import ResourceKind
from blazar.model.series.checks import Fit
from blazar.model.series.recurrence import Occurrence
from blazar.model.use.resource_hours import HostUse, ProjectUse
from blazar.store.resources.catalog import ResourceCatalog

LOOKED_AHEAD = timedelta(days=30)
"""How far after the last occurrence an opening for it is looked for."""

SECOND = timedelta(seconds=1)


def _in_time() -> None:
    """Do nothing: there is no deadline."""


class SeriesPlanner:
    """Plans series; nothing is written."""

    def __init__(self, runtime: Runtime, waiting_list: WaitingList) -> None:
        self._runtime = runtime
        self._waiting_list = waiting_list

    def plan(
        self,
        new: NewLease,
        occurrences: Sequence[Occurrence],
        fit: Fit,
        *,
        placements: int = 0,
        check: Callable[[], None] = _in_time,
        without: frozenset[str] = frozenset(),
    ) -> PlannedSeries:
        """Return the plan of occurrences, in the region in which most of them fit, leases ``without`` left out.

        ``placements`` is what the search for openings may cost, ``check`` raises an error if there is no time left. A
        number of statements that does not grow with the occurrences. InvalidInput, OthersWait.
        """
        now, project_id = self._runtime.clock.now(), new.lease.project_id
        whole = find_whole_kinds(new.placement_requests)
        # An opening for the first occurrence may lie before it.
        begin = to_second(now) if placements else max(to_second(now), min(o.start for o in occurrences))
        end = max(begin + SECOND, *(occurrence.end for occurrence in occurrences))
        span = Window(begin, later(end, LOOKED_AHEAD) if placements else end)
        seen = self._runtime.store.calendar.view_range(
            whole,
            span,
            now=now,
            besides=None,
            count_of=project_id,
            generations=True,
            without=without,
        )
        taken = self._waiting_list.taken(whole)
        left = {kind: _add_waiting(timeline, taken.get(kind, {})) for kind, timeline in seen.timelines.items()}
        best: PlannedSeries | None = None
        for option in new.options():
            budget = Budget(placements, check=check)
            searches = [
                self._search(option, kind, timeline, seen.catalogs[kind], budget) for kind, timeline in left.items()
            ]
            plan = plan_series(occurrences, searches, fit, budget, latest=epoch(span.end))
            plan = _name_waiting(plan, taken, epoch(now))
            found = PlannedSeries(option, plan, tuple(left), seen.generations, seen.so_far)
            if best is None or _count_fitting(plan) > _count_fitting(best.plan):
                best = found
            if _count_fitting(plan) == len(occurrences):
                break
        assert best is not None
        return add_by_moves(self._runtime, best, now, without=without)

    def _search(
        self, option: NewLease, kind: ResourceKind, timeline: Timeline, catalog: ResourceCatalog, budget: Budget
    ) -> KindSearch:
        return KindSearch(
            [request.demand for request in option.placement_requests if request.demand.kind == kind],
            timeline,
            catalog.resources,
            match_visible(catalog, Selectable(option.lease.project_id)),
            budget,
            self._runtime.settings.strategy_of(kind),
            self._runtime.settings.seed(),
        )


def _name_waiting(plan: SeriesPlan, taken: Mapping[ResourceKind, Mapping[int, Sequence[Use]]], now: int) -> SeriesPlan:
    """Return a plan that says of what does not fit if some of that time is for those who wait."""
    uses = {(start, end) for of_kind in taken.values() for some in of_kind.values() for start, end, *_ in some}

    def told(planned: PlannedOccurrence) -> PlannedOccurrence:
        begin, end = epoch(planned.occurrence.start), epoch(planned.occurrence.end)
        if planned.reason is None or begin < now or not any(start < end and until > begin for start, until in uses):
            return planned
        return replace(
            planned, reason=f"{planned.reason.removesuffix('.')}; leases that wait for their turn come first"
        )

    return replace(plan, occurrences=tuple(map(told, plan.occurrences))) if uses else plan


def _count_fitting(plan: SeriesPlan) -> int:
    return sum(planned.fits for planned in plan.occurrences)


def _add_waiting(timeline: Timeline, taken: Mapping[int, Sequence[Use]]) -> Timeline:
    """Return a timeline with what those who wait are to get."""
    if not taken:
        return timeline
    if timeline.without_amounts:
        taken = {id_: [(start, end, 1, None) for start, end, *_ in uses] for id_, uses in taken.items()}
    return timeline.add_uses(taken)


@dataclass(slots=True)
class SeriesCheck:
    """Asks enforcement for each lease of a part of a series, as if those before it had been granted.

    What the project has is read once for all of them, leases ``without`` left out. ``use`` is that, which the booking
    must find unchanged. Each lease that is new may cost ``max_price`` at most.
    """

    runtime: Runtime
    max_price: str | None = None
    without: frozenset[str] = frozenset()
    use: ProjectUse | None = None
    _passed: dict[str, dict[int, object]] = field(default_factory=dict)

    @property
    def uses(self) -> tuple[ProjectUse, ...]:
        """The use that the booking must find unchanged, if any was read."""
        return () if self.use is None else (self.use,)

    def objections(
        self, actor: Actor, wanted: Sequence[tuple[Lease, Sequence[Allocation]]], so_far: tuple[int, int]
    ) -> Mapping[str, BlazarError]:
        """Return why leases may not be booked, by id. EnforcementUnavailable if that cannot be decided."""
        if not wanted:
            return {}
        found: dict[str, BlazarError] = dict(
            find_taken_names(self.runtime, [lease for lease, _ in wanted], self.without)
        )
        found |= self._list_dear([one for one in wanted if one[0].id not in found])
        first = wanted[0][0]
        bounds, enforcement = self.runtime.bounds_of(first.project_id), self.runtime.enforcement
        checked = [lease_allocations for lease_allocations in wanted if lease_allocations[0].id not in found]
        granted = 0
        if enforcement.needs_use and checked:
            self._read(first.project_id, [lease.window for lease, _ in checked])
        others = [lease for lease in self.use.leases if lease.lease_id not in self.without] if self.use else []
        usage = [record for record in self.use.usage if record.lease_id not in self.without] if self.use else []
        # What leases are changed instead of has its price still: the transaction knows the difference.
        spending = None if self.without else find_spending(self.runtime, self.use)
        for lease, allocations in checked:
            more = len(lease.reservations)
            shown = make_view(self.runtime.store, lease, allocations) if enforcement.enabled else None
            try:
                bounds.check_project(so_far[0] + granted, so_far[1] + granted * more, more=more)
                if shown is not None:
                    now, context = self.runtime.clock.now(), enforcement.identity.make_context(lease, actor)
                    had = tuple(others), tuple(usage), (), spending
                    question = Question(context, now, shown, None, *had, self.max_price)
                    enforcement.check(question, self._passed.setdefault(lease.id, {}))
                    self.use = self.use and enforcement.complete_use(self.use, question)
            except UsageDenied as error:
                found[lease.id] = error
                continue
            granted += 1
            if shown is not None and enforcement.needs_use:
                others.append(HostUse(lease.id, lease.window, shown.hosts))
                usage += shown.usage_records(lease.window)
                spending = add_lease(spending, shown, now)
        return found

    def _list_dear(self, wanted: Sequence[tuple[Lease, Sequence[Allocation]]]) -> Mapping[str, BlazarError]:
        """Return errors for the new leases that cost more than they may, by id."""
        if self.max_price is None:
            return {}
        quoting, most = Quoting(self.runtime), self.max_price
        quoted = [(one.id, quoting.quote_new(one, held)) for one, held in wanted if one.id not in self.without]
        advice = "allow more, ask for less, or for as many as fit with fit"
        return {
            id_: refuse_price(tell_excess(price, most, advice), price, most)
            for id_, price in quoted
            if price is not None and price.value > Fraction(most)
        }

    def _read(self, project_id: str, windows: Sequence[Window]) -> None:
        span = enclose(windows)
        self.use = self.runtime.store.calendar.read_project_use(
            project_id,
            span,
            besides="",
            reach=self.runtime.enforcement.usage_window(span),
            now=self.runtime.clock.now(),
            spends=is_spending_read(self.runtime),
        )
