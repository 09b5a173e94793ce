# SPDX-License-Identifier: Apache-2.0
"""Budgets of money: what the ledger has for a month and project stays within its limit."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.limits import MaxConcurrentLeasesFilter
from blazar.enforcement.spend import SpendFilter
from blazar.model.base.errors import UsageDenied
from blazar.model.billing.charges import NANO
from blazar.model.energy.book import EnergyTerms
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import journal
from tests.manager.billing.ledger import HOUR, act, charged, close, expected, publish, rows
from tests.manager.billing.ledger import PRICES as BY_HOUR
from tests.manager.billing.test_energy_of_charges import record
from tests.manager.subscriptions.test_delivery import tell
from tests.manager.subscriptions.test_mails import subscribe
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

MAY = datetime(2030, 5, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def a_world(engine, most: float | None, *, shares=(), **more) -> World:
    rule = SpendFilter(None if most is None else int(most * NANO))
    world = World(engine, hosts=6, filters=[rule], shares=shares)
    publish(world, **more)
    return world


def data(denied) -> dict:
    return denied.value.data


def test_a_lease_that_costs_what_is_left_is_granted_and_a_second_more_is_not(engine):
    world = a_world(engine, 10)
    world.lease(a_host(2), hours=3)
    with pytest.raises(UsageDenied, match=re.escape("would cost 5.00 EUR for April 2030, and of the 10.00")) as denied:
        world.lease(a_host(1), start=30 * HOUR, hours=5)
    assert "(max_spend) 4.00 are left" in denied.value.message
    assert data(denied)["limit"] == "max_spend"
    assert (data(denied)["measure"], data(denied)["value"]) == ("EUR", "10.00")
    assert (data(denied)["used"], data(denied)["requested"]) == ("6.00", "5.00")
    seconds = data(denied)["fits"]["duration_seconds"]
    assert seconds == 4 * 3600
    with pytest.raises(UsageDenied):
        world.lease(a_host(1), start=30 * HOUR, hours=seconds / 3600 + 1 / 3600)
    world.lease(a_host(1), start=30 * HOUR, hours=seconds / 3600)
    assert expected(world) == 10


def test_the_estimate_of_energy_is_held_and_what_fits_is_granted(sqlite):
    rule = SpendFilter(10 * NANO)
    world = World(sqlite, hosts=6, filters=[rule], energy=EnergyTerms(records=True))
    for host in world.store.resources.catalog(HOST).resources:
        sheet = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(sheet))
    # An hour of a host costs 1 EUR, and 0.3 kWh more.
    publish(world, prices=[*BY_HOUR["prices"], {"sku": "power", "measure": "kwh", "per_kwh": "2.00"}])
    with pytest.raises(UsageDenied) as denied:
        world.lease(a_host(4), start=30 * HOUR, hours=2)
    assert data(denied)["requested"] == "12.80"
    assert data(denied)["fits"]["amount"] == 3
    with pytest.raises(UsageDenied) as denied:
        world.lease(a_host(4), start=30 * HOUR, hours=2.5)
    seconds = data(denied)["fits"]["duration_seconds"]
    assert seconds == int(3600 * 10 / 6.4)
    world.lease(a_host(3), start=30 * HOUR, hours=2)
    assert expected(world) == 9.6


def test_fewer_or_another_month_are_offered_and_granted(sqlite):
    world = a_world(sqlite, 20)
    world.lease(a_host(2), hours=4)
    with pytest.raises(UsageDenied) as denied:
        world.lease(a_host(4), start=30 * HOUR, hours=4)
    fits = data(denied)["fits"]
    assert fits["amount"] == 3
    start = datetime.fromisoformat(fits["start_date"])
    # For three of its hours there is enough in April.
    assert start == MAY - 3 * HOUR
    with pytest.raises(UsageDenied):
        world.lease(a_host(4), start=start - SECOND, hours=4)
    world.lease(a_host(4), start=start, hours=4)
    assert expected(world) == 24


def test_what_was_charged_counts_and_what_was_given_back_does_not(engine):
    world = a_world(engine, 10)
    lease = world.lease(a_host(2), hours=5)
    world.run_to(NOON + HOUR)
    act(world, world.manager.leases.delete, lease.id)
    world.run()
    close(world, NOON + 2 * HOUR)
    assert charged(world) == {"usage used": 2}
    world.lease(a_host(2), start=NOON + 30 * HOUR, hours=4)
    with pytest.raises(UsageDenied):
        world.lease(a_host(1), start=NOON + 40 * HOUR, hours=1)
    # A lease of another project has a budget of its own.
    world.lease(a_host(1), start=NOON + 40 * HOUR, hours=1, project="art")


def test_a_change_is_denied_if_it_costs_more_than_is_left_and_otherwise_not(engine):
    world = a_world(engine, 10)
    lease = world.lease(a_host(1), start=30 * HOUR, hours=5)
    world.lease(a_host(1), start=50 * HOUR, hours=3)
    with pytest.raises(UsageDenied, match=re.escape("pay 2.01 EUR more for April 2030")):
        act(world, world.change, lease, end=NOON + 37 * HOUR + 36 * SECOND)
    assert world.now(lease).window.end == NOON + 35 * HOUR
    act(world, world.change, lease, end=NOON + 37 * HOUR)
    with pytest.raises(UsageDenied):
        act(world, world.resize, lease, min=2, max=2)
    act(world, world.change, lease, end=NOON + 36 * HOUR)
    assert expected(world) == 9


def test_a_limit_that_was_lowered_does_not_prevent_who_gives_back(sqlite):
    world = a_world(sqlite, 10)
    lease = world.lease(a_host(1), start=30 * HOUR, hours=9)
    lower = World(sqlite, filters=[SpendFilter(NANO)], register=False, cloud=world.simulated, clock=world.clock)
    act(lower, lower.change, lease, end=NOON + 35 * HOUR)
    with pytest.raises(UsageDenied):
        act(lower, lower.change, lease, end=NOON + 36 * HOUR)


def test_of_two_requests_at_once_for_the_last_cent_one_is_denied(engine):
    here = a_world(engine, 10)
    there = World(engine, filters=[SpendFilter(10 * NANO)], register=False, cloud=here.simulated, clock=here.clock)
    first = []

    def meet(question, passed, check=here.enforcement.check):
        check(question, passed)
        if not first:
            # At another time of the month: only the budget has them in common.
            first.append(there.lease(start=20 * HOUR, hours=6))

    here.enforcement.check = meet
    with pytest.raises(UsageDenied, match="4.00 are left"):
        here.lease(hours=6)
    assert expected(here) == 6


def test_without_a_list_nothing_is_denied_and_nothing_more_is_read(sqlite):
    world = World(sqlite, hosts=6, filters=[SpendFilter(0)])
    plain = World(
        sqlite, filters=[MaxConcurrentLeasesFilter(99)], register=False, cloud=world.simulated, clock=world.clock
    )

    def cost(of: World, start: int) -> int:
        with counted(sqlite) as statements:
            of.lease(start=start * HOUR)
        return statements.count

    plain.lease(start=HOUR)
    world.lease(start=HOUR)
    of_it = cost(world, 5)
    # What others have booked meanwhile is read once; what a manager books itself is known.
    plain.lease(start=9 * HOUR)
    assert of_it == cost(plain, 13)


def test_with_a_list_the_cost_does_not_grow_with_leases(sqlite):
    world = a_world(sqlite, 100_000)
    world.lease()

    def cost(start: int) -> int:
        with counted(sqlite) as statements:
            world.lease(start=start * HOUR)
        return statements.count

    few = cost(5)
    for number in range(10):
        world.lease(start=(number + 10) * HOUR)
    assert cost(40) == few


def told(world: World) -> list[tuple[str, ...]]:
    """Return what the journal tells of budgets: of whom, which share, taken of the limit, in which period."""
    names = ("share", "taken", "limit", "unit", "period_start")
    found = []
    for row in sorted(rows(world, journal), key=lambda row: row["seq"]):
        if row["object_type"] == "budget" and row["verb"] == "reached":
            changes = {name: after for name, _, after, _ in row["changes"]}
            found.append((row["project_id"], *(changes[name] for name in names)))
    return found


def test_of_each_share_that_is_reached_it_is_told_once(engine):
    world = a_world(engine, 10, shares=(50, 80, 100))
    april = ("10.00", "EUR", "2030-04-01T00:00:00Z")
    first = world.lease(a_host(4), start=30 * HOUR, hours=1)
    assert told(world) == []
    world.lease(a_host(1), start=40 * HOUR, hours=1)
    assert told(world) == [(PROJECT, "50", "5.00", *april)]
    # Given back, and booked again.
    act(world, world.manager.leases.delete, first.id)
    world.lease(a_host(4), start=30 * HOUR, hours=1)
    assert len(told(world)) == 1
    # Over both months at once, and two shares of the first.
    world.lease(a_host(5), start=MAY - HOUR, hours=2)
    may = ("10.00", "EUR", "2030-05-01T00:00:00Z")
    assert set(told(world)[1:]) == {(PROJECT, "100", "10.00", *april), (PROJECT, "50", "5.00", *may)}


@pytest.mark.parametrize("shares", [(50,), ()])
def test_of_a_share_that_a_bill_reaches_it_is_told_too(engine, shares):
    """Energy of which nothing was expected is charged once it is measured, also beyond a limit."""
    world = World(engine, hosts=1, filters=[SpendFilter(10 * NANO)], shares=shares, energy=EnergyTerms(records=True))
    publish(world, prices=[*BY_HOUR["prices"], {"sku": "power", "measure": "kwh", "per_kwh": "3.00"}])
    world.lease(a_host(1), hours=4)
    assert told(world) == []
    record(world, dict.fromkeys(range(4), 1000))
    close(world, NOON + 30 * HOUR)
    april = ("10.00", "EUR", "2030-04-01T00:00:00Z")
    assert told(world) == ([(PROJECT, "50", "16.00", *april)] if shares else [])
    close(world, NOON + 40 * HOUR)
    assert len(told(world)) == len(shares)


def test_of_a_budget_that_is_raised_a_share_is_told_when_it_is_reached_again(engine):
    world = a_world(engine, 10, shares=[80])
    world.lease(a_host(4), start=30 * HOUR, hours=2)
    april = ("EUR", "2030-04-01T00:00:00Z")
    assert told(world) == [(PROJECT, "80", "8.00", "10.00", *april)]
    raised = [SpendFilter(20 * NANO)]
    world = World(engine, filters=raised, shares=[80], register=False, cloud=world.simulated, clock=world.clock)
    world.lease(a_host(2), start=40 * HOUR, hours=2)
    assert len(told(world)) == 1
    world.lease(a_host(4), start=50 * HOUR, hours=1)
    assert told(world)[1:] == [(PROJECT, "80", "16.00", "20.00", *april)]


def test_of_hours_it_is_told_too_and_a_change_counts(engine):
    world = World(engine, hosts=6, filters=[ResourceHoursFilter({"host": 10}, PeriodCalendar())], shares=[80])
    lease = world.lease(a_host(1), start=30 * HOUR, hours=7)
    assert told(world) == []
    act(world, world.change, lease, end=NOON + 38 * HOUR)
    assert told(world) == [(PROJECT, "80", "8", "10", "host-hours", "2030-04-01T00:00:00Z")]
    act(world, world.change, lease, end=NOON + 37 * HOUR)
    act(world, world.change, lease, end=NOON + 39 * HOUR)
    assert len(told(world)) == 1


@pytest.mark.slow
def test_two_managers_that_reach_a_share_at_once_tell_it_once(engine):
    here = a_world(engine, 100, shares=[50])
    rule = SpendFilter(100 * NANO)
    there = World(engine, filters=[rule], shares=[50], register=False, cloud=here.simulated, clock=here.clock)
    here.lease(a_host(1), start=200 * HOUR, hours=49)

    def book(number: int) -> None:
        (here, there)[number % 2].lease(start=NOON + (number + 1) * HOUR, hours=1)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(book, range(4)))
    assert [one[:2] for one in told(here)] == [(PROJECT, "50")]


def test_who_has_subscribed_reads_by_mail_what_is_reached(sqlite):
    world = a_world(sqlite, 10, shares=[80])
    world.people.addresses["curie"] = "curie@physics.example"
    subscribe(world, events=("budget.reached",))
    world.lease(a_host(4), start=30 * HOUR, hours=2)
    tell(world)
    ((_, mail),) = world.mail.sent
    assert mail["Subject"] == "[Blazar] Budget of EUR from 2030-04-01 on has reached 80 %"
    text = mail.get_body(("plain",)).get_content()
    assert "8.00 of 10.00 EUR are used or booked from 2030-04-01 00:00 UTC to 2030-05-01 00:00 UTC." in text
