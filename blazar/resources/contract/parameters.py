# SPDX-License-Identifier: Apache-2.0
"""What several resource types share: parsing of numbers and of requirements on hosts, and dividing numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement, join_requirements, parse_requirement, property_keys
from blazar.model.resources.resource import EVACUABLE, Resource
from blazar.resources.contract.values import Reference

T = TypeVar("T")

_RESERVATION_ID = re.compile(r"[A-Za-z0-9-]{1,36}")
_CLOUD_ID = re.compile(r"(?!\.+$)[\w. -]{1,255}")
"""Nova's syntax of the ids of flavors, and wider than that of other ids; rejects path traversal."""

HOST_PROPERTIES = frozenset(
    {
        "id",
        "vcpus",
        "cpu_info",
        "hypervisor_type",
        "hypervisor_version",
        "hypervisor_hostname",
        "service_name",
        "memory_mb",
        "local_gb",
        "status",
        "availability_zone",
        EVACUABLE,
        "reservable",
        "created_at",
        "updated_at",
    }
)
"""Properties of every host, which requirements may name."""

PUBLIC_HOST_PROPERTIES = ("vcpus", "memory_mb", "local_gb", "availability_zone", "hypervisor_type")
"""Those of them that tell nothing of which host it is; from API 1.1 on only operators may name the others."""

MOST = 2**31 - 1
"""The largest number that Nova accepts and that clients of the API expect."""


LONGEST_TEXT = 255
"""The longest name or id of a cloud."""


def whole_number(value: object, field: str, *, least: int, what: str, most: int | None = None) -> int:
    """Return a number given as a number or a string; InvalidInput says ``what`` to give.

    Without ``most`` the largest is the one that all clients can read; it is named only to those who pass it.
    """
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.isascii() and value.isdigit():
        number = int(value) if len(value) <= 10 else MOST + 1
    if number is None or not least <= number <= (MOST if most is None else most):
        bounds = f"at least {least}" if number is None or number < least else f"at most {MOST}"
        bounds = f", {bounds}" if most is None else f" from {least} to {most}"
        raise InvalidInput(f"{field} is {quote(value)}; give {what}{bounds}", at=f"/{field}")
    return number


def truth_of(given: Json, field: str) -> bool:
    """Return a parameter that is true or false, false if it is not given; InvalidInput if it is neither."""
    value = given.get(field, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"{field} is {quote(value)}; give true or false", at=f"/{field}")
    return value


def text_of(given: Json, field: str) -> str | None:
    """Return a parameter that is a string, None if it is not given; InvalidInput if it is none, or too long."""
    value = given.get(field)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{field} is {quote(value)}; give a string", at=f"/{field}")
    if value is not None and len(value) > LONGEST_TEXT:
        sentence = f"{field} is {quote(value)}; give a string of at most {LONGEST_TEXT} characters"
        raise InvalidInput(sentence, at=f"/{field}")
    return value


def cloud_id(value: object, field: str, what: str, *, pointer: str | None = None) -> str:
    """Return an id of the cloud, which the command line sends as a number if it has only digits; InvalidInput."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _CLOUD_ID.fullmatch(text):
        sentence = f"{field} is {quote(value)}; give the id of {what} that your project can use"
        raise InvalidInput(sentence, at=f"/{field}" if pointer is None else pointer)
    return text


def requirement_text(value: object, field: str) -> str | None:
    """Return a requirement as the API shows it; InvalidInput if it is malformed."""
    parse_requirement(value, field=field)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def requirement_of(**texts: str | None) -> Requirement:
    """Return the requirement on a host that combines all these fields, by name."""
    return join_requirements(*(parse_requirement(text, field=field) for field, text in texts.items()))


def stored_number(content: Content, key: str) -> int:
    """Return a number that was checked when the content was made."""
    value = content.values[key]
    if not isinstance(value, int):
        raise TypeError(f"{key} is {quote(value)}, not a number")
    return value


def stored_text(content: Content, key: str, default: str | None = None) -> str:
    """Return a string that was checked when the content was made."""
    value = content.values.get(key, default)
    if not isinstance(value, str):
        raise TypeError(f"{key} is {quote(value)}, not a string")
    return value


def stored_maybe_text(content: Content, key: str) -> str | None:
    """Return a string that was checked when the content was made, or None."""
    return None if content.values.get(key) is None else stored_text(content, key)


def check_property_names(requirement: Requirement, known: frozenset[str], fields: Sequence[str]) -> None:
    """Raise InvalidInput if a requirement names a property that no host has."""
    _check_known_names(property_keys(requirement), HOST_PROPERTIES | known, fields)


def check_unnamed(requirement: Requirement, fields: Sequence[str]) -> None:
    """Raise InvalidInput, as for an unknown property, if a requirement tells hosts apart by what the cloud calls them.

    By such a requirement those who may not see ids and names of hosts could find out whose label is whose.
    """
    asked = property_keys(requirement)
    _check_known_names(asked, asked - HOST_PROPERTIES | frozenset(PUBLIC_HOST_PROPERTIES), fields)


def _check_known_names(asked: frozenset[str], known: frozenset[str], fields: Sequence[str]) -> None:
    unknown = sorted(asked - known)
    if unknown:
        raise InvalidInput(
            f"{' or '.join(reversed(fields))} asks for {', '.join('$' + key for key in unknown)}, "
            f"which no host has; use a property of the hosts, such as $vcpus, or one of their capabilities",
            code="unknown_property",
            at=f"/{fields[-1]}",
        )


def service_names(resources: Iterable[Resource]) -> tuple[str, ...]:
    """Return the service names of hosts, which aggregates use."""
    return tuple(str(resource.attributes["service_name"]) for resource in resources)


def by_service(resources: Iterable[Resource], reasons: Mapping[str, T]) -> Mapping[int, T]:
    """Return reasons, given by the service names of hosts, by calendar id."""
    return {r.id: reasons[name] for r in resources if (name := str(r.attributes["service_name"])) in reasons}


def not_among(resources: Iterable[Resource], services: Container[str]) -> tuple[Resource, ...]:
    """Return the hosts whose service names are not among these."""
    return tuple(r for r in resources if str(r.attributes["service_name"]) not in services)


def quote(value: object) -> str:
    """Return a value as JSON, shortened to 80 characters, for use in a message."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def may_be_reservation(text: str) -> bool:
    """Return whether a text from a mark in the cloud can be the id of a reservation.

    Users may write anything there, also what a database refuses.
    """
    return _RESERVATION_ID.fullmatch(text) is not None


