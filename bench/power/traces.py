# SPDX-License-Identifier: Apache-2.0
"""The leases of a month, drawn by a seed: when each is booked, when it starts and ends, and how many hosts it has."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ZERO = datetime(2030, 4, 1, tzinfo=UTC)
"""The first instant of the month, a Monday."""

MIXES = {"ahead": 0.0, "at-once": 1 / 3}
"""The part of the leases that start when they are booked."""

WITHIN_A_DAY = 0.4
"""The part of the others that are booked for the next 24 hours; the rest for the next three weeks."""

SIZES = {1: 0.3, 2: 0.2, 4: 0.2, 8: 0.15, 16: 0.1, 32: 0.05}
MEDIAN, SIGMA = 12.0, 0.5
"""Of the hours of a lease, which are log-normal."""

FIRST_NOTICE = timedelta(minutes=35)
"""How long before its start a lease is booked at least that does not start at once."""


@dataclass(frozen=True)
class Month:
    """What is simulated. ``use`` is the part of all host-hours that are asked for."""

    mix: str
    seed: int
    hosts: int = 500
    days: int = 30
    use: float = 0.6
    spare: int = 0
    learned: bool = False
    failing: float = 0.02
    lead: int = 30
    strategy: str = "compact"


@dataclass(frozen=True, slots=True)
class Booking:
    """A lease as it is asked for. ``at_once``: it starts when it is booked."""

    number: int
    at: datetime
    start: datetime
    end: datetime
    hosts: int
    at_once: bool


def draw_bookings(month: Month) -> list[Booking]:
    """Return the bookings of a month in the order in which they are made."""
    draw = random.Random(f"{month.mix}-{month.seed}")
    mean = sum(size * part for size, part in SIZES.items()) * MEDIAN * math.exp(SIGMA**2 / 2)
    count = round(month.hosts * month.days * 24 * month.use / mean)
    found = []
    for _ in range(count):
        at = draw_working_time(draw, month.days)
        at_once = draw.random() < MIXES[month.mix]
        start = at if at_once else at + draw_notice(draw)
        length = timedelta(minutes=max(30, round(60 * draw.lognormvariate(math.log(MEDIAN), SIGMA))))
        (size,) = draw.choices(list(SIZES), list(SIZES.values()))
        found.append((at, start, start + length, min(size, month.hosts // 4), at_once))
    return [Booking(number, *one) for number, one in enumerate(sorted(found))]


def draw_working_time(draw: random.Random, days: int) -> datetime:
    """Return a minute of the month: four of five are on working days between 8 and 18 h."""
    while True:
        at = ZERO + timedelta(minutes=draw.randrange(days * 24 * 60))
        working = at.weekday() < 5 and 8 <= at.hour < 18
        # The working hours are 50 of the 168 of a week.
        if working or draw.random() < 0.25 * 50 / 118:
            return at


def draw_notice(draw: random.Random) -> timedelta:
    """Return how long before its start a lease is booked that does not start at once."""
    if draw.random() < WITHIN_A_DAY:
        return FIRST_NOTICE + timedelta(minutes=draw.randrange(23 * 60))
    return timedelta(days=1, minutes=draw.randrange(20 * 24 * 60))
