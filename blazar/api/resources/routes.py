# SPDX-License-Identifier: Apache-2.0
"""``/v1/resources``, from version 1.1 on: what can be reserved, of every kind."""

from __future__ import annotations

from functools import partial

from blazar.api.http.answers import IF_MATCH
from blazar.api.http.queries import MOST_CONDITIONS, filter_by, option, paging
from blazar.api.http.readers import Flag, JsonText, Text
from blazar.api.http.routes import Body, Caching, Part, Root, Route, in_path
from blazar.api.http.shapes import LINKS, RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.resources import components, handlers, lists, rules
from blazar.api.resources.requests import CHANGE
from blazar.model.base.dates import Place
from blazar.model.base.paging import Condition, Operator
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.resources.pages import PROPERTY, VisibleResource
from blazar.model.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class PropertyText:
    """``name:value``: a property and the value that it has; gives a condition."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**Text(2, 320).schema, "pattern": ":"}

    def read(self, text: str, place: Place) -> Condition:
        """Return the condition."""
        name, sign, value = Text(2, 320).read(text, place).partition(":")
        if not name or not sign:
            raise place.invalid(text, "a name and a value, as gpu:A100", "invalid_query")
        return Condition(PROPERTY + name, Operator.EQ, (value,))


def _one(found: Resource | VisibleResource) -> Json:
    return {"resource": components.resource(found)}


def _allocation(found: ResourceAllocations) -> Json:
    return {"allocation": lists.allocation(found)}


_resources = handlers.ResourceHandlers()
_KIND = in_path("kind", "the name of a kind, as in GET /v1/resources")
_ID = in_path("resource_id", "the id of the resource")
_NAME = in_path("name", "the name of a property")
_ONE = an_object({"resource": ref("Resource")})
_CHANGE: Json = {
    **CHANGE,
    "description": "an object with properties, attributes, disabled or authorized_projects",
    "properties": {
        **CHANGE["properties"],
        "attributes": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 50,
            "additionalProperties": {
                "type": ["string", "integer", "number", "boolean", "null"],
                "maxLength": 65535,
                "description": "a value as at the registration",
            },
            "description": 'an object with what the kind lets be changed, such as {"capacity": 8}',
        },
    },
}


_LIST = lists.list_row(
    "resources",
    ref("ResourceInList"),
    path="/resources/{kind}",
    name="list_resources",
    summary="List the resources of a kind",
    handler=_resources.page,
    rule=rules.GET,
    errors=(404,),
    parameters=(
        _KIND,
        filter_by("name", Text(), "the name"),
        filter_by("label", Text(), "the label"),
        filter_by("reservable", Flag(), "whether it takes new leases"),
        *lists.TROUBLES,
        filter_by("project_id", Text(), "a project to which it is restricted (operators)"),
        option("property", PropertyText(), "name:value of an attribute or a property", most=MOST_CONDITIONS),
        option("requirement", JsonText(), "resources that meet this, as in reservations"),
        option("text", Text(2, 80), "a part of the name"),
        *paging(handlers.SORT_KEYS, fields=components.KEYS, by_property=True),
    ),
)


_route = partial(Route, root=Root.V1)
_on_kind = partial(_route, path="/resources/{kind}", parameters=(_KIND,), errors=(404,))
_on_one = partial(_route, path="/resources/{kind}/{resource_id}", parameters=(_KIND, _ID), errors=(404,))

ROUTES = (
    _route(
        method="GET",
        path="/resources",
        name="list_kinds",
        summary="List the kinds of resources",
        handler=handlers.kinds,
        rule=rules.GET,
        answers={200: an_object({"kinds": a_list(ref("Kind")), "links": LINKS})},
    ),
    _LIST,
    _on_kind(
        method="POST",
        name="register_resource",
        summary="Register a resource",
        handler=_resources.create,
        rule=rules.POST,
        body=Body(
            "ResourceRegistration",
            components.REGISTRATION,
            ({"name": "cn12.example", "properties": {"rack": "r7"}, "disabled": {"reason": "new", "until": "+P1D"}},),
        ),
        render=_one,
        answers={201: _ONE},
        errors=(404, 409),
        caching=Caching.NONE,
    ),
    lists.allocation_list(
        handlers.kind_of,
        sort_keys=handlers.SORT_KEYS,
        rule=rules.ALLOCATIONS,
        path="/resources/{kind}/allocations",
        name="list_resource_allocations",
        summary="List the allocations of the resources of a kind",
        parameters=(_KIND,),
        by_property=True,
        errors=(404,),
    ),
    _on_kind(
        method="GET",
        path="/resources/{kind}/candidates",
        name="list_candidates",
        summary="List what the cloud has to register",
        handler=handlers.candidates,
        rule=rules.CANDIDATES,
        answers={200: an_object({"candidates": a_list(ref("Candidate")), "links": LINKS})},
        parameters=(_KIND, option("registered", Flag(), "true: those that are registered; false: those that are not")),
        caching=Caching.NONE,
    ),
    lists.list_row(
        "properties",
        ref("PropertyOfResources"),
        path="/resources/{kind}/properties",
        name="list_properties_of_resources",
        summary="List the properties that operators have set",
        handler=handlers.properties,
        rule=rules.PROPERTIES,
        errors=(404,),
        parameters=(_KIND, *paging(["name"])),
    ),
    _on_kind(
        method="PATCH",
        path="/resources/{kind}/properties/{name}",
        name="set_property_of_resources",
        summary="Make a property public, or private to operators",
        handler=handlers.set_property,
        rule=rules.PATCH,
        body=Body("PropertyPrivacy", components.PRIVACY, ({"private": True},)),
        render=lambda changed: {"property": components.changed_property(changed)},
        answers={200: an_object({"property": ref("ChangedProperty")})},
        parameters=(_KIND, _NAME),
    ),
    _on_one(
        method="GET",
        name="show_resource",
        summary="Show a resource",
        handler=_resources.show,
        rule=rules.GET,
        render=_one,
        answers={200: _ONE},
        caching=Caching.STRONG,
    ),
    _on_one(
        method="PUT",
        name="update_resource",
        summary="Change a resource",
        handler=_resources.update,
        rule=rules.PUT,
        body=Body(
            "ResourceUpdate",
            _CHANGE,
            (
                {"attributes": {"capacity": 8, "hook_url": "https://lab.example/hook"}},
                {"properties": {"rack": "r8", "gpu": None}, "authorized_projects": ["physics"]},
                {"disabled": {"reason": "fan replaced", "until": "2030-12-01T00:00:00Z"}},
                {"disabled": None},
            ),
        ),
        render=_one,
        answers={200: _ONE},
        errors=(404, 409, 412),
        parameters=(_KIND, _ID, IF_MATCH),
        caching=Caching.NONE,
    ),
    _on_one(
        method="DELETE",
        name="unregister_resource",
        summary="Unregister a resource",
        handler=_resources.delete,
        rule=rules.DELETE,
        answers={204: None},
        errors=(404, 409, 412),
        parameters=(_KIND, _ID, IF_MATCH),
    ),
    _on_one(
        method="POST",
        path="/resources/{kind}/{resource_id}/refresh",
        name="refresh_resource",
        summary="Refresh a resource's data from the cloud",
        handler=_resources.refresh,
        rule=rules.REFRESH,
        render=_one,
        answers={200: _ONE},
        errors=(404, 409),
    ),
    _on_one(
        method="GET",
        path="/resources/{kind}/{resource_id}/allocations",
        name="show_resource_allocations",
        summary="Show the allocations of a resource",
        handler=handlers.allocations,
        rule=rules.ALLOCATIONS,
        render=_allocation,
        answers={200: an_object({"allocation": ref(lists.ALLOCATION)})},
        parameters=(_KIND, _ID, *lists.NARROWED),
    ),
    _on_one(
        method="PUT",
        path="/resources/{kind}/{resource_id}/allocations",
        name="move_resource_reservation",
        summary="Move a reservation from this resource to another",
        handler=handlers.move,
        rule=rules.MOVE,
        body=Body("ResourceAllocationUpdate", lists.ALLOCATION_UPDATE, ({"reservation_id": RESERVATION_ID},)),
        render=_allocation,
        answers={200: an_object({"allocation": ref(lists.ALLOCATION)})},
        errors=(404, 409),
        caching=Caching.NONE,
    ),
)

PART = Part(
    "resources",
    routes=ROUTES,
    rules=rules.RULES,
    views=(rules.PRIVATE,),
    components={**components.COMPONENTS, **lists.COMPONENTS},
)
