# SPDX-License-Identifier: Apache-2.0
"""Resources of a kind, their allocations and capabilities as JSON, with the keys that Chameleon's clients parse."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.http.shapes import (
    EXAMPLE_TIMESTAMPS,
    FLAG,
    ISO,
    LEASE_ID,
    RESERVATION_ID,
    SPACED,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMPS,
    Json,
    a_list,
    an_object,
)
from blazar.model.base.clock import iso, spaced_or_none, spaced_text
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import Allocation, ResourceAllocations
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import PropertyValues, Resource, ResourceProperty

ALLOCATION = "AllocationInList"

_CONDITION: Json = {
    "disabled": {**FLAG, "description": "present if its operator has disabled it"},
    "failure": {**TEXT, "description": "present while it has failed: the reason"},
    "failed_since": SPACED,
    "authorized_projects": {**TEXT, "description": "ids of projects, separated by commas; not present: all projects"},
}
_WHOSE: Json = {
    "project_id": TEXT_OR_NULL,
    "lease_name": TEXT_OR_NULL,
    "status": {**TEXT_OR_NULL, "description": "of the reservation"},
    "extras": {"type": "object"},
}


def allocation_component() -> Json:
    """Return the schema of an allocation of a list; what operators alone see is optional."""
    dates: Json = {"start_date": ISO, "end_date": ISO}
    example: Json = {
        "id": RESERVATION_ID,
        "lease_id": LEASE_ID,
        "start_date": "2030-04-01T08:00:00.000000",
        "end_date": "2030-04-01T20:00:00.000000",
        "project_id": "5f0c1d2e3b4a59687706f5e4d3c2b1a0",
        "lease_name": "lab",
        "status": "active",
        "extras": {},
    }
    one = an_object({"id": TEXT, "lease_id": TEXT, **dates, **_WHOSE}, optional=tuple(_WHOSE))
    return an_object(
        {"resource_id": TEXT, "reservations": a_list(one)},
        example={"resource_id": "0b1c2d3e-1111-4222-8333-444455556666", "reservations": [example]},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatAnswers:
    """How a kind is rendered.

    ``attributes`` are the schemas of what is shown of its attributes, others are not shown. ``component`` and
    ``property_component`` are the names of the components of a resource, and of a capability in a list.
    """

    resource_type: str
    component: str
    property_component: str
    attributes: Json
    example: Json

    @property
    def components(self) -> Json:
        """Return the components by their names."""
        name = next(iter(key for key in self.example if key not in self.attributes))
        shown = an_object(
            {
                "id": TEXT,
                **self.attributes,
                "reservable": {**FLAG, "description": "accepts new leases: it has not failed and is not disabled"},
                **_CONDITION,
                **TIMESTAMPS,
            },
            optional=tuple(_CONDITION),
            more={**TEXT, "description": "a capability"},
            example={**self.example, "reservable": True, **EXAMPLE_TIMESTAMPS},
        )
        capability = an_object(
            {"property": TEXT, "private": FLAG, "values": a_list(TEXT), "is_unique": FLAG},
            optional=("private", "values", "is_unique"),
            example={"property": name, "private": False, "values": [self.example[name]], "is_unique": False},
        )
        return {self.component: shown, self.property_component: capability}

    @property
    def own_keys(self) -> frozenset[str]:
        """Return the keys of a resource; capabilities of these names would hide them."""
        return frozenset({"id", *self.attributes, "reservable", *_CONDITION, *TIMESTAMPS})

    def resource(self, value: Resource) -> Json:
        """Render a resource, with its capabilities as keys beside its attributes."""
        shown: Json = {
            **value.capabilities,
            "id": value.external_id,
            **{key: text for key, text in value.attributes.items() if key in self.attributes},
            "reservable": value.reservable,
            "created_at": spaced_text(value.created_at),
            "updated_at": spaced_or_none(value.updated_at),
        }
        if value.disabled:
            shown["disabled"] = True
        if value.failure is not None and value.failed_since is not None:
            shown |= {"failure": value.failure, "failed_since": spaced_text(value.failed_since)}
        if value.authorized_projects is not None:
            shown["authorized_projects"] = ",".join(sorted(value.authorized_projects))
        return shown

    def allocation(self, value: ResourceAllocations, leases: Mapping[str, Lease] | None = None) -> Json:
        """Render the allocations of a resource; with ``leases`` also whose they are, as far as these are known."""
        rows: list[Json] = []
        for allocation in value.allocations:
            row: Json = {
                "id": allocation.reservation_id,
                "lease_id": allocation.lease_id,
                "start_date": iso(allocation.window.start),
                "end_date": iso(allocation.window.end),
            }
            rows.append(row if leases is None else {**row, **_whose(allocation, leases.get(allocation.lease_id))})
        return {"resource_id": value.resource.external_id, "reservations": rows}

    def property_values(self, value: PropertyValues, *, detail: bool) -> Json:
        """Render a capability as an item of a list."""
        if not detail:
            return {"property": value.property.name}
        return {
            "property": value.property.name,
            "private": value.property.private,
            "values": list(value.values),
            # Clients show it; no capability of ours is limited to one value.
            "is_unique": False,
        }

    def property(self, value: ResourceProperty) -> Json:
        """Render a capability after a change."""
        return {
            "id": value.id,
            "resource_type": self.resource_type,
            "property_name": value.name,
            "private": value.private,
            "created_at": iso(value.created_at),
            "updated_at": iso(value.updated_at) if value.updated_at else None,
        }


def _whose(allocation: Allocation, lease: Lease | None) -> Json:
    if lease is None:
        # Deleted.
        return {**dict.fromkeys(_WHOSE), "extras": {}}
    status = next((str(r.status) for r in lease.reservations if r.id == allocation.reservation_id), None)
    return {"project_id": lease.project_id, "lease_name": lease.name, "status": status, "extras": {}}
