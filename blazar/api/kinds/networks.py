# SPDX-License-Identifier: Apache-2.0
"""``/v1/networks``: the segments that can be reserved, up to version 1.0, and reservations of networks."""

from __future__ import annotations

from blazar.api.http.bodies import Schema
from blazar.api.http.shapes import BEFORE_END, NUMBER, TEXT, TEXT_OR_NULL, Json, a_reservation
from blazar.api.kinds.flat import FlatKind
from blazar.api.kinds.flat_answers import ALLOCATION, FlatAnswers, allocation_component
from blazar.api.leases.v1_0.held import KindInLease
from blazar.model.resources.resource import NETWORK

_ATTRIBUTES: Schema = {
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
_RESERVATIONS: Json = {
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
_FIELDS: Json = {
    "network_name": {"description": "network: the name of the network, at most 255 characters"},
    "network_description": {"description": "network: a description of the network, at most 255 characters"},
    "network_properties": {
        "description": 'network: requirements on the segment, for example ["==", "$physical_network", "physnet1"]'
    },
}
ANSWERS = FlatAnswers(
    resource_type="network",
    component="NetworkSegment",
    property_component="NetworkPropertyInList",
    attributes={"network_type": {"enum": ["vlan", "vxlan"]}, "physical_network": TEXT_OR_NULL, "segment_id": NUMBER},
    example={
        "usage_type": "storage",
        "id": "0b1c2d3e-1111-4222-8333-444455556666",
        "network_type": "vlan",
        "physical_network": "physnet1",
        "segment_id": 101,
    },
)
HELD = KindInLease(
    kind=NETWORK,
    many="networks",
    nouns="network segments",
    component="NetworkInLease",
    attributes=ANSWERS.attributes,
    named_by=None,
    example=ANSWERS.example,
)
PART = FlatKind(
    kind=NETWORK,
    one="network",
    many="networks",
    nouns="network segments",
    short="segment",
    attributes=_ATTRIBUTES,
    required=("network_type", "segment_id"),
    answers=ANSWERS,
    examples=(
        {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 101},
        {"usage_type": "storage", "rack": None},
    ),
).part(
    reservations=_RESERVATIONS,
    fields=_FIELDS,
    components={ALLOCATION: allocation_component()},
)
