# SPDX-License-Identifier: Apache-2.0
"""The reservations of a new lease: from what a request says of each to its type, its parameters, and its region."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases.references import Referrer, check_new_references
from blazar.model.base.errors import BlazarError, InvalidInput, NotFound, point_at
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.reservation import Content
from blazar.model.leases.secrets import hide_secrets, secret_texts
from blazar.model.resources.regions import Regions
from blazar.model.resources.requirements import parse_requirement, property_keys
from blazar.model.resources.resource import REGION
from blazar.resources.contract.parameters import quote, with_ids
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Given

REQUIREMENT = "resource_properties"


@dataclass(frozen=True, slots=True)
class NewReservation:
    """The id and the type of a reservation, and its parameters, checked and completed.

    ``region`` is where it must lie, None if that is not said: then its resources decide. ``pointer`` is where the
    request has it; of a part of another, which is the ``parent``, where that one has what it follows from.
    """

    id: str
    kind: ResourceType
    parameters: Content
    region: str | None
    pointer: str
    parent: str | None = None


def make_reservations(runtime: Runtime, request: LeaseRequest) -> list[NewReservation]:
    """Return the reservations that a request asks for, and those that they are made of. InvalidInput, CloudError."""
    with scope(limit=runtime.settings.request_limit, user_id=request.user_id):
        kinds = [_find_type(runtime, r.resource_type, n) for n, r in enumerate(request.reservations)]
        # After all that the request has: references in it are indices.
        found = _identify_references(_read_reservations(runtime.regions, request, kinds))
        for parent in tuple(found):
            if parent.kind.has("children"):
                found += _children(runtime, parent, request.project_id)
    return found


def _read_reservations(regions: Regions, request: LeaseRequest, kinds: Sequence[ResourceType]) -> list[NewReservation]:
    """Return the reservations of a request, each step for all of them before the next, which may take long."""
    found: list[NewReservation] = []
    resolved: list[tuple[Given, str | None]] = []
    number = 0
    try:
        located = []
        for number in range(len(kinds)):
            located.append(_locate(regions, request.reservations[number].parameters, strict=request.exact))
        for number, (kind, place) in enumerate(zip(kinds, located, strict=True)):
            # Ids of flavors, images and networks mean something in one region only.
            resolves, given, region = kind.has("resolve"), Given(place.parameters), place.region
            if regions.names and (resolves or kind.has("children")):
                region = _require_region(located, number)
            if resolves:
                given = kind.within(region or "").resolve(given, project_id=request.project_id)
            resolved.append((given, region))
        for number, (kind, (given, region)) in enumerate(zip(kinds, resolved, strict=True)):
            parameters = kind.parameters(given)
            found.append(NewReservation(str(uuid.uuid4()), kind, parameters, region, f"/reservations/{number}"))
    except BlazarError as error:
        point_at(error, f"/reservations/{number}")
        raise
    return found


def _children(runtime: Runtime, parent: NewReservation, project_id: str) -> Iterator[NewReservation]:
    """Yield the reservations that another is made of. InvalidInput and NotFound point at what they follow from."""
    for child in parent.kind.children(parent.parameters):
        pointer = parent.pointer + child.pointer
        if child.resource_type not in runtime.types:
            raise InvalidInput(
                f"it needs reservations of the type {child.resource_type}, which this service does not have", at=pointer
            )
        kind = runtime.types[child.resource_type]
        with mask_errors_of(parent), point_errors_at(pointer):
            given = kind.within(parent.region or "").resolve(Given(child.parameters), project_id=project_id)
            parameters = kind.parameters(given)
        yield NewReservation(str(uuid.uuid4()), kind, parameters, parent.region, pointer, parent.id)


def _find_type(runtime: Runtime, resource_type: str, number: int) -> ResourceType:
    types = runtime.types
    if resource_type not in types:
        raise InvalidInput(
            f"resource_type {resource_type[:80]!r} is not available; use one of: {', '.join(sorted(types))}",
            at=f"/reservations/{number}/resource_type",
            data={"allowed": sorted(types)},
        )
    return types[resource_type]


def _identify_references(wanted: Sequence[NewReservation]) -> list[NewReservation]:
    """Return reservations whose references name others by id, where the request has their index. InvalidInput."""
    of_each = [r.kind.references(r.parameters) if r.kind.has("references") else () for r in wanted]
    if not any(of_each):
        return list(wanted)
    check_new_references(
        [
            Referrer(r.id, r.kind.resource_type, references, r.pointer, r.parameters)
            for r, references in zip(wanted, of_each, strict=True)
        ]
    )
    ids = [reservation.id for reservation in wanted]
    return [
        replace(
            reservation,
            parameters=with_ids(reservation.parameters, {r.pointer: ids[int(r.reservation)] for r in references}),
        )
        for reservation, references in zip(wanted, of_each, strict=True)
    ]


def mask_errors_of(parent: NewReservation | None) -> AbstractContextManager[None]:
    """Mask in errors about a part of a reservation what that keeps secret: it may say the names that the part has."""
    return nullcontext() if parent is None else hide_secrets(lambda: secret_texts(parent.parameters.values))


@contextmanager
def point_errors_at(pointer: str) -> Iterator[None]:
    """Have an error point at this place of the request, which has nothing of what was wrong itself."""
    try:
        yield
    except (InvalidInput, NotFound) as error:
        error.pointer = pointer
        raise


@dataclass(frozen=True, slots=True)
class _Located:
    """The region that a reservation names, None if it names none or several; those that it allows; other parameters."""

    region: str | None
    allowed: tuple[str, ...]
    parameters: Mapping[str, Any]


def _require_region(located: Sequence[_Located], number: int) -> str:
    """Return the region of a reservation that must have one before its resources are known.

    The one that it names, or else the first that it allows: preferably one that another of the lease names.
    """
    mine = located[number]
    named = [place.region for place in located if place.region is not None]
    return mine.region or next(name for name in (*named, *mine.allowed) if name in mine.allowed)


def _locate(regions: Regions, given: Mapping[str, Any], *, strict: bool) -> _Located:
    """Return the region that a reservation names, with its parameters. InvalidInput if there is no such region."""
    if not regions.names:
        if strict and REGION in given:
            raise InvalidInput("region: the regions of this service have no names; leave it out", at="/region")
        return _Located(None, ("",), given)
    every = regions.names
    rest = {name: value for name, value in given.items() if name != REGION}
    asked = given.get(REGION)
    if asked is not None and asked not in every:
        raise InvalidInput(
            f"region is {quote(asked)}; give one of {', '.join(every)}",
            code="unknown_reference",
            at="/region",
            data={"allowed": list(every)},
        )
    wanted = parse_requirement(given.get(REQUIREMENT), field=REQUIREMENT)
    if asked is not None:
        if REGION in property_keys(wanted) and asked not in (allowed := regions.list_allowed(wanted)):
            raise InvalidInput(
                f"region is {quote(asked)}, and {REQUIREMENT} allows {', '.join(allowed) or 'none'}; leave one out",
                at="/region",
            )
        return _Located(str(asked), (str(asked),), rest)
    if REGION not in property_keys(wanted):
        return _Located(None, every, rest)
    regions.check_any_allowed(wanted, REQUIREMENT)
    allowed = regions.list_allowed(wanted)
    return _Located(allowed[0] if len(allowed) == 1 else None, allowed, rest)
