# SPDX-License-Identifier: Apache-2.0
"""What a caller may see of the resources of a kind: which of them, their names and their properties. Pure.

Nothing that a member may not see decides what is in a list.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from blazar.manager.requests.resource_lists import (
    page_of,
    properties_named,
    property_of_order,
    read_requirement,
    text_holds,
)
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.paging import Condition
from blazar.model.calendar.views import Viewer
from blazar.model.resources.pages import PROPERTY, ResourceQuestion, VisiblePage, VisibleResource
from blazar.model.resources.requirements import property_keys
from blazar.model.resources.resource import KindShape, PropertyValue, Resource, ResourceKind, unknown_resource
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.type import ResourceType
from blazar.store.resources.catalog import ResourceCatalog


def find_kind(
    resource_type: str, types: Mapping[str, ResourceType], kinds: Mapping[ResourceKind, Kind]
) -> ResourceKind:
    """Return the kind of resource that serves a type. InvalidInput names the types that there are."""
    known = {kind.usual_type: name for name, kind in kinds.items() if kind.usual_type is not None}
    known |= {name: type_.kind for name, type_ in types.items()}
    if resource_type not in known:
        raise InvalidInput(
            f"resource_type {resource_type[:80]!r} is not enabled; give one of {', '.join(sorted(known))}",
            code="invalid_query",
            at=query_field("resource_type"),
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
        self.noun = shape.noun
        known = catalog.property_names() if viewer.private else catalog.property_names_for(viewer.project_id)
        self.capabilities = catalog.capabilities & known
        # Where all see names, the other attributes are for operators: the URL of a hook may have a secret in it.
        named = viewer.names and (viewer.private or not shape.named)
        self.keys = (known if named else self.capabilities) | frozenset(shape.public)

    def is_private(self, name: str) -> bool:
        """Return whether a property is for operators only."""
        return name in self._catalog.private

    def matching(self, requirement: str | None) -> Sequence[Resource]:
        """Return the resources that the caller may see and that meet a requirement, given as JSON. InvalidInput."""
        wanted = read_requirement(requirement)
        self.check_keys(property_keys(wanted), "requirement")
        found = self._catalog.matching(wanted)
        if self.viewer.private or not self._catalog.restricted:
            return found
        return [resource for resource in found if resource.is_open_to(self.viewer.project_id)]

    def open_to_project(self) -> Sequence[Resource]:
        """Return the resources that are open to the caller's project."""
        if not self._catalog.restricted:
            return self._catalog.resources
        return [resource for resource in self._catalog.resources if resource.is_open_to(self.viewer.project_id)]

    def check_keys(self, names: Collection[str], parameter: str) -> None:
        """Raise InvalidInput if a property is not known, or not known to the caller: the two are not told apart."""
        if unknown := sorted(frozenset(names) - self.keys):
            raise no_such_property(unknown, parameter, self.noun)

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


def no_such_property(names: Sequence[str], parameter: str, noun: str = "resource") -> InvalidInput:
    """Return the error for properties that no such resource has, or that the caller may not know."""
    shown = ", ".join(repr(name[:80]) for name in names[:3])
    return InvalidInput(
        f"{parameter} names {shown}, which no {noun} has as a property; GET /v1/properties lists the properties",
        code="unknown_property",
        at=query_field(parameter),
    )


_NAMES = ("name", "label")
_FOR_ALL = frozenset({*_NAMES, "reservable"})


def list_page(visible: Visible, kind: ResourceKind, question: ResourceQuestion) -> VisiblePage:
    """Return a page of what a member sees. InvalidInput, which names the parameter."""
    if not (ordering := property_of_order(question)):
        _check_open(question.page.sort_key, "sort_key")
    visible.check_keys(ordering, "sort_key")
    if question.maintenance_before is not None:
        _check_open("maintenance", "maintenance_before")
    for condition in question.conditions:
        if not condition.key.startswith(PROPERTY):
            _check_open(condition.key, condition.key)
    visible.check_keys(properties_named(question), "property")
    text = (question.text or "").casefold()
    found = [
        resource
        for resource in visible.matching(question.requirement)
        if resource.is_open_to(visible.viewer.project_id)
        and text in _name(visible, resource).casefold()
        and all(_holds(condition, visible, resource) for condition in question.conditions)
    ]
    key = question.page.sort_key
    shown, following = page_of(
        found, question.page, value_of=lambda resource: _value(visible, resource, key), id_of=visible.id_of
    )
    items = tuple(_show(visible, kind, resource) for resource in shown)
    return VisiblePage(items, following, len(found) if question.page.with_count else None)


def find_one(visible: Visible, kind: ResourceKind, resource_id: str) -> VisibleResource:
    """Return what a member sees of a resource; NotFound if that is nothing."""
    for resource in visible.open_to_project():
        if visible.id_of(resource) == resource_id:
            return _show(visible, kind, resource)
    raise unknown_resource(kind, resource_id)


def _check_open(key: str, parameter: str) -> None:
    if key not in _FOR_ALL:
        raise InvalidInput(
            f"{key} of a resource is for operators; leave {parameter} out",
            code="invalid_query",
            at=query_field(parameter),
        )


def _show(visible: Visible, kind: ResourceKind, resource: Resource) -> VisibleResource:
    return VisibleResource(
        id=visible.id_of(resource),
        kind=kind,
        name=resource.name if visible.has_names else None,
        reservable=resource.reservable,
        capacity=resource.capacity,
        attributes={name: resource.attributes[name] for name in visible.public if name in resource.attributes},
        properties={name: text for name, text in resource.capabilities.items() if name in visible.capabilities},
    )


def _name(visible: Visible, resource: Resource) -> str:
    return resource.name if visible.has_names else resource.label


def _value(visible: Visible, resource: Resource, key: str) -> PropertyValue:
    return _name(visible, resource) if key in _NAMES else resource.properties.get(key.removeprefix(PROPERTY))


def _holds(condition: Condition, visible: Visible, resource: Resource) -> bool:
    return text_holds(condition, _value(visible, resource, condition.key))
