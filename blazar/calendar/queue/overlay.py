# SPDX-License-Identifier: Apache-2.0
"""The calendar with what a plan has placed so far, and the search for openings in it."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter

from blazar.calendar import openings
from blazar.calendar.fits import NEVER
from blazar.calendar.openings import Budget, KindSearch
from blazar.calendar.placement import Matching
from blazar.calendar.queue.usage import Totals
from blazar.calendar.queue.values import Calendar, Grant, GrantPart, Inventory, Waiter
from blazar.calendar.timeline import OutsideUses, Timeline, TimelineTerms, Use
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import Anything, Requirement, matches
from blazar.model.resources.resource import Resource, ResourceKind

FOREVER = 253_370_764_800
"""The first second of the year 9999: what is promised until then is promised for ever."""

_by_start = itemgetter(0)

Ids = frozenset[int]
Wanted = tuple[tuple[ResourceKind, Ids], ...]
_Key = tuple[ResourceKind, str, Requirement, object]


class Candidates:
    """The registered resources that each project could have for each demand; each question is answered once."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar
        self._restricted = {
            kind: any(r.authorized_projects is not None for r in inventory.resources)
            for kind, inventory in calendar.items()
        }
        self._matching: dict[tuple[ResourceKind, str, Requirement], Sequence[Resource]] = {}
        self._found: dict[_Key, Sequence[Resource]] = {}
        self._ids: dict[_Key, Ids] = {}

    def matching(self, kind: ResourceKind, project_id: str) -> Matching:
        """Return the function that finds the resources that meet a requirement and are open to a project."""
        inventory = self._calendar.get(kind, Inventory(()))
        project = project_id if self._restricted.get(kind) else ""

        def find(requirement: Requirement) -> Sequence[Resource]:
            key = kind, project, requirement
            found = self._matching.get(key)
            if found is None:
                found = self._matching[key] = _match(inventory, requirement, project)
            return found

        return find

    def candidates_for(self, project_id: str, demand: Demand) -> Sequence[Resource]:
        """Return the candidates for a demand, free or not."""
        key = self._key(project_id, demand)
        if key not in self._found:
            found = self.matching(demand.kind, project_id)(demand.requirement)
            self._found[key] = [r for r in found if r.reservable and demand.is_met_by(r)]
        return self._found[key]

    def candidate_ids(self, project_id: str, demand: Demand) -> Ids:
        """Return the ids of the candidates, which say what two demands compete for."""
        key = self._key(project_id, demand)
        if key not in self._ids:
            self._ids[key] = frozenset(resource.id for resource in self.candidates_for(project_id, demand))
        return self._ids[key]

    def ids_by_kind(self, waiter: Waiter) -> Wanted:
        """Return, by kind, the ids of the candidates for each demand of a request."""
        return tuple((demand.kind, self.candidate_ids(waiter.project_id, demand)) for demand in waiter.demands)

    def _key(self, project_id: str, demand: Demand) -> _Key:
        project = project_id if self._restricted.get(demand.kind) else ""
        return demand.kind, project, demand.requirement, demand.hardware


