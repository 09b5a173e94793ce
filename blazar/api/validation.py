# SPDX-License-Identifier: Apache-2.0
"""Validate request bodies by JSON schemas. Error messages quote a property's description."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from blazar.api import faults
from blazar.api.faults import READ_ONLY
from blazar.api.shapes import Json
from blazar.model.errors import Fault, InvalidInput

Schema = Json

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
"""Checks the length of a value before its content: for a value that is too long, only that error is reported.

Otherwise a list of a hundred thousand items is validated item by item before it is rejected for its length.
"""

MOST_ERRORS = 50
"""Validation stops after this number of errors: finding all errors in a body of a megabyte can take seconds."""

_VALIDATORS: dict[int, Draft202012Validator] = {}


class InvalidBody(InvalidInput):
    """A body that does not match its schema: one sentence, and every fault that was found, in the body's order."""

    def __init__(self, message: str, found: Sequence[Fault]) -> None:
        super().__init__(message)
        self._found = tuple(found)

    def faults(self, *, operator: bool) -> tuple[Fault, ...]:
        """Return all faults: they quote the body, and the caller wrote that."""
        return self._found


def gather(errors: Sequence[InvalidInput]) -> InvalidBody:
    """Return one error with the faults of all, and with the sentence of the first."""
    found = [fault for error in errors for fault in error.faults(operator=False)]
    return InvalidBody(errors[0].message, found[:MOST_ERRORS])


def check(
    body: dict[str, Any],
    schema: Schema,
    *,
    pointer: str = "",
    lasting: bool = True,
    fixed: Collection[tuple[str, ...]] = (),
) -> None:
    """Raise InvalidBody, which names the field and what would fit, if the body does not match the schema.

    ``pointer`` is where it is, if it is a part of the body. A schema that is not ``lasting`` is of this request only.
    ``fixed`` are the paths of fields that the object has, and that cannot be changed.
    """
    validator = _VALIDATORS.setdefault(id(schema), BoundedValidator(schema)) if lasting else BoundedValidator(schema)
    errors = sorted(
        islice(validator.iter_errors(body), MOST_ERRORS),
        key=lambda e: (len(e.absolute_path), e.validator != "required", e.message),
    )
    if not errors:
        return
    missing = [e for e in errors if e.validator == "required" and not e.absolute_path]
    wanted = [name for name in schema["required"] if name not in body] if missing else []
    sentence = f"Missing parameter {', '.join(wanted)}" if wanted else _sentence(errors[0])
    found = faults.of(body, [(error, _sentence(error)) for error in errors], fixed)
    raise InvalidBody(sentence, [replace(fault, pointer=pointer + (fault.pointer or "")) for fault in found])


def _sentence(error: ValidationError) -> str:
    field = _field(error)
    schema: Any = error.schema
    limit: Any = error.validator_value
    given: Any = error.instance
    help_text = schema.get("description", "what its schema allows")
    if "propertyNames" in error.schema_path:
        return f"{field} has the key {_shown(given)}, which is invalid; give {help_text}"
    match error.validator:
        case "required":
            wanted = [name for name in limit if name not in _keys(error)]
            return f"Missing parameter {', '.join(wanted)} in {field}; give {help_text}"
        case "additionalProperties":
            known = sorted(schema.get("properties", ()))
            unknown = sorted(set(_keys(error)) - set(known))
            what = "is set by the service and cannot be given" if unknown[0] in READ_ONLY else "is unknown"
            return f"{_path(error, unknown[0])} {what}; the allowed fields are: {', '.join(known)}"
        case "maxLength":
            return f"{field} is too long ({len(str(given))} characters, at most {limit}); give {help_text}"
        case "minimum":
            return f"{field} is {_shown(given)}, which is less than {limit}; give {help_text}"
        case "minItems":
            return f"{field} has {len(given)} entries, and needs {limit} at least; give {help_text}"
        case "maximum":
            return f"{field} is {_shown(given)}, which is more than {limit}; give {help_text}"
    if field == "the body":
        return f"The body is invalid; send {help_text}."
    return f"{field} is {_shown(given)}, which is invalid; give {help_text}"


def _field(error: ValidationError) -> str:
    return _path(error) or "the body"


def _path(error: ValidationError, *more: str) -> str:
    text = ""
    for part in (*error.absolute_path, *more):
        text += f"[{part}]" if isinstance(part, int) else f".{str(part)[:80]}"
    return text.lstrip(".")


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _keys(error: ValidationError) -> list[str]:
    return list(error.instance) if isinstance(error.instance, dict) else []
