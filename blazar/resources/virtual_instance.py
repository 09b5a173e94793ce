# SPDX-License-Identifier: Apache-2.0
"""virtual:instance: capacity for servers of one size, on hosts shared with other instance reservations."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.amounts import Amounts
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput
from blazar.model.lease import Parameters
from blazar.resources.actions import BEFORE_END, with_action
from blazar.resources.instances import (
    Instances,
    affinity_of,
    checked_affinity,
    checked_amount,
    checked_before_end,
    policy_of,
)
from blazar.resources.parameters import check_known, requirement_of, requirement_text, whole_number
from blazar.resources.reserved_capacity import Template

RESOURCE_TYPE = "virtual:instance"

REQUIREMENTS = ("resource_properties",)
SIZES: Mapping[str, tuple[str, int, str]] = {
    "vcpus": ("VCPU", 1, "the VCPUs of a server, a whole number"),
    "memory_mb": ("MEMORY_MB", 1, "the memory of a server in MiB, a whole number"),
    # Servers that boot from a volume take no disk of their host.
    "disk_gb": ("DISK_GB", 0, "the disk of a server in GiB, a whole number"),
}
"""Parameter → resource class, minimum, and description for errors."""


class VirtualInstance(Instances):
    """The resource type ``virtual:instance``."""

    resource_type = RESOURCE_TYPE
    fixed = (*SIZES, "affinity")
    free = ("amount", *REQUIREMENTS, BEFORE_END)
    requirements = REQUIREMENTS

    def parameters(self, given: Parameters) -> Parameters:
        """Return amount, sizes, affinity, requirement and ``before_end``; other keys are left out."""
        wanted = ("amount", *self.fixed, *REQUIREMENTS)
        missing = [key for key in wanted if key not in given]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:instance reservation needs {', '.join(wanted)}; "
                f"affinity may be null and resource_properties empty)"
            )
        return _checked({BEFORE_END: "default", **with_action(given)})

    def changed(self, current: Parameters, change: Parameters) -> Parameters:
        """Return the current parameters, updated with the known ones of ``change``."""
        return _checked({**current, **{key: value for key, value in with_action(change).items() if key in current}})

    def demand(self, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Return a demand for ``amount`` servers of the size, on hosts that meet the requirement."""
        requirement = requirement_of(parameters, REQUIREMENTS)
        check_known(requirement, known, REQUIREMENTS)
        return Demand(
            kind=self.kind,
            min_count=parameters["amount"],
            max_count=parameters["amount"],
            requirement=requirement,
            per_instance=Amounts.of({name: parameters[field] for field, (name, _, _) in SIZES.items()}),
            affinity=affinity_of(parameters),
        )

    def template(self, parameters: Parameters) -> Template:
        """Return a template of the size."""
        return Template(**{field: parameters[field] for field in SIZES}, policy=policy_of(parameters))


def _checked(parameters: Parameters) -> Parameters:
    action = checked_before_end(parameters)
    return {
        "amount": checked_amount(parameters),
        **{
            field: whole_number(parameters[field], field, least=least, what=what)
            for field, (_, least, what) in SIZES.items()
        },
        "affinity": checked_affinity(parameters),
        **{field: requirement_text(parameters[field], field) for field in REQUIREMENTS},
        BEFORE_END: action,
    }
