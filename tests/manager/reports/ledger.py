# SPDX-License-Identifier: Apache-2.0
"""A second program that adds up what leases have: it looks at each moment, and reads nothing of the past."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from blazar.context import scope
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.surgery import OfferRequest, Terms
from blazar.store.sql.tables import allocations, leases, reservations, resources
from tests.world import World, a_host, instances

SECOND = timedelta(seconds=1)
LIVE = (LeaseStatus.PENDING, LeaseStatus.ACTIVE)


@dataclass(frozen=True, slots=True)
class Held:
    """What a lease has of a resource at a moment: which row says so, and what is wrong or seen of it then."""

    row: int
    reservation_id: str
    lease_id: str
    project_id: str
    resource_type: str
    resource_id: int
    start: datetime
    end: datetime
    units: int
    failed: bool
    started: bool
    usage: str | None

    @property
    def place(self) -> tuple[str, int]:
        return self.lease_id, self.resource_id


Piece = tuple[Held, str, datetime, datetime]


@dataclass(slots=True)
class Ledger:
    """Pieces of time by measure, as they passed; what was given back of the time to come."""

    world: World
    pieces: list[Piece] = field(default_factory=list)
    given_back: list[Piece] = field(default_factory=list)
    held: Sequence[Held] = ()
    since: datetime | None = None

    def note(self) -> None:
        """Add what was held since the last note, until now; and look what is held from now on."""
        now = to_second(self.world.clock.now())
        before, after = self.held, self._look()
        for one in before:
            assert self.since is not None
            begin, end = max(one.start, self.since), min(one.end, now)
            seen = {"used": "used", "idle": "idle", "unused": "idle"}.get(one.usage or "", "unseen")
            lost = one.failed or not one.started
            for name in ("reserved", seen, *(("lost",) if lost else ())):
                self._add(one, name, begin, end)
            if one.started:
                self._add(one, "overrun", max(one.end, begin), now)
        if self.since == now:
            self._note_return(before, after, now)
        self.held, self.since = after, now

    def _add(self, one: Held, name: str, begin: datetime, end: datetime) -> None:
        if begin < end:
            self.pieces.append((one, name, begin, end))

    def _note_return(self, before: Sequence[Held], after: Sequence[Held], now: datetime) -> None:
        """Note what somebody has just given back; what another resource has taken the place of is not."""
        there, known = {one.row: one for one in after}, {one.row for one in before}
        come = Counter(one.reservation_id for one in after if one.row not in known)
        for one in before:
            left = there.get(one.row)
            if left is None and come[one.reservation_id] > 0:
                come[one.reservation_id] -= 1
            elif left is None or (left.start == one.start and left.end < one.end):
                begin = max(one.start, now) if left is None else left.end
                if begin < one.end:
                    self.given_back.append((one, "returned", begin, one.end))
            elif left.end > one.end:
                self._take_again(one, (one.end, left.end))

    def _take_again(self, taker: Held, span: tuple[datetime, datetime]) -> None:
        """Forget what a lease gave back and takes again, whatever becomes of it then."""
        self.given_back = [
            (one, name, *rest)
            for one, name, begin, end in self.given_back
            for rest in (_without((begin, end), span) if one.place == taker.place else [(begin, end)])
        ]

    def _look(self) -> Sequence[Held]:
        a = allocations.c
        started = reservations.c.handed_over_at.is_not(None)
        columns = (a.resource_id, a.starts_at, a.ends_at, a.count, resources.c.failed_since.is_not(None), started)
        query = (
            sa.select(a.id, a.reservation_id, leases.c.id, leases.c.project_id, reservations.c.resource_type, *columns)
            .add_columns(leases.c.usage)
            .join(leases, leases.c.id == a.lease_id)
            .join(reservations, reservations.c.id == a.reservation_id)
            .join(resources, resources.c.id == a.resource_id)
            .where(a.released_at.is_(None))
            .order_by(a.id)
        )
        with self.world.engine.connect() as connection:
            return [Held(*row) for row in connection.execute(query)]

    def list_pieces(self) -> list[Piece]:
        """Return all pieces until now; what a lease gave back and took again is not returned.

        All that a lease had counts for the project that has it at last.
        """
        now, last, owners = to_second(self.world.clock.now()), self._read_units(), self._read_owners()
        found, had = list(self.pieces), defaultdict(set)
        for one, name, begin, end in self.pieces:
            if name == "reserved":
                had[one.place].add((begin, end))
        for one, name, begin, end in self.given_back:
            spans = [(begin, min(end, now))]
            for other in had[one.place]:
                spans = [rest for span in spans for rest in _without(span, other)]
            # It counts with as much as it had at last.
            final = replace(one, units=last[one.row])
            found += [(final, name, *span) for span in spans if span[0] < span[1]]
            had[one.place].update(spans)
        return [(replace(one, project_id=owners[one.lease_id]), *piece) for one, *piece in found]

    def _read_owners(self) -> dict[str, str]:
        with self.world.engine.connect() as connection:
            return dict(connection.execute(sa.select(leases.c.id, leases.c.project_id)).all())  # type: ignore[arg-type]

    def _read_units(self) -> dict[int, int]:
        with self.world.engine.connect() as connection:
            return dict(connection.execute(sa.select(allocations.c.id, allocations.c.count)).all())  # type: ignore[arg-type]

    def sums(self, begin: datetime, end: datetime) -> Counter[tuple[str, str, str]]:
        """Return the sums of a period by measure, project and type."""
        found: Counter[tuple[str, str, str]] = Counter()
        for one, name, start, stop in self.list_pieces():
            seconds = (min(stop, end) - max(start, begin)) // SECOND
            if seconds > 0:
                found[name, one.project_id, one.resource_type] += seconds * one.units
        return found

    def lease_ids(self, begin: datetime, end: datetime) -> Iterable[str]:
        """Return the leases that had something in a period, or gave it back."""
        return {one.lease_id for one, _, start, stop in self.list_pieces() if start < end and begin < stop}


def _without(span: tuple[datetime, datetime], other: tuple[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    parts = [(span[0], min(span[1], other[0])), (max(span[0], other[1]), span[1])]
    return [part for part in parts if part[0] < part[1]]


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
            often = (self.create, self.create, self.move_end, self.move_end)
            act = self.random.choice((*often, self.resize, self.delete, self.transfer, self.boot, self.fail_or_mend))
            try:
                with scope(actor=Actor("curie", "physics")):
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

    def transfer(self) -> None:
        lease = self._any()
        giver, taker = Actor(lease.user_id, lease.project_id), Actor("noether", "chemistry")
        self.world.manager.transfers.offer(lease.id, OfferRequest(taker.project_id), Terms(giver))
        self.world.manager.transfers.accept(lease.id, Terms(taker))

    def boot(self) -> None:
        lease = self._any()
        in_use = lease.status is LeaseStatus.ACTIVE and lease.reservations[0].resource_type == "physical:host"
        for host in sorted(self.world.hosts_of(lease))[: int(in_use)]:
            status = self.random.choice(("ACTIVE", "SHUTOFF"))
            self.world.simulated.users.boot_server(
                "work", project_id=lease.project_id, user_id="u", host=host, status=status
            )

    def fail_or_mend(self) -> None:
        health, now = self.world.store.resource_health, self.world.clock.now()
        host = self.random.choice(self.world.store.resources.catalog(HOST).resources)
        if host.failed_since is None:
            health.set_failed(HOST, {host.id: "it is down"}, at=now)
        else:
            health.set_recovered(HOST, [host.id], at=now)

    def _any(self) -> Lease:
        live = [
            lease for lease in map(self.world.now_of, self.made) if lease.deleted_at is None and lease.status in LIVE
        ]
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
