# SPDX-License-Identifier: Apache-2.0
"""The faults of a body as answers from 1.1 on list them: a code, a sentence and a JSON pointer for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from blazar.model.errors import Fault

READ_ONLY = frozenset(
    {"id", "status", "degraded", "user_id", "project_id", "trust_id", "created_at", "updated_at", "lease_id"}
)
"""Keys of answers that no request may have."""

_ALSO_READ_ONLY = READ_ONLY | {
    "revision",
    "deleted_at",
    "conditions",
    "links",
    "allocations",
    "use",
    "cloud_ids",
    "missing_resources",
    "resources_changed",
    "children",
    "takes",
    "stack_id",
    "stack_reason",
    "server_ids",
    "volume_ids",
}
"""The same, with those of the full answers from 1.1 on, which have faults."""

MOST = 50
"""More faults than this are not listed."""

MOST_ALLOWED = 20
"""More values than this are not listed as those that are allowed."""


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')[:80]}" for part in path)


def of(
    body: Any, errors: Iterable[tuple[ValidationError, str]], fixed: Collection[tuple[str, ...]] = ()
) -> tuple[Fault, ...]:
    """Return the faults of a body in the body's order, each error with its sentence.

    ``fixed`` are the paths of fields that the object has, and that cannot be changed.
    """
    found = [(path, fault) for error, sentence in errors for path, fault in _of(error, sentence, fixed)]
    found.sort(key=lambda each: _place(body, each[0]))
    # A schema with conditions finds some faults twice.
    return tuple({(fault.code, fault.pointer, fault.detail): fault for _, fault in found}.values())


def _of(
    error: ValidationError, sentence: str, fixed: Collection[tuple[str, ...]]
) -> Iterator[tuple[Sequence[str | int], Fault]]:
    path = tuple(error.absolute_path)
    schema: Any = error.schema
    wanted: Any = error.validator_value
    if error.validator == "required" and isinstance(error.instance, dict):
        # The library has an error for each missing key, of which only the message says which.
        (name,) = (name for name in wanted if error.message.startswith(repr(name)))
        place = (*path, name)
        known = schema.get("properties", {}).get(name, {}).get("description")
        detail = f"{_shown(place)} is missing" + (f"; give {known}" if known else "")
        yield place, Fault("missing_field", detail, pointer_to(place))
    elif error.validator == "additionalProperties" and isinstance(error.instance, dict):
        properties = schema.get("properties", {})
        allowed = sorted(properties)
        for name in islice((name for name in error.instance if name not in properties), MOST):
            yield _not_allowed((*path, name), allowed, is_fixed=(*path, name) in fixed)
    elif error.validator in ("maxItems", "maxProperties"):
        yield path, Fault("out_of_bounds", sentence, pointer_to(path), data={"maximum": wanted})
    else:
        values = list(wanted) if error.validator == "enum" else []
        data = {"allowed": values} if 0 < len(values) <= MOST_ALLOWED else None
        yield path, Fault("invalid_value", sentence, pointer_to(path), data=data)


def _not_allowed(
    place: tuple[str | int, ...], allowed: Sequence[str], *, is_fixed: bool
) -> tuple[Sequence[str | int], Fault]:
    code, what = "unknown_field", "is unknown"
    if place[-1] in _ALSO_READ_ONLY:
        code, what = "read_only_field", "is set by the service and cannot be given"
    elif is_fixed:
        code, what = "read_only_field", "cannot be changed"
    detail = f"{_shown(place)} {what}; the allowed fields are: {', '.join(allowed)}"
    return place, Fault(code, detail, pointer_to(place))


def _shown(path: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:80]}" for part in path)
    return text.lstrip(".")


def _place(body: Any, path: Sequence[str | int]) -> list[int]:
    """Return where a path is in the body: the position of each part; what is missing comes last."""
    place: list[int] = []
    for part in path:
        if isinstance(body, dict):
            keys = list(body)
            place.append(keys.index(str(part)) if part in body else len(keys))
            body = body.get(part)
        elif isinstance(body, list) and isinstance(part, int):
            place.append(part)
            body = body[part] if part < len(body) else None
    return place
