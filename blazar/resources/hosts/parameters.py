# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of hosts, and the schema of a request for it."""

from __future__ import annotations

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.calendar.topology import ANYWHERE, Topology
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement
from blazar.resources.contract.actions import BEFORE_END, checked_action
from blazar.resources.contract.parameters import (
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)
from blazar.resources.contract.schemas import COUNT, REQUIREMENT, SAVES_WORK, a_request
from blazar.resources.contract.values import Action
from blazar.resources.hosts.lending import LEND, read_lending
from blazar.resources.hosts.lending import SCHEMA as LENDING
from blazar.resources.hosts.topology import FIELDS, SCHEMAS, checked_topology, read_topology, render_topology

SCHEMA = a_request(
    {
        "min": {**COUNT, "title": "Hosts at least"},
        "max": {**COUNT, "title": "Hosts at most"},
        "hypervisor_properties": {**REQUIREMENT, "title": "Properties of the hypervisor", "default": []},
        "resource_properties": {**REQUIREMENT, "default": []},
        "before_end": SAVES_WORK,
        **SCHEMAS,
        LEND: LENDING,
    },
    required=("min",),
    before_start=FIELDS,
    example={"min": 2, "max": 4, "resource_properties": ["==", "$gpu", "A100"], "before_end": "snapshot"},
)


_PLAIN = ("min", "max", "hypervisor_properties", "resource_properties", "before_end")
REQUIREMENTS = ("hypervisor_properties", "resource_properties")


@dataclass(frozen=True, slots=True)
class HostParameters:
    """The parameters of a host reservation, named as in the API; the properties are requirements as JSON text."""

    min: int
    max: int
    hypervisor_properties: str | None
    resource_properties: str | None
    before_end: str
    topology: Topology = ANYWHERE
    kept_from_lending: int | None = None
    """How many idle hosts are kept while others are lent to preemptible servers; None if none are lent."""

    @classmethod
    def checked(cls, given: Json) -> HostParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        least = whole_number(given["min"], "min", least=1, what="a whole number of hosts")
        most = whole_number(given["max"], "max", least=1, what="a whole number of hosts")
        if most < least:
            sentence = f"max ({most}) is less than min ({least}); give a max that is at least min"
            raise InvalidInput(sentence, at="/max")
        action = checked_action(given)
        hypervisor, resource = (requirement_text(given[field], field) for field in REQUIREMENTS)
        keep = read_lending(given)
        if keep is not None and action == Action.MIGRATION:
            raise InvalidInput(
                f"{LEND} does not go with {BEFORE_END} 'migration', which would move the servers of others, too; give "
                f"another {BEFORE_END}, or lend nothing",
                at=f"/{LEND}",
            )
        return cls(least, most, hypervisor, resource, action, checked_topology(given, least, most), keep)

    @classmethod
    def of(cls, content: Content) -> HostParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "min"),
            stored_number(content, "max"),
            stored_maybe_text(content, "hypervisor_properties"),
            stored_maybe_text(content, "resource_properties"),
            stored_text(content, BEFORE_END, "default"),
            read_topology(content.values),
            read_lending(content.values),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        kept = {field: getattr(self, field) for field in _PLAIN}
        lent = {} if self.kept_from_lending is None else {LEND: self.kept_from_lending}
        return Content({**kept, **(render_topology(self.topology) if self.topology else {}), **lent})

    @property
    def requirement(self) -> Requirement:
        """Return what a host must have."""
        return requirement_of(
            hypervisor_properties=self.hypervisor_properties, resource_properties=self.resource_properties
        )
