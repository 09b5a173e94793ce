# SPDX-License-Identifier: Apache-2.0
"""``/v1/info``, from microversion 1.1 on: what pages and clients cannot know otherwise. No secrets."""

from __future__ import annotations

from blazar.api.calendar.routes import OWNERS
from blazar.api.http.context import Call
from blazar.api.http.queries import MOST_VALUES
from blazar.api.http.routes import Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import NUMBER, TEXT, TEXT_OR_NULL, ZULU, Json, a_list, an_object, ref
from blazar.api.leases.rules import BEST_EFFORT, POST
from blazar.api.search.routes import MOST_RESERVATIONS
from blazar.model.base.clock import SystemClock, zulu
from blazar.model.base.errors import ManagerUnavailable
from blazar.model.base.service_info import ServiceFacts
from blazar.model.leases.states import LeaseKind

GET = Rule("blazar:info:get", "@", "See what the service offers, and what the caller may do. Any token will do.")

_BOUNDS: Json = {
    "page": "items of a page at most",
    "default_page": "items of a page, if no limit is asked for",
    "calendar_page": "resources of a page of the calendar at most",
    "default_calendar_page": "resources of a page of the calendar, if no limit is asked for",
    "filter_values": "values of in: in a filter",
    "range_seconds": "longest range of the calendar and of capacity",
    "range_back_seconds": "how far back such a range may begin for the caller",
    "range_ahead_seconds": "how far ahead it may end",
    "capacity_points": "points of capacity, of all groups",
    "capacity_groups": "groups of capacity",
    "properties": "properties of resources that are listed",
    "property_values": "values of a property that are listed",
    "availability_range_seconds": "longest range of a search for free time",
    "availability_reservations": "reservations of a question",
    "openings": "openings in an answer at most",
    "default_openings": "openings in an answer, if no limit is asked for",
    "feeds": "feeds of a user, in all projects together",
}
"""What each bound is of."""

_OF_MANAGERS = (
    "resource_types",
    "before_end",
    "cleaning_seconds",
    "confirm_within_seconds",
    "limits",
    "idempotency_seconds",
    "channels",
)
_BOUNDS_OF_MANAGERS = (
    "range_seconds",
    "range_back_seconds",
    "range_ahead_seconds",
    "capacity_points",
    "capacity_groups",
    "properties",
    "property_values",
    "availability_range_seconds",
    "feeds",
)
"""What only a manager knows, and an answer without one does not have."""

NOTICE = (
    "No blazar-manager answers at present: nothing can be shown or changed until one does. Leases that have begun go on"
)


def info(call: Call) -> Json:
    """Return what the service offers to the caller; while no manager answers, what the API knows itself."""
    try:
        facts = call.manager.service.facts(call.caller.project_id)
    except ManagerUnavailable:
        return {"now": zulu(SystemClock().now()), **_describe_caller(call), "bounds": _list_own(call), "notice": NOTICE}
    return {"now": zulu(facts.now), **_describe_caller(call), **_render_facts(call, facts)}


def _describe_caller(call: Call) -> Json:
    """Return who the caller is, and what the policy allows: no manager is needed for that."""
    return {
        "user_id": call.caller.user_id,
        "project_id": call.caller.project_id or None,
        "allowed": [name for name in call.services.served.rules if call.allows(name)],
        "kinds": _kinds(call),
    }


def _render_facts(call: Call, facts: ServiceFacts) -> Json:
    return {
        "resource_types": list(facts.resource_types),
        "before_end": {"default": facts.before_end, "lead_seconds": int(facts.lead.total_seconds())},
        "cleaning_seconds": int(facts.cleaning.total_seconds()),
        "confirm_within_seconds": int(facts.confirm_within.total_seconds()),
        "limits": [{"limit": limit.limit, "value": limit.value, "unit": limit.unit} for limit in facts.limits],
        "bounds": {**_list_own(call), **_render_bounds(call, facts)},
        "idempotency_seconds": int(facts.idempotency.total_seconds()),
        "channels": list(facts.channels),
    }


