# SPDX-License-Identifier: Apache-2.0
"""``/v1/devices``: the devices that can be reserved, up to version 1.0, and reservations of devices."""

from __future__ import annotations

from blazar.api.http.bodies import Schema
from blazar.api.http.shapes import BEFORE_END, NUMBER, TEXT, TEXT_OR_NULL, Json, a_reservation
from blazar.api.kinds.flat import FlatKind
from blazar.api.kinds.flat_answers import FlatAnswers
from blazar.api.leases.v1_0.held import KindInLease
from blazar.api.resources.components import HANDED_OVER
from blazar.clouds.outgoing.addresses import LONGEST_URL
from blazar.model.resources.resource import DEVICE
from blazar.resources.devices.kind import DRIVERS, TYPES

_TEXT: Schema = {"type": "string", "maxLength": 255}
_ATTRIBUTES: Schema = {
    "name": {**_TEXT, "description": "its name, without blanks, which users see"},
    "device_type": {**_TEXT, "description": ", ".join(TYPES)},
    "device_driver": {**_TEXT, "description": "none, hook, or with a hook zun or k8s"},
    "uid": {**_TEXT, "description": "its id elsewhere; by default its id here"},
    "hook_url": {**_TEXT, "type": ["string", "null"], "maxLength": LONGEST_URL, "description": "the URL of its hook"},
}
_RESERVATION = a_reservation(
    "device",
    {
        "min": NUMBER,
        "max": NUMBER,
        "resource_properties": TEXT_OR_NULL,
        "before_end": BEFORE_END,
        "resources": HANDED_OVER,
    },
    {
        "min": 1,
        "max": 2,
        "resource_properties": '["==", "$model", "rpi4"]',
        "before_end": "default",
        "resources": [{"id": "0b1c2d3e", "name": "edge-1", "answer": {"address": "edge-1.example"}}],
    },
)
_RESERVATIONS: Json = {
    "DeviceReservation": {
        **_RESERVATION,
        "required": [name for name in _RESERVATION["required"] if name != "resources"],
    },
}
ANSWERS = FlatAnswers(
    resource_type="device",
    component="Device",
    property_component="DevicePropertyInList",
    # Not the URL of its hook: operators may have members list devices.
    attributes={"name": TEXT, "device_type": {"enum": [*TYPES]}, "device_driver": {"enum": [*DRIVERS]}, "uid": TEXT},
    example={
        "model": "rpi4",
        "id": "0b1c2d3e-1111-4222-8333-444455556666",
        "name": "edge-1",
        "device_type": "container",
        "device_driver": "hook",
        "uid": "0b1c2d3e-1111-4222-8333-444455556666",
    },
)
HELD = KindInLease(
    kind=DEVICE,
    many="devices",
    nouns="devices",
    component="DeviceInLease",
    attributes=ANSWERS.attributes,
    named_by="name",
    example=ANSWERS.example,
)
PART = FlatKind(
    kind=DEVICE,
    one="device",
    many="devices",
    nouns="devices",
    short="device",
    attributes=_ATTRIBUTES,
    required=("name",),
    answers=ANSWERS,
    examples=({"name": "edge-1", "hook_url": "https://edge.example/hook", "model": "rpi4"}, {"model": "rpi5"}),
    moves=True,
).part(
    reservations=_RESERVATIONS,
    fields={},
)
