# SPDX-License-Identifier: Apache-2.0
"""Two regions whose hosts sleep: what each host draws is read of its own cloud, and told of who had it, once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.manager.common.settings import Settings
from blazar.manager.power.energy import EnergyWork
from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.paging import Page
from blazar.model.energy.book import EnergyTerms
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import PowerState
from blazar.model.problems.problems import ProblemKind, ProblemQuestion
from blazar.model.reports.usage import UsageQuestion
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import charges, host_hours
from tests.manager.billing.ledger import CURIE, close, publish, rows
from tests.manager.billing.test_untold_energy import IVAN, give
from tests.manager.power.nights import HOUR, MINUTE, give_switches, work
from tests.manager.power.test_energy import Meters
from tests.manager.regions.world import TwoRegions, hosts_in
from tests.world import NOON

TERMS = EnergyTerms(records=True, asks_adapters=True)
END = NOON + 8 * HOUR


@pytest.fixture
def world(sqlite) -> TwoRegions:
    power = PowerSettings(PowerMode.ON, spare=0, min_off=timedelta(minutes=30))
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, power=power)
    world = TwoRegions(sqlite, hosts=2, settings=settings, energy=TERMS)
    publish(world)
    give_switches(world)
    return world


def regions(world: TwoRegions) -> dict[int, str]:
    return {host.id: host.region for host in world.store.resources.catalog(HOST).resources}


def watts_of(world: TwoRegions) -> dict[int, float]:
    """Return what each host draws now, as its own cloud says."""
    found = {}
    for region, cloud in (("R1", world.simulated), ("R2", world.second)):
        with cloud.inspect() as state:
            for host in world.store.resources.catalog(HOST).resources:
                if host.region == region:
                    machine = state.machines.get(host.name)
                    is_on = machine is None or machine.is_on(world.clock.now())
                    found[host.id] = cloud.cloud.power._watts(state, host.name)
                    assert is_on == (found[host.id] > 50), (host.name, found)
    return found


def live_until(world: TwoRegions, until) -> dict[tuple[int, int], list[float]]:
    """Let time pass while hosts are switched and read; return the readings by host and hour."""
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    while world.clock.now() < until:
        work(world.manager)
        world.run()
        if world.manager.energy_work.run_once():
            at = int(world.clock.now().timestamp())
            for id_, watts in watts_of(world).items():
                found[id_, at - at % 3600].append(watts)
        world.clock.by(seconds=60)
    return found


def test_leases_of_two_regions_and_hosts_that_sleep_add_up_to_what_all_hosts_drew(world):
    one = world.lease(hosts_in("R1"), start=3 * HOUR, hours=2)
    other = world.lease(hosts_in("R2", 2), start=4 * HOUR, hours=2.5)
    readings = live_until(world, NOON + 4 * HOUR + 40 * MINUTE)
    give(world, other.id)
    readings |= {key: readings.get(key, []) + found for key, found in live_until(world, END).items()}
    log = world.store.power.read_hosts_power(world.clock.now())
    assert {host.state for host in log.values()} == {PowerState.OFF}
    close(world, END + HOUR)
    means = {(row["resource_id"], row["hour"]): row["milliwatts"] for row in rows(world, host_hours)}
    for key, found in readings.items():
        assert abs(means[key] - 1000 * sum(found) / len(found)) <= 6
    energy = [row for row in rows(world, charges) if row["category"] == "energy"]
    assert {(row["lease_id"], row["project_id"], row["region"]) for row in energy} == {
        (one.id, CURIE.project_id, "R1"),
        (other.id, CURIE.project_id, "R2"),
        (other.id, IVAN.project_id, "R2"),
    }
    report = world.manager.reports.usage(UsageQuestion(None, NOON, END, unbooked=True))
    leased = sum(row.sums.energy_wh for row in report.rows)
    whole = sum(Fraction(milliwatts) for (_, hour), milliwatts in means.items() if hour < END.timestamp()) / 1000
    assert report.unbooked.asleep.energy_wh > 0
    assert abs(leased - sum(row["wh"] for row in energy)) <= len(energy)
    assert abs(leased + report.unbooked.idle.energy_wh + report.unbooked.asleep.energy_wh - whole) <= 2


def test_a_region_that_does_not_answer_is_named_and_the_other_one_is_read(world):
    world.second.faults.fail_before("power_watts", CloudUnavailable("no answer"), times=9)
    for _ in range(3):
        world.manager.energy_work.run_once()
        world.clock.by(minutes=5)
    assert {regions(world)[row["resource_id"]] for row in rows(world, host_hours)} == {"R1"}
    (problem,) = world.manager.problems.page(ProblemQuestion(Page(9, "since"), (ProblemKind.ENERGY,))).items
    assert problem.explanation[0] == "Region R2: no answer."


def test_hosts_of_two_regions_with_one_name_are_not_measured_by_that_name(sqlite):
    world = TwoRegions(sqlite, hosts=3, register=False, energy=EnergyTerms(records=True))
    for region, numbers in (("R1", (1, 2)), ("R2", (1, 3))):
        for number in numbers:
            world.register_in(region, f"node-{number}")
    EnergyWork(replace(world.manager.energy_work._runtime, meters=Meters())).run_once()
    names = {host.id: host.name for host in world.store.resources.catalog(HOST).resources}
    assert {names[row["resource_id"]] for row in rows(world, host_hours)} == {"node-2", "node-3"}
