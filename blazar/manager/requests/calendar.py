# SPDX-License-Identifier: Apache-2.0
"""The calendar as users and operators see it: pages of resources with what is promised of them.

Nothing that the caller may not see leaves this module: uses of others are merged, and names are replaced by labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from blazar.calendar.blocks import Use, blocks_for_member, blocks_for_operator, out_of_use
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.capacity import capacity
from blazar.manager.requests.pages import page_of
from blazar.manager.requests.properties import summaries
from blazar.manager.requests.ranges import window_of
from blazar.manager.requests.visible import Visible, kind_of
from blazar.model.calendar import (
    CalendarPage,
    CalendarQuestion,
    CalendarRow,
    Capacity,
    CapacityQuestion,
    PropertySummaries,
    Viewer,
)
from blazar.model.maintenance import MaintenanceBlock
from blazar.model.paging import Page, Position
from blazar.model.resource import Resource, ResourceKind
from blazar.model.window import Window
from blazar.resources.kinds import CompleteKind
from blazar.store.use_reads import Whose


class CalendarService:
    """Answers questions about the calendar, each from one snapshot of the database."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, CompleteKind]) -> None:
        self._calendar = runtime.store.calendar
        self._clock = runtime.clock
        self._types = runtime.types
        self._kinds = kinds
        self._bounds = runtime.settings.reads

    def page(self, question: CalendarQuestion) -> CalendarPage:
        """Return a page of the calendar, in at most five statements. InvalidInput."""
        now, viewer = self._clock.now(), question.viewer
        window = window_of(question.range, now, self._bounds, operator=viewer.owners)
        kind = kind_of(question.resource_type, self._types, self._kinds)
        with self._calendar.over_time(kind) as view:
            visible = Visible(view.catalog, self._kinds[kind].shape, viewer)
            found = visible.matching(question.requirement)
            if question.resources is not None:
                found = _named(found, frozenset(question.resources), visible)
            if question.occupied:
                ids = view.occupied_by(viewer.project_id, window, as_of=now)
                found = [resource for resource in found if resource.id in ids]
            shown, following = _paged(found, question.page, visible)
            uses = view.uses(
                window,
                as_of=now,
                whose=Whose.ALL if viewer.owners else Whose.OF_PROJECT,
                project_id=viewer.project_id,
                resource_ids=[resource.id for resource in shown],
            )
            closed = view.closed(window)
        rows = tuple(
            _row(each, uses.by_resource.get(each.id, ()), closed.get(each.id, ()), window, viewer, visible)
            for each in shown
        )
        used = {block.lease_id for row in rows for block in row.blocks}
        leases = {id_: lease for id_, lease in uses.leases.items() if id_ in used}
        return CalendarPage(now, window, rows, leases, following, len(found) if question.page.with_count else None)

    def capacity(self, question: CapacityQuestion) -> Capacity:
        """Return how much is free over time, in three statements. InvalidInput."""
        now = self._clock.now()
        window = window_of(question.range, now, self._bounds, operator=question.viewer.owners)
        kind = kind_of(question.resource_type, self._types, self._kinds)
        with self._calendar.over_time(kind) as view:
            visible = Visible(view.catalog, self._kinds[kind].shape, question.viewer)
            return capacity(question, view, visible, window, now, self._bounds)

    def properties(self, viewer: Viewer, resource_type: str) -> PropertySummaries:
        """Return the properties of the resources that serve a type, with their values; one statement. InvalidInput."""
        kind = kind_of(resource_type, self._types, self._kinds)
        with self._calendar.over_time(kind) as view:
            return summaries(Visible(view.catalog, self._kinds[kind].shape, viewer), self._bounds)


def _named(found: Sequence[Resource], names: frozenset[str], visible: Visible) -> list[Resource]:
    """Return the resources that are named by label, or by id if ids are shown."""
    return [each for each in found if each.label in names or (visible.has_names and each.external_id in names)]


def _paged(found: Sequence[Resource], page: Page, visible: Visible) -> tuple[list[Resource], Position | None]:
    """Return the resources of a page, and the position of the last one if there are more."""
    if page.sort_key != "name":
        visible.check_keys([page.sort_key], "sort_key")
    return page_of(found, page, value_of=lambda each: visible.sort_value(each, page.sort_key), id_of=visible.id_of)


def _row(
    resource: Resource,
    uses: Sequence[Use],
    closed: Sequence[MaintenanceBlock],
    window: Window,
    viewer: Viewer,
    visible: Visible,
) -> CalendarRow:
    blocks = out_of_use(resource, window, closed, reasons=viewer.owners)
    blocks += blocks_for_operator(uses, window) if viewer.owners else blocks_for_member(uses, window)
    return CalendarRow(
        id=visible.id_of(resource),
        kind=resource.kind,
        label=resource.label if viewer.names else None,
        name=resource.name if visible.has_names else None,
        reservable=resource.reservable,
        capacity=resource.capacity,
        properties=visible.properties_of(resource),
        blocks=tuple(sorted(blocks, key=_start)),
    )


def _start(block: Any) -> datetime:
    start: datetime = block.start
    return start
