# SPDX-License-Identifier: Apache-2.0
"""Request bodies: JSON that is safe to process, its validation, and objects that are sent back whole.

Error messages of the validation quote a property's description. Programs that declare an object as a whole send what
they have read with what they want to change: what is as it was shown stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain, islice
from typing import Any

from flask import Request
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from werkzeug.exceptions import RequestEntityTooLarge

from blazar.api.http import faults
from blazar.api.http.faults import READ_ONLY, BadFrame
from blazar.api.http.readers import DEEPEST
from blazar.api.http.shapes import Json
from blazar.model.base import dates
from blazar.model.base.errors import Fault, FaultPlace, InvalidInput
from blazar.model.base.json_text import UNUSABLE, TooDeepJson, read_json
from blazar.model.base.values import dataclass, replace


def read_object(request: Request) -> dict[str, Any]:
    """Return the body, a JSON object; an empty body gives an empty object. Raises BadFrame for an invalid body."""
    if request.mimetype not in ("", "application/json"):
        sentence = f"Content-Type is {request.mimetype[:80]!r}; send application/json"
        raise BadFrame(400, sentence, code="unsupported_media_type", at=FaultPlace("Content-Type", "header"))
    raw = _read(request)
    if not raw:
        return {}
    try:
        body = read_json(raw.decode("utf-8"), pairs=_object)
    except UnicodeDecodeError:
        raise BadFrame(400, "The body is not UTF-8; send JSON in UTF-8.") from None
    except TooDeepJson:
        raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.") from None
    except ValueError as error:
        raise BadFrame(400, f"The body is not JSON: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise BadFrame(400, f'The body is a JSON {_kind(body)}; send an object, as in {{"name": …}}.')
    _check_texts(body, has_escapes=b"\\u" in raw)
    return body


def refuse_body(request: Request) -> None:
    """Raise InvalidInput if a request has a body and its route takes none; ``{}`` says nothing, and is none."""
    if b"".join(_read(request).split()) not in (b"", b"{}"):
        raise InvalidInput("the request has a body, and nothing can be given here; leave it out", code="unknown_field")


def normalize(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with its name as it is kept: in NFC, in which its length is measured."""
    name = body.get("name")
    return {**body, "name": unicodedata.normalize("NFC", name)} if isinstance(name, str) else body


def _read(request: Request) -> bytes:
    raw = request.get_data(cache=False)
    most = request.max_content_length
    if request.content_length is None and most is not None and len(raw) >= most:
        # werkzeug silently truncates a chunked body at the limit.
        raise RequestEntityTooLarge
    return raw


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} occurs twice")
    return found


def _check_texts(body: object, *, has_escapes: bool) -> None:
    """Reject characters that databases cannot store (U+0000 and lone surrogates) and too deep nesting.

    Only escapes can be such characters: JSON has no control characters in its strings, and UTF-8 no surrogates.
    """
    depth, level = 1, [body]
    while level:
        inside = [part for value in level for part in _inside(value)]
        if inside and depth == DEEPEST:
            raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.")
        if has_escapes and any(isinstance(part, str) and UNUSABLE.search(part) for part in inside):
            raise BadFrame(400, "A string in the body has a NUL character or a lone surrogate; remove it.")
        depth, level = depth + 1, [part for part in inside if isinstance(part, dict | list)]


def _inside(value: object) -> Iterable[object]:
    """Return the values, and the keys, that an object or a list has."""
    if isinstance(value, dict):
        return chain(value, value.values())
    return value if isinstance(value, list) else ()


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "literal"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"


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
        return dates.date(text, dates.in_body())
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


Schema = Json

Check = Callable[[Any, Any, Any, dict[str, Any]], Iterator[ValidationError] | None]

_BOUNDS = (("maxItems", list), ("maxProperties", dict), ("maxLength", str))
_OF_CONTENT = ("items", "properties", "additionalProperties", "propertyNames", "pattern", "enum", "not")


def _unless_too_long(check: Check) -> Check:
    def checked(validator: Any, wanted: Any, value: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
        too_long = (key in schema and isinstance(value, kind) and len(value) > schema[key] for key, kind in _BOUNDS)
        if not any(too_long):
            yield from check(validator, wanted, value, schema) or ()

    return checked


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern as JSON Schema means it: ``$`` is the very end, and digits are those of ASCII."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)


def _check_pattern(validator: Any, pattern: Any, value: Any, _: dict[str, Any]) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not _compile_pattern(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


BoundedValidator: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        name: _unless_too_long(_check_pattern if name == "pattern" else Draft202012Validator.VALIDATORS[name])
        for name in _OF_CONTENT
    },
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
    found = faults.find_faults(body, [(error, _sentence(error)) for error in errors], fixed)
    raise InvalidBody(sentence, [_under(pointer, fault) for fault in found])


def _under(pointer: str, fault: Fault) -> Fault:
    return replace(fault, at=FaultPlace(pointer + (fault.at.name if fault.at else "")))


def _sentence(error: ValidationError) -> str:
    field = _field(error)
    schema: Any = error.schema
    limit: Any = error.validator_value
    given: Any = error.instance
    help_text = schema.get("description", "what its schema allows")
    if "propertyNames" in error.schema_path:
        return f"{field} has the key {_value_text(given)}, which is invalid; give {help_text}"
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
            return f"{field} is {_value_text(given)}, which is less than {limit}; give {help_text}"
        case "maxItems":
            return f"{field} has {len(given)} entries, and {limit} at most are allowed; give {help_text}"
        case "minItems":
            return f"{field} has {len(given)} entries, and needs {limit} at least; give {help_text}"
        case "maximum":
            return f"{field} is {_value_text(given)}, which is more than {limit}; give {help_text}"
    if field == "the body":
        return f"The body is invalid; send {help_text}."
    return f"{field} is {_value_text(given)}, which is invalid; give {help_text}"


def _field(error: ValidationError) -> str:
    return _path(error) or "the body"


def _path(error: ValidationError, *more: str) -> str:
    text = ""
    for part in (*error.absolute_path, *more):
        text += f"[{part}]" if isinstance(part, int) else f".{str(part)[:80]}"
    return text.lstrip(".")


def _value_text(value: object) -> str:
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
