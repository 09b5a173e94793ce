# SPDX-License-Identifier: Apache-2.0
"""``/v1/networks``: the segments that can be reserved, up to version 1.0 of the API. Version 2 does not serve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from blazar.api.context import Call, identifier
from blazar.api.kinds.handlers import Handlers, form_of, resource_id
from blazar.api.kinds.networks.components import (
    ATTRIBUTES,
    COMPONENTS,
    CREATE_EXAMPLE,
    FIELDS,
    NETWORK_CREATE,
    NETWORK_UPDATE,
    OWN_KEYS,
    PROPERTY_UPDATE,
    RESERVATIONS,
    UPDATE_EXAMPLE,
    allocation,
    property_values,
    resource_property,
    segment,
)
from blazar.api.routes import ADMIN, Body, Part, Root, Route, Rule, in_path, in_query, within
from blazar.api.shapes import Json, a_list, an_object, ref
from blazar.model.demand import ResourceAllocations
from blazar.model.errors import InvalidInput, NotFound
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import NETWORK, Resource, ResourceProperty

GET = Rule("blazar:networks:get", ADMIN, "List and show the network segments that can be reserved.")
POST = Rule("blazar:networks:post", ADMIN, "Register a network segment.")
PUT = Rule("blazar:networks:put", ADMIN, "Update the capabilities of a network segment.")
DELETE = Rule("blazar:networks:delete", ADMIN, "Unregister a network segment.")
ALLOCATIONS = Rule("blazar:networks:get_allocations", ADMIN, "List and show allocations of network segments.")
PROPERTIES = Rule("blazar:networks:get_resource_properties", ADMIN, "List capabilities of network segments.")
PATCH = Rule("blazar:networks:update_resource_properties", ADMIN, "Make a capability of them public or private.")


def update(call: Call, network_id: str) -> Resource:
    """Set and remove capabilities."""
    body, found = call.body(), call.manager.resources.one(NETWORK, resource_id(NETWORK, network_id))
    for key in ATTRIBUTES:
        if key in body and str(body[key]) != str(found.attributes[key]):
            raise InvalidInput(f"{key} of a segment cannot be changed; register another segment")
    given = {key: value for key, value in body.items() if key not in ATTRIBUTES}
    changes = {key: None if given[key] is None else text for key, text in _capabilities(given).items()}
    return call.manager.resources.change(NETWORK, found.external_id, ResourceChange(changes)) if changes else found


def allocations(call: Call) -> Sequence[ResourceAllocations]:
    """List the allocations of all segments."""
    return call.manager.resources.allocations(NETWORK, **_narrowed(call))


def one_allocation(call: Call, network_id: str) -> ResourceAllocations:
    """Show the allocations of one segment."""
    key = resource_id(NETWORK, network_id)
    return call.manager.resources.allocations(NETWORK, resource_id=key, **_narrowed(call))[0]


def properties(call: Call) -> Sequence[Json]:
    """List capabilities."""
    # Any non-empty value counts as true: clients send True and never False.
    everything = bool(call.query.get("all")) and call.is_operator
    found = call.manager.resources.properties(NETWORK, include_private=everything)
    return [property_values(value, detail=bool(call.query.get("detail"))) for value in found]


def set_property(call: Call, name: str) -> ResourceProperty:
    """Make a capability public or private."""
    body = call.body()
    if "\0" in name or len(name) > 255:
        raise NotFound("no network segment has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(NETWORK, name, private=body["private"])


def _capabilities(given: Mapping[str, object]) -> dict[str, str]:
    """Return the keys that are capabilities, as strings; InvalidInput if one has the name of another key."""
    capabilities = {key: value for key, value in given.items() if key not in ATTRIBUTES}
    if taken := sorted(capabilities.keys() & OWN_KEYS):
        raise InvalidInput(f"{taken[0]} is not a capability and cannot be changed; choose another key")
    return {key: str(int(value)) if isinstance(value, bool) else str(value) for key, value in capabilities.items()}


def _narrowed(call: Call) -> dict[str, str]:
    return {each.name: identifier(call.query[each.name]) for each in _NARROWING if each.name in call.query}


def _registration(body: Json) -> Registration:
    given = {key: body[key] for key in ATTRIBUTES if key in body}
    return Registration(given, _capabilities(body))


def _shown(found: Resource) -> Json:
    return {"network": segment(found)}


_segments = Handlers(form_of(NETWORK, "network_id", _registration))
_NARROWING = (
    in_query("lease_id", "only allocations of this lease"),
    in_query("reservation_id", "only allocations of this reservation"),
)
_ID = in_path("network_id", "the id of the segment")
_ONE = an_object({"network": ref("NetworkSegment")})
_on_list = partial(Route, root=Root.V1, path="/networks", json_twin=True)
_on_segment = partial(Route, root=Root.V1, path="/networks/{network_id}", parameters=(_ID,))
_ROUTES = (
    _on_list(
        method="GET",
        name="list_networks",
        summary="List the network segments that can be reserved",
        handler=_segments.index,
        rule=GET,
        render=lambda found: {"networks": [segment(each) for each in found]},
        answers={200: an_object({"networks": a_list(ref("NetworkSegment"))})},
    ),
    _on_list(
        method="POST",
        name="create_network",
        summary="Register a network segment",
        handler=_segments.create,
        rule=POST,
        body=Body("NetworkCreate", NETWORK_CREATE, (CREATE_EXAMPLE,)),
        render=_shown,
        answers={201: _ONE},
        errors=(404, 409),
    ),
    _on_segment(
        method="GET",
        name="show_network",
        summary="Show a network segment",
        handler=_segments.show,
        rule=GET,
        render=_shown,
        answers={200: _ONE},
        errors=(404,),
    ),
    _on_segment(
        method="PUT",
        name="update_network",
        summary="Set and remove capabilities of a network segment",
        handler=update,
        rule=PUT,
        body=Body("NetworkUpdate", NETWORK_UPDATE, (UPDATE_EXAMPLE,)),
        render=_shown,
        answers={200: _ONE},
        errors=(404, 409),
    ),
    _on_segment(
        method="DELETE",
        name="delete_network",
        summary="Unregister a network segment",
        handler=_segments.delete,
        rule=DELETE,
        render=lambda _: {},
        answers={200: an_object({})},
        errors=(404, 409),
    ),
    Route(
        root=Root.V1,
        method="GET",
        path="/networks/allocations",
        json_twin=True,
        name="list_network_allocations",
        summary="List the allocations of all network segments",
        handler=allocations,
        rule=ALLOCATIONS,
        render=lambda found: {"allocations": [allocation(each) for each in found]},
        answers={200: an_object({"allocations": a_list(ref("Allocation"))})},
        parameters=_NARROWING,
    ),
    Route(
        root=Root.V1,
        method="GET",
        path="/networks/{network_id}/allocation",
        json_twin=True,
        name="show_network_allocation",
        summary="Show the allocations of a network segment",
        handler=one_allocation,
        rule=ALLOCATIONS,
        render=lambda found: {"allocation": allocation(found)},
        answers={200: an_object({"allocation": ref("Allocation")})},
        errors=(404,),
        parameters=(_ID, *_NARROWING),
    ),
    Route(
        root=Root.V1,
        method="GET",
        path="/networks/properties",
        json_twin=True,
        name="list_network_properties",
        summary="List the capabilities of network segments",
        handler=properties,
        rule=PROPERTIES,
        render=lambda found: {"resource_properties": found},
        answers={200: an_object({"resource_properties": a_list(ref("NetworkPropertyInList"))})},
        parameters=(
            in_query("detail", "any value: include values and the private flag"),
            in_query("all", "any value: include private capabilities (operators only)"),
        ),
    ),
    Route(
        root=Root.V1,
        method="PATCH",
        path="/networks/properties/{name}",
        name="set_network_property",
        summary="Make a capability of network segments public, or private to operators",
        handler=set_property,
        rule=PATCH,
        body=Body("NetworkPropertyUpdate", PROPERTY_UPDATE, ({"private": True},)),
        render=lambda changed: {"resource_property": resource_property(changed)},
        answers={200: an_object({"resource_property": ref("ResourceProperty")})},
        errors=(404,),
        parameters=(in_path("name", "a capability's name", policy_name="property_name"),),
    ),
)

PART = Part(
    "networks",
    routes=within(_ROUTES, until=(1, 0)),
    rules=(GET, POST, PUT, DELETE, ALLOCATIONS, PROPERTIES, PATCH),
    components=COMPONENTS,
    reservations=RESERVATIONS,
    fields=FIELDS,
)
