# SPDX-License-Identifier: Apache-2.0
"""What hosts of a simulated month draw: some are measured, with another mean in each hour, and the rest are rated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from blazar.model.energy.book import EnergyReading, EnergyTerms, HostHour
from blazar.model.resources.resource import HOST
from tests.slow.money.pieces import Unit
from tests.world import World

TERMS = EnergyTerms(records=True)
HOUR = 3600
MEASURED_HOURS = 24 * 33


def sheet_of(number: int) -> dict[str, str]:
    """Return the data sheet of a host."""
    return {"power_idle_w": str(100 + 2 * number), "power_max_w": str(300 + 4 * number)}


@dataclass(frozen=True)
class Power:
    """Hosts with their VCPUs by name; some are measured from an hour on."""

    vcpus: Mapping[str, int]
    first: int

    def _measure(self, number: int, hour: int) -> int | None:
        """Return the mean of an hour in watts; None if nothing measures that host then."""
        if number % 3 or number > 60 or not self.first <= hour < self.first + MEASURED_HOURS * HOUR:
            return None
        return 50 + 7 * number + hour // HOUR * 7919 % 211

    def watts(self, unit: Unit, instant: int) -> Fraction:
        """Return what a unit draws at an instant: a host, or a VCPU of one; of others nothing is known."""
        if unit.measure not in ("host", "vcpu"):
            return Fraction(0)
        number = int(unit.resource.removeprefix("node-"))
        measured = self._measure(number, instant - instant % HOUR)
        # Half of the load.
        whole = Fraction(200 + 3 * number if measured is None else measured)
        return whole if unit.measure == "host" else whole / self.vcpus[unit.resource]

    def record(self, world: World) -> None:
        """Put on record what is measured of all hours."""
        world.store.energy.claim_turn("mine", now=world.clock.now(), until=world.clock.now())
        hours = [
            HostHour(host.id, hour, 1000 * watts, 12)
            for host in world.store.resources.catalog(HOST).resources
            for hour in range(self.first, self.first + MEASURED_HOURS * HOUR, HOUR)
            if (watts := self._measure(int(host.name.removeprefix("node-")), hour)) is not None
        ]
        world.store.energy.record("mine", EnergyReading(hours))
