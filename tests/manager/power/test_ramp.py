# SPDX-License-Identifier: Apache-2.0
"""A start keeps the ramp, too: no more hosts are switched in a minute than it allows."""

from __future__ import annotations

from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.power.states import PowerState, WakingHosts
from tests.configured import configured_world
from tests.manager.power.nights import MINUTE, NO_SPARE, SECOND, give_switches, pass_time, states
from tests.manager.power.test_neighbours import availability, sleep
from tests.world import a_host


def test_a_start_at_once_wakes_its_hosts_one_after_the_other_and_says_so(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, *NO_SPARE, "ramp = 1", hosts=3)
    give_switches(world)
    world.clock.by(hours=1)
    pass_time(world, 8 * MINUTE)
    assert states(world) == [PowerState.OFF] * 3
    world.clock.by(minutes=2)
    lease = world.lease(a_host(3))
    begun = world.clock.now()
    world.run()
    assert states(world).count(PowerState.WAKING) == 1
    assert world.now(lease).event(EventType.START).cause.until == begun + 13 * MINUTE
    while world.now(lease).status is not LeaseStatus.ACTIVE:
        before = states(world).count(PowerState.OFF)
        pass_time(world, 30 * SECOND, step=5 * SECOND)
        world.run()
        assert before - states(world).count(PowerState.OFF) <= 1
        assert world.clock.now() < begun + 13 * MINUTE


def test_a_start_after_the_lead_that_needs_more_hosts_than_can_be_woken_by_then_says_when_they_are(sqlite, tmp_path):
    """Within the lead of 30 minutes 20 hosts begin to wake, one a minute, and the last one takes 11 minutes."""
    world = configured_world(sqlite, tmp_path, *NO_SPARE, "ramp = 1", hosts=25)
    sleep(world, *(f"node-{number}" for number in range(1, 25)))
    now = world.clock.now()
    assert availability(world, in_=31 * MINUTE, hosts=20).waking is None
    assert availability(world, in_=31 * MINUTE, hosts=25).waking == WakingHosts(24, now + 34 * MINUTE)
    assert availability(world, in_=55 * MINUTE, hosts=25).waking is None
    # One that is awake comes first, as the others may be needed by somebody else, too.
    assert world.hosts_of(world.lease(start=31 * MINUTE)) == {"node-25"}
