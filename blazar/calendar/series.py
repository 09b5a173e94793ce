# SPDX-License-Identifier: Apache-2.0
"""Plans a series: which of its occurrences fit, one after the other on one calendar.

What the plan has placed is in the way of all that it places later, as if it had been booked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from blazar.calendar.occupancy import Snapshot
from blazar.calendar.openings import Budget, KindSearch, find_nearest
from blazar.calendar.placement import Placement, place
from blazar.calendar.timeline import Timeline, Use, epoch, from_epoch
from blazar.model.base.clock import spell
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.series.checks import Fit
from blazar.model.series.recurrence import Occurrence

CHUNK = 16
"""Occurrences for which a part of the calendar is taken out: to search all of it for each would take minutes."""

MOST_OPENINGS = 50
"""The number of occurrences that do not fit for which an opening is looked for: the earliest of them."""


@dataclass(frozen=True, slots=True)
class PlannedOccurrence:
    """An occurrence with its placements, one for each kind; or with the ``reason`` why it does not fit.

    ``opening`` is the window of the same length that is nearest to it, between the occurrences before and after it. All
    openings of a plan fit together, beside what it places.
    """

    occurrence: Occurrence
    placements: tuple[Placement, ...] = ()
    reason: str | None = None
    opening: Window | None = None

    @property
    def fits(self) -> bool:
        """Return whether the occurrence can be booked."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """What becomes of each occurrence of a series, in the order in which they start."""

    fit: Fit
    occurrences: tuple[PlannedOccurrence, ...]

    @property
    def to_book(self) -> tuple[PlannedOccurrence, ...]:
        """Return what is to be booked: all that fit, or nothing if one does not and the series is booked as a whole."""
        fitting = tuple(occurrence for occurrence in self.occurrences if occurrence.fits)
        return () if self.fit is Fit.ALL and len(fitting) < len(self.occurrences) else fitting


def plan_series(
    occurrences: Sequence[Occurrence], kinds: Sequence[KindSearch], fit: Fit, budget: Budget, *, latest: int
) -> SeriesPlan:
    """Plan occurrences, in the order in which they start, each with all demands of ``kinds``.

    The timelines of the kinds have what is promised to others up to ``latest``, before which all occurrences end. The
    budget is for openings; if it is spent, occurrences are without. The error of its check; InvalidInput if a required
    resource does not exist.
    """
    calendar = _Calendar(kinds)
    planned: list[PlannedOccurrence] = []
    for first in range(0, len(occurrences), CHUNK):
        some = occurrences[first : first + CHUNK]
        start, end = epoch(min(o.start for o in some)), epoch(max(o.end for o in some))
        if end > latest:
            raise ValueError(f"an occurrence ends after the calendar that was read: {some}")
        part = calendar.cut_to(start, end)
        for occurrence in some:
            budget.check()
            planned.append(part.place_occurrence(occurrence))
        calendar.add_placed_of(part)
    # Only now is it known what else the plan places: an opening must not take it.
    return SeriesPlan(fit, tuple(_add_openings(planned, calendar, budget, latest)))


class _Calendar:
    """The timelines of all kinds, with what has been placed so far: ``placed`` has the uses of each kind."""

    def __init__(self, kinds: Sequence[KindSearch], timelines: Sequence[Timeline] | None = None) -> None:
        self._kinds = kinds
        self._timelines = [kind.timeline for kind in kinds] if timelines is None else list(timelines)
        self._placed: list[dict[int, list[Use]]] = [defaultdict(list) for _ in kinds]
        self.now = max((timeline.now for timeline in self._timelines), default=0)

    def cut_to(self, start: int, end: int) -> _Calendar:
        """Return the calendar of a part of the range."""
        return _Calendar(self._kinds, [timeline.narrow(start, end) for timeline in self._timelines])

    def add_placed_of(self, part: _Calendar) -> None:
        """Add what has been placed on a part."""
        for number, placed in enumerate(part._placed):
            self._timelines[number] = self._timelines[number].add_uses(placed)

    def place_occurrence(self, occurrence: Occurrence) -> PlannedOccurrence:
        """Place an occurrence if it fits, and add it to the timelines."""
        window = occurrence.window
        if window is None:
            sentence = "the clocks of its zone change on that day, and leave no time between its start and its end"
            return PlannedOccurrence(occurrence, reason=sentence)
        start, end = epoch(window.start), epoch(window.end)
        if start < self.now:
            return PlannedOccurrence(occurrence, reason=f"its start, {spell(window.start)} UTC, has passed")
        try:
            placements = tuple(
                place(
                    kind.demands,
                    Snapshot(kind.resources, timeline.occupancy(start, end)),
                    strategy=kind.strategy,
                    seed=kind.seed,
                    matching=kind.matching,
                )
                for kind, timeline in zip(self._kinds, self._timelines, strict=True)
            )
        except NotEnoughResources as error:
            return PlannedOccurrence(occurrence, reason=error.public or error.message)
        self._add_placements(placements, start, end)
        return PlannedOccurrence(occurrence, placements)

    def take_opening(self, wanted: int, length: int, earliest: int, latest: int, budget: Budget) -> Window | None:
        """Return the window nearest to a start, and add it to the timelines; None if none is found."""
        searches = [
            KindSearch(kind.demands, timeline, kind.resources, kind.matching, budget, kind.strategy, kind.seed)
            for kind, timeline in zip(self._kinds, self._timelines, strict=True)
        ]
        found = find_nearest(searches, length=length, wanted=wanted, earliest=max(earliest, self.now), latest=latest)
        if found is None:
            return None
        placements = [search.place(found, found + length) for search in searches]
        self._add_placements(placements, found, found + length)
        return Window(from_epoch(found), from_epoch(found + length))

    def _add_placements(self, placements: Sequence[Placement], start: int, end: int) -> None:
        for number, (kind, placement) in enumerate(zip(self._kinds, placements, strict=True)):
            timeline = self._timelines[number]
            uses = _list_uses(kind.demands, placement, timeline, start, end)
            self._timelines[number] = timeline.add_uses(uses)
            for resource_id, added in uses.items():
                self._placed[number][resource_id] += added


def _list_uses(
    demands: Sequence[Demand], placement: Placement, timeline: Timeline, start: int, end: int
) -> Mapping[int, Sequence[Use]]:
    """Return what a placement uses of each resource in a window, with the cleaning after it."""
    found: dict[int, list[Use]] = defaultdict(list)
    for demand, assignments in zip(demands, placement.assignments, strict=True):
        for assignment in assignments:
            found[assignment.resource_id].append(
                (start, end + timeline.cleaning, assignment.count, demand.per_instance)
            )
    return found


def _add_openings(
    planned: Sequence[PlannedOccurrence], calendar: _Calendar, budget: Budget, latest: int
) -> list[PlannedOccurrence]:
    """Return the planned occurrences, those that do not fit with the openings nearest to them."""
    found = list(planned)
    unfit = [number for number, o in enumerate(planned) if not o.fits and o.occurrence.window is not None]
    for number in unfit[:MOST_OPENINGS]:
        if budget.is_spent:
            break
        occurrence = planned[number].occurrence
        before = epoch(planned[number - 1].occurrence.end) if number else calendar.now
        after = epoch(planned[number + 1].occurrence.start) if number + 1 < len(planned) else latest
        start = epoch(occurrence.start)
        opening = calendar.take_opening(start, epoch(occurrence.end) - start, before, after, budget)
        found[number] = replace(planned[number], opening=opening)
    return found
