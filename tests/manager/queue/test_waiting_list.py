# SPDX-License-Identifier: Apache-2.0
"""Leases that wait for their turn: in a fair order, and each granted once."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta

import pytest

from blazar.clouds.simulated import of_size
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import (
    CloudUnavailable,
    InvalidInput,
    NotEnoughResources,
    OthersWait,
    UsageDenied,
    WrongState,
)
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.store.store import Store
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.events.test_crashes import dies
from tests.statements import counted
from tests.world import NOON, World, a_host, addresses, instances

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def world(sqlite) -> World:
    """All of its three hosts are in use for two hours."""
    world = World(sqlite)
    world.waits = True
    world.full = world.lease(a_host(3), project="biology")
    world.run()
    return world


class Denies(RecordingFilter):
    """A filter that denies everything to one project."""

    def check(self, question):
        if question.wanted.lease.project_id == "physics":
            raise UsageDenied("physics may not")


def waits(world: World, *reservations, project="physics", wait=DAY, **more) -> Lease:
    """Have a lease wait; the next one comes a second later."""
    lease = world.lease(*reservations, project=project, wait=wait, **more)
    assert lease.status is LeaseStatus.WAITING
    world.clock.to(world.clock.now() + timedelta(seconds=1))
    return lease


def status(world: World, lease: Lease) -> LeaseStatus:
    return world.now(lease).status


def test_a_lease_that_fits_does_not_wait(sqlite):
    world = World(sqlite)
    assert world.lease(a_host(), wait=DAY).status is LeaseStatus.PENDING


def test_a_lease_that_does_not_fit_waits_and_has_nothing(world):
    lease = waits(world, a_host(2))
    assert world.store.calendar.of_lease(lease.id) == ()
    world.run()
    found = world.now(lease)
    assert (found.wait.position, found.wait.estimate, found.wait.reason) == (1, NOON + 2 * HOUR, None)
    assert (found.window.start, found.window.end) == (NOON + 2 * HOUR, NOON + 4 * HOUR)
    assert world.notifier.types[-1] == "lease.waiting"


def test_it_starts_when_what_it_needs_is_given_back(world):
    lease = waits(world, a_host(2))
    world.run_to(NOON + 30 * MINUTE)
    world.manager.leases.delete(world.full.id)
    world.run()
    found = world.now(lease)
    assert (found.status, found.window.start) == (LeaseStatus.ACTIVE, NOON + 30 * MINUTE)
    assert found.window.end == NOON + 2 * HOUR + 30 * MINUTE
    assert len(world.hosts_of(found)) == 2
    assert found.event(EventType.BEFORE_END).time == found.window.end - HOUR
    assert world.notifier.types[-3:] == ["lease.delete", "lease.create", "lease.event.start_lease"]


def test_it_starts_when_a_lease_ends(world):
    lease = waits(world, a_host(3))
    world.run_to(NOON + 2 * HOUR)
    assert (status(world, lease), world.now(lease).window.start) == (LeaseStatus.ACTIVE, NOON + 2 * HOUR)
    world.run_to(NOON + 4 * HOUR)
    assert status(world, lease) is LeaseStatus.TERMINATED


def test_it_starts_when_a_host_is_registered(sqlite):
    world = World(sqlite, hosts=2, state=of_size(3))
    world.waits = True
    world.lease(a_host(2), project="biology")
    lease = waits(world)
    world.run()
    world.register("node-3")
    world.run()
    assert world.hosts_of(world.now(lease)) == {"node-3"}


def test_first_come_first_served_within_a_project(world):
    first, second = waits(world, a_host(3)), waits(world, a_host(3))
    world.run()
    assert [world.now(each).wait.position for each in (first, second)] == [1, 2]
    world.run_to(NOON + 2 * HOUR)
    assert [status(world, each) for each in (first, second)] == [LeaseStatus.ACTIVE, LeaseStatus.WAITING]
    assert world.now(second).wait.estimate == NOON + 4 * HOUR


def test_between_projects_the_one_that_has_used_less_is_first(world):
    busy = waits(world, a_host(3), project="biology")
    idle = waits(world, a_host(3), project="chemistry")
    world.run_to(NOON + 2 * HOUR)
    assert [status(world, each) for each in (busy, idle)] == [LeaseStatus.WAITING, LeaseStatus.ACTIVE]


@pytest.mark.parametrize(("weights", "first"), [({}, "chemistry"), ({"biology": 4.0}, "biology")])
def test_with_a_greater_weight_a_project_may_have_used_more(sqlite, weights, first):
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, project_weights=weights)
    world = World(sqlite, settings=settings)
    world.waits = True
    world.lease(a_host(2), project="biology")
    world.lease(a_host(1), project="chemistry")
    world.run()
    waiting = [waits(world, a_host(3), project=project) for project in ("biology", "chemistry")]
    world.run_to(NOON + 2 * HOUR)
    assert [each.project_id for each in waiting if status(world, each) is LeaseStatus.ACTIVE] == [first]


def test_a_small_one_goes_ahead_only_if_it_delays_nobody(world):
    world.manager.leases.delete(world.full.id)
    world.run()
    world.lease(a_host(2), project="biology", hours=4)
    world.run()
    large = waits(world, a_host(3), hours=1)
    long = waits(world, a_host(), hours=9)
    short = world.lease(a_host(), hours=3, wait=DAY)
    world.run()
    assert [status(world, each) for each in (large, long, short)] == [
        LeaseStatus.WAITING,
        LeaseStatus.WAITING,
        LeaseStatus.ACTIVE,
    ]
    world.run_to(NOON + 4 * HOUR)
    assert status(world, large) is LeaseStatus.ACTIVE


def test_who_does_not_wait_gets_nothing_that_would_delay_one_who_does(world):
    waits(world, a_host(2))
    with pytest.raises(OthersWait) as refused:
        world.lease(a_host(2), start=2 * HOUR, project="chemistry")
    assert refused.value.data == {"before": 1, "opening": "2030-04-01T16:00:00Z"}
    assert "1 lease waits for the same resources" in refused.value.message
    assert world.lease(a_host(1), start=2 * HOUR, project="chemistry").status is LeaseStatus.PENDING
    assert world.lease(a_host(2), start=4 * HOUR, project="chemistry").status is LeaseStatus.PENDING


def test_who_asks_for_other_resources_is_not_measured_against_those_who_wait(world):
    world.register_addresses(10)
    waits(world, a_host(2))
    assert world.lease(addresses(), project="chemistry").status is LeaseStatus.PENDING


def test_it_may_wait_for_a_later_start(world):
    world.lease(a_host(3), start=10 * HOUR, hours=2, project="biology")
    lease = waits(world, a_host(), start=11 * HOUR, hours=1)
    world.run()
    assert world.now(lease).wait.estimate == NOON + 12 * HOUR


def test_a_start_that_was_asked_for_and_becomes_free_is_booked_before_it_comes(world):
    other = world.lease(a_host(3), start=10 * HOUR, hours=2, project="biology")
    lease = waits(world, a_host(), start=10 * HOUR, hours=1)
    world.manager.leases.delete(other.id)
    world.run()
    assert (status(world, lease), world.now(lease).window.start) == (LeaseStatus.PENDING, NOON + 10 * HOUR)


def test_it_may_wait_only_for_so_long_for_a_start_far_ahead(world):
    other = world.lease(a_host(3), start=10 * HOUR, hours=2, project="biology")
    lease = waits(world, a_host(2), start=10 * HOUR, wait=5 * HOUR)
    late = waits(world, a_host(2), start=11 * HOUR, wait=5 * HOUR)
    world.run_to(NOON + HOUR)
    world.manager.leases.delete(other.id)
    world.run()
    found = world.now(lease)
    assert (found.status, found.window.start) == (LeaseStatus.PENDING, NOON + 10 * HOUR)
    world.run_to(NOON + 5 * HOUR + MINUTE)
    assert status(world, late) is LeaseStatus.TIMED_OUT


def test_one_whose_turn_fails_after_its_time_gives_up(world):
    lease = waits(world, instances(1, vcpus=1), wait=2 * HOUR + MINUTE)

    def is_away(name: str, when: str) -> None:
        if name == "create_flavor":
            world.clock.to(NOON + 2 * HOUR + 2 * MINUTE)
            raise CloudUnavailable("nova is away")

    world.faults.on_call = is_away
    world.run_to(NOON + 2 * HOUR)
    world.run()
    assert (status(world, lease), world.now(lease).deleted_at) == (LeaseStatus.TIMED_OUT, None)
    assert world.notifier.types[-1] == "lease.timed_out"


def test_it_gives_up_when_its_time_is_over(world):
    lease = waits(world, a_host(2), wait=HOUR)
    world.run()
    assert "TIMED_OUT" not in {status(world, lease)}
    world.run_to(NOON + HOUR)
    found = world.now(lease)
    assert (found.status, found.wait.position) == (LeaseStatus.TIMED_OUT, None)
    assert world.notifier.types[-1] == "lease.timed_out"
    world.run_to(NOON + 3 * HOUR)
    assert status(world, lease) is LeaseStatus.TIMED_OUT
    world.manager.leases.delete(lease.id)
    assert world.now(lease).deleted_at is not None


def test_one_that_asks_for_what_is_gone_gives_up_in_time_too(sqlite):
    world = World(sqlite, hosts=1, state=of_size(2))
    world.waits = True
    special = world.register("node-2", rack="a")
    other = world.lease(a_host(needs=["==", "$rack", "a"]), project="biology")
    lease = waits(world, a_host(needs=["==", "$rack", "a"]), wait=HOUR / 2)
    world.manager.leases.delete(other.id)
    world.manager.resources.unregister(HOST, special.external_id)
    world.store.resources.catalog(HOST)
    world.run()
    assert "rack" in world.now(lease).wait.reason
    world.run_to(NOON + HOUR / 2)
    assert status(world, lease) is LeaseStatus.TIMED_OUT


def test_a_manager_knows_properties_that_it_has_not_read_yet(sqlite):
    world = World(sqlite, hosts=1, state=of_size(2))
    store = Store(sqlite)
    behind = world.another_manager(store=store)
    store.resources.catalog(HOST)
    world.waits = True
    world.register("node-2", rack="a")
    world.lease(a_host(needs=["==", "$rack", "a"]), project="biology")
    world.run()
    lease = waits(world, a_host(needs=["==", "$rack", "a"]))
    behind.waiting_list.run_once()
    assert (world.now(lease).wait.position, world.now(lease).wait.reason) == (1, None)


def test_one_that_waits_can_be_deleted_and_delays_nobody_any_more(world):
    lease = waits(world, a_host(2))
    world.run()
    world.manager.leases.delete(lease.id)
    assert world.now(lease).deleted_at is not None
    assert world.lease(a_host(3), start=2 * HOUR).status is LeaseStatus.PENDING


def test_one_that_waits_cannot_be_changed(world):
    lease = waits(world, a_host(2))
    with pytest.raises(WrongState, match="waits for its turn"):
        world.change(lease, end=NOON + 9 * HOUR)


def test_what_no_waiting_helps_is_told(world):
    lease = waits(world, a_host(4))
    world.run()
    found = world.now(lease).wait
    assert (found.position, found.estimate) == (1, None)
    assert "at least 4 requested, and only 3 of the matching hosts can be reserved" in found.reason
    other = waits(world, a_host(3))
    world.run_to(NOON + 2 * HOUR)
    assert status(world, other) is LeaseStatus.ACTIVE


def test_one_that_fits_only_after_it_gives_up_is_told_both_times(world):
    lease = waits(world, a_host(3), wait=HOUR)
    world.run()
    found = world.now(lease).wait
    assert found.estimate is None
    assert found.reason == "it would fit from 2030-04-01 14:00 UTC on, but it waits only until 2030-04-01 13:00 UTC"


@pytest.mark.parametrize(
    ("wait", "kind"), [(timedelta(0), LeaseKind.SCHEDULED), (-HOUR, LeaseKind.SCHEDULED), (HOUR, LeaseKind.IMMEDIATE)]
)
def test_some_cannot_wait(world, wait, kind):
    with pytest.raises(InvalidInput):
        world.lease(a_host(), wait=wait, kind=kind)


@pytest.mark.slow
def test_a_project_has_at_most_so_many_that_wait(world):
    for _ in range(20):
        waits(world, a_host())
    with pytest.raises(UsageDenied, match="waiting_per_project"):
        world.lease(a_host(), wait=DAY)
    waits(world, a_host(), project="chemistry")


def test_simultaneous_requests_do_not_pass_the_limit_together(sqlite):
    world = World(sqlite, settings=Settings(max_waiting=2))
    world.lease(a_host(3), project="biology")
    together, outcomes = threading.Barrier(8), []

    def ask() -> None:
        together.wait()
        try:
            outcomes.append(world.lease(a_host(), wait=DAY).status)
        except UsageDenied as denied:
            outcomes.append(denied.data["limit"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == sorted(map(str, [LeaseStatus.WAITING] * 2 + ["waiting_per_project"] * 6))


def test_without_wait_it_is_refused_as_ever(world):
    with pytest.raises(NotEnoughResources):
        world.lease(a_host())


def test_one_whose_turn_fails_in_the_cloud_keeps_its_place(world):
    lease = waits(world, instances(1, vcpus=1))
    queued_at = lease.wait.queued_at
    world.faults.fail_before("create_flavor", CloudUnavailable("nova is away"))
    world.run_to(NOON + 2 * HOUR)
    found = world.now(lease)
    assert (found.status, found.wait.queued_at) == (LeaseStatus.WAITING, queued_at)
    assert "could not be made in the cloud" in found.wait.reason
    assert world.store.calendar.of_lease(lease.id) == ()
    world.run_to(NOON + 2 * HOUR + 9 * MINUTE)
    assert status(world, lease) is LeaseStatus.WAITING
    world.run_to(NOON + 2 * HOUR + 10 * MINUTE)
    assert status(world, lease) is LeaseStatus.ACTIVE


def test_one_whose_turn_fails_in_the_cloud_holds_up_nobody(world):
    lease = waits(world, instances(1, vcpus=1))
    behind = waits(world, a_host(3), project="chemistry")
    world.faults.fail_before("create_flavor", CloudUnavailable("nova is away"), times=9)
    world.run_to(NOON + 2 * HOUR)
    world.run()
    assert [status(world, each) for each in (lease, behind)] == [LeaseStatus.WAITING, LeaseStatus.ACTIVE]
    assert world.now(lease).wait.position == 1


def test_two_managers_grant_each_lease_once(world):
    leases = [waits(world, a_host(), project=f"p{n}") for n in range(3)]
    second = world.another_manager()
    world.manager.leases.delete(world.full.id)
    assert world.manager.waiting_list.run_once() + second.waiting_list.run_once() == 3
    held = [host for lease in leases for host in world.hosts_of(world.now(lease))]
    assert sorted(held) == ["node-1", "node-2", "node-3"]


def test_nothing_is_read_but_one_row_while_nobody_waits(sqlite):
    world = World(sqlite)
    with counted(world.engine) as statements:
        assert world.manager.waiting_list.run_once() == 0
    assert statements.count == 1


def test_one_that_enforcement_denies_holds_up_nobody_and_is_asked_again(sqlite):
    world = World(sqlite, filters=[Denies()])
    world.waits = True
    full = world.lease(a_host(3), project="biology")
    denied, other = waits(world, a_host(2)), waits(world, a_host(1), project="chemistry")
    world.manager.leases.delete(full.id)
    world.run()
    assert (status(world, denied), status(world, other)) == (LeaseStatus.WAITING, LeaseStatus.ACTIVE)
    assert world.now(denied).wait.reason == "physics may not"


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_turn_another_finishes_it(sqlite, phase):
    world = World(sqlite)
    world.waits = True
    for step in itertools.count(1):
        full = world.lease(a_host(3), project="biology")
        lease = waits(world, instances(2, vcpus=1), project="chemistry")
        world.manager.leases.delete(full.id)
        died = dies(world, world.manager.waiting_list.run_once, step, phase)
        world.manager = world.another_manager()
        world.run_to(world.clock.now() + 2 * MINUTE)
        found = world.now(lease)
        assert found.status is LeaseStatus.ACTIVE, step
        assert sum(a.count for a in world.store.calendar.of_lease(lease.id)) == 2
        world.manager.leases.delete(lease.id)
        world.run()
        if not died:
            return


@pytest.mark.slow
def test_a_plan_costs_no_more_statements_with_more_who_wait(sqlite):
    def cost(more: int) -> int:
        for number in range(more):
            waits(world, a_host(2), project=f"p{number}")
        with counted(world.engine) as statements:
            world.manager.waiting_list.run_once()
        return statements.count

    world = World(sqlite)
    world.lease(a_host(3), project="biology")
    cost(20)
    # All whose hosts others might leave share what is read for that.
    assert cost(2) == cost(20) == 12
