# SPDX-License-Identifier: Apache-2.0
"""The simulated cloud: services over one state, its users and operators, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from blazar.clouds.ports import Cloud, OtherPorts
from blazar.clouds.simulated.aggregates import SimulatedAggregates
from blazar.clouds.simulated.booting import SimulatedBooting
from blazar.clouds.simulated.evacuation import SimulatedEvacuation
from blazar.clouds.simulated.flavors import SimulatedFlavors
from blazar.clouds.simulated.hooks import SimulatedHooks
from blazar.clouds.simulated.machines import PowerChances
from blazar.clouds.simulated.network import SimulatedNetwork
from blazar.clouds.simulated.operators import Operators
from blazar.clouds.simulated.placement import SimulatedPlacement
from blazar.clouds.simulated.power import SimulatedPower
from blazar.clouds.simulated.projects import SimulatedProjects, SimulatedQuotas
from blazar.clouds.simulated.segments import SimulatedSegments
from blazar.clouds.simulated.servers import SimulatedServers
from blazar.clouds.simulated.service import Calls, Durations, Faults
from blazar.clouds.simulated.stacks import SimulatedStacks
from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.storage import StateStorage
from blazar.clouds.simulated.volumes import SimulatedVolumes
from blazar.model.base.clock import Clock


class SimulatedCompute(SimulatedAggregates, SimulatedServers, SimulatedFlavors):
    """Implements the compute port, by its roles; rules as in Nova 34."""


class SimulatedCloud:
    """A cloud of simulated services, one for each port.

    ``operators`` do what they do in a cloud without Blazar, and without its faults. What takes time takes as long as
    ``durations`` says, by the clock. ``chances`` are those that the power of a host is not switched as it should be.
    """

    def __init__(
        self,
        storage: StateStorage,
        *,
        clock: Clock,
        faults: Faults | None = None,
        durations: Durations | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self.durations = durations or Durations()
        self.chances = PowerChances()
        calls = Calls(storage, self.faults)
        self.compute = SimulatedCompute(calls, clock, self.durations)
        self.placement = SimulatedPlacement(calls, clock, self.durations)
        self.evacuation = SimulatedEvacuation(calls, clock, self.durations)
        self.network = SimulatedNetwork(calls, clock, self.durations)
        self.segments = SimulatedSegments(calls, clock, self.durations)
        self.projects = SimulatedProjects(calls, clock, self.durations)
        self.volumes = SimulatedVolumes(calls, clock, self.durations)
        self.stacks = SimulatedStacks(calls, clock, self.durations)
        self.booting = SimulatedBooting(calls, clock, self.durations)
        self.hooks = SimulatedHooks(calls, clock, self.durations)
        self.quotas = SimulatedQuotas(calls, clock, self.durations)
        self.power = SimulatedPower(calls, clock, self.durations, self.chances)
        self.operators = Operators(storage, clock)
        self._storage = storage
        self._others = OtherPorts("simulated")

    @property
    def cloud(self) -> Cloud:
        """The ports of the cloud."""
        return Cloud(
            compute=self.compute,
            placement=self.placement,
            evacuation=self.evacuation,
            network=self.network,
            segments=self.segments,
            projects=self.projects,
            volumes=self.volumes,
            stacks=self.stacks,
            booting=self.booting,
            hooks=self.hooks,
            quotas=self.quotas,
            power=self.power,
            others=self._others,
        )

    @contextmanager
    def inspect(self) -> Iterator[State]:
        """Yield a copy of the whole state, without faults; the cloud does not change before the block ends."""
        with self._storage.open(to_change=False) as state:
            yield state.copy()

    def change_state(self) -> AbstractContextManager[State]:
        """Open the state to change it in another way than by calls of a service, and without faults."""
        return self._storage.open(to_change=True)
