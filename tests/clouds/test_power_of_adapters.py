# SPDX-License-Identifier: Apache-2.0
"""Hosts of several adapters: each is asked by its own, and one that fails costs the others nothing."""

from __future__ import annotations

import threading

import pytest

from blazar.clouds.ports.power import MachinePower, NoPower, PowerReading, PowerRef
from blazar.clouds.power import PowerOfAdapters
from blazar.context import Pool, scope
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN


class Switches(NoPower):
    """Hosts that are all off, as long as they do not fail."""

    def __init__(self, error=None):
        self.error = error
        self.switched = []

    def power_states(self, refs):
        if self.error:
            raise self.error
        return {ref.resource_id: PowerReading(OFF) for ref in refs}

    def power_watts(self, refs):
        if self.error:
            raise self.error
        return {ref.resource_id: 8.0 for ref in refs}

    def begin_switch(self, ref, to, *, soft):
        self.switched.append((ref.host, to, soft))


def ref(adapter, host):
    return PowerRef(host, host, PowerAddress(adapter, host))


def test_a_host_is_asked_by_its_own_adapter_and_one_that_fails_costs_the_others_nothing():
    power = PowerOfAdapters(
        {PowerAdapter.HOOK: Switches(CloudUnavailable("the hook is down")), PowerAdapter.REDFISH: Switches()}
    )
    refs = [ref(PowerAdapter.HOOK, "a"), ref(PowerAdapter.REDFISH, "b"), ref(PowerAdapter.IRONIC, "c")]
    assert power.power_states(refs) == {
        "a": PowerReading(UNKNOWN, "the hook is down"),
        "b": PowerReading(OFF),
        "c": PowerReading(UNKNOWN, "its adapter ironic is not one of this cloud"),
    }
    assert power.power_watts(refs) == {"b": 8.0}


def test_a_switch_goes_to_the_adapter_of_the_host():
    hook, redfish = Switches(), Switches()
    power = PowerOfAdapters({PowerAdapter.HOOK: hook, PowerAdapter.REDFISH: redfish})
    power.begin_switch(ref(PowerAdapter.REDFISH, "b"), ON, soft=False)
    assert (hook.switched, redfish.switched) == ([], [("b", ON, False)])
    with pytest.raises(CloudRefused, match="ironic is not one of this cloud"):
        power.begin_switch(ref(PowerAdapter.IRONIC, "c"), ON, soft=False)
    with pytest.raises(InvalidInput, match="give one of hook, redfish"):
        power.check_address(PowerAddress(PowerAdapter.IRONIC, "c"))


def test_an_adapter_that_hangs_leaves_a_thread_to_other_work():
    class Hangs(Switches):
        def __init__(self):
            super().__init__()
            self.go_on = threading.Event()
            self.inside = threading.Semaphore(0)

        def power_states(self, refs):
            self.inside.release()
            self.go_on.wait(10)
            return super().power_states(refs)

    hangs = Hangs()
    power = PowerOfAdapters({PowerAdapter.REDFISH: hangs})
    pool = Pool("power", threads=4, patience=0.02)
    found = []

    def ask():
        with scope(pool=pool):
            found.append(power.power_states([ref(PowerAdapter.REDFISH, "a")])["a"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert hangs.inside.acquire(timeout=5)
    deadline = threading.Event()
    while not found and not deadline.wait(0.01):
        if all(not thread.is_alive() for thread in threads):
            break
    # Some were refused, and did not wait for the one that hangs.
    assert found
    assert all(one.state is UNKNOWN and "answers too slowly" in one.reason for one in found)
    hangs.go_on.set()
    for thread in threads:
        thread.join(5)
    assert {one.state for one in found} == {UNKNOWN, OFF}
