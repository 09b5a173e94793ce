# SPDX-License-Identifier: Apache-2.0
"""What leases drew and emitted is told with what they are charged: once, and as it is on record."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.model.leases.requests import Actor
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.surgery import OfferRequest, Terms
from blazar.store.sql.tables import allocations, charges
from tests.manager.billing.ledger import CURIE, HOUR, close, publish, rows
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

OVER = NOON + 30 * HOUR
TERMS = EnergyTerms(records=True, tells_carbon=True, pue=Fraction(3, 2))


@pytest.fixture
def world(a_world) -> World:
    world = a_world(hosts=2, energy=TERMS)
    for host in world.store.resources.catalog(HOST).resources:
        rated = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(rated))
    return world


def record(world: World, hours: dict[int, int], grams: dict[int, int] | None = None) -> None:
    """Record what each host drew in hours after noon, in watts, and the carbon of them."""
    store, noon = world.store.energy, int(NOON.timestamp())
    assert store.claim_turn("mine", now=NOON - HOUR, until=NOON) or True
    hosts = [host.id for host in world.store.resources.catalog(HOST).resources]
    store.record(
        "mine",
        EnergyReading(
            [HostHour(id_, noon + hour * 3600, watts * 1000, 12) for id_ in hosts for hour, watts in hours.items()]
        ),
    )
    store.record(
        "mine", EnergyReading(curve={noon + hour * 3600: Fraction(value) for hour, value in (grams or {}).items()})
    )


def told(world: World) -> list[tuple]:
    found = [row for row in rows(world, charges) if row["category"] == "energy"]
    # Accounts that are due at one time are closed in any order.
    found.sort(key=lambda row: row["starts_at"])
    return [(row["project_id"], row["wh"], row["gco2"], row["energy_source"], row["carbon_state"]) for row in found]


def test_a_lease_that_is_over_is_told_what_it_drew_and_emitted_once(world):
    publish(world)
    record(world, {1: 100, 2: 300}, {0: 50, 1: 400, 2: 100})
    world.lease(a_host(2), start=HOUR, hours=2)
    close(world, OVER)
    close(world, OVER + HOUR)
    # Two hosts with 400 Wh each; times 1.5, 200 Wh at 400 g and 600 Wh at 100 g.
    assert told(world) == [("physics", 800, 210, "measured", "known")]
    (line,) = [row for row in rows(world, charges) if row["category"] == "energy"]
    assert (line["nano"], line["sku"], line["resource_seconds"]) == (0, None, 4 * 3600)


def test_an_account_is_closed_at_any_fraction_of_a_second(world):
    publish(world)
    world.lease(a_host(1), start=HOUR, hours=2)
    close(world, OVER + timedelta(microseconds=767_657))
    assert [one[1] for one in told(world)] == [600]


def test_gaps_are_rated_and_missing_hours_of_the_curve_are_estimated_or_said_to_be_unknown(world):
    publish(world)
    record(world, {1: 100}, {1: 400, 2 - 24: 100, 2 - 48: 300})
    world.lease(a_host(1), start=HOUR, hours=2)
    close(world, OVER)
    # 100 Wh measured and 300 Wh at half of the load; the second hour has the mean of 100 and 300 g.
    assert told(world) == [("physics", 400, 150, "mixed", "estimated")]
    world.lease(a_host(1), start=10 * HOUR, hours=1)
    close(world, NOON + 50 * HOUR)
    assert told(world)[1:] == [("physics", 300, 0, "rated", "partial")]


def test_an_account_waits_until_the_hour_is_metered(world):
    publish(world)
    world.lease(a_host(1), start=HOUR, hours=1.5)
    close(world, NOON + timedelta(hours=2, minutes=40))
    assert rows(world, charges) == []
    close(world, NOON + timedelta(hours=3, minutes=9))
    assert rows(world, charges) == []
    close(world, NOON + timedelta(hours=3, minutes=20))
    assert told(world) == [("physics", 450, 0, "rated", "partial")]


def test_servers_have_their_share_of_the_host(world):
    publish(world)
    world.lease(instances(2, vcpus=2), start=HOUR, hours=2)
    close(world, OVER)
    sizes = {host.id: host.capacity.get("VCPU") for host in world.store.resources.catalog(HOST).resources}
    taken = [(row["count"] * 2, sizes[row["resource_id"]]) for row in rows(world, allocations)]
    assert [one[1] for one in told(world)] == [round(sum(Fraction(600 * vcpus, size) for vcpus, size in taken))]


def test_a_lease_that_passes_to_another_project_is_told_to_each_for_its_time(world):
    publish(world)
    record(world, dict.fromkeys(range(10), 100))
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    world.run_to(NOON + 2 * HOUR)
    world.manager.transfers.offer(lease.id, OfferRequest("biology"), Terms(CURIE))
    world.manager.transfers.accept(lease.id, Terms(Actor("ivan", "biology")))
    close(world, OVER)
    assert [one[:2] for one in told(world)] == [("physics", 100), ("biology", 300)]


def test_where_nothing_is_recorded_there_is_no_line_and_no_more_statement(a_world):
    def count(world: World) -> int:
        publish(world)
        world.lease(a_host(1), start=HOUR, hours=2)
        world.run_to(OVER)
        with counted(world.engine) as statements:
            world.manager.closing.run_once()
        return statements.count

    plain = a_world(hosts=2)
    without = count(plain)
    assert told(plain) == []
    assert without == 14


def test_a_creation_costs_no_statement_more(a_world, world):
    publish(world)
    with counted(world.engine) as more:
        world.lease(a_host(1), start=HOUR, hours=2)
    assert not any("host_hours" in one or "carbon_hours" in one for one in more.texts)
