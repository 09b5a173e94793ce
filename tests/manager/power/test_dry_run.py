# SPDX-License-Identifier: Apache-2.0
"""A dry run of power plans each minute which hosts would sleep, and touches none of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from blazar.clouds.ports.compute import CHANGES
from blazar.model.base.errors import CloudUnavailable
from blazar.model.power.hosts import PowerChange, PowerSums
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import HOST
from tests.configured import configured_world
from tests.world import World

DRY_RUN = ("[power]", "mode = dry_run")
NO_SPARE = (*DRY_RUN, "spare = 0")
HOUR = timedelta(hours=1)


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., World]:
    """Start a service with a file of these lines; its hosts have been on for an hour."""

    def run(*lines: str, **more: object) -> World:
        world = configured_world(sqlite, tmp_path, *lines, **more)
        world.clock.by(hours=1)
        return world

    return run


def pass_minutes(world: World, minutes: int, *, step: int = 1) -> list[list[PowerState]]:
    """Let minutes pass; return the states of all hosts after each step."""
    found = []
    for _ in range(0, minutes, step):
        world.manager.power_work[0].run_once()
        found.append(states(world))
        world.clock.by(minutes=step)
    return found


def rehearsed(world: World, since: datetime) -> PowerSums:
    """Return what would have happened of hosts since an instant."""
    return world.store.power_hosts.sum_log(since).get((HOST, True), PowerSums())


def states(world: World) -> list[PowerState]:
    view = world.store.power.read_view(world.clock.now(), rehearsed=True)
    return [host.state for host in sorted(view.hosts, key=lambda host: host.resource_id)]


def test_nothing_is_planned_unless_an_operator_says_so(start):
    world = start()
    assert [work.run_once() for work in world.manager.power_work] == [0, 0]
    assert world.store.power.next_turn() is None


def test_hosts_that_nobody_needs_would_sleep_and_none_is_touched(start):
    world = start(*NO_SPARE)
    world.faults.calls.clear()
    pass_minutes(world, 5)
    assert states(world) == [PowerState.OFF] * 3
    assert not CHANGES & world.faults.calls.keys()
    assert all(hypervisor.enabled for hypervisor in world.simulated.cloud.compute.hypervisors())


def test_a_host_is_awake_again_when_its_lease_begins(start):
    world = start(*NO_SPARE)
    world.lease(start=4 * HOUR)
    pass_minutes(world, 4 * 60 - 30, step=15)
    assert states(world) == [PowerState.OFF] * 3
    lead = pass_minutes(world, 31)
    assert [PowerState.WAKING in one for one in lead[:3]].count(True) > 0
    assert lead[-1].count(PowerState.ON) == 1
    assert rehearsed(world, world.clock.now() - 5 * HOUR).missed == 0


def test_a_start_at_once_that_would_find_its_host_asleep_is_noted(start):
    world = start(*NO_SPARE)
    pass_minutes(world, 10)
    world.lease()
    pass_minutes(world, 3)
    assert rehearsed(world, world.clock.now() - HOUR).missed == 1
    assert states(world).count(PowerState.ON) == 1


def test_a_host_with_a_server_of_somebody_stays_on_and_is_asked_again_in_an_hour(start):
    world = start(*NO_SPARE)
    world.simulated.users.boot_server("work", project_id="physics", user_id="u", host="node-1", status="ACTIVE")
    pass_minutes(world, 5)
    assert states(world) == [PowerState.ON, PowerState.OFF, PowerState.OFF]
    world.faults.calls.clear()
    pass_minutes(world, 50)
    assert not world.faults.calls


def test_while_the_cloud_does_not_say_where_servers_run_no_host_would_sleep(start):
    world = start(*NO_SPARE)
    world.faults.fail_before("count_servers", CloudUnavailable("no answer"), times=2)
    assert pass_minutes(world, 2)[-1] == [PowerState.ON] * 3
    assert pass_minutes(world, 1)[-1] == [PowerState.GOING_OFF] * 3


def test_a_host_that_is_to_stay_on_is_woken_and_stays_on(start):
    world = start(*NO_SPARE)
    pass_minutes(world, 5)
    world.manager.power.change("1", PowerChange(policy=PowerPolicy.KEEP))
    pass_minutes(world, 120, step=5)
    assert states(world).count(PowerState.ON) == 1


def test_of_two_managers_one_plans_in_each_minute(start):
    world = start(*DRY_RUN, "spare = 0", "ramp = 1")
    another = world.another_manager()
    assert [manager.power_work[0].run_once() for manager in (world.manager, another)] == [1, 0]
    world.clock.by(minutes=1)
    assert [manager.power_work[0].run_once() for manager in (another, world.manager)] == [1, 0]
    assert states(world).count(PowerState.ON) == 1


def test_a_turn_of_a_manager_that_was_killed_passes_to_another(start):
    world = start(*NO_SPARE)
    ttl = world.settings.claim_ttl
    assert world.store.power.claim_turn("gone", now=world.clock.now(), until=world.clock.now() + ttl)
    assert pass_minutes(world, 2) == [[PowerState.ON] * 3, [PowerState.GOING_OFF] * 3]


@pytest.mark.slow
def test_what_would_have_been_done_is_told_each_hour(start, caplog):
    world = start(*NO_SPARE)
    with caplog.at_level(logging.INFO, logger="blazar.manager.power.work"):
        pass_minutes(world, 62)
    (told, _) = [record.message for record in caplog.records if "dry run" in record.message]
    assert told.startswith("Power, dry run: 0 of 3 hosts would sleep now")
    assert "3 of 3 hosts would sleep now; within a day they would have been switched off 3 times" in caplog.text


@pytest.mark.slow
def test_the_record_of_a_dry_run_does_not_grow_for_ever(start):
    world = start(*NO_SPARE)
    pass_minutes(world, 10)
    begun_at = world.clock.now() - HOUR
    assert rehearsed(world, begun_at).switched_off == 3
    world.clock.by(days=61, minutes=60 - world.clock.now().minute)
    pass_minutes(world, 1)
    assert rehearsed(world, begun_at).switched_off == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("line", "asleep"),
    [("spare = 0", 3), ("spare = 1", 2), ("spare = 3", 0), ("spare = -1", 2)],
    ids=["none", "one", "all", "learned"],
)
def test_as_many_stay_awake_as_the_file_says(start, line, asleep):
    world = start(*DRY_RUN, line)
    pass_minutes(world, 10)
    assert states(world).count(PowerState.OFF) == asleep


@pytest.mark.sample(1)
@pytest.mark.parametrize(("line", "minutes"), [("idle_after = 0", 1), ("idle_after = 600", 11)])
def test_a_host_is_idle_for_as_long_as_the_file_says(start, line, minutes):
    world = start(*NO_SPARE, line, hosts=1)
    lease = world.lease(hours=1)
    world.run()
    world.run_to(lease.window.end)
    world.run()
    found = pass_minutes(world, 15)
    assert [one[0] for one in found].index(PowerState.GOING_OFF) in (minutes - 1, minutes)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("line", "asleep"), [("min_off = 7200", 1), ("min_off = 14400", 0)])
def test_a_host_sleeps_only_if_it_can_for_as_long_as_the_file_says(start, line, asleep):
    world = start(*NO_SPARE, line, hosts=1)
    world.lease(start=3 * HOUR)
    pass_minutes(world, 10)
    assert states(world).count(PowerState.OFF) == asleep


@pytest.mark.sample(1)
@pytest.mark.parametrize(("line", "lead"), [("wake_timeout = 900", 30), ("wake_timeout = 3600", 65)])
def test_a_host_is_woken_so_long_before_a_start_that_a_second_try_fits(start, line, lead):
    world = start(*NO_SPARE, line, hosts=1)
    world.lease(start=5 * HOUR)
    found = pass_minutes(world, 5 * 60, step=5)
    woken = [one[0] for one in found].index(PowerState.WAKING)
    assert woken == (5 * 60 - lead) // 5


@pytest.mark.sample(1)
@pytest.mark.parametrize(("line", "switched"), [("ramp = 1", 1), ("ramp = 2", 2), ("ramp = 10", 3)])
def test_no_more_hosts_are_switched_in_a_minute_than_the_file_says(start, line, switched):
    world = start(*NO_SPARE, line)
    assert pass_minutes(world, 1)[-1].count(PowerState.GOING_OFF) == switched


@pytest.mark.sample(1)
@pytest.mark.parametrize(("line", "cycles"), [("cycles_per_day = 1", 1), ("cycles_per_day = 2", 2)])
def test_a_host_is_not_switched_off_more_often_in_a_day_than_the_file_says(start, line, cycles):
    world = start(*NO_SPARE, line, hosts=1)
    for _ in range(3):
        pass_minutes(world, 10)
        lease = world.lease(hours=1)
        pass_minutes(world, 2)
        world.manager.leases.delete(lease.id)
        pass_minutes(world, 30, step=5)
    assert rehearsed(world, world.clock.now() - 10 * HOUR).switched_off == cycles