def count_totals(calendar: Calendar) -> Totals:
    """Return what a calendar has for each demand, as the weighing of shares needs it."""
    return Candidates(calendar).candidates_for


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for: all ``demands`` for ``length`` seconds, or for ``shortest``, from ``first`` to ``last``."""

    project_id: str
    demands: tuple[Demand, ...]
    length: int
    shortest: int
    first: int
    last: int


_Searches = Sequence[tuple[KindSearch, Sequence[int]]]
"""A search for each kind, with the numbers of its demands."""


class Overlay:
    """The calendar of a plan under way: grants are added and removed, and nothing is searched for anywhere else."""

    def __init__(self, calendar: Calendar, grants: Iterable[Grant], now: int, candidates: Candidates) -> None:
        self._calendar = calendar
        self._now = now
        self._candidates = candidates
        self._uses: dict[ResourceKind, dict[int, list[Use]]] = {
            kind: {
                id_: sorted((use for use in uses if use[1] > now), key=_by_start)
                for id_, uses in inventory.uses.items()
            }
            for kind, inventory in calendar.items()
        }
        for grant in grants:
            self.add(grant)

    def add(self, grant: Grant) -> None:
        """Add the uses of a grant."""
        for part in grant.parts:
            uses = self._uses.setdefault(part.kind, {}).setdefault(part.resource_id, [])
            insort(uses, self._use(grant, part), key=_by_start)

    def remove(self, grant: Grant) -> None:
        """Remove the uses of a grant that has been added."""
        for part in grant.parts:
            uses = self._uses[part.kind]
            uses[part.resource_id].remove(self._use(grant, part))
            if not uses[part.resource_id]:
                del uses[part.resource_id]

    def find_earliest_start(self, asked: Asked) -> int | None:
        """Return the earliest start at which the least fits, None if there is none."""
        return _find_earliest(self._searches(asked.demands, asked.project_id), asked)

    def first_grant(self, lease_id: str, asked: Asked) -> Grant | None:
        """Return what a request gets from its earliest start on: as much as possible, then for as long."""
        demands, searches = asked.demands, self._searches(asked.demands, asked.project_id)
        start = _find_earliest(searches, asked)
        if start is None:
            return None
        end = start + asked.shortest
        parts = _place_demands(searches, demands, start, end)
        if asked.shortest < asked.length:
            least = Grant(lease_id, start, end, parts)
            demands = tuple(_fix_count(demand, least.count(index)) for index, demand in enumerate(demands))
            searches = self._searches(demands, asked.project_id)
            end = openings.last_fitting_end([kind for kind, _ in searches], start, end, start + asked.length)
            parts = _place_demands(searches, demands, start, end)
        return Grant(lease_id, start, end, parts)

    def _searches(self, demands: Sequence[Demand], project_id: str) -> _Searches:
        """Return a search for each kind, with the numbers of its demands."""
        numbers: dict[ResourceKind, list[int]] = defaultdict(list)
        for number, demand in enumerate(demands):
            numbers[demand.kind].append(number)
        return [
            (self._search(kind, [demands[number] for number in some], project_id), some)
            for kind, some in numbers.items()
        ]

    def _search(self, kind: ResourceKind, demands: Sequence[Demand], project_id: str) -> KindSearch:
        inventory = self._calendar.get(kind, Inventory(()))
        without_amounts = all(demand.whole for demand in demands)
        terms = TimelineTerms(self._now, inventory.cleaning, without_amounts)
        timeline = Timeline(self._uses.get(kind, {}), terms, OutsideUses(inventory.late))
        matching = self._candidates.matching(kind, project_id)
        return KindSearch(
            demands,
            timeline,
            inventory.resources,
            matching,
            Budget(NEVER),
            inventory.strategy,
            asleep=inventory.asleep,
        )

    def _use(self, grant: Grant, part: GrantPart) -> Use:
        inventory = self._calendar.get(part.kind)
        return grant.start, grant.end + (inventory.cleaning if inventory else 0), part.count, part.per_instance


class Shapes:
    """From which starts on a request can fit at all, as far as earlier searches in the same plan tell.

    While a plan only adds, what did not fit before a start will not fit there, nor will more of the same, nor the same
    for longer.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._known: dict[object, list[tuple[tuple[int, ...], int, int, int]]] = defaultdict(list)

    def first_to_try(self, asked: Asked) -> int:
        """Return the first start that must be tried."""
        first = asked.first
        least = _least_counts(asked.demands)
        for counts, length, since, until in self._known.get(self._key(asked), ()):
            if since <= first < until and length <= asked.shortest and all(map(int.__le__, counts, least)):
                first = until
        return first

    def learn_no_fit_before(self, asked: Asked, start: int | None) -> None:
        """Remember that nothing fits before the start that was found, or in the whole range."""
        until = min(asked.last, FOREVER) + 1 if start is None else start
        if until > asked.first:
            self._known[self._key(asked)].append((_least_counts(asked.demands), asked.shortest, asked.first, until))

    def _key(self, asked: Asked) -> object:
        """Return all that decides where a request fits, except how much and how long."""
        return tuple(
            (
                demand.kind,
                self._candidates.candidate_ids(asked.project_id, demand),
                demand.per_instance,
                demand.affinity,
                demand.required,
                demand.topology,
                demand.pinned,
                tuple(sorted(demand.kept.items())),
                demand.entitled,
            )
            for demand in asked.demands
        )


def make_question(waiter: Waiter, now: int) -> Asked:
    """Return what is searched for a request from now on."""
    first = max(now, waiter.earliest)
    return Asked(waiter.project_id, waiter.demands, waiter.length, waiter.shortest, first, waiter.last_start)


def ask_earlier(promised: Waiter, grant: Grant, now: int) -> Asked:
    """Return what is searched for a promise that may become earlier: as long as it is, and not fewer."""
    demands = tuple(
        replace(demand, min_count=count, max_count=max(count, demand.max_count))
        for index, demand in enumerate(promised.demands)
        for count in (grant.count(index),)
    )
    first = max(now + promised.notice, promised.earliest)
    length = grant.end - grant.start
    return Asked(promised.project_id, demands, length, length, first, grant.start - 1)


def _find_earliest(searches: _Searches, asked: Asked) -> int | None:
    last = min(asked.last, FOREVER)
    return openings.find_earliest_start(
        [kind for kind, _ in searches], length=asked.shortest, first=asked.first, last=last
    )


def _place_demands(searches: _Searches, demands: Sequence[Demand], start: int, end: int) -> tuple[GrantPart, ...]:
    found = []
    for kind, numbers in searches:
        placement = kind.find_placement(start, end)
        if placement is None:
            raise AssertionError(f"an opening was found at {start} in which the placement finds nothing")
        for number, assignments in zip(numbers, placement.assignments, strict=True):
            demand = demands[number]
            found += [
                GrantPart(number, demand.kind, assignment.resource_id, assignment.count, demand.per_instance)
                for assignment in assignments
            ]
    return tuple(found)


def _least_counts(demands: Iterable[Demand]) -> tuple[int, ...]:
    return tuple(demand.min_count for demand in demands)


def _fix_count(demand: Demand, count: int) -> Demand:
    return replace(demand, min_count=count, max_count=count)


def _match(inventory: Inventory, requirement: Requirement, project: str) -> Sequence[Resource]:
    if inventory.matching is not None:
        found = inventory.matching(requirement)
    elif requirement == Anything():
        found = inventory.resources
    else:
        found = [r for r in inventory.resources if matches(requirement, r.properties)]
    return [r for r in found if r.is_open_to(project)] if project else found
