# SPDX-License-Identifier: Apache-2.0
"""Schemas of bodies of version 2 in the OpenAPI document, derived from those of version 1."""

from __future__ import annotations

from typing import Any

from blazar.api import components as v1
from blazar.api.components import FLAG, ISO_OR_NULL, TEXT, Json, a_list, an_object, ref, with_examples
from blazar.api.v2 import schemas
from blazar.api.v2.render import FACTS_AMONG_CAPABILITIES, HOST_KEYS, LEASE_KEYS
from blazar.resources.actions import ALIAS, BEFORE_END


def _example(name: str) -> dict[str, Any]:
    example: dict[str, Any] = v1.COMPONENTS[name]["examples"][0]
    return example


def _properties(name: str) -> dict[str, Any]:
    properties: dict[str, Any] = v1.COMPONENTS[name]["properties"]
    return properties


def _renamed(values: Json) -> Json:
    return {ALIAS if key == BEFORE_END else key: value for key, value in values.items()}


_RESERVATION = _renamed(_example("HostReservation"))
_INSTANCES = _renamed(_example("InstanceReservation"))
_OF_FLAVOR = _renamed(_example("FlavorReservation"))
_ADDRESSES = _renamed(_example("AddressReservation"))
_LEASE = {
    **_example("Lease"),
    "before_end_date": "2030-04-01T19:00:00.000000",
    "reservations": [_RESERVATION],
}
_NEW_LEASE = {
    **_example("LeaseCreate"),
    "before_end_date": "2030-04-01 19:30",
    "reservations": [{**item, ALIAS: "snapshot"} for item in _example("LeaseCreate")["reservations"]],
}
_HOST = {
    **_example("Host"),
    "id": 12,
    "extra_capas": {"rack": "r7", **{key: _example("Host")[key] for key in FACTS_AMONG_CAPABILITIES}},
}

_LEASE_PROPERTIES = {
    **_properties("Lease"),
    "before_end_date": {**ISO_OR_NULL, "description": "when its reservations' before_end_action is due; null: never"},
    "reservations": a_list(ref("ReservationV2")),
}
_HOST_PROPERTIES = {
    **_properties("Host"),
    "id": {"type": "integer"},
    "extra_capas": an_object(
        {key: FLAG if key == "reservable" else TEXT for key in FACTS_AMONG_CAPABILITIES},
        more={**TEXT, "description": "a capability"},
    ),
}

COMPONENTS: Json = {
    "ReservationV2": {
        "oneOf": [
            ref("HostReservationV2"),
            ref("InstanceReservationV2"),
            ref("FlavorReservationV2"),
            ref("AddressReservationV2"),
        ],
        "examples": [_RESERVATION, _INSTANCES, _OF_FLAVOR, _ADDRESSES],
    },
    "HostReservationV2": an_object(_renamed(_properties("HostReservation")), example=_RESERVATION),
    "InstanceReservationV2": an_object(_renamed(_properties("InstanceReservation")), example=_INSTANCES),
    "FlavorReservationV2": an_object(_renamed(_properties("FlavorReservation")), example=_OF_FLAVOR),
    "AddressReservationV2": an_object(_renamed(_properties("AddressReservation")), example=_ADDRESSES),
    "LeaseV2": an_object(
        {key: _LEASE_PROPERTIES[key] for key in LEASE_KEYS}, example={key: _LEASE[key] for key in LEASE_KEYS}
    ),
    "HostV2": an_object(
        {key: _HOST_PROPERTIES[key] for key in HOST_KEYS}, example={key: _HOST[key] for key in HOST_KEYS}
    ),
    "LeaseCreateV2": with_examples(schemas.LEASE_CREATE, _NEW_LEASE),
    "LeaseUpdateV2": with_examples(
        schemas.LEASE_UPDATE,
        {"end_date": "2030-04-01T22:00:00Z"},
        {"name": "nightly", "reservations": [{"id": _RESERVATION["id"], ALIAS: "migration"}]},
    ),
    "HostCreateV2": with_examples(
        schemas.HOST_CREATE, {"hypervisor_hostname": "cn12.example", "extra_capas": {"rack": "r7"}}
    ),
    "HostUpdateV2": with_examples(schemas.HOST_UPDATE, {"extra_capas": {"rack": "r8", "gpu": None}}),
}
