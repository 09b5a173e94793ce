# SPDX-License-Identifier: Apache-2.0
"""Types and kinds of any package, whose answers can be stored: a wrong one is a TypeError that names it.

What a method returns is checked by its annotation in the contract, so that a new one needs no line here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from inspect import isfunction
from typing import Any, Concatenate, ParamSpec, TypeVar

from blazar.model.base.plugins import OURS
from blazar.model.base.reasons import Cause
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.leases.secrets import hide_secrets, remove_secrets, secret_texts
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import GENERAL_FIELDS, KindShape, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CloudResource, Kind, Polled
from blazar.resources.contract.parameters import reservation_at
from blazar.resources.contract.plugin import copy_values, first_parameter, members_of, returns, stands_for
from blazar.resources.contract.schemas import check_schemas
from blazar.resources.contract.type import ResourceType, check_form
from blazar.resources.contract.values import Child, Done, NotYet, Progress, Reference, Task, Unusable

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""Ids that a path of the API can have."""

LONGEST_NAME = 255

Check = Callable[[Any, str, Any], Any]
"""Returns the answer of a method of a type or kind, which it gets with the method's name. TypeError."""


def _check_progress(of: CheckedType, method: str, value: object) -> Progress:
    if isinstance(value, NotYet):
        given = isinstance(value.after, timedelta) and isinstance(value.reason, str)
        if not given or not isinstance(value.cause, Cause):
            raise TypeError(f"{method} of {of.name} returned {value!r:.80}; give a timedelta and a reason")
    elif not isinstance(value, Done):
        raise TypeError(f"{method} of {of.name} returned {type(value).__name__}, not Done or NotYet")
    return value if value.cloud_ids is None else replace(value, cloud_ids=_check_storable(of, method, value.cloud_ids))


def _check_storable(of: CheckedType, method: str, content: object) -> Content:
    if not isinstance(content, Content):
        raise TypeError(f"{method} of {of.name} returned {type(content).__name__}, not Content")
    try:
        json.dumps(dict(content.values))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{method} of {of.name} returned values that are not JSON: {error}") from error
    return content


def _check_demand(of: CheckedType, method: str, demand: object) -> Demand:
    if not isinstance(demand, Demand) or demand.kind != of.kind:
        raise TypeError(f"{method} of {of.name} returned {demand!r:.80}, not a Demand for its kind")
    return demand


def _check_details(of: CheckedKind, method: str, details: object) -> ResourceDetails:
    if not isinstance(details, ResourceDetails) or not isinstance(details.inventory, ResourceInventory):
        raise TypeError(f"{method} of the kind {of.name} returned {details!r:.80}, not ResourceDetails")
    try:
        json.dumps(dict(details.attributes))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{method} of the kind {of.name} returned attributes that are not JSON: {error}") from error
    return details


def _check_polled(of: CheckedKind, method: str, polled: object) -> Polled:
    if not isinstance(polled, Polled):
        raise TypeError(f"{method} of the kind {of.name} returned {type(polled).__name__}, not Polled")
    for resource, failure in polled.failures.items():
        if failure is not None and not (isinstance(failure, str) and failure):
            raise TypeError(
                f"{method} of the kind {of.name} returned {failure!r} as the failure of {resource}; give its reason, "
                "or None if it is healthy"
            )
    for details in polled.details.values():
        _check_details(of, method, details)
    return polled


def _check_texts(of: CheckedType | CheckedKind, method: str, texts: object) -> frozenset[str]:
    if isinstance(texts, str) or not isinstance(texts, Collection) or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"{method} of {of.name} returned {texts!r:.80}, not a set of texts")
    return frozenset(texts)


_CHECKS: Mapping[str, Check] = {
    "frozenset[str]": _check_texts,
    "Progress": _check_progress,
    "Content": _check_storable,
    "Demand": _check_demand,
    "ResourceDetails": _check_details,
    "Polled": _check_polled,
}
"""What is checked of answers, by annotation."""


Of = TypeVar("Of")
Answer = TypeVar("Answer")
Rest = ParamSpec("Rest")


