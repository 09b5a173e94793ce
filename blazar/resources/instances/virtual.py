# SPDX-License-Identifier: Apache-2.0
"""virtual:instance: capacity for servers of one size, on hosts shared with other instance reservations."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass, field
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.cells import GuestCells
from blazar.model.calendar.demand import TraitRequirements
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement
from blazar.resources.contract.actions import BEFORE_END, update_values, with_action
from blazar.resources.contract.parameters import (
    MOST,
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)
from blazar.resources.contract.values import Given, Task
from blazar.resources.hosts.cards import cards_of
from blazar.resources.hosts.flavors import per_instance_of, traits_of
from blazar.resources.hosts.gpus import FIELDS as GPU_FIELDS
from blazar.resources.hosts.gpus import NO_GPUS, GpuParameters, Gpus
from blazar.resources.hosts.guest_cells import cells_of
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.common import (
    REQUIREMENTS,
    Instances,
    checked_affinity,
    checked_amount,
    checked_before_end,
    policy_of,
    stored_affinity,
)
from blazar.resources.instances.extra_specs import check_cells, checked_extra_specs, stored_extra_specs
from blazar.resources.instances.reservation_flavor import ServerTemplate, group_obstacle
from blazar.resources.instances.schemas import VIRTUAL

RESOURCE_TYPE = "virtual:instance"

SIZES: Mapping[str, tuple[int, str]] = {
    "vcpus": (1, "the VCPUs of a server, a whole number"),
    "memory_mb": (1, "the memory of a server in MiB, a whole number"),
    # Servers that boot from a volume take no disk of their host.
    "disk_gb": (0, "the disk of a server in GiB, a whole number"),
}
"""Parameter → minimum, and description for errors."""

EPHEMERAL, EXTRA_SPECS = "ephemeral_gb", "extra_specs"
"""Parameters that may be left out."""


@dataclass(frozen=True, slots=True)
class VirtualInstanceParameters(GpuParameters):
    """The parameters of a reservation of servers of one size, named as in the API."""

    amount: int
    vcpus: int
    memory_mb: int
    disk_gb: int
    affinity: bool | None
    resource_properties: str | None
    before_end: str
    ephemeral_gb: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict, hash=False)
    gpus_of_each: Gpus = NO_GPUS

    @classmethod
    def checked(
        cls, given: Json, settings: HostSettings, kept: VirtualInstanceParameters | None = None
    ) -> VirtualInstanceParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field.

        Of extra specs it may have those that the settings allow, and those that the reservation has ``kept``, and of
        models of GPUs those of the settings and the kept one.
        """
        action = checked_before_end(given)
        amount = checked_amount(given)
        sizes = {
            field: whole_number(given[field], field, least=least, what=what) for field, (least, what) in SIZES.items()
        }
        affinity = checked_affinity(given)
        wanted = cls(
            amount,
            **sizes,
            affinity=affinity,
            resource_properties=requirement_text(given["resource_properties"], "resource_properties"),
            before_end=action,
            ephemeral_gb=_checked_ephemeral(given, sizes["disk_gb"]),
            extra_specs=checked_extra_specs(
                given.get(EXTRA_SPECS), settings.extra_specs, {} if kept is None else kept.extra_specs
            ),
            gpus_of_each=settings.gpus.check(given, NO_GPUS if kept is None else kept.gpus_of_each),
        )
        if kept is None or wanted.extra_specs != kept.extra_specs:
            check_cells(wanted.flavor)
        return wanted

    @classmethod
    def of(cls, content: Content) -> VirtualInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "amount"),
            **{field: stored_number(content, field) for field in SIZES},
            affinity=stored_affinity(content),
            resource_properties=stored_maybe_text(content, "resource_properties"),
            before_end=stored_text(content, BEFORE_END, "default"),
            ephemeral_gb=stored_number(content, EPHEMERAL) if EPHEMERAL in content.values else 0,
            extra_specs=stored_extra_specs(content),
            gpus_of_each=Gpus.of(content),
        )

    @property
    def values(self) -> Json:
        """Return the parameters as a request has them."""
        return {**self._plain, **{key: getattr(self, key) for key in GPU_FIELDS}}

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them; what few ask for only if it has that."""
        rest = {key: value for key, value in self._plain.items() if value or key not in (EPHEMERAL, EXTRA_SPECS)}
        return Content({**rest, **self.gpus_of_each.values})

    @property
    def _plain(self) -> Json:
        return {key: value for key, value in asdict(self).items() if key != "gpus_of_each"}

    @property
    def flavor(self) -> Flavor:
        """Return the flavor of its servers, without what makes it that of a reservation."""
        sizes = self.vcpus, self.memory_mb, self.disk_gb, self.ephemeral_gb
        return self.gpus_of_each.add_to(Flavor("", "", *sizes, extra_specs=self.extra_specs))

    @property
    def requirement(self) -> Requirement:
        """Return what a host must have."""
        return requirement_of(resource_properties=self.resource_properties)

    @property
    def per_instance(self) -> Amounts:
        """Return what one server takes of its host."""
        return per_instance_of(self.flavor)

    @property
    def traits(self) -> TraitRequirements:
        """Return the traits that its extra specs stand for."""
        return traits_of(self.flavor)

    @property
    def cards(self) -> tuple[Cards, ...]:
        """Return the cards of one server."""
        return cards_of(self.flavor)

    @property
    def cells(self) -> GuestCells | None:
        """Return the NUMA cells of one server; None if it has none of its own."""
        return cells_of(self.flavor)


class VirtualInstance(Instances):
    """The resource type ``virtual:instance``."""

    resource_type = RESOURCE_TYPE
    schema = VIRTUAL
    fixed = (*SIZES, EPHEMERAL, EXTRA_SPECS, *GPU_FIELDS, "affinity")
    free = ("amount", *REQUIREMENTS, BEFORE_END)

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        super().__init__(cloud, settings)
        self.schema = settings.gpus.show_in(VIRTUAL)

    def read(self, content: Content) -> VirtualInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return VirtualInstanceParameters.of(content)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: a server group in use."""
        return group_obstacle(task)

    def parameters(self, given: Given) -> Content:
        """Return amount, sizes, extra specs, affinity, requirement and ``before_end``; other keys are left out."""
        wanted = ("amount", *SIZES, "affinity", *REQUIREMENTS)
        missing = [key for key in wanted if key not in given.values]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:instance reservation needs {', '.join(wanted)}; "
                f"affinity may be null and resource_properties empty)"
            )
        values = {BEFORE_END: "default", **with_action(given.values)}
        return VirtualInstanceParameters.checked(values, self._settings).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        before = self.read(current)
        values = update_values(before.values, change)
        return VirtualInstanceParameters.checked(values, self._settings, before).content

    def template(self, parameters: Content) -> ServerTemplate:
        """Return a template of the size."""
        wanted = self.read(parameters)
        return ServerTemplate(
            wanted.vcpus,
            wanted.memory_mb,
            wanted.disk_gb,
            wanted.ephemeral_gb,
            extra_specs=wanted.flavor.extra_specs,
            settable=self._settings.extra_specs,
            removable=self._settings.gpus.names_of_specs,
            policy=policy_of(wanted.affinity),
        )


def _checked_ephemeral(given: Json, disk_gb: int) -> int:
    """Return the ephemeral disk of a server, 0 if it has none; with the disk it is one amount of its host."""
    what = "the ephemeral disk of a server in GiB, a whole number"
    value = given.get(EPHEMERAL)
    ephemeral = 0 if value is None else whole_number(value, EPHEMERAL, least=0, what=what)
    if disk_gb + ephemeral > MOST:
        raise InvalidInput(f"{EPHEMERAL} is {ephemeral}; with disk_gb it can be at most {MOST}", at=f"/{EPHEMERAL}")
    return ephemeral
