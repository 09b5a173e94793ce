# SPDX-License-Identifier: Apache-2.0
"""The calendar as users and operators see it: pages of resources with what is promised of them.

Nothing that the caller may not see leaves this module: uses of others are merged, and names are replaced by labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter

from blazar.calendar.blocks import Use, blocks_for_member, blocks_for_operator, list_out_of_use
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.capacity import compute_capacity
from blazar.manager.requests.resource_lists import page_of
from blazar.manager.requests.visible_resources import Visible, find_kind
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.paging import Page, Position
from blazar.model.base.service_info import ReadBounds
from blazar.model.base.window import Window, check_order
from blazar.model.calendar.views import (
    Block,
    CalendarPage,
    CalendarQuestion,
    CalendarRow,
    Capacity,
    CapacityQuestion,
    PropertySummaries,
    PropertySummary,
    PropertyValueCount,
    Range,
    Viewer,
    number_of,
    order_of,
)
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.resource import PropertyValue, Resource, ResourceKind
from blazar.resources.contract.kind import Kind
from blazar.store.calendar.uses import LeasesRead


def summarize_properties(visible: Visible, bounds: ReadBounds) -> PropertySummaries:
    """Return the properties that the caller may see, with their values on the resources open to its project.

    Of more values than the bounds allow the most frequent are shown.
    """
    counts: dict[str, Counter[PropertyValue]] = defaultdict(Counter)
    for resource in visible.open_to_project():
        known = resource.properties
        for name in visible.keys & known.keys():
            if known[name] is not None:
                counts[name][known[name]] += 1
    return PropertySummaries(
        tuple(
            _summarize(name, counts[name], visible.is_private(name), bounds.property_values)
            for name in sorted(counts)[: bounds.properties]
        )
    )


def _summarize(name: str, counts: Counter[PropertyValue], private: bool, most: int) -> PropertySummary:
    numbers = [number for number in map(number_of, counts) if number is not None]
    is_number = len(numbers) == len(counts)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], order_of(item[0])))[:most]
    values = [
        PropertyValueCount(number_of(value) if is_number else value, count)
        for value, count in sorted(frequent, key=lambda item: order_of(item[0]))
    ]
    return PropertySummary(
        name,
        private,
        is_number,
        tuple(values),
        truncated=len(counts) > most,
        minimum=min(numbers) if is_number else None,
        maximum=max(numbers) if is_number else None,
    )


class CalendarService:
    """Answers questions about the calendar, each from one snapshot of the database."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._calendar = runtime.store.calendar
        self._clock = runtime.clock
        self._types = runtime.types
        self._kinds = kinds
        self._bounds = runtime.settings.reads

    def page(self, question: CalendarQuestion) -> CalendarPage:
        """Return a page of the calendar, in at most five statements. InvalidInput."""
        now, viewer = self._clock.now(), question.viewer
        window = read_window(question.range, now, self._bounds, operator=viewer.owners)
        kind = find_kind(question.resource_type, self._types, self._kinds)
        with self._calendar.view_uses(kind) as view:
            visible = Visible(view.catalog, self._kinds[kind].shape, viewer)
            found = visible.matching(question.requirement)
            if question.resources is not None:
                found = _select_named(found, frozenset(question.resources), visible)
            if question.occupied:
                ids = view.find_occupied(viewer.project_id, window, as_of=now)
                found = [resource for resource in found if resource.id in ids]
            shown, following = _cut_page(found, question.page, visible)
            uses = view.read_uses(
                window,
                as_of=now,
                leases_read=LeasesRead.ALL if viewer.owners else LeasesRead.OF_PROJECT,
                project_id=viewer.project_id,
                resource_ids=[resource.id for resource in shown],
            )
            closed = view.read_closed(window)
        rows = tuple(
            _make_row(r, uses.by_resource.get(r.id, ()), closed.get(r.id, ()), window, viewer, visible) for r in shown
        )
        used = {block.lease_id for row in rows for block in row.blocks}
        leases = {id_: lease for id_, lease in uses.leases.items() if id_ in used}
        return CalendarPage(now, window, rows, leases, following, len(found) if question.page.with_count else None)

    def capacity(self, question: CapacityQuestion) -> Capacity:
        """Return how much is free over time, in at most four statements. InvalidInput."""
        now = self._clock.now()
        window = read_window(question.range, now, self._bounds, operator=question.viewer.owners)
        kind = find_kind(question.resource_type, self._types, self._kinds)
        with self._calendar.view_kept(kind, now) as view:
            visible = Visible(view.catalog, self._kinds[kind].shape, question.viewer)
            return compute_capacity(question, view, visible, window, now, self._bounds)

    def properties(self, viewer: Viewer, resource_type: str) -> PropertySummaries:
        """Return the properties of the resources that serve a type, with their values; one statement. InvalidInput."""
        kind = find_kind(resource_type, self._types, self._kinds)
        with self._calendar.view_uses(kind) as view:
            return summarize_properties(Visible(view.catalog, self._kinds[kind].shape, viewer), self._bounds)


