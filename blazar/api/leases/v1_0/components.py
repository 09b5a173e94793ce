# SPDX-License-Identifier: Apache-2.0
"""Schemas of leases and their events in the OpenAPI document; their reservations are described by the kinds."""

from __future__ import annotations

from typing import Any

from blazar.api.http.shapes import (
    EXAMPLE_TIMESTAMPS,
    FLAG,
    ISO,
    ISO_OR_NULL,
    LEASE_ID,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMPS,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
    with_examples,
)
from blazar.api.leases.v1_0 import formats
from blazar.api.leases.v1_0.render import KEYS_OF_V2, STATES, rename_action
from blazar.api.leases.v1_0.schemas import with_fields
from blazar.model.leases.states import EventStatus

_EVENT: Json = {
    "id": "a0b1c2d3-1111-4222-8333-444455556666",
    "lease_id": LEASE_ID,
    "event_type": "start_lease",
    "time": "2030-04-01T08:00:00.000000",
    "status": "UNDONE",
    **EXAMPLE_TIMESTAMPS,
}
_LEASE: Json = {
    "id": LEASE_ID,
    "name": "nightly-ci",
    "user_id": "curie",
    "project_id": "physics",
    "start_date": "2030-04-01T08:00:00.000000",
    "end_date": "2030-04-01T20:00:00.000000",
    "trust_id": None,
    "status": "PENDING",
    "degraded": False,
    **EXAMPLE_TIMESTAMPS,
    "events": [_EVENT],
}
_PROPERTIES: Json = {
    "id": TEXT,
    "name": TEXT,
    "user_id": TEXT,
    "project_id": TEXT,
    "start_date": ISO,
    "end_date": ISO,
    "trust_id": TEXT_OR_NULL,
    "status": STATES,
    "degraded": FLAG,
    **TIMESTAMPS,
    "reservations": a_list(ref("Reservation")),
    "events": a_list(ref("Event")),
}
_PROPERTIES_OF_V2: Json = {
    **_PROPERTIES,
    "before_end_date": {**ISO_OR_NULL, "description": "when its reservations' before_end_action is due; null: never"},
    "reservations": a_list(ref("ReservationV2")),
}

_EVENT_COMPONENT = an_object(
    {
        "id": TEXT,
        "lease_id": TEXT,
        "event_type": {
            **TEXT,
            "description": "start_lease, before_end_lease, end_lease, or a custom type that the client sent",
        },
        "time": ISO_OR_NULL,
        "status": one_of(EventStatus, None),
        **TIMESTAMPS,
    },
    example=_EVENT,
)


def components(reservations: Json, fields: Json) -> Json:
    """Return the components of leases and of requests about them, in both versions.

    ``reservations`` has the component of each resource type, ``fields`` what requests for reservations may have.
    """
    bodies = {body.name: body for form in formats.ALL for body in (form.created, form.changed)}
    of_v2 = {f"{name}V2": _of_v2(schema) for name, schema in reservations.items()}
    example = _LEASE | {"reservations": [_example(schema) for schema in list(reservations.values())[:1]]}
    dated = {"before_end_date": "2030-04-01T19:00:00.000000"}
    example_of_v2 = example | dated | {"reservations": [_example(schema) for schema in list(of_v2.values())[:1]]}
    return {
        **{name: with_examples(with_fields(body.schema, fields), *body.examples) for name, body in bodies.items()},
        "Event": _EVENT_COMPONENT,
        **reservations,
        **of_v2,
        "Reservation": _any_of_these(reservations),
        "ReservationV2": _any_of_these(of_v2),
        "Lease": an_object(_PROPERTIES, example=example),
        "LeaseV2": an_object(
            {key: _PROPERTIES_OF_V2[key] for key in KEYS_OF_V2}, example={key: example_of_v2[key] for key in KEYS_OF_V2}
        ),
    }


def _any_of_these(reservations: Json) -> Json:
    return {
        "oneOf": [ref(name) for name in reservations],
        "examples": [_example(schema) for schema in reservations.values()],
    }


def _of_v2(reservation: Json) -> Json:
    fields = rename_action(reservation["properties"])
    optional = tuple(fields.keys() - set(rename_action(dict.fromkeys(reservation["required"]))))
    return an_object(fields, optional=optional, example=rename_action(_example(reservation)))


def _example(schema: Json) -> dict[str, Any]:
    example: dict[str, Any] = schema["examples"][0]
    return example
