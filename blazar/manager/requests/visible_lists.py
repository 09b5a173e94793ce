# SPDX-License-Identifier: Apache-2.0
"""Lists of resources as members see them. Nothing that they may not see decides what is in a list. Pure."""

from __future__ import annotations

from blazar.manager.requests.pages import page_of
from blazar.manager.requests.resource_lists import properties_named, text_holds
from blazar.manager.requests.visible import Visible
from blazar.model.errors import InvalidInput
from blazar.model.paging import Condition
from blazar.model.resource import PropertyValue, Resource, ResourceKind, unknown
from blazar.model.resource_pages import PROPERTY, ResourceQuestion, VisiblePage, VisibleResource

_NAMES = ("name", "label")
_FOR_ALL = frozenset({*_NAMES, "reservable"})


def page(visible: Visible, kind: ResourceKind, question: ResourceQuestion) -> VisiblePage:
    """Return a page of what a member sees. InvalidInput, which names the parameter."""
    _check_open(question.page.sort_key, "sort_key")
    if question.maintenance_before is not None:
        _check_open("maintenance", "maintenance_before")
    for condition in question.conditions:
        if not condition.key.startswith(PROPERTY):
            _check_open(condition.key, condition.key)
    visible.check_keys(properties_named(question), "property")
    text = (question.text or "").casefold()
    found = [
        each
        for each in visible.matching(question.requirement)
        if each.is_open_to(visible.viewer.project_id)
        and text in _name(visible, each).casefold()
        and all(_holds(condition, visible, each) for condition in question.conditions)
    ]
    key = question.page.sort_key
    shown, following = page_of(
        found, question.page, value_of=lambda each: _value(visible, each, key), id_of=visible.id_of
    )
    items = tuple(_seen(visible, kind, each) for each in shown)
    return VisiblePage(items, following, len(found) if question.page.with_count else None)


def one(visible: Visible, kind: ResourceKind, resource_id: str) -> VisibleResource:
    """Return what a member sees of a resource; NotFound if that is nothing."""
    for each in visible.open_to_project():
        if visible.id_of(each) == resource_id:
            return _seen(visible, kind, each)
    raise unknown(kind, resource_id)


def _check_open(key: str, parameter: str) -> None:
    if key not in _FOR_ALL:
        raise InvalidInput(
            f"{key} of a resource is for operators; leave {parameter} out", code="invalid_query", parameter=parameter
        )


def _seen(visible: Visible, kind: ResourceKind, resource: Resource) -> VisibleResource:
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
