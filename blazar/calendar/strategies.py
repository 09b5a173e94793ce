"""Placement strategies: in which order resources that fit are taken."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from enum import StrEnum

from blazar.model.resource import Resource


class Strategy(StrEnum):
    """How to choose among resources that fit; each is deterministic under a seed."""

    PACK = "pack"
    """The smallest resource that fits, so that the large ones stay free for those who need them."""
    SPREAD = "spread"
    """The largest resource that fits, so that everybody has room."""
    RANDOM = "random"
    """Any, by a seeded shuffle: rivals for the same resources part."""


def in_order(resources: Iterable[Resource], strategy: Strategy, seed: int) -> Sequence[Resource]:
    """Return the resources in the order in which the strategy would take them."""
    if strategy is Strategy.RANDOM:
        shuffled = list(resources)
        random.Random(seed).shuffle(shuffled)
        return shuffled
    return sorted(resources, key=_size, reverse=strategy is Strategy.SPREAD)


def _size(resource: Resource) -> tuple[tuple[int, ...], int]:
    # The name of a class orders the amounts (DISK_GB, MEMORY_MB, VCPU, …); the id makes the order total.
    return tuple(amount for _, amount in resource.capacity), resource.id
