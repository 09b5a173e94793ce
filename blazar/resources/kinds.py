# SPDX-License-Identifier: Apache-2.0
"""The interface between kinds of resource and the manager: what operators register, and what is polled.

A resource type says what reservations do with resources; its kind says where the resources come from. Several types
may share a kind, as those on hosts do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from blazar.model.errors import InvalidInput, pointing_at
from blazar.model.lease import Json
from blazar.model.requests import Registration
from blazar.model.resource import PropertyValue, Resource, ResourceDetails, ResourceInventory, ResourceKind, noun
from blazar.model.resource_kinds import GENERAL_FIELDS, KindDescription, KindShape
from blazar.model.resource_pages import Candidate
from blazar.resources.capabilities import able
from blazar.resources.schemas import check_schemas

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""Ids that a path of the API can have."""

LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class CloudResource:
    """A resource of the cloud that an operator registers or unregisters; ``name`` is unique within kind and region.

    Kinds leave the ``region`` out: each knows one cloud.
    """

    external_id: str
    name: str
    attributes: Mapping[str, PropertyValue] = field(default_factory=dict)
    region: str = ""


def as_stored(resource: Resource) -> CloudResource:
    """Return a registered resource as it is stored."""
    return CloudResource(resource.external_id, resource.name, resource.attributes, resource.region)


Holders = Callable[[Collection[str]], Mapping[str, Collection[str]]]
"""Returns, for ids of reservations, the names of the resources that each holds at present."""

InUse = Mapping[str, Collection[str]]
"""Reservations in use → the names of the resources that each of them holds."""


@dataclass(frozen=True, slots=True)
class Uses:
    """What the calendar knows of the use of a kind; each is read when it is called, in a statement or two.

    ``report_lacking`` records that reservations in use should have a healthy resource, and do not have it in the cloud.
    It is called as soon as that is seen: another manager may mend it meanwhile. ``projects`` returns the projects of
    reservations: what bears the mark of a reservation, and is another project's, is not of that reservation. ``held``
    returns those of some resources, by calendar id, that a lease has or will have.
    """

    in_use: Callable[[], InUse]
    holders: Holders
    report_lacking: Callable[[Resource, Collection[str]], None]
    projects: Callable[[Collection[str]], Mapping[str, str]]
    held: Callable[[Collection[int]], Collection[int]]


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll.

    ``failures`` says by name how resources have failed, None if healthy; one that is missing here has vanished. A poll
    that names none of the registered resources is ignored: the cloud can hardly have lost all of them at once.
    ``details`` are the cloud's data of resources by calendar id, where they differ from those stored. ``unseen`` are
    the names of healthy resources of which a start has found out what no poll can see: they stay failed for an hour,
    so that few starts fail on them and nobody has to enable them again.
    """

    failures: Mapping[str, str | None]
    details: Mapping[int, ResourceDetails] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


class Kind(Protocol):
    """A kind of resource: the least that it must have. The protocols below are what it may have besides."""

    @property
    def kind(self) -> ResourceKind:
        """Its name, as stored."""

    def find(self, request: Registration) -> CloudResource:
        """Return the resource that a request to register names. InvalidInput names the field; NotFound."""

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
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

    def check_unused(self, in_cloud: CloudResource) -> None:
        """Raise Conflict if a registered resource is in use outside of reservations, so that it cannot leave."""

    def current(self, resource: Resource) -> CloudResource:
        """Return a registered resource as the cloud knows it now; NotFound."""

    def enter(self, in_cloud: CloudResource) -> bool:
        """Ensure that a resource is prepared; return whether anything was missing."""

    def leave(self, in_cloud: CloudResource) -> None:
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

    def refresh(self, resource: Resource, uses: Uses, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one resource, after ``prepare`` if it is not prepared any more (``Enters``). NotFound."""


