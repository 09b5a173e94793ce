# SPDX-License-Identifier: Apache-2.0
"""Placement: which resources to take for all demands of a lease together.

Whole resources are a bipartite matching between demands (each with ``min_count`` places) and resources, which is solved
exactly in ``seats``. Instances that share resources are placed in ``shared``; how resources lie to each other is in
``topology``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import attrgetter

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.seats import Seats
from blazar.calendar.shared import SharedSearch
from blazar.calendar.topology import count_units, fix_groups, list_combinations, take_spread
from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.base.values import dataclass, replace
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import describe_topology
from blazar.model.resources.requirements import Anything, Requirement, matches
from blazar.model.resources.resource import Resource, noun

Matching = Callable[[Requirement], Sequence[Resource]]


class Strategy(StrEnum):
    """How to choose among resources that fit; each strategy is deterministic for a seed."""

    PACK = "pack"
    """The smallest resource that fits, so that large ones stay free for those who need them."""
    SPREAD = "spread"
    """The largest resource that fits, so that each user has spare capacity."""
    COMPACT = "compact"
    """The one with the shortest gap, so that few are used at a time, and the others can sleep."""
    RANDOM = "random"
    """Any that fits, by a seeded shuffle, also on a calendar in use."""
    SCATTER = "scatter"
    """The roomiest, of those any, by a seeded shuffle: after a lost race competing requests choose differently."""


def order_resources(resources: Iterable[Resource], strategy: Strategy, seed: int) -> Sequence[Resource]:
    """Return resources of one tier, given smallest first, in the order in which the strategy takes them."""
    ordered = list(resources)
    if strategy in (Strategy.RANDOM, Strategy.SCATTER):
        random.Random(seed).shuffle(ordered)
    elif strategy is Strategy.SPREAD:
        ordered.reverse()
    return ordered


@dataclass(frozen=True, slots=True)
class Assignment:
    """A count of instances on one resource for one demand."""

    resource_id: int
    count: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The assignments of every demand, in the order of the demands."""

    assignments: tuple[tuple[Assignment, ...], ...]

    @property
    def resource_ids(self) -> frozenset[int]:
        """Return all resources that are taken."""
        return frozenset(assignment.resource_id for assignments in self.assignments for assignment in assignments)


def place(
    demands: Sequence[Demand],
    snapshot: Snapshot,
    *,
    strategy: Strategy = Strategy.PACK,
    seed: int = 0,
    matching: Matching | None = None,
    scarce_last: bool = True,
) -> Placement:
    """Place all demands so that each gets at least its minimum, and up to its maximum if resources allow.

    Whole resources are not shared, neither inside nor outside the lease. ``matching`` may return the resources that
    meet a requirement faster than by testing each one. ``scarce_last``: those of a higher tier are taken after those of
    a lower one, and the strategy chooses within a tier; it changes what is taken, not what can be placed. Raise
    NotEnoughResources with the counts of matching and free resources, or InvalidInput if a required resource does not
    exist. Exact for whole resources; for shared ones up to the search limit of ``shared``.
    """
    find = matching or (lambda requirement: _filter_matching(snapshot.resources, requirement))
    if any(demand.required for demand in demands):
        demands = _add_required(demands, snapshot, find)
    only_whole = all(demand.whole for demand in demands)
    # Even if other demands take some of its first candidates, a demand finds enough among as many more.
    lies = any(demand.topology for demand in demands)
    enough = sum(demand.max_count for demand in demands) if only_whole and not lies else None
    order = _Order(strategy, seed, snapshot.occupancy, scarce_last)
    candidates = [_list_candidates(demand, snapshot, order, find, enough) for demand in demands]
    if lies:
        return _place_lying(demands, candidates, snapshot, find)
    if only_whole:
        return _place_whole(demands, candidates, snapshot, find)
    try:
        return _place_mixed(demands, candidates, snapshot, find)
    except NotEnoughResources:
        if not scarce_last or not any(map(_has_tiers, candidates)):
            raise
        # The search is bounded: in the order of the strategy alone it may find what it did not in this one.
        plain = replace(order, scarce_last=False)
        candidates = [_list_candidates(demand, snapshot, plain, find, enough) for demand in demands]
        return _place_mixed(demands, candidates, snapshot, find)


