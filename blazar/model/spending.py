# SPDX-License-Identifier: Apache-2.0
"""Resource-hours: the amounts that a project has, over time. Pure, exact, in whole seconds of UTC."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import accumulate

from blazar.model import extensions
from blazar.model.amounts import Amounts
from blazar.model.resource import HOST, KINDS, VOLUME
from blazar.model.window import Window

KIND_NAMESPACE = "blazar.resource.kinds"
INSTANCE, VCPU, GIGABYTE = "instance", "vcpu", "gigabyte"
MEASURES = (*(str(kind) for kind in KINDS), INSTANCE, VCPU, GIGABYTE)
"""What can be counted: resources by kind; servers on shared hosts by number and by VCPUs (PCPUs included); volumes also
by GiB."""


@cache
def measures() -> tuple[str, ...]:
    """Return what can be counted here: our measures, and the kinds that other packages have installed."""
    return (*MEASURES, *sorted(extensions.offered(KIND_NAMESPACE).keys() - set(MEASURES)))


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """A count of a kind of resource that a lease has for a window; ``per_instance`` is as in Allocation."""

    lease_id: str
    kind: str
    window: Window
    count: int = 1
    per_instance: Amounts | None = None

    @property
    def measures(self) -> Mapping[str, int]:
        """Return the amount per measure (host, floatingip, instance, vcpu, volume, gigabyte)."""
        return measured(self.kind, self.count, self.per_instance)


def measured(kind: str, count: int, per_instance: Amounts | None) -> Mapping[str, int]:
    """Return the amount per measure of ``count`` resources or instances of a kind."""
    if kind == HOST and per_instance is not None:
        return {INSTANCE: count, VCPU: count * (per_instance.get("VCPU") + per_instance.get("PCPU"))}
    if kind == VOLUME and per_instance is not None:
        return {str(VOLUME): count * per_instance.get("VOLUMES"), GIGABYTE: count * per_instance.get("GIGABYTES")}
    return {kind: count}


class UsageCurve:
    """An amount that changes at instants, and its sum over time.

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
    """Yield starts of spans of ``length`` seconds, one of which has the largest ``total``.

    Only spans count that overlap the window and in which the sum of ``growth`` is positive. Between two instants at
    which a use begins or ends at either edge of the span, both sums change linearly; so the largest total is at one of
    these instants, or where the growth becomes positive or ceases to be.
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
    """Yield the last second after ``left``, or the first before ``right``, at which a linear change is positive."""
    slope = (after - before) // (right - left)
    start = left + ((before - 1) // -slope if before > 0 else -before // slope + 1)
    if left < start < right:
        yield start


def second(instant: datetime) -> int:
    """Return an instant in seconds since the epoch."""
    return int(instant.timestamp())
