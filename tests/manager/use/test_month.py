# SPDX-License-Identifier: Apache-2.0
"""A month of leases of which nearly a third is never used: what comes back, and whether anybody loses anything.

The looks are those of a manager, at the times that the decisions name; some fail, for single leases and for all of
them at once. Every lease follows a script of its own, from streams with a fixed seed. ``docs/use-it-or-lose-it.md``
has the figures.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from blazar.manager.use import unused
from blazar.manager.use.unused import Surroundings, judge_usage, usage_of
from blazar.model.use.policy import Usage, UseMode, UsePolicy, UseStep, UseWatch

MONTH = timedelta(days=30)
FIRST = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NO_SHOWS = 0.3
POLICY = UsePolicy(UseMode.ON, idle_after=timedelta(hours=24))
OUTAGES = [(FIRST + timedelta(days=d), FIRST + timedelta(days=d, hours=h)) for d, h in ((4, 2), (11, 1), (23, 5))]
"""Times in which Nova does not answer."""


@dataclass(frozen=True)
class Booking:
    """A lease: its window in which it would end by itself, hosts, and when servers run on them (None: never)."""

    start: datetime
    end: datetime
    hosts: int
    runs: tuple[tuple[datetime, datetime], ...]
    changed_at: datetime

    def states(self, now: datetime) -> dict[str, int]:
        if any(begin <= now < end for begin, end in self.runs):
            return {"ACTIVE": self.hosts}
        return {"SHUTOFF": self.hosts} if any(end <= now for _, end in self.runs) and self.hosts % 2 else {}


def bookings(seed: int, leases: int) -> list[Booking]:
    sizes, lengths, starts, uses = (random.Random(f"{seed}-{name}") for name in ("sizes", "lengths", "starts", "uses"))
    made = []
    for number in range(leases):
        start = FIRST + timedelta(minutes=starts.randrange(30 * 24 * 60))
        hours = min(168.0, max(1.0, lengths.lognormvariate(math.log(29), 1.0)))
        end = start + timedelta(minutes=round(hours * 60))
        hosts = sizes.choices((1, 2, 4, 8, 16, 32), (40, 20, 15, 10, 10, 5))[0]
        changed = start + (end - start) * uses.random() if uses.random() < 0.1 else start
        made.append(Booking(start, end, hosts, () if number % 10 < 10 * NO_SHOWS else _runs(start, end, uses), changed))
    return made


def _runs(start: datetime, end: datetime, uses: random.Random) -> tuple[tuple[datetime, datetime], ...]:
    """Return when servers run: most at once and to the end, some in pieces, with pauses shorter than the policy's."""
    begin = start + timedelta(minutes=uses.choice((2, 5, 10, 60, 240, 330)))
    pieces = []
    while begin < end:
        until = end if uses.random() < 0.7 else min(end, begin + timedelta(hours=uses.uniform(1, 12)))
        pieces.append((begin, until))
        begin = until + timedelta(hours=uses.uniform(0.1, 20))
    return tuple(pieces)


@dataclass
class Outcome:
    dead: float = 0.0
    back: float = 0.0
    released: int = 0
    released_live: int = 0
    released_used: int = 0
    looks: int = 0
    most_in_an_hour: int = 0


def month(seed: int, leases: int) -> Outcome:
    """Run a month with so many leases; node-hours are those of no-shows from the policy's time on."""
    failing = random.Random(f"{seed}-failures")
    found = Outcome()
    heap: list[tuple[datetime, int, Booking, UseWatch]] = []
    order = itertools.count()
    running: list[tuple[datetime, datetime]] = []
    for each in bookings(seed, leases):
        running.append((each.start, each.end))
        watch = unused.begin_watch(POLICY, each.start)
        heapq.heappush(heap, (unused.first_check(watch), next(order), each, watch))
        if not each.runs:
            found.dead += max(0.0, (each.end - each.start - POLICY.unused_after) / HOUR) * each.hosts
    released: list[datetime] = []
    while heap:
        now, _, lease, watch = heapq.heappop(heap)
        if now >= lease.end:
            continue
        found.looks += 1
        down = any(begin <= now < end for begin, end in OUTAGES) or failing.random() < 0.02
        usage = Usage.UNKNOWN if down else usage_of(lease.states(now))
        in_use = 1 + sum(begin <= now < end for begin, end in running) if watch.noticed_at else 0
        recent = sum(now - at < HOUR for at in released)
        changed_at = lease.changed_at if lease.changed_at <= now else lease.start
        verdict = judge_usage(watch, usage, "", Surroundings(lease.end, changed_at, due=recent + 1, leases=in_use), now)
        if verdict.step is UseStep.RELEASED:
            released.append(now)
            found.released += 1
            found.released_live += usage_of(lease.states(now)) is Usage.USED
            found.released_used += bool(lease.runs)
            found.most_in_an_hour = max(found.most_in_an_hour, recent + 1)
            if not lease.runs:
                found.back += (lease.end - now) / HOUR * lease.hosts
        elif verdict.next_at is not None:
            heapq.heappush(heap, (verdict.next_at, next(order), lease, verdict.watch))
    return found


def test_a_month_with_no_shows_gives_nine_tenths_of_the_dead_hours_back_and_harms_nobody():
    found = month(seed=7, leases=400)
    assert found.back >= 0.9 * found.dead > 0
    assert found.released_live == 0


if __name__ == "__main__":
    for seed in range(1, 6):
        one = month(seed, leases=3000)
        print(
            f"seed {seed}: {one.back / one.dead:.1%} of {one.dead:.0f} dead node-hours, {one.released} released, "
            f"{one.released_live} with live servers, {one.released_used} once used, {one.looks} looks, "
            f"{one.most_in_an_hour} at most in an hour"
        )
