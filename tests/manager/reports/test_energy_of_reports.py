# SPDX-License-Identifier: Apache-2.0
"""What leases drew and emitted in reports: the same from the leases and from days on record, and as pages tell it."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.model.base.moments import LocalDay
from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import UsageGroup, UsageQuestion
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import usage_days
from tests.manager.billing.ledger import rows
from tests.world import NOON, World, a_host, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AT = int(NOON.timestamp())
TERMS = EnergyTerms(records=True, tells_carbon=True)


@pytest.fixture
def world(a_world) -> World:
    """A host that drew 100 W, but for hours from two to four of which nothing is known; it is rated with 300 W."""
    world = a_world(hosts=2, energy=TERMS)
    for host in world.store.resources.catalog(HOST).resources:
        rated = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(rated))
    store = world.store.energy
    store.claim_turn("mine", now=NOON, until=NOON + HOUR)
    ids = [host.id for host in world.store.resources.catalog(HOST).resources]
    known = [*range(-12, 2), *range(4, 40)]
    store.record("mine", EnergyReading([HostHour(id_, AT + hour * 3600, 100_000, 12) for id_ in ids for hour in known]))
    store.record("mine", EnergyReading(curve={AT + hour * 3600: Fraction(500) for hour in range(-12, 40)}))
    return world


def ask(world: World, *groups: UsageGroup, **more) -> list[tuple]:
    question = UsageQuestion("physics", LocalDay(2030, 4, 1), LocalDay(2030, 4, 4), groups, **more)
    return [(row.groups, row.sums.energy_wh, row.sums.gco2) for row in world.manager.reports.usage(question).rows]


def test_a_report_is_the_same_from_leases_and_from_days_on_record(world):
    lease = world.lease(a_host(), hours=20)
    world.run_to(NOON + 2 * DAY)
    before = ask(world), ask(world, step=ReportStep.DAY)
    # 18 hours with 100 W and two with 300 W, at half a gram a watt-hour.
    assert before == ([((), 2400, 1200)], [((), 1600, 800), ((), 800, 400)])
    while world.manager.usage_days.run_once():
        pass
    assert {row["milliwatt_seconds"] for row in rows(world, usage_days)} == {1600 * 3600 * 1000, 800 * 3600 * 1000}
    assert (ask(world), ask(world, step=ReportStep.DAY)) == before
    assert world.manager.reports.lease_energy(lease.id).energy_wh == 2400


def test_projects_that_share_a_host_have_each_its_share(world):
    world.lease(instances(1, vcpus=2), hours=1)
    world.lease(instances(2, vcpus=2), hours=1, project="biology")
    world.run_to(NOON + 2 * HOUR)
    (biology, physics) = ask(world, UsageGroup.PROJECT)
    assert (biology[0], physics[0]) == (("biology",), ("physics",))
    assert biology[1] > physics[1] > 0


def test_days_that_were_closed_before_anything_was_recorded_are_rated(a_world):
    world = a_world(hosts=1)
    (host,) = world.store.resources.catalog(HOST).resources
    world.manager.resources.change(HOST, host.external_id, ResourceChange({"power_idle_w": "2", "power_max_w": "4"}))
    world.lease(a_host(), hours=20)
    world.run_to(NOON + 2 * DAY)
    live = ask(world)
    world.manager.usage_days.run_once()
    assert ask(world) == live == [((), 60, None)]
