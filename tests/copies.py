# SPDX-License-Identifier: Apache-2.0
"""What a store keeps of the calendar in memory must answer as the tables do, whatever was done before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.occupancy import Occupancy
from blazar.manager.requests.capacity import compute_capacity
from blazar.manager.requests.visible_resources import Visible
from blazar.model.base.clock import to_second
from blazar.model.base.moments import Duration
from blazar.model.base.service_info import ReadBounds
from blazar.model.base.window import Window
from blazar.model.calendar.views import RESOURCE_MEASURE, CapacityQuestion, Viewer
from blazar.model.resources.resource import GENERIC, KINDS, VOLUME, KindShape, ResourceKind
from blazar.store.calendar.kept import Seen
from blazar.store.calendar.looks import CalendarLook, look_at_range, look_at_window
from blazar.store.calendar.uses import UsesView
from blazar.store.sql.tables import allocations
from blazar.store.store import Store

HOUR = timedelta(hours=1)
AHEAD = (timedelta(0), 5 * HOUR)
"""When the windows begin that are compared: now, with those who are late, and later."""


def check_copies(store: Store, *, now: datetime) -> None:
    """Check each kind, in one snapshot: what is taken, how often, the room beside, what is free over time.

    And that no generation is newer."""
    begin, cleaning = to_second(now), store.calendar.cleaning_time
    for kind in (*KINDS, GENERIC, VOLUME):
        held = {allocation.lease_id for allocation in store.calendar.load_live(kind)}
        with store.kept_calendars.open([kind], now) as seen:
            assert kind in seen.calendars
            read = replace(seen, calendars={})
            ids = [resource.id for resource in seen.catalogs[kind].resources]
            known, found = seen.generations(kind, ids), read.generations(kind, ids)
            # A write that changed no use may have raised one: that costs a lost race, and never a newer one's promise.
            assert all(known[id_] <= found[id_] for id_ in ids)
            for besides in ((), sorted(held)[:1]):
                for ahead in AHEAD:
                    window = Window(begin + ahead, begin + ahead + 2 * HOUR)
                    for whole in (True, False):
                        compare(seen, read, CalendarLook(kind, window, whole, now, frozenset(besides), cleaning))
            for measure in (RESOURCE_MEASURE, "VCPU"):
                compare_capacity(seen, kind, measure, max(now, _latest_change(seen.connection)))


def compare(seen: Seen, read: Seen, asked: CalendarLook) -> None:
    """Compare what is kept with what is read: of a window, and of the same as a part of a range."""
    assert describe(look_at_window(seen, asked)) == describe(look_at_window(read, asked)), asked
    ours, theirs = (look_at_range(either, asked).occupancy(*asked.span) for either in (seen, read))
    assert describe(ours) == describe(theirs), asked


def _latest_change(connection: Connection) -> datetime:
    """Return when something was last given or taken back: who looks at it does so later."""
    a = allocations.c
    found = connection.execute(sa.select(sa.func.max(a.added_at), sa.func.max(a.released_at))).one()
    return max((instant for instant in found if instant is not None), default=datetime.min.replace(tzinfo=UTC))


def compare_capacity(seen: Seen, kind: ResourceKind, measure: str, now: datetime) -> None:
    """Compare how much is free over time, in steps of which some have begun."""
    catalog = seen.catalogs[kind]
    if measure != RESOURCE_MEASURE and not any(r.capacity.get(measure) for r in catalog.resources):
        return
    viewer = Viewer("p", names=True, owners=True, private=True)
    question = CapacityQuestion(viewer, step=Duration(seconds=420), measure=measure)
    window = Window(to_second(now) - HOUR, to_second(now) + 8 * HOUR)
    kept, read = (
        compute_capacity(
            question,
            UsesView(seen.connection, catalog, kind, calendar),
            Visible(catalog, KindShape("resource", "resources"), viewer),
            window,
            now,
            ReadBounds(),
        )
        for calendar in (seen.calendars[kind], None)
    )
    assert kept == read


def describe(occupancy: Occupancy) -> tuple[object, ...]:
    """Return what an occupancy says; nobody reads the room beside what is taken."""
    room = {id_: gap for id_, gap in occupancy.room.items() if id_ not in occupancy.taken}
    return occupancy.taken, dict(occupancy.peaks.items()), room
