# SPDX-License-Identifier: Apache-2.0
"""A turn that was written by a clock that has gone back since is taken at once, whatever the work is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.due_work import TurnWork
from blazar.manager.common.settings import Settings
from blazar.model.energy.book import EnergyTerms
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.store.sql.tables import turns
from tests.manager.billing.ledger import publish
from tests.world import World

SECOND, TTL, AHEAD = timedelta(seconds=1), timedelta(seconds=30), timedelta(days=2)
WORKS = {
    "energy": lambda manager: manager.energy_work,
    "power": lambda manager: manager.power_work[0],
    "preemption": lambda manager: manager.preemption_work,
    "recomputation": lambda manager: manager.recomputation,
}


@pytest.fixture
def world(a_world) -> World:
    power = PowerSettings(PowerMode.DRY_RUN)
    settings = Settings(claim_ttl=TTL, power=power, preemption_notice=timedelta(minutes=5))
    world = a_world(hosts=1, settings=settings, energy=EnergyTerms(records=True, asks_adapters=True))
    publish(world)
    return world


@pytest.fixture(params=sorted(WORKS))
def work(request, world) -> TurnWork:
    """A work whose turn was done a moment ago."""
    work = WORKS[request.param](world.manager)
    assert work.run_once() == 1
    return work


def put(world, **values):
    """Write when the only turn there is is due, and who has it."""
    with world.engine.begin() as connection:
        assert connection.execute(turns.update().values(**values)).rowcount == 1


def next_turn(world):
    with world.engine.connect() as connection:
        return connection.execute(turns.select()).one().due_at


def test_all_works_that_have_turns_are_here(world):
    here = {type(find(world.manager)) for find in WORKS.values()}
    assert here == set(TurnWork.__subclasses__())


def test_one_that_is_due_later_than_any_turn_is_taken_at_once(world, work):
    now = world.clock.now()
    assert now < next_turn(world) <= now + work.every
    put(world, due_at=now + AHEAD)
    assert work.run_once() == 1
    assert next_turn(world) <= now + work.every
    assert work.run_once() == 0


def test_one_that_may_be_due_so_late_is_waited_for(world, work):
    latest = world.clock.now() + work.every + TTL
    put(world, due_at=latest)
    assert work.run_once() == 0
    put(world, due_at=latest + SECOND)
    assert work.run_once() == 1


def test_one_that_another_manager_has_is_left_to_it(world, work):
    put(world, due_at=world.clock.now() + AHEAD, claimed_by="another")
    assert work.run_once() == 0
