# SPDX-License-Identifier: Apache-2.0
"""What every resource type is to the life cycle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from blazar.model.demand import Demand
from blazar.model.lease import Lease, Parameters, Reservation
from blazar.model.resource import Resource, ResourceKind


@dataclass(frozen=True, slots=True)
class Done:
    """What should be in the cloud is there; ``artefacts``, if given, are what to remember of it from now on."""

    artefacts: Parameters | None = None


@dataclass(frozen=True, slots=True)
class NotYet:
    """The cloud is at work on it: look again after a while. Nobody waits in the meantime."""

    after: timedelta
    reason: str


Progress = Done | NotYet


class Action(StrEnum):
    """What is done for a reservation when its end comes near. All but NONE come with the notification of it."""

    NONE = "none"
    NOTIFICATION = "notification"
    SNAPSHOT = "snapshot"
    MIGRATION = "migration"

    @property
    def saves_work(self) -> bool:
        """Tell whether there is more to it than a message."""
        return self in (Action.SNAPSHOT, Action.MIGRATION)


@dataclass(frozen=True, slots=True)
class Work:
    """One reservation to act on, with the resources that are promised to it.

    ``counts`` says how many of each, by calendar id; ``in_use`` how many of these are in use, where somebody
    has looked.
    """

    lease: Lease
    reservation: Reservation
    resources: tuple[Resource, ...]
    counts: Mapping[int, int] = field(default_factory=dict)
    in_use: Mapping[int, int] | None = None


class LookFirst(Exception):
    """What a change asks for depends on what is in use: look (``ResourceType.in_use``), then ask again.

    Raised where the calendar is open to nobody else, so that no call to the cloud is made there.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work.reservation.id)
        self.work = work


class ResolveFirst(Exception):
    """What a change gives has to be completed by what the cloud knows (``ResourceType.resolve``); then ask again.

    Raised by ``changed``, where the calendar may be open to nobody else.
    """


class Unusable(Exception):
    """Resources that are promised to a reservation can not be handed over as they are; others should take their place.

    Raised by ``start``. ``reasons`` says why, by calendar id.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = reasons


@runtime_checkable
class LeavesTraces(Protocol):
    """A resource type whose reservations can be recognized in the cloud by what they have there.

    Optional: of a type that has no such method, the sweep finds nothing.
    """

    def traces(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations of which there is something in the cloud, whatever it is.

        ``resources`` are all registered ones of its kind. As many calls for any number of reservations.
        """


class ResourceType(Protocol):
    """A resource type.

    ``prepare``, ``start``, ``before_end``, ``end`` and ``restore`` are *ensures*: they look at what is there and
    bring it to what should be, so that repeating one after a crash at any point finishes the job. They raise
    ``CloudUnavailable`` (worth another try) or another ``BlazarError`` (it is not).
    """

    @property
    def resource_type(self) -> str:
        """The name in the API, as ``physical:host``."""

    @property
    def kind(self) -> ResourceKind:
        """The kind of resource that reservations of this type take."""

    def resolve(self, given: Parameters, *, project_id: str, reservation: Reservation | None = None) -> Parameters:
        """Return what a project's request gives, completed by what the cloud knows of it (the flavor of an id, say).

        Called before anything is read or booked, so that it may take its time; ``reservation`` is the one to change,
        None for a new one. NotFound and InvalidInput name the field.
        """

    def parameters(self, given: Parameters) -> Parameters:
        """Return the parameters of a new reservation, checked and completed; InvalidInput names the field.

        ``given`` is resolved.
        """

    def changed(self, current: Parameters, change: Parameters) -> Parameters:
        """Return the parameters after a change, checked; InvalidInput names the field, ResolveFirst."""

    def action(self, parameters: Parameters) -> Action:
        """Return what is done when the end of a reservation comes near."""

    def demand(self, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Say what a reservation asks of the calendar.

        ``known`` are the properties that some resource has; a requirement on any other is InvalidInput.
        """

    def demand_again(self, work: Work, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Say what a reservation that holds resources asks after a change.

        Raises Conflict for what can not be changed in the reservation's state, and LookFirst.
        """

    def in_use(self, work: Work) -> Mapping[int, int]:
        """Return how many units of each resource are in use, by calendar id."""

    def prepares_anew(self, before: Parameters, after: Parameters) -> bool:
        """Tell whether a change before the start also changes what ``prepare`` makes."""

    def prepare(self, work: Work) -> Parameters:
        """Ensure what must exist before the start; return what to remember of it (the artefacts)."""

    def start(self, work: Work) -> Progress:
        """Ensure that the project can use the resources, and no others."""

    def before_end(self, work: Work) -> Progress:
        """Do what the reservation's ``before_end`` action says."""

    def end(self, work: Work) -> Progress:
        """Ensure that nothing is left of the reservation: uses ended, resources returned, artefacts gone."""

    def restore(self, work: Work, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure what there was before a change that failed: the reservation goes on as ``work`` has it, and the
        ``surplus`` resources are returned."""
