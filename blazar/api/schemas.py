# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of request bodies, as data. Error messages quote a property's description."""

from __future__ import annotations

from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from blazar.api.lengths import BoundedValidator
from blazar.model.errors import InvalidInput
from blazar.model.lease import EventType

Schema = dict[str, Any]

_DATE: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": "a date in UTC. Required format: %Y-%m-%d %H:%M, for example 2030-04-01 08:00, or 'now'",
}
_OPTIONAL_DATE: Schema = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": "a date in UTC strictly inside the lease. Required format: %Y-%m-%d %H:%M, or null or '' for the "
    "default",
}
_EVENT_DATE: Schema = {**_OPTIONAL_DATE, "description": "a date. Required format: %Y-%m-%d %H:%M"}
_KEYS: Schema = {"maxLength": 255, "description": "an object whose keys have at most 255 characters"}
_OF_TYPES: Schema = {
    "min": {"description": "physical:host: the minimum number of hosts, a whole number from 1"},
    "max": {"description": "physical:host: the maximum number of hosts, not less than min"},
    "hypervisor_properties": {
        "description": 'physical:host: requirements on each host, for example [">=", "$vcpus", "16"]'
    },
    "resource_properties": {
        "description": "requirements as in hypervisor_properties; both must hold. A JSON string, or '' for any host"
    },
    "before_end": {
        "description": "action before the end: default (the operator's choice), none, notification (or ''), "
        "snapshot (an image of every server) or, for physical:host, migration (servers move to hosts outside the "
        "freepool and reservation aggregates)"
    },
    "before_end_action": {"description": "alias of before_end"},
    "flavor_id": {"description": "flavor:instance: the id of a flavor that your project can access"},
    "amount": {
        "description": "virtual:instance, flavor:instance: the number of servers, virtual:floatingip: the number of "
        "addresses; a whole number from 1"
    },
    "vcpus": {"description": "virtual:instance: the VCPUs of a server, a whole number from 1"},
    "memory_mb": {"description": "virtual:instance: the memory of a server in MiB, a whole number from 1"},
    "disk_gb": {"description": "virtual:instance: the disk of a server in GiB, a whole number; 0 to boot from volumes"},
    "affinity": {
        "description": "virtual:instance, flavor:instance: true (all servers on one host), false (each on its own "
        "host) or null (no constraint); also as a string: 'True', 'yes', '1' or 'None'"
    },
    "network_id": {"description": "virtual:floatingip: the id of the external network; it cannot be changed"},
    "required_floatingips": {"description": "virtual:floatingip: a list of addresses that the reservation must get"},
}
"""Described here and validated by the resource type, because their meaning depends on ``resource_type``."""

_NAME: Schema = {"type": "string", "maxLength": 80, "description": "a string of at most 80 characters"}

LEASE_CREATE: Schema = {
    "type": "object",
    "required": ["name", "start_date", "end_date"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "start_date": _DATE,
        "end_date": _DATE,
        "before_end_date": _OPTIONAL_DATE,
        "reservations": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of at most 100 reservations",
            "items": {
                "type": "object",
                "required": ["resource_type"],
                "maxProperties": 100,
                "propertyNames": _KEYS,
                "description": "an object with resource_type (for example 'physical:host') and the fields of that type",
                "properties": {
                    "resource_type": {
                        "type": "string",
                        "maxLength": 66,
                        "description": "a string, for example 'physical:host'",
                    },
                    **_OF_TYPES,
                },
            },
        },
        "events": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of at most 100 custom events; they are stored and trigger no action",
            "items": {
                "type": "object",
                "required": ["event_type"],
                "additionalProperties": False,
                "description": "an object with event_type and event_date (or its alias time)",
                "properties": {
                    "event_type": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 66,
                        # A client's event with the type of one of the service's own events would be processed as such.
                        "not": {"enum": [kind.value for kind in EventType]},
                        "description": "a string other than the types of the service's own events, such as end_lease",
                    },
                    "event_date": _EVENT_DATE,
                    "time": _EVENT_DATE,
                },
            },
        },
    },
}

LEASE_UPDATE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "start_date": _DATE,
        "end_date": _DATE,
        "before_end_date": _OPTIONAL_DATE,
        "reservations": {
            "type": "array",
            "maxItems": 100,
            "description": "a list of the lease's reservations, each with its id and the fields to change",
            "items": {
                "type": "object",
                "maxProperties": 100,
                "propertyNames": _KEYS,
                "description": "an object with the reservation's id and the fields to change",
                "properties": {
                    "id": {
                        "type": "string",
                        "maxLength": 255,
                        "description": "the id of one of the lease's reservations",
                    },
                    "resource_type": {"type": "string", "maxLength": 66, "description": "the reservation's type"},
                    **_OF_TYPES,
                },
            },
        },
    },
}

_CAPABILITY: Schema = {
    "type": ["string", "integer", "number", "boolean"],
    "maxLength": 65535,
    "description": "a capability's value: a string, a number, true or false (stored as a string)",
}

