# SPDX-License-Identifier: Apache-2.0
"""flavor:instance: capacity for servers of an existing flavor, with all its requirements on hosts."""

from __future__ import annotations

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.projects import Quota
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.cells import GuestCells
from blazar.model.calendar.demand import TraitRequirements
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.resources.requirements import Anything, Requirement, parse_requirement
from blazar.resources.contract.actions import BEFORE_END, update_values, with_action
from blazar.resources.contract.parameters import cloud_id, stored_number, stored_text
from blazar.resources.contract.type import Needs
from blazar.resources.contract.values import Given, ResolutionNeeded, Task
from blazar.resources.hosts.cards import cards_of
from blazar.resources.hosts.flavors import (
    format_reservable_flavor,
    is_usable,
    parse_flavor,
    per_instance_of,
    traits_of,
    usable_flavor,
)
from blazar.resources.hosts.guest_cells import cells_of
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.common import (
    Instances,
    checked_affinity,
    checked_amount,
    checked_before_end,
    policy_of,
    stored_affinity,
)
from blazar.resources.instances.reservation_flavor import ServerTemplate, group_obstacle, template_of
from blazar.resources.instances.schemas import FLAVOR

RESOURCE_TYPE = "flavor:instance"

NEEDED = ("flavor_id", "amount", "affinity")
SIZES = ("vcpus", "memory_mb", "disk_gb")
SOURCE = "resource_properties"
"""The parameter that shows a reservation's source flavor, as of the time when it was chosen."""


@dataclass(frozen=True, slots=True)
class FlavorInstanceParameters:
    """The parameters of a reservation of servers of a flavor, named as in the API.

    ``resource_properties`` is the source flavor as JSON text.
    """

    amount: int
    flavor_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    affinity: bool | None
    resource_properties: str
    before_end: str

    @classmethod
    def checked(cls, given: Json, source: str) -> FlavorInstanceParameters:
        """Return the parameters of a complete request, for a flavor as JSON; InvalidInput names the field."""
        flavor = parse_flavor(source)
        action = checked_before_end(given)
        return cls(
            checked_amount(given),
            flavor.id,
            flavor.vcpus,
            flavor.memory_mb,
            flavor.disk_gb,
            checked_affinity(given),
            source,
            action,
        )

    @classmethod
    def of(cls, content: Content) -> FlavorInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "amount"),
            stored_text(content, "flavor_id"),
            **{size: stored_number(content, size) for size in SIZES},
            affinity=stored_affinity(content),
            resource_properties=stored_text(content, SOURCE),
            before_end=stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(asdict(self))

    @property
    def flavor(self) -> Flavor:
        """Return the source flavor, as it was when it was chosen."""
        return parse_flavor(self.resource_properties)

    @property
    def requirement(self) -> Requirement:
        """Return that any host will do: what the flavor needs are amounts and traits."""
        return Anything()

    @property
    def per_instance(self) -> Amounts:
        """Return what one server takes of its host."""
        return per_instance_of(self.flavor)

    @property
    def traits(self) -> TraitRequirements:
        """Return the traits that the flavor requires or forbids."""
        return traits_of(self.flavor)

    @property
    def cards(self) -> tuple[Cards, ...]:
        """Return the cards of one server."""
        return cards_of(self.flavor)

    @property
    def cells(self) -> GuestCells | None:
        """Return the NUMA cells of one server; None if it has none of its own."""
        return cells_of(self.flavor)


@dataclass(frozen=True, slots=True)
class GivenFlavor(Given):
    """The parameters of a request, with the flavor that its ``flavor_id`` names."""

    flavor: Flavor


class FlavorInstance(Instances):
    """The resource type ``flavor:instance``.

    The source flavor is read once, when it is chosen; later changes of it do not change what was promised.
    """

    resource_type = RESOURCE_TYPE
    schema = FLAVOR
    fixed = ("flavor_id", "affinity")
    free = ("amount", BEFORE_END)

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        super().__init__(cloud, settings)
        self._compute = cloud.compute

    def read(self, content: Content) -> FlavorInstanceParameters:
        """Return the parameters that a reservation keeps."""
        return FlavorInstanceParameters.of(content)

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return a request's parameters with the flavor that they name; NotFound if the project cannot use it."""
        if "flavor_id" not in given.values:
            return given
        asked = cloud_id(given.values["flavor_id"], "flavor_id", "a flavor")
        if reservation is not None and asked in (reservation.id, self.read(reservation.parameters).flavor_id):
            # The client sends back what it was shown, or what it asked for: nothing changes.
            return Given({key: value for key, value in given.values.items() if key != "flavor_id"})
        return GivenFlavor(given.values, usable_flavor(self._compute, project_id, asked, "flavor_id"))

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: its flavor is not for that, or a server group is in use."""
        flavor_id = self.read(task.reservation.parameters).flavor_id
        # Of one that was deleted since, nobody can say that the project could not use it.
        if self._compute.flavor(flavor_id) is not None and not is_usable(self._compute, project_id, flavor_id):
            return f"is of flavor {flavor_id}, which project {project_id} cannot use"
        return group_obstacle(task)

    def parameters(self, given: Given) -> Content:
        """Return amount, source flavor with its sizes, affinity and ``before_end``; other keys are left out."""
        missing = [key for key in NEEDED if key not in given.values]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a flavor:instance reservation needs {', '.join(NEEDED)}; "
                f"affinity may be null)"
            )
        if parse_requirement(given.values.get(SOURCE), field=SOURCE) != Anything():
            raise _no_choice_of_hosts()
        values = {BEFORE_END: "default", **with_action(given.values)}
        return FlavorInstanceParameters.checked(
            values, format_reservable_flavor(_flavor_of(given), "flavor_id", self._settings.pci)
        ).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with amount, affinity, flavor and ``before_end`` of the change.

        What follows from the flavor may be sent back only as it was shown.
        """
        before = self.read(current)
        for size in SIZES:
            if size in change.values and change.values[size] != getattr(before, size):
                raise InvalidInput(
                    f"{size} is what the flavor says; give another flavor_id to change it", at=f"/{size}"
                )
        asked = change.values.get(SOURCE, "")
        if asked != before.resource_properties and parse_requirement(asked, field=SOURCE) != Anything():
            raise _no_choice_of_hosts()
        source = (
            format_reservable_flavor(_flavor_of(change), "flavor_id", self._settings.pci)
            if "flavor_id" in change.values
            else before.resource_properties
        )
        return FlavorInstanceParameters.checked(update_values(asdict(before), change), source).content

    def needs_as_part(self, parameters: Content) -> Needs:
        """Return cores and memory of the servers that a stack boots."""
        wanted = self.read(parameters)
        return {Quota.VCPUS: wanted.vcpus * wanted.amount, Quota.MEMORY_MB: wanted.memory_mb * wanted.amount}

    def template(self, parameters: Content) -> ServerTemplate:
        """Return a template of the flavor, including its extra specs."""
        wanted = self.read(parameters)
        return template_of(wanted.flavor, policy=policy_of(wanted.affinity))


def _flavor_of(given: Given) -> Flavor:
    if not isinstance(given, GivenFlavor):
        raise ResolutionNeeded
    return given.flavor


def _no_choice_of_hosts() -> InvalidInput:
    return InvalidInput(
        f"{SOURCE} cannot be given for flavor:instance, which takes any host with the capacity and traits that the "
        f"flavor needs; leave it empty"
    )
