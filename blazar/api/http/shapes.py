# SPDX-License-Identifier: Apache-2.0
"""Building blocks of schemas in the OpenAPI document, and the components that several nouns share.

A component is a schema with a valid example; ``ref`` refers to it by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.actions import CHOICES

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
TEXT_OR_NULL: Json = {"type": ["string", "null"]}
NUMBER: Json = {"type": "integer"}
COUNT: Json = {"type": "integer", "minimum": 1}
FLAG: Json = {"type": "boolean"}
ISO: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$",
    "description": "UTC",
    "examples": ["2030-04-01T08:00:00.000000"],
}
ISO_OR_NULL: Json = {**ISO, "type": ["string", "null"]}
SPACED: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$",
    "description": "UTC",
    "examples": ["2030-03-30 11:22:33"],
}
SPACED_OR_NULL: Json = {**SPACED, "type": ["string", "null"]}
ZULU: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
    "description": "UTC, from 1.1 on",
    "examples": ["2030-04-01T08:00:00Z"],
}
ZULU_OR_NULL: Json = {**ZULU, "type": ["string", "null"]}
BEFORE_END: Json = {"enum": list(CHOICES)}
TIMESTAMPS: Json = {"created_at": SPACED, "updated_at": SPACED_OR_NULL}

LEASE_ID = "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d"
RESERVATION_ID = "1b2c3d4e-0a1b-4c2d-8e3f-405162738495"
EXAMPLE_TIMESTAMPS: Json = {"created_at": "2030-03-30 11:22:33", "updated_at": None}


def or_null(schema: Json) -> Json:
    """Return the schema of such a value or null."""
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": list(dict.fromkeys((*types, "null")))}


def an_object(properties: Json, *, optional: tuple[str, ...] = (), more: object = False, example: Any = None) -> Json:
    """Return the schema of an object with these keys; other keys must match ``more``."""
    required = [name for name in properties if name not in optional]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": more}
    return schema if example is None else {**schema, "examples": [example]}


def a_list(item: Json) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "items": item}


LINKS: Json = a_list(an_object({"rel": TEXT, "href": TEXT}))
"""The schema of ``links``, from 1.1 on."""


def ref(name: str) -> Json:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def in_envelope(key: str | None, schema: Json) -> Json:
    """Return the schema of what ``enclose`` returns."""
    return schema if key is None else an_object({key: schema})


def enclose(key: str | None, value: Any) -> Any:
    """Return a value in an envelope with this key; the value itself if the key is None."""
    return value if key is None else {key: value}


def one_of(states: Iterable[Enum], *more: object) -> Json:
    """Return the schema of the values of an enum, and more values."""
    return {"enum": [*(state.value for state in states), *more]}


def with_examples(schema: Json, *examples: Json) -> Json:
    """Return a schema with examples, which must be valid."""
    return {**schema, "examples": list(examples)}


def a_reservation(resource_type: str, properties: Json, example: Json, *, optional: tuple[str, ...] = ()) -> Json:
    """Return the schema of a reservation of a type: the keys of every reservation, and ``properties``.

    The ``optional`` ones are shown only where they were given.
    """
    return an_object(
        {
            "id": TEXT,
            "lease_id": TEXT,
            "resource_id": TEXT_OR_NULL,
            "status": one_of(ReservationStatus),
            "missing_resources": {**FLAG, "description": "fewer resources are allocated than were reserved"},
            "resources_changed": {**FLAG, "description": "failed resources were replaced by others"},
            **TIMESTAMPS,
            "resource_type": {"enum": [resource_type]},
            **properties,
        },
        optional=optional,
        example={
            **example,
            "id": RESERVATION_ID,
            "lease_id": LEASE_ID,
            "resource_id": "22223333-4444-4555-8666-777788889999",
            "resource_type": resource_type,
            "status": "pending",
            "missing_resources": False,
            "resources_changed": False,
            **EXAMPLE_TIMESTAMPS,
        },
    )


def type_of(component: Json) -> str:
    """Return the resource type of a reservation that ``a_reservation`` describes."""
    (resource_type,) = component["properties"]["resource_type"]["enum"]
    return str(resource_type)


_HELP: Json = {"rel": "help", "href": "https://cloud.example/reservation/openapi.json#/x-error-codes/reservation."}
_PLACES: Json = {"pointer": TEXT, "parameter": TEXT, "header": TEXT, "data": {"type": "object"}}
_FAULT_KEYS: Json = {
    "status": NUMBER,
    "code": {**TEXT, "pattern": "^[a-z0-9._-]+$", "description": "a code of x-error-codes"},
    "title": TEXT,
    "detail": TEXT,
    "request_id": TEXT,
    "links": LINKS,
    **_PLACES,
}
_FAULT: Json = {
    "status": 404,
    "code": "reservation.lease_not_found",
    "title": "Lease not found",
    "detail": f"Lease with {{'lease_id': '{LEASE_ID}'}} not found",
    "request_id": "req-6d0b2a4e-0c3a-4f57-8a55-1f1e2d3c4b5a",
    "links": [{**_HELP, "href": f"{_HELP['href']}lease_not_found"}],
}
_FAULTS: Json = {**a_list(an_object(_FAULT_KEYS, optional=tuple(_PLACES))), "minItems": 1, "maxItems": 50}
_VERSION_FAULT = an_object({**_FAULT_KEYS, "min_version": TEXT, "max_version": TEXT}, optional=tuple(_PLACES))
_UNSUPPORTED: Json = {
    **_FAULT,
    "status": 406,
    "code": "reservation.version_unsupported",
    "title": "Version not supported",
    "detail": "OpenStack-API-Version: version 7.0 is not supported; the lowest is 1.0 and the highest 1.1.",
    "header": "OpenStack-API-Version",
    "min_version": "1.0",
    "max_version": "1.1",
    "links": [{**_HELP, "href": f"{_HELP['href']}version_unsupported"}],
}

ERRORS: Json = {
    "ApplicationError": an_object(
        {"error_code": NUMBER, "error_message": TEXT, "error_name": {"type": ["integer", "string"]}},
        example={
            "error_code": 404,
            "error_message": f"Lease with {{'lease_id': '{LEASE_ID}'}} not found",
            "error_name": 404,
        },
    ),
    "FrameError": an_object(
        {"error": NUMBER, "error_message": TEXT},
        example={"error": 400, "error_message": "The body is not UTF-8; send JSON in UTF-8."},
    ),
    "RoutingError": an_object(
        {"code": NUMBER, "title": TEXT, "description": TEXT},
        example={"code": 404, "title": "Not Found", "description": "This URL does not exist."},
    ),
    "Errors": an_object({"errors": _FAULTS}, example={"errors": [_FAULT]}),
    "VersionError": an_object(
        {"error": NUMBER, "error_message": TEXT, "errors": a_list(_VERSION_FAULT)},
        example={
            "error": 406,
            "error_message": _UNSUPPORTED["detail"],
            "errors": [_UNSUPPORTED],
        },
    ),
    "AuthenticationError": an_object(
        {"error": an_object({"code": NUMBER, "title": TEXT, "message": TEXT})},
        example={
            "error": {
                "code": 401,
                "title": "Unauthorized",
                "message": "The request you have made requires authentication.",
            }
        },
    ),
}
