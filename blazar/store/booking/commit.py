# SPDX-License-Identifier: Apache-2.0
"""What a booking writes as a whole, and what must still hold then: a value, made without the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import Announcement
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.leases.states import ReservationStatus
from blazar.model.maintenance.windows import LeasePlan
from blazar.model.use.resource_hours import OutboxMessage, ProjectUse

LATE = timedelta(minutes=1)
"""From when on a start is late for what is planned to be paid: a few seconds are seen on the bill only."""


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """A lease as it was read, None if it is new, as it is to be, and all that it has then; ``keeps``: what it had.

    ``announces`` is what its owner is told by that. ``makes_room``: it is moved by the service, so that what is asked
    for fits, and this is the reason that its history tells; who asks for that has nothing to do with it. However it is
    written, its next reminder is due at the time that follows from its dates.
    """

    before: Lease | None
    after: Lease
    allocations: tuple[Allocation, ...] = ()
    keeps: bool = False
    announces: Announcement | None = None
    makes_room: str | None = None

    def __post_init__(self) -> None:
        if self.after.reminders or (self.before is not None and self.before.reminders):
            object.__setattr__(self, "after", self.after.with_reminder_due)

    @property
    def saved(self) -> Lease:
        """The lease as it is once it is written."""
        return self.after if self.before is None else replace(self.after, revision=self.before.revision + 1)

    def hands_over_late(self, at: datetime) -> bool:
        """Return whether this hands over something of a lease so late that it costs noticeably less."""
        if self.before is None or at - self.after.window.start < LATE:
            return False
        known = {reservation.id: reservation.status for reservation in self.before.reservations}
        active = ReservationStatus.ACTIVE
        return any(one.status is active and known.get(one.id) is not active for one in self.after.reservations)

    def with_claim(self, token: str, until: datetime) -> LeaseWrite:
        """Return it with the claim of this token on an event lasting until then."""
        events = [replace(e, due_at=until) if e.claimed_by == token else e for e in self.after.events]
        return replace(self, after=replace(self.after, events=tuple(events)))


@dataclass(frozen=True, slots=True)
class ReservationMove:
    """A reservation goes to another lease, with all that it has or has had."""

    reservation_id: str
    lease_id: str


@dataclass(frozen=True, slots=True)
class ResourcePassing:
    """Resources that a reservation has pass to another one, in the same window: nobody leaves, and nobody comes."""

    reservation_id: str
    to_reservation_id: str
    to_lease_id: str
    resources: frozenset[int]


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction writes of leases; it is undone as a whole if anything that it expects is not so.

    Each lease in ``leases`` must be at the revision of its ``before``. ``redated`` ones, of which only dates, name,
    reminders, state and ``keep_hosts`` differ, are written in statements whose number does not grow with them, and so
    are new ones.
    """

    leases: Sequence[LeaseWrite]
    at: datetime
    redated: Sequence[LeaseWrite] = ()
    released: Collection[str] = ()
    """Reservations of leases that otherwise keep what they have, which give up what they have."""
    undoes: bool = False
    """A change is undone: what a lease has less for that, its owner has not given back."""
    generations: Mapping[int, int] = field(default_factory=dict)
    """Those of resources that are taken newly or for longer, by id, which must be as they were read."""
    uses: Collection[ProjectUse] = ()
    """The use of each project that is granted something, which must be as it was read."""
    bounds: Bounds = Bounds()
    """Limits on the number of leases and reservations of the project, which count for new leases."""
    more: int | None = None
    """How many reservations a new lease adds to those of its project; None: all that it has."""
    turn: int | None = None
    """The version of the waiting list that grants it, which must be the last."""
    evacuates: bool = False
    """Servers are moved away for it; that is so for one lease of a project at a time."""
    most: Mapping[str, Fraction] = field(default_factory=dict)
    """What leases may cost in all, by id, as it is shown."""
    key: IdempotencyKey | None = None
    """Is recorded with the lease ``key_of``, or the first one."""
    key_of: str | None = None
    messages: Collection[OutboxMessage] = ()
    maintained: tuple[str, LeasePlan] | None = None
    """The maintenance window that it is done for, and what is planned for the lease then."""
    joint: bool = False
    """The leases take part in one operation, which the history of each tells, with the other one if they are two."""
    moves: Sequence[ReservationMove] = ()
    passing: Sequence[ResourcePassing] = ()
    follows: Mapping[str, str] = field(default_factory=dict)
    """Reservations of a lease that goes on where another one ends, with those that have the same and get its time."""
    plans_from: Mapping[str, str] = field(default_factory=dict)
    """For leases from which others they take the plans of maintenance windows."""

    @property
    def new(self) -> tuple[LeaseWrite, ...]:
        """The leases that are made."""
        return tuple([write for write in self.leases if write.before is None])

    @property
    def takings(self) -> tuple[Allocation, ...]:
        """What a new lease takes, if the commit does nothing else to resources."""
        if len(self.leases) != 1 or self.leases[0].before is not None or self.redated or self.released or self.joint:
            return ()
        return self.leases[0].allocations

    @property
    def changed(self) -> tuple[LeaseWrite, ...]:
        """The leases that are changed, in the order of ids: so no two commits on the same ones wait for each other."""
        return tuple(sorted([write for write in self.leases if write.before is not None], key=_id_of))


def limit_prices(lease_ids: Iterable[str], most: str | None) -> Mapping[str, Fraction]:
    """Return what leases may cost, by id, if that is limited; ``most`` is a decimal."""
    return {} if most is None else dict.fromkeys(lease_ids, Fraction(most))


def _id_of(write: LeaseWrite) -> str:
    return write.after.id