def _select_named(found: Sequence[Resource], names: frozenset[str], visible: Visible) -> list[Resource]:
    """Return the resources that are named by label, or by id if ids are shown."""
    return [r for r in found if r.label in names or (visible.has_names and r.external_id in names)]


def _cut_page(found: Sequence[Resource], page: Page, visible: Visible) -> tuple[list[Resource], Position | None]:
    """Return the resources of a page, and the position of the last one if there are more."""
    if page.sort_key != "name":
        visible.check_keys([page.sort_key], "sort_key")
    return page_of(found, page, value_of=lambda r: visible.sort_value(r, page.sort_key), id_of=visible.id_of)


def _make_row(
    resource: Resource,
    uses: Sequence[Use],
    closed: Sequence[MaintenanceBlock],
    window: Window,
    viewer: Viewer,
    visible: Visible,
) -> CalendarRow:
    out_of_use = list_out_of_use(resource, window, closed, reasons=viewer.owners)
    blocks = blocks_for_operator(uses, window) if viewer.owners else blocks_for_member(uses, window)
    return CalendarRow(
        id=visible.id_of(resource),
        kind=resource.kind,
        label=resource.label if viewer.names else None,
        name=resource.name if visible.has_names else None,
        reservable=resource.reservable,
        capacity=resource.capacity,
        properties=visible.properties_of(resource),
        blocks=tuple(sorted(out_of_use + blocks, key=_START) if out_of_use else blocks),
    )


_START = itemgetter(Block._fields.index("start"))


DEFAULT_LENGTH = timedelta(days=14)


def read_window(asked: Range, now: datetime, bounds: ReadBounds, *, operator: bool) -> Window:
    """Return the window that is meant. InvalidInput names the parameter ``from`` or ``to``."""
    second, back = to_second(now), bounds.back_for(operator=operator)
    latest = second + bounds.ahead
    start = _read_instant(asked.start, "from", second, second)
    if start < second - back:
        raise _beyond("from", f"from is {zulu(start)}, before the earliest date, {zulu(second - back)}", back)
    longest = start + bounds.longest_range
    if asked.end is None:
        if start >= latest:
            raise _beyond("from", f"from is {zulu(start)}, not before the latest date, {zulu(latest)}", bounds.ahead)
        return Window(start, min(start + DEFAULT_LENGTH, longest, latest))
    end = _read_instant(asked.end, "to", second, start)
    check_order(start, end)
    if end > latest:
        raise _beyond("to", f"to is {zulu(end)}, after the latest date, {zulu(latest)}", bounds.ahead)
    if end > longest:
        raise _beyond(
            "to", f"to is {zulu(end)}, too long after from; the latest is {zulu(longest)}", bounds.longest_range
        )
    return Window(start, end)


def _read_instant(asked: Moment | Duration | None, name: str, now: datetime, base: datetime) -> datetime:
    if asked is None or asked is NOW:
        return now
    if isinstance(asked, Duration):
        try:
            return asked.after(base)
        except (OverflowError, ValueError):
            raise InvalidInput(f"{name} is beyond the last date", code="out_of_bounds", at=query_field(name)) from None
    assert isinstance(asked, datetime)
    return asked


def _beyond(name: str, sentence: str, most: timedelta) -> InvalidInput:
    maximum = {"maximum": int(most.total_seconds())}
    return InvalidInput(sentence, code="out_of_bounds", at=query_field(name), data=maximum)
