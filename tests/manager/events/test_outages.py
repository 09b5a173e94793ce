# SPDX-License-Identifier: Apache-2.0
"""A minute without a database, or without writes, is a handful of lines in the log of a manager."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.manager.common.background import BackgroundThread
from blazar.manager.service import ManagerService
from blazar.model.base.log_lines import Trouble
from tests.world import World, a_series

HANDFUL = 6


def parts_of(manager: ManagerService) -> list[BackgroundThread]:
    """Return all threads of a manager, wherever they are kept."""
    found: dict[int, BackgroundThread] = {}
    left: list[object] = list(vars(manager).values())
    while left:
        each = left.pop()
        if isinstance(each, BackgroundThread):
            found[id(each)] = each
        elif isinstance(each, tuple | list):
            left += each
        elif isinstance(each, dict):
            left += each.values()
    return list(found.values())


@pytest.fixture
def seconds(world) -> list[float]:
    """Let all trouble of a manager and of its database be measured by this clock."""
    now = [1000.0]
    threads = parts_of(world.manager)
    assert len(threads) >= 10, threads
    transactions = world.store.transactions
    troubles = [each._trouble for each in threads] + [transactions._unreadable, transactions._unwritable]
    for each in troubles:
        assert isinstance(each, Trouble)
        each._clock = lambda: now[0]
    return now


@pytest.fixture
def world(a_world) -> World:
    world = a_world()
    world.waits = True
    world.lease(start=timedelta(minutes=1))
    world.lease(start=timedelta(minutes=1))
    world.manager.series.create(a_series())
    return world


class Broken:
    """A database whose statements fail; ``writes_only``: that can be read."""

    def __init__(self, engine, *, writes_only: bool) -> None:
        self._engine = engine
        self._writes_only = writes_only
        sa.event.listen(engine, "before_cursor_execute", self._fail)

    def mend(self) -> None:
        sa.event.remove(self._engine, "before_cursor_execute", self._fail)

    def _fail(self, connection, cursor, statement, *_) -> None:
        if not self._writes_only or not statement.lstrip().upper().startswith(("SELECT", "BEGIN", "WITH")):
            raise sa.exc.OperationalError(statement, (), Exception("database or disk is full"))


@pytest.mark.slow
@pytest.mark.parametrize("writes_only", [False, True], ids=["no database", "no writes"])
def test_a_minute_of_it_is_a_handful_of_lines(world, seconds, caplog, writes_only):
    caplog.set_level(logging.INFO)
    caplog.clear()
    world.clock.to(world.clock.now() + timedelta(minutes=2))
    broken = Broken(world.engine, writes_only=writes_only)
    for _ in range(120):
        for thread in parts_of(world.manager):
            try:
                thread._round()
            except Exception as error:
                thread._failed(error)
            else:
                thread._trouble.log_recovery()
        seconds[0] += 0.5
        world.clock.to(world.clock.now() + timedelta(seconds=0.5))
    broken.mend()
    seconds[0] += 5
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert any("disk is full" in line for line in lines), lines
    assert len(lines) <= HANDFUL, "\n".join(lines)
