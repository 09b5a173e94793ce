# SPDX-License-Identifier: Apache-2.0
"""References between the reservations of a lease, as parameters hold them: ``{"reservation": …}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blazar.model.errors import InvalidInput
from blazar.model.lease import Content
from blazar.resources.base import Reference
from blazar.resources.parameters import quoted

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
        f'{pointer.lstrip("/")} is {quoted(value)}; name another reservation of the lease by {{"reservation": 0}}: by '
        f"its index in a request for a new lease, and by its id afterwards",
        pointer=pointer,
    )


def reservation_at(parameters: Content, pointer: str) -> object:
    """Return what the object at a JSON pointer names as its reservation; None if there is no such object."""
    value: object = parameters.values
    for key in _keys(pointer):
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
        values = _replaced(values, _keys(pointer), reservation_id)
    return Content(values)


def _replaced(value: Any, keys: Iterator[str], reservation_id: str) -> Any:
    """Return a copy of a value in which the object that the keys lead to names this reservation."""
    key = next(keys, None)
    if key is None:
        return {**value, RESERVATION: reservation_id}
    if isinstance(value, Mapping):
        return {**value, key: _replaced(value[key], keys, reservation_id)}
    position = int(key)
    return [*value[:position], _replaced(value[position], keys, reservation_id), *value[position + 1 :]]


def _keys(pointer: str) -> Iterator[str]:
    """Yield the keys and positions of a JSON pointer (RFC 6901)."""
    return (key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
