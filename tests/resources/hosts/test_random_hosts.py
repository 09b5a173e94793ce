# SPDX-License-Identifier: Apache-2.0
"""``randomize_host_selection``, from the file to the hosts that leases get."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from blazar.cmd import config
from blazar.manager.booking.booking import PlacementRequest, Selectable, plan_allocations
from blazar.manager.common.settings import Settings
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import HOST
from tests.tables import new_sqlite
from tests.world import PROJECT, World, a_host, a_series

HOUR = timedelta(hours=1)
HOSTS = 6


def settings(folder: Path, *, by_chance: bool, seed: int = 1) -> Settings:
    file = folder / "blazar.conf"
    file.write_text(f"[physical:host]\nrandomize_host_selection = {by_chance}\n", encoding="utf-8")
    read = config.manager_settings(config.load(["--config-file", str(file)], program="blazar-manager"))
    chance = random.Random(seed)
    return replace(read, patience=timedelta(0), claim_ttl=timedelta(seconds=30), seed=lambda: chance.getrandbits(32))


def new_lease(world: World) -> frozenset[str]:
    """Book a lease, delete it, and return the hosts that it had."""
    lease = world.lease(a_host(), start=24 * HOUR)
    hosts = world.hosts_of(lease)
    world.manager.leases.delete(lease.id)
    return hosts


def occurrence(world: World) -> frozenset[str]:
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=1"))
    (lease_id,) = (each.lease_id for each in made.occurrences)
    hosts = world.hosts_of(world.now_of(lease_id))
    world.manager.series.delete(made.series.id)
    return hosts


def in_use(world: World) -> None:
    """Let all hosts but one have leases beside the time that is asked for."""
    for number in range(HOSTS - 1):
        world.lease(a_host(), start=20 * HOUR - number * 2 * HOUR, hours=1)


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [lambda world: None, in_use], ids=["empty", "in use"])
@pytest.mark.parametrize("book", [new_lease, occurrence])
def test_hosts_are_chosen_by_chance_if_an_operator_wants_it(a_world, tmp_path, crowd, book):
    world = a_world(hosts=HOSTS, settings=settings(tmp_path, by_chance=True))
    crowd(world)
    assert len({book(world) for _ in range(12)}) > HOSTS / 2


@pytest.mark.parametrize("book", [new_lease, occurrence])
def test_without_the_option_the_choice_is_always_the_same(a_world, tmp_path, book):
    world = a_world(hosts=HOSTS, settings=settings(tmp_path, by_chance=False))
    in_use(world)
    assert len({book(world) for _ in range(4)}) == 1


@pytest.mark.slow
def test_the_choice_is_the_same_under_the_same_seed(tmp_path):
    def chosen(name: str, seed: int) -> list[frozenset[str]]:
        given = settings(tmp_path, by_chance=True, seed=seed)
        world = World(new_sqlite(tmp_path / f"{name}.sqlite"), hosts=HOSTS, settings=given)
        return [new_lease(world) for _ in range(6)]

    assert chosen("first", 7) == chosen("second", 7) != chosen("third", 8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("attempt", [0, 1, 5])
def test_another_attempt_is_by_chance_as_the_first_one_is(a_world, tmp_path, attempt):
    world = a_world(hosts=HOSTS, settings=settings(tmp_path, by_chance=True))
    in_use(world)
    now = world.clock.now()
    window = Window(now + 24 * HOUR, now + 25 * HOUR)
    request = PlacementRequest("r", Demand(kind=HOST, min_count=1, max_count=1))
    mine = Selectable(PROJECT)
    runtime = world.manager.leases._runtime
    runtime = world.manager.leases._runtime
    plans = [
        plan_allocations(runtime, "l", window, [request], selectable=mine, now=now, attempt=attempt) for _ in range(12)
    ]
    assert len({plan.allocations[0].resource_id for plan in plans}) > HOSTS / 2
