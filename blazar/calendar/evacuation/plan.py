# SPDX-License-Identifier: Apache-2.0
"""The plan of an evacuation: as many hosts as are needed, those that cost the least, with a place for every server.

A host is a candidate only if every server on it may move. Room for each server is not enough: there must be room for
all of them together, on hosts that are not emptied themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

from blazar.calendar.evacuation.values import (
    EvacuationCandidate,
    EvacuationPlan,
    EvacuationStrategy,
    HostedServer,
    NotEnough,
    Obstacle,
    ObstacleKind,
    Rules,
    ServerMove,
    TargetHost,
)
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass

MOST_STARTS = 20
"""From how many of the cheapest hosts on a set of hosts is looked for."""


def plan_evacuation(
    candidates: Iterable[EvacuationCandidate],
    targets: Sequence[TargetHost],
    rules: Rules,
    *,
    needed: int,
    under_way: Sequence[EvacuationCandidate] = (),
) -> EvacuationPlan | NotEnough:
    """Return how ``needed`` of the candidates are emptied, or why that cannot be.

    ``targets`` are tried in their order. A candidate may be a target, too: then it takes servers only if it is not
    emptied. Hosts that cost the same are taken in the order of their calendar ids. ``under_way`` are hosts that are
    being emptied for others: there has to be room for what is left on them, too.
    """
    obstacles: list[Obstacle] = []
    open_: list[EvacuationCandidate] = []
    for host in candidates:
        obstacle = _find_obstacle(host, rules)
        if obstacle is None:
            open_.append(host)
        else:
            obstacles.append(obstacle)
    cost = _COSTS[rules.strategy]
    queue = sorted(open_, key=lambda host: (sum(map(cost, host.occupants)), host.resource_id))
    best = _choose_hosts(queue, targets, rules, needed, under_way)
    for first in range(1, min(len(queue) - needed, MOST_STARTS) + 1):
        if len(best.hosts) == needed:
            break
        # What the cheapest one takes up may be just the room that two others need.
        best = max(
            best, _choose_hosts(queue[first:], targets, rules, needed, under_way), key=lambda found: len(found.hosts)
        )
    if len(best.hosts) < needed:
        return NotEnough(needed, len(best.hosts), (*obstacles, *best.obstacles))
    moves = tuple(
        ServerMove(occupant.id, occupant.project_id, host.name, best.places[occupant.id], occupant.live)
        for host in best.hosts
        for occupant in host.occupants
    )
    return EvacuationPlan(tuple(host.resource_id for host in best.hosts), moves, estimate_duration(best.hosts, rules))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Hosts that can be emptied together, the target of each server, and why others cannot besides."""

    hosts: tuple[EvacuationCandidate, ...]
    places: Mapping[str, str]
    obstacles: tuple[Obstacle, ...]


def _choose_hosts(
    queue: Sequence[EvacuationCandidate],
    targets: Sequence[TargetHost],
    rules: Rules,
    needed: int,
    under_way: Sequence[EvacuationCandidate],
) -> _Chosen:
    """Take the first hosts of a queue, without those that cannot be emptied besides the ones before them."""
    hosts: list[EvacuationCandidate] = []
    obstacles: list[Obstacle] = []
    places: Mapping[str, str] = {}
    for host in queue:
        if len(hosts) == needed:
            break
        found = _find_places([*under_way, *hosts, host], targets, rules)
        if found is None:
            obstacles.append(Obstacle(host.name, ObstacleKind.ROOM))
        elif estimate_duration([*hosts, host], rules) > rules.limit:
            obstacles.append(Obstacle(host.name, ObstacleKind.TIME))
        else:
            hosts.append(host)
            places = found
    return _Chosen(tuple(hosts), places, tuple(obstacles))


def estimate_duration(hosts: Sequence[EvacuationCandidate], rules: Rules) -> timedelta:
    """Return how long it takes to empty hosts: of the host with most to copy, or of all, whichever is longer."""
    copied = [sum(map(_mib_to_copy, host.occupants)) for host in hosts]
    longest = max(copied, default=0) / rules.per_host
    largest = max((_mib_to_copy(occupant) for host in hosts for occupant in host.occupants), default=0)
    return timedelta(seconds=max(longest, largest, sum(copied) / rules.in_all) / rules.rate)


def _find_obstacle(host: EvacuationCandidate, rules: Rules) -> Obstacle | None:
    for occupant in host.occupants:
        if occupant.obstacle:
            return Obstacle(host.name, ObstacleKind.SERVER, occupant.id, occupant.obstacle)
    if host.building:
        return Obstacle(host.name, ObstacleKind.BUILDING)
    return Obstacle(host.name, ObstacleKind.TIME) if estimate_duration([host], rules) > rules.limit else None


def _find_places(
    hosts: Sequence[EvacuationCandidate], targets: Sequence[TargetHost], rules: Rules
) -> Mapping[str, str] | None:
    bundles: list[Bundle] = [bundle for host in hosts for bundle in make_bundles(host)]
    besides = frozenset(host.name for host in hosts)
    return pack(bundles, targets, headroom=rules.headroom, besides=besides)


