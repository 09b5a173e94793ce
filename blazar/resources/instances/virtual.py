# SPDX-License-Identifier: Apache-2.0
"""virtual:instance: capacity for servers of one size, on hosts shared with other instance reservations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from blazar.model.amounts import Amounts
from blazar.model.demand import TraitRequirements
from blazar.model.errors import InvalidInput
from blazar.model.lease import Content, Json
from blazar.model.requirements import Requirement
from blazar.resources.actions import BEFORE_END, updated, with_action
from blazar.resources.base import Given, Task
from blazar.resources.instances.common import (
    REQUIREMENTS,
    Instances,
    checked_affinity,
    checked_amount,
    checked_before_end,
    policy_of,
    stored_affinity,
)
from blazar.resources.instances.reservation_flavor import Template, group_obstacle
from blazar.resources.instances.schemas import VIRTUAL
from blazar.resources.parameters import (
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)

RESOURCE_TYPE = "virtual:instance"

SIZES: Mapping[str, tuple[int, str]] = {
    "vcpus": (1, "the VCPUs of a server, a whole number"),
    "memory_mb": (1, "the memory of a server in MiB, a whole number"),
    # Servers that boot from a volume take no disk of their host.
    "disk_gb": (0, "the disk of a server in GiB, a whole number"),
}
"""Parameter → minimum, and description for errors."""


@dataclass(frozen=True, slots=True)
class VirtualInstanceParameters:
    """The parameters of a reservation of servers of one size, named as in the API."""

    amount: int
    vcpus: int
    memory_mb: int
    disk_gb: int
    affinity: bool | None
    resource_properties: str | None
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> VirtualInstanceParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        action = checked_before_end(given)
        amount = checked_amount(given)
        sizes = {
            field: whole_number(given[field], field, least=least, what=what) for field, (least, what) in SIZES.items()
        }
        affinity = checked_affinity(given)
        requirement = requirement_text(given["resource_properties"], "resource_properties")
        return cls(amount, **sizes, affinity=affinity, resource_properties=requirement, before_end=action)

    @classmethod
    def of(cls, content: Content) -> VirtualInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "amount"),
            **{field: stored_number(content, field) for field in SIZES},
            affinity=stored_affinity(content),
            resource_properties=stored_maybe_text(content, "resource_properties"),
            before_end=stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(asdict(self))

    @property
    def requirement(self) -> Requirement:
        """Return what a host must have."""
        return requirement_of(resource_properties=self.resource_properties)

    @property
    def per_instance(self) -> Amounts:
        """Return what one server takes of its host."""
        return Amounts.of({"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "DISK_GB": self.disk_gb})

    @property
    def traits(self) -> TraitRequirements:
        """Return that no traits are needed."""
        return TraitRequirements()


class VirtualInstance(Instances):
    """The resource type ``virtual:instance``."""

    resource_type = RESOURCE_TYPE
    schema = VIRTUAL
    fixed = (*SIZES, "affinity")
    free = ("amount", *REQUIREMENTS, BEFORE_END)

    def read(self, content: Content) -> VirtualInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return VirtualInstanceParameters.of(content)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: a server group in use."""
        return group_obstacle(task)

    def parameters(self, given: Given) -> Content:
        """Return amount, sizes, affinity, requirement and ``before_end``; other keys are left out."""
        wanted = ("amount", *self.fixed, *REQUIREMENTS)
        missing = [key for key in wanted if key not in given.values]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:instance reservation needs {', '.join(wanted)}; "
                f"affinity may be null and resource_properties empty)"
            )
        return VirtualInstanceParameters.checked({BEFORE_END: "default", **with_action(given.values)}).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        return VirtualInstanceParameters.checked(updated(asdict(self.read(current)), change)).content

    def template(self, parameters: Content) -> Template:
        """Return a template of the size."""
        wanted = self.read(parameters)
        return Template(wanted.vcpus, wanted.memory_mb, wanted.disk_gb, policy=policy_of(wanted.affinity))
