# SPDX-License-Identifier: Apache-2.0
"""The simulated power of hosts and pools of volumes: switching takes time, may be refused, ignored, or lied about."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef
from blazar.clouds.simulated.machines import MachineState, PowerChances, PowerFault
from blazar.clouds.simulated.service import Calls, Durations, SimulatedService
from blazar.clouds.simulated.state import State
from blazar.model.base.clock import Clock
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress

OFF_WATTS, IDLE_WATTS, BOOT_WATTS, SERVER_WATTS, MOST_WATTS = 8.0, 180.0, 250.0, 20.0, 400.0
"""What a host draws while it is off, idle and booting, for each server on it, and at most."""


class SimulatedPower(SimulatedService):
    """Implements the port of power, for every address: the host is known by its name."""

    def __init__(self, calls: Calls, clock: Clock, durations: Durations, chances: PowerChances) -> None:
        super().__init__(calls, clock, durations)
        self._chances = chances

    def check_address(self, address: PowerAddress) -> None:
        """Refuse other adapters, and what is empty."""
        with self._calls.reading("check_address"):
            if address.adapter is not PowerAdapter.SIMULATED:
                raise InvalidInput(
                    f"adapter is {address.adapter}, which a simulated cloud does not have; give simulated",
                    at="/adapter",
                )
            if not address.target:
                raise InvalidInput("target is empty; give the name of the host", at="/target")

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return what the machines say; a silent one, and a host that there is not, are unknown."""
        with self._calls.reading("power_states") as state:
            return {ref.resource_id: self._read(state, ref.host) for ref in refs}

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Switch a host in the times of ``Durations.shutdown`` and ``Durations.wake``."""
        with self._calls.changing("begin_switch") as state:
            check_machine(state, ref.host)
            now = self._clock.now()
            machine = state.machines.setdefault(ref.host, MachineState(True, now.isoformat(), now.isoformat()))
            if machine.fault == PowerFault.SILENT:
                raise CloudUnavailable("its BMC did not answer in time")
            machine.switched += 1
            fault, longer = self._chances.draw(ref.host, machine.switched)
            fault = PowerFault(machine.fault) if machine.fault else fault
            wanted = to is MachinePower.ON
            if fault is PowerFault.REFUSES:
                raise CloudRefused("its BMC refuses to switch it")
            machine.says = str(to) if fault is PowerFault.IGNORES else ""
            if machine.says or (soft and not wanted and fault is PowerFault.HANGS):
                return
            if machine.on == wanted and (wanted or soft):
                return
            if wanted:
                up_at = now + self._durations.wake + longer
                machine.turn_on(now, None if fault is PowerFault.SLEEPS_ON else up_at)
            else:
                machine.turn_off(now + self._durations.shutdown if soft else now)

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return what the hosts draw that answer."""
        with self._calls.reading("power_watts") as state:
            return {
                ref.resource_id: self._watts(state, ref.host)
                for ref in refs
                if self._read(state, ref.host).state is not MachinePower.UNKNOWN
            }

    def _read(self, state: State, host: str) -> PowerReading:
        if not _has_machine(state, host):
            return PowerReading(MachinePower.UNKNOWN, f"there is no machine {host}")
        machine = state.machines.get(host)
        if machine is None:
            return PowerReading(MachinePower.ON)
        if machine.fault == PowerFault.SILENT:
            return PowerReading(MachinePower.UNKNOWN, "its BMC did not answer in time")
        if machine.says:
            return PowerReading(MachinePower(machine.says))
        return PowerReading(MachinePower.ON if machine.is_on(self._clock.now()) else MachinePower.OFF)

    def _watts(self, state: State, name: str) -> float:
        now = self._clock.now()
        servers = [
            server
            for host in state.hosts.values()
            if host.name == name
            for server in state.occupants(host.service_name, now)
        ]
        machine = state.machines.get(name)
        if machine is not None and not machine.is_on(now):
            return OFF_WATTS
        if machine is not None and not machine.is_up(now):
            return BOOT_WATTS
        return min(MOST_WATTS, IDLE_WATTS + SERVER_WATTS * len(servers))


def check_machine(state: State, name: str) -> None:
    """Raise CloudRefused if there is neither a host nor a pool of volumes with this name."""
    if not _has_machine(state, name):
        raise CloudRefused(f"there is no machine {name}")


def _has_machine(state: State, name: str) -> bool:
    return name in {*(host.name for host in state.hosts.values()), *(pool.name for pool in state.block.pools)}
