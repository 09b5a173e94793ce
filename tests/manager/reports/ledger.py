# SPDX-License-Identifier: Apache-2.0
"""A second program that adds up what leases have: it looks at each moment, and reads nothing of the past."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseRequest
from blazar.store.sql.tables import allocations, leases, reservations
from tests.world import World, a_host, instances

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Held:
    """What a lease has of a resource at a moment."""

    lease_id: str
    project_id: str
    resource_type: str
    start: datetime
    end: datetime
    units: int


@dataclass(slots=True)
class Ledger:
    """Pieces of time in which something was held: within the promise (True), or beyond its end (False)."""

    world: World
    pieces: list[tuple[Held, bool, datetime, datetime]] = field(default_factory=list)
    held: Sequence[Held] = ()
    since: datetime | None = None

    def note(self) -> None:
        """Add what was held since the last note, until now; and look what is held from now on."""
        now = to_second(self.world.clock.now())
        for one in self.held:
            assert self.since is not None
            for promised, begin, end in (
                (True, max(one.start, self.since), min(one.end, now)),
                (False, max(one.start, one.end, self.since), now),
            ):
                if begin < end:
                    self.pieces.append((one, promised, begin, end))
        self.held, self.since = self._look(), now

    def _look(self) -> Sequence[Held]:
        a = allocations.c
        query = (
            sa.select(leases.c.id, leases.c.project_id, reservations.c.resource_type, a.starts_at, a.ends_at, a.count)
            .join(leases, leases.c.id == a.lease_id)
            .join(reservations, reservations.c.id == a.reservation_id)
            .where(a.released_at.is_(None))
        )
        with self.world.engine.connect() as connection:
            return [Held(*row) for row in connection.execute(query)]

    def sums(self, begin: datetime, end: datetime) -> Counter[tuple[str, str, str]]:
        """Return the sums of a period by measure, project and type."""
        found: Counter[tuple[str, str, str]] = Counter()
        for one, promised, start, stop in self.pieces:
            seconds = (min(stop, end) - max(start, begin)) // SECOND
            if seconds > 0:
                found["reserved" if promised else "overrun", one.project_id, one.resource_type] += seconds * one.units
        return found

    def lease_ids(self, begin: datetime, end: datetime) -> Iterable[str]:
        """Return the leases that had something in a period."""
        return {one.lease_id for one, _, start, stop in self.pieces if start < end and begin < stop}


def local_days(first: datetime, last: datetime, zone: ZoneInfo) -> list[tuple[datetime, datetime]]:
    """Return the local days of a zone that a period touches, by looking at each quarter of an hour."""
    borders, at = [first], first
    while (at := at + timedelta(minutes=15)) < last:
        if at.astimezone(zone).date() > (at - timedelta(minutes=15)).astimezone(zone).date():
            local = at.astimezone(zone)
            # Where midnight comes twice, the first one is the begin, and no other.
            if local.date() > borders[-1].astimezone(zone).date() or len(borders) == 1:
                borders.append(at)
    return list(zip(borders, [*borders[1:], last], strict=True))


class Life:
    """A random life of leases through a manager, on seconds that are aligned to nothing, noted in a ledger."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.ledger = Ledger(world)
        self.random = random.Random(seed)
        self.made: list[str] = []
        self.done: Counter[str] = Counter()

    def live_until(self, end: datetime) -> None:
        """Do something, let some time pass, and so on; at the end let all that is due be done."""
        self.ledger.note()
        while (now := self.world.clock.now()) < end:
            act = self.random.choice((self.create, self.create, self.move_end, self.move_end, self.resize, self.delete))
            try:
                act()
                self.done[act.__name__] += 1
            except BlazarError:
                self.done["refused"] += 1
            self.ledger.note()
            self._pass(min(now + timedelta(seconds=self.random.randint(1, 4 * 3600)), end))

    def create(self) -> None:
        now, wait = to_second(self.world.clock.now()), self.random.choice((0, self.random.randint(1, 90_000)))
        start = now + timedelta(seconds=wait)
        request = LeaseRequest(
            name=f"lease {len(self.made)}",
            user_id=self.random.choice(("curie", "darwin")),
            project_id=self.random.choice(("physics", "biology", "arts")),
            start=start,
            end=start + timedelta(seconds=self.random.randint(120, 40 * 3600)),
            before_end=None,
            reservations=(self.random.choice((a_host(), a_host(2), instances(1), instances(3))),),
            # A lease that is not booked to the second begins with the minute in which it is asked for.
            exact=True,
        )
        self.made.append(self.world.manager.leases.create(request).id)

    def move_end(self) -> None:
        lease = self._any()
        by = timedelta(seconds=self.random.randint(-12 * 3600, 12 * 3600))
        end = max(lease.window.end + by, to_second(self.world.clock.now()) + timedelta(minutes=1))
        self.world.change(lease, end=end, exact=True)

    def resize(self) -> None:
        lease, number = self._any(), self.random.randint(1, 3)
        hosts = lease.reservations[0].resource_type == "physical:host"
        self.world.resize(lease, **({"min": number, "max": number} if hosts else {"amount": number}))

    def delete(self) -> None:
        self.world.manager.leases.delete(self._any().id)

    def _any(self) -> Lease:
        live = [lease for lease in map(self.world.now_of, self.made) if lease.deleted_at is None]
        if not live:
            raise BlazarError("there is no lease yet")
        return self.random.choice(live[-6:])

    def _pass(self, until: datetime) -> None:
        """Let time pass; in one of four spans nobody works meanwhile, so that what is due is late."""
        late = self.random.random() < 0.25
        while not late and (due := self.world.store.events.next_due()) is not None and due <= until:
            self.world.clock.to(due)
            self._work()
        self.world.clock.to(until)
        self._work()

    def _work(self) -> None:
        self.ledger.note()
        self.world.run()
        self.ledger.note()
