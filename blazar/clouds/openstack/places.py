# SPDX-License-Identifier: Apache-2.0
"""How many threads of a pool calls to services may take. Pure.

However many regions hang: calls do not take the threads that are kept for work without calls, and calls to other
regions do not take those that a region has of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from blazar.context import Pool


class Target(NamedTuple):
    """What a call goes to."""

    region: str
    service: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How many of ``threads`` are ``kept`` for work without calls, and are each region's ``own``.

    A region has the others, ``common``, together with all others; a service that may hang gets ``first`` at most.
    """

    threads: int
    kept: int
    own: int
    common: int
    first: int

    @classmethod
    def of(cls, pool: Pool) -> Limits:
        """Return those of a pool; one with fewer threads than regions cannot keep one for each."""
        threads, regions = pool.threads, max(1, pool.regions)
        kept = min(threads - 1, max(1, threads // 8))
        calls = threads - kept
        own = calls if regions == 1 else max(1, calls // (2 * regions))
        common = max(0, calls - regions * own)
        return cls(threads, kept, own, common, max(1, threads // (2 if regions == 1 else 4)))

    @property
    def of_region(self) -> int:
        """The most threads that wait in one region."""
        return self.own + self.common

    @property
    def of_service(self) -> int:
        """The most threads that wait for one service of a region, so that its other services have some."""
        return max(1, self.of_region - max(1, self.of_region // 8))


def has_room(limits: Limits, calls: Mapping[Target, int], target: Target, *, proven: bool) -> bool:
    """Return whether one more call may be made beside those in progress; ``proven`` if its service answers."""
    most = limits.of_service if proven else min(limits.first, limits.of_service)
    if calls.get(target, 0) >= most:
        return False
    by_region: dict[str, int] = {}
    for each, count in calls.items():
        by_region[each.region] = by_region.get(each.region, 0) + count
    if sum(by_region.values()) >= limits.threads - limits.kept:
        return False
    if by_region.get(target.region, 0) < limits.own:
        return True
    return sum(max(0, count - limits.own) for count in by_region.values()) < limits.common
