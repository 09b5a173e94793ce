# SPDX-License-Identifier: Apache-2.0
"""Network segments and their reservations as JSON: schemas of requests, the rendering, and the components."""

from __future__ import annotations

from blazar.api.dates import iso, spaced
from blazar.api.shapes import (
    BEFORE_END,
    EXAMPLE_TIMESTAMPS,
    FLAG,
    NUMBER,
    SPACED,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMPS,
    Json,
    a_list,
    a_reservation,
    an_object,
)
from blazar.api.validation import Schema
from blazar.model.demand import ResourceAllocations
from blazar.model.resource import PropertyValues, Resource, ResourceProperty

ATTRIBUTES: Schema = {
    "network_type": {"type": "string", "maxLength": 64, "description": "vlan or vxlan"},
    "physical_network": {
        "type": ["string", "null"],
        "maxLength": 64,
        "description": "the physical network of a vlan; null for a vxlan",
    },
    "segment_id": {
        "type": ["integer", "string"],
        "maxLength": 10,
        "description": "a whole number: 1 to 4094 for a vlan, 1 to 16777215 for a vxlan",
    },
}
_CAPABILITY: Schema = {
    "type": ["string", "integer", "number", "boolean"],
    "maxLength": 65535,
    "description": "a capability's value: a string, a number, true or false (stored as a string)",
}
_CHANGED: Schema = {
    **_CAPABILITY,
    "type": [*_CAPABILITY["type"], "null"],
    "description": "a capability's value: a string, a number, true or false; or null to remove the capability",
}

NETWORK_CREATE: Schema = {
    "type": "object",
    "required": ["network_type", "segment_id"],
    "maxProperties": 500,
    "description": "an object of at most 500 keys",
    "properties": ATTRIBUTES,
    "additionalProperties": _CAPABILITY,
}
NETWORK_UPDATE: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 500,
    "description": 'an object with at least one capability, for example {"usage_type": "storage"}',
    "properties": ATTRIBUTES,
    "additionalProperties": _CHANGED,
}
PROPERTY_UPDATE: Schema = {
    "type": "object",
    "required": ["private"],
    "additionalProperties": False,
    "properties": {"private": {"type": "boolean", "description": "true or false"}},
}

RESERVATIONS: Json = {
    "NetworkReservation": a_reservation(
        "network",
        {
            "network_name": TEXT,
            "network_description": TEXT,
            "network_properties": TEXT_OR_NULL,
            "resource_properties": TEXT_OR_NULL,
            "before_end": BEFORE_END,
            "network_id": {**TEXT_OR_NULL, "description": "the network in Neutron; null until it exists"},
        },
        {
            "network_name": "lab",
            "network_description": "for the course",
            "network_properties": "",
            "resource_properties": '["==", "$physical_network", "physnet1"]',
            "before_end": "default",
            "network_id": "88889999-aaaa-4bbb-8ccc-ddddeeeeffff",
        },
    ),
}
FIELDS: Json = {
    "network_name": {"description": "network: the name of the network, at most 255 characters"},
    "network_description": {"description": "network: a description of the network, at most 255 characters"},
    "network_properties": {
        "description": 'network: requirements on the segment, for example ["==", "$physical_network", "physnet1"]'
    },
}
"""What a request for a reservation of a network may have."""

_SEGMENT_EXAMPLE: Json = {
    "usage_type": "storage",
    "id": "0b1c2d3e-1111-4222-8333-444455556666",
    "network_type": "vlan",
    "physical_network": "physnet1",
    "segment_id": 101,
    "reservable": True,
    **EXAMPLE_TIMESTAMPS,
}
COMPONENTS: Json = {
    "NetworkSegment": an_object(
        {
            "id": TEXT,
            "network_type": {"enum": ["vlan", "vxlan"]},
            "physical_network": TEXT_OR_NULL,
            "segment_id": NUMBER,
            "reservable": {**FLAG, "description": "accepts new leases: it has not failed"},
            "failure": {**TEXT, "description": "present while the segment has failed: the reason"},
            "failed_since": SPACED,
            **TIMESTAMPS,
        },
        optional=("failure", "failed_since"),
        more={**TEXT, "description": "a capability"},
        example=_SEGMENT_EXAMPLE,
    ),
    "NetworkPropertyInList": an_object(
        {"property": TEXT, "private": FLAG, "values": a_list(TEXT), "is_unique": FLAG},
        optional=("private", "values", "is_unique"),
        example={"property": "usage_type", "private": False, "values": ["storage"], "is_unique": False},
    ),
}
OWN_KEYS = frozenset(COMPONENTS["NetworkSegment"]["properties"])
"""Keys of a segment; capabilities of these names would hide them."""

CREATE_EXAMPLE: Json = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 101}
UPDATE_EXAMPLE: Json = {"usage_type": "storage", "rack": None}


def segment(value: Resource) -> Json:
    """Render a segment, with its capabilities as keys beside its attributes."""
    shown: Json = {
        **value.capabilities,
        "id": value.external_id,
        **value.attributes,
        "reservable": value.reservable,
        "created_at": spaced(value.created_at),
        "updated_at": None if value.updated_at is None else spaced(value.updated_at),
    }
    if value.failure is not None and value.failed_since is not None:
        shown |= {"failure": value.failure, "failed_since": spaced(value.failed_since)}
    return shown


def allocation(value: ResourceAllocations) -> Json:
    """Render the allocations of a segment."""
    return {
        "resource_id": value.resource.external_id,
        "reservations": [
            {
                "id": each.reservation_id,
                "lease_id": each.lease_id,
                "start_date": iso(each.window.start),
                "end_date": iso(each.window.end),
            }
            for each in value.allocations
        ],
    }


def property_values(value: PropertyValues, *, detail: bool) -> Json:
    """Render a capability as an item of a list."""
    if not detail:
        return {"property": value.property.name}
    return {
        "property": value.property.name,
        "private": value.property.private,
        "values": list(value.values),
        # Clients show it; no capability of ours is limited to one value.
        "is_unique": False,
    }


def resource_property(value: ResourceProperty) -> Json:
    """Render a capability after a change."""
    return {
        "id": value.id,
        "resource_type": "network",
        "property_name": value.name,
        "private": value.private,
        "created_at": iso(value.created_at),
        "updated_at": iso(value.updated_at) if value.updated_at else None,
    }
