# SPDX-License-Identifier: Apache-2.0
"""What hosts draw for a lease costs something, where the price list says so: to the last of nine decimals."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.context import scope
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.paging import Page
from blazar.model.billing.charges import MOST_NANO, NANO
from blazar.model.billing.price_lists import parse_price_list
from blazar.model.leases.details import LeaseFilter, LeaseState
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.sql.tables import charges, findings, planned
from tests.cases import cases
from tests.manager.billing.ledger import HOUR, PRICES, act, close, expected, publish, rows
from tests.manager.billing.test_energy_of_charges import OVER, TERMS, record
from tests.manager.health.steps import look
from tests.prices import a_document
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, instances

POWER = {"sku": "power", "measure": "kwh", "per_kwh": "0.301234"}


def with_power(power: dict[str, Any] = POWER, **more: Any) -> dict[str, Any]:
    return {"prices": [*PRICES["prices"], power], **more}


@pytest.fixture
def world(a_world) -> World:
    return rated(a_world(hosts=4, energy=TERMS))


def rated(world: World) -> World:
    """Return a world whose hosts draw 300 W at half of their load."""
    for host in world.store.resources.catalog(HOST).resources:
        sheet = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(sheet))
    return world


def energy(world: World) -> list[Any]:
    return [row for row in rows(world, charges) if row["category"] == "energy"]


def test_what_hosts_drew_is_charged_by_the_kilowatt_hour(world):
    publish(world, **with_power(pue="1.5"))
    record(world, {1: 100, 2: 300})
    world.lease(a_host(2), start=HOUR, hours=2)
    close(world, OVER)
    (line,) = energy(world)
    assert (line["sku"], line["wh"], line["factor"], line["version"]) == ("power", 800, "1.5", 1)
    # 0.8 kWh × 1.5 × 0.301234.
    assert (line["unit_nano"], line["nano"]) == (301_234_000, 361_480_800)


def test_what_hosts_drew_costs_as_much_as_a_ledger_can_keep_however_far_above_its_estimate(world):
    """A meter that tells too much must not keep an account open for ever; its line says how much that was."""
    publish(world, **with_power({**POWER, "per_kwh": "99999999"}))
    record(world, {1: 10**6, 2: 10**6})
    world.lease(a_host(2), start=HOUR, hours=2)
    close(world, OVER)
    (line,) = energy(world)
    assert (line["wh"], line["unit_nano"], line["nano"]) == (4 * 10**6, 99_999_999 * NANO, MOST_NANO)
    assert rows(world, planned) == []
    world.run_to(world.clock.now() + 24 * HOUR)
    world.manager.recomputation.run_once()
    assert rows(world, findings) == []


def test_a_lease_whose_energy_would_cost_more_than_a_ledger_can_keep_is_refused(world):
    publish(world, **with_power({**POWER, "per_kwh": "999999999"}))
    with pytest.raises(InvalidInput, match="which cannot be charged"):
        world.lease(a_host(2), start=HOUR, hours=20)


def test_a_lease_of_which_nothing_is_measured_costs_what_was_quoted(world):
    publish(world, **with_power(fee="5.00"))
    world.lease(a_host(2), start=HOUR, hours=10)
    assert expected(world) == pytest.approx(5 + 20 + 2 * 3 * 0.301234)
    close(world, OVER)
    assert sum(row["nano"] for row in rows(world, charges)) == round((25 + 6 * Fraction(301234, 10**6)) * NANO)
    assert rows(world, planned) == []


def told(world: World, lease: Any) -> tuple[str, str, str | None]:
    """Return what a lease is told to cost in all, what of that was charged, and what is expected of energy."""
    price = world.manager.leases.details(lease.id).price
    assert price is not None
    return price.amount, price.charged, price.estimated


def test_of_a_lease_that_is_booked_is_told_what_energy_is_expected_to_cost_until_that_is_charged(world):
    publish(world, **with_power(fee="5.00"))
    lease = world.lease(a_host(2), start=HOUR, hours=10)
    assert told(world, lease) == ("26.81", "0.00", "1.81")
    (listed,) = world.manager.leases.page(LeaseFilter(LeaseState.ALL, with_prices=True), Page(9, "created_at")).items
    assert listed.price.estimated == "1.81"
    world.run_to(NOON + 3 * HOUR)
    longer = world.manager.leases.change(lease.id, LeaseChange(end=NOON + 21 * HOUR, dry_run=True))
    assert (longer.price.estimated, longer.price.difference) == ("3.61", "21.81")
    close(world, OVER)
    assert told(world, lease) == ("26.81", "26.81", None)


def test_what_was_drawn_and_is_not_told_yet_is_an_estimate_still(world):
    publish(world, **with_power())
    lease = world.lease(a_host(2), start=HOUR, hours=2)
    close(world, NOON + 3 * HOUR + timedelta(minutes=1))
    assert told(world, lease) == ("4.36", "0.00", "0.36")


def test_servers_pay_the_share_of_their_host(world):
    publish(world, **with_power())
    world.lease(instances(2, vcpus=2), start=HOUR, hours=10)
    estimate = expected(world)
    close(world, OVER)
    (line,) = energy(world)
    assert line["nano"] == line["wh"] * 301_234
    assert abs(estimate - sum(row["nano"] for row in rows(world, charges)) / NANO) < 0.001


def test_only_the_factor_of_the_project_holds_for_energy_and_nothing_is_rounded_up(world):
    factors = {
        "hours": [{"factor": "3"}],
        "lead": [{"below": "P99D", "factor": "5"}],
        "amount": [{"above": 1, "factor": "7"}],
        "unused": "2",
        "projects": [{"project_id": "physics", "factor": "0.5"}],
        "minimum": "P1D",
    }
    publish(world, **with_power(**factors))
    world.lease(a_host(2), start=HOUR, hours=10)
    close(world, OVER)
    (line,) = energy(world)
    assert (line["factor"], line["wh"], line["nano"]) == ("0.5", 6000, 6000 * 301_234 // 2)


def test_what_was_not_drawn_costs_nothing_also_if_what_is_given_back_does(world):
    publish(world, **with_power(early_return="1", cancellation=[{"share": "1"}]))
    used, cancelled = (world.lease(a_host(1), start=HOUR, hours=10) for _ in range(2))
    act(world, world.manager.leases.delete, cancelled.id)
    world.run_to(NOON + 3 * HOUR)
    act(world, world.change, used, end=NOON + 5 * HOUR)
    close(world, OVER)
    (line,) = energy(world)
    assert (line["wh"], line["nano"]) == (1200, 1200 * 301_234)
    assert sum(row["nano"] for row in rows(world, charges)) == 20 * NANO + line["nano"]


def test_a_later_list_holds_for_what_is_booked_by_it_alone(world):
    publish(world, **with_power())
    lease = world.lease(a_host(1), start=HOUR, hours=3)
    world.run_to(NOON + HOUR)
    publish(world, NOON + HOUR / 2, **with_power({**POWER, "per_kwh": "1.00"}))
    act(world, world.change, lease, end=NOON + 9 * HOUR)
    close(world, OVER)
    assert [(row["version"], row["wh"], row["nano"]) for row in energy(world)] == [
        (1, 900, 900 * 301_234),
        (2, 1500, 1500 * 1_000_000),
    ]


def test_what_a_host_draws_that_is_missing_is_told_and_not_charged(world):
    publish(world, **with_power())
    lease = world.lease(a_host(4), start=HOUR, hours=10)
    world.run_to(NOON + 3 * HOUR)
    host = min(world.hosts_of(lease))
    world.simulated.operators.host_down(host)
    look(world, 4)
    world.run_to(NOON + 5 * HOUR)
    world.simulated.operators.host_up(host)
    look(world, 4)
    close(world, OVER)
    assert sorted((row["status"], row["sku"], row["wh"], row["nano"]) for row in energy(world)) == [
        ("lost", None, 600, 0),
        ("used", "power", 11_400, 11_400 * 301_234),
    ]


def test_each_host_may_have_its_own_price_and_one_that_none_fits_is_free(world):
    own = {**POWER, "requirement": ["==", "$hypervisor_hostname", "node-1"]}
    publish(world, **with_power(own))
    world.lease(a_host(4), start=HOUR, hours=1)
    close(world, OVER)
    assert sorted((row["sku"] or "", row["wh"], row["nano"]) for row in energy(world)) == [
        ("", 900, 0),
        ("power", 300, 300 * 301_234),
    ]


def test_hosts_without_a_data_sheet_are_quoted_without_energy_and_pay_what_is_measured(a_world):
    world = a_world(hosts=1, energy=TERMS)
    publish(world, **with_power())
    record(world, {1: 100, 2: 300})
    world.lease(a_host(1), start=HOUR, hours=2)
    assert expected(world) == 2
    close(world, OVER)
    assert [row["nano"] for row in energy(world)] == [400 * 301_234]


def test_a_list_with_a_price_of_energy_is_refused_where_nothing_is_recorded(a_world):
    world = a_world(hosts=1)
    document = a_document(prices=[POWER])
    with pytest.raises(InvalidInput) as refused:
        world.manager.price_lists.publish(document, Actor("olga", "operators"))
    assert refused.value.message == (
        "prices[0].measure is kwh, and what hosts draw is not recorded here; set [energy] enabled = true for all "
        "managers first, or leave this price out"
    )
    assert refused.value.pointer == "/prices/0/measure"


@pytest.mark.parametrize(
    ("price", "sentence"),
    [
        (
            {"measure": "kwh", "per_hour": "1"},
            "prices[0].per_kwh is missing; the needed fields are: sku, measure, per_kwh",
        ),
        (
            {"measure": "host", "per_kwh": "1"},
            "prices[0].per_hour is missing; the needed fields are: sku, measure, per_hour",
        ),
        (
            {"measure": "host", "per_hour": "1", "per_kwh": "1"},
            "prices[0].per_kwh is unknown; the allowed fields are: sku, measure, per_hour, requirement",
        ),
    ],
)
def test_energy_has_a_price_of_a_kilowatt_hour_and_all_else_one_of_an_hour(price, sentence):
    with pytest.raises(InvalidInput) as refused:
        parse_price_list(a_document(prices=[{"sku": "s", **price}]), version=1, published_at=NOON)
    assert refused.value.message == sentence


def test_a_dry_run_says_what_the_energy_of_last_month_would_have_cost(world):
    publish(world)
    world.lease(a_host(2), start=HOUR, hours=10)
    close(world, OVER)
    world.run_to(NOON + 31 * 24 * HOUR)
    document = {**PRICES, **with_power(pue="2")}
    last = world.manager.price_lists.publish(document, Actor("olga", "operators"), dry_run=True).last_month
    assert (last.nano, last.new_nano) == (20 * NANO, 20 * NANO + 2 * 6000 * 301_234)


def test_a_price_of_energy_that_is_not_what_was_charged_or_lost_is_a_problem(world):
    publish(world, **with_power())
    world.lease(a_host(2), start=HOUR, hours=10)
    close(world, OVER)
    (line,) = energy(world)

    def differs(change: Any) -> bool:
        with world.engine.begin() as connection:
            connection.execute(change)
        world.run_to(world.clock.now() + 24 * HOUR)
        world.manager.recomputation.run_once()
        return bool(rows(world, findings))

    of_line = charges.c.id == line["id"]
    assert differs(charges.update().where(of_line).values(wh=5000))
    assert not differs(charges.update().where(of_line).values(wh=line["wh"]))
    assert differs(charges.delete().where(of_line))
    assert not differs(charges.insert().values(**line))


class Life:
    """A life of some leases with all that their owners do, and the watts of hosts that change with each hour."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, random.Random(seed)
        digits = self.random.randint(1, 9_999_999)
        self.price = f"{digits // 10**6}.{digits % 10**6:06}"
        world.run_to(NOON - HOUR)
        publish(world, **with_power({**POWER, "per_kwh": self.price}))
        if self.random.random() < 0.7:
            record(world, {hour: self.random.randint(50, 500) for hour in range(48) if self.random.random() < 0.8})
        # Of one project all leases can be split and merged.
        self.leases = [
            act(world, world.lease, a_host(1), a_host(self.random.randint(1, 2)), start=NOON + 2 * HOUR, hours=20)
            for _ in range(2)
        ]

    def live(self) -> None:
        for hour in sorted(self.random.sample(range(20), 4)):
            self.world.run_to(NOON + hour * HOUR + self.random.choice([0, 60, 1234]) * HOUR / 3600)
            if self.random.random() < 0.3:
                close(self.world)
            # What is refused at that time changes nothing.
            with suppress(InvalidInput, Conflict):
                self.random.choice([self.split, self.merge, self.transfer, self.shorten])()
        close(self.world, NOON + 50 * HOUR)
        while self.world.manager.closing.run_once():
            pass

    def split(self) -> None:
        lease = self.world.now(self.leases[0])
        if len(lease.reservations) > 1:
            parts = (PartRequest(lease.reservations[-1].id),)
            terms = Terms(Actor("curie", lease.project_id))
            self.world.manager.surgery.split(lease.id, SplitRequest(parts, None, "more"), terms)

    def merge(self) -> None:
        first, second = map(self.world.now, self.leases)
        if first.project_id == second.project_id and first.window == second.window and not second.deleted_at:
            terms = Terms(Actor("curie", first.project_id))
            self.world.manager.surgery.merge(first.id, MergeRequest(second.id), terms)
            self.leases = [self.leases[0], self.leases[0]]

    def transfer(self) -> None:
        lease = self.world.now(self.leases[1])
        taker = "biology" if lease.project_id == "physics" else "physics"
        self.world.manager.transfers.offer(lease.id, OfferRequest(taker), Terms(Actor("curie", lease.project_id)))
        self.world.manager.transfers.accept(lease.id, Terms(Actor("ivan", taker)))

    def shorten(self) -> None:
        lease = self.world.now(self.random.choice(self.leases))
        end = self.world.clock.now().replace(second=0) + 2 * HOUR
        if lease.window.start + HOUR < end < lease.window.end:
            with scope(actor=Actor("curie", lease.project_id)):
                self.world.change(lease, end=end)


@settings(max_examples=cases(100), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_the_energy_of_lives_costs_its_kilowatt_hours_times_the_price_to_the_last_decimal(tmp_path_factory, seed):
    engine = new_sqlite(tmp_path_factory.mktemp("life") / "life.sqlite")
    try:
        world = rated(World(engine, hosts=8, energy=TERMS))
        life = Life(world, seed)
        life.live()
        lines = energy(world)
        kwh = sum(Decimal(row["wh"]) for row in lines) / 1000
        assert sum(Decimal(row["nano"]) for row in lines) / NANO == kwh * Decimal(life.price)
        assert kwh > 0
        assert {row["sku"] for row in lines} == {"power"}
        world.run_to(world.clock.now() + 24 * HOUR)
        world.manager.recomputation.run_once()
        assert rows(world, findings) == []
    finally:
        engine.dispose()
