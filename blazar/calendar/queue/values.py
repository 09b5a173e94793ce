# SPDX-License-Identifier: Apache-2.0
"""What the waiting list is computed from, and what comes out: frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blazar.calendar.fits import NEVER
from blazar.calendar.placement import Matching, Strategy
from blazar.calendar.timeline import Use
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.demand import Demand
from blazar.model.power.states import ALL_AWAKE, AsleepHosts
from blazar.model.resources.resource import Resource, ResourceKind

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Inventory:
    """The resources of one kind, smallest first, with all that is promised of them except by a Promise.

    ``uses``, ``late`` and ``cleaning`` are as in Timeline: a use ends with the cleaning after it. ``matching`` may
    return the resources that meet a requirement faster than by testing each one. Resources are chosen by the
    ``strategy``, and hosts that are ``asleep`` when they are needed last, as for a booking.
    """

    resources: Sequence[Resource]
    uses: Mapping[int, Sequence[Use]] = field(default_factory=dict)
    cleaning: int = 0
    late: Mapping[int, Sequence[Use]] = field(default_factory=dict)
    matching: Matching | None = None
    strategy: Strategy = Strategy.PACK
    asleep: AsleepHosts = ALL_AWAKE


Calendar = Mapping[ResourceKind, Inventory]


@dataclass(frozen=True, slots=True)
class Waiter:
    """A request that waits: ``demands`` for ``length`` seconds, or for ``at_least`` if that is all that fits.

    ``queued_at`` has fractions of a second: of two requests in one second, too, one came first.
    The start is from ``earliest`` to ``latest``, and not after ``wait_until``. A promise to it is moved to an earlier
    start only if that is at least ``notice`` seconds ahead.
    """

    lease_id: str
    project_id: str
    demands: tuple[Demand, ...]
    length: int
    queued_at: float
    wait_until: int = NEVER
    earliest: int = 0
    latest: int = NEVER
    at_least: int | None = None
    notice: int = 0

    def __post_init__(self) -> None:
        if not self.demands:
            raise ValueError("a request without demands cannot wait")
        if not 0 < self.shortest <= self.length:
            raise ValueError(f"at least {self.shortest} of {self.length} seconds is not possible")
        if self.latest < self.earliest:
            raise ValueError("the latest start is before the earliest")

    @property
    def shortest(self) -> int:
        """Return the shortest length that will do."""
        return self.length if self.at_least is None else self.at_least

    @property
    def last_start(self) -> int:
        """Return the last start that is of use."""
        return min(self.latest, self.wait_until)


@dataclass(frozen=True, slots=True)
class GrantPart:
    """A count of instances on one resource for one demand, the number of which is ``demand``."""

    demand: int
    kind: ResourceKind
    resource_id: int
    count: int = 1
    per_instance: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What a request gets: these parts from ``start`` to ``end``, without the cleaning."""

    lease_id: str
    start: int
    end: int
    parts: tuple[GrantPart, ...]

    def count(self, demand: int) -> int:
        """Return how many instances a demand gets."""
        return sum(part.count for part in self.parts if part.demand == demand)


@dataclass(frozen=True, slots=True)
class Promise:
    """A request to which a start has been promised; the grant is booked, and its start may only become earlier."""

    waiter: Waiter
    grant: Grant


Denies = Callable[[Waiter, Grant, Sequence[Grant]], str | None]
"""Tells why a project may not have a grant beside those that it gets in the same plan; None if it may.

It is asked about what starts or is promised, not about estimates.
"""


def _allows(_waiter: Waiter, _grant: Grant, _others: Sequence[Grant]) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """The bounds of a plan.

    * ``depth``: how many requests are placed of those that compete for the same resources. Those behind are not
      started, nor are others that could take a resource from one of them.
    * ``promises``: how many promises of a start later than asked for there are at most, and how many of these a plan
      adds for one project, ``promises_per_project``. Requests older than ``promise_age`` are promised in any case. With
      no promises at all they are estimates, too.
    * ``protect``: a direct booking that begins later than this is not measured against the waiting list.
    * ``denied``: requests that enforcement has refused, with the reason; ``denies`` judges the others.
    * ``grants_per_day``: the recent rate, from which the start of those behind the depth is guessed.
    * ``skips``: use what the search for one request says about larger ones; without, the plan is the same and slower.
    """

    depth: int = 200
    promises: int = 100
    promises_per_project: int = 2
    promise_age: int = DAY
    protect: int = 14 * DAY
    denied: Mapping[str, str] = field(default_factory=dict)
    denies: Denies = _allows
    grants_per_day: float | None = None
    skips: bool = True


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a request will probably start: ``position`` counts from 1, ``start`` is None if nothing is known.

    ``rough``: guessed from the position. ``in_time`` is false if nothing fits up to the request's last start; then
    ``start`` is when it would fit.
    """

    lease_id: str
    position: int
    start: int | None
    rough: bool = False
    in_time: bool = True


@dataclass(frozen=True, slots=True)
class Blocked:
    """A request that no waiting helps as things are, with the reason."""

    lease_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """What a pass does: start, promise, move promises to an earlier start; and what it tells the others.

    ``placed`` are the places of all that have one, also of those that have only an estimate, in order; nobody behind
    takes from them.
    """

    start_now: tuple[Grant, ...] = ()
    promise: tuple[Grant, ...] = ()
    advance: tuple[Grant, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    placed: tuple[Grant, ...] = ()
