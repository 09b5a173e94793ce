# SPDX-License-Identifier: Apache-2.0
"""What hosts drew and emitted by the hour, on each database."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.model.base.errors import ClaimLost
from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.store.energy.book import EnergyStore
from blazar.store.sql.transactions import Transactions
from tests.statements import counted
from tests.world import NOON

AT = int(NOON.timestamp())
HOUR = 3600
DAY = Window(NOON, NOON + timedelta(days=1))


@pytest.fixture
def store(engine) -> EnergyStore:
    store = EnergyStore(Transactions(engine), EnergyTerms(records=True, tells_carbon=True, pue=Fraction(3, 2)))
    assert store.claim_turn("mine", now=NOON, until=NOON + timedelta(minutes=1))
    return store


def test_a_turn_that_is_due_later_than_any_is_due_now_unless_somebody_has_it(store):
    def recall(latest):
        store.recall_turn(now=NOON, latest=latest)
        return store.next_turn()

    minute, late = timedelta(minutes=1), NOON + timedelta(hours=1)
    assert recall(NOON) == NOON + minute, "another has it"
    store.record("mine", EnergyReading(), due_at=late)
    assert recall(late) == late
    assert recall(late - minute) == NOON


def test_what_is_written_again_stands_in_place_of_what_was(store):
    store.record("mine", EnergyReading([HostHour(1, AT, 5, 1), HostHour(2, AT, 6, 1), HostHour(1, AT + HOUR, 7, 1)]))
    store.record("mine", EnergyReading([HostHour(1, AT, 8, 2)]))
    assert set(store.list_hours(AT)) == {HostHour(1, AT, 8, 2), HostHour(2, AT, 6, 1)}
    assert store.list_hours(AT + HOUR) == (HostHour(1, AT + HOUR, 7, 1),)
    store.record("mine", EnergyReading(curve={AT: Fraction(320), AT + HOUR: Fraction(1, 3)}))
    store.record("mine", EnergyReading(curve={AT: Fraction(641, 2)}))
    assert store.read_curve(AT, AT + 9 * HOUR) == {AT: Fraction(641, 2), AT + HOUR: Fraction(333_333, 10**6)}


def test_a_book_has_the_hours_of_a_window_and_the_curve_of_the_week_before(store):
    store.record("mine", EnergyReading([HostHour(7, AT + hours * HOUR, 100, 1) for hours in (-1, 0, 24)]))
    store.record("mine", EnergyReading(curve={AT + days * 24 * HOUR: Fraction(9 + days) for days in (-8, -7, 0, 1)}))
    book = store.read_book({7}, DAY)
    assert book.host(7).meter.measured == {AT: 100}
    assert (dict(book.curve.values), book.pue) == ({AT - 7 * 24 * HOUR: 2, AT: 9}, Fraction(3, 2))
    assert store.read_book(None, DAY).hosts == book.hosts


def test_a_book_takes_three_statements_however_many_hosts_there_are(store, engine):
    store.record("mine", EnergyReading([HostHour(id_, AT, 100, 1) for id_ in range(1, 300)]))
    for ids in ({1}, set(range(1, 300)), None):
        with counted(engine) as statements:
            store.read_book(ids, DAY)
        assert statements.count == 3


def test_who_has_lost_the_turn_writes_nothing(store):
    assert store.claim_turn("theirs", now=NOON + timedelta(minutes=2), until=NOON + timedelta(minutes=3))
    with pytest.raises(ClaimLost):
        store.record("mine", EnergyReading([HostHour(1, AT, 5, 1)]))
    with pytest.raises(ClaimLost):
        store.record("mine", EnergyReading(curve={AT: Fraction(1)}))
    assert (store.list_hours(AT), dict(store.read_curve(0, 2 * AT))) == ((), {})


def test_what_is_old_is_dropped(store):
    store.record("mine", EnergyReading([HostHour(1, AT, 5, 1)]))
    store.record("mine", EnergyReading(curve={AT: Fraction(1)}))
    store.drop_old(now=NOON + timedelta(days=400))
    assert len(store.list_hours(AT)) == 1
    store.drop_old(now=NOON + timedelta(days=400, seconds=1))
    assert (store.list_hours(AT), dict(store.read_curve(0, 2 * AT))) == ((), {})