def _filter_matching(resources: Sequence[Resource], requirement: Requirement) -> Sequence[Resource]:
    if requirement == Anything():
        return resources
    return [resource for resource in resources if matches(requirement, resource.properties)]


def list_eligible(demand: Demand, find: Matching) -> Sequence[Resource]:
    """Return the resources that meet the demand's requirement and have the hardware for it."""
    found = find(demand.requirement)
    return [r for r in found if demand.is_met_by(r)] if demand.hardware else found


def _add_required(demands: Sequence[Demand], snapshot: Snapshot, find: Matching) -> Sequence[Demand]:
    """Return the demands with the resources that they require by name pinned by id; raise an error if one cannot be."""
    claimed = {id_ for demand in demands for id_ in demand.pinned}
    resolved = []
    for demand in demands:
        named = {r.name: r for r in list_eligible(demand, find) if r.name in demand.required} if demand.required else {}
        _check_required(demand, named, claimed - demand.pinned, snapshot)
        ids = frozenset(r.id for r in named.values())
        claimed |= ids
        resolved.append(replace(demand, required=frozenset(), pinned=demand.pinned | ids))
    return resolved


def _check_required(demand: Demand, named: Mapping[str, Resource], claimed: Set[int], snapshot: Snapshot) -> None:
    word = noun(demand.kind)
    if missing := sorted(demand.required - named.keys()):
        sentence = f"{', '.join(missing)}: no such {word} is registered; require others, or fewer"
        raise InvalidInput(sentence, code="unknown_reference")
    reasons: tuple[tuple[str, Callable[[Resource], bool]], ...] = (
        ("is required or in use by another reservation of the lease", lambda r: r.id in claimed),
        ("is not reservable at present", lambda r: not r.reservable),
        ("is promised to another lease in that time", lambda r: not snapshot.occupancy.is_free(r.id)),
    )
    for reason, holds in reasons:
        if names := sorted(name for name, resource in named.items() if holds(resource)):
            raise NotEnoughResources(f"{', '.join(names)} {reason}; require another {word}, or none")


@dataclass(frozen=True, slots=True)
class _Order:
    """In which order resources are candidates."""

    strategy: Strategy
    seed: int
    occupancy: Occupancy
    scarce_last: bool

    def sort(self, fitting: Sequence[Resource], enough: int | None) -> Sequence[Resource]:
        """Return resources by tier, and in each by strategy; after the first ``enough`` the order is arbitrary."""
        if not self.scarce_last or not _has_tiers(fitting):
            return self._sort_alike(fitting, enough)
        ordered: list[Resource] = []
        for alike in [list(group) for _, group in groupby(fitting, key=attrgetter("tier"))]:
            left = None if enough is None else enough - len(ordered)
            ordered += alike if left is not None and left <= 0 else self._sort_alike(alike, left)
        return ordered

    def _sort_alike(self, fitting: Sequence[Resource], enough: int | None) -> Sequence[Resource]:
        ordered = order_resources(fitting, self.strategy, self.seed)
        if self.strategy is Strategy.COMPACT:
            return take_tightest(ordered, self.occupancy)
        return ordered if self.strategy is Strategy.RANDOM else take_roomiest(ordered, self.occupancy, enough)


def _has_tiers(ordered: Sequence[Resource]) -> bool:
    """Return whether resources in the order of a catalog are of more than one tier."""
    return bool(ordered) and ordered[0].tier != ordered[-1].tier


