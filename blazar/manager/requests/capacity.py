# SPDX-License-Identifier: Apache-2.0
"""How much is free over time, by property: what a heat map and planning need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from blazar.calendar.blocks import list_out_of_use
from blazar.calendar.capacity import Steps, Supply, compute_series, count_totals, join_series
from blazar.calendar.curves import Counted, Group, PromisedCurves
from blazar.calendar.kept import Span
from blazar.calendar.timeline import epoch, from_epoch
from blazar.manager.requests.visible_resources import Visible, no_such_property
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.moments import Duration
from blazar.model.base.service_info import ReadBounds
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.views import PROJECT_GROUP, RESOURCE_MEASURE, Capacity, CapacityQuestion, CapacitySeries
from blazar.model.resources.resource import Resource
from blazar.store.calendar.uses import LeasesRead, UsesView
from blazar.store.resources.catalog import ResourceCatalog

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
    groups = _find_groups(question, view, found, keys, measure)
    _check_size(len(groups.totals), step, window, bounds)
    steps = Steps(epoch(window.start), epoch(window.end), int(step.total_seconds()))
    shown = _compute_steps(question, view, groups, steps, now)
    if PROJECT_GROUP in question.group_by:
        _check_size(len(shown), step, window, bounds)
    return Capacity(now, window, step, tuple(shown))


@dataclass(frozen=True, slots=True)
class _Groups:
    """The resources of a catalog that are counted; those among them that take no new leases for a reason of today."""

    catalog: ResourceCatalog
    counted: Mapping[int, Counted]
    totals: Mapping[Group, int]
    doubtful: Sequence[Resource]
    promised: PromisedCurves


def _find_groups(
    question: CapacityQuestion, view: UsesView, found: Sequence[Resource], keys: Sequence[str], measure: str | None
) -> _Groups:
    """Return the resources that are counted, with what is promised of them if that is kept."""
    viewer, kept, catalog = question.viewer, view.kept, view.catalog
    # Others are told of the same resources, if all are open to all.
    reader = viewer.project_id if catalog.restricted and not viewer.private else None
    key = ("capacity", question.requirement, reader, tuple(keys), measure)
    known: _Groups | None = None if kept is None else kept.derived.find(key)
    if known is None or known.catalog is not catalog:
        counted = {
            resource.id: (
                tuple(map(resource.properties.get, keys)),
                1 if measure is None else resource.capacity.get(measure),
            )
            for resource in found
        }
        doubtful = tuple(resource for resource in found if not resource.reservable)
        promised = PromisedCurves(measure) if known is None else known.promised
        known = _Groups(catalog, counted, count_totals(counted), doubtful, promised)
    if kept is not None:
        known = replace(known, promised=known.promised.follow(known.counted, kept.resources))
        kept.derived.keep(key, known)
    return known


def _compute_steps(
    question: CapacityQuestion, view: UsesView, groups: _Groups, steps: Steps, now: datetime
) -> list[CapacitySeries]:
    """Return the series: of steps that have begun from what is read, of others from what is kept, if it is."""
    by_project = PROJECT_GROUP in question.group_by
    if view.kept is None or by_project:
        return _compute_read(question, view, groups, steps, now)
    begun, ahead = steps.split(epoch(now))
    shown = [] if begun is None else _compute_read(question, view, groups, begun, now)
    if ahead is None:
        return shown
    out = _list_out(groups, ahead, view.kept.closed)
    following = compute_series(Supply(groups.counted, groups.totals, out, groups.promised), ahead, question.group_by)
    return following if begun is None else join_series(shown, following)


def _compute_read(
    question: CapacityQuestion, view: UsesView, groups: _Groups, steps: Steps, now: datetime
) -> list[CapacitySeries]:
    """Return the series from what is read: two statements."""
    by_project, window = PROJECT_GROUP in question.group_by, _window_of(steps)
    closed = {
        id_: [(epoch(block.window.start), epoch(block.window.end)) for block in blocks]
        for id_, blocks in view.read_closed(window).items()
    }
    uses = view.read_uses(
        window,
        as_of=now,
        leases_read=LeasesRead.ALL if by_project else LeasesRead.NONE,
        resource_ids=groups.counted.keys(),
    )
    supply = Supply.of_uses(
        groups.counted,
        _list_out(groups, steps, closed),
        uses.by_resource,
        groups.promised.measure,
        by_project=by_project,
    )
    return compute_series(supply, steps, question.group_by)


def _list_out(groups: _Groups, steps: Steps, closed: Mapping[int, Sequence[Span]]) -> Mapping[int, Sequence[Span]]:
    """Return when resources are out of use, in maintenance or for a reason of today, by resource."""
    found: dict[int, list[Span]] = {id_: list(spans) for id_, spans in closed.items()}
    window = _window_of(steps)
    for resource in groups.doubtful:
        for block in list_out_of_use(resource, window, reasons=False):
            end = steps.end if block.end is None else epoch(block.end)
            found.setdefault(resource.id, []).append((epoch(block.start), end))
    return found


def _window_of(steps: Steps) -> Window:
    return Window(from_epoch(steps.start), from_epoch(steps.end))


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
