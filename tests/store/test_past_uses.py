# SPDX-License-Identifier: Apache-2.0
"""What is past and given back costs nothing: a calendar keeps years of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.store.calendar.uses import LeasesRead
from blazar.store.store import Store
from tests.statements import steps
from tests.store.builders import HOST, HOUR, NOON, a_host, booked, hours, taken
from tests.tables import new_sqlite

NOW = NOON + 1000 * HOUR
WINDOW = hours(999, 1010)


def book(store):
    taken(store, WINDOW, now=NOW)


def book_a_part(store):
    taken(store, WINDOW, whole=False, now=NOW)


def search(store):
    store.calendar.view_range({HOST: True}, WINDOW, now=NOW, besides=None)


def show(store):
    with store.calendar.view_uses(HOST) as view:
        view.read_uses(WINDOW, as_of=NOW, leases_read=LeasesRead.NONE)


@pytest.mark.slow
@pytest.mark.parametrize("act", [book, book_a_part, search, show])
def test_sqlite_reads_a_window_in_as_many_steps_whatever_is_past(tmp_path, act):
    engine = new_sqlite(tmp_path / "blazar.sqlite")
    store = Store(engine, cleaning_time=timedelta(minutes=30))
    host = a_host(store)
    counts = []
    for begin in (0, 20):
        for number in range(begin, begin + 20):
            lease = booked(store, hours(number, number + 1), host)
            store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON + (number + 1) * HOUR)
        with steps(engine) as done:
            act(store)
        counts.append(done.count)
    assert counts[0] == counts[1] > 0
    engine.dispose()
