# SPDX-License-Identifier: Apache-2.0
"""The clock of a service with one machine is set forward, or back: no second is charged twice, and none is told twice.

Several machines have the clock of their database, whatever theirs say.
"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest

from blazar.model.base.errors import BlazarError
from blazar.model.leases.requests import Actor
from blazar.model.surgery import PartRequest, SplitRequest, Terms
from blazar.store.sql.tables import accounts as accounts_table
from blazar.store.sql.tables import charges, findings
from tests.cases import cases
from tests.manager.billing.ledger import CURIE, HOUR, close, rows
from tests.manager.billing.test_energy_of_charges import TERMS
from tests.manager.billing.test_untold_energy import IVAN, a_site, draw, give
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host

MINUTE = timedelta(minutes=1)
OVER = NOON + 40 * HOUR


@pytest.fixture
def world(a_world) -> World:
    world = a_site(a_world(hosts=4, energy=TERMS))
    draw(world, NOON, 300, hours=48)
    return world


def spans_of(world: World, category: str) -> dict[str, list[tuple[datetime, datetime]]]:
    """Return the spans of charges by reservation, in the order of time."""
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows(world, charges):
        if row["category"] == category:
            found[row["reservation_id"]].append((row["starts_at"], row["ends_at"]))
    return {id_: sorted(spans) for id_, spans in found.items()}


def check_once(world: World) -> None:
    """Each second is charged, and told, at most once; and nothing is found to differ from that."""
    for category in ("usage", "energy"):
        for spans in spans_of(world, category).values():
            assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False)), (category, spans)
    assert all(row["due_at"] is None for row in rows(world, accounts_table))
    world.run_to(world.clock.now() + 48 * HOUR)
    world.manager.recomputation.run_once()
    assert rows(world, findings) == []


@pytest.mark.parametrize("taker", [CURIE, Actor("turing", "computing")])
def test_what_was_charged_before_the_clock_went_back_nobody_pays_again(world, taker):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    give(world, lease.id)
    world.clock.by(minutes=-10)
    give(world, lease.id, IVAN, taker)
    close(world, OVER)
    check_once(world)
    (energy,) = spans_of(world, "energy").values()
    assert energy == [(NOON + HOUR, NOON + 125 * MINUTE), (NOON + 125 * MINUTE, NOON + 5 * HOUR)]
    assert sum(row["wh"] for row in rows(world, charges) if row["category"] == "energy") == 4 * 300
    assert sum(row["nano"] for row in rows(world, charges) if row["category"] == "usage") == 4 * 10**9


def test_a_split_after_the_clock_went_back_charges_nothing_again(world):
    lease = world.lease(a_host(1), a_host(1), start=HOUR, hours=4)
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    give(world, lease.id)
    world.clock.by(minutes=-10)
    lease = world.now(lease)
    parts = (PartRequest(lease.reservations[-1].id),)
    world.manager.surgery.split(lease.id, SplitRequest(parts, None, "second"), Terms(IVAN))
    close(world, OVER)
    check_once(world)
    assert sum(row["wh"] for row in rows(world, charges) if row["category"] == "energy") == 2 * 4 * 300


def test_an_hour_that_the_clock_skips_is_charged_and_told_as_any_other(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    world.clock.by(hours=1)
    give(world, lease.id)
    close(world, OVER)
    check_once(world)
    assert sum(row["wh"] for row in rows(world, charges) if row["category"] == "energy") == 4 * 300


@pytest.mark.parametrize("seed", range(cases(60)))
def test_whatever_is_done_while_the_clock_jumps_each_second_is_charged_and_told_at_most_once(seed, tmp_path):
    dice = random.Random(seed)
    world = a_site(World(new_sqlite(tmp_path / "blazar.sqlite"), hosts=4, energy=TERMS))
    draw(world, NOON, 300, hours=48)
    leases = [world.lease(a_host(1), a_host(1), start=HOUR, hours=dice.randint(1, 5)).id for _ in range(2)]
    for _ in range(12):
        world.run_to(world.clock.now() + dice.randint(1, 50) * MINUTE)
        try:
            id_ = dice.choice(leases)
            lease = world.now_of(id_)
            owner = Actor("someone", lease.project_id)
            match dice.choice(("give", "give", "split", "close", "end", "delete")):
                case "give":
                    give(world, id_, owner, dice.choice((CURIE, IVAN)))
                case "split":
                    asked = SplitRequest((PartRequest(lease.reservations[-1].id),), None, "second")
                    leases.append(world.manager.surgery.split(id_, asked, Terms(owner)).leases[1].lease.id)
                case "close":
                    world.manager.closing.run_once()
                case "end":
                    world.change(lease, end=lease.window.end + dice.randint(-60, 60) * MINUTE)
                case "delete" if dice.random() < 0.3:
                    world.manager.leases.delete(id_)
        except BlazarError:
            continue
        finally:
            world.clock.by(minutes=dice.choice((0, 0, -10, -3, 60)))
    for id_ in leases:
        if world.now_of(id_).deleted_at is None:
            world.manager.leases.delete(id_)
    close(world, OVER)
    world.manager.closing.run_once()
    check_once(world)
