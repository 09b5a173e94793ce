# SPDX-License-Identifier: Apache-2.0
"""``/v1/calendar``, ``/v1/capacity`` and ``/v1/properties``, from microversion 1.1 on."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any

from flask import Response

from blazar.api.calendar import render, texts
from blazar.api.calendar.render import COMPONENTS
from blazar.api.http.answers import encode, page_links, weak_tag
from blazar.api.http.context import Call
from blazar.api.http.queries import filter_by, option, paging
from blazar.api.http.readers import Choice, DateOrDuration, JsonText, Length, Text
from blazar.api.http.routes import ADMIN, READER, Part, Root, Route, Rule
from blazar.api.http.shapes import LINKS, Json, a_list, an_object, ref
from blazar.api.leases.rules import GET as GET_LEASE
from blazar.model.base.clock import zulu
from blazar.model.calendar.views import HOST_TYPE, RESOURCE_MEASURE, CalendarQuestion, CapacityQuestion, Range, Viewer

GET = Rule("blazar:calendar:get", READER, "See what is free, and what is promised to the own project and to others.")
NAMES = Rule("blazar:calendar:get_names", ADMIN, "See ids and names of resources in the calendar.")
OWNERS = Rule(
    "blazar:calendar:get_owners", ADMIN, "See the leases of all projects in the calendar, and why it is out of use."
)
CAPACITY = Rule("blazar:capacity:get", READER, "See how much is free over time.")
PROPERTIES = Rule("blazar:properties:get", READER, "List the properties of resources with their values.")
PRIVATE = Rule("blazar:properties:get_private", ADMIN, "List private properties, and all that the cloud reports.")

_NOTHING: Json = {}
_ROW_KEYS = ("label", "type", "name", "reservable", "capacity", "properties", "blocks")
_PAGING = tuple(parameter for parameter in paging(("name",), fields=_ROW_KEYS) if parameter.name != "sort_key")
_FROM = option("from", DateOrDuration(backward=True), "the begin, by default now; a duration counts from now")
_TO = option("to", DateOrDuration(), "the end, by default 14 days after the begin; a duration counts from the begin")
_TYPE = option("resource_type", Text(1, 66), f"resources that serve this type, by default {HOST_TYPE}")
_REQUIREMENT = option("requirement", JsonText(), "resources that meet this, as in reservations")
_RANGE = (_FROM, _TO, _TYPE, _REQUIREMENT)


def calendar(call: Call) -> Response:
    """Return a page of the calendar."""
    asked = call.asked
    page = call.manager.calendar.page(
        CalendarQuestion(
            viewer=_viewer(call),
            page=asked.page("name", bounds=call.services.bounds.calendar),
            range=_range(call),
            resource_type=asked.one("resource_type", HOST_TYPE),
            requirement=_requirement(call),
            resources=_wanted_resources(call),
            occupied=asked.one("occupied_by") is not None,
        )
    )
    # Who may not list leases sees when something is promised, and not for which lease.
    leases = page.leases if call.allows(GET_LEASE.name) else {}
    links = page_links(page.following)
    response = _as_of("calendar", texts.write_page(page, leases, asked.fields), page.as_of, {"links": links})
    if page.following is not None:
        response.headers["Link"] = f'<{links[-1]["href"]}>; rel="next"'
    return response


def capacity(call: Call) -> Response:
    """Return how much is free over time."""
    asked = call.asked
    measure = asked.one("measure", RESOURCE_MEASURE)
    found = call.manager.calendar.capacity(
        CapacityQuestion(
            viewer=Viewer(call.caller.project_id, *[call.is_operator] * 3),
            range=_range(call),
            step=asked.one("step"),
            resource_type=asked.one("resource_type", HOST_TYPE),
            requirement=_requirement(call),
            group_by=tuple(dict.fromkeys(asked.all("group_by"))),
            measure=measure,
        )
    )
    return _as_of("capacity", encode(render.capacity(found, measure)), found.as_of)


def properties(call: Call) -> list[Json]:
    """List the properties of resources."""
    sees_private = call.allows(PRIVATE.name)
    viewer = Viewer(call.caller.project_id, names=sees_private, private=sees_private)
    found = call.manager.calendar.properties(viewer, call.asked.one("resource_type", HOST_TYPE))
    return [render.summary(summary) for summary in found.properties]


def _viewer(call: Call) -> Viewer:
    return Viewer(
        call.caller.project_id,
        names=call.allows(NAMES.name),
        owners=call.allows(OWNERS.name),
        private=call.is_operator,
    )


def _range(call: Call) -> Range:
    return Range(call.asked.one("from"), call.asked.one("to"))


def _requirement(call: Call) -> str | None:
    given: Any = call.asked.one("requirement")
    return None if given is None else json.dumps(given)


def _wanted_resources(call: Call) -> tuple[str, ...] | None:
    """Return the resources that are asked for; those of each condition, if there are several."""
    found: frozenset[str] | None = None
    for condition in call.asked.conditions:
        found = frozenset(condition.values) if found is None else found & frozenset(condition.values)
    return None if found is None else tuple(sorted(found))


def _as_of(key: str, content: str, as_of: datetime, beside: Json = _NOTHING) -> Response:
    """Return an object with the instant at which it was read, and what stands ``beside`` it; the tag is of both.

    It does not depend on that instant.
    """
    more = "".join(f',"{name}":{encode(value)}' for name, value in beside.items())
    # Once, as it may be megabytes: what the tag is of is what the body has.
    raw = f"{content[1:]}{more}}}\n".encode()
    head = f'{{"{key}":{{"as_of":"{zulu(as_of)}",'
    return Response([head.encode(), raw], mimetype="application/json", headers={"ETag": weak_tag(raw)})


_get = partial(Route, root=Root.V1, method="GET")

PART = Part(
    "calendar",
    routes=(
        _get(
            path="/calendar",
            name="show_calendar",
            summary="Show what is free, promised and out of use, by resource",
            handler=calendar,
            rule=GET,
            answers={200: an_object({"calendar": ref("Calendar"), "links": LINKS})},
            parameters=(
                *_RANGE,
                filter_by("resource", Text(1, 64), "resources by label; for those who may see names, also by id"),
                option("occupied_by", Choice(("me",)), "me: resources of which the own project has a part"),
                option("sort_key", Text(1, 255), "name, or a property; by default name; ties are in the order of ids"),
                *_PAGING,
            ),
        ),
        _get(
            path="/capacity",
            name="show_capacity",
            summary="Show how much is free, promised and out of use over time",
            handler=capacity,
            rule=CAPACITY,
            answers={200: an_object({"capacity": ref("Capacity")})},
            parameters=(
                *_RANGE,
                option("step", Length(), "the time between two points, at least 60 s; by default at most 200 points"),
                option("group_by", Text(1, 255), "a property; for operators also project_id", most=2),
                option("measure", Text(1, 255), f"{RESOURCE_MEASURE}, by default, or a resource class such as VCPU"),
            ),
        ),
        _get(
            path="/properties",
            name="summarize_properties",
            summary="List the properties of resources, with their values",
            handler=properties,
            rule=PROPERTIES,
            render=lambda shown: {"properties": shown},
            answers={200: an_object({"properties": a_list(ref("PropertySummary"))})},
            parameters=(_TYPE,),
        ),
    ),
    rules=(GET, CAPACITY, PROPERTIES),
    views=(NAMES, OWNERS, PRIVATE),
    components=COMPONENTS,
)
