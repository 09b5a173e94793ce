# SPDX-License-Identifier: Apache-2.0
"""Leases with what they hold, and questions for pages of them."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from blazar.model.base.amounts import Amounts
from blazar.model.base.moments import Moment
from blazar.model.base.paging import Condition, Position
from blazar.model.base.values import dataclass
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.lease import Lease
from blazar.model.power.states import WakingHosts
from blazar.model.resources.resource import ResourceKind

LEASE_SORT_KEYS = ("created_at", "updated_at", "start_date", "end_date", "name", "status", "release_at")
"""The orders of pages of leases."""


@dataclass(frozen=True, slots=True)
class HeldResource:
    """What a reservation holds, or held, of one resource: ``count`` times ``per_instance``; None is all of it.

    ``resource_id`` is its calendar id. ``released``: it was given back.
    """

    reservation_id: str
    resource_id: int
    kind: ResourceKind
    external_id: str
    name: str
    label: str
    count: int
    per_instance: Amounts | None
    released: bool


@dataclass(frozen=True, slots=True)
class LeaseDetails:
    """A lease with the resources of its reservations, as of one revision; ``price`` is what it costs, if known.

    ``waking`` is said of one that is booked, or would be: what its start waits for. ``moves_others`` is how many other
    leases a dry run would give other hosts; None of a lease that is written.
    """

    lease: Lease
    held: tuple[HeldResource, ...] = ()
    price: LeasePrice | None = None
    waking: WakingHosts | None = None
    moves_others: int | None = None


@dataclass(frozen=True, slots=True)
class BookedLease:
    """A lease that was made; ``replayed``: by an earlier request with the same key.

    ``limit`` is the time in which it is handed over or refused, None if that is not open.
    """

    details: LeaseDetails
    replayed: bool = False
    limit: timedelta | None = None


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Whose a lease is, and whether it is deleted: enough to decide who may do what to it."""

    id: str
    project_id: str
    user_id: str
    deleted: bool


class ImmediateVerdict(StrEnum):
    """What has become of the request for an immediate lease.

    ``ENDING``: it is refused, or somebody has deleted the lease, and what it had is being returned. ``GONE``: it has
    nothing any more.
    """

    WAITING = "waiting"
    GRANTED = "granted"
    ENDING = "ending"
    GONE = "gone"


class LeaseState(StrEnum):
    """Which leases a list has: those that have not ended, the ended and deleted ones, or both."""

    CURRENT = "current"
    PAST = "past"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class LeaseFilter:
    """Which leases a list has. All of it must hold; None is no condition.

    ``text`` is a part of the name; a lease overlaps the span from ``begin`` to ``end``. Reservations, with what they
    hold, events and prices are read only if asked for.
    """

    state: LeaseState = LeaseState.CURRENT
    project_id: str | None = None
    text: str | None = None
    begin: Moment | None = None
    end: Moment | None = None
    conditions: tuple[Condition, ...] = ()
    with_reservations: bool = True
    with_events: bool = True
    with_prices: bool = False


class LeaseMark(NamedTuple):
    """What of a lease a list shows is the same while this is: its revision, and the sum of those of its resources.

    The resources are those that it holds or held; their revisions only grow. What it costs is not part of it.
    """

    id: str
    revision: int
    resources: int


@dataclass(frozen=True, slots=True)
class LeasePage:
    """A page of leases; ``following`` is the position of its last one if more follow, ``count`` of all, if asked.

    ``listed`` are the marks of its leases, in order; ``items`` are those of them that the caller did not know, in the
    same order.
    """

    items: tuple[LeaseDetails, ...]
    following: Position | None = None
    count: int | None = None
    listed: tuple[LeaseMark, ...] = ()


# Leases as rows of texts, for lists of tens of thousands that are written as JSON at once: a value for each lease,
# reservation and event costs more than all the rest of such a list. Instants are texts in UTC to the second or finer,
# ``2030-04-01 08:00:00.25``; JSON is text as it is stored.

LeaseRow = tuple[str, int, str, str, str, str, str, str | None, str, bool, str, str | None]
"""Id, revision, name, user, project, start, end, trust, status, whether it is degraded, made at, changed at."""

ReservationRow = tuple[str, str, str, str | None, str, bool, bool, str, str, str, str | None, str | None]
"""Lease, id, type, the id that 1.0 shows, status, whether resources are missing and have changed, parameters and cloud
ids as JSON, made at, changed at, the reservation that it is a part of."""

EventRow = tuple[str, str, str, str | None, str | None, str, str | None]
"""Lease, id, type, time, status, made at, changed at."""


@dataclass(frozen=True, slots=True)
class LeaseRows:
    """Some leases as a list shows them, with their reservations and events in order; those gone are left out.

    ``read`` is how many of the ids that were asked for have been looked for, from the first one on: long leases fill
    a message before all ids are read. ``waiting`` are those with dates of an estimate, which take more than a row.
    """

    read: int
    leases: tuple[LeaseRow, ...] = ()
    reservations: tuple[ReservationRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    waiting: tuple[Lease, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaseText:
    """A lease as JSON, and what says whether that is still right, and whose it is."""

    id: str
    revision: int
    project_id: str
    text: bytes
