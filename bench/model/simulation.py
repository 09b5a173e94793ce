# SPDX-License-Identifier: Apache-2.0
"""Users who wait for answers of some managers and one database: what is busy, and how long they wait.

Each user thinks, asks, waits, and thinks again, so that the load falls when answers take long. Pure: the same seed
gives the same day.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.model.costs import Cost

WRITES = frozenset({"create", "delete"})


@dataclass(frozen=True, slots=True)
class Cloud:
    """So many managers of one core each, one database of so many cores, and users with their time between requests."""

    managers: int
    database_cores: int
    users: int
    think_s: float
    replicas: int = 0
    """Copies of the database that answer what only reads, each with as many cores."""


@dataclass(frozen=True, slots=True)
class Day:
    """What became of a simulated time: shares of the time that parts were busy, and seconds that users waited."""

    busy: Mapping[str, float]
    requests: int
    per_second: float
    median_s: float
    p99_s: float

    @property
    def bottleneck(self) -> str:
        """The part that is busiest, and so the first that more users would find full."""
        return max(self.busy, key=lambda name: self.busy[name])


@dataclass(slots=True)
class Station:
    """Servers with one line: who comes is served by the one that is free first."""

    servers: int
    free_at: list[float] = field(default_factory=list)
    worked: float = 0.0

    def serve(self, at: float, seconds: float) -> float:
        """Return when what comes now is done."""
        start = max(at, heapq.heappop(self.free_at)) if len(self.free_at) == self.servers else at
        heapq.heappush(self.free_at, start + seconds)
        self.worked += seconds
        return start + seconds


def simulate(cloud: Cloud, costs: Mapping[str, Cost], mix: Mapping[str, float], *, seconds: float, seed: int) -> Day:
    """Let users work for so long; ``mix`` has the weight of each request, of which ``create`` and ``delete`` write."""
    chance, names = random.Random(seed), sorted(mix)
    weights = [mix[name] for name in names]
    managers, primary = Station(cloud.managers), Station(cloud.database_cores)
    copies = Station(cloud.replicas * cloud.database_cores) if cloud.replicas else primary
    # The users of a cloud do not begin all at once.
    asking = [(chance.uniform(0, cloud.think_s), user) for user in range(cloud.users)]
    heapq.heapify(asking)
    waits: list[float] = []
    while asking and asking[0][0] < seconds:
        at, user = heapq.heappop(asking)
        (name,) = chance.choices(names, weights)
        computed = managers.serve(at, chance.expovariate(1) * costs[name].cpu_ms / 1000)
        database = primary if name in WRITES else copies
        done = database.serve(computed, chance.expovariate(1) * costs[name].database_ms / 1000)
        waits.append(done - at)
        heapq.heappush(asking, (done + chance.expovariate(1 / cloud.think_s), user))
    waits.sort()
    stations = {"managers": managers, "database": primary} | ({"replicas": copies} if cloud.replicas else {})
    busy = {name: min(1.0, station.worked / (seconds * station.servers)) for name, station in stations.items()}
    median, p99 = (waits[int(share * (len(waits) - 1))] if waits else 0.0 for share in (0.5, 0.99))
    return Day(busy, len(waits), round(len(waits) / seconds, 1), median, p99)