def masks_secrets(
    work: Callable[Concatenate[Of, Task, Rest], Answer],
) -> Callable[Concatenate[Of, Task, Rest], Answer]:
    """Mask what the reservation of a task keeps secret in errors of a method, and in why it has to wait."""

    @wraps(work)
    def masking(of: Of, task: Task, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Answer:
        kept = task.reservation.parameters.values
        with hide_secrets(lambda: secret_texts(kept)):
            answer = work(of, task, *args, **kwargs)
        if (
            isinstance(answer, NotYet)
            and (reason := remove_secrets(answer.reason, secret_texts(kept))) != answer.reason
        ):
            return replace(answer, reason=reason)
        return answer

    return masking


def _make_checked_method(name: str, member: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that calls the one of the plain type or kind, and checks its answer.

    Secrets of a reservation are in no error of what acts on it.
    """
    check = _CHECKS.get(returns(member))

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._plain, name)(*args, **kwargs)

    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert check is not None
        return check(self, name, getattr(self._plain, name)(*args, **kwargs))

    if check is None:
        return forward
    return masks_secrets(checked) if first_parameter(member) == "Task" and check is not _check_demand else checked


@stands_for(ResourceType, _make_checked_method)
class CheckedType(ResourceType):
    """A resource type in front of another one, which may be of any package."""

    def __init__(self, plain: ResourceType) -> None:
        check_form(plain)
        self._plain = plain
        self.name = plain.resource_type
        copy_values(self, plain)
        self._own = frozenset(name for name in members_of(ResourceType) if plain.has(name))
        # Decided once, and not at each call: what is a default needs no check.
        for name in _UNCHECKED - self._own:
            setattr(self, name, getattr(plain, name))
        if plain.schema is not None and not is_ours(plain):
            check_schemas(f"schema of the type {self.name}", [dict(plain.schema)])

    def has(self, member: str) -> bool:
        """Return whether the plain type defines a member itself."""
        return member in self._own

    def within(self, region: str) -> ResourceType:
        """Return this type: it is of one region."""
        return self

    @masks_secrets
    def start(self, task: Task) -> Progress:
        """Ensure that the project can use the resources, and no others."""
        try:
            return _check_progress(self, "start", self._plain.start(task))
        except Unusable as error:
            if not error.reasons.keys() & {resource.id for resource in task.resources}:
                raise TypeError(
                    f"start of {self.name} raised Unusable for none of its resources: give calendar ids"
                ) from error
            raise

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return what a new reservation is made of; none only for a type that takes resources itself."""
        found = tuple(self._plain.children(parameters))
        if not found:
            raise TypeError(f"children of {self.name} returned none; give at least one")
        return found

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return the references in parameters, each of which is at its pointer."""
        found = tuple(self._plain.references(parameters))
        for reference in found:
            if (
                not isinstance(reference, Reference)
                or reservation_at(parameters, reference.pointer) != reference.reservation
            ):
                raise TypeError(f"references of {self.name} returned {reference!r:.120}, which is not at its pointer")
        return found


_UNCHECKED = frozenset(
    name
    for name, member in members_of(ResourceType).items()
    if isfunction(member) and returns(member) not in _CHECKS and name != "within"
)
"""Methods of which a default answer is passed on as it is; others may call what a type defines."""


@stands_for(Kind, _make_checked_method)
class CheckedKind(Kind):
    """A kind in front of another one, which may be of any package."""

    def __init__(self, plain: Kind) -> None:
        self._plain = plain
        self.name = str(plain.kind)
        copy_values(self, plain)
        _check_shape(self.name, plain.shape, ours=is_ours(plain))

    def has(self, member: str) -> bool:
        """Return whether the plain kind defines a member itself."""
        return self._plain.has(member)

    def find(self, request: Registration) -> CloudResource:
        """Return the resource that a request to register names. InvalidInput, NotFound."""
        found = self._plain.find(request)
        if (
            not isinstance(found, CloudResource)
            or not isinstance(found.external_id, str)
            or not isinstance(found.name, str)
        ):
            raise TypeError(
                f"find of the kind {self.name} returned {found!r:.80}, not a CloudResource with an id and a name"
            )
        if not _ID.fullmatch(found.external_id) or not 0 < len(found.name) <= LONGEST_NAME:
            raise TypeError(
                f"find of the kind {self.name} returned the id {found.external_id!r:.80} and name {found.name!r:.80}; "
                f"an id has 1 to 64 characters of A-Z a-z 0-9 _ . : - and a name at most {LONGEST_NAME}"
            )
        return found


def is_ours(plain: object) -> bool:
    """Tell whether it is of this package: a test checks its schemas, and not each start, which it took a tenth of."""
    return type(plain).__module__.startswith(f"{OURS}.")


def _check_shape(kind: str, shape: object, *, ours: bool) -> None:
    if not isinstance(shape, KindShape):
        raise TypeError(f"shape of the kind {kind} is {shape!r:.80}, not a KindShape")
    if not ours:
        check_schemas(f"shape of the kind {kind}", [dict(shape.registration), *dict(shape.attributes).values()])
    fields = shape.registration.get("properties", {})
    if shape.registration.get("type") != "object" or not isinstance(fields, Mapping):
        raise TypeError(f"shape of the kind {kind} has a registration that is not the schema of an object")
    if taken := sorted(fields.keys() & set(GENERAL_FIELDS)):
        raise TypeError(f"shape of the kind {kind} has the field {taken[0]}, which every registration has; rename it")
