# SPDX-License-Identifier: Apache-2.0
"""Placement: which resources to take for all demands of a lease together.

Whole resources are a bipartite matching between demands (each standing for ``min_count`` seats) and resources;
it is solved exactly with augmenting paths (Berge, 1957), each of which is found breadth first. Units that share
resources are placed in ``count``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from blazar.calendar.occupancy import Occupancy
from blazar.calendar.shared import SharedSearch
from blazar.calendar.snapshot import Snapshot
from blazar.calendar.strategies import Strategy, in_order
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput, NotEnoughResources
from blazar.model.requirements import Anything, Requirement, matches
from blazar.model.resource import Resource

Matching = Callable[[Requirement], Sequence[Resource]]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Units of one resource for one demand."""

    resource_id: int
    count: int


@dataclass(frozen=True, slots=True)
class Placement:
    """For every demand, in the order they were given, what it gets."""

    assignments: tuple[tuple[Assignment, ...], ...]

    @property
    def resource_ids(self) -> frozenset[int]:
        """All resources that are taken."""
        return frozenset(assignment.resource_id for assignments in self.assignments for assignment in assignments)


def place(
    demands: Sequence[Demand],
    snapshot: Snapshot,
    *,
    strategy: Strategy = Strategy.PACK,
    seed: int = 0,
    matching: Matching | None = None,
) -> Placement:
    """Place all demands so that each gets at least its minimum, and then as much as there is up to its maximum.

    Whole resources are shared with nobody, neither inside nor outside the lease. ``matching`` may give the
    resources that meet a requirement faster than by trying each. Raises NotEnoughResources with the counts of what
    there is, or InvalidInput if what is required is not there at all. Exact for whole resources; for shared ones within
    the bounds of ``count``.
    """
    find = matching or (lambda requirement: _matching(snapshot.resources, requirement))
    if any(demand.required for demand in demands):
        demands = _with_required(demands, snapshot, find)
    only_whole = all(demand.whole for demand in demands)
    # What the others take of a demand's first candidates, it finds among as many that follow.
    enough = sum(demand.max_count for demand in demands) if only_whole else None
    candidates = [_candidates(demand, snapshot, strategy, seed, find, enough) for demand in demands]
    if only_whole:
        return _place_whole(demands, candidates, snapshot, find)
    return _place_mixed(demands, candidates, snapshot, find)


def _matching(resources: Sequence[Resource], requirement: Requirement) -> Sequence[Resource]:
    if requirement == Anything():
        return resources
    return [resource for resource in resources if matches(requirement, resource.properties)]


def _eligible(demand: Demand, find: Matching) -> Sequence[Resource]:
    """Return the resources that meet the demand's requirement and have the traits it needs."""
    found = find(demand.requirement)
    return [r for r in found if demand.traits.met_by(r.traits)] if demand.traits else found


def _with_required(demands: Sequence[Demand], snapshot: Snapshot, find: Matching) -> Sequence[Demand]:
    """Return the demands with what they require by name pinned by id, if it can be had."""
    claimed = {id_ for demand in demands for id_ in demand.pinned}
    resolved = []
    for demand in demands:
        named = {r.name: r for r in _eligible(demand, find) if r.name in demand.required} if demand.required else {}
        _check_required(demand, named, claimed - demand.pinned, snapshot)
        ids = frozenset(r.id for r in named.values())
        claimed |= ids
        resolved.append(replace(demand, required=frozenset(), pinned=demand.pinned | ids))
    return resolved


def _check_required(demand: Demand, named: Mapping[str, Resource], claimed: Set[int], snapshot: Snapshot) -> None:
    noun = demand.kind.noun
    if missing := sorted(demand.required - named.keys()):
        raise InvalidInput(f"{', '.join(missing)}: no such {noun} is registered; require others, or fewer")
    reasons: tuple[tuple[str, Callable[[Resource], bool]], ...] = (
        ("is required or in use by another reservation of the lease", lambda r: r.id in claimed),
        ("is not reservable at present", lambda r: not r.reservable),
        ("is promised to another lease in that time", lambda r: not snapshot.occupancy.is_free(r.id)),
    )
    for reason, holds in reasons:
        if names := sorted(name for name, resource in named.items() if holds(resource)):
            raise NotEnoughResources(f"{', '.join(names)} {reason}; require another {noun}, or none")


def _candidates(
    demand: Demand, snapshot: Snapshot, strategy: Strategy, seed: int, find: Matching, enough: int | None
) -> list[Resource]:
    """Return what the demand could take, in the order in which it would: pinned, preferred, by strategy.

    Beyond ``enough`` of those that come by strategy the order may be any.
    """
    occupancy = snapshot.occupancy
    out = occupancy.taken.union(occupancy.peaks, demand.pinned) if demand.whole else occupancy.taken
    fitting = [r for r in _eligible(demand, find) if r.reservable and r.id not in out]
    ordered = _roomiest(in_order(fitting, strategy, seed), occupancy, None if demand.preferred else enough)
    if strategy is Strategy.PACK and not demand.whole:
        # What is shared already is filled up first, so that whole resources stay free for those who need them.
        ordered = sorted(ordered, key=lambda r: r.id not in occupancy.peaks)
    if demand.preferred:
        ordered = sorted(ordered, key=lambda r: r.id not in demand.preferred)
    if not demand.pinned:
        return list(ordered)
    # Pinned resources are in use: they stay, whatever their properties say by now.
    pinned = [r for r in snapshot.resources if r.id in demand.pinned]
    return [*pinned, *ordered]


