# SPDX-License-Identifier: Apache-2.0
"""The kind ``generic``: what operators register, and how it is polled."""

from __future__ import annotations

import uuid

from blazar.clouds.outgoing.addresses import LONGEST_URL
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import GENERIC, KindShape, PropertyValue, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CloudResource
from blazar.resources.contract.parameters import MOST, text_of, whole_number
from blazar.resources.generic.hooked_kind import HookedKind
from blazar.resources.generic.parameters import CAPACITY, CLASS, HOOK_URL, NAME, class_name, thing_name

UNIT = "UNIT"
"""The resource class of which a thing has a capacity."""

SHAPE = KindShape(
    "generic resource",
    "generic resources",
    registration={
        "type": "object",
        "description": "an object",
        "required": [NAME, CLASS, HOOK_URL],
        "additionalProperties": False,
        "properties": {
            NAME: {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "its name, without blanks, which users see",
            },
            CLASS: {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "its class, such as microscope, for which users ask",
            },
            CAPACITY: {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST,
                "description": "its number of units, a whole number from 1; 1 by default",
            },
            HOOK_URL: {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_URL,
                "description": "the URL of its hook, which only operators see",
            },
        },
    },
    attributes={CLASS: {"type": "string"}, CAPACITY: {"type": "integer"}, HOOK_URL: {"type": "string"}},
    public=(CLASS, CAPACITY),
    shown=(CLASS, CAPACITY),
    named=True,
    changeable=(CLASS, CAPACITY, HOOK_URL),
)


class GenericResources(HookedKind):
    """Things of any class. Their registration calls nobody."""

    kind = GENERIC
    shape = SHAPE
    own_properties = frozenset({NAME, CLASS, CAPACITY, HOOK_URL})

    def find(self, request: Registration) -> CloudResource:
        """Return the thing that an operator describes, with a new id. InvalidInput."""
        name, url = thing_name(request.given.get(NAME)), text_of(request.given, HOOK_URL)
        if CLASS not in request.given:
            raise InvalidInput("Missing parameter class; give the class of the resource, such as 'microscope'")
        if url is None:
            raise InvalidInput("Missing parameter hook_url; give the https:// URL of the hook of the resource")
        units = request.given.get(CAPACITY, 1)
        capacity = whole_number(units, CAPACITY, least=1, what="a whole number of units")
        described: dict[str, PropertyValue] = {
            CLASS: class_name(request.given[CLASS]),
            CAPACITY: capacity,
            HOOK_URL: url,
        }
        return CloudResource(str(uuid.uuid4()), name, described)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes and the capacity of a thing whose hook may be called. InvalidInput."""
        self._hooks.check_hook(str(in_cloud.attributes[HOOK_URL]))
        capacity = int(in_cloud.attributes[CAPACITY] or 1)
        return ResourceDetails(in_cloud.attributes, ResourceInventory(Amounts.of({UNIT: capacity})))
