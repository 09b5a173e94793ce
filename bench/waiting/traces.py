# SPDX-License-Identifier: Apache-2.0
"""Requests of a virtual cloud: each purpose has a stream of random numbers of its own, all from one seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from bench.waiting.models import models_of

HOURS_OF_DAY = tuple(1 + 2 * max(0.0, math.sin(math.pi * (hour - 7) / 14)) for hour in range(24))
"""How many requests come in each hour of a working day: up to three times as many as in the night."""

MIXES = {
    "1-4": {1: 50, 2: 30, 4: 20},
    "1-32": {1: 40, 2: 20, 4: 15, 8: 10, 16: 10, 32: 5},
    "4-128": {4: 40, 8: 20, 16: 15, 32: 10, 64: 10, 128: 5},
}
"""How often a request is for how many hosts."""

STREAMS = ("at", "size", "length", "early", "lead", "project", "flexible", "withdraw", "model")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Times are in hours. Parts are of all requests.

    ``early``: end early, at any instant of their length. ``flexible``: would do with half of the hosts and of the
    length, but begin within a week. ``withdraw``: are taken back after up to three days if they have not begun by then.
    ``zipf``: how fast the activity of projects falls with their rank. ``weights``: the weights of projects are 1 to
    this in turn. ``models``: of how many models the hosts are, 1 or 5.
    """

    mix: str = "1-32"
    seed: int = 1
    days: int = 60
    hosts: int = 500
    projects: int = 200
    load: float = 0.95
    early: float = 0.1
    ahead: float = 0.5
    lead: int = 14 * 24
    patience: int = 14 * 24
    warm_up: int = 20
    flexible: float = 0.3
    withdraw: float = 0.05
    zipf: float = 1.1
    weights: int = 1
    models: int = 1


@dataclass(frozen=True, slots=True)
class Request:
    """A request that comes at the hour ``at``, to begin from ``wanted`` to ``latest``.

    It would really be used for ``real`` hours, and is withdrawn at the hour ``withdrawn`` if it has not begun.
    """

    id: str
    project: str
    count: int
    at: int
    wanted: int
    length: int
    real: int
    least: int
    shortest: int
    latest: int | None = None
    withdrawn: int | None = None
    model: str = "m0"


def project_name(number: int) -> str:
    return f"p{number:03}"


def weights_of(p: Parameters) -> dict[str, float]:
    """Return the weights of projects: 1 to ``weights`` in turn."""
    return {project_name(number): 1.0 + number % p.weights for number in range(p.projects)}


def trace(p: Parameters) -> list[Request]:
    """Return the requests, with as many of them as the load asks for."""
    streams = {name: random.Random(f"{p.seed}/{name}") for name in STREAMS}
    activity = [1 / rank**p.zipf for rank in range(1, p.projects + 1)]
    models = models_of(p.models, p.hosts, MIXES[p.mix])
    per_week = p.load * sum(model.requests for model in models) * 24 * 7 / _mean_length(p.early)
    weights = [part * (5 if day < 5 else 1) for day in range(7) for part in HOURS_OF_DAY]
    rates = [per_week * weight / sum(weights) for weight in weights]
    found: list[Request] = []
    for hour in range(p.days * 24):
        for _ in range(_poisson(streams["at"], rates[hour % len(rates)])):
            length = _length(streams["length"])
            real = (
                max(1, math.ceil(length * streams["early"].random())) if streams["early"].random() < p.early else length
            )
            lead = streams["lead"].randrange(p.lead) if streams["lead"].random() < p.ahead else 0
            model = streams["model"].choices(models, [each.requests for each in models])[0]
            count = streams["size"].choices(list(model.sizes), list(model.sizes.values()))[0]
            project = streams["project"].choices(range(p.projects), activity)[0]
            least, shortest, latest = count, length, None
            if streams["flexible"].random() < p.flexible:
                least, shortest, latest = math.ceil(count / 2), math.ceil(length / 2), hour + lead + 7 * 24
            gives_up = streams["withdraw"].randrange(1, 3 * 24)
            withdrawn = hour + lead + gives_up if streams["withdraw"].random() < p.withdraw else None
            id_, name, wanted = f"l{len(found):06}", project_name(project), hour + lead
            terms = least, shortest, latest, withdrawn, model.name
            found.append(Request(id_, name, count, hour, wanted, length, real, *terms))
    return found


def _length(stream: random.Random) -> int:
    """Return a length: log-normal with a median of 29 hours, from an hour to a week; 15 % are exactly a week."""
    if stream.random() < 0.15:
        return 7 * 24
    return min(max(round(stream.lognormvariate(math.log(29), 1.0)), 1), 7 * 24)


def _mean_length(early: float) -> float:
    stream = random.Random("mean")
    return sum(_length(stream) for _ in range(50_000)) / 50_000 * (1 - early / 2)


def _poisson(stream: random.Random, mean: float) -> int:
    count, product, bound = 0, stream.random(), math.exp(-mean)
    while product > bound:
        count += 1
        product *= stream.random()
    return count
