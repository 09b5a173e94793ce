# SPDX-License-Identifier: Apache-2.0
"""Speed that stays: figures and their limits, what costs grow to, and what a simulation makes of them."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from bench import beside, prices, speed
from bench.model.costs import Cost, Point, fit
from bench.model.measure import measure
from bench.model.page import MIX, write_page
from bench.model.simulation import Cloud, simulate

SMALL = ((20, 40), (20, 400), (200, 400))


def cost_at(hosts: int, leases: int) -> Cost:
    """A cost of which each part has another law."""
    return Cost(5 + 0.02 * hosts, 0.01 * leases, 12, 0.5 * hosts + 0.9 * leases, 300)


def points(*names: str, sizes=((100, 1000), (100, 10_000), (1000, 10_000))) -> list[Point]:
    return [Point(name, hosts, leases, cost_at(hosts, leases)) for name in names for hosts, leases in sizes]


def test_a_law_is_found_and_read_beyond_what_was_measured():
    law = fit(points("create"))["create"]
    assert astuple(law.at(100_000, 1_000_000)) == pytest.approx(astuple(cost_at(100_000, 1_000_000)))


def test_what_became_less_by_chance_is_not_taken_to_go_on():
    small, large = Point("show", 10, 10, Cost(9, 9, 9, 9, 9)), Point("show", 10, 100, Cost(3, 3, 3, 3, 3))
    wide = Point("show", 100, 100, Cost(2, 2, 2, 0, 2))
    assert astuple(fit([small, large, wide])["show"].at(1000, 1000)) == (2, 2, 2, 0, 2)


def test_a_law_needs_points_in_both_directions():
    with pytest.raises(ValueError, match="create needs points that differ in hosts alone"):
        fit(points("create", sizes=((10, 10), (10, 100))))


CHEAP = {"show": Cost(10, 1, 1, 1, 1)}


def test_idle_managers_answer_in_the_time_of_the_work():
    day = simulate(Cloud(3, 4, users=1, think_s=10), CHEAP, {"show": 1}, seconds=20_000, seed=1)
    assert day.per_second == pytest.approx(1 / 10.011, rel=0.1)
    assert day.busy["managers"] == pytest.approx(0.1 * 0.010 / 3, rel=0.15)
    assert 0.004 < day.median_s < 0.012


def test_what_is_full_bounds_what_is_answered_and_is_said_to_break_first():
    day = simulate(Cloud(2, 4, users=1000, think_s=1), CHEAP, {"show": 1}, seconds=100, seed=1)
    assert day.per_second == pytest.approx(200, rel=0.05)
    assert day.bottleneck == "managers"
    assert day.median_s > 1


def test_replicas_relieve_the_database_of_what_only_reads():
    costs = {"show": Cost(1, 10, 1, 1, 1), "create": Cost(1, 10, 1, 1, 1)}
    alone, helped = (
        simulate(Cloud(10, 1, users=500, think_s=1, replicas=n), costs, {"show": 9, "create": 1}, seconds=100, seed=1)
        for n in (0, 4)
    )
    assert alone.bottleneck == "database"
    assert helped.per_second > 3 * alone.per_second
    assert helped.busy["database"] < alone.busy["database"]


def test_the_same_seed_gives_the_same_day():
    days = [simulate(Cloud(2, 2, 50, 1), CHEAP, {"show": 1}, seconds=20, seed=seed) for seed in (1, 1, 2)]
    assert days[0] == days[1] != days[2]


def test_a_page_has_each_size_and_each_cloud():
    page = write_page(points(*MIX), fit(points(*MIX)), "a machine")
    assert "Measured on a machine." in page
    assert "| create | 1 000 × 10 000 | 25.0 | 100.0 | 12 | 9500 | 0.3 |" in page
    assert "## 100 000 hosts and 1 000 000 leases" in page
    assert page.count("managers, ") >= 5


def test_a_figure_above_its_limit_is_named():
    figures = [speed.Held("sqlite", "this", 2.0, 2.0), speed.Held("sqlite", "that", 2.1, 2.0)]
    assert speed.list_exceeded(figures) == ["sqlite: that is 2.10, and 2.00 at most"]


def test_growth_is_the_exponent_of_ten_times_as_much():
    assert (speed.grow(5, 5), speed.grow(5, 50)) == (0, 1)


def test_pairs_of_runs_give_the_ratio_of_each_request_that_both_have():
    ours, theirs = [{"a": 2, "b": 1}, {"a": 3}, {"a": 40}], [{"a": 1, "c": 1}, {"a": 1}, {"a": 10}]
    assert beside.ratios(ours, theirs) == {"a": 3}


@pytest.mark.slow
def test_costs_are_measured():
    found = list(measure("sqlite", SMALL, samples=2))
    assert set(fit(found)) >= set(MIX)
    assert all(point.cost.cpu_ms > 0 and point.cost.statements > 0 and point.cost.bytes >= 0 for point in found)


@pytest.mark.slow
def test_each_figure_has_a_limit():
    figures = list(speed.measure("sqlite", hosts=20, leases=20, turns=2))
    assert {f.what for f in figures} >= {speed.RATIO, "statements of create", "growth of CPU of find a time"}
    assert [f.what for f in figures if f.limit == float("inf")] == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("base", ["sqlite", "postgresql"])
def test_no_figure_is_above_its_limit(base):
    assert speed.list_exceeded(list(speed.measure(base))) == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("base", ["sqlite", "postgresql"])
def test_prices_and_the_ledger_cost_no_more_than_their_share(base):
    assert prices.list_exceeded(base) == []
