# SPDX-License-Identifier: Apache-2.0
"""What lending brings: ``python -m bench.lending`` replays leases that use a fifth of their hosts.

The decisions are those of the service (``plan_lending``), looked at each minute. Jobs of a lease come at random, each
on some hosts for some hours; its holder takes hosts without guests first, as Nova's weights do. Guests are never short:
a lent host is full of them at once, which is the worst case for who holds the lease.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from blazar.model.use.lending import LendingRules, LentHost, plan_lending

START = datetime(2030, 4, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURS = 60
"""Minutes."""
MOST_HOSTS = 4
MEAN_MINUTES = 180
DELETED_EARLY = 20
"""One of so many leases is deleted before its end: then guests go at once."""


@dataclass(slots=True)
class Figures:
    """Sums over leases, in host-minutes; ``waits`` are jobs that found too few hosts without guests."""

    held: int = 0
    used: int = 0
    lent: int = 0
    jobs: int = 0
    waits: int = 0
    guests: int = 0
    told_in_time: int = 0

    def add(self, other: Figures) -> None:
        """Add what another lease brought."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Replay:
    """One lease, minute by minute."""

    hosts: int
    minutes: int
    planned: int
    rules: LendingRules
    use: float
    chance: random.Random
    figures: Figures = field(default_factory=Figures)
    busy: dict[int, int] = field(default_factory=dict)
    idle: dict[int, datetime] = field(default_factory=dict)
    lent: dict[int, LentHost] = field(default_factory=dict)
    waiting: int = 0
    looked: set[int] = field(default_factory=set)

    def run(self) -> Figures:
        """Return what the lease brought."""
        self.idle = dict.fromkeys(range(self.hosts), START)
        rate = self.use * self.hosts / ((1 + MOST_HOSTS) / 2 * MEAN_MINUTES)
        for minute in range(self.minutes):
            self._end_jobs(minute)
            if self.chance.random() < rate:
                self._begin_job(minute)
            if self.rules.keep is not None:
                self._look(START + minute * MINUTE)
            self.figures.held += self.hosts
            self.figures.used += len(self.busy)
            self.figures.lent += sum(1 for id_ in self.lent if id_ not in self.busy)
        # Its end: guests that are still there go at once.
        self.figures.guests += len(self.lent)
        return self.figures

    def _end_jobs(self, minute: int) -> None:
        for id_ in [id_ for id_, end in self.busy.items() if end <= minute]:
            del self.busy[id_]
            self.idle[id_] = START + minute * MINUTE

    def _begin_job(self, minute: int) -> None:
        wanted = self.chance.randint(1, MOST_HOSTS)
        # Hosts that it uses already are not asked for again: such a job is another one's fault than the guests'.
        free = [id_ for id_ in self.idle if id_ not in self.lent]
        if wanted > len(self.idle):
            return
        self.figures.jobs += 1
        if wanted > len(free):
            self.figures.waits += 1
        end = minute + max(1, round(self.chance.expovariate(1 / MEAN_MINUTES)))
        for id_ in (free + [id_ for id_ in self.idle if id_ in self.lent])[:wanted]:
            self.busy[id_] = end
            del self.idle[id_]

    def _look(self, now: datetime) -> None:
        for id_, host in list(self.lent.items()):
            if host.ends_at is not None and host.ends_at <= now:
                self.figures.guests += 1
                self.figures.told_in_time += 1
                del self.lent[id_]
        until = START + (self.planned - 2) * MINUTE
        plan = plan_lending(range(self.hosts), self.idle, self.lent, self.rules, now=now, until=until)
        for id_ in plan.lent:
            self.lent[id_] = LentHost("r", id_, now)
        for id_, ends_at in plan.recalled.items():
            self.lent[id_] = LentHost("r", id_, self.lent[id_].since, ends_at)


def replay(rules: LendingRules, args: argparse.Namespace) -> Figures:
    """Return the figures of all leases; the same leases and jobs for any rules."""
    total = Figures()
    for number in range(args.leases):
        chance = random.Random(f"{args.seed} {number}")
        planned = chance.randint(1, args.days) * 24 * HOURS
        early = number % DELETED_EARLY == DELETED_EARLY - 1
        minutes = chance.randint(1, planned) if early else planned
        total.add(Replay(args.hosts, minutes, planned, rules, args.use, chance).run())
    return total


def rows(args: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Yield the lines of the table."""
    yield "kept", "used", "lent", "idle", "jobs that met guests", "guests told a whole notice before"
    for keep in (None, 0, 1, 2, 4, 6):
        rules = LendingRules(keep, timedelta(minutes=args.after), timedelta(minutes=args.notice))
        f = replay(rules, args)
        idle = f.held - f.used - f.lent
        shares = (f"{100 * part / f.held:.1f} %" for part in (f.used, f.lent, idle))
        told = f"{100 * f.told_in_time / f.guests:.2f} %" if f.guests else "-"
        yield "nothing lent" if keep is None else str(keep), *shares, f"{100 * f.waits / max(1, f.jobs):.1f} %", told


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line, or of these words."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("days", 14), ("leases", 40), ("hosts", 16), ("after", 30), ("notice", 5), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--use", type=float, default=0.2)
    return parser.parse_args(words)


def main() -> None:
    """Print a table for documents."""
    for number, row in enumerate(rows(read_options())):
        print("| " + " | ".join(row) + " |")
        if number == 0:
            print("|" + "---|" * len(row))


if __name__ == "__main__":
    main()