MIN, MAX = "min", "max"


def divided_bounds(
    parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
) -> tuple[Content, Content]:
    """Return parameters with ``min`` and ``max`` divided: what goes asks for just that, and the sum of both stays.

    Only a ``min`` above what the reservation got is less then, and one of what stays is 1 at least.
    """
    values = parameters.values
    least, most = int(str(values[MIN])), int(str(values[MAX]))
    held = len(kept) + len(gone)
    stays = {MIN: max(1, min(least, held) - len(gone)), MAX: max(1, most - len(gone))}
    goes = {MIN: len(gone), MAX: len(gone)}
    return Content({**values, **stays}), Content({**values, **goes})


RESERVATION = "reservation"


def is_reference(value: object) -> bool:
    """Return whether a parameter is meant as a reference: the rest of it is not checked."""
    return isinstance(value, Mapping) and RESERVATION in value


def reference_of(value: object, pointer: str, *resource_types: str) -> Reference:
    """Return the reference that a parameter is, at a JSON pointer, to a reservation of one of these types.

    InvalidInput if it is none.
    """
    given = value.get(RESERVATION) if isinstance(value, Mapping) else None
    is_index = isinstance(given, int) and not isinstance(given, bool) and given >= 0
    if isinstance(value, Mapping) and value.keys() == {RESERVATION} and (is_index or isinstance(given, str)):
        assert isinstance(given, int | str)
        return Reference(pointer, given, resource_types)
    raise InvalidInput(
        f'{pointer.lstrip("/")} is {quote(value)}; name another reservation of the lease by {{"reservation": 0}}: by '
        f"its index in a request for a new lease, and by its id afterwards",
        at=pointer,
    )


def reservation_at(parameters: Content, pointer: str) -> object:
    """Return what the object at a JSON pointer names as its reservation; None if there is no such object."""
    value: object = parameters.values
    for key in _keys_of_pointer(pointer):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value.get(RESERVATION) if isinstance(value, Mapping) else None


def with_ids(parameters: Content, ids: Mapping[str, str]) -> Content:
    """Return parameters with the ids of reservations in their references, by JSON pointer."""
    values: Any = parameters.values
    for pointer, reservation_id in ids.items():
        values = _replace_reference(values, _keys_of_pointer(pointer), reservation_id)
    return Content(values)


def _replace_reference(value: Any, keys: Iterator[str], reservation_id: str) -> Any:
    """Return a copy of a value in which the object that the keys lead to names this reservation."""
    key = next(keys, None)
    if key is None:
        return {**value, RESERVATION: reservation_id}
    if isinstance(value, Mapping):
        return {**value, key: _replace_reference(value[key], keys, reservation_id)}
    position = int(key)
    return [*value[:position], _replace_reference(value[position], keys, reservation_id), *value[position + 1 :]]


def _keys_of_pointer(pointer: str) -> Iterator[str]:
    """Yield the keys and positions of a JSON pointer (RFC 6901)."""
    return (key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
