# SPDX-License-Identifier: Apache-2.0
"""What tests of surgery on leases do and look at."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from blazar.model.leases.requests import Actor
from blazar.model.resources.resource import KINDS
from blazar.model.surgery import Terms
from tests.world import World

HOUR = timedelta(hours=1)
OPERATOR = Terms(Actor("root", "admin", operator=True))


def names(details) -> set[str]:
    """Return the names of what a lease has."""
    return {each.name for each in details.held if not each.released}


def booked(world: World) -> Counter[int]:
    """Return for how many seconds how much of each resource is promised, by calendar id."""
    found: Counter[int] = Counter()
    for kind in KINDS:
        for each in world.store.calendar.load_live(kind):
            found[each.resource_id] += each.count * int(each.window.duration.total_seconds())
    return found
