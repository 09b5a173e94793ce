# SPDX-License-Identifier: Apache-2.0
"""What this process books itself: it knows what that changes of the calendar, and need not read it back.

It is noted before the commit, so that nobody finds a row whose note is still to come, and counts only once the row is
found. So what was not committed after all changes nothing, and what is not noted, or does not fit what is kept, is
read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter

from blazar.calendar.kept import KeptCalendar, KeptResource, OwnBooking
from blazar.calendar.timeline import Use, epoch
from blazar.model.base.clock import later
from blazar.model.calendar.allocations import Allocation
from blazar.model.resources.resource import ResourceKind

_BY_GENERATION = attrgetter("generation")

Booked = tuple[int, str]
"""A resource, and the lease that has got it."""


def list_bookings(
    allocations: Iterable[Allocation], generations: Mapping[int, int], cleaning: timedelta
) -> Mapping[ResourceKind, Mapping[Booked, OwnBooking]]:
    """Return what a commit books for new leases, by kind; ``generations`` are those of the resources before it."""
    uses: dict[tuple[ResourceKind, int, str], list[Use]] = defaultdict(list)
    for a in allocations:
        use = epoch(a.window.start), epoch(later(a.window.end, cleaning)), a.count, a.per_instance
        uses[a.kind, a.resource_id, a.lease_id].append(use)
    found: dict[ResourceKind, dict[Booked, OwnBooking]] = defaultdict(dict)
    for (kind, id_, lease_id), mine in uses.items():
        if id_ in generations:
            found[kind][id_, lease_id] = OwnBooking(generations[id_], tuple(mine))
    return found


def take_bookings(
    kept: KeptCalendar, changed: Mapping[int, Sequence[str | None]], noted: dict[Booked, OwnBooking]
) -> Mapping[int, KeptResource]:
    """Return those of the resources that have ``changed`` by nothing but bookings that are noted, as they are now.

    Each note of a row that is found is taken.
    """
    found = {}
    for id_, tokens in changed.items():
        mine = {lease_id: noted.pop((id_, lease_id), None) for lease_id in set(tokens) if lease_id is not None}
        bookings = [booking for booking in mine.values() if booking is not None]
        rows = {lease_id: len(booking.uses) for lease_id, booking in mine.items() if booking is not None}
        resource = kept.resources.get(id_)
        if resource is None or Counter(tokens) != rows:
            continue
        if (after := resource.add_bookings(sorted(bookings, key=_BY_GENERATION))) is not None:
            found[id_] = after
    return found
