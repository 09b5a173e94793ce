# SPDX-License-Identifier: Apache-2.0
"""The worker puts hosts to sleep and wakes them by Redfish, on BMCs that are not ours: the emulator of sushy-tools.

Its systems change 1 to 11 seconds after they were told to. The nova-compute of a host goes with its power, and comes
up 40 seconds after it.
"""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest

from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.power.states import MARK, PowerState
from tests.clouds.bmcs import PASSWORD, redfish
from tests.clouds.emulator import SYSTEMS, find_port, run_emulator, system_url
from tests.configured import configured_world
from tests.manager.power.nights import HOUR, MINUTE, NO_SPARE, check_safe, hosts_of, log, mark, states, work
from tests.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BOOT = timedelta(seconds=40)
STEP = timedelta(seconds=5)
PAUSE = 1.0
"""Seconds that pass for the emulator in one step of the service: what is asked of it is never asked once more before it
could have been done, for that begins the emulator's wait again."""
State = PowerState


class Site:
    """A service whose two hosts have BMCs."""

    def __init__(self, world: World, folder) -> None:
        self.world = world
        self._folder = folder
        self._port = find_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._on_since: dict[str, datetime | None] = dict.fromkeys(SYSTEMS, world.clock.now() - HOUR)
        self._running = ExitStack()
        # A BMC that was silent is asked again within the time of a test.
        world.power = redfish(timeout=2.0, clock=lambda: time.monotonic() * 10)
        world.manager = world.another_manager()
        for host in hosts_of(world):
            address = PowerAddress(PowerAdapter.REDFISH, system_url(self.url, SYSTEMS[host.name]))
            world.manager.power.change(host.external_id, PowerChange(address))

    def start(self) -> None:
        self._running.enter_context(run_emulator(self._folder, port=self._port))
        end = time.monotonic() + 30
        while self.read_power("node-1") is None:
            assert time.monotonic() < end
            time.sleep(0.1)

    def stop(self) -> None:
        self._running.close()

    def read_power(self, name: str) -> str | None:
        """Return what the BMC of a host says, with nothing of ours between; None if it does not answer."""
        try:
            with urllib.request.urlopen(system_url(self.url, SYSTEMS[name]), timeout=2) as answer:
                return str(json.load(answer)["PowerState"])
        except OSError:
            return None

    def pass_time(self, span: timedelta, *, until: list[State] | None = None) -> None:
        """Let time pass, for as long at most as it takes until hosts are in these states."""
        clock, operators = self.world.clock, self.world.simulated.operators
        end = clock.now() + span
        while clock.now() < end and states(self.world) != until:
            for name in SYSTEMS:
                self._follow(name, operators)
            work(self.world.manager)
            self.world.manager.engine.run_due()
            check_safe(self.world)
            if {State.GOING_OFF, State.WAKING} & {*states(self.world)}:
                clock.to(clock.now() + STEP)
                time.sleep(PAUSE)
            else:
                clock.to(clock.now() + MINUTE)

    def _follow(self, name: str, operators) -> None:
        """Let the nova-compute of a host go with its power."""
        said, now = self.read_power(name), self.world.clock.now()
        if said == "Off":
            self._on_since[name] = None
            operators.host_down(name)
        elif said == "On":
            since = self._on_since[name] = self._on_since[name] or now
            if since <= now - BOOT:
                operators.host_up(name)


@pytest.fixture
def site(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, *NO_SPARE, hosts=2)
    world.clock.by(hours=1)
    site = Site(world, tmp_path)
    site.start()
    try:
        yield site
    finally:
        site.stop()


def test_hosts_sleep_and_are_awake_before_their_lease(site, caplog):
    world = site.world
    with caplog.at_level(logging.DEBUG):
        site.pass_time(30 * MINUTE, until=[State.OFF, State.OFF])
        assert states(world) == [State.OFF, State.OFF]
        assert [site.read_power(name) for name in SYSTEMS] == ["Off", "Off"]
        assert (mark(world, 1), mark(world, 2)) == (MARK, MARK)
        lease = world.lease(start=35 * MINUTE)
        (held,) = world.hosts_of(lease)
        site.pass_time(lease.window.start - world.clock.now() - MINUTE)
        assert site.read_power(held) == "On"
        site.pass_time(2 * MINUTE)
    assert world.now(lease).status == "ACTIVE"
    number = int(held[-1])
    assert mark(world, number) is None
    assert log(world, number) == [("going_off", "idle"), ("off", "done"), ("waking", "start"), ("on", "done")]
    assert site.read_power(f"node-{3 - number}") == "Off"
    assert PASSWORD not in caplog.text


def test_a_host_whose_bmc_is_away_when_it_is_to_wake_wakes_once_that_is_back(site):
    world = site.world
    site.pass_time(30 * MINUTE, until=[State.OFF, State.OFF])
    site.stop()
    for host in hosts_of(world):
        world.manager.power.wake(host.external_id)
    site.pass_time(5 * MINUTE)
    assert states(world) == [State.WAKING, State.WAKING]
    site.start()
    assert [site.read_power(name) for name in SYSTEMS] == ["Off", "Off"]
    site.pass_time(20 * MINUTE, until=[State.ON, State.ON])
    assert states(world) == [State.ON, State.ON]
    assert (mark(world, 1), mark(world, 2)) == (None, None)
