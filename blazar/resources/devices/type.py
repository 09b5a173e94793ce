# SPDX-License-Identifier: Apache-2.0
"""device: whole devices, handed over and taken back by their hooks."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.errors import InvalidInput
from blazar.model.lease import Content, Json
from blazar.model.requirements import Requirement
from blazar.model.resource import DEVICE
from blazar.resources.actions import BEFORE_END, simple_action, updated, with_action
from blazar.resources.base import Given
from blazar.resources.devices.kind import ATTRIBUTES
from blazar.resources.devices.schema import SCHEMA
from blazar.resources.generic.hooked import Hooked
from blazar.resources.generic.options import SECTION
from blazar.resources.generic.parameters import HOOK_URL, MAX, MIN, PROPERTIES
from blazar.resources.parameters import (
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
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
            raise InvalidInput(f"max is {most}, less than min, which is {least}; give a larger max", pointer=f"/{MAX}")
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

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> DeviceReservation:
        """Return the type as configured; the default action is that of generic resources."""
        return cls(cloud.hooks, before_end=conf[SECTION].before_end)

    def wanted(self, parameters: Content) -> DeviceParameters:
        """Return what a reservation asks for."""
        return DeviceParameters.of(parameters)

    def parameters(self, given: Given) -> Content:
        """Return counts, requirement and action; other keys are left out. InvalidInput."""
        return DeviceParameters.checked(with_action(given.values)).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``; InvalidInput."""
        return DeviceParameters.checked(updated(DeviceParameters.of(current).content.values, change)).content
