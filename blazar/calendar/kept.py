# SPDX-License-Identifier: Apache-2.0
"""The uses of all resources of a kind, kept in memory: what is promised in any window, without reading it again.

It is a value: a change makes another one, which shares all that is the same, so that who looks at one sees it whole.
Instants are seconds since the epoch.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from blazar.calendar.fits import NEVER
from blazar.calendar.occupancy import Occupancy
from blazar.calendar.timeline import CleanedUses, OutsideUses, Timeline, TimelineTerms, Use, sort_uses
from blazar.model.base.values import dataclass

KEPT_USES = 500_000
"""How many uses a manager keeps by default: some 100 MB."""

Span = tuple[int, int]
"""A start and an end."""

_BY_START = itemgetter(0)


@dataclass(frozen=True, slots=True)
class OwnBooking:
    """What a new lease has got of a resource as of a generation, which that has raised by one."""

    generation: int
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class KeptResource:
    """What is promised of a resource, with its generation as it was read in the same snapshot.

    ``uses`` are by start, those among them that have ``left`` and are cleaned up after, too. ``reach`` has the last end
    of each use and those before it, ``first_end`` is that of all, ``shared`` whether parts of the resource are used.
    """

    generation: int
    uses: tuple[Use, ...] = ()
    left: tuple[Use, ...] = ()
    starts: tuple[int, ...] = ()
    reach: tuple[int, ...] = ()
    first_end: int = NEVER
    shared: bool = False

    @classmethod
    def of_uses(cls, generation: int, held: Collection[Use], left: Sequence[Use] = ()) -> KeptResource:
        """Build from uses that are held, and those that have left."""
        uses = tuple(sorted((*held, *left), key=_BY_START))
        reach: list[int] = []
        for _, end, _, _ in uses:
            reach.append(max(end, reach[-1]) if reach else end)
        return cls(
            generation,
            uses,
            tuple(left),
            tuple([use[0] for use in uses]),
            tuple(reach),
            min([use[1] for use in uses], default=NEVER),
            any(use[3] is not None for use in uses),
        )

    def add_bookings(self, bookings: Sequence[OwnBooking]) -> KeptResource | None:
        """Return it with what was booked on it since, by generation; None if that was on another state of it."""
        if [booking.generation for booking in bookings] != [self.generation + n for n in range(len(bookings))]:
            return None
        held = list(self.uses)
        for use in self.left:
            held.remove(use)
        held += [use for booking in bookings for use in booking.uses]
        return KeptResource.of_uses(self.generation + len(bookings), held, self.left)

    def without(self, own: Collection[Use]) -> KeptResource:
        """Return it without some uses."""
        held, left = list(self.uses), list(self.left)
        for use in self.left:
            held.remove(use)
        for use in own:
            # One that is cleaned up after is as good as one that is held, if it is the same.
            for some in (held, left):
                if use in some:
                    some.remove(use)
                    break
        return KeptResource.of_uses(self.generation, held, left)

    def list_late(self, now: int) -> tuple[Use, ...]:
        """Return the uses that should have left by now, with the cleaning, and have not."""
        if self.first_end > now:
            return ()
        late = [use for use in self.uses if use[1] <= now]
        for use in self.left:
            if use[1] <= now:
                late.remove(use)
        return tuple(late)


@dataclass(frozen=True, slots=True)
class OwnUse:
    """What the lease itself has of a resource, or has left, which does not stand in its own way."""

    resource_id: int
    use: Use
    left: bool = False


@dataclass(frozen=True, slots=True)
class _LateUsers:
    """Those who are late, by resource, from an instant until the next use ends."""

    since: int
    until: int
    uses: Mapping[int, tuple[Use, ...]]


DERIVED = 16
"""How many values of others are kept with a calendar."""


class DerivedValues:
    """What others have worked out from a calendar and bring up to date, by key; the latest few that were asked for.

    They are forgotten with the calendar. Threads may ask at the same time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Hashable, Any] = {}

    def find(self, key: Hashable) -> Any:
        """Return the value of a key; None if there is none."""
        return self._values.get(key)

    def keep(self, key: Hashable, value: object) -> None:
        """Keep a value, rather than the one that was kept the longest ago."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            if len(self._values) > DERIVED:
                del self._values[next(iter(self._values))]


class KeptCalendar:
    """The uses of the resources of a kind that are not over, and when each is in maintenance, by resource."""

    def __init__(
        self,
        resources: Mapping[int, KeptResource],
        closed: Mapping[int, Sequence[Span]],
        late: _LateUsers | None = None,
        size: int | None = None,
        derived: DerivedValues | None = None,
    ) -> None:
        self.resources = resources
        self.closed = closed
        self.derived = DerivedValues() if derived is None else derived
        """Shared with the calendars that this one was made from."""
        self._late = late
        self.size = _count_uses(resources.values()) if size is None else size
        """The number of uses."""

    def replace(
        self, changed: Mapping[int, KeptResource], closed: Mapping[int, Sequence[Span]] | None = None
    ) -> KeptCalendar:
        """Return it with other resources, and perhaps others in maintenance, in their places."""
        late = self._late
        if late is not None and changed:
            others = {id_: uses for id_, uses in late.uses.items() if id_ not in changed}
            until = late.until
            for id_, resource in changed.items():
                until = min(until, _next_end(resource, late.since))
                if found := resource.list_late(late.since):
                    others[id_] = found
            late = _LateUsers(late.since, until, others)
        resources = self.resources
        more = _count_uses(changed.values()) - _count_uses([resources[id_] for id_ in changed if id_ in resources])
        closed = self.closed if closed is None else closed
        return KeptCalendar({**resources, **changed}, closed, late, self.size + more, self.derived)

    def without(self, own: Collection[OwnUse]) -> KeptCalendar:
        """Return it without what a lease itself has."""
        by_id: dict[int, list[Use]] = {}
        for one in own:
            by_id.setdefault(one.resource_id, []).append(one.use)
        resources = self.resources
        return self.replace({id_: resources[id_].without(uses) for id_, uses in by_id.items() if id_ in resources})

    def find_late(self, now: int) -> Mapping[int, tuple[Use, ...]]:
        """Return the uses that should have left by now and have not, by resource."""
        known = self._late
        if known is None or not known.since <= now < known.until:
            found = {id_: late for id_, r in self.resources.items() if (late := r.list_late(now))}
            until = min((_next_end(r, now) for r in self.resources.values()), default=NEVER)
            # Of two threads each finds the same.
            known = self._late = _LateUsers(now, until, found)
        return known.uses

    def occupancy(self, start: int, end: int, terms: TimelineTerms, own: Collection[OwnUse] = ()) -> Occupancy:
        """Return the occupancy of a window, as a booking of it reads it; ``own`` is not in its way.

        A window that has begun counts from now on.
        """
        kept = self.without(own) if own else self
        now, without_amounts = terms.now, terms.without_amounts
        begin = max(start, now)
        until = max(end, begin + 1) + terms.cleaning
        taken: set[int] = set()
        shared: dict[int, list[Use]] = {}
        beside: dict[int, int] = {}
        # This loop is most of the cost of a booking on a large calendar.
        for id_, resource in kept.resources.items():
            if resource.shared and not without_amounts:
                _look_at_parts(id_, resource, (begin, until), taken, shared)
                continue
            place = bisect_left(resource.starts, until)
            if place and resource.reach[place - 1] > begin:
                taken.add(id_)
            elif resource.reach and resource.reach[-1] > now:
                beside[id_] = place
        if start <= now:
            for id_, late in kept.find_late(now).items():
                for use in late:
                    if without_amounts or use[3] is None:
                        taken.add(id_)
                    else:
                        shared.setdefault(id_, []).append((use[0], until - terms.cleaning, use[2], use[3]))
        taken.update([id_ for id_, spans in kept.closed.items() if _is_closed(id_, spans, (begin, until), own)])
        room = _KeptRoom(kept, beside, terms, (start, end, begin, until))
        return Occupancy.of_uses(taken, CleanedUses(shared, terms.cleaning), room)

    def timeline(self, start: int, end: int, terms: TimelineTerms, own: Collection[OwnUse] = ()) -> Timeline:
        """Return what is promised from the start of a range, or from now on if that is later, to its end."""
        kept = self.without(own) if own else self
        begin = max(start, terms.now)
        until = end + terms.cleaning
        uses: dict[int, Sequence[Use]] = {}
        ends: dict[int, int] = {}
        starts: dict[int, int] = {}
        for id_, resource in kept.resources.items():
            place = bisect_left(resource.starts, until)
            some = resource.uses if place == len(resource.uses) else resource.uses[:place]
            # Beside parts there may be room.
            whole = _list_whole(resource.uses) if resource.shared and not terms.without_amounts else resource.uses
            if resource.first_end <= begin:
                some = tuple([use for use in some if use[1] > begin])
                if before := [use[1] for use in whole if terms.now < use[1] <= begin]:
                    ends[id_] = max(before)
            if some:
                uses[id_] = _as_whole(some) if terms.without_amounts and resource.shared else some
            if place < len(resource.uses) and (after := [use[0] for use in whole if use[0] >= until]):
                starts[id_] = min(after)
        closed = {id_: _cut_closed(id_, spans, (begin, until), own) for id_, spans in kept.closed.items()}
        uses.update(sort_uses({id_: [*uses.get(id_, ()), *more] for id_, more in closed.items() if more}))
        late: Mapping[int, Sequence[Use]] = kept.find_late(terms.now) if start <= terms.now else {}
        if terms.without_amounts:
            late = {id_: _as_whole(found) for id_, found in late.items()}
        return Timeline(uses, terms, OutsideUses(late, ends, starts))


def _count_uses(resources: Iterable[KeptResource]) -> int:
    return sum([len(resource.uses) for resource in resources])


def _next_end(resource: KeptResource, now: int) -> int:
    """Return when the next use of a resource ends."""
    if resource.first_end > now:
        return resource.first_end
    return min((use[1] for use in resource.uses if use[1] > now), default=NEVER)


def _list_whole(uses: Sequence[Use]) -> Sequence[Use]:
    return [use for use in uses if use[3] is None]


def _as_whole(uses: Sequence[Use]) -> tuple[Use, ...]:
    """Return uses as a search for whole resources sees them."""
    return tuple([(use[0], use[1], 1, None) for use in uses])


def _look_at_parts(id_: int, resource: KeptResource, span: Span, taken: set[int], shared: dict[int, list[Use]]) -> None:
    """Add what is promised in a span of a resource of which parts are used."""
    begin, until = span
    for use in resource.uses:
        if use[0] >= until:
            break
        if use[1] <= begin:
            continue
        if use[3] is None:
            taken.add(id_)
        else:
            shared.setdefault(id_, []).append(use)


def _is_closed(id_: int, spans: Sequence[Span], asked: Span, own: Collection[OwnUse]) -> bool:
    """Return whether a resource is in maintenance in a span, in which the lease itself does not have it already."""
    begin, until = asked
    mine = [one.use for one in own if one.resource_id == id_ and not one.left]
    return any(
        end > begin
        and start < until
        and not any((u[0] <= start or u[0] <= begin) and (u[1] >= end or u[1] >= until) for u in mine)
        for start, end in spans
    )


def _cut_closed(id_: int, spans: Sequence[Span], asked: Span, own: Collection[OwnUse]) -> list[Use]:
    """Return when a resource is in maintenance, as uses, without the time in which the lease itself has it."""
    mine = [one.use for one in own if one.resource_id == id_ and not one.left]
    found: list[Use] = []
    for start, end in spans:
        if end <= asked[0] or start >= asked[1]:
            continue
        cut = [(u[1] if u[0] <= start < u[1] else start, u[0] if u[0] < end <= u[1] else end) for u in mine] or [
            (start, end)
        ]
        found += [(first, last, 1, None) for first, last in cut if first < last]
    return found


class _KeptRoom(Mapping[int, timedelta]):
    """The length of the shorter gap beside a window, by resource that is used before or after it, and not in it.

    ``beside`` has of resources that are used as a whole how many uses begin before the window ends.
    """

    def __init__(
        self, kept: KeptCalendar, beside: dict[int, int], terms: TimelineTerms, window: tuple[int, int, int, int]
    ) -> None:
        self._kept, self._beside, self._terms = kept, beside, terms
        self._start, self._end, self._begin, self._until = window
        if not terms.without_amounts:
            for id_, resource in kept.resources.items():
                if resource.shared and self._find_gaps(resource):
                    beside[id_] = -1

    def __getitem__(self, resource_id: int) -> timedelta:
        place, resource = self._beside[resource_id], self._kept.resources[resource_id]
        if place < 0:
            return timedelta(seconds=min(self._find_gaps(resource)))
        gaps = []
        if place and resource.reach[place - 1] > self._terms.now:
            gaps.append(self._start - resource.reach[place - 1])
        if place < len(resource.starts):
            gaps.append(resource.starts[place] - self._end - self._terms.cleaning)
        return timedelta(seconds=min(gaps))

    def _find_gaps(self, resource: KeptResource) -> list[int]:
        """Return the gaps to whole uses of a resource of which parts are used, too."""
        whole = _list_whole(resource.uses)
        ends = [use[1] for use in whole if self._terms.now < use[1] <= self._begin]
        starts = [use[0] for use in whole if use[0] >= self._until]
        gaps = [self._start - max(ends)] if ends else []
        return [*gaps, min(starts) - self._end - self._terms.cleaning] if starts else gaps

    def __iter__(self) -> Iterator[int]:
        return iter(self._beside)

    def __contains__(self, resource_id: object) -> bool:
        return resource_id in self._beside

    def __len__(self) -> int:
        return len(self._beside)