def _kinds(call: Call) -> list[str]:
    """Return the kinds of lease that the caller may book."""
    if not call.allows(POST.name):
        return []
    return [str(kind) for kind in LeaseKind if kind != LeaseKind.BEST_EFFORT or call.allows(BEST_EFFORT.name)]


def _list_own(call: Call) -> Json:
    """Return the bounds that the API sets itself."""
    lists = call.services.bounds
    return {
        "page": lists.pages.most,
        "default_page": lists.pages.usual,
        "calendar_page": lists.calendar.most,
        "default_calendar_page": lists.calendar.usual,
        "filter_values": MOST_VALUES,
        "availability_reservations": MOST_RESERVATIONS,
        "openings": lists.openings.most,
        "default_openings": lists.openings.usual,
    }


def _render_bounds(call: Call, facts: ServiceFacts) -> Json:
    reads = facts.reads
    back = reads.back_for(operator=call.allows(OWNERS.name))
    return {
        "range_seconds": int(reads.longest_range.total_seconds()),
        "range_back_seconds": int(back.total_seconds()),
        "range_ahead_seconds": int(reads.ahead.total_seconds()),
        "capacity_points": reads.points,
        "capacity_groups": reads.groups,
        "properties": reads.properties,
        "property_values": reads.property_values,
        "availability_range_seconds": int(facts.search_range.total_seconds()),
        "feeds": reads.feeds_of_user,
    }


COMPONENTS: Json = {
    "Info": an_object(
        {
            "now": {**ZULU, "description": "the clock of the service"},
            "user_id": TEXT,
            "project_id": TEXT_OR_NULL,
            "allowed": {**a_list(TEXT), "description": "policy rules that allow the caller something in its project"},
            "resource_types": a_list(TEXT),
            "kinds": {**a_list(TEXT), "description": "kinds of lease that the caller may book"},
            "before_end": an_object({"default": TEXT, "lead_seconds": NUMBER}),
            "cleaning_seconds": {**NUMBER, "description": "what is kept free between two users of a resource"},
            "confirm_within_seconds": {**NUMBER, "description": "the longest confirm_within; 0: each lease is firm"},
            "limits": a_list(an_object({"limit": TEXT, "value": NUMBER, "unit": TEXT})),
            "bounds": an_object(
                {name: {**NUMBER, "description": of} for name, of in _BOUNDS.items()}, optional=_BOUNDS_OF_MANAGERS
            ),
            "idempotency_seconds": NUMBER,
            "channels": {**a_list(TEXT), "description": "how subscribers are told: webhook, mail, or neither"},
            "notice": {
                **TEXT,
                "description": "a sentence for people, while no manager answers: what only managers know is missing",
            },
        },
        optional=("kinds", "notice", *_OF_MANAGERS),
        example={
            "now": "2026-11-23T10:15:42Z",
            "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
            "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
            "allowed": ["blazar:leases:get", "blazar:leases:post"],
            "resource_types": ["physical:host", "virtual:instance"],
            "kinds": ["scheduled", "immediate", "retries"],
            "before_end": {"default": "notification", "lead_seconds": 3600},
            "cleaning_seconds": 1800,
            "confirm_within_seconds": 900,
            "limits": [{"limit": "max_lease_duration", "value": 604800, "unit": "seconds"}],
            "bounds": {
                "page": 1000,
                "default_page": 100,
                "calendar_page": 1000,
                "default_calendar_page": 200,
                "filter_values": 50,
                "range_seconds": 31622400,
                "range_back_seconds": 2678400,
                "range_ahead_seconds": 157852800,
                "capacity_points": 100000,
                "capacity_groups": 100,
                "properties": 200,
                "property_values": 100,
                "availability_range_seconds": 31622400,
                "availability_reservations": 20,
                "openings": 20,
                "default_openings": 5,
                "feeds": 20,
            },
            "idempotency_seconds": 86400,
            "channels": ["webhook", "mail"],
        },
    ),
}

PART = Part(
    "info",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/info",
            name="show_info",
            summary="Show what the service offers to the caller",
            handler=info,
            rule=GET,
            render=lambda shown: {"info": shown},
            answers={200: an_object({"info": ref("Info")})},
            caching=Caching.NONE,
        ),
    ),
    rules=(GET,),
    components=COMPONENTS,
)
