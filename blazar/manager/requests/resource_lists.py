# SPDX-License-Identifier: Apache-2.0
"""Lists of resources as operators see them: filters and pages over the catalog. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import Any, TypeVar

from blazar.model.base.clock import zulu
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.json_text import read_json
from blazar.model.base.paging import Condition, Operator, Page, Position, unknown_marker
from blazar.model.calendar.views import order_of
from blazar.model.resources.pages import PROPERTY, ResourcePage, ResourceQuestion
from blazar.model.resources.requirements import Requirement, parse_requirement, property_keys
from blazar.model.resources.resource import PropertyValue, Resource
from blazar.store.resources.catalog import ResourceCatalog

_Key = tuple[tuple[bool, bool, float, str], str]
Item = TypeVar("Item")


def page_of(
    found: Sequence[Item],
    page: Page,
    *,
    value_of: Callable[[Item], PropertyValue],
    id_of: Callable[[Item], str],
) -> tuple[list[Item], Position | None]:
    """Return the items of a page, and the position of the last one if there are more.

    They are sorted by a value, numbers first and what has none last, and by an id. InvalidInput for an unknown marker.
    """
    keyed: list[tuple[_Key, Item]] = [((order_of(value_of(item)), id_of(item)), item) for item in found]
    keyed.sort(key=itemgetter(0), reverse=page.descending)
    if page.after is not None:
        last = _last(page.after, {key[1]: key for key, _ in keyed})
        keyed = [(key, item) for key, item in keyed if (key < last if page.descending else key > last)]
    shown = [item for _, item in keyed[: page.limit]]
    if len(keyed) <= page.limit or not shown:
        return shown, None
    return shown, Position(json.dumps(value_of(shown[-1])), id_of(shown[-1]))


def _last(after: Position | str, keys: Mapping[str, _Key]) -> _Key:
    """Return the key of the item after which a page begins; InvalidInput if none is meant."""
    if isinstance(after, str):
        if after not in keys:
            raise unknown_marker()
        return keys[after]
    try:
        value: Any = read_json(after.value or "null")
        if not isinstance(value, str | int | float | bool | None):
            raise unknown_marker()
        return order_of(value), after.id
    except (OverflowError, ValueError):
        # Also numbers of hundreds of digits, which no property has.
        raise unknown_marker() from None


_COMPARES: Mapping[Operator, Callable[[str, str], bool]] = {
    Operator.EQ: eq,
    Operator.NEQ: ne,
    Operator.GT: gt,
    Operator.GTE: ge,
    Operator.LT: lt,
    Operator.LTE: le,
}


def read_requirement(text: str | None) -> Requirement:
    """Return the requirement of a query. InvalidInput."""
    try:
        return parse_requirement(text, field="requirement")
    except InvalidInput as error:
        error.at = query_field("requirement")
        raise


def list_page(
    catalog: ResourceCatalog, question: ResourceQuestion, *, within: Collection[int] | None = None
) -> ResourcePage:
    """Return the page of resources that is asked for, of those with these ids, if any are given. InvalidInput."""
    wanted = read_requirement(question.requirement)
    named = {
        "requirement": property_keys(wanted),
        "property": properties_named(question),
        "sort_key": property_of_order(question),
    }
    for parameter, names in named.items() if catalog.resources else ():
        if unknown := sorted(names - catalog.property_names()):
            raise InvalidInput(
                f"{parameter} names {unknown[0][:80]!r}, which no resource has as a property",
                code="unknown_property",
                at=query_field(parameter),
            )
    text = (question.text or "").casefold()
    found = [
        resource
        for resource in catalog.matching(wanted)
        if (within is None or resource.id in within)
        and text in resource.name.casefold()
        and all(_holds(condition, resource) for condition in question.conditions)
    ]
    key = question.page.sort_key
    shown, following = page_of(found, question.page, value_of=lambda r: _value(r, key), id_of=lambda r: r.external_id)
    return ResourcePage(tuple(shown), following, len(found) if question.page.with_count else None)


def values_by_key(conditions: Iterable[Condition]) -> Mapping[str, frozenset[str]]:
    """Return the values that each key may have if all conditions hold, of which none compares."""
    found: dict[str, frozenset[str]] = {}
    for condition in conditions:
        values = frozenset(condition.values)
        found[condition.key] = found.get(condition.key, values) & values
    return found


def properties_named(question: ResourceQuestion) -> frozenset[str]:
    """Return the properties that conditions name as such."""
    keys_ = (condition.key for condition in question.conditions)
    return frozenset(key.removeprefix(PROPERTY) for key in keys_ if key.startswith(PROPERTY))


def property_of_order(question: ResourceQuestion) -> frozenset[str]:
    """Return the property that gives the order, if one does."""
    key = question.page.sort_key
    return frozenset({key.removeprefix(PROPERTY)} if key.startswith(PROPERTY) else ())


def conditions_of(resource: Resource) -> frozenset[str]:
    """Return the conditions of a resource: ``ok``, or some of ``disabled``, ``disabled_without_end``, ``failed``."""
    found = {
        "disabled": resource.disabled,
        "disabled_without_end": resource.disabled and resource.disabled_until is None,
        "failed": resource.failed_since is not None,
        "ok": resource.reservable,
    }
    return frozenset(name for name, holds in found.items() if holds)


def _value(resource: Resource, key: str) -> PropertyValue:
    """Return the value by which a resource is filtered or sorted."""
    match key:
        case "name" | "label":
            return resource.name if key == "name" else resource.label
        case "created_at" | "updated_at":
            instant: datetime | None = resource.created_at if key == "created_at" else resource.updated_at
            return None if instant is None else zulu(instant)
    return resource.properties.get(key.removeprefix(PROPERTY))


def _holds(condition: Condition, resource: Resource) -> bool:
    if condition.key == "condition":
        return not conditions_of(resource).isdisjoint(condition.values)
    if condition.key == "project_id":
        return not (resource.authorized_projects or frozenset()).isdisjoint(condition.values)
    return text_holds(condition, _value(resource, condition.key))


def text_holds(condition: Condition, value: PropertyValue) -> bool:
    """Return whether a condition holds for a value; what has none is only ever unequal."""
    if value is None:
        return condition.operator is Operator.NEQ
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if condition.operator is Operator.IN:
        return text in condition.values
    return _COMPARES[condition.operator](text, condition.values[0])
