# SPDX-License-Identifier: Apache-2.0
"""flavor:instance: capacity for servers of an existing flavor, with all its requirements on hosts."""

from __future__ import annotations

import re

from blazar.clouds.ports import Cloud, Flavor
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput, NotFound
from blazar.model.lease import Parameters, Reservation
from blazar.model.requirements import Anything, parse_requirement
from blazar.resources.actions import BEFORE_END, with_action
from blazar.resources.base import ResolutionNeeded
from blazar.resources.flavors import of_text, per_instance_of, text_of, traits_of
from blazar.resources.instances import (
    Instances,
    affinity_of,
    checked_affinity,
    checked_amount,
    checked_before_end,
    policy_of,
)
from blazar.resources.parameters import quoted
from blazar.resources.physical_host import HostSettings
from blazar.resources.reserved_capacity import Template

RESOURCE_TYPE = "flavor:instance"

NEEDED = ("flavor_id", "amount", "affinity")
SIZES = ("vcpus", "memory_mb", "disk_gb")
SOURCE = "resource_properties"
"""The parameter that shows a reservation's source flavor, as of the time when it was chosen."""

_ID = re.compile(r"(?!\.+$)[\w. -]{1,255}")
"""Nova's flavor id syntax, rejecting path traversal."""


class FlavorInstance(Instances):
    """The resource type ``flavor:instance``.

    The source flavor is read once, when it is chosen; later changes of it do not change what was promised.
    """

    resource_type = RESOURCE_TYPE
    fixed = ("flavor_id", "affinity")
    free = ("amount", BEFORE_END)

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        super().__init__(cloud, settings)
        self._compute = cloud.compute

    def resolve(self, given: Parameters, *, project_id: str, reservation: Reservation | None = None) -> Parameters:
        """Return a request's parameters with the flavor in place of its id; NotFound if the project cannot use it."""
        if "flavor_id" not in given:
            return given
        asked = _id_of(given["flavor_id"])
        if reservation is not None and asked in (reservation.id, reservation.parameters["flavor_id"]):
            # The client sends back what it was shown, or what it asked for: nothing changes.
            return {key: value for key, value in given.items() if key != "flavor_id"}
        flavor = self._compute.flavor(asked)
        if flavor is None or not (flavor.public or project_id in self._access(asked)):
            raise NotFound(f"flavor_id: there is no flavor {quoted(asked)} that your project can use")
        return {**given, "flavor_id": flavor}

    def _access(self, flavor_id: str) -> frozenset[str]:
        try:
            return self._compute.flavor_access(flavor_id)
        except NotFound:
            # Deleted or made public since it was read.
            return frozenset()

    def parameters(self, given: Parameters) -> Parameters:
        """Return amount, source flavor with its sizes, affinity and ``before_end``; other keys are left out."""
        missing = [key for key in NEEDED if key not in given]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a flavor:instance reservation needs {', '.join(NEEDED)}; "
                f"affinity may be null)"
            )
        if parse_requirement(given.get(SOURCE), field=SOURCE) != Anything():
            raise _no_choice_of_hosts()
        return _checked({BEFORE_END: "default", **with_action(given), **_chosen(given["flavor_id"])})

    def changed(self, current: Parameters, change: Parameters) -> Parameters:
        """Return the current parameters, updated with amount, affinity, flavor and ``before_end`` of the change.

        What follows from the flavor may be sent back only as it was shown.
        """
        for size in SIZES:
            if size in change and change[size] != current[size]:
                raise InvalidInput(f"{size} is what the flavor says; give another flavor_id to change it")
        asked = change.get(SOURCE, "")
        if asked != current[SOURCE] and parse_requirement(asked, field=SOURCE) != Anything():
            raise _no_choice_of_hosts()
        flavor = _chosen(change["flavor_id"]) if "flavor_id" in change else {}
        kept = {key: value for key, value in with_action(change).items() if key in ("amount", "affinity", BEFORE_END)}
        return _checked({**current, **kept, **flavor})

    def demand(self, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Return a demand for ``amount`` servers of the flavor, on hosts with its required traits."""
        flavor = of_text(parameters[SOURCE])
        return Demand(
            kind=self.kind,
            min_count=parameters["amount"],
            max_count=parameters["amount"],
            per_instance=per_instance_of(flavor),
            affinity=affinity_of(parameters),
            traits=traits_of(flavor),
        )

    def template(self, parameters: Parameters) -> Template:
        """Return a template of the flavor, including its extra specs."""
        flavor = of_text(parameters[SOURCE])
        return Template(
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            disk_gb=flavor.disk_gb,
            ephemeral_gb=flavor.ephemeral_gb,
            swap_mb=flavor.swap_mb,
            rxtx_factor=flavor.rxtx_factor,
            extra_specs=flavor.extra_specs,
            exact=True,
            policy=policy_of(parameters),
        )


def _id_of(value: object) -> str:
    """Return the id of a flavor, which the command line sends as a number if it has only digits; InvalidInput."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise InvalidInput(f"flavor_id is {quoted(value)}; give the id of a flavor that your project can use")
    return text


def _chosen(flavor: object) -> Parameters:
    if not isinstance(flavor, Flavor):
        raise ResolutionNeeded
    return {
        "flavor_id": flavor.id,
        "vcpus": flavor.vcpus,
        "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.disk_gb,
        SOURCE: text_of(flavor),
    }


def _checked(parameters: Parameters) -> Parameters:
    flavor = of_text(parameters[SOURCE])
    # Refused here rather than when the calendar is read.
    per_instance_of(flavor)
    traits_of(flavor)
    action = checked_before_end(parameters)
    return {
        "amount": checked_amount(parameters),
        **{key: parameters[key] for key in ("flavor_id", *SIZES)},
        "affinity": checked_affinity(parameters),
        SOURCE: parameters[SOURCE],
        BEFORE_END: action,
    }


def _no_choice_of_hosts() -> InvalidInput:
    return InvalidInput(
        f"{SOURCE} cannot be given for flavor:instance, which takes any host with the capacity and traits that the "
        f"flavor needs; leave it empty"
    )
