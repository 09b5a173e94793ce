# SPDX-License-Identifier: Apache-2.0
"""Series, leases that wait, and leases that nobody uses are charged as others are; and what is purged stays charged."""

from __future__ import annotations

from datetime import datetime, timedelta
from unittest import mock

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.leases.states import EndReason, LeaseStatus
from blazar.model.resources.resource import Resource
from blazar.model.series.changes import SeriesChange
from blazar.model.surgery import PartRequest, SplitRequest, Terms
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.tables import accounts, charges, outages, planned
from tests.manager.billing.ledger import CURIE, HOUR, act, charged, close, expected, publish, rows, states
from tests.statements import counted
from tests.world import NOON, a_host, a_series

DAY = 24 * HOUR
RULES = {"cancellation": [{"before_start": "PT2H", "share": "0"}, {"share": "0.50"}], "early_return": "0.25"}


def test_each_occurrence_of_a_series_has_an_account_and_moving_it_books_it_at_the_prices_of_then(a_world):
    world = a_world()
    publish(world, fee="5.00", **RULES)
    made = act(world, world.manager.series.create, a_series())
    held = sum(each.lease_id is not None for each in world.manager.series.one(made.series.id).occurrences)
    length = expected(world) - held * 5
    assert states(world) == [("physics", "open")] * held
    publish(
        world,
        NOON + timedelta(seconds=1),
        prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}],
        fee="5.00",
        **RULES,
    )
    world.clock.by(minutes=1)
    act(world, world.manager.series.change, made.series.id, SeriesChange(length=timedelta(hours=length / held + 1)))
    assert charged(world) == {}
    assert expected(world) == held * 5 + length + held * 3


def test_a_series_that_is_changed_takes_as_many_statements_of_sql_however_long_it_is(a_world):
    world, counts = a_world(), []
    publish(world, fee="5.00")
    for number, hour in ((2, 8), (6, 14)):
        asked = a_series(rule=f"FREQ=DAILY;COUNT={number}", start=datetime(2030, 4, 2, hour))
        made = act(world, world.manager.series.create, asked)
        world.clock.by(minutes=1)
        with counted(world.engine) as statements:
            act(world, world.manager.series.change, made.series.id, SeriesChange(length=timedelta(hours=5)))
        counts.append(statements.count)
    assert expected(world) == 8 * (5 + 5)
    assert counts[0] == counts[1]


def test_a_lease_has_an_account_once_it_is_promised_and_none_while_it_waits(a_world):
    world = a_world(hosts=1)
    world.waits = True
    publish(world, fee="5.00")
    first = world.lease(hours=2)
    waits = world.lease(hours=3, wait=DAY)
    assert world.now(waits).status is LeaseStatus.WAITING
    assert expected(world) == 2 + 5
    act(world, world.manager.leases.delete, first.id)
    world.run_to(NOON + HOUR)
    assert world.now(waits).status is LeaseStatus.ACTIVE
    close(world, NOON + 10 * HOUR)
    assert charged(world)["fee used"] in (5, 10)
    assert charged(world)["usage used"] == pytest.approx(3, abs=0.1)


def test_hours_in_which_nobody_used_it_are_told_apart_and_have_their_factor(a_world):
    policy = UsePolicy(UseMode.DRY_RUN, unused_after=3 * HOUR, warn_before=HOUR)
    world = a_world(settings=Settings(use_policies=UsePolicies(policy)))
    publish(world, unused="0.5")
    world.lease(start=HOUR, hours=10)
    close(world, NOON + 12 * HOUR)
    found = charged(world)
    assert set(found) == {"usage used", "usage unused"}
    assert found["usage used"] + 2 * found["usage unused"] == pytest.approx(10)


def test_what_is_split_off_a_lease_that_nobody_uses_is_unused_until_a_look_finds_another_use(a_world):
    policy = UsePolicy(UseMode.DRY_RUN, unused_after=3 * HOUR, warn_before=HOUR)
    world = a_world(settings=Settings(use_policies=UsePolicies(policy)))
    publish(world, unused="0.5")
    lease = world.lease(a_host(), a_host(), start=HOUR, hours=10)
    world.run_to(NOON + 5 * HOUR)
    part = PartRequest(lease.reservations[1].id)
    act(world, world.manager.surgery.split, lease.id, SplitRequest((part,)), Terms(CURIE))
    close(world, NOON + 12 * HOUR)
    # Both hosts are unused from the first look on, two hours after the start.
    assert charged(world) == {"usage used": pytest.approx(2 * 2), "usage unused": pytest.approx(2 * 8 / 2)}


def test_what_is_released_for_want_of_use_is_given_back_by_the_terms_of_each_part(a_world):
    policy = UsePolicy(UseMode.ON, unused_after=3 * HOUR, warn_before=HOUR)
    world = a_world(settings=Settings(use_policies=UsePolicies(policy)))
    publish(world, lead=[{"below": "PT2H", "factor": "2.00"}], early_return="0.50")
    lease = world.lease(start=HOUR, hours=10)
    act(world, world.change, lease, end=NOON + 16 * HOUR)
    world.run_to(NOON + 20 * HOUR)
    ended = world.now(lease)
    assert ended.end_reason is EndReason.UNUSED
    close(world, NOON + 20 * HOUR)
    left = (NOON + 11 * HOUR - ended.window.end) / HOUR
    assert charged(world)["early_return unused"] == pytest.approx(0.5 * (2 * left + 5))


def test_a_lease_is_purged_only_when_it_is_charged_and_its_charges_stay(a_world):
    world = a_world()
    publish(world)
    world.lease(start=HOUR, hours=2)
    world.run_to(NOON + 10 * HOUR)
    before = NOON + 5 * HOUR
    assert world.store.leases.purge(before, 10) == {}
    close(world)
    assert world.store.leases.purge(before, 10)["leases"] == 1
    assert charged(world) == {"usage used": 2}
    assert rows(world, outages) == rows(world, planned) == []
    assert len(rows(world, accounts)) == len(rows(world, charges)) == 1


def test_a_lease_that_is_deleted_in_the_second_in_which_it_starts_costs_its_fee_and_a_share_of_all(a_world):
    world = a_world()
    publish(world, fee="5.00", **RULES)
    lease = world.lease(start=HOUR, hours=10)
    world.run_to(NOON + HOUR)
    act(world, world.manager.leases.delete, lease.id)
    close(world, NOON + 20 * HOUR)
    assert charged(world) == {"fee used": 5, "early_return unused": 2.5}
    assert states(world) == [("physics", "closed")]


@pytest.mark.parametrize("hosts", [4, 40])
def test_prices_look_at_no_more_hosts_than_a_lease_gets_however_many_there_are(a_world, hosts):
    world = a_world(hosts=hosts)
    large = {"sku": "large", "measure": "host", "requirement": [">=", "$vcpus", 1000], "per_hour": "9"}
    publish(world, prices=[large, {"sku": "host", "measure": "host", "per_hour": "1"}])
    world.lease(a_host(2), start=HOUR)
    with mock.patch.object(Resource, "pick", return_value={}) as looks:
        world.lease(a_host(2), start=HOUR)
    assert looks.call_count == 2
