# SPDX-License-Identifier: Apache-2.0
"""Resource-hours: how much of what a project holds for how long. Pure, exact, in whole seconds of UTC."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from blazar.model.amounts import Amounts
from blazar.model.resource import ResourceKind
from blazar.model.window import Window

INSTANCE, VCPU = "instance", "vcpu"
MEASURES = (*(str(kind) for kind in ResourceKind), INSTANCE, VCPU)
"""What can be counted: whole resources by their kind; servers on shared hosts by their number and by their VCPUs,
which may be dedicated ones."""


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """So many units of a kind of resource, held by a lease for a time; ``per_instance`` is as in Allocation."""

    lease_id: str
    kind: str
    window: Window
    count: int = 1
    per_instance: Amounts | None = None

    @property
    def measures(self) -> Mapping[str, int]:
        """Return how much of what it is."""
        return measured(self.kind, self.count, self.per_instance)


def measured(kind: str, count: int, per_instance: Amounts | None) -> Mapping[str, int]:
    """Return how much of what some units of a kind of resource are."""
    if kind == ResourceKind.HOST and per_instance is not None:
        return {INSTANCE: count, VCPU: count * (per_instance.get("VCPU") + per_instance.get("PCPU"))}
    return {kind: count}


class UsageCurve:
    """An amount that changes at instants, and what it comes to over time.

    Instants are seconds since the epoch, sums are amounts times seconds.
    """

    def __init__(self, uses: Iterable[tuple[Window, int]]) -> None:
        changes: Counter[int] = Counter()
        for window, amount in uses:
            changes[second(window.start)] += amount
            changes[second(window.end)] -= amount
        self.instants = sorted(changes)
        self._rates = list(accumulate(changes[instant] for instant in self.instants))
        pieces = zip(self.instants, self.instants[1:], self._rates, strict=False)
        self._sums = [0, *accumulate((after - before) * rate for before, after, rate in pieces)]

    def between(self, start: int, end: int) -> int:
        """Return the sum over ``[start, end)``."""
        return self._until(end) - self._until(start)

    def _until(self, instant: int) -> int:
        index = bisect_right(self.instants, instant) - 1
        return self._sums[index] + (instant - self.instants[index]) * self._rates[index] if index >= 0 else 0


def rolling(total: UsageCurve, growth: UsageCurve, window: Window, length: int) -> Iterator[int]:
    """Yield the starts of those spans of ``length`` seconds among which one has the largest ``total``.

    Looked at are the spans that touch the window and in which ``growth`` comes to more than nothing. Between two
    instants at which something begins or ends at either side of the span, both sums change evenly; so the largest
    total is at one of these instants, or where the growth begins or ceases to be more than nothing.
    """
    first, last = second(window.start) - length + 1, second(window.end) - 1
    edges = {first, last}
    for instant in (*total.instants, *growth.instants):
        edges |= {edge for edge in (instant, instant - length) if first <= edge <= last}
    starts = sorted(edges)
    grown = [growth.between(start, start + length) for start in starts]
    for start, more in zip(starts, grown, strict=True):
        if more > 0:
            yield start
    for left, right, before, after in zip(starts, starts[1:], grown, grown[1:], strict=False):
        if (before > 0) is not (after > 0):
            yield from _turn(left, right, before, after)


def _turn(left: int, right: int, before: int, after: int) -> Iterator[int]:
    """Yield the last second after ``left``, or the first before ``right``, at which an even change is positive."""
    slope = (after - before) // (right - left)
    start = left + ((before - 1) // -slope if before > 0 else -before // slope + 1)
    if left < start < right:
        yield start


def second(instant: datetime) -> int:
    """Return an instant in seconds since the epoch."""
    return int(instant.timestamp())
