# SPDX-License-Identifier: Apache-2.0
"""The handlers of ``/v1/resources``: those of every kind, and what members see in the place of operators."""

from __future__ import annotations

import json
from collections.abc import Mapping

from blazar.api.answers import Answer, self_link, weak_tag
from blazar.api.context import Call, identifier
from blazar.api.kinds import changes, lists
from blazar.api.kinds.handlers import Form, Handlers, resource_id
from blazar.api.resources import components
from blazar.api.resources.rules import PRIVATE
from blazar.api.shapes import Json
from blazar.api.since import check_known_fields
from blazar.api.validation import check
from blazar.model.calendar import Viewer
from blazar.model.demand import ResourceAllocations
from blazar.model.errors import NotFound
from blazar.model.requests import Registration
from blazar.model.resource import Resource, ResourceKind, ResourceProperty
from blazar.model.resource_kinds import GENERAL_FIELDS

MINOR = 2
"""The minor version in whose shape resources are shown."""

SORT_KEYS = ("name", "created_at", "label", "updated_at")


def kind_of(path: Mapping[str, str]) -> ResourceKind:
    """Return the kind that a path names; the manager knows if it is served."""
    return ResourceKind(identifier(path["kind"]))


def id_of(path: Mapping[str, str]) -> str:
    """Return the id that a path names; NotFound."""
    return resource_id(kind_of(path), path["resource_id"])


def registration(call: Call, kind: ResourceKind, body: Json) -> Registration:
    """Return the request to register a resource; InvalidInput if the body is not what the kind takes."""
    minor = _minor(call)
    check_known_fields(body, kind, minor)
    for described in call.manager.resources.kinds().items:
        if described.kind == kind:
            check(body, components.registration_schema(described, minor), lasting=False)
    given = {name: value for name, value in body.items() if name not in GENERAL_FIELDS}
    return changes.registration(given, body)


class ResourceHandlers(Handlers):
    """Handlers that show members what is public of the resources that are open to their project."""

    def __init__(self) -> None:
        super().__init__(
            Form(
                kind=kind_of,
                id_of=id_of,
                registration=registration,
                change=changes.change,
                url=components.path_of,
                minor=MINOR,
                shown=_render,
            )
        )

    def page(self, call: Call, **path: str) -> Answer:
        """List resources in pages."""
        kind, question = kind_of(path), lists.resource_question(call, SORT_KEYS[0])
        resources = call.manager.resources
        found = (
            resources.page(kind, question)
            if call.allows(PRIVATE.name)
            else resources.visible_page(kind, question, _viewer(call))
        )
        items = [call.asked.only(components.resource(each)) for each in found.items]
        return lists.page_answer("resources", items, found)

    def show(self, call: Call, **path: str) -> Answer:
        """Show a resource."""
        if call.allows(PRIVATE.name):
            return super().show(call, **path)
        found = call.manager.resources.visible(kind_of(path), id_of(path), _viewer(call))
        return Answer(found, etag=weak_tag(json.dumps(components.resource(found))))


def _render(call: Call, found: Resource) -> Json:
    """Return a resource as the caller sees it."""
    if call.allows(PRIVATE.name):
        return components.resource(found)
    return components.resource(call.manager.resources.visible(found.kind, found.external_id, _viewer(call)))


def kinds(call: Call) -> Json:
    """List the kinds that are served."""
    found = call.manager.resources.kinds().items
    return {"kinds": [components.kind(each, _minor(call)) for each in found], "links": [self_link()]}


def allocations(call: Call, **path: str) -> ResourceAllocations:
    """Show the allocations of a resource."""
    return lists.allocations_of(call, kind_of(path), id_of(path))


def candidates(call: Call, **path: str) -> Json:
    """List what the cloud has to register."""
    registered = call.asked.one("registered")
    found = call.manager.resources.candidates(kind_of(path))
    shown = [each for each in found if registered is None or registered == (each.resource_id is not None)]
    return {"candidates": [components.candidate(each, _minor(call)) for each in shown], "links": [self_link()]}


def properties(call: Call, **path: str) -> Answer:
    """List the properties that operators have set, in pages; private ones for those who may see them."""
    found = call.manager.resources.property_page(
        kind_of(path), call.asked.page("name"), include_private=call.allows(PRIVATE.name)
    )
    return lists.page_answer("properties", [components.property_values(each) for each in found.items], found)


def set_property(call: Call, name: str, **path: str) -> ResourceProperty:
    """Make a property public or private."""
    private = call.body()["private"]
    if "\0" in name or len(name) > 255:
        raise NotFound("no resource has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(kind_of(path), name, private=private)


def _minor(call: Call) -> int:
    assert call.version is not None
    return call.version[1]


def _viewer(call: Call) -> Viewer:
    return Viewer(call.caller.project_id)
