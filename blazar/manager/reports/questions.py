# SPDX-License-Identifier: Apache-2.0
"""What questions for reports have in common: the period, and a property of resources."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from blazar.manager.requests.visible_resources import Visible, no_such_property
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.moments import DayOrMoment, instant_of
from blazar.model.base.window import Window, check_order
from blazar.model.calendar.views import Viewer
from blazar.model.reports.periods import start_of_month
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind
from blazar.store.store import Store

LONGEST = timedelta(days=31, hours=1)
"""A month, also one in which clocks are set back."""


LONGEST_ON_RECORD = timedelta(days=3660)
"""The longest period of what is on record by days."""


def read_period(
    start: DayOrMoment | None,
    end: DayOrMoment | None,
    zone: ZoneInfo,
    now: datetime,
    *,
    longest: timedelta = LONGEST,
) -> Window:
    """Return the period that is meant, by default the month until ``end``. InvalidInput names ``from`` or ``to``."""
    until = now if end is None else instant_of(end, zone, now)
    since = start_of_month(until, zone) if start is None else instant_of(start, zone, now)
    check_order(since, until)
    if until - since > longest:
        apart = (until - since).days
        raise _too_long(f"from and to are {apart} days apart; a report has at most {longest.days} days", longest)
    return Window(since, until)


def check_live(window: Window, length: timedelta, run: tuple[date, date] | None = None) -> Window:
    """Return a window if what of it is not on record by days is not too long. InvalidInput says what is: the run."""
    if length > LONGEST:
        known = "none of the days" if run is None else f"{run[0]} to {run[1]}"
        raise _too_long(
            f"from and to have {length.days} days that are not on record as such, of which a report has at most "
            f"{LONGEST.days}; the record has {known}, and operators can add days with blazar-manage reports recompute",
            LONGEST,
        )
    return window


def _too_long(sentence: str, longest: timedelta) -> InvalidInput:
    return InvalidInput(
        sentence,
        code="out_of_bounds",
        at=query_field("to"),
        data={"maximum": int(longest.total_seconds())},
    )


def read_property(store: Store, kinds: Mapping[ResourceKind, Kind], name: str, viewer: Viewer) -> Mapping[int, str]:
    """Return the values of a property by resource, by calendar id. InvalidInput if the viewer knows none such.

    One statement for each kind.
    """
    found: dict[int, str] = {}
    known = False
    for kind, described in kinds.items():
        with store.calendar.view_uses(kind) as view:
            visible = Visible(view.catalog, described.shape, viewer)
            if name in visible.keys:
                known = True
                for resource in view.catalog.resources:
                    if (value := resource.properties.get(name)) is not None:
                        found[resource.id] = str(value)
    if not known:
        raise no_such_property([name], "property")
    return found
