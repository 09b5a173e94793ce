# SPDX-License-Identifier: Apache-2.0
"""The interface between kinds of resource and the manager: what operators register, and what is polled.

A resource type says what reservations do with resources; its kind says where the resources come from. Several types
may share a kind, as those on hosts do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from blazar.model.errors import InvalidInput
from blazar.model.requests import Registration
from blazar.model.resource import PropertyValue, Resource, ResourceDetails, ResourceKind


@dataclass(frozen=True, slots=True)
class Candidate:
    """A resource of the cloud that an operator registers or unregisters; ``name`` is unique within the kind."""

    external_id: str
    name: str
    attributes: Mapping[str, PropertyValue] = field(default_factory=dict)


Holders = Callable[[Collection[str]], Mapping[str, Collection[str]]]
"""Returns, for ids of reservations, the names of the resources that each holds at present."""

InUse = Mapping[str, Collection[str]]
"""Reservations in use → the names of the resources that each of them holds."""


@dataclass(frozen=True, slots=True)
class Uses:
    """What the calendar knows of the use of a kind; each is read when it is called, in a statement or two."""

    in_use: Callable[[], InUse]
    holders: Holders


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll.

    ``failures`` says by name how resources have failed, None if healthy; one that is missing here has vanished.
    ``details`` are the cloud's data of resources by calendar id, where they differ from those stored. ``lacking`` are
    the reservations in use that should have a healthy resource, by calendar id, and do not have it in the cloud.
    """

    failures: Mapping[str, str | None]
    details: Mapping[int, ResourceDetails] = field(default_factory=dict)
    lacking: Mapping[int, frozenset[str]] = field(default_factory=dict)


class Kind(Protocol):
    """A kind of resource: the least that it must have. The protocols below are what it may have besides."""

    @property
    def kind(self) -> ResourceKind:
        """Its name, as stored."""

    def find(self, request: Registration) -> Candidate:
        """Return the resource that a request to register names. InvalidInput names the field; NotFound."""

    def details(self, candidate: Candidate) -> ResourceDetails:
        """Return the attributes, capacity and traits of a resource that can be registered.

        InvalidInput or NotFound if it cannot be; Conflict if it is in use.
        """


@runtime_checkable
class HasOwnProperties(Protocol):
    """A kind whose attributes have names that no capability may have."""

    @property
    def own_properties(self) -> frozenset[str]:
        """Names of properties that come from the cloud and cannot be set."""


@runtime_checkable
class Enters(Protocol):
    """A kind whose resources are prepared in the cloud for reservations. Without it registration changes nothing."""

    def check_unused(self, candidate: Candidate) -> None:
        """Raise Conflict if a registered resource is in use outside of reservations, so that it cannot leave."""

    def enter(self, candidate: Candidate) -> bool:
        """Ensure that a resource is prepared; return whether anything was missing. NotFound if the cloud lacks it."""

    def leave(self, candidate: Candidate) -> None:
        """Ensure that a resource is as it was before its registration, also if the cloud no longer knows it."""


@runtime_checkable
class Polls(Protocol):
    """A kind whose resources can fail. Without it they count as healthy."""

    def poll(self, registered: Collection[Resource], uses: Uses) -> Polled:
        """Return the state of all registered resources; the number of calls does not depend on theirs."""


@runtime_checkable
class Refreshes(Protocol):
    """A kind of which an operator can have one resource polled at once, and returned to where it belongs.

    Without it a refresh is a poll of the one resource.
    """

    def look(self, resource: Resource, uses: Uses) -> tuple[frozenset[str], bool]:
        """Return the reservations in use that lack the resource, and whether it is prepared (``Enters``). NotFound."""

    def poll_one(self, resource: Resource, uses: Uses) -> Polled:
        """Return the state of one resource; NotFound if the cloud does not know it."""


def check(plain: object) -> None:
    """Raise InvalidInput if a kind has only some members of a protocol: what it has would be ignored without a word."""
    for protocol in (Enters, Refreshes):
        members = sorted(name for name in vars(protocol) if not name.startswith("_"))
        missing = [name for name in members if not hasattr(plain, name)]
        if missing and len(missing) < len(members):
            present = [name for name in members if name not in missing]
            raise InvalidInput(f"it has {' and '.join(present)}, but not {' and '.join(missing)}: it needs all or none")
