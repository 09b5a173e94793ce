# SPDX-License-Identifier: Apache-2.0
"""What the suite must be told of a resource type, and how it looks at the cloud that the type works on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from blazar.api.http.routes import Part
from blazar.clouds.simulated import Faults
from blazar.model.base.json_text import Json
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Task
from blazarconformance.clock import ManualClock


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a cloud of a test is made with: the clock that it must go by, and the faults that its calls must have."""

    clock: ManualClock
    faults: Faults

    def watched(self, port: Any) -> Any:
        """Return a port whose calls have the faults, and are counted; a ``SimulatedCloud`` takes the faults itself."""
        return _Watched(port, self.faults)


class _Watched:
    def __init__(self, port: Any, faults: Faults) -> None:
        self._port = port
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            with self._faults.apply_around(name):
                return found(*arguments, **more)

        return call


class Site(Protocol):
    """One cloud with the type and its kind on it, made for one check. The protocols below are what it may have besides.

    None of its methods go through the faults. Resources are given by name.
    """

    @property
    def type(self) -> ResourceType:
        """The resource type, working on this cloud."""

    @property
    def kind(self) -> Kind:
        """Its kind, working on the same cloud."""

    def another_type(self) -> ResourceType:
        """Return the type as another manager has it, which knows of the first only what is in the same cloud."""

    def snapshot(self) -> Json:
        """Return all that is in the cloud, to compare: without ids, times and orders that the cloud makes up."""

    def usable(self, reservation_id: str) -> Collection[str]:
        """Return the resources that the project of a reservation can use by it at this moment."""


@runtime_checkable
class HasChildren(Protocol):
    """A site whose type makes its reservations of others: those are of these types, on resources of the same kind."""

    def beside(self) -> Sequence[ResourceType]:
        """Return the types of what it is made of, as a manager has them on the same cloud."""


@runtime_checkable
class HasUsers(Protocol):
    """A site whose users can build something on what a reservation has. Without it nobody uses anything."""

    def use(self, task: Task) -> None:
        """Let a user of the project build on what a started reservation has, so that ``snapshot`` shows it."""


@runtime_checkable
class HasSlowDeletions(Protocol):
    """A site where the deletion of what users have built takes time. Without it nothing has to be waited for."""

    def slow(self, duration: timedelta) -> None:
        """Let deletions take this long from now on."""


@runtime_checkable
class HasAccidents(Protocol):
    """A site where somebody deletes by hand what was made for a reservation."""

    def wreck(self, reservation_id: str) -> None:
        """Delete what the reservation has in the cloud, as far as the cloud lets anybody do so."""


@runtime_checkable
class HasFailures(Protocol):
    """A site whose resources can fail."""

    def fail(self, name: str) -> None:
        """Let a resource fail."""

    def recover(self, name: str) -> None:
        """Let a failed resource recover."""


@runtime_checkable
class HasLosses(Protocol):
    """A site from which resources can vanish."""

    def vanish(self, name: str) -> None:
        """Remove an unused resource from the cloud, as if it had never been there."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Values that a request cannot have, and the parameter that the refusal must name."""

    values: Json
    names: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What the suite must know of a type. Requests are parameters of a reservation, as a client sends them.

    * ``build`` makes a new cloud with the type; at least two resources can be registered there.
    * ``registrations`` name these resources, ``strangers`` what cannot be registered.
    * ``request`` is a plain reservation, the smallest there is; ``others`` are further ones, with all that is optional.
    * ``fits`` is the number of reservations like ``request`` that all resources together have room for.
    * ``needed`` are parameters that a request must have, ``numbers`` those that are numbers of at least one.
    * ``requirement`` is the parameter that takes a requirement in JSON, and ``known`` a requirement that all meet.
    * ``derived`` are parameters that follow from others: a new request need not take them, nor a later API show them.
    * ``invalid`` are values over those of ``request`` that are refused.
    * ``larger`` is a change of ``request`` for which there is room; ``shrinks``: it can be taken back while in use.
    * ``fixed`` are changes that are refused while the reservation is in use.
    * ``used_at_once``: all that was made counts as in use from the start, as nobody can tell whether it has data.
    * ``waits``: a start and an end take a moment, even in a cloud that does everything at once.
    * ``theirs``: users may delete what was made, and it is not made again.
    * ``per_lease`` is what a lease of ``request`` counts for by the measures of usage enforcement.
    * ``referring`` is a request that refers to other reservations of its lease, by index.
    * ``part`` has the routes and schemas of another package.
    """

    name: str
    build: Callable[[Surroundings], Site]
    registrations: tuple[Json, ...]
    request: Json
    fits: int
    strangers: tuple[Json, ...] = ()
    others: tuple[Json, ...] = ()
    needed: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    requirement: str | None = None
    known: str = ""
    derived: tuple[str, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    larger: Json | None = None
    shrinks: bool = False
    fixed: tuple[Json, ...] = ()
    used_at_once: bool = False
    waits: bool = False
    theirs: bool = False
    per_lease: Json = field(default_factory=dict)
    referring: Json | None = None
    part: Part | None = None

    def __str__(self) -> str:
        return self.name
