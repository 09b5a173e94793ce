# SPDX-License-Identifier: Apache-2.0
"""A timeline tells of each window what a booking of that window reads."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.engine import Engine

from blazar.calendar.occupancy import Occupancy
from blazar.calendar.timeline import epoch
from blazar.model.base.amounts import Amounts
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.store.store import Store, StoreLimits
from tests.statements import counted
from tests.store.builders import NOON, a_host, booked, hours

SMALL, LARGE = Amounts.of({"VCPU": 2}), Amounts.of({"VCPU": 3, "MEMORY_MB": 5})
NOW = NOON + timedelta(hours=4, microseconds=250)
CLEANING = timedelta(minutes=30)


@pytest.fixture
def store(engine: Engine) -> Store:
    """A calendar with whole and shared uses: past, late, present, beyond any range, one touching another."""
    store = Store(engine, cleaning_time=CLEANING)
    one, two, three, four = (a_host(store, number) for number in range(1, 5))
    a_host(store, 5)
    booked(store, hours(0, 2), one)  # late
    booked(store, hours(5, 6), one)
    booked(store, hours(20, 21), one)
    booked(store, hours(0, 1), two, per_instance=SMALL)  # late, shared
    booked(store, hours(2, 3.75), two, per_instance=SMALL)  # late, and still to be cleaned
    booked(store, hours(4.5, 8), two, per_instance=LARGE)
    booked(store, hours(6, 9), two, per_instance=SMALL)
    booked(store, hours(3, 4.25), three)
    booked(store, hours(9, 9.5), three, per_instance=SMALL)
    booked(store, hours(40, 41), three)
    booked(store, hours(30, 31), four, per_instance=SMALL)
    return store


def beside(occupancy: Occupancy) -> dict[int, timedelta]:
    """Return the gaps of what can be chosen: nobody reads those of what is taken, so that a range has none."""
    return {id_: gap for id_, gap in occupancy.room.items() if id_ not in occupancy.taken}


@pytest.mark.parametrize("without_amounts", [True, False])
@pytest.mark.parametrize("begin", [4, 5.5, 8])
@pytest.mark.parametrize("ends", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_every_window_of_a_range_is_as_a_booking_reads_it(
    store: Store, engine: Engine, without_amounts: bool, begin: float, ends: str
):
    # On a server each read takes long: the fast test reads every third end of each start there.
    step = 1 if ends == "all" or engine.dialect.name == "sqlite" else 3
    besides = booked(store, hours(6.5, 7), a_host(store, 6)).id
    whole = hours(begin, 12)
    view = store.calendar.view_range({HOST: without_amounts}, whole, now=NOW, besides=besides)
    reader = Store(engine, cleaning_time=CLEANING, limits=StoreLimits(kept_uses=0))
    assert view.catalogs[HOST].resources == store.resources.catalog(HOST).resources
    timeline = view.timelines[HOST]
    for start in range(int(begin * 4), 12 * 4):
        for end in range(start + 1, 12 * 4 + 1, step):
            window = hours(start / 4, end / 4)
            ours = timeline.occupancy(epoch(window.start), epoch(window.end))
            for other in (store, reader):
                with other.calendar.view_window(
                    HOST, window, without_amounts=without_amounts, now=NOW, besides=besides
                ) as read:
                    theirs = read.snapshot.occupancy
                    assert ours.taken == theirs.taken
                    assert dict(ours.peaks.items()) == dict(theirs.peaks.items())
                    assert beside(ours) == beside(theirs)


def test_statements_do_not_depend_on_leases(store: Store, engine: Engine):
    def cost() -> int:
        with counted(engine) as statements:
            store.calendar.view_range(
                {HOST: True, FLOATING_IP: True}, hours(4, 12), now=NOW, besides=None, use_of="physics"
            )
        return statements.count

    cost()
    few = cost()
    for number in range(20):
        booked(store, hours(4 + number / 4, 4 + number / 4 + 0.1), store.resources.catalog(HOST).resources[-1])
    # What this process has booked itself is not read.
    assert (cost(), cost()) == (few, few) == (4, 4)


def test_the_use_of_a_project_is_read_with_the_calendar(store: Store):
    window = hours(4, 12)
    view = store.calendar.view_range({HOST: True}, window, now=NOW, besides=None, use_of="physics", reach=window)
    assert view.use == store.calendar.read_project_use("physics", window, besides="", reach=window, now=NOW)
    assert len(view.use.leases) > 3
