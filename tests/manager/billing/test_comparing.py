# SPDX-License-Identifier: Apache-2.0
"""A dry run of a price list says what the last month would have cost by it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.billing.charges import NANO
from blazar.model.billing.comparison import MonthComparison
from blazar.model.billing.statements import CorrectionRequest
from blazar.model.leases.requests import Actor
from blazar.store.sql.tables import charges
from tests.cases import cases
from tests.manager.billing.ledger import HOUR, PRICES, act, publish, rows
from tests.manager.billing.test_random_lives import Life
from tests.statements import counted
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host

MAY = datetime(2030, 5, 2, tzinfo=UTC)
OLGA = Actor("olga", "operators")
COMPARED = ("usage", "rounding_up", "fee")


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def compare(world: World, at: datetime = MAY, **more: Any) -> MonthComparison | None:
    """Charge all until an instant, and try a list."""
    world.run_to(at)
    while world.manager.closing.run_once():
        pass
    return world.manager.price_lists.publish({**PRICES, **more}, OLGA, dry_run=True).last_month


def amounts(found: MonthComparison | None) -> tuple[float, float]:
    assert found is not None
    return found.nano / NANO, found.new_nano / NANO


def test_of_a_month_without_charges_nothing_is_said(world):
    publish(world)
    act(world, world.lease, a_host(1), start=HOUR, hours=10)
    assert compare(world, NOON + 30 * HOUR) is None
    assert world.manager.price_lists.publish(PRICES, OLGA).last_month is None


def test_the_same_list_would_have_cost_the_same(world):
    publish(world, fee="5.00", round_up="PT45M", hours=[{"from": "09:00", "to": "14:00", "factor": "1.50"}])
    act(world, world.lease, a_host(2), start=HOUR, hours=10)
    found = compare(world, fee="5.00", round_up="PT45M", hours=[{"from": "09:00", "to": "14:00", "factor": "1.50"}])
    was, would_be = amounts(found)
    assert was == would_be > 20
    assert found is not None
    assert (str(found.month), found.leases, found.is_whole) == ("2030-04-01", 1, True)


def test_each_part_of_another_list_counts_whenever_it_would_be_published(world):
    publish(world, fee="5.00")
    act(world, world.lease, a_host(2), start=HOUR, hours=10)
    dear = [{"sku": "host-2031", "measure": "host", "per_hour": "3.00"}]
    assert amounts(compare(world, prices=dear)) == (25, 60)
    assert amounts(compare(world, prices=dear, fee="7.00", valid_from="2030-08-01T00:00:00Z")) == (25, 67)
    assert amounts(compare(world, projects=[{"project_id": "physics", "factor": "0.50"}])) == (25, 10)
    assert amounts(compare(world, prices=[{"sku": "ip", "measure": "floatingip", "per_hour": "3.00"}])) == (25, 0)


def test_prices_are_chosen_by_what_resources_have_now(a_world):
    world = a_world(register=False)
    world.register("node-1", gpu="A100")
    world.register("node-2")
    publish(world)
    act(world, world.lease, a_host(2), start=HOUR, hours=10)
    gpu = {"sku": "gpu", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "9.00"}
    assert amounts(compare(world, prices=[gpu, *PRICES["prices"]])) == (20, 100)


def test_projects_are_told_apart_and_what_was_corrected_is_in_no_sum(world):
    publish(world)
    act(world, world.lease, a_host(1), start=HOUR, hours=10)
    act(world, world.lease, a_host(1), start=HOUR, hours=5, project="computing")
    compare(world)
    world.manager.charges.correct(CorrectionRequest(1, -NANO, "the host was slow"))
    found = compare(world, prices=[{"sku": "host", "measure": "host", "per_hour": "2.00"}])
    assert found is not None
    assert [(one.project_id, one.nano / NANO, one.new_nano / NANO) for one in found.projects] == [
        ("computing", 5, 10),
        ("physics", 10, 20),
    ]


def test_a_lease_of_two_months_counts_with_its_part(world):
    publish(world)
    act(world, world.lease, a_host(1), start=HOUR, hours=40 * 24)
    whole = 29 * 24 + 11
    dear = [{"sku": "host", "measure": "host", "per_hour": "2.00"}]
    assert amounts(compare(world, prices=dear)) == (whole, 2 * whole)
    assert amounts(compare(world, datetime(2030, 6, 2, tzinfo=UTC), prices=dear)) == (960 - whole, 2 * (960 - whole))


def test_of_more_leases_than_there_is_time_for_it_is_said_how_many_were_looked_at(world):
    publish(world)
    for _ in range(3):
        act(world, world.lease, a_host(1), start=HOUR, hours=10)
    world.manager.price_lists.most_leases = 2
    found = compare(world)
    assert found is not None
    assert (found.leases, found.is_whole, amounts(found)) == (2, False, (20, 20))


def test_statements_do_not_grow_with_leases(world):
    publish(world)
    numbers = []
    for _ in range(3):
        act(world, world.lease, a_host(1), start=HOUR, hours=10)
    compare(world)
    for most in (1, 3):
        ids = world.store.recomputations.list_charged(datetime(2030, 4, 1, tzinfo=UTC).date(), most)
        with counted(world.engine) as found:
            world.store.recomputations.read(ids)
        numbers.append(len(found.texts))
    assert numbers[0] == numbers[1]
    with counted(world.engine) as found:
        compare(world)
    assert len(found.texts) <= 40


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=cases(100), deadline=None)
@given(st.integers(0, 10**6))
def test_whatever_became_of_leases_the_same_list_would_have_cost_the_same(tmp_path_factory, seed):
    engine = new_sqlite(tmp_path_factory.mktemp("life") / "lives.sqlite")
    try:
        life = Life(World(engine, hosts=6), seed)
        life.publish = lambda: None  # type: ignore[method-assign]
        life.live()
        month = life.world.clock.now()
        found = compare(life.world, datetime(2030, month.month + 1, 2, tzinfo=UTC), **life.lists[0])
        lines = [row for row in rows(life.world, charges) if row["month"].month == month.month]
        if found is not None:
            assert found.nano == sum(row["nano"] for row in lines if row["category"] in COMPARED)
            assert abs(found.nano - found.new_nano) <= 2 * len(lines)
    finally:
        engine.dispose()
