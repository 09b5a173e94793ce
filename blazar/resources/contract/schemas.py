# SPDX-License-Identifier: Apache-2.0
"""Building blocks of the schemas of reservations: what a request from API 1.1 on may have, in JSON schema 2020-12.

A schema is that of an object whose fields are parameters. Errors quote the ``description`` of a field after "give";
forms show its ``title``. A field with a ``default`` has this value if it is left out. Some have a ``format`` for forms:
``requirement`` is a requirement on properties. ``x-changeable`` is ``never`` for a field that cannot be changed, and
``before-start`` for one that cannot be changed in use; of others, what is free and in use decides. ``x-instead-of``
names the fields that one is given instead of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from blazar.model.resources.requirements import LONGEST_TEXT
from blazar.resources.contract.actions import SERVER_ACTIONS
from blazar.resources.contract.parameters import MOST

Schema = dict[str, Any]

CHANGEABLE, BEFORE_START, NEVER = "x-changeable", "before-start", "never"
INSTEAD_OF = "x-instead-of"

COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST, "description": "a whole number from 1"}
SIZE: Schema = {"type": "integer", "minimum": 0, "maximum": MOST, "description": "a whole number"}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "description": "an id"}
TEXT: Schema = {"type": "string", "maxLength": 255, "description": "a text of at most 255 characters"}
REQUIREMENT: Schema = {
    "type": ["array", "string", "null"],
    "format": "requirement",
    "title": "Properties",
    "description": 'a requirement as a list such as ["==", "$gpu", "A100"], or its JSON text of at most '
    f"{LONGEST_TEXT} characters",
}


def a_choice(*values: str, title: str) -> Schema:
    """Return the schema of one of several words."""
    *first, last = values
    return {"enum": list(values), "title": title, "description": f"one of {', '.join(first)} and {last}"}


SAVES_WORK = a_choice("default", *(str(action) for action in SERVER_ACTIONS), title="At the end")
"""The action before the end of what has servers."""

NOTICE = a_choice("default", "none", "notification", title="At the end")
"""The action before the end of what has no servers."""


def a_request(
    fields: Schema,
    *,
    required: tuple[str, ...] = (),
    before_start: tuple[str, ...] = (),
    fixed: tuple[str, ...] = (),
    example: Schema,
) -> Schema:
    """Return the schema of the parameters of a new reservation: these fields and no others.

    Those ``before_start`` can be changed only before the start, those that are ``fixed`` never.
    """
    marks = {**dict.fromkeys(before_start, BEFORE_START), **dict.fromkeys(fixed, NEVER)}
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": {
            name: {**field, CHANGEABLE: marks[name]} if name in marks else field for name, field in fields.items()
        },
        "description": "an object with resource_type and the fields of that type",
        "examples": [example],
    }


def a_reference(*resource_types: str) -> Schema:
    """Return the schema of a reference to a reservation of the same lease, of one of these types.

    It is the number of that reservation in a request for a lease, counted from 0, and its id in a change.
    """
    return {
        "type": "object",
        "required": ["reservation"],
        "additionalProperties": False,
        "properties": {"reservation": {"type": ["integer", "string"], "minimum": 0, "maxLength": 36}},
        "x-resource-types": list(resource_types),
        "description": 'a reservation of the same lease, such as {"reservation": 0}',
    }


def check_schemas(whose: str, schemas: Sequence[object]) -> None:
    """Raise TypeError, which says ``whose`` they are, if one of them is no JSON schema."""
    # Imported only to check those of other packages, to save the time and memory of the library.
    from jsonschema.exceptions import SchemaError

    try:
        _check_schemas_in(json.dumps(schemas))
    except (SchemaError, TypeError, ValueError) as error:
        reason = " ".join(str(getattr(error, "message", error)).split())
        raise TypeError(f"{whose} has a schema that cannot be used: {reason:.200}") from error


@cache
def _check_schemas_in(text: str) -> None:
    """Raise SchemaError if one of a JSON list of schemas is none. It takes long, so the same are checked once."""
    from jsonschema import Draft202012Validator

    for schema in json.loads(text):
        Draft202012Validator.check_schema(schema)
