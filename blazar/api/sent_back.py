# SPDX-License-Identifier: Apache-2.0
"""Objects that a client has read, and sends back whole with what it wants to change: what is as it was shown stays.

Programs that declare an object as a whole do so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from blazar.api import moments
from blazar.api.shapes import Json
from blazar.model.errors import InvalidInput

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentChange:
    """A change without the fields that are as they are shown, and the ``fixed`` ones that are not: by their paths."""

    body: Json
    fixed: frozenset[Path] = frozenset()


def is_whole(body: Json, schema: Json) -> bool:
    """Return whether a body is an object as it is shown: it has its ``id``, which no change has."""
    return "id" in body and "id" not in schema.get("properties", body)


def without_unchanged(body: Json, schema: Json, shown: Callable[[], Mapping[str, object]]) -> SentChange:
    """Return a change without the fields that are as they are shown: those that only the service sets, or any field.

    A body with an ``id`` is such a whole object: then what can be changed is left out, too, if it is the same. What
    cannot be changed and the body has otherwise stays, and is refused by the schema. So it is with the fields of a
    field that is an object. The object is read only if need be.
    """
    properties = schema.get("properties", body)
    if body.keys() <= properties.keys():
        return SentChange(body)
    known = shown()
    found = _leave_out(body, schema, known, whole=is_whole(body, schema))
    return SentChange(found, frozenset(_find_fixed(found, schema, known)))


def is_same(value: object, shown: object) -> bool:
    """Return whether a value is the one that is shown: also a date that a program writes in another way."""
    if isinstance(value, str) and isinstance(shown, str):
        return value == shown or ((at := _instant(shown)) is not None and at == _instant(value))
    if isinstance(value, list) and isinstance(shown, list | tuple):
        return len(value) == len(shown) and all(map(is_same, value, shown))
    if isinstance(value, dict) and isinstance(shown, Mapping):
        return value.keys() == shown.keys() and all(is_same(value[key], shown[key]) for key in value)
    return value == shown


def _instant(text: str) -> datetime | None:
    """Return the instant that a text is a date of; None if it is none."""
    try:
        return moments.date(text, moments.in_body())
    except InvalidInput:
        return None


def _leave_out(body: Json, schema: Json, known: Mapping[str, object], *, whole: bool) -> Json:
    """Return an object without what is as it is known; with ``whole`` also of what can be changed.

    Within a field that is changed, an entry that stays is left out of an object with entries of any name, which sets
    and removes each by itself; fields of an object with fixed ones replace it together.
    """
    left: Json = {}
    properties = schema.get("properties", {})
    for key, value in body.items():
        # A date among what can be changed is left to those who read it: a name may look like one.
        if (
            key in known
            and (value == known[key] if key in properties else is_same(value, known[key]))
            and (whole or key not in properties)
        ):
            continue
        inside, before = properties.get(key, {}), known.get(key)
        if whole and isinstance(value, dict) and isinstance(before, Mapping):
            entries = isinstance(inside.get("additionalProperties"), dict)
            changed = _leave_out(value, inside, before, whole=entries)
            if entries and value and not changed:
                continue
            value = changed
        left[key] = value
    return left


def _find_fixed(body: Json, schema: Json, known: Mapping[str, object], path: Path = ()) -> Iterator[Path]:
    """Yield the paths of what is known of the object and cannot be changed."""
    properties = schema.get("properties", {})
    for key, value in body.items():
        if key not in properties and key in known and schema.get("additionalProperties") is False:
            yield (*path, key)
        before = known.get(key)
        if key in properties and isinstance(value, dict) and isinstance(before, Mapping):
            yield from _find_fixed(value, properties[key], before, (*path, key))
