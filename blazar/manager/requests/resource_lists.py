# SPDX-License-Identifier: Apache-2.0
"""Lists of resources as operators see them: filters and pages over the catalog. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from operator import eq, ge, gt, le, lt, ne

from blazar.manager.requests.pages import page_of
from blazar.model.clock import zulu
from blazar.model.errors import InvalidInput
from blazar.model.paging import Condition, Operator
from blazar.model.requirements import keys, parse_requirement
from blazar.model.resource import PropertyValue, Resource
from blazar.model.resource_pages import PROPERTY, ResourcePage, ResourceQuestion
from blazar.store.catalog import ResourceCatalog

_COMPARES: Mapping[Operator, Callable[[str, str], bool]] = {
    Operator.EQ: eq,
    Operator.NEQ: ne,
    Operator.GT: gt,
    Operator.GTE: ge,
    Operator.LT: lt,
    Operator.LTE: le,
}


def page(
    catalog: ResourceCatalog, question: ResourceQuestion, *, within: Collection[int] | None = None
) -> ResourcePage:
    """Return the page of resources that is asked for, of those with these ids, if any are given. InvalidInput."""
    try:
        wanted = parse_requirement(question.requirement, field="requirement")
    except InvalidInput as error:
        raise InvalidInput(error.message, code=error.code, parameter="requirement", data=error.data) from None
    named = {"requirement": keys(wanted), "property": properties_named(question)}
    for parameter, names in named.items() if catalog.resources else ():
        if unknown := sorted(names - catalog.keys()):
            raise InvalidInput(
                f"{parameter} names {unknown[0][:80]!r}, which no resource has as a property",
                code="unknown_property",
                parameter=parameter,
            )
    text = (question.text or "").casefold()
    found = [
        each
        for each in catalog.matching(wanted)
        if (within is None or each.id in within)
        and text in each.name.casefold()
        and all(_holds(condition, each) for condition in question.conditions)
    ]
    key = question.page.sort_key
    shown, following = page_of(
        found, question.page, value_of=lambda each: _value(each, key), id_of=lambda each: each.external_id
    )
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
