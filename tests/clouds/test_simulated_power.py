# SPDX-License-Identifier: Apache-2.0
"""The power of simulated hosts: what takes time, what fails, and what lies."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from blazar.clouds.ports.power import MachinePower, NoPower, PowerRef
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.machines import PowerChances, PowerFault
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from tests.people import PeopledCloud
from tests.world import ManualClock

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN
HOST = "node-1"


def ref(host=HOST):
    return PowerRef(f"id-{host}", host, PowerAddress(PowerAdapter.SIMULATED, host))


class Site:
    """A cloud whose hosts take three minutes to shut down, and six to wake."""

    def __init__(self, storage) -> None:
        self.clock = ManualClock()
        self.cloud = PeopledCloud(storage, clock=self.clock)
        self.cloud.durations.shutdown = timedelta(minutes=3)
        self.cloud.durations.wake = timedelta(minutes=6)

    def switch(self, to, *, soft=True, host=HOST):
        self.cloud.power.begin_switch(ref(host), to, soft=soft)

    def pass_minutes(self, minutes):
        self.clock.by(minutes=minutes)

    def state(self, host=HOST):
        return self.cloud.power.power_states([ref(host)])[f"id-{host}"].state

    def is_up(self, host=HOST):
        return self.cloud.compute.hypervisor(hostname=host).up

    def watts(self, host=HOST):
        return self.cloud.power.power_watts([ref(host)]).get(f"id-{host}")


@pytest.fixture(params=["memory", "file"])
def site(request, tmp_path):
    state = of_size(3)
    return Site(MemoryStorage(state) if request.param == "memory" else FileStorage(tmp_path / "cloud.json", state))


def test_a_host_that_nobody_has_switched_is_on_and_its_nova_compute_is_up(site):
    assert (site.state(), site.is_up(), site.watts()) == (ON, True, 180)


def test_a_soft_switch_takes_the_time_of_a_shutdown_and_a_hard_one_none(site):
    site.switch(OFF)
    site.pass_minutes(2)
    assert (site.state(), site.is_up()) == (ON, True)
    site.pass_minutes(1)
    assert (site.state(), site.is_up(), site.watts()) == (OFF, False, 8)
    site.switch(OFF, host="node-2")
    site.switch(OFF, soft=False, host="node-2")
    assert (site.state("node-2"), site.is_up("node-2")) == (OFF, False)
    assert site.state("node-3") is ON


def test_nova_compute_comes_up_some_time_after_the_power(site):
    site.switch(OFF, soft=False)
    site.switch(ON)
    assert (site.state(), site.is_up(), site.watts()) == (ON, False, 250)
    site.pass_minutes(6)
    assert (site.state(), site.is_up(), site.watts()) == (ON, True, 180)


def test_what_is_so_already_is_not_done_again(site):
    site.switch(OFF)
    site.pass_minutes(2)
    site.switch(OFF)
    site.pass_minutes(1)
    assert site.state() is OFF
    site.switch(ON)
    site.pass_minutes(5)
    site.switch(ON)
    site.pass_minutes(1)
    assert site.is_up()


def test_a_booking_that_came_in_between_switches_a_host_on_that_shuts_down(site):
    site.switch(OFF)
    site.pass_minutes(1)
    site.switch(ON)
    site.pass_minutes(30)
    assert (site.state(), site.is_up()) == (ON, True)


@pytest.mark.parametrize(
    ("fault", "error"), [(PowerFault.SILENT, CloudUnavailable), (PowerFault.REFUSES, CloudRefused)]
)
def test_a_controller_that_is_silent_or_refuses_switches_nothing(site, fault, error):
    site.cloud.operators.spoil_power(HOST, fault)
    with pytest.raises(error):
        site.switch(OFF)
    # A silent one is never taken for off.
    assert site.state() is (UNKNOWN if fault is PowerFault.SILENT else ON)
    assert site.is_up()
    site.cloud.operators.spoil_power(HOST, None)
    site.switch(OFF, soft=False)
    assert site.state() is OFF


def test_a_controller_that_lies_says_off_while_the_host_runs(site):
    site.cloud.operators.spoil_power(HOST, PowerFault.IGNORES)
    site.switch(OFF, soft=False)
    assert (site.state(), site.is_up()) == (OFF, True)


def test_a_host_that_hangs_is_only_switched_off_hard(site):
    site.cloud.operators.spoil_power(HOST, PowerFault.HANGS)
    site.switch(OFF)
    site.pass_minutes(60)
    assert site.state() is ON
    site.switch(OFF, soft=False)
    assert site.state() is OFF


def test_a_host_that_does_not_wake_does_after_a_power_cycle(site):
    site.switch(OFF, soft=False)
    site.cloud.operators.spoil_power(HOST, PowerFault.SLEEPS_ON)
    site.switch(ON)
    site.pass_minutes(60)
    assert (site.state(), site.is_up()) == (ON, False)
    site.cloud.operators.spoil_power(HOST, None)
    site.switch(OFF, soft=False)
    site.switch(ON)
    site.pass_minutes(6)
    assert site.is_up()


def test_a_button_is_pressed_whatever_the_controller_knows(site):
    site.cloud.operators.press_power(HOST, on=False)
    assert (site.state(), site.is_up()) == (OFF, False)
    site.cloud.operators.press_power(HOST, on=True)
    assert (site.state(), site.is_up()) == (ON, True)


def test_a_host_that_the_cloud_does_not_have_is_unknown(site):
    assert site.state("node-99") is UNKNOWN
    assert site.watts("node-99") is None
    with pytest.raises(CloudRefused):
        site.switch(OFF, host="node-99")
    for adapter, target in ((PowerAdapter.SIMULATED, ""), (PowerAdapter.REDFISH, "https://192.0.2.1")):
        with pytest.raises(InvalidInput):
            site.cloud.power.check_address(PowerAddress(adapter, target))


def test_chances_are_kept_and_do_not_depend_on_the_order_of_hosts():
    chances = PowerChances(seed=7, refuses=0.02, sleeps_on=0.1, spread=timedelta(minutes=5))
    drawn = {(host, n): chances.draw(f"node-{host}", n) for host in range(400) for n in range(5)}
    assert drawn == {(h, n): chances.draw(f"node-{h}", n) for h, n in reversed(list(drawn))}
    counted = Counter(fault for fault, _ in drawn.values())
    assert 20 <= counted[PowerFault.REFUSES] <= 60
    assert 150 <= counted[PowerFault.SLEEPS_ON] <= 250
    assert max(longer for _, longer in drawn.values()) <= timedelta(minutes=5)
    assert PowerChances(seed=8, sleeps_on=0.5).draw("a", 1) == PowerChances(seed=8, sleeps_on=0.5).draw("a", 1)


def test_a_cloud_without_power_says_so():
    assert NoPower().power_states([ref()])[f"id-{HOST}"].state is UNKNOWN
    assert NoPower().power_watts([ref()]) == {}
    with pytest.raises(CloudRefused):
        NoPower().begin_switch(ref(), OFF, soft=True)