OPERATORS_WORD: Schema = {
    "disabled": {
        "enum": [True, False, "true", "false", "True", "False"],
        "description": "true (the host takes no new leases) or false",
    },
    "authorized_projects": {
        "type": ["array", "string", "null"],
        "minItems": 1,
        "maxItems": 1000,
        "minLength": 1,
        "maxLength": 65535,
        "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the id of a project"},
        "description": "a list of project ids (or a comma-separated string), or null for all projects",
    },
}
"""Fields that are sent beside capabilities and are not capabilities."""

_ANSWERED_BY_THE_CLOUD = (
    "availability_zone",
    "hypervisor_hostname",
    "service_name",
    "vcpus",
    "cpu_info",
    "hypervisor_type",
    "hypervisor_version",
    "memory_mb",
    "local_gb",
    "trust_id",
)
"""Fields that a client may send when it registers a host, and that are read from Nova instead."""

HOST_CREATE: Schema = {
    "type": "object",
    "maxProperties": 500,
    "description": "an object of at most 500 keys",
    "properties": {
        "name": {"type": "string", "maxLength": 255, "description": "the hypervisor's hostname"},
        "id": {
            "type": ["string", "integer"],
            "pattern": "^[0-9]+$",
            "minimum": 0,
            "maxLength": 255,
            "description": "the number of the hypervisor in Nova",
        },
        **OPERATORS_WORD,
        **dict.fromkeys(_ANSWERED_BY_THE_CLOUD, {"description": "read from Nova; a value in the request is ignored"}),
    },
    "additionalProperties": _CAPABILITY,
}

HOST_UPDATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 500,
    "description": 'an object with at least one capability, for example {"gpu": "A100"}',
    "properties": OPERATORS_WORD,
    "additionalProperties": {
        **_CAPABILITY,
        "type": [*_CAPABILITY["type"], "null"],
        "description": "a capability's value: a string, a number, true or false; or null to remove the capability",
    },
}

ALLOCATION_UPDATE: Schema = {
    "type": "object",
    "required": ["reservation_id"],
    "additionalProperties": False,
    "properties": {
        "reservation_id": {
            "type": "string",
            "maxLength": 255,
            "description": "the id of the reservation to move to another host",
        }
    },
}

PROPERTY_UPDATE: Schema = {
    "type": "object",
    "required": ["private"],
    "additionalProperties": False,
    "properties": {"private": {"type": "boolean", "description": "true or false"}},
}

FLOATING_IP_CREATE: Schema = {
    "type": "object",
    "required": ["floating_network_id", "floating_ip_address"],
    "additionalProperties": False,
    "properties": {
        "floating_network_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "the id of an external network",
        },
        "floating_ip_address": {
            "type": "string",
            "maxLength": 64,
            "description": "an IP address in a subnet of the network, outside its allocation pools",
        },
    },
}

READ_ONLY = frozenset(
    {"id", "status", "degraded", "user_id", "project_id", "trust_id", "created_at", "updated_at", "lease_id"}
)

MOST_ERRORS = 50
"""Validation stops after this number of errors: finding all errors in a body of a megabyte can take seconds."""

_VALIDATORS: dict[int, Draft202012Validator] = {}


def check(body: dict[str, Any], schema: Schema) -> None:
    """Raise InvalidInput, which names the field and what would fit, if the body does not match the schema."""
    validator = _VALIDATORS.setdefault(id(schema), BoundedValidator(schema))
    errors = sorted(
        islice(validator.iter_errors(body), MOST_ERRORS),
        key=lambda e: (len(e.absolute_path), e.validator != "required", e.message),
    )
    if not errors:
        return
    missing = [e for e in errors if e.validator == "required" and not e.absolute_path]
    if missing:
        wanted = [name for name in schema["required"] if name not in body]
        raise InvalidInput(f"Missing parameter {', '.join(wanted)}")
    raise InvalidInput(_sentence(errors[0]))


def _sentence(error: ValidationError) -> str:
    field = _field(error)
    schema: Any = error.schema
    limit: Any = error.validator_value
    help_text = schema.get("description", "")
    if "propertyNames" in error.schema_path:
        return f"{field} has the key {_shown(error.instance)}, which is invalid; give {help_text}"
    match error.validator:
        case "required":
            wanted = [name for name in limit if name not in _keys(error)]
            return f"Missing parameter {', '.join(wanted)} in {field}; give {help_text}"
        case "additionalProperties":
            known = sorted(schema["properties"])
            unknown = sorted(set(_keys(error)) - set(known))
            what = "is set by the service and cannot be given" if unknown[0] in READ_ONLY else "is unknown"
            return f"{_path(error, unknown[0])} {what}; the allowed fields are: {', '.join(known)}"
        case "maxLength":
            return f"{field} is too long ({len(str(error.instance))} characters, at most {limit}); give {help_text}"
    if field == "the body":
        return f"The body is invalid; send {help_text}."
    return f"{field} is {_shown(error.instance)}, which is invalid; give {help_text}"


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