def _list_candidates(
    demand: Demand, snapshot: Snapshot, order: _Order, find: Matching, enough: int | None
) -> list[Resource]:
    """Return the candidates of a demand in order of preference: pinned, preferred, awake, then by tier and strategy.

    After the first ``enough`` of those, the order is arbitrary.
    """
    occupancy = snapshot.occupancy
    out = occupancy.taken.union(occupancy.peaks, demand.pinned) if demand.whole else occupancy.taken
    fitting = [r for r in list_eligible(demand, find) if r.id not in out and r.reservable]
    ordered = order.sort(fitting, None if demand.preferred or snapshot.asleep else enough)
    if order.strategy in (Strategy.PACK, Strategy.COMPACT) and not demand.whole:
        # Fill shared resources first, so that whole ones stay free for those who need them.
        ordered = sorted(ordered, key=lambda r: r.id not in occupancy.peaks)
    if snapshot.asleep:
        ordered = sorted(ordered, key=lambda r: r.id in snapshot.asleep)
    if demand.preferred:
        ordered = sorted(ordered, key=lambda r: r.id not in demand.preferred)
    if not demand.pinned:
        return list(ordered)
    # Pinned resources are in use: they stay, whatever their properties are now.
    pinned = [r for r in snapshot.resources if r.id in demand.pinned]
    return [*pinned, *ordered]


def take_roomiest(ordered: Sequence[Resource], occupancy: Occupancy, enough: int | None) -> Sequence[Resource]:
    """Sort first the resources that are unused before and after the window, then those with the longest gap beside it.

    So that active leases can be extended, and so can this one. If the first ``enough`` suffice, the rest is not sorted.
    """
    room = occupancy.room
    used = frozenset(room)
    unused = [r for r in ordered if r.id not in used]
    others = [r for r in ordered if r.id in used]
    if enough is None or len(unused) < enough:
        others.sort(key=lambda r: room[r.id], reverse=True)
    return unused + others


def take_tightest(ordered: Sequence[Resource], occupancy: Occupancy) -> Sequence[Resource]:
    """Sort first the resources with the shortest gap beside the window, and last those that are not used otherwise."""
    room = occupancy.room
    used = frozenset(room)
    others = sorted((r for r in ordered if r.id in used), key=lambda r: room[r.id])
    return others + [r for r in ordered if r.id not in used]


def _place_whole(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    _check_whole(demands, candidates, snapshot, find)
    if len(demands) == 1:
        return Placement((_make_assignments(candidates[0][: demands[0].max_count]),))
    return _make_placement(demands, candidates, _match_demands(demands, candidates, find))


def _check_whole(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> None:
    """Check that each demand of whole resources can keep what it has, and alone has enough. NotEnoughResources."""
    for index, demand in enumerate(demands):
        if demand.whole:
            _check_pinned(index, demands, candidates[index], snapshot)
            if len(candidates[index]) < demand.min_count:
                raise _not_enough_error(index, demands, len(candidates[index]), find)


def _place_lying(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    """Place demands of which some say how their resources lie to each other."""
    _check_whole(demands, candidates, snapshot, find)
    for choices in list_combinations(demands, candidates, partial(_can_have, demands)):
        fixed = [fix_groups(demand, choice) for demand, choice in zip(demands, choices, strict=True)]
        with suppress(NotEnoughResources):
            if all(demand.whole for demand in demands):
                return _make_placement(fixed, choices, _match_demands(fixed, choices, find))
            spread = [take_spread(demand, choice) for demand, choice in zip(fixed, choices, strict=True)]
            return _place_mixed(fixed, spread, snapshot, find)
    raise _misplaced_error(demands, candidates, find)


def _can_have(demands: Sequence[Demand], choices: Mapping[int, Sequence[Resource]]) -> bool:
    """Return whether the demands of whole resources among some get their minimum of these choices."""
    some = [(fix_groups(demands[i], choice), choice) for i, choice in choices.items() if demands[i].whole]
    seats = Seats([demand for demand, _ in some], [choice for _, choice in some])
    return all(seats.fill(index, demand.min_count) for index, (demand, _) in enumerate(some))


def _misplaced_error(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], find: Matching
) -> NotEnoughResources:
    """Return what says of which demand too few lie as it asks, or that the demands are in each other's way."""
    for index, (demand, some) in enumerate(zip(demands, candidates, strict=True)):
        lying = count_units(demand, some)
        if lying < demand.min_count:
            return _not_enough_error(index, demands, len(some), find, lying=lying)
    index = next(index for index, demand in enumerate(demands) if demand.topology)
    return _not_enough_error(index, demands, len(candidates[index]), find, others=" beside")


def _make_placement(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], owner: Mapping[int, int]
) -> Placement:
    return Placement(
        tuple(
            _make_assignments([r for r in candidates[index] if owner.get(r.id) == index])
            for index in range(len(demands))
        )
    )


def _match_demands(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], find: Matching
) -> Mapping[int, int]:
    """Return resource id → demand index, so that all minimums are met and the total is maximal."""
    seats = Seats(demands, candidates)
    # Most constrained demand first: fewer assignments have to be moved later.
    order = sorted(range(len(demands)), key=lambda i: len(candidates[i]))
    for index in order:
        if not seats.fill(index, demands[index].min_count):
            together = len({r.id for resources in candidates for r in resources})
            raise _not_enough_error(index, demands, together, find, others=" beside")
    growing = order
    while growing:
        # A demand that cannot grow now never can: each further assignment leaves at most as much choice.
        growing = [index for index in growing if seats.held[index] < demands[index].max_count and seats.add(index)]
    return seats.owner