def _mib_to_copy(server: HostedServer) -> int:
    return server.amounts.get("MEMORY_MB") + 1024 * server.copied_gib


def _rate_trouble(server: HostedServer) -> float:
    """Return how much a move harms an owner: one that stands still least, one whose disk is copied most."""
    if not server.live:
        return 1.0
    return 2.0 if not server.copied_gib else 5.0 + _mib_to_copy(server) / 1024 / 10


_COSTS: Mapping[EvacuationStrategy, Callable[[HostedServer], float]] = {
    EvacuationStrategy.FEWEST: lambda server: 1,
    EvacuationStrategy.SMALLEST: _mib_to_copy,
    EvacuationStrategy.CHEAPEST: _rate_trouble,
}


MOST_STEPS = 20_000
"""How many places are tried for one set of hosts: a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Servers of one host that go to one target: those of a group with affinity, or a single one."""

    source: str
    servers: tuple[HostedServer, ...]
    amounts: Amounts
    traits: frozenset[str]
    groups: frozenset[str]
    avoid: frozenset[str]


class FreeRoom:
    """What is free on the targets, ``headroom`` percent of each left aside."""

    def __init__(self, targets: Iterable[TargetHost], headroom: int) -> None:
        self._targets = tuple(targets)
        self._free: dict[str, dict[str, int]] = {}
        self._groups: dict[str, set[str]] = {}
        for target in self._targets:
            used = dict(target.used)
            self._free[target.name] = {
                name: amount * (100 - headroom) // 100 - used.get(name, 0) for name, amount in target.capacity
            }
            self._groups[target.name] = set(target.groups)

    def targets_for(self, bundle: Bundle, besides: frozenset[str]) -> Sequence[str]:
        """Return the targets that have room for a bundle now, without those ``besides``, in their order."""
        return [t.name for t in self._targets if t.name not in besides | bundle.avoid and self._fits(bundle, t)]

    def _fits(self, bundle: Bundle, target: TargetHost) -> bool:
        free = self._free[target.name]
        return (
            bundle.traits <= target.traits
            and not bundle.groups & self._groups[target.name]
            and all(free.get(name, 0) >= amount for name, amount in bundle.amounts)
        )

    def put(self, bundle: Bundle, target: str) -> None:
        """Put a bundle onto a target."""
        self._add_amounts(bundle, target, -1)
        self._groups[target] |= bundle.groups

    def remove(self, bundle: Bundle, target: str) -> None:
        """Take a bundle off a target, where nothing else of its groups is."""
        self._add_amounts(bundle, target, 1)
        self._groups[target] -= bundle.groups

    def _add_amounts(self, bundle: Bundle, target: str, sign: int) -> None:
        free = self._free[target]
        for name, amount in bundle.amounts:
            free[name] = free.get(name, 0) + sign * amount


def make_bundles(host: EvacuationCandidate) -> tuple[Bundle, ...]:
    """Return the servers of a host in bundles."""
    by_group: dict[str, list[HostedServer]] = {}
    for occupant in host.occupants:
        by_group.setdefault(occupant.together or f"\0{occupant.id}", []).append(occupant)
    return tuple(_bundle(host.name, servers) for servers in by_group.values())


def _bundle(source: str, servers: Sequence[HostedServer]) -> Bundle:
    amounts = Amounts()
    for server in servers:
        amounts = amounts + server.amounts
    traits = frozenset[str]().union(*(server.traits for server in servers))
    groups = frozenset(server.apart for server in servers if server.apart)
    avoid = frozenset[str]().union(*(server.avoid for server in servers))
    return Bundle(source, tuple(servers), amounts, traits, groups, avoid)


def pack(
    bundles: Sequence[Bundle], targets: Iterable[TargetHost], *, headroom: int, besides: frozenset[str]
) -> Mapping[str, str] | None:
    """Return the target of each server, by id; None if no place for all of them together is found.

    The largest goes first, into the first target that takes it; what then finds none sends the one before it on to its
    next place. That finds a place for all if there is one, unless ``MOST_STEPS`` are spent.
    """
    room = FreeRoom(targets, headroom)
    order = sorted(bundles, key=lambda bundle: _size_key(bundle.amounts), reverse=True)
    ways: list[list[str]] = []
    taken: list[str] = []
    for _ in range(MOST_STEPS):
        if len(taken) == len(order):
            return {s.id: target for bundle, target in zip(order, taken, strict=True) for s in bundle.servers}
        if len(ways) == len(taken):
            ways.append(list(reversed(room.targets_for(order[len(taken)], besides))))
        if ways[-1]:
            taken.append(ways[-1].pop())
            room.put(order[len(taken) - 1], taken[-1])
            continue
        ways.pop()
        if not taken:
            return None
        room.remove(order[len(taken) - 1], taken.pop())
    return None


def _size_key(amounts: Amounts) -> tuple[int, int, int]:
    return amounts.get("MEMORY_MB"), amounts.get("VCPU"), amounts.get("DISK_GB")
