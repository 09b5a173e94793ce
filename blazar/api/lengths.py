# SPDX-License-Identifier: Apache-2.0
"""A JSON schema validator that checks the length of a value before its content.

Otherwise a list of a hundred thousand items is validated item by item before it is rejected for its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

Check = Callable[[Any, Any, Any, dict[str, Any]], Iterator[ValidationError] | None]

_BOUNDS = {"maxItems": list, "maxProperties": dict, "maxLength": str}
_OF_CONTENT = ("items", "properties", "additionalProperties", "propertyNames", "pattern", "enum", "not")


def _too_long(value: object, schema: dict[str, Any]) -> bool:
    return any(key in schema and isinstance(value, kind) and len(value) > schema[key] for key, kind in _BOUNDS.items())


def _unless_too_long(check: Check) -> Check:
    def checked(validator: Any, wanted: Any, value: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
        if not _too_long(value, schema):
            yield from check(validator, wanted, value, schema) or ()

    return checked


BoundedValidator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _unless_too_long(Draft202012Validator.VALIDATORS[name]) for name in _OF_CONTENT},
)
"""For a value that is too long, only the error of its length is reported."""
