# SPDX-License-Identifier: Apache-2.0
"""Objects that a client has read, and sends back whole with what it wants to change: what is as it was shown stays.

Programs that declare an object as a whole do so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blazar.api.shapes import Json


def without_unchanged(body: Json, schema: Json, shown: Callable[[], Mapping[str, object]]) -> Json:
    """Return a change without the fields that are as they are shown: those that only the service sets, or any field.

    A body with an ``id`` is such a whole object: then what can be changed is left out, too, if it is the same. What
    the service sets and the body has otherwise stays, and is refused by the schema. The object is read only if need be.
    """
    properties = schema.get("properties", body)
    if body.keys() <= properties.keys():
        return body
    known = shown()
    is_whole = "id" in body and "id" not in properties

    def is_unchanged(key: str) -> bool:
        return key in known and body[key] == known[key] and (is_whole or key not in properties)

    return {key: value for key, value in body.items() if not is_unchanged(key)}
