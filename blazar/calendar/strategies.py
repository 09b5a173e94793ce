# SPDX-License-Identifier: Apache-2.0
"""Placement strategies: the order in which resources that fit are taken."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from enum import StrEnum

from blazar.model.resource import Resource


class Strategy(StrEnum):
    """How to choose among resources that fit; each strategy is deterministic for a seed."""

    PACK = "pack"
    """The smallest resource that fits, so that large ones stay free for those who need them."""
    SPREAD = "spread"
    """The largest resource that fits, so that each user has spare capacity."""
    RANDOM = "random"
    """Any, by a seeded shuffle: concurrent requests choose different resources."""


def in_order(resources: Iterable[Resource], strategy: Strategy, seed: int) -> Sequence[Resource]:
    """Return resources, given smallest first, in the order in which the strategy takes them."""
    ordered = list(resources)
    if strategy is Strategy.RANDOM:
        random.Random(seed).shuffle(ordered)
    elif strategy is Strategy.SPREAD:
        ordered.reverse()
    return ordered


def size(resource: Resource) -> tuple[tuple[int, ...], str, int]:
    """Return the sort key for smallest first; the name and id make the order total."""
    amounts = resource.capacity
    return (
        (amounts.get("VCPU") + amounts.get("PCPU"), amounts.get("MEMORY_MB"), amounts.get("DISK_GB")),
        resource.name,
        resource.id,
    )
