# SPDX-License-Identifier: Apache-2.0
"""How much is free over time, by property: what a heat map and planning need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from blazar.calendar.blocks import list_out_of_use
from blazar.calendar.capacity import Supply, compute_series
from blazar.manager.requests.visible_resources import Visible, no_such_property
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.moments import Duration
from blazar.model.base.service_info import ReadBounds
from blazar.model.base.window import Window
from blazar.model.calendar.views import PROJECT_GROUP, RESOURCE_MEASURE, Capacity, CapacityQuestion
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.resource import Resource
from blazar.store.calendar.uses import LeasesRead, UsesView

USUAL_POINTS = 200

SHORTEST_STEP = timedelta(minutes=1)
STEPS = tuple(
    timedelta(minutes=number) for number in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7 * 1440, 14 * 1440)
)
"""Steps that are chosen if none is asked for."""


def compute_capacity(
    question: CapacityQuestion, view: UsesView, visible: Visible, window: Window, now: datetime, bounds: ReadBounds
) -> Capacity:
    """Return how much is free in a window, by group. InvalidInput names the parameter."""
    step = _read_step(question.step, window)
    found = visible.matching(question.requirement)
    keys = [key for key in question.group_by if key != PROJECT_GROUP]
    if PROJECT_GROUP in question.group_by and not question.viewer.owners:
        # Even if resources have a property of this name: the group is that of the leases.
        raise no_such_property([PROJECT_GROUP], "group_by", visible.noun)
    visible.check_keys(keys, "group_by")
    measure = None if question.measure == RESOURCE_MEASURE else question.measure
    if measure is not None and found and not any(resource.capacity.get(measure) for resource in found):
        raise InvalidInput(
            f"measure is {measure[:80]!r}; no resource has that class: give resource, or a class such as VCPU",
            code="invalid_query",
            at=query_field("measure"),
        )
    closed = view.read_closed(window)
    supplies = [_make_supply(resource, keys, window, measure, closed.get(resource.id, ())) for resource in found]
    _check_size(len({supply.group for supply in supplies}), step, window, bounds)
    uses = view.read_uses(
        window,
        as_of=now,
        leases_read=LeasesRead.ALL if PROJECT_GROUP in question.group_by else LeasesRead.NONE,
        resource_ids=[resource.id for resource in found],
    )
    shown = compute_series(supplies, uses.by_resource, window, step, keys=question.group_by, measure=measure)
    if PROJECT_GROUP in question.group_by:
        _check_size(len(shown), step, window, bounds)
    return Capacity(now, window, step, tuple(shown))


def _read_step(asked: Duration | None, window: Window) -> timedelta:
    if asked is None:
        return next((step for step in STEPS if window.duration <= USUAL_POINTS * step), STEPS[-1])
    step = asked.after(window.start) - window.start
    if step < SHORTEST_STEP:
        raise InvalidInput(
            f"step is {int(step.total_seconds())} s; give a duration of at least 60 s, such as 1h",
            code="invalid_query",
            at=query_field("step"),
        )
    return step


def _check_size(groups: int, step: timedelta, window: Window, bounds: ReadBounds) -> None:
    """Raise InvalidInput if there are too many groups, or too many points in all of them."""
    if groups > bounds.groups:
        raise InvalidInput(
            f"group_by makes {groups} groups, at most {bounds.groups} are shown; group by another property, or narrow "
            "the requirement",
            code="out_of_bounds",
            at=query_field("group_by"),
            data={"maximum": bounds.groups},
        )
    points = max(groups, 1) * -(-window.duration // step)
    if points > bounds.points:
        raise InvalidInput(
            f"step makes {points} points, at most {bounds.points} are shown; give a longer step, or a shorter range",
            code="out_of_bounds",
            at=query_field("step"),
            data={"maximum": bounds.points},
        )


def _make_supply(
    resource: Resource,
    keys: Sequence[str],
    window: Window,
    measure: str | None,
    closed: Sequence[MaintenanceBlock],
) -> Supply:
    out = list_out_of_use(resource, window, closed, reasons=False)
    properties = resource.properties
    return Supply(
        resource.id,
        tuple(properties.get(key) for key in keys),
        1 if measure is None else resource.capacity.get(measure),
        tuple((block.start, block.end or window.end) for block in out),
    )
