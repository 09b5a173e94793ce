# SPDX-License-Identifier: Apache-2.0
"""Lists of the resources of a kind and of their allocations from 1.1 on: in pages, for every kind.

Parts of other packages make rows with ``list_row`` and ``allocation_list``, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.bodies import Schema
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import filter_by, option, paging
from blazar.api.http.readers import Choice, Date, Text
from blazar.api.http.routes import Parameter, Root, Route, Rule
from blazar.api.http.shapes import (
    COUNT,
    LEASE_ID,
    LINKS,
    NUMBER,
    RESERVATION_ID,
    TEXT,
    ZULU,
    Json,
    a_list,
    an_object,
    ref,
)
from blazar.model.base.clock import zulu
from blazar.model.base.paging import Position
from blazar.model.calendar.allocations import AllocationQuestion, ResourceAllocations
from blazar.model.resources.pages import ResourceQuestion
from blazar.model.resources.resource import ResourceKind

ALLOCATION = "Allocation1_1"
COMPONENTS: Json = {
    ALLOCATION: an_object(
        {
            "resource_id": {**TEXT, "description": "the id of the resource"},
            "reservations": a_list(
                an_object(
                    {
                        "id": TEXT,
                        "lease_id": TEXT,
                        "start_date": ZULU,
                        "end_date": ZULU,
                        "count": {**COUNT, "description": "how many servers are promised; 1 for the whole resource"},
                    }
                )
            ),
        },
        example={
            "resource_id": "12",
            "reservations": [
                {
                    "id": RESERVATION_ID,
                    "lease_id": LEASE_ID,
                    "start_date": "2030-04-01T08:00:00Z",
                    "end_date": "2030-04-01T20:00:00Z",
                    "count": 3,
                }
            ],
        },
    ),
}
ALLOCATION_UPDATE: Schema = {
    "type": "object",
    "required": ["reservation_id"],
    "additionalProperties": False,
    "properties": {
        "reservation_id": {
            "type": "string",
            "maxLength": 255,
            "description": "the id of the reservation to move to another resource",
        }
    },
}
"""The schema of a request to ``move_reservation``."""


class _Page(Protocol):
    """A page of a list, without its items."""

    @property
    def following(self) -> Position | None:
        """The position of the last item, if another page follows."""

    @property
    def count(self) -> int | None:
        """The number of the items of all pages, if asked for."""


def page_answer(key: str, items: Sequence[Json], page: _Page) -> Answer:
    """Return the answer for a page: rendered items under a key, their count if asked for, and links."""
    value: Json = {key: list(items)}
    return link_pages(value if page.count is None else {**value, "count": page.count}, page.following)


def page_schema(key: str, item: Json) -> Json:
    """Return the schema of what ``page_answer`` returns."""
    return an_object({key: a_list(item), "count": NUMBER, "links": LINKS}, optional=("count",))


def list_row(key: str, item: Json, **row: Any) -> Route:
    """Return the row of a list in pages, whose handler returns a ``page_answer``."""
    row = {"root": Root.V1, "method": "GET", "since": (1, 1), **row}
    return Route(answers={200: page_schema(key, item)}, **row)


TROUBLES = (
    filter_by(
        "condition",
        Choice(("ok", "disabled", "disabled_without_end", "failed")),
        "ok, disabled, disabled without a date until when, or failed; several may hold (operators)",
    ),
    option("maintenance_before", Date(), "those in a maintenance window now or some time before it (operators)"),
)
"""Filters by what is wrong with a resource."""


def resource_question(call: Call, sort_key: str) -> ResourceQuestion:
    """Return what the query of a list asks, by default in the order of this key."""
    asked = call.asked
    requirement: Any = asked.one("requirement")
    return ResourceQuestion(
        asked.page(sort_key),
        (*asked.conditions, *asked.all("property")),
        None if requirement is None else json.dumps(requirement),
        asked.one("text"),
        asked.one("maintenance_before"),
    )


def allocation_list(
    kind: ResourceKind | Callable[[Mapping[str, str]], ResourceKind],
    *,
    sort_keys: Sequence[str],
    rule: Rule,
    parameters: Sequence[Parameter] = (),
    by_property: bool = False,
    **row: Any,
) -> Route:
    """Return the row of the list of the resources of a kind with their allocations; items are ``ALLOCATION``.

    ``kind`` may be read from the parameters of the path, which are among ``parameters`` then. ``by_property``: also
    any property gives the order.
    """

    def index(call: Call, **path: str) -> Answer:
        found = call.manager.resources.allocation_page(
            kind(path) if callable(kind) else kind,
            AllocationQuestion(call.asked.page(sort_keys[0]), call.asked.conditions),
        )
        return page_answer("allocations", [allocation(allocations) for allocations in found.items], found)

    row["parameters"] = (*parameters, *NARROWING, *paging(sort_keys, by_property=by_property))
    return list_row("allocations", ref(ALLOCATION), handler=index, rule=rule, **row)


NARROWING = (
    filter_by("lease_id", Text(1, 64), "only allocations of this lease, past ones too"),
    filter_by("reservation_id", Text(1, 64), "only allocations of this reservation, past ones too"),
)
"""Filters of allocations; resources that are left with none are listed all the same."""


NARROWED = tuple(option(parameter.name, Text(1, 64), parameter.description) for parameter in NARROWING)
"""The same for the allocations of one resource."""


def allocations_of(call: Call, kind: ResourceKind, resource_id: str) -> ResourceAllocations:
    """Return the allocations of one resource, of those of a lease or reservation past ones, too."""
    given = {p.name: call.asked.one(p.name) for p in NARROWED if call.asked.one(p.name) is not None}
    return call.manager.resources.allocations(kind, resource_id=resource_id, **given)[0]


def move_reservation(call: Call, kind: ResourceKind, resource_id: str) -> ResourceAllocations:
    """Move the reservation that the body names from a resource to another; return what the resource has left."""
    call.manager.resources.one(kind, resource_id)
    return call.manager.resources.move(kind, resource_id, identifier(call.body()["reservation_id"]))


def allocation(value: ResourceAllocations) -> Json:
    """Render a resource with its allocations; several instances of a reservation on it are one of that count."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for allocated in value.allocations:
        dates = zulu(allocated.window.start), zulu(allocated.window.end)
        counts[allocated.reservation_id, allocated.lease_id, *dates] += allocated.count
    return {
        "resource_id": value.resource.external_id,
        "reservations": [
            {"id": id_, "lease_id": lease_id, "start_date": start, "end_date": end, "count": count}
            for (id_, lease_id, start, end), count in counts.items()
        ],
    }
