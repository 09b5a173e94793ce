# SPDX-License-Identifier: Apache-2.0
"""The plan of an evacuation: as many hosts as are needed, those that cost the least, with a place for every server.

A host is a candidate only if every server on it may move. Room for each server is not enough: there must be room for
all of them together, on hosts that are not emptied themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from blazar.calendar.evacuation.packing import Bundle, bundles_of, packed
from blazar.calendar.evacuation.values import (
    Candidate,
    Evacuation,
    Move,
    NotEnough,
    Obstacle,
    ObstacleKind,
    Occupant,
    Rules,
    Strategy,
    Target,
)

MOST_STARTS = 20
"""From how many of the cheapest hosts on a set of hosts is looked for."""


def plan(
    candidates: Iterable[Candidate],
    targets: Sequence[Target],
    rules: Rules,
    *,
    needed: int,
    under_way: Sequence[Candidate] = (),
) -> Evacuation | NotEnough:
    """Return how ``needed`` of the candidates are emptied, or why that cannot be.

    ``targets`` are tried in their order. A candidate may be a target, too: then it takes servers only if it is not
    emptied. Hosts that cost the same are taken in the order of their calendar ids. ``under_way`` are hosts that are
    being emptied for others: there has to be room for what is left on them, too.
    """
    obstacles: list[Obstacle] = []
    open_: list[Candidate] = []
    for host in candidates:
        obstacle = _obstacle(host, rules)
        if obstacle is None:
            open_.append(host)
        else:
            obstacles.append(obstacle)
    cost = _COSTS[rules.strategy]
    queue = sorted(open_, key=lambda host: (sum(map(cost, host.occupants)), host.resource_id))
    best = _chosen(queue, targets, rules, needed, under_way)
    for first in range(1, min(len(queue) - needed, MOST_STARTS) + 1):
        if len(best.hosts) == needed:
            break
        # What the cheapest one takes up may be just the room that two others need.
        best = max(best, _chosen(queue[first:], targets, rules, needed, under_way), key=lambda found: len(found.hosts))
    if len(best.hosts) < needed:
        return NotEnough(needed, len(best.hosts), (*obstacles, *best.obstacles))
    moves = tuple(
        Move(each.id, each.project_id, host.name, best.places[each.id], each.live)
        for host in best.hosts
        for each in host.occupants
    )
    return Evacuation(tuple(host.resource_id for host in best.hosts), moves, duration(best.hosts, rules))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Hosts that can be emptied together, the target of each server, and why others cannot besides."""

    hosts: tuple[Candidate, ...]
    places: Mapping[str, str]
    obstacles: tuple[Obstacle, ...]


def _chosen(
    queue: Sequence[Candidate],
    targets: Sequence[Target],
    rules: Rules,
    needed: int,
    under_way: Sequence[Candidate],
) -> _Chosen:
    """Take the first hosts of a queue, without those that cannot be emptied besides the ones before them."""
    hosts: list[Candidate] = []
    obstacles: list[Obstacle] = []
    places: Mapping[str, str] = {}
    for host in queue:
        if len(hosts) == needed:
            break
        found = _places([*under_way, *hosts, host], targets, rules)
        if found is None:
            obstacles.append(Obstacle(host.name, ObstacleKind.ROOM))
        elif duration([*hosts, host], rules) > rules.limit:
            obstacles.append(Obstacle(host.name, ObstacleKind.TIME))
        else:
            hosts.append(host)
            places = found
    return _Chosen(tuple(hosts), places, tuple(obstacles))


def duration(hosts: Sequence[Candidate], rules: Rules) -> timedelta:
    """Return how long it takes to empty hosts: of the host with most to copy, or of all, whichever is longer."""
    copied = [sum(map(_mib, host.occupants)) for host in hosts]
    longest = max(copied, default=0) / rules.per_host
    largest = max((_mib(each) for host in hosts for each in host.occupants), default=0)
    return timedelta(seconds=max(longest, largest, sum(copied) / rules.in_all) / rules.rate)


def _obstacle(host: Candidate, rules: Rules) -> Obstacle | None:
    for each in host.occupants:
        if each.obstacle:
            return Obstacle(host.name, ObstacleKind.SERVER, each.id, each.obstacle)
    if host.building:
        return Obstacle(host.name, ObstacleKind.BUILDING)
    return Obstacle(host.name, ObstacleKind.TIME) if duration([host], rules) > rules.limit else None


def _places(hosts: Sequence[Candidate], targets: Sequence[Target], rules: Rules) -> Mapping[str, str] | None:
    bundles: list[Bundle] = [bundle for host in hosts for bundle in bundles_of(host)]
    besides = frozenset(host.name for host in hosts)
    return packed(bundles, targets, headroom=rules.headroom, besides=besides)


def _mib(server: Occupant) -> int:
    return server.amounts.get("MEMORY_MB") + 1024 * server.copied_gib


def _trouble(server: Occupant) -> float:
    """Return how much a move harms an owner: one that stands still least, one whose disk is copied most."""
    if not server.live:
        return 1.0
    return 2.0 if not server.copied_gib else 5.0 + _mib(server) / 1024 / 10


_COSTS: Mapping[Strategy, Callable[[Occupant], float]] = {
    Strategy.FEWEST: lambda server: 1,
    Strategy.SMALLEST: _mib,
    Strategy.CHEAPEST: _trouble,
}
