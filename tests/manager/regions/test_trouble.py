# SPDX-License-Identifier: Apache-2.0
"""Regions that go, are renamed or fail, and requests that ask too much of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.context import Pool, current
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.leases.requests import LeaseChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from tests.fencing.stage import until
from tests.manager.regions.world import HOUR, TwoRegions, hosts_in, kill
from tests.world import a_host


@pytest.fixture
def two(sqlite):
    return TwoRegions(sqlite)


def state(world, lease):
    return world.now(lease).status


def test_leases_of_a_region_that_is_taken_out_wait_and_go_on_when_it_is_back(two):
    here, there = two.lease(hosts_in("R1"), start=HOUR), two.lease(hosts_in("R2"), start=HOUR)
    two.configured_for("R1")
    two.run_to(here.window.start)
    assert (state(two, here), state(two, there)) == (LeaseStatus.ACTIVE, LeaseStatus.STARTING)
    (waits,) = [e for e in two.now(there).events if e.reason]
    assert "the region R2 is not configured any more; an operator can add it again" in waits.reason
    two.manager.monitor.run_once()
    assert not any(each.failure for each in two.manager.resources.all(HOST))
    two.configured_for("R1", "R2")
    two.run_to(two.clock.now() + timedelta(minutes=5))
    assert state(two, there) is LeaseStatus.ACTIVE


def test_nothing_new_lies_in_a_region_that_is_taken_out_or_renamed(two):
    two.configured_for("R1", "Renamed")
    with pytest.raises(InvalidInput, match="its regions are R1, Renamed"):
        two.lease(hosts_in("R2"))
    assert two.regions_of(two.lease(a_host(2))) == ["R1", "R1"]
    with pytest.raises(CloudUnavailable, match="the region R2 is not configured any more"):
        two.manager.resources.refresh(HOST, "R2:1")
    with pytest.raises(CloudUnavailable, match="the region R2 is not configured any more"):
        two.manager.resources.unregister(HOST, "R2:1")
    assert two.manager.resources.one(HOST, "R2:1").reservable


def test_a_change_of_a_lease_in_a_region_that_is_taken_out_says_what_is_wrong(two):
    lease = two.lease(hosts_in("R2"), start=HOUR)
    two.configured_for("R1")
    with pytest.raises(CloudUnavailable, match="the region R2 is not configured any more"):
        two.manager.leases.update(lease.id, LeaseChange(end=lease.window.end + HOUR))
    assert two.now(lease).window == lease.window


def test_a_failed_host_is_replaced_in_its_region_or_not_at_all(sqlite):
    two = TwoRegions(sqlite, settings=Settings(heal_active=True, claim_ttl=timedelta(seconds=30)))
    lease = two.lease(hosts_in("R2"))
    two.run()
    (held,) = two.store.calendar.of_lease(lease.id)
    name = two.store.resources.by_ids({held.resource_id})[held.resource_id].name
    two.second.operators.host_down(name)
    for _ in range(3):
        two.manager.monitor.run_once()
    two.run()
    assert two.regions_of(lease) == ["R2"]
    (replaced,) = two.store.calendar.of_lease(lease.id)
    assert replaced.resource_id != held.resource_id
    other = two.store.resources.by_ids({replaced.resource_id})[replaced.resource_id].name
    two.second.operators.host_down(other)
    for _ in range(3):
        two.manager.monitor.run_once()
    two.run()
    # Both hosts of the first region are free, and stay so.
    assert two.now(lease).reservations[0].missing_resources
    assert two.pool() == {"node-1", "node-2"}


def test_a_host_is_moved_off_within_its_region_only(two):
    lease = two.lease(hosts_in("R2"))
    two.run()
    (held,) = two.store.calendar.of_lease(lease.id)
    host = two.store.resources.by_ids({held.resource_id})[held.resource_id].external_id
    two.manager.resources.move(HOST, host, lease.reservations[0].id)
    two.run()
    assert two.regions_of(lease) == ["R2"]


def test_a_lease_that_wants_more_than_one_region_has_is_refused_whatever_both_have_together(two):
    for wrong in (hosts_in("R2", 3), a_host(3)):
        with pytest.raises(Exception, match="enough"):
            two.lease(wrong)


@pytest.mark.parametrize(
    "needs", ['["and", ["==", "$region", "R1"], ["==", "$region", "R2"]]', '["==", "$region", "r1"]']
)
def test_a_requirement_that_no_region_meets_is_refused_with_those_that_are_there(two, needs):
    with pytest.raises(InvalidInput, match="its regions are R1, R2"):
        two.lease(a_host(needs=needs))


def test_a_region_and_a_requirement_of_another_do_not_fit_together(two):
    given = {**hosts_in("R1").parameters, "region": "R2"}
    with pytest.raises(InvalidInput, match='region is "R2", and resource_properties allows R1') as caught:
        two.lease(ReservationRequest("physical:host", given))
    assert caught.value.pointer == "/reservations/0/region"


def test_a_deletion_while_the_region_is_down_frees_its_hosts_when_it_is_back(two):
    lease = two.lease(hosts_in("R2", 2))
    two.run()
    kill(two.second)
    two.manager.leases.delete(lease.id)
    assert two.regions_of(two.lease(a_host())) == ["R1"]
    two.second.faults.clear()
    two.run_to(two.clock.now() + HOUR)
    assert two.free_in_second() == {"node-1", "node-2"}


def test_calls_for_starts_and_ends_say_of_which_region_their_threads_are(two):
    seen: dict[str, set[Pool | None]] = {"R1": set(), "R2": set()}
    for region, cloud in (("R1", two.simulated), ("R2", two.second)):
        cloud.faults.on_call = lambda *_, of=region: seen[of].add(current().pool)
    ending = [two.lease(hosts_in(region), hours=1) for region in ("R1", "R2")]
    two.run_to(two.clock.now() + HOUR - timedelta(minutes=1))
    starting = [two.lease(hosts_in(region), start=timedelta(minutes=1)) for region in ("R1", "R2")]
    for each in seen.values():
        each.clear()
    two.clock.to(ending[0].window.end)
    two.manager.engine.start()
    try:
        until(lambda: {state(two, lease) for lease in starting} == {LeaseStatus.ACTIVE})
        until(lambda: {state(two, lease) for lease in ending} == {LeaseStatus.TERMINATED})
    finally:
        two.manager.engine.stop()
    for region, pools in seen.items():
        assert {pool and (pool.name, pool.regions) for pool in pools} == {(f"start-{region}", 1), (f"end-{region}", 1)}
