# SPDX-License-Identifier: Apache-2.0
"""What is asked for in a year: whole hosts of ten classes, more of some than there are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from blazar.model.base.amounts import Amounts
from blazar.model.resources.requirements import Requirement, parse_requirement
from blazar.model.resources.resource import HOST, Resource

HOUR, DAY = 3600, 86400
ZERO = datetime(2030, 1, 1, tzinfo=UTC)

CLASSES = (90, 80, 70, 60, 50, 40, 40, 30, 20, 20)
"""Hosts of each class; those of the last two have a GPU."""

ASKED: Sequence[tuple[float, Sequence[int]]] = (
    (30, range(10)),
    (7, (8, 9)),
    (20, (0, 1, 2, 3)),
    (17, (4, 5, 6, 7)),
    *((weight, (number,)) for number, weight in ((0, 4), (2, 4), (3, 4), (4, 4), (5, 3), (6, 3), (8, 2), (9, 2))),
)
"""How often is asked, in percent, for hosts of any of these classes."""


@dataclass(frozen=True, slots=True)
class YearRequest:
    """At ``at`` somebody asks for ``count`` hosts of some classes; all in seconds from the first of the year."""

    at: int
    start: int
    end: int
    count: int
    asked: int

    @property
    def host_hours(self) -> float:
        """What it asks for."""
        return self.count * (self.end - self.start) / HOUR


def make_hosts(times: int = 1) -> tuple[Resource, ...]:
    """Return so many times 500 hosts, those of a class after each other."""
    names = [f"c{number}" for number, size in enumerate(CLASSES) for _ in range(size * times)]
    capacity = Amounts.of({"VCPU": 64})
    return tuple(
        Resource(id_, HOST, str(id_), f"host-{id_:04}", {"class": name}, {}, capacity, True, ZERO)
        for id_, name in enumerate(names, 1)
    )


def make_requirements() -> tuple[Requirement, ...]:
    """Return what each kind of request asks of its hosts."""
    found = []
    for _, classes in ASKED:
        each = [f'["==", "$class", "c{number}"]' for number in classes]
        text = "" if len(each) == len(CLASSES) else each[0] if len(each) == 1 else f'["or", {", ".join(each)}]'
        found.append(parse_requirement(text, field="resource_properties"))
    return tuple(found)


def draw_requests(seed: int, load: float, days: int) -> Iterator[YearRequest]:
    """Yield requests for so much of all host-hours: a third for now, else 14 days ahead, up to 90."""
    dice, wanted = random.Random(seed), load * sum(CLASSES) * days * 24
    drawn: list[YearRequest] = []
    while wanted > 0:
        at = dice.randrange(days * DAY)
        ahead = 0 if dice.random() < 0.35 else min(90 * DAY, int(dice.expovariate(1 / (14 * DAY)))) // HOUR * HOUR
        length = int(min(21 * DAY, max(HOUR, dice.lognormvariate(0, 1.0) * 1.5 * DAY))) // HOUR * HOUR
        count = min(16, 1 + int(dice.expovariate(1 / 2.1)))
        asked = dice.choices(range(len(ASKED)), [weight for weight, _ in ASKED])[0]
        drawn.append(YearRequest(at, at + ahead, at + ahead + max(HOUR, length), count, asked))
        wanted -= drawn[-1].host_hours
    yield from sorted(drawn, key=lambda one: one.at)
