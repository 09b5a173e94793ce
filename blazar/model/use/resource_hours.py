# SPDX-License-Identifier: Apache-2.0
"""Resource-hours: the amounts that a project has, over time. Pure, exact, in whole seconds of UTC."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from itertools import accumulate

from blazar.model.base import plugins
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.resources.pools import count_cards
from blazar.model.resources.resource import HOST, KINDS, VOLUME

KIND_NAMESPACE = "blazar.resource.kinds"
INSTANCE, VCPU, CARD, GIGABYTE = "instance", "vcpu", "card", "gigabyte"
MEASURES = (*(str(kind) for kind in KINDS), INSTANCE, VCPU, CARD, GIGABYTE)
"""What can be counted: resources by kind; servers on shared hosts by number, by VCPUs (PCPUs included) and by cards;
volumes also by GiB."""

KWH = "kwh"
"""The energy that hosts draw. It has a price, and is no count: what it will be is only known by an estimate."""


@cache
def measures() -> tuple[str, ...]:
    """Return what can be counted here: our measures, and the kinds that other packages have installed."""
    return (*MEASURES, *sorted(plugins.entry_points_of(KIND_NAMESPACE).keys() - set(MEASURES)))


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """A count of a kind of resource that a lease has for a window; ``per_instance`` is as in Allocation.

    ``series_id`` is that of the series of which the lease is an occurrence.
    """

    lease_id: str
    kind: str
    window: Window
    count: int = 1
    per_instance: Amounts | None = None
    series_id: str | None = None

    @property
    def measures(self) -> Mapping[str, int]:
        """Return the amount per measure (host, floatingip, instance, vcpu, card, volume, gigabyte)."""
        return measure_amounts(self.kind, self.count, self.per_instance)


def measure_amounts(kind: str, count: int, per_instance: Amounts | None) -> Mapping[str, int]:
    """Return the amount per measure of ``count`` resources or instances of a kind."""
    if kind == HOST and per_instance is not None:
        cards = count * count_cards(per_instance)
        vcpus = count * (per_instance.get("VCPU") + per_instance.get("PCPU"))
        return {INSTANCE: count, VCPU: vcpus, **({CARD: cards} if cards else {})}
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
            changes[epoch(window.start)] += amount
            changes[epoch(window.end)] -= amount
        self.instants = sorted(changes)
        self._rates = list(accumulate(changes[instant] for instant in self.instants))
        pieces = zip(self.instants, self.instants[1:], self._rates, strict=False)
        self._sums = [0, *accumulate((after - before) * rate for before, after, rate in pieces)]

    def sum_between(self, start: int, end: int) -> int:
        """Return the sum over ``[start, end)``."""
        return self._sum_until(end) - self._sum_until(start)

    def _sum_until(self, instant: int) -> int:
        index = bisect_right(self.instants, instant) - 1
        return self._sums[index] + (instant - self.instants[index]) * self._rates[index] if index >= 0 else 0


def roll_sums(total: UsageCurve, growth: UsageCurve, window: Window, length: int) -> Iterator[int]:
    """Yield starts of spans of ``length`` seconds, one of which has the largest ``total``.

    Only spans count that overlap the window and in which the sum of ``growth`` is positive. Between two instants at
    which a use begins or ends at either edge of the span, both sums change linearly; so the largest total is at one of
    these instants, or where the growth becomes positive or ceases to be.
    """
    first, last = epoch(window.start) - length + 1, epoch(window.end) - 1
    edges = {first, last}
    for instant in (*total.instants, *growth.instants):
        edges |= {edge for edge in (instant, instant - length) if first <= edge <= last}
    starts = sorted(edges)
    grown = [growth.sum_between(start, start + length) for start in starts]
    for start, more in zip(starts, grown, strict=True):
        if more > 0:
            yield start
    for left, right, before, after in zip(starts, starts[1:], grown, grown[1:], strict=False):
        if (before > 0) is not (after > 0):
            yield from _find_sign_change(left, right, before, after)


def _find_sign_change(left: int, right: int, before: int, after: int) -> Iterator[int]:
    """Yield the last second after ``left``, or the first before ``right``, at which a linear change is positive."""
    slope = (after - before) // (right - left)
    start = left + ((before - 1) // -slope if before > 0 else -before // slope + 1)
    if left < start < right:
        yield start


def epoch(instant: datetime) -> int:
    """Return an instant in seconds since the epoch."""
    return int(instant.timestamp())


@dataclass(frozen=True, slots=True)
class HostUse:
    """One lease, and the number of whole hosts that are promised to it for its window."""

    lease_id: str
    window: Window
    hosts: int


@dataclass(frozen=True, slots=True)
class SpendLimit:
    """The most that a project may have to pay for a month, in 10⁻⁹ of the currency, by the name of the limit.

    ``shares`` are those in percent whose being reached is told.
    """

    name: str
    nano: int
    shares: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReachedShare:
    """A share in percent of the limit on a measure in a period, that is reached: ``taken`` of the ``limit``.

    Both are decimals of ``unit``, such as ``host-hours`` or ``EUR``.
    """

    project_id: str
    limit_name: str
    unit: str
    window: Window
    share: int
    limit: str
    taken: str


def find_reached(shares: Iterable[int], before: int, after: int, limit: int) -> int | None:
    """Return the largest share of a limit that is reached by what is taken after, and was not before; None: none is."""
    return max((share for share in shares if before * 100 < limit * share <= after * 100), default=None)


@dataclass(frozen=True, slots=True)
class MonthSpending:
    """What a project has to pay for a month: what was ``charged``, and what is ``planned``; 10⁻⁹ of the currency."""

    charged: int = 0
    planned: int = 0

    @property
    def total(self) -> int:
        """Return both together."""
        return self.charged + self.planned


SpendingByMonth = Mapping[date, MonthSpending]
"""What a project has to pay, by the first day of each month."""


@dataclass(frozen=True, slots=True)
class ProjectUse:
    """What a project has in a window, as of a version.

    A transaction that grants more to the project raises the version, if it is still the one that was read. So two
    requests that each fit into the rest of a limit cannot both succeed.
    """

    project_id: str
    version: int
    leases: tuple[HostUse, ...]
    usage: tuple[UsageRecord, ...] = ()
    """What it has over a longer time, if that was requested: see ``Question``."""
    own_usage: tuple[UsageRecord, ...] = ()
    spending: SpendingByMonth | None = None
    """What it has to pay besides, from the present month on; None if that was not requested."""
    spend_limit: SpendLimit | None = None
    """The most that it may have to pay for a month, which the transaction keeps to; None: there is no limit."""
    reached: tuple[ReachedShare, ...] = ()
    """The shares of other budgets that it reaches by what it is granted."""


HELD_BY_REQUEST = datetime(9999, 1, 1, tzinfo=UTC)
"""The ``due_at`` of an outbox message that only its own request delivers."""


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """An outbox message about a lease, kept until it is delivered.

    ``content`` is a string that only its writer interprets. ``due_at`` is the time of the next attempt; while a
    delivery is in progress, the time at which its claim expires; and HELD_BY_REQUEST while it belongs to a request in
    progress. ``delivered_to`` names the filters that have it. ``stored``: it is in the database, and is written as an
    update. ``finished``: no attempt follows.
    """

    id: str
    lease_id: str
    content: str
    created_at: datetime
    due_at: datetime
    attempts: int = 0
    delivered_to: tuple[str, ...] = ()
    reason: str | None = None
    stored: bool = False
    finished: bool = False

    @property
    def is_held_by_request(self) -> bool:
        """Return whether it belongs to a request, which delivers it itself and knows the result."""
        return self.due_at == HELD_BY_REQUEST


def find_peak(window: Window, uses: Iterable[tuple[Window, int]]) -> int:
    """Return the highest sum of amounts at any one instant of a window."""
    steps: list[tuple[datetime, int]] = []
    for use, amount in uses:
        if use.overlaps(window):
            steps += [(max(use.start, window.start), amount), (use.end, -amount)]
    total = highest = 0
    # At one instant ends sort before starts: windows that touch are not added up.
    for _, change in sorted(steps):
        total += change
        highest = max(highest, total)
    return highest


def find_longest_below(window: Window, uses: Iterable[tuple[Window, int]], most: int) -> Window | None:
    """Return the first of the longest parts of a window in which the sum is never above ``most``."""
    changes: dict[datetime, int] = {window.start: 0, window.end: 0}
    for use, amount in uses:
        if use.overlaps(window):
            begin, end = max(use.start, window.start), min(use.end, window.end)
            changes[begin] = changes.get(begin, 0) + amount
            changes[end] = changes.get(end, 0) - amount
    instants = sorted(changes)
    best: Window | None = None
    begins: datetime | None = None
    total = 0
    for instant, following in zip(instants, instants[1:], strict=False):
        total += changes[instant]
        if total > most:
            begins = None
            continue
        begins = instant if begins is None else begins
        if best is None or following - begins > best.duration:
            best = Window(begins, following)
    return best
