# SPDX-License-Identifier: Apache-2.0
"""Our client of Redfish against a BMC that is not ours: the emulator of sushy-tools, with fake systems.

It makes a change 1 to 11 seconds after it was asked for, when somebody reads, and loses a second change before that.
"""

from __future__ import annotations

import time

import pytest

from blazar.clouds.ports.power import MachinePower, PowerRef
from blazar.model.base.errors import CloudRefused
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from tests.clouds.bmcs import redfish
from tests.clouds.emulator import SYSTEMS, run_emulator, system_url

pytestmark = [pytest.mark.slow]

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    with run_emulator(tmp_path_factory.mktemp("bmc")) as url:
        yield url


class Machines:
    """The systems of the emulator, by our adapter."""

    def __init__(self, url):
        self.url = url
        self.now = [0.0]
        # Time passes for what was silent, so that a server that is only starting is asked again.
        self.power = redfish(clock=lambda: self.now.__setitem__(0, self.now[0] + 61) or self.now[0])

    def ref(self, name, system=None):
        target = system_url(self.url, system or SYSTEMS[name])
        return PowerRef(name, name, PowerAddress(PowerAdapter.REDFISH, target))

    def states(self):
        found = self.power.power_states([self.ref(name) for name in SYSTEMS])
        return [found[name].state for name in SYSTEMS]

    def wait(self, *states):
        end = time.monotonic() + 40
        while self.states() != list(states):
            assert time.monotonic() < end, self.states()
            time.sleep(0.2)


@pytest.fixture
def machines(emulator):
    made = Machines(emulator)
    made.wait(ON, ON)
    return made


def test_a_host_is_switched_off_and_on_and_the_other_one_stays(machines):
    machines.power.begin_switch(machines.ref("node-1"), OFF, soft=True)
    machines.wait(OFF, ON)
    machines.power.begin_switch(machines.ref("node-1"), OFF, soft=False)
    machines.power.begin_switch(machines.ref("node-1"), ON, soft=False)
    machines.wait(ON, ON)
    machines.power.begin_switch(machines.ref("node-2"), OFF, soft=False)
    machines.wait(ON, OFF)
    machines.power.begin_switch(machines.ref("node-2"), ON, soft=False)
    machines.wait(ON, ON)


def test_what_it_does_not_have_is_unknown_or_refused(machines):
    missing = machines.ref("node-1", "33333333-3333-3333-3333-333333333333")
    reading = machines.power.power_states([missing])["node-1"]
    assert reading.state is UNKNOWN
    assert "(404)" in reading.reason
    with pytest.raises(CloudRefused, match="404"):
        machines.power.begin_switch(missing, OFF, soft=False)
    # A name leads to the id by a redirect, which is not followed.
    by_name = machines.power.power_states([machines.ref("node-1", "node-1")])["node-1"]
    assert (by_name.state, "a redirect" in by_name.reason) == (UNKNOWN, True)


def test_it_measures_no_watts_and_that_is_no_number(machines):
    assert machines.power.power_watts([machines.ref(name) for name in SYSTEMS]) == {}
