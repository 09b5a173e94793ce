# SPDX-License-Identifier: Apache-2.0
"""Openings: the earliest windows in which all demands of a lease fit, and how long each of them stays open.

The same placement decides as for a booking. Counting tells where it can succeed at all, and for most demands also where
it will; the others are placed at every start at which something ends, until the budget of placements is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from blazar.calendar.counting import LeastFree, Run, derive_conditions, intersect_runs
from blazar.calendar.fits import NEVER
from blazar.calendar.occupancy import Snapshot
from blazar.calendar.placement import Matching, Placement, Strategy, place
from blazar.calendar.timeline import Timeline, from_epoch
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.demand import Demand
from blazar.model.power.states import ALL_AWAKE, AsleepHosts
from blazar.model.resources.resource import Resource


class BudgetSpent(Exception):
    """No placement is left: starts from ``at`` on have not been searched."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _in_time() -> None:
    """Do nothing: there is no deadline."""


@dataclass(slots=True)
class Budget:
    """How many placements a search may cost, and how many there have been.

    Once a run of starts is found, its details are placed in any case: these are some 20 for each opening at most.
    ``check`` raises an error if there is no time left; it is called before each step of some length.
    """

    placements: int
    used: int = 0
    check: Callable[[], None] = _in_time

    @property
    def is_spent(self) -> bool:
        """Return whether no placement is left."""
        return self.used >= self.placements

    def spend(self, placements: int = 1) -> None:
        """Count placements that follow; the error of ``check`` if there is no time for them."""
        self.check()
        self.used += placements


