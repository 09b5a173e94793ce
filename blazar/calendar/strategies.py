# SPDX-License-Identifier: Apache-2.0
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
    """Return resources, which come smallest first, in the order in which the strategy would take them."""
    ordered = list(resources)
    if strategy is Strategy.RANDOM:
        random.Random(seed).shuffle(ordered)
    elif strategy is Strategy.SPREAD:
        ordered.reverse()
    return ordered


def size(resource: Resource) -> tuple[tuple[int, ...], str, int]:
    """Return the key by which resources are sorted, smallest first; the name and id make the order total."""
    amounts = resource.capacity
    return (
        (amounts.get("VCPU") + amounts.get("PCPU"), amounts.get("MEMORY_MB"), amounts.get("DISK_GB")),
        resource.name,
        resource.id,
    )
