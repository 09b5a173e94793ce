# SPDX-License-Identifier: Apache-2.0
"""Kinds and resources as JSON: how they are rendered, the schemas of requests, and the components of the document."""

from __future__ import annotations

from collections.abc import Sequence

from blazar.api.http.answers import link
from blazar.api.http.shapes import FLAG, LINKS, NUMBER, TEXT, TEXT_OR_NULL, ZULU, ZULU_OR_NULL, Json, a_list, an_object
from blazar.api.resources import requests
from blazar.model.base.clock import zulu
from blazar.model.resources.pages import Candidate, VisibleResource
from blazar.model.resources.resource import KindDescription, PropertyValues, Resource, ResourceProperty

REGISTRATION: Json = {
    "type": "object",
    "maxProperties": 100,
    "description": "an object with the fields that the kind's registration in GET /v1/resources describes",
    "properties": requests.fields(requests.CAPABILITY),
    "additionalProperties": True,
}
PRIVACY: Json = {
    "type": "object",
    "required": ["private"],
    "additionalProperties": False,
    "description": "an object with private",
    "properties": {"private": {"type": "boolean", "description": "true or false"}},
}

HANDED_OVER: Json = {
    **a_list(an_object({"id": TEXT, "name": TEXT, "answer": {"type": "object"}}, optional=("answer",))),
    "description": "once they are handed over, with what their hooks answered",
}
"""What a reservation shows of the resources that it has, of generic ones and devices."""

_SCHEMA: Json = {"type": "object", "description": "a JSON schema"}
_KIND: Json = {
    "name": {**TEXT, "description": "as in the path"},
    "noun": {**TEXT, "description": "the word for one resource"},
    "nouns": {**TEXT, "description": "the word for several"},
    "resource_types": {**a_list(TEXT), "description": "what reserves it: resource_type of a reservation"},
    "registration": {**_SCHEMA, "description": "the JSON schema of a body that registers a resource"},
    "attributes": {
        "type": "object",
        "additionalProperties": _SCHEMA,
        "description": "what the cloud tells of a resource: the JSON schema of each attribute",
    },
    "parameters": {
        "type": "object",
        "additionalProperties": _SCHEMA,
        "description": "the JSON schema of what a request for a reservation may have, by resource type, where known",
    },
    "has_candidates": {**FLAG, "description": "the cloud can tell what can be registered"},
    "allowed": {**a_list(TEXT), "description": "policy rules that allow the caller something with these resources"},
    "links": LINKS,
}
_OPTIONAL = ("label", "traits", "disabled", "failure", "authorized_projects", "created_at", "updated_at")
_RESOURCE: Json = {
    "id": {**TEXT, "description": "the id in the cloud; for members a label, if names of the kind are for operators"},
    "kind": TEXT,
    "label": {**TEXT, "description": "what members see of it: random, and new at each registration"},
    "name": {**TEXT_OR_NULL, "description": "null for members, if names of the kind are for operators"},
    "attributes": {"type": "object", "description": "what the cloud tells of it; members see public ones"},
    "capacity": {"type": "object", "additionalProperties": NUMBER},
    "traits": a_list(TEXT),
    **requests.SHOWN,
    "links": LINKS,
}
KEYS = tuple(key for key in _RESOURCE if key != "id")
_EXAMPLE: Json = {
    "id": "12",
    "kind": "host",
    "label": "h-2mm8qe",
    "name": "cn12.example",
    "attributes": {"availability_zone": "az-1", "vcpus": 64},
    "capacity": {"DISK_GB": 890, "MEMORY_MB": 515000, "VCPU": 64},
    "traits": ["HW_CPU_X86_AVX512F"],
    "properties": {"gpu": "A100"},
    "reservable": True,
    "disabled": None,
    "failure": None,
    "authorized_projects": None,
    "created_at": "2026-03-01T09:00:00Z",
    "updated_at": None,
    "links": [],
}
_PROPERTY: Json = {
    "name": TEXT,
    "private": {**FLAG, "description": "only operators see it"},
    "values": {**a_list(TEXT), "description": "what resources have, each once"},
}
COMPONENTS: Json = {
    "Kind": an_object(
        _KIND,
        example={
            "name": "host",
            "noun": "host",
            "nouns": "hosts",
            "resource_types": ["flavor:instance", "physical:host", "virtual:instance", "virtual:server"],
            "registration": {"type": "object", "properties": {"name": {"type": "string"}}},
            "attributes": {"vcpus": {"type": "integer"}},
            "parameters": {"physical:host": {"type": "object", "properties": {"min": {"type": "integer"}}}},
            "has_candidates": True,
            "allowed": ["blazar:resources:get"],
            "links": [],
        },
    ),
    "Resource": an_object(_RESOURCE, optional=_OPTIONAL, example=_EXAMPLE),
    "ResourceInList": an_object(_RESOURCE, optional=KEYS, example={"id": "12", "label": "h-2mm8qe"}),
    "Candidate": an_object(
        {
            "id": TEXT,
            "name": TEXT,
            "state": {"enum": ["up", "down", "disabled"]},
            "servers": {**NUMBER, "description": "how many servers run on it"},
            "resource_id": {**TEXT_OR_NULL, "description": "its id as a resource; null: it is not registered"},
            "region": {**TEXT, "description": "where it is, if the service has several regions"},
            "registration": {
                "type": "object",
                "description": "fields that register it, as far as the cloud tells them",
            },
        },
        optional=("region",),
        example={
            "id": "17",
            "name": "cn17.example",
            "state": "up",
            "servers": 0,
            "resource_id": None,
            "registration": {"name": "cn17.example"},
        },
    ),
    "PropertyOfResources": an_object(_PROPERTY, example={"name": "gpu", "private": False, "values": ["A100", "H100"]}),
    "ChangedProperty": an_object(
        {"name": TEXT, "private": FLAG, "created_at": ZULU, "updated_at": ZULU_OR_NULL},
        example={
            "name": "gpu",
            "private": True,
            "created_at": "2026-03-01T09:00:00Z",
            "updated_at": "2026-11-22T08:00:00Z",
        },
    ),
}