def _roomiest(ordered: Sequence[Resource], occupancy: Occupancy, enough: int | None) -> Sequence[Resource]:
    """Put resources first that nobody uses before or after, and then those that are free longest beside the window.

    So leases that run can be prolonged, and so can this one. Where nobody comes further than to the first ``enough``,
    the others are in no order.
    """
    room = occupancy.room
    used = frozenset(room)
    unused = [r for r in ordered if r.id not in used]
    others = [r for r in ordered if r.id in used]
    if enough is None or len(unused) < enough:
        others.sort(key=lambda r: room[r.id], reverse=True)
    return unused + others


def _place_whole(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    for index, demand in enumerate(demands):
        _check_pinned(index, demands, candidates[index], snapshot)
        if len(candidates[index]) < demand.min_count:
            raise _not_enough(index, demands, len(candidates[index]), find)
    if len(demands) == 1:
        return Placement((_assignments(candidates[0][: demands[0].max_count]),))
    owner = _matched(demands, candidates, find)
    return Placement(
        tuple(_assignments([r for r in candidates[index] if owner.get(r.id) == index]) for index in range(len(demands)))
    )


def _matched(demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], find: Matching) -> Mapping[int, int]:
    """Return resource id → demand index, so that minima are met and the total is as large as it can be."""
    seats = _Seats(demands, candidates)
    # The choosiest demand first: fewer seats have to be moved later.
    order = sorted(range(len(demands)), key=lambda i: len(candidates[i]))
    for index in order:
        while seats.held[index] < demands[index].min_count:
            if not seats.add(index):
                together = len({r.id for resources in candidates for r in resources})
                raise _not_enough(index, demands, together, find, jointly=True)
    growing = order
    while growing:
        # Who can not grow now never can again: every further seat leaves others at least as little choice.
        growing = [index for index in growing if seats.held[index] < demands[index].max_count and seats.add(index)]
    return seats.owner


class _Seats:
    """Whole resources given to demands, one at a time along augmenting paths."""

    def __init__(self, demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]]) -> None:
        self.owner: dict[int, int] = {}
        self.held = [0] * len(demands)
        self._candidates = [[r.id for r in resources] for resources in candidates]
        # How many candidates of each demand, from the first on, have an owner: those never become free again.
        self._owned = [0] * len(demands)
        for index, demand in enumerate(demands):
            for resource_id in demand.pinned:
                self.owner[resource_id] = index
                self.held[index] += 1
        self._fixed = frozenset(self.owner)

    def add(self, index: int) -> bool:
        """Give a demand one more resource, for which others may have to change one for another; tell whether it got it.

        A breadth-first search over demands, each of which is visited once: the path is one of the shortest.
        """
        came_by: dict[int, tuple[int, int]] = {}
        queue = [index]
        for at in queue:
            free = self._free(at)
            if free is not None:
                self._move(index, at, free, came_by)
                return True
            for resource_id in self._candidates[at]:
                if len(queue) == len(self.held):
                    break
                owner = self.owner[resource_id]
                if owner != index and owner not in came_by and resource_id not in self._fixed:
                    came_by[owner] = at, resource_id
                    queue.append(owner)
        return False

    def _free(self, index: int) -> int | None:
        candidates = self._candidates[index]
        for position in range(self._owned[index], len(candidates)):
            if candidates[position] not in self.owner:
                return candidates[position]
            self._owned[index] = position + 1
        return None

    def _move(self, index: int, last: int, free: int, came_by: Mapping[int, tuple[int, int]]) -> None:
        """Let the last demand of a path take what is free, and each before it what the next one had."""
        self.held[index] += 1
        self.owner[free] = last
        while last != index:
            last, resource_id = came_by[last]
            self.owner[resource_id] = last


def _place_mixed(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    for index, demand in enumerate(demands):
        if demand.whole:
            _check_pinned(index, demands, candidates[index], snapshot)
    search = SharedSearch(demands, candidates, snapshot)
    if lost := search.overdrawn():
        raise NotEnoughResources(
            f"{', '.join(lost)} is in use by the reservation and too much of it is promised to other leases in "
            f"that time"
        )
    if not search.fill():
        rooms = [search.room(index) for index in range(len(demands))]
        worst = max(range(len(demands)), key=lambda i: demands[i].min_count - rooms[i])
        raise _not_enough(worst, demands, rooms[worst], find, jointly=len(demands) > 1)
    search.top_up()
    return Placement(
        tuple(
            tuple(Assignment(resource_id, count) for resource_id, count in search.given(index).items())
            for index in range(len(demands))
        )
    )


def _assignments(resources: Sequence[Resource]) -> tuple[Assignment, ...]:
    return tuple(Assignment(resource.id, 1) for resource in resources)


def _check_pinned(index: int, demands: Sequence[Demand], candidates: Sequence[Resource], snapshot: Snapshot) -> None:
    """Check that a reservation in use can keep what it has for the whole window."""
    pinned = demands[index].pinned
    lost = [r.name for r in candidates if r.id in pinned and not snapshot.occupancy.is_free(r.id)]
    if lost:
        raise NotEnoughResources(
            f"{', '.join(sorted(lost))} is in use by the reservation and promised to another lease in that time"
        )


def _not_enough(
    index: int, demands: Sequence[Demand], free: int, find: Matching, *, jointly: bool = False
) -> NotEnoughResources:
    demand = demands[index]
    matching = len(_eligible(demand, find))
    which = f"reservation {index + 1} of the lease: " if len(demands) > 1 else ""
    together = " beside the lease's other reservations" if jointly else ""
    if demand.whole:
        text = f"at least {demand.min_count} asked for, {matching} match, {free} of them free in that time{together}"
    else:
        text = f"{demand.min_count} units asked for, {matching} {demand.kind.noun}s match, {free} units fit{together}"
    return NotEnoughResources(f"Not enough {demand.kind.noun}s available: {which}{text}.")
