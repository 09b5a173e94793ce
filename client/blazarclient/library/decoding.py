# SPDX-License-Identifier: Apache-2.0
"""Typed values from JSON: a dataclass takes the keys that it has fields for.

Keys that it does not know are left out, since later versions of the service may send more; a missing key has the
default of its field. A date is an aware ``datetime``.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from blazarclient.exception import BlazarClientException
from blazarclient.library.values import TAKES_THE_REST

T = TypeVar("T")


def decode(wanted: type[T], value: object) -> T:
    """Return a value of a type made of JSON; BlazarClientException if the answer does not fit it."""
    try:
        return typing.cast(T, _decoded(wanted, value))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BlazarClientException(f"The service answered with no {wanted.__name__}: {error}", code=502) from error


def date(text: str) -> datetime:
    """Return a date of an answer, such as ``2026-11-26T15:00:00Z``; one without a zone is in UTC."""
    # Python 3.10 reads no Z.
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


def _decoded(wanted: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _made(wanted, value)
    if wanted is datetime:
        return date(value)
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _decoded(next(choice for choice in inner if choice is not type(None)), value)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{value!r} is not a list")
        return tuple(_decoded(inner[0], item) for item in value)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decoded(inner[1], item) for key, item in value.items()}
    if (kinds := _JSON.get(wanted)) and (
        not isinstance(value, kinds) or (value is True or value is False) != (wanted is bool)
    ):
        raise TypeError(f"{value!r} is not of type {wanted.__name__}")
    return value


def _made(wanted: type, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not an object")
    fields, hints = dataclasses.fields(wanted), _hints(wanted)
    rest = next((f.name for f in fields if f.metadata.get(TAKES_THE_REST)), None)
    known = {f.name: _decoded(hints[f.name], value[f.name]) for f in fields if f.name in value and f.name != rest}
    if rest is not None:
        known[rest] = {key: item for key, item in value.items() if key not in known}
    return wanted(**known)


_JSON: Mapping[object, Any] = {str: str, int: int, float: int | float, bool: bool}
"""What may stand in JSON for a type. In Python a truth value is a number, in JSON it is none."""


@functools.cache
def _hints(wanted: type) -> Mapping[str, Any]:
    return typing.get_type_hints(wanted)
