# SPDX-License-Identifier: Apache-2.0
"""What resource types and the life cycle give each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from enum import IntEnum, StrEnum

from blazar.model.base.amounts import Amounts
from blazar.model.base.json_text import Json
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.values import dataclass, field
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class Done:
    """The cloud is in the desired state; ``cloud_ids``, if given, are the cloud ids to store.

    ``left``, by calendar id: on these resources a start that was ``undoable`` has left out what cannot be undone.
    """

    cloud_ids: Content | None = None
    left: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NotYet:
    """The cloud is still working: check again ``after`` this time. No thread waits meanwhile.

    ``reason`` is for operators, ``cause`` what everybody may know of it. ``cloud_ids``, if given, are the cloud ids of
    what exists already, to be stored at once.
    """

    after: timedelta
    reason: str
    cause: Cause = Cause(ReasonCode.RESOURCE_NOT_READY)
    cloud_ids: Content | None = None


Progress = Done | NotYet


class Action(StrEnum):
    """What is done for a reservation before its end. All but NONE also send the notification."""

    NONE = "none"
    NOTIFICATION = "notification"
    SNAPSHOT = "snapshot"
    MIGRATION = "migration"
    BACKUP = "backup"

    @property
    def saves_work(self) -> bool:
        """Return whether the action does more than notify."""
        return self in (Action.SNAPSHOT, Action.MIGRATION, Action.BACKUP)


class Rank(IntEnum):
    """When a reservation ends among those of its lease: after all of a lower rank, whatever refers to what.

    Reservations of one rank do not wait for each other, except for those that refer to them.
    """

    ORCHESTRATION = 0
    COMPUTE = 1
    ATTACHED = 2
    NETWORK = 3


def fits_always(parameters: Content) -> str:
    """Return that nothing keeps a reservation from being named."""
    return ""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another reservation of the same lease, which parameters name by ``{"reservation": …}``.

    ``pointer`` is the JSON pointer of that object in the parameters, as ``/networks/0``. ``reservation`` is the id; in
    a request for a new lease, which has no ids yet, the index among its reservations, from 0. ``resource_types`` are
    the types that it may be of: none for any. ``misfit`` tells from the parameters of the other why it cannot be named
    here, as the end of a sentence that begins with its id; empty if it can. It is asked when a lease is made, and
    before the start when a request changes one of the two. ``exclusive``: no other reservation can name that one by
    such a reference, as it is for one only.
    """

    pointer: str
    reservation: str | int
    resource_types: tuple[str, ...] = ()
    misfit: Callable[[Content], str] = field(default=fits_always, compare=False, repr=False)
    exclusive: bool = field(default=False, compare=False)


Shares = Callable[[Collection[int]], Mapping[int, Mapping[str, Amounts]]]
"""Returns amounts of resources, for calendar ids, by reservation."""


def no_shares(resource_ids: Collection[int]) -> Mapping[int, Mapping[str, Amounts]]:
    """Return nothing: the project has no other reservation."""
    return {}


@dataclass(frozen=True, slots=True)
class Before:
    """What a reservation in use had before a change: its parameters, and its count on each resource, by calendar id.

    ``begun`` are the reservations of the lease that the same change has started before, as they were started: what is
    made for these is there, and may still be undone, too.
    """

    parameters: Content
    counts: Mapping[int, int]
    begun: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One reservation to act on, with the resources that are promised to it.

    ``lease`` has the other reservations as they are now, with the cloud ids of those that were started before this one
    in the same attempt.

    ``counts`` is the count on each, by calendar id; ``in_use`` the count in use, None if it was not read. For a type
    with ``reads_history``: ``former`` are the resources that the reservation had in its window and has no more, and
    ``turns`` says by calendar id how often each was assigned to it, or its count changed, since the lease began.

    ``shares``, for a type with ``reads_shares``, returns what other reservations of the project that are in use have of
    resources, by calendar id and reservation, at the moment of the call, which costs a statement.

    ``before``: this is a change of a reservation in use, which may still be undone, and what the reservation had before
    it. A start that has to do what cannot be undone leaves that out, and says where it has (``Done.left``): it is
    called again when the change is final.

    ``given_up`` are those of its resources, by calendar id, that a change is to take from it.
    """

    lease: Lease
    reservation: Reservation
    resources: tuple[Resource, ...]
    counts: Mapping[int, int] = field(default_factory=dict)
    in_use: Mapping[int, int] | None = None
    former: tuple[Resource, ...] = ()
    turns: Mapping[int, int] = field(default_factory=dict)
    shares: Shares = field(default=no_shares, compare=False, repr=False)
    before: Before | None = None
    given_up: frozenset[int] = frozenset()

    @property
    def undoable(self) -> bool:
        """Return whether this may still be undone."""
        return self.before is not None

    def referent(self, reservation_id: str) -> Reservation:
        """Return the reservation of the lease that a reference names: at a start it is active, with its cloud ids."""
        found = self.lease.reservation(reservation_id)
        if found is None:
            raise LookupError(f"lease {self.lease.id} has no reservation {reservation_id}")
        return found

    @property
    def children(self) -> tuple[Reservation, ...]:
        """Return what the reservation is made of, in order: at a start these are active, with their cloud ids."""
        return self.lease.children(self.reservation.id)


@dataclass(frozen=True, slots=True)
class Given:
    """The parameters of a request, as the client sent them.

    ``resolve`` may return a subclass that also has what it read from the cloud: a client cannot send one.
    """

    values: Json


class UsageNeeded(Exception):
    """The demand of a change depends on what is in use: read that (``ReportsUse.occupied``), then retry.

    Raised while the calendar is locked, so that no call to the cloud is made there.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task.reservation.id)
        self.task = task


class ResolutionNeeded(Exception):
    """The parameters of a change need data from the cloud: resolve them (``Resolves.resolve``), then retry.

    Raised by ``changed``, where the calendar may be locked.
    """


class Unusable(Exception):
    """Promised resources cannot be assigned in their present state and should be replaced by others.

    Raised by ``start``. ``reasons`` says why, by calendar id.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Child:
    """A reservation that another one is made of: its type, and its parameters as a request has them.

    ``pointer`` is the JSON pointer, in the parameters of the other, of what it follows from: errors name that.
    """

    resource_type: str
    parameters: Json
    pointer: str = ""


def until_start(task: Task, has: str) -> str:
    """Return the obstacle of a reservation that in use ``has`` something in its project; empty before its start."""
    if task.reservation.status is ReservationStatus.PENDING:
        return ""
    return f"is in use, and {has}; it goes to another project before its start only"
