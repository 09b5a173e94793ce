# SPDX-License-Identifier: Apache-2.0
"""device: whole devices, handed over and taken back by their hooks."""

from __future__ import annotations

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement
from blazar.model.resources.resource import DEVICE
from blazar.resources.contract.actions import BEFORE_END, simple_action, update_values, with_action
from blazar.resources.contract.parameters import (
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)
from blazar.resources.contract.schemas import COUNT, NOTICE, REQUIREMENT, a_request
from blazar.resources.contract.values import Given
from blazar.resources.devices.kind import ATTRIBUTES
from blazar.resources.generic.hooked_type import Hooked
from blazar.resources.generic.parameters import HOOK_URL, MAX, MIN, PROPERTIES

SCHEMA = a_request(
    {
        "min": {**COUNT, "title": "Devices, at least"},
        "max": {**COUNT, "title": "Devices, at most"},
        "resource_properties": {**REQUIREMENT, "default": []},
        "before_end": NOTICE,
    },
    required=("min", "max"),
    example={"min": 1, "max": 2, "resource_properties": ["==", "$machine_name", "jetson-nano"]},
)


@dataclass(frozen=True, slots=True)
class DeviceParameters:
    """The parameters of a reservation: ``least`` to ``most`` devices."""

    least: int
    most: int
    resource_properties: str | None
    before_end: str
    amount: int | None = None
    """Devices are not shared."""

    @classmethod
    def checked(cls, given: Json) -> DeviceParameters:
        """Return the parameters of a request; InvalidInput names the field."""
        if missing := [name for name in (MIN, MAX) if name not in given]:
            raise InvalidInput(
                f"Missing parameter {' and '.join(missing)} (a device reservation needs the smallest and the largest "
                f"number of devices)"
            )
        least, most = (whole_number(given[n], n, least=1, what="a whole number of devices") for n in (MIN, MAX))
        if most < least:
            raise InvalidInput(f"max is {most}, less than min, which is {least}; give a larger max", at=f"/{MAX}")
        return cls(least, most, requirement_text(given.get(PROPERTIES), PROPERTIES), simple_action(given, "devices"))

    @classmethod
    def of(cls, content: Content) -> DeviceParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, MIN),
            stored_number(content, MAX),
            stored_maybe_text(content, PROPERTIES),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them, and as the API shows them."""
        rest = {PROPERTIES: self.resource_properties, BEFORE_END: self.before_end}
        return Content({MIN: self.least, MAX: self.most, **rest})

    @property
    def requirement(self) -> Requirement:
        """Return what a device must have."""
        return requirement_of(**{PROPERTIES: self.resource_properties})


class DeviceReservation(Hooked):
    """The resource type ``device``."""

    resource_type = "device"
    schema = SCHEMA
    kind = DEVICE
    asked_for = frozenset({"id", *ATTRIBUTES}) - {HOOK_URL}
    advice = "$name, $device_type, $device_driver, $uid, or one of their properties, such as $machine_name"

    def wanted(self, parameters: Content) -> DeviceParameters:
        """Return what a reservation asks for."""
        return DeviceParameters.of(parameters)

    def parameters(self, given: Given) -> Content:
        """Return counts, requirement and action; other keys are left out. InvalidInput."""
        return DeviceParameters.checked(with_action(given.values)).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``; InvalidInput."""
        return DeviceParameters.checked(update_values(DeviceParameters.of(current).content.values, change)).content
