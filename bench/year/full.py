# SPDX-License-Identifier: Apache-2.0
"""How long an answer takes on a calendar that is full: leases of all lengths that begin in the next weeks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from bench.year.calendar import YearCalendar
from bench.year.trace import ASKED, DAY, HOUR, YearRequest, make_hosts
from blazar.calendar.repack.values import RepackMode

NOTICE = 3 * HOUR
LONGEST_SOLVING = 2.0
"""Seconds that a solver may have, where it is installed."""

WANTED = 0.8
"""The part of all host-hours that is promised before anything is measured."""


def measure(mode: RepackMode, hosts: int, leases: int, seed: int, asked: int) -> dict[str, object]:
    """Return figures of the answers to so many requests more, in seconds of CPU each."""
    # Those that still fit into the last gaps have one or two hosts for a day.
    days = max(1, round(leases * 2.5 / hosts * 1.5))
    calendar = YearCalendar(RepackMode.OFF, hosts=make_hosts(hosts // 500))
    requests = _draw(random.Random(seed), days)
    made = 0
    for _ in range(20):
        made += sum(calendar.ask(request) for request in islice(requests, leases // 5))
        if calendar.count_used(days) >= WANTED:
            break
    calendar.mode, calendar.exact = mode, LONGEST_SOLVING
    calendar.seconds.clear()
    granted = sum(calendar.ask(request) for request in islice(requests, asked))
    spent = sorted(calendar.seconds["booking"])
    return {
        "mode": str(mode),
        "hosts": hosts,
        "leases": made,
        "days": days,
        "used": round(calendar.count_used(days), 3),
        "asked": asked,
        "granted": granted,
        **calendar.counts,
        "seconds": {f"p{part}": round(spent[int(len(spent) * part / 100.01)], 3) for part in (50, 99, 100)},
    }


def _draw(dice: random.Random, days: int) -> Iterator[YearRequest]:
    """Yield requests for some time of these days, all made now."""
    while True:
        length = int(min(21 * DAY, max(HOUR, dice.lognormvariate(0, 1.0) * 1.5 * DAY))) // HOUR * HOUR
        start = NOTICE + dice.randrange(max(1, days * DAY - length)) // HOUR * HOUR
        kind = dice.choices(range(len(ASKED)), [weight for weight, _ in ASKED])[0]
        yield YearRequest(0, start, start + length, min(16, 1 + int(dice.expovariate(1 / 2.1))), kind)