def registration_schema(described: KindDescription) -> Json:
    """Return the schema of a body that registers a resource: fields of the kind, and of every kind."""
    given: Json = dict(described.shape.registration)
    return {**given, "properties": {**given.get("properties", {}), **REGISTRATION["properties"]}}


def kind(value: KindDescription, allowed: Sequence[str]) -> Json:
    """Render a kind, with the rules that allow the caller something with its resources."""
    return {
        "name": value.kind,
        "noun": value.shape.noun,
        "nouns": value.shape.nouns,
        "resource_types": list(value.resource_types),
        "registration": registration_schema(value),
        "attributes": dict(value.shape.attributes),
        "parameters": dict(value.parameters),
        "has_candidates": value.has_candidates,
        "allowed": list(allowed),
        "links": _links(f"/v1/resources/{value.kind}"),
    }


def resource(value: Resource | VisibleResource) -> Json:
    """Render a resource, as operators or as members see it; a function of its row."""
    if isinstance(value, VisibleResource):
        return {
            "id": value.id,
            "kind": value.kind,
            "name": value.name,
            "attributes": dict(value.attributes),
            "capacity": dict(value.capacity.items),
            "properties": dict(value.properties),
            "reservable": value.reservable,
            "links": _links(f"/v1/resources/{value.kind}/{value.id}"),
        }
    return {
        "id": value.external_id,
        "kind": value.kind,
        "label": value.label,
        "name": value.name,
        "attributes": dict(value.attributes),
        "capacity": dict(value.capacity.items),
        "traits": sorted(value.traits),
        **requests.render_state(value),
        "links": _links(path_of(value)),
    }


def path_of(value: Resource) -> str:
    """Return the path of a resource."""
    return f"/v1/resources/{value.kind}/{value.external_id}"


def candidate(value: Candidate) -> Json:
    """Render what the cloud has to register, with the fields that register it."""
    return {
        "id": value.id,
        "name": value.name,
        "state": value.state,
        "servers": value.servers,
        "resource_id": value.resource_id,
        **({"region": value.region} if value.region else {}),
        "registration": dict(value.registration),
    }


def property_values(value: PropertyValues) -> Json:
    """Render a property as an item of a list."""
    return {"name": value.property.name, "private": value.property.private, "values": list(value.values)}


def changed_property(value: ResourceProperty) -> Json:
    """Render a property after a change."""
    return {
        "name": value.name,
        "private": value.private,
        "created_at": zulu(value.created_at),
        "updated_at": None if value.updated_at is None else zulu(value.updated_at),
    }


def _links(path: str) -> list[Json]:
    return [{"rel": "self", "href": link(path)}]
