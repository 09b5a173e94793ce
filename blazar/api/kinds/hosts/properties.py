# SPDX-License-Identifier: Apache-2.0
"""Capabilities of hosts, at 1.0 only: which there are, and who may see them."""

from __future__ import annotations

from collections.abc import Sequence

from blazar.api.http.context import Call
from blazar.api.http.routes import ADMIN, Body, Root, Route, Rule, in_path, in_query
from blazar.api.http.shapes import Json, a_list, an_object, ref
from blazar.api.kinds.flat import PROPERTY_UPDATE
from blazar.api.kinds.hosts import render
from blazar.model.base.errors import NotFound
from blazar.model.resources.resource import HOST, ResourceProperty

GET = Rule("blazar:oshosts:get_resource_properties", ADMIN, "List capabilities.")
PATCH = Rule("blazar:oshosts:update_resource_properties", ADMIN, "Make a capability public or private.")
RULES = (GET, PATCH)


_NAME = in_path("name", "a capability's name", policy_name="property_name")


def index(call: Call) -> Sequence[Json]:
    """List capabilities."""
    # Any non-empty value counts as true, as in the existing Blazar: clients send True and never False.
    everything = bool(call.query.get("all")) and call.is_operator
    detail = bool(call.query.get("detail"))
    found = call.manager.resources.properties(HOST, include_private=everything)
    return [render.property_values(value, detail=detail) for value in found]


def update(call: Call, name: str) -> ResourceProperty:
    """Make a capability public or private."""
    body = call.body()
    if "\0" in name or len(name) > 255:
        raise NotFound("no host has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(HOST, name, private=body["private"])


ROUTES = (
    Route(
        root=Root.V1,
        method="GET",
        path="/os-hosts/properties",
        name="list_properties",
        summary="List the capabilities of hosts",
        handler=index,
        rule=GET,
        render=lambda shown: {"resource_properties": shown},
        answers={200: an_object({"resource_properties": a_list(ref("PropertyInList"))})},
        parameters=(
            in_query("detail", "any value: include values and the private flag"),
            in_query("all", "any value: include private capabilities (operators only)"),
        ),
        json_twin=True,
    ),
    Route(
        root=Root.V1,
        method="PATCH",
        path="/os-hosts/properties/{name}",
        name="set_property",
        summary="Make a capability public, or private to operators",
        handler=update,
        rule=PATCH,
        body=Body("PropertyUpdate", PROPERTY_UPDATE, ({"private": True},)),
        render=lambda changed: {"resource_property": render.resource_property(changed)},
        answers={200: an_object({"resource_property": ref("ResourceProperty")})},
        errors=(404,),
        parameters=(_NAME,),
    ),
)
