# SPDX-License-Identifier: Apache-2.0
"""Capabilities of hosts, in version 1 only: which there are, and who may see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blazar.api.answers import Answer
from blazar.api.context import Call
from blazar.api.kinds import lists
from blazar.api.kinds.hosts import render
from blazar.api.kinds.hosts.schemas import PROPERTY_UPDATE
from blazar.api.queries import option, paging
from blazar.api.readers import Flag
from blazar.api.routes import ADMIN, Body, Root, Route, Rule, in_path, in_query, within
from blazar.api.shapes import Json, a_list, an_object, ref
from blazar.model.clock import zulu
from blazar.model.errors import NotFound
from blazar.model.resource import HOST, ResourceProperty

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


def page(call: Call) -> Answer:
    """List capabilities in pages."""
    asked = call.asked
    everything = asked.one("all", False) and call.is_operator
    found = call.manager.resources.property_page(HOST, asked.page("property"), include_private=everything)
    detail = asked.one("detail", False)
    items = [render.property_values(value, detail=detail) for value in found.items]
    return lists.page_answer("resource_properties", items, found)


_OF_1_0 = (
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
_LIST, _SET = _OF_1_0
ROUTES = (
    *within(_OF_1_0, until=(1, 0)),
    lists.list_row(
        "resource_properties",
        ref("PropertyInList"),
        path=_LIST.path,
        name=_LIST.name,
        summary=_LIST.summary,
        handler=page,
        rule=GET,
        parameters=(
            option("detail", Flag(), "include values and the private flag"),
            option("all", Flag(), "include private capabilities (operators only)"),
            *paging(["property"]),
        ),
    ),
    replace(
        _SET,
        render=lambda changed: {"resource_property": render.resource_property(changed, zulu)},
        answers={200: an_object({"resource_property": ref("ResourceProperty1_1")})},
        since=(1, 1),
    ),
)