@dataclass(frozen=True, slots=True)
class Opening:
    """A longest run of starts, from ``start`` to ``last_start``, in seconds since the epoch.

    ``open_until`` is the last end that fits from ``start`` on, None if that is beyond the range. ``placements`` are
    what a booking of the first window would get, by kind.
    """

    start: int
    last_start: int
    open_until: int | None
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: ``searched_until`` is the start from which another search goes on.

    ``complete``: the whole range has been searched, or as many openings as wanted were found.
    """

    openings: tuple[Opening, ...]
    searched_until: int
    complete: bool


@dataclass(slots=True)
class KindSearch:
    """The search among the resources of one kind for all demands on it, which are placed together.

    ``matching`` returns the resources that meet a requirement and are open to the project. Hosts that are ``asleep``
    when they are needed are taken last.
    """

    demands: Sequence[Demand]
    timeline: Timeline
    resources: Sequence[Resource]
    matching: Matching
    budget: Budget
    strategy: Strategy = Strategy.PACK
    seed: int = 0
    asleep: AsleepHosts = ALL_AWAKE
    _known: dict[Run, Placement | None] = field(default_factory=dict)
    _possible: dict[tuple[int, int, int], list[Run]] = field(default_factory=dict)
    _conditions: tuple[LeastFree, ...] = ()
    _is_exact: bool = False

    def __post_init__(self) -> None:
        candidates = [self.candidates(demand) for demand in self.demands]
        self._conditions, self._is_exact = derive_conditions(self.demands, candidates, self.timeline)

    @property
    def suffices_from(self) -> int:
        """Return the first start from which on counting alone tells what fits.

        How long a late user of a part of a resource will stay is not counted, only placed.
        """
        if not self._is_exact:
            return NEVER
        timeline = self.timeline
        return timeline.now + 1 if timeline.late and not timeline.without_amounts else -NEVER

    def candidates(self, demand: Demand) -> Sequence[Resource]:
        """Return the resources that a demand can have when they are free."""
        found = self.matching(demand.requirement)
        if not demand.hardware:
            return [r for r in found if r.reservable]
        return [r for r in found if r.reservable and demand.is_met_by(r)]

    def possible_runs(self, length: int, first: int, last: int) -> list[Run]:
        """Return the runs of starts outside of which the demands cannot fit for ``length`` seconds."""
        asked = length, first, last
        if asked not in self._possible:
            runs: list[Run] = [(first, last)]
            for condition in self._conditions:
                if not runs:
                    break
                self.budget.check()
                runs = intersect_runs(runs, condition.find_runs(self.timeline, length, first, last))
            self._possible[asked] = runs
        return self._possible[asked]

    def find_placement(self, start: int, end: int) -> Placement | None:
        """Return the placement in a window, None if the demands do not fit. InvalidInput."""
        window = start, end
        if window not in self._known:
            self.budget.spend()
            try:
                self._known[window] = self.place(start, end)
            except NotEnoughResources:
                self._known[window] = None
        return self._known[window]

    def fits(self, start: int, end: int) -> bool:
        """Return whether the demands fit in a window in which they can as far as counting tells. BudgetSpent."""
        if start >= self.suffices_from:
            return True
        if self.budget.is_spent and (start, end) not in self._known:
            raise BudgetSpent(start)
        return self.find_placement(start, end) is not None

    def place(self, start: int, end: int, demands: Sequence[Demand] | None = None) -> Placement:
        """Place these demands, or all, in a window as a booking would. NotEnoughResources, InvalidInput."""
        asleep = self.asleep.find_asleep(from_epoch(start)) if self.asleep.ready_at else frozenset[int]()
        snapshot = Snapshot(self.resources, self.timeline.occupancy(start, end), asleep)
        wanted = self.demands if demands is None else demands
        return place(wanted, snapshot, strategy=self.strategy, seed=self.seed, matching=self.matching)

    def confirm_runs(self, run: Run, length: int) -> Iterator[Run]:
        """Yield the longest runs of starts within a possible one in which the demands fit.

        If the budget is spent, the run in progress is yielded as far as it is known, before BudgetSpent.
        """
        at, last = run
        begun: int | None = None
        while at <= last:
            if at >= self.suffices_from:
                yield at if begun is None else begun, last
                return
            if self.budget.is_spent and (at, at + length) not in self._known:
                if begun is not None:
                    yield begun, at - 1
                raise BudgetSpent(at)
            placement = self.find_placement(at, at + length)
            if placement is not None:
                begun = at if begun is None else begun
                at = self._holds_before(placement, at, length)
                continue
            if begun is not None:
                yield begun, at - 1
                begun = None
            ends = self.timeline.next_end(at)
            at = min(self.suffices_from, NEVER if ends is None else ends)
        if begun is not None:
            yield begun, last

    def last_fitting_end(self, start: int, end: int, latest: int) -> int:
        """Return the last end, up to ``latest``, for which the demands fit from ``start`` on, as they do to ``end``.

        BudgetSpent.
        """
        if start >= self.suffices_from:
            return min(latest, *(condition.find_last_end(self.timeline, start, end) for condition in self._conditions))
        ends = [end, *self.timeline.last_ends(end + 1, latest), latest]
        # The longer the window, the less is free: so the ends that fit are the first ones.
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.find_placement(start, ends[middle]) is None:
                high = middle - 1
            else:
                low = middle
        return ends[low]

    def _holds_before(self, placement: Placement, start: int, length: int) -> int:
        """Return the next start at which a placement no longer holds, because another use of its resources begins."""
        met = self.timeline.next_start(placement.resource_ids, start + length + self.timeline.cleaning)
        return NEVER if met is None else met - self.timeline.cleaning - length + 1


def search_openings(
    kinds: Sequence[KindSearch],
    budget: Budget,
    *,
    length: int,
    earliest: int,
    latest: int,
    limit: int,
    last_start: int | None = None,
    allowed: Sequence[Run] | None = None,
) -> Found:
    """Return the earliest openings for ``length`` seconds, from ``earliest`` to ``latest``, the last end.

    ``last_start`` is the last start that is tried, by default the last one in the range; only those of ``allowed`` runs
    are, if there are any given.

    Whole resources and single demands are decided by counting; others at the price of a placement at each instant at
    which something ends, of which there are as many as the budget allows. InvalidInput if a required resource does not
    exist.
    """
    for kind in kinds:
        if any(demand.required for demand in kind.demands):
            # A request that makes no sense is refused, and does not find nothing.
            kind.find_placement(earliest, earliest + length)
    openings: list[Opening] = []
    last = latest - length if last_start is None else last_start
    try:
        for first, until in _find_runs(kinds, length, earliest, last, allowed):
            openings.append(_make_opening(kinds, (first, until), length, latest))
            if len(openings) == limit:
                return Found(tuple(openings), until + 1 if until < last else latest, not budget.is_spent)
    except BudgetSpent as spent:
        return Found(tuple(openings), spent.at, complete=False)
    return Found(tuple(openings), latest, complete=True)


def find_earliest_start(kinds: Sequence[KindSearch], *, length: int, first: int, last: int) -> int | None:
    """Return the first start from ``first`` to ``last`` at which all demands fit for ``length`` seconds.

    BudgetSpent; InvalidInput if a required resource does not exist.
    """
    for begun, until in _intersect_possible_runs(kinds, length, first, last):
        at = begun
        while at <= until:
            missed = next((kind for kind in kinds if not kind.fits(at, at + length)), None)
            if missed is None:
                return at
            ends = missed.timeline.next_end(at)
            at = min(missed.suffices_from, NEVER if ends is None else ends)
    return None


def find_nearest(kinds: Sequence[KindSearch], *, length: int, wanted: int, earliest: int, latest: int) -> int | None:
    """Return the start nearest to the one wanted from which all demands fit for ``length`` seconds, None if none does.

    It lies from ``earliest`` on, and the end is at most ``latest``. Of two that are as near it is the earlier one. If
    the budget is spent, it is the nearest one that was found until then.
    """
    found: int | None = None
    try:
        for first, last in _find_runs(kinds, length, earliest, latest - length):
            start = min(max(first, wanted), last)
            if found is None or abs(start - wanted) < abs(found - wanted):
                found = start
            if last >= wanted:
                break
    except BudgetSpent:
        pass
    return found


def last_fitting_end(kinds: Sequence[KindSearch], start: int, end: int, latest: int) -> int:
    """Return the last end, up to ``latest``, for which all demands fit from ``start`` on, as they do to ``end``."""
    return min((kind.last_fitting_end(start, end, latest) for kind in kinds), default=latest)


def _find_runs(
    kinds: Sequence[KindSearch], length: int, first: int, last: int, allowed: Sequence[Run] | None = None
) -> Iterator[Run]:
    possible = _intersect_possible_runs(kinds, length, first, last)
    for run in possible if allowed is None else intersect_runs(possible, allowed):
        yield from _confirm(kinds, run, length)


def _intersect_possible_runs(kinds: Sequence[KindSearch], length: int, first: int, last: int) -> list[Run]:
    possible: list[Run] = [(first, last)] if first <= last else []
    for kind in kinds:
        possible = intersect_runs(possible, kind.possible_runs(length, first, last)) if possible else []
    return possible


def _confirm(kinds: Sequence[KindSearch], run: Run, length: int) -> Iterator[Run]:
    if not kinds:
        yield run
        return
    for possible in kinds[0].confirm_runs(run, length):
        yield from _confirm(kinds[1:], possible, length)


def _make_opening(kinds: Sequence[KindSearch], run: Run, length: int, latest: int) -> Opening:
    start, last_start = run
    placements = tuple(
        placement for kind in kinds if (placement := kind.find_placement(start, start + length)) is not None
    )
    if len(placements) < len(kinds):
        raise AssertionError(f"counting found a window at {start} that the placement does not")
    until = last_fitting_end(kinds, start, start + length, latest)
    return Opening(start, last_start, None if until >= latest else until, placements)
