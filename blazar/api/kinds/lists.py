# SPDX-License-Identifier: Apache-2.0
"""Lists of the resources of a kind and of their allocations from 1.1 on: in pages, for every kind.

A part of the API makes its routes with ``resource_list`` and ``allocation_list``, parts of other packages as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from blazar.api.answers import Answer, paged
from blazar.api.context import Call
from blazar.api.queries import filter_by, option, paging
from blazar.api.readers import Choice, Date, Text
from blazar.api.routes import Parameter, Root, Route, Rule
from blazar.api.shapes import COUNT, LEASE_ID, LINKS, NUMBER, RESERVATION_ID, TEXT, ZULU, Json, a_list, an_object, ref
from blazar.model.clock import zulu
from blazar.model.demand import ResourceAllocations
from blazar.model.paging import Position
from blazar.model.resource import Resource, ResourceKind
from blazar.model.resource_pages import AllocationQuestion, ResourceQuestion

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
    return paged(value if page.count is None else {**value, "count": page.count}, page.following)


def page_schema(key: str, item: Json) -> Json:
    """Return the schema of what ``page_answer`` returns."""
    return an_object({key: a_list(item), "count": NUMBER, "links": LINKS}, optional=("count",))


def itself(value: Json) -> Json:
    """Return what a handler has rendered already."""
    return value


def list_row(key: str, item: Json, **row: Any) -> Route:
    """Return the row of a list in pages, whose handler returns a ``page_answer``."""
    row = {"root": Root.V1, "method": "GET", "since": (1, 1), **row}
    return Route(render=itself, answers={200: page_schema(key, item)}, **row)


def resource_list(
    kind: ResourceKind,
    key: str,
    shown: Callable[[Resource], Json],
    *,
    item: Json,
    sort_keys: Sequence[str],
    parameters: Sequence[Parameter] = (),
    fields: Sequence[str] = (),
    **row: Any,
) -> Route:
    """Return the row of the list of a kind, by default sorted by the first of the keys.

    ``key`` is that of the list in the answer, ``item`` the schema of what ``shown`` returns, ``fields`` the keys that
    can be asked for. Besides filters ``parameters`` may be ``requirement`` and ``text``.
    """

    def index(call: Call) -> Answer:
        found = call.manager.resources.page(kind, resource_question(call, sort_keys[0]))
        return page_answer(key, [call.asked.only(shown(each)) for each in found.items], found)

    row["parameters"] = (*parameters, *paging(sort_keys, fields=fields))
    return list_row(key, item, handler=index, **row)


CONDITION = filter_by(
    "condition", Choice(("ok", "disabled", "failed")), "ok, disabled or failed; both may hold (operators)"
)
TROUBLES = (
    filter_by(
        "condition",
        Choice(("ok", "disabled", "disabled_without_end", "failed")),
        "ok, disabled, disabled without a date until when, or failed; several may hold (operators)",
    ),
    option("maintenance_before", Date(), "those in a maintenance window now or some time before it (operators)"),
)
"""Filters by what is wrong with a resource: up to 1.2, and from 1.3 on."""


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
    **row: Any,
) -> Route:
    """Return the row of the list of the resources of a kind with their allocations; items are ``ALLOCATION``.

    ``kind`` may be read from the parameters of the path, which are among ``parameters`` then.
    """

    def index(call: Call, **path: str) -> Answer:
        found = call.manager.resources.allocation_page(
            kind(path) if callable(kind) else kind,
            AllocationQuestion(call.asked.page(sort_keys[0]), call.asked.conditions),
        )
        return page_answer("allocations", [allocation(each) for each in found.items], found)

    row["parameters"] = (*parameters, *NARROWING, *paging(sort_keys))
    return list_row("allocations", ref(ALLOCATION), handler=index, rule=rule, **row)


NARROWING = (
    filter_by("lease_id", Text(1, 64), "only allocations of this lease, past ones too"),
    filter_by("reservation_id", Text(1, 64), "only allocations of this reservation, past ones too"),
)
"""Filters of allocations; resources that are left with none are listed all the same."""


NARROWED = tuple(option(each.name, Text(1, 64), each.description) for each in NARROWING)
"""The same for the allocations of one resource."""


def allocations_of(call: Call, kind: ResourceKind, resource_id: str) -> ResourceAllocations:
    """Return the allocations of one resource, of those of a lease or reservation past ones, too."""
    given = {each.name: call.asked.one(each.name) for each in NARROWED if call.asked.one(each.name) is not None}
    return call.manager.resources.allocations(kind, resource_id=resource_id, **given)[0]


def allocation(value: ResourceAllocations) -> Json:
    """Render a resource with its allocations; several instances of a reservation on it are one of that count."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for each in value.allocations:
        dates = zulu(each.window.start), zulu(each.window.end)
        counts[each.reservation_id, each.lease_id, *dates] += each.count
    return {
        "resource_id": value.resource.external_id,
        "reservations": [
            {"id": id_, "lease_id": lease_id, "start_date": start, "end_date": end, "count": count}
            for (id_, lease_id, start, end), count in counts.items()
        ],
    }
