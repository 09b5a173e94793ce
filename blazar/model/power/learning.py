# SPDX-License-Identifier: Apache-2.0
"""What is learned of a class of hosts: how long its wakes take, and how many hosts are asked for at once.

Both are pure functions of what has happened; the figures behind them are in ``docs/power.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass
from blazar.model.power.settings import USUAL_WAKE, SpareSource

FEWEST_WAKES = 50
"""From how many wakes on their durations say something."""

MOST_WAKES = 200
"""How many wakes count, the last ones."""

MARGIN = timedelta(minutes=5)
"""What the lead has beyond a wake that fails and one that succeeds: for the looks between them."""

FIRST_LEAD = timedelta(minutes=30)
"""The lead until enough wakes are known."""

HOUR = timedelta(hours=1)
MEMORY = timedelta(days=14)
"""For how long requests count."""

FACTOR = 1.5
"""Two large requests in a row, before the spare is filled again, are what hurts."""

LEAST_SHARES = (0.16, 0.08)
"""The part of a class that is the spare at least: in working hours, and otherwise. What was seldom asked for until now
teaches too little."""


@dataclass(frozen=True, slots=True)
class NearRequest:
    """A request for hosts that start before the lead has passed: when it was made, and for how many."""

    at: datetime
    hosts: int


def learn_lead(wakes: Sequence[timedelta], timeout: timedelta) -> timedelta:
    """Return how long before a start its hosts are woken, from the durations of wakes, the last one at the end.

    One attempt that fails, the 99th percentile of a second one, and a margin.
    """
    slowest = _find_slowest(wakes)
    return max(FIRST_LEAD, timeout + MARGIN) if slowest is None else timeout + slowest + MARGIN


def learn_wake(wakes: Sequence[timedelta]) -> timedelta:
    """Return how long a wake takes, but for one of a hundred, from the durations of wakes, the last one at the end."""
    slowest = _find_slowest(wakes)
    return USUAL_WAKE if slowest is None else slowest


def _find_slowest(wakes: Sequence[timedelta]) -> timedelta | None:
    """Return the 99th percentile of the last wakes; None if too few are known."""
    known = sorted(wakes[-MOST_WAKES:])
    return known[math.ceil(0.99 * len(known)) - 1] if len(known) >= FEWEST_WAKES else None


def is_working_time(at: datetime) -> bool:
    """Tell whether an instant, in the time of the site, is within working hours: Monday to Friday, 7 to 19 h."""
    return at.weekday() < 5 and 7 <= at.hour < 19


@dataclass(frozen=True, slots=True)
class LearnedSpare:
    """How many ``hosts`` stay awake, as the most that were ``asked`` for at once within an hour, or a share, says."""

    hosts: int
    source: SpareSource
    asked: int


def learn_spare(requests: Iterable[NearRequest], hosts: int, *, now: datetime) -> LearnedSpare:
    """Return how many hosts of a class of ``hosts`` stay awake and free.

    1.5 times the most that were asked for within any hour of the last 14 days, and at least a share of the class;
    working hours and others count apart. Instants have the site's zone.
    """
    working = is_working_time(now)
    least = math.ceil(LEAST_SHARES[0 if working else 1] * hosts)
    known = sorted(
        (r for r in requests if r.at > now - MEMORY and is_working_time(r.at) is working), key=lambda r: r.at
    )
    most = current = first = 0
    for request in known:
        current += request.hosts
        while known[first].at <= request.at - HOUR:
            current -= known[first].hosts
            first += 1
        most = max(most, current)
    wanted = math.ceil(FACTOR * most)
    source = SpareSource.ASKED if wanted > least else SpareSource.SHARE
    return LearnedSpare(min(hosts, max(least, wanted)), source, most)
