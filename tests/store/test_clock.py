# SPDX-License-Identifier: Apache-2.0
"""The clock that managers share."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from blazar.model.base.clock import SystemClock
from blazar.store.sql.clock import DatabaseClock


class Wrong(SystemClock):
    """The clock of a machine that nobody has set."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=15)


def difference(one: datetime, other: datetime) -> float:
    return abs((one - other).total_seconds())


def test_managers_on_machines_whose_clocks_differ_agree_on_the_time(engine, caplog):
    wrong, right = DatabaseClock(engine, Wrong()), DatabaseClock(engine, SystemClock())
    with caplog.at_level(logging.WARNING):
        for clock in (wrong, right):
            for _ in range(2):
                clock.synchronize()
    if engine.dialect.name == "sqlite":
        # A file has no clock of its own, and only one machine.
        assert difference(wrong.now(), right.now()) > 14
        return
    assert difference(wrong.now(), right.now()) < 1
    assert difference(wrong.now(), datetime.now(UTC)) < 5
    (told,) = [record.getMessage() for record in caplog.records if "differs from" in record.getMessage()]
    assert "15 s" in told


def test_without_a_reading_the_machines_own_clock_counts(sqlite):
    clock = DatabaseClock(sqlite, SystemClock())
    clock.synchronize()
    assert difference(clock.now(), datetime.now(UTC)) < 5


def test_elapsed_seconds_never_go_back_and_a_clock_that_is_set_forward_makes_them_more(monkeypatch):
    boot, wall = [100.0], [1000.0]
    monkeypatch.setattr("blazar.model.base.clock.monotonic", lambda: boot[0])
    monkeypatch.setattr("blazar.model.base.clock.time.time", lambda: wall[0])
    clock = SystemClock()
    boot[0] += 5
    wall[0] += 5
    assert clock.elapsed() == 5
    # The machine was paused: one clock stood still, the other was set when it went on.
    wall[0] += 60
    assert clock.elapsed() == 65
    # Set back: that takes nothing away.
    boot[0] += 1
    wall[0] -= 3600
    assert clock.elapsed() == 66
