# SPDX-License-Identifier: Apache-2.0
"""Speed that stays: figures that hold on any machine, each with its limit.

Times say little on a machine that does other things, too. What is measured here are ratios of CPU, that of PostgreSQL
included, to a reference of the same run, numbers of statements, and how both grow with ten times as many leases.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.ground import Ground, database
from bench.model.measure import Processors, requests_of
from tests.statements import counted

HOSTS, LEASES, TENFOLD, TURNS = 100, 500, 10, 20


@dataclass(frozen=True, slots=True)
class Held:
    """A figure with its limit, which is the mean of measurements and a fifth."""

    database: str
    what: str
    value: float
    limit: float

    @property
    def is_exceeded(self) -> bool:
        """Whether it is worse than its limit."""
        return self.value > self.limit


RATIO = "creation by writes of its rows"
STATEMENTS = {"create": 11, "delete": 17, "show": 3, "page of 100": 1, "find a time": 4, "calendar": 3}
GROWTH = {"create": 0.1, "delete": 0.1, "show": 0.1, "page of 100": 0.2, "find a time": 0.45, "calendar": 0.85}
LIMITS: Mapping[str, float] = {
    **{f"{base}: {RATIO}": limit for base, limit in (("sqlite", 6.6), ("postgresql", 4.9))},
    **{f"statements of {name}": count for name, count in STATEMENTS.items()},
    **{f"growth of statements of {name}": 0.0 for name in STATEMENTS},
    **{f"growth of CPU of {name}": exponent for name, exponent in GROWTH.items()},
}
"""The limit of each figure: of an exponent the mean of measurements and a tenth, of a ratio the mean and a fifth.

Ratios have limits on SQLite and PostgreSQL, whose CPU is seen.
"""


def list_exceeded(figures: Sequence[Held]) -> list[str]:
    """Return a sentence for each figure above its limit."""
    return [f"{f.database}: {f.what} is {f.value:.2f}, and {f.limit:.2f} at most" for f in figures if f.is_exceeded]


def measure(base: str, hosts: int = HOSTS, leases: int = LEASES, turns: int = TURNS) -> Iterator[Held]:
    """Yield the figures on a database."""
    with database(base) as engine:
        ground = Ground(engine, hosts)
        ground.fill(leases, most=leases * TENFOLD)
        few = count_and_time(ground, hosts, turns)
        yield _hold(base, RATIO, compare_with_writes(ground, turns))
        for name, (statements, _) in few.items():
            yield _hold(base, f"statements of {name}", statements)
        ground.fill(leases * TENFOLD, most=leases * TENFOLD)
        many = count_and_time(ground, hosts, turns)
    for name, (statements, seconds) in many.items():
        yield _hold(base, f"growth of statements of {name}", grow(few[name][0], statements))
        yield _hold(base, f"growth of CPU of {name}", grow(few[name][1], seconds))


def grow(few: float, many: float) -> float:
    """Return the exponent b of cost ~ leases^b, between some leases and ten times as many."""
    return math.log(many / few) / math.log(TENFOLD)


def compare_with_writes(ground: Ground, turns: int) -> float:
    """Return by how much a creation takes longer than inserting what it writes of a lease, in turn with it."""
    create, measured = requests_of(ground, len(ground.ids))["create"], partial(_use, ground)
    pairs = [(create.measure(measured), measured(ground.insert_one)) for _ in range(turns)]
    created, inserted = (statistics.median(spans) for spans in zip(*pairs, strict=True))
    return created / inserted


def count_and_time(ground: Ground, hosts: int, turns: int) -> Mapping[str, tuple[int, float]]:
    """Return the number of statements, and the median of seconds of CPU, of each request."""
    found = {}
    for name, request in requests_of(ground, hosts).items():
        measured = partial(_use, ground)
        # The first one reads what is kept, and the second one what the first has changed of it.
        for _ in range(2):
            request.measure(measured)
        statements = request.measure(partial(_count, ground))
        found[name] = statements, statistics.median(request.measure(measured) for _ in range(turns))
    return found


def _count(ground: Ground, act: Callable[[], object]) -> int:
    with counted(ground.engine) as statements:
        act()
    return statements.count


def _hold(base: str, what: str, value: float) -> Held:
    return Held(base, what, round(value, 2), LIMITS.get(f"{base}: {what}", LIMITS.get(what, math.inf)))


def _use(ground: Ground, act: Callable[[], object]) -> float:
    """Return the seconds of CPU that this process and the database use for something."""
    processors = Processors(ground.engine)
    begin = processors.ours() + processors.database()
    act()
    return processors.ours() + processors.database() - begin
