# SPDX-License-Identifier: Apache-2.0
"""Rewrites checked templates: so that Heat tells what they take, and so that a stack takes what is reserved. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blazar.clouds.ports.stacks import PlannedResource
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, replace
from blazar.resources.contract.parameters import quote
from blazar.resources.stacks.documents import iterate_values
from blazar.resources.stacks.source import (
    AT_RUN_TIME,
    FLOATING_IP,
    GROUPS,
    KEY_PAIR,
    SERVER,
    TEMPLATE,
    VOLUME,
    StackSource,
)

_ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
_TYPE_ASKED_FOR = "blazar:volume_type"

Rewrite = Callable[[str, Json], Json]
"""Returns the properties of a resource of a type."""


def adapt_for_preview(source: StackSource) -> StackSource:
    """Return a source at its largest whose volumes have their types as metadata.

    The project has no access yet to the type of a reserved pool, so that Heat would refuse it.
    """

    def noted(kind: str, properties: Json) -> Json:
        if kind != VOLUME or "volume_type" not in properties:
            return properties
        metadata = properties.get("metadata") or {}
        if not isinstance(metadata, Mapping) or len(metadata.keys() & {"get_param", "get_file", "map_merge"}):
            raise InvalidInput(
                "the metadata of a volume of a stack must be an object of keys and values, without a function",
                at=f"/{TEMPLATE}",
            )
        rest = {key: value for key, value in properties.items() if key not in ("volume_type", "metadata")}
        return {**rest, "metadata": {**metadata, _TYPE_ASKED_FOR: properties["volume_type"]}}

    return _rewrite_source(source.at_largest, noted)


def restore_volume_type(planned: PlannedResource) -> PlannedResource:
    """Return a resource of such a preview as the template has it."""
    metadata = planned.properties.get("metadata")
    if planned.type != VOLUME or not isinstance(metadata, Mapping):
        return planned
    return replace(planned, properties={**planned.properties, "volume_type": metadata.get(_TYPE_ASKED_FOR)})


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a stack gets: flavors by those in the template, key names likewise, ids of addresses by resource."""

    flavors: Mapping[str, str]
    keys: Mapping[str, str]
    addresses: Mapping[str, str]


def insert_reserved(source: StackSource, reserved: Reserved) -> StackSource:
    """Return a source whose servers, key pairs and addresses are those of a reservation."""
    # A name that came through a reference to its resource is the new one already.
    keys = {**reserved.keys, **{new: new for new in reserved.keys.values()}}

    def put(kind: str, properties: Json) -> Json:
        if kind == SERVER:
            changed = {"flavor": _substitute(properties.get("flavor"), reserved.flavors)}
            if keys and properties.get("key_name") is not None:
                changed["key_name"] = _substitute(properties["key_name"], keys)
            return {**properties, **changed}
        if kind == KEY_PAIR:
            return {**properties, "name": _substitute(properties.get("name"), keys)}
        return properties

    found = _rewrite_source(source, put)
    resources = dict(found.template["resources"])  # type: ignore[call-overload]
    for name, address_id in reserved.addresses.items():
        attached = f"{name}_attached"
        while attached in found.template["resources"]:  # type: ignore[operator]
            attached += "_"
        resources |= _insert_address(name, resources[name], address_id, attached)
    return replace(found, template={**found.template, "resources": resources})


def check_addresses(source: StackSource, planned: tuple[PlannedResource, ...]) -> None:
    """Raise InvalidInput for an address that is not a resource of the template itself."""
    resources = source.template["resources"]
    assert isinstance(resources, Mapping)
    for resource in planned:
        definition = resources.get(resource.name)
        own = isinstance(definition, Mapping) and definition.get("type") == FLOATING_IP
        if resource.type == FLOATING_IP and (resource.parent or not own):
            within = f" of {quote(resource.parent)}" if resource.parent else ""
            raise InvalidInput(
                f"resource {quote(resource.name)}{within} of type {FLOATING_IP} is in a group or in another template; "
                f"make it a resource of {TEMPLATE} itself, where it gets a reserved address",
                at=f"/{TEMPLATE}",
            )


def _insert_address(name: str, definition: Json, address_id: str, attached_name: str) -> Json:
    """Return the resources that make a reserved address of a resource, and attach it as that would."""
    properties = definition.get("properties")
    assert isinstance(properties, Mapping)
    common = {key: definition[key] for key in ("condition",) if key in definition}
    kept = {key: value for key, value in properties.items() if key in ("floating_network", "floating_network_id")}
    made: dict[str, Json] = {name: {"type": FLOATING_IP, "external_id": address_id, "properties": kept, **common}}
    if properties.get("port_id") is not None:
        after = {"depends_on": definition["depends_on"]} if "depends_on" in definition else {}
        fixed = {"fixed_ip_address": properties["fixed_ip_address"]} if "fixed_ip_address" in properties else {}
        attached = {"floatingip_id": address_id, "port_id": properties["port_id"], **fixed}
        made[attached_name] = {"type": _ASSOCIATION, "properties": attached, **common, **after}
    return made


def _substitute(value: Any, names: Mapping[str, str]) -> Any:
    """Return a text with another in its place; a function of a template so that Heat does that."""
    if isinstance(value, str | int):
        return names.get(str(value), value)
    if (
        value is None
        or not names
        or any(isinstance(e, dict) and e.keys() & AT_RUN_TIME for _, e in iterate_values(value))
    ):
        # A reference to a key pair of the stack leads to its new name by itself, and Heat replaces in no such thing.
        return value
    # Heat replaces in texts only, and a parameter may be a number.
    text = {"str_replace": {"template": "$", "params": {"$": value}}}
    # Of texts that begin in the same way Heat replaces the longest.
    return {"str_replace": {"template": text, "params": dict(names)}}


def _rewrite_source(source: StackSource, rewrite: Rewrite) -> StackSource:
    templates = {name: _rewrite_template(template, rewrite) for name, template in source.templates.items()}
    return replace(source, template=_rewrite_template(source.template, rewrite), templates=templates)


def _rewrite_template(template: Json, rewrite: Rewrite) -> Json:
    resources = template["resources"]
    assert isinstance(resources, Mapping)
    return {
        **template,
        "resources": {name: _rewrite_resource(resource, rewrite) for name, resource in resources.items()},
    }


def _rewrite_resource(definition: Json, rewrite: Rewrite) -> Json:
    kind, properties = str(definition["type"]), definition.get("properties")
    if not isinstance(properties, Mapping):
        return definition
    if kind in GROUPS:
        key = GROUPS[kind]
        inner = properties[key]
        assert isinstance(inner, Mapping)
        return {**definition, "properties": {**properties, key: _rewrite_resource(inner, rewrite)}}
    return {**definition, "properties": rewrite(kind, properties)}
