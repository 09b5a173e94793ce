# SPDX-License-Identifier: Apache-2.0
"""The interface between resource types and the life cycle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Protocol, runtime_checkable

from blazar.model.amounts import Amounts
from blazar.model.demand import Demand
from blazar.model.lease import Content, Json, Lease, Reservation
from blazar.model.reasons import Cause, ReasonCode
from blazar.model.requirements import Requirement
from blazar.model.resource import Resource, ResourceKind


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
    that ``ReadsHistory``: ``former`` are the resources that the reservation had in its window and has no more, and
    ``turns`` says by calendar id how often each was assigned to it, or its count changed, since the lease began.

    ``shares``, for a type that ``ReadsShares``, returns what other reservations of the project that are in use have of
    resources, by calendar id and reservation, at the moment of the call, which costs a statement.

    ``before``: this is a change of a reservation in use, which may still be undone, and what the reservation had before
    it. A start that has to do what cannot be undone leaves that out, and says where it has (``Done.left``): it is
    called again when the change is final.
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
    """The demand of a change depends on what is in use: read that (``ReportsUse.in_use``), then retry.

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


class ResourceType(Protocol):
    """A resource type: the least that it must have. Besides it ``TakesResources`` or ``Expands``, one of the two.

    The other protocols below are what it may have.

    ``start`` and ``end`` (and ``prepare``, ``before_end`` and ``restore``) are idempotent: they read the present state
    and change it to the desired one, so that a retry after a crash at any point completes the work. They raise
    ``CloudUnavailable`` (a retry may help) or another ``BlazarError`` (it does not).
    """

    @property
    def resource_type(self) -> str:
        """The name in the API, as ``physical:host``."""

    @property
    def kind(self) -> ResourceKind:
        """The kind of resource that reservations of this type take; the API lists it with that."""

    def parameters(self, given: Given) -> Content:
        """Return the parameters of a new reservation, checked and completed; InvalidInput names the field.

        ``given`` is resolved.
        """

    def start(self, task: Task) -> Progress:
        """Ensure that the project can use the resources, and no others."""

    def end(self, task: Task) -> Progress:
        """Ensure that nothing of the reservation is left: use ended, resources returned, cloud objects deleted."""


@runtime_checkable
class TakesResources(Protocol):
    """A type whose reservations take resources themselves."""

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation demands of the calendar.

        ``known`` are the properties that some resource has; a requirement on any other raises InvalidInput.
        """


@runtime_checkable
class DescribesParameters(Protocol):
    """A type that says what a request may have, for forms and for ``/v1/resources``. Without it that is not known."""

    @property
    def schema(self) -> Json:
        """The JSON schema of the parameters of a new reservation; ``blazar.resources.schemas`` has parts of it."""


@runtime_checkable
class Resolves(Protocol):
    """A type whose parameters need data from the cloud. Without it they are taken as they are."""

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the parameters of a request, completed with data from the cloud (as the flavor of an id).

        Called before anything is read or booked, so that it may take long; ``reservation`` is the one to change,
        None for a new one. NotFound and InvalidInput name the field.
        """


@runtime_checkable
class Requires(Protocol):
    """A type whose reservations name properties of resources. Without it any resource will do."""

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a resource must have."""


@runtime_checkable
class Refers(Protocol):
    """A type whose reservations can name others of the same lease. Without it they stand alone.

    A reservation starts when all that it refers to are active, and ends before them; it fails if one of them fails.
    """

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return the references in parameters that ``parameters`` or ``changed`` returned.

        Those of a new reservation have the index that the request gives, until the manager puts ids in their place.
        """


@dataclass(frozen=True, slots=True)
class Child:
    """A reservation that another one is made of: its type, and its parameters as a request has them.

    ``pointer`` is the JSON pointer, in the parameters of the other, of what it follows from: errors name that.
    """

    resource_type: str
    parameters: Json
    pointer: str = ""


@runtime_checkable
class Expands(Protocol):
    """A type that takes no resources itself: its reservations are made of others, of other types.

    These are made and booked with it, start before it and end after it. Only their dates change.
    """

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return what a new reservation is made of, at least one, in the order in which tasks have them."""


@runtime_checkable
class Ranked(Protocol):
    """A type whose reservations end earlier or later than others of their lease. Without it its rank is COMPUTE."""

    @property
    def rank(self) -> Rank:
        """Return when its reservations end."""


@runtime_checkable
class Changes(Protocol):
    """A type whose reservations can change. Without it a lease can still get other dates."""

    def changed(self, current: Content, change: Given) -> Content:
        """Return the parameters after a change, checked; InvalidInput names the field, ResolutionNeeded."""

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation that holds resources demands after a change.

        Raises Conflict for what cannot be changed in the reservation's state, and UsageNeeded.
        """
