# SPDX-License-Identifier: Apache-2.0
"""Models of hosts: a request is for hosts of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PERCENT = {1: (100,), 5: (60, 20, 10, 8, 2)}
"""How many percent of all hosts are of each model, by the number of models."""

PROPERTY = "model"


@dataclass(frozen=True, slots=True)
class Model:
    """Hosts that are alike; ``sizes`` is how often a request for them is for how many."""

    name: str
    hosts: int
    sizes: Mapping[int, int]

    @property
    def mean_size(self) -> float:
        return sum(size * n for size, n in self.sizes.items()) / sum(self.sizes.values())

    @property
    def requests(self) -> float:
        """How often it is asked for, so that the load of all models is the same."""
        return self.hosts / self.mean_size


def models_of(number: int, hosts: int, sizes: Mapping[int, int]) -> tuple[Model, ...]:
    """Return the models of a cloud; nobody asks for more hosts of a model than there are."""
    counts = [hosts * percent // 100 for percent in PERCENT[number]]
    counts[0] += hosts - sum(counts)
    return tuple(
        Model(f"m{place}", count, {size: n for size, n in sizes.items() if size <= count})
        for place, count in enumerate(counts)
    )