@runtime_checkable
class ListsCandidates(Protocol):
    """A kind that can tell which resources of the cloud there are to register. Without it none are listed."""

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return what the cloud has, registered or not; a constant number of calls. CloudError.

        Of what is too much to be listed, it has all that is ``registered``, and some that can be registered beside.
        Where it has another name than the resource, its ``resource_id`` is set here.
        """


@runtime_checkable
class Closes(Protocol):
    """A kind whose resources can be closed for a maintenance window: the cloud itself gives nothing of them out.

    What others have closed stays as it is. What this has closed bears a mark in the cloud, and nothing else says so.
    """

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that resources are closed; those that are open get the mark."""

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no resource has this mark: it is open, or has the other mark that is given for it by its id."""

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return how many servers or the like are on resources, by calendar id; few calls."""


@runtime_checkable
class Describes(Protocol):
    """A kind that says how a resource is registered, what is known of it, and what members see. Without it: nothing."""

    @property
    def shape(self) -> KindShape:
        """Its words and schemas, for ``/v1/resources``."""


class CompleteKind:
    """A kind with all capabilities, and with answers that can be stored: a wrong one is a TypeError that names it."""

    def __init__(self, plain: Kind) -> None:
        self.kind = plain.kind
        owning = able(plain, HasOwnProperties)
        self.own_properties = frozenset[str]() if owning is None else owning.own_properties
        self.shape = _shape(plain)
        self._plain = plain
        self._enters = able(plain, Enters)
        self._polls = able(plain, Polls)
        self._refreshes = able(plain, Refreshes)
        self._lists = able(plain, ListsCandidates)
        self._closes = able(plain, Closes)

    def described(self, types: Mapping[str, Json | None]) -> KindDescription:
        """Return what users read of the kind; ``types`` are those that reserve it, with their schemas, where known."""
        schemas = {name: schema for name, schema in types.items() if schema is not None}
        return KindDescription(self.kind, self.shape, tuple(sorted(types)), self._lists is not None, schemas)

    @property
    def polls(self) -> bool:
        """Return whether resources of the kind can fail."""
        return self._polls is not None

    @property
    def enters(self) -> bool:
        """Return whether resources of the kind are prepared for reservations."""
        return self._enters is not None

    def located(self, request: Registration) -> Registration:
        """Return a request to register with the region that it names; by default as it is: there are no regions."""
        return request

    def find(self, request: Registration) -> CloudResource:
        """Return the resource that a request to register names. InvalidInput, NotFound."""
        found = self._plain.find(request)
        if (
            not isinstance(found, CloudResource)
            or not isinstance(found.external_id, str)
            or not isinstance(found.name, str)
        ):
            raise TypeError(
                f"find of the kind {self.kind} returned {found!r:.80}, not a CloudResource with an id and a name"
            )
        if not _ID.fullmatch(found.external_id) or not 0 < len(found.name) <= LONGEST_NAME:
            raise TypeError(
                f"find of the kind {self.kind} returned the id {found.external_id!r:.80} and name {found.name!r:.80}; "
                f"an id has 1 to 64 characters of A-Z a-z 0-9 _ . : - and a name at most {LONGEST_NAME}"
            )
        return found

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return what is stored of a resource that can be registered. InvalidInput, NotFound, Conflict."""
        return self._checked("details", self._plain.details(in_cloud))

    def redescribed(self, resource: Resource, attributes: Mapping[str, PropertyValue]) -> ResourceDetails:
        """Return what is stored of a registered resource with other attributes: as if it were registered with them.

        InvalidInput, also for attributes that are not ``changeable``.
        """
        for name in sorted(attributes.keys() - set(self.shape.changeable)):
            can = f"; what can be changed is {', '.join(self.shape.changeable)}" if self.shape.changeable else ""
            with pointing_at("/attributes"):
                raise InvalidInput(f"{name[:80]} of a {self.shape.noun} cannot be changed{can}", pointer=f"/{name}")
        fields = self.shape.registration.get("properties")
        names = fields.keys() if isinstance(fields, Mapping) else ()
        known = {name: resource.attributes[name] for name in names if name in resource.attributes}
        with pointing_at("/attributes"):
            found = self.find(Registration({"name": resource.name, **known, **attributes}, {}))
            return self.details(replace(as_stored(resource), attributes=found.attributes))

    def check_unused(self, in_cloud: CloudResource) -> None:
        """Raise Conflict if a registered resource is in use outside of reservations; by default never."""
        if self._enters is not None:
            self._enters.check_unused(in_cloud)

    def current(self, resource: Resource) -> CloudResource:
        """Return a registered resource as the cloud knows it now, by default as it is stored; NotFound."""
        return as_stored(resource) if self._enters is None else self._enters.current(resource)

    def enter(self, in_cloud: CloudResource) -> bool:
        """Ensure that a resource is prepared; by default there is nothing to do."""
        return self._enters is not None and self._enters.enter(in_cloud)

    def leave(self, in_cloud: CloudResource) -> None:
        """Ensure that a resource is as it was before its registration; by default there is nothing to do."""
        if self._enters is not None:
            self._enters.leave(in_cloud)

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return what the cloud has to register; by default nothing is known of it."""
        return () if self._lists is None else tuple(self._lists.candidates(registered))

    @property
    def closes(self) -> bool:
        """Return whether resources of the kind can be closed."""
        return self._closes is not None

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that resources are closed; by default there is nothing to do."""
        if self._closes is not None:
            self._closes.close(resources, mark)

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no resource has this mark; by default there is nothing to do."""
        if self._closes is not None:
            self._closes.reopen(resources, mark, others)

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return how many servers or the like are on resources, by calendar id; by default that is not known."""
        return {} if self._closes is None else self._closes.occupants(resources)

    def poll(self, registered: Collection[Resource], uses: Uses) -> Polled:
        """Return the state of all registered resources; by default all are healthy."""
        if self._polls is None:
            return Polled({resource.name: None for resource in registered})
        return self._checked_poll("poll", self._polls.poll(registered, uses))

    def refresh(self, resource: Resource, uses: Uses, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one resource, prepared if need be; by default by a poll of this one."""
        if self._refreshes is None:
            return self.poll((resource,), uses)
        return self._checked_poll("refresh", self._refreshes.refresh(resource, uses, prepare))

    def _checked(self, method: str, details: object) -> ResourceDetails:
        if not isinstance(details, ResourceDetails) or not isinstance(details.inventory, ResourceInventory):
            raise TypeError(f"{method} of the kind {self.kind} returned {details!r:.80}, not ResourceDetails")
        try:
            json.dumps(dict(details.attributes))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{method} of the kind {self.kind} returned attributes that are not JSON: {error}"
            ) from error
        return details

    def _checked_poll(self, method: str, polled: object) -> Polled:
        if not isinstance(polled, Polled):
            raise TypeError(f"{method} of the kind {self.kind} returned {type(polled).__name__}, not Polled")
        for name, failure in polled.failures.items():
            if failure is not None and not (isinstance(failure, str) and failure):
                raise TypeError(
                    f"{method} of the kind {self.kind} returned {failure!r} as the failure of {name}; give its reason, "
                    "or None if it is healthy"
                )
        for details in polled.details.values():
            self._checked(method, details)
        return polled


def _shape(plain: Kind) -> KindShape:
    kind = plain.kind
    if not isinstance(plain, Describes):
        return KindShape(noun(kind), f"{noun(kind)}s")
    shape: object = plain.shape
    if not isinstance(shape, KindShape):
        raise TypeError(f"shape of the kind {kind} is {shape!r:.80}, not a KindShape")
    check_schemas(f"shape of the kind {kind}", [dict(shape.registration), *dict(shape.attributes).values()])
    fields = shape.registration.get("properties", {})
    if shape.registration.get("type") != "object" or not isinstance(fields, Mapping):
        raise TypeError(f"shape of the kind {kind} has a registration that is not the schema of an object")
    if taken := sorted(fields.keys() & set(GENERAL_FIELDS)):
        raise TypeError(f"shape of the kind {kind} has the field {taken[0]}, which every registration has; rename it")
    return shape


CAPABILITIES: tuple[type, ...] = (Enters, Refreshes, Closes)
"""The protocols that a kind has whole, or not at all."""
