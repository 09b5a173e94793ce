# SPDX-License-Identifier: Apache-2.0
"""The kind ``device``: what operators register, and how it is polled. It is called ``device`` by Chameleon's clients.

Blazar drives no device itself: a hook does it, or nobody. So a driver of the name of a service needs a hook that
stands for that service.
"""

from __future__ import annotations

import re
import uuid

from blazar.clouds.outgoing.addresses import LONGEST_URL
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import DEVICE, KindShape, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CloudResource
from blazar.resources.contract.parameters import quote, text_of
from blazar.resources.generic.hooked_kind import HookedKind
from blazar.resources.generic.parameters import HOOK_URL, NAME, thing_name

DEVICE_TYPE, DEVICE_DRIVER, UID = "device_type", "device_driver", "uid"
"""The attributes of a device, besides its name and the URL of its hook."""

ATTRIBUTES = (NAME, DEVICE_TYPE, DEVICE_DRIVER, UID, HOOK_URL)

HOOK, NO_DRIVER = "hook", "none"
"""Drivers: a hook does what is to be done at the start and the end; nothing is to be done."""

DRIVERS = ("zun", "k8s", HOOK, NO_DRIVER)
TYPES = ("container", "vm", "shell")

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]{0,254}")

_FIELDS: Json = {
    NAME: {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "description": "its name, without blanks, which users see",
    },
    DEVICE_TYPE: {"enum": list(TYPES), "description": f"{', '.join(TYPES)}; container by default"},
    DEVICE_DRIVER: {
        "enum": list(DRIVERS),
        "description": "none, hook, or with a hook zun or k8s; hook by default if there is a hook_url",
    },
    UID: {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "description": "its id elsewhere; by default its id here",
    },
    HOOK_URL: {
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": LONGEST_URL,
        "description": "the URL of its hook, which only operators see",
    },
}
SHAPE = KindShape(
    "device",
    "devices",
    registration={
        "type": "object",
        "description": "an object",
        "required": [NAME],
        "additionalProperties": False,
        "properties": _FIELDS,
    },
    attributes={**{name: {"type": "string"} for name in ATTRIBUTES}, HOOK_URL: {"type": ["string", "null"]}},
    public=(DEVICE_TYPE, DEVICE_DRIVER, UID),
    shown=(DEVICE_TYPE, DEVICE_DRIVER, UID),
    named=True,
    # Not its driver: what a hook has handed over, a hook has to take back.
    changeable=(HOOK_URL,),
)


class Devices(HookedKind):
    """Whole things with a name, a type and a driver. Their registration calls nobody."""

    kind = DEVICE
    usual_type = "device"
    shape = SHAPE
    own_properties = frozenset(ATTRIBUTES)

    def find(self, request: Registration) -> CloudResource:
        """Return the device that an operator describes, with a new id. InvalidInput."""
        given, new_id = request.given, str(uuid.uuid4())
        name, url = thing_name(given.get(NAME)), text_of(given, HOOK_URL) or None
        device_type = given.get(DEVICE_TYPE, TYPES[0])
        if device_type not in TYPES:
            raise InvalidInput(
                f"{DEVICE_TYPE} is {quote(device_type)}; use one of {', '.join(TYPES)}", at=f"/{DEVICE_TYPE}"
            )
        uid = given.get(UID, new_id)
        if not isinstance(uid, str) or not _UID.fullmatch(uid):
            raise InvalidInput(
                f"{UID} is {quote(uid)}; give at most 255 characters of A-Z a-z 0-9 : _ . -, or leave it out",
                at=f"/{UID}",
            )
        return CloudResource(
            new_id,
            name,
            {NAME: name, DEVICE_TYPE: device_type, DEVICE_DRIVER: _checked_driver(given, url), UID: uid, HOOK_URL: url},
        )

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes of a device whose hook, if it has one, may be called. InvalidInput."""
        if (url := in_cloud.attributes[HOOK_URL]) is not None:
            self._hooks.check_hook(str(url))
        return ResourceDetails(in_cloud.attributes, ResourceInventory())


def _checked_driver(given: Json, url: str | None) -> str:
    driver = given.get(DEVICE_DRIVER, None if url is None else HOOK)
    if driver is None:
        raise InvalidInput(
            f"Missing parameter {HOOK_URL}: give the URL of the hook that hands the device over and takes it back, or "
            f"{DEVICE_DRIVER} {NO_DRIVER} if nothing is to be done at the start and the end of its leases"
        )
    if driver not in DRIVERS:
        raise InvalidInput(
            f"{DEVICE_DRIVER} is {quote(driver)}; use one of {', '.join(DRIVERS)}", at=f"/{DEVICE_DRIVER}"
        )
    if driver != NO_DRIVER and url is None:
        raise InvalidInput(
            f"{DEVICE_DRIVER} is {quote(driver)}, and Blazar drives no devices itself; give {HOOK_URL}, the URL of a "
            f"hook that does, or {DEVICE_DRIVER} {NO_DRIVER} if nothing is to be done at the start and the end",
            at=f"/{DEVICE_DRIVER}",
        )
    if driver == NO_DRIVER and url is not None:
        raise InvalidInput(
            f"{DEVICE_DRIVER} is {quote(driver)}, with which no hook is called; leave {HOOK_URL} out, or give another "
            f"{DEVICE_DRIVER}",
            at=f"/{HOOK_URL}",
        )
    return str(driver)
