# SPDX-License-Identifier: Apache-2.0
"""What a store keeps of the calendar in memory must answer as the tables do, whatever was done before."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.occupancy import Occupancy
from blazar.model.base.clock import to_second
from blazar.model.base.window import Window
from blazar.model.resources.resource import GENERIC, KINDS, VOLUME
from blazar.store.calendar.kept import Seen
from blazar.store.calendar.looks import CalendarLook, look_at_range, look_at_window
from blazar.store.store import Store

HOUR = timedelta(hours=1)
AHEAD = (timedelta(0), 5 * HOUR)
"""When the windows begin that are compared: now, with those who are late, and later."""


def check_copies(store: Store, *, now: datetime) -> None:
    """Check each kind, in one snapshot: what is taken, how often, the room beside; and that no generation is newer."""
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


def compare(seen: Seen, read: Seen, asked: CalendarLook) -> None:
    """Compare what is kept with what is read: of a window, and of the same as a part of a range."""
    assert describe(look_at_window(seen, asked)) == describe(look_at_window(read, asked)), asked
    ours, theirs = (look_at_range(either, asked).occupancy(*asked.span) for either in (seen, read))
    assert describe(ours) == describe(theirs), asked


def describe(occupancy: Occupancy) -> tuple[object, ...]:
    """Return what an occupancy says; nobody reads the room beside what is taken."""
    room = {id_: gap for id_, gap in occupancy.room.items() if id_ not in occupancy.taken}
    return occupancy.taken, dict(occupancy.peaks.items()), room
