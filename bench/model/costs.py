# SPDX-License-Identifier: Apache-2.0
"""What a request costs, and how that grows with hosts and leases: lines through measured points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request takes: milliseconds of CPU of API and manager, and of the database; the rest are counts."""

    cpu_ms: float
    database_ms: float
    statements: float
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Point:
    """A measured cost of a request, among so many hosts and leases."""

    request: str
    hosts: int
    leases: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Law:
    """cost = that of the largest point + x × (hosts - its hosts) + y × (leases - its leases), for each part of it.

    What is read is read row by row, so that cost grows in a line once what each request costs anyway is taken off.
    """

    origin: Point
    in_hosts: Cost
    """What one host more costs: x."""
    in_leases: Cost
    """What one lease more costs: y."""

    def at(self, hosts: int, leases: int) -> Cost:
        """Return the cost among so many hosts and leases."""
        wider, fuller = hosts - self.origin.hosts, leases - self.origin.leases
        parts = (self._part(name, wider, fuller) for name in PARTS)
        return Cost(*parts)

    def _part(self, name: str, wider: int, fuller: int) -> float:
        growth = wider * getattr(self.in_hosts, name) + fuller * getattr(self.in_leases, name)
        return max(0.0, getattr(self.origin.cost, name) + growth)


PARTS = tuple(field.name for field in fields(Cost))


def fit(points: Sequence[Point]) -> Mapping[str, Law]:
    """Return the law of each request. ValueError if it cannot be told how one grows.

    Nothing is taken to become less: what got faster by chance does not go on doing so.
    """
    return {name: _fit_one([p for p in points if p.request == name]) for name in sorted({p.request for p in points})}


def _fit_one(points: Sequence[Point]) -> Law:
    origin = max(points, key=lambda point: (point.hosts, point.leases))
    wider = [(a, b) for a in points for b in points if a.leases == b.leases and a.hosts < b.hosts]
    fuller = [(a, b) for a in points for b in points if a.hosts == b.hosts and a.leases < b.leases]
    if not wider or not fuller:
        raise ValueError(f"{origin.request} needs points that differ in hosts alone, and others in leases alone")
    few, many = max(wider, key=lambda pair: pair[1].hosts)
    in_hosts = _slopes(many.cost, few.cost, many.hosts - few.hosts)
    few, many = max(fuller, key=lambda pair: pair[1].leases)
    return Law(origin, in_hosts, _slopes(many.cost, few.cost, many.leases - few.leases))


def _slopes(large: Cost, small: Cost, more: int) -> Cost:
    return Cost(*(max(0.0, getattr(large, part) - getattr(small, part)) / more for part in PARTS))
