# SPDX-License-Identifier: Apache-2.0
"""What a caller may see of the resources of a kind: which of them, their names and their properties. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from blazar.model.calendar import HOST_TYPE, Viewer
from blazar.model.errors import InvalidInput
from blazar.model.requirements import keys, parse_requirement
from blazar.model.resource import DEVICE, FLOATING_IP, HOST, NETWORK, PropertyValue, Resource, ResourceKind
from blazar.model.resource_kinds import KindShape
from blazar.resources.complete import CompleteType
from blazar.resources.kinds import CompleteKind
from blazar.store.catalog import ResourceCatalog

KINDS_OF_TYPES: Mapping[str, ResourceKind] = {
    HOST_TYPE: HOST,
    "virtual:floatingip": FLOATING_IP,
    "network": NETWORK,
    "device": DEVICE,
}
"""Types that may be asked for even if no reservations of them are enabled."""


def kind_of(
    resource_type: str, types: Mapping[str, CompleteType], kinds: Mapping[ResourceKind, CompleteKind]
) -> ResourceKind:
    """Return the kind of resource that serves a type. InvalidInput names the types that there are."""
    known = {name: kind for name, kind in KINDS_OF_TYPES.items() if kind in kinds}
    known |= {name: each.kind for name, each in types.items()}
    if resource_type not in known:
        raise InvalidInput(
            f"resource_type {resource_type[:80]!r} is not enabled; give one of {', '.join(sorted(known))}",
            code="invalid_query",
            parameter="resource_type",
        )
    return known[resource_type]


class Visible:
    """The resources of a kind as a caller sees them; the shape of the kind says what is public."""

    def __init__(self, catalog: ResourceCatalog, shape: KindShape, viewer: Viewer) -> None:
        self.viewer = viewer
        self.has_names = viewer.names or shape.named
        self._catalog = catalog
        self._shape = shape
        self.public = shape.public
        known = catalog.keys() if viewer.private else catalog.keys_of(viewer.project_id)
        self.capabilities = catalog.capabilities & known
        # Where all see names, the other attributes are for operators: the URL of a hook may have a secret in it.
        named = viewer.names and (viewer.private or not shape.named)
        self.keys = (known if named else self.capabilities) | frozenset(shape.public)

    def is_private(self, name: str) -> bool:
        """Return whether a property is for operators only."""
        return name in self._catalog.private

    def matching(self, requirement: str | None) -> Sequence[Resource]:
        """Return the resources that the caller may see and that meet a requirement, given as JSON. InvalidInput."""
        try:
            wanted = parse_requirement(requirement, field="requirement")
        except InvalidInput as error:
            raise InvalidInput(error.message, code=error.code, parameter="requirement", data=error.data) from None
        self.check_keys(keys(wanted), "requirement")
        found = self._catalog.matching(wanted)
        if self.viewer.private or not self._catalog.restricted:
            return found
        return [each for each in found if each.is_open_to(self.viewer.project_id)]

    def open_to_project(self) -> Sequence[Resource]:
        """Return the resources that are open to the caller's project."""
        if not self._catalog.restricted:
            return self._catalog.resources
        return [each for each in self._catalog.resources if each.is_open_to(self.viewer.project_id)]

    def check_keys(self, names: Collection[str], parameter: str) -> None:
        """Raise InvalidInput if a property is not known, or not known to the caller: the two are not told apart."""
        if unknown := sorted(frozenset(names) - self.keys):
            raise no_such_property(unknown, parameter)

    def id_of(self, resource: Resource) -> str:
        """Return the id that the caller sees: that of the cloud, or the label."""
        return resource.external_id if self.has_names else resource.label

    def sort_value(self, resource: Resource, key: str) -> PropertyValue:
        """Return the value by which a resource is sorted."""
        if key == "name":
            return resource.name if self.has_names else resource.label
        return resource.properties.get(key)

    def properties_of(self, resource: Resource) -> Mapping[str, PropertyValue]:
        """Return the properties of a resource that its row shows."""
        found: dict[str, PropertyValue] = {
            name: value for name, value in resource.capabilities.items() if name in self.capabilities
        }
        found.update((name, resource.attributes[name]) for name in self._shape.shown if name in resource.attributes)
        return found


def no_such_property(names: Sequence[str], parameter: str) -> InvalidInput:
    """Return the error for properties that no resource has, or that the caller may not know."""
    shown = ", ".join(repr(name[:80]) for name in names[:3])
    return InvalidInput(
        f"{parameter} names {shown}, which no resource of this type has as a property; GET /v1/properties lists the "
        f"properties",
        code="unknown_property",
        parameter=parameter,
    )