def _place_mixed(
    demands: Sequence[Demand], candidates: Sequence[Sequence[Resource]], snapshot: Snapshot, find: Matching
) -> Placement:
    for index, demand in enumerate(demands):
        if demand.whole:
            _check_pinned(index, demands, candidates[index], snapshot)
    search = SharedSearch(demands, candidates, snapshot)
    if lost := search.find_overdrawn():
        raise NotEnoughResources(
            f"{', '.join(lost)} is in use by the reservation, and too little of it is free in that time; ask for less, "
            f"or for a shorter time",
            public="too little of what the reservation uses is free in that time; ask for less, or for a shorter time",
        )
    if not search.assign_minimums():
        rooms = [search.count_room_alone(index) for index in range(len(demands))]
        worst = max(range(len(demands)), key=lambda i: demands[i].min_count - rooms[i])
        raise _not_enough_error(worst, demands, rooms[worst], find, others=" without" if len(demands) > 1 else "")
    search.assign_up_to_maximums()
    return Placement(
        tuple(
            tuple(Assignment(resource_id, count) for resource_id, count in search.assigned_counts(index).items())
            for index in range(len(demands))
        )
    )


def _make_assignments(resources: Sequence[Resource]) -> tuple[Assignment, ...]:
    return tuple(Assignment(resource.id, 1) for resource in resources)


def _check_pinned(index: int, demands: Sequence[Demand], candidates: Sequence[Resource], snapshot: Snapshot) -> None:
    """Check that a reservation in use can keep its resources for the whole window."""
    pinned = demands[index].pinned
    lost = [r.name for r in candidates if r.id in pinned and not snapshot.occupancy.is_free(r.id)]
    if lost:
        raise NotEnoughResources(
            f"{', '.join(sorted(lost))} is in use by the reservation, and promised to another lease in that time",
            public="what the reservation uses is promised to another lease in that time",
        )


def _not_enough_error(
    index: int,
    demands: Sequence[Demand],
    free: int,
    find: Matching,
    *,
    others: str = "",
    lying: int | None = None,
) -> NotEnoughResources:
    demand = demands[index]
    matching = len(list_eligible(demand, find))
    # Counted among those of this kind: which of the request that is, nobody knows here.
    which = f"number {index + 1} of the {len(demands)} reservations of them: " if len(demands) > 1 else ""
    together = f"{others} the lease's other reservations" if others else ""
    if demand.whole:
        text = f"at least {demand.min_count} requested, {matching} match, {free} of them free in that time{together}"
        if lying is not None:
            text += f", {lying} of these {describe_topology(demand.topology)}"
    else:
        text = (
            f"{demand.min_count} {demand.share}s requested, {matching} {noun(demand.kind)}s match, {free} "
            f"{demand.share}s fit{together}"
        )
    return NotEnoughResources(f"Not enough {noun(demand.kind)}s available: {which}{text}.")
