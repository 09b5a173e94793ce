# SPDX-License-Identifier: Apache-2.0
"""The use of each project, which fades: what it had long ago counts less than what it has now or has booked.

A piece of share ``s`` from ``b`` to ``e`` counts, at the instant ``t`` and with half-life ``h``, its part before as
``s · h/ln 2 · (2^(-(t-e)/h) - 2^(-(t-b)/h))`` and its part after as ``s · entry_penalty · seconds``. The latter
decides between projects that book at the same moment, and turns into the former by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp2, log

from blazar.calendar.queue.values import DAY
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import Resource, ResourceKind


@dataclass(frozen=True, slots=True)
class Rates:
    """How use fades and is weighted: by project in ``project_weights``, by kind in ``kind_weights``; others weigh 1.

    ``unused_factor`` is the part that is charged of what was booked and given back before its end.
    """

    half_life: int = 7 * DAY
    entry_penalty: float = 1.0
    unused_factor: float = 0.25
    project_weights: Mapping[str, float] = field(default_factory=dict)
    kind_weights: Mapping[ResourceKind, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.half_life <= 0:
            raise ValueError("the half-life is not positive")
        if any(weight <= 0 for weight in self.project_weights.values()):
            raise ValueError("the weight of a project is not positive")

    def weight(self, project_id: str) -> float:
        """Return the weight of a project: with twice as much it may use twice as much before its turn is later."""
        return self.project_weights.get(project_id, 1.0)


@dataclass(frozen=True, slots=True)
class UsedShare:
    """The share of all resources that a project has from ``begin`` to ``end``."""

    share: float
    begin: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.begin:
            raise ValueError("a piece ends before it begins")


def charge_for_returned(piece: UsedShare, at: int, rates: Rates) -> tuple[UsedShare, ...]:
    """Return the pieces that are charged for one that was given back before its end."""
    if at >= piece.end:
        return (piece,)
    at = max(at, piece.begin)
    return replace(piece, end=at), UsedShare(piece.share * rates.unused_factor, at, piece.end)


def sum_use(pieces: Iterable[UsedShare], at: int, rates: Rates) -> float:
    """Return the use in share-seconds at an instant."""
    return Account.of(pieces, at, rates).value(rates)


@dataclass(frozen=True, slots=True)
class Account:
    """The use of a project at an instant, from which that at later instants follows without its history.

    ``past`` is what has faded, ``rate`` the sum of the shares that it has now, ``ahead`` the share-seconds that it has
    booked from now on.
    """

    at: int
    past: float = 0.0
    rate: float = 0.0
    ahead: float = 0.0

    @classmethod
    def of(cls, pieces: Iterable[UsedShare], at: int, rates: Rates) -> Account:
        """Compute from all pieces."""
        past = rate = ahead = 0.0
        scale = rates.half_life / log(2)
        for piece in pieces:
            if piece.begin < at:
                until = min(piece.end, at)
                faded = exp2((until - at) / rates.half_life) - exp2((piece.begin - at) / rates.half_life)
                past += piece.share * scale * faded
            ahead += piece.share * max(0, piece.end - max(piece.begin, at))
            if piece.begin <= at < piece.end:
                rate += piece.share
        return cls(at, past, rate, ahead)

    def value(self, rates: Rates) -> float:
        """Return the use in share-seconds."""
        return self.past + rates.entry_penalty * self.ahead

    def later(self, at: int, rates: Rates) -> Account:
        """Return the account at a later instant, if no piece begins or ends before."""
        if at < self.at:
            raise ValueError("an account cannot go back in time")
        left = exp2((self.at - at) / rates.half_life)
        past = self.past * left + self.rate * rates.half_life / log(2) * (1 - left)
        return Account(at, past, self.rate, self.ahead - self.rate * (at - self.at))

    def booked(self, piece: UsedShare) -> Account:
        """Return the account with one more piece, which begins now or later."""
        if piece.begin < self.at:
            raise ValueError("a piece that is booked begins in the past")
        return replace(self, ahead=self.ahead + piece.share * (piece.end - piece.begin))

    def begun(self, share: float) -> Account:
        """Return the account when a booked piece begins."""
        return replace(self, rate=self.rate + share)

    def ended(self, share: float) -> Account:
        """Return the account when a piece ends."""
        return replace(self, rate=self.rate - share)

    def returned(self, piece: UsedShare, rates: Rates) -> Account:
        """Return the account when a piece, begun or not, is given back now.

        Until its end, or from its begin to its end, it goes on with the share that is charged.
        """
        rest = piece.end - max(piece.begin, self.at)
        if rest <= 0:
            raise ValueError("a piece that has ended cannot be given back")
        free = piece.share * (1 - rates.unused_factor)
        rate = self.rate - free if piece.begin <= self.at else self.rate
        return replace(self, rate=rate, ahead=self.ahead - free * rest)


@dataclass(frozen=True, slots=True)
class ProjectUsage:
    """The use of each project in share-seconds at the instant of a plan; of projects not named it is nothing."""

    values: Mapping[str, float] = field(default_factory=dict)
    rates: Rates = Rates()


Totals = Callable[[str, Demand], Sequence[Resource]]
"""Returns the registered resources that a project could have for a demand, free or not."""


def dominant_share(
    demands: Iterable[Demand], counts: Sequence[int], project_id: str, totals: Totals, rates: Rates
) -> float:
    """Return the dominant share of all that could serve each demand, so that 4 of 4 FPGAs weigh as much as all hosts.

    Whole resources are counted; of others the class counts of which most is taken. Demands on several kinds add up,
    each with the weight of its kind.
    """
    found = 0.0
    for demand, count in zip(demands, counts, strict=True):
        resources = totals(project_id, demand)
        if demand.per_instance is None:
            dominant = count / max(len(resources), 1)
        else:
            dominant = max(
                count * amount / max(sum(resource.capacity.get(name) for resource in resources), 1)
                for name, amount in demand.per_instance
            )
        found += dominant * rates.kind_weights.get(demand.kind, 1.0)
    return found


# Early ends are in no calendar. If they are a tenth of all ends, then as much ends in nine days as the calendar has
# ends for ten, and what would take ten days takes nine.
LEAST_FORESEEN = 0.9
"""A start is told at most a tenth of the wait earlier: most requests start just when they do if all end as booked."""

LEAST_KNOWN = 20
"""From fewer leases that have ended nothing is concluded."""

EARLY = 0.1
"""An end is early if more than this part of what was booked is left; one a few minutes early tells nothing."""


def foresee_part(ended: Iterable[tuple[UsedShare, int]]) -> float:
    """Return which part of what becomes free does so as booked, of pieces that are over, each with its real end.

    Rounded to percents, so that what is told changes only if that part does, and not below LEAST_FORESEEN; 1 if too
    little is known.
    """
    known, total, early = 0, 0.0, 0.0
    for piece, end in ended:
        known += 1
        total += piece.share
        early += piece.share * (piece.end - end > EARLY * (piece.end - piece.begin))
    return max(round(1 - early / total, 2), LEAST_FORESEEN) if known >= LEAST_KNOWN and total > 0 else 1.0


def expected_start(wish: int, latest: int, part: float) -> int:
    """Return when a request will probably start that wants to at ``wish``, and does at ``latest`` if all end as booked.

    ``part`` is what ``foresee_part`` returns. Whole minutes earlier than ``latest``, and never before ``wish``.
    """
    minutes = round((latest - wish) * (1 - part) / 60)
    return max(latest - minutes * 60, wish) if latest > wish else latest
