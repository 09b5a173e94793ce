# SPDX-License-Identifier: Apache-2.0
"""The machines below the simulated hosts: their power, and when nova-compute is up on them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.values import dataclass


class PowerFault(StrEnum):
    """What is wrong with the power of a machine."""

    SILENT = "silent"
    """Its controller does not answer."""
    REFUSES = "refuses"
    """Its controller refuses to switch it."""
    IGNORES = "ignores"
    """Its controller accepts that it is switched, says it is done, and does nothing."""
    HANGS = "hangs"
    """Its operating system does not shut down: only a hard switch has an effect."""
    SLEEPS_ON = "sleeps on"
    """It is switched on, but nova-compute does not come up before it is switched off and on again."""


@dataclass(slots=True)
class PowerChances:
    """How often something is wrong with one switch, from 0 to 1; what it is depends on the seed, the host and how often
    the host was switched, not on the order of hosts. ``spread`` is the most by which a wake takes longer than usual.
    """

    seed: int = 0
    refuses: float = 0.0
    ignores: float = 0.0
    hangs: float = 0.0
    sleeps_on: float = 0.0
    spread: timedelta = timedelta(0)

    def draw(self, host: str, switched: int) -> tuple[PowerFault | None, timedelta]:
        """Return the fault of a switch, and by how much longer the wake takes."""
        dice = random.Random(f"{self.seed}/{host}/{switched}")
        spread = self.spread * dice.random()
        drawn = dice.random()
        for fault in (PowerFault.REFUSES, PowerFault.IGNORES, PowerFault.HANGS, PowerFault.SLEEPS_ON):
            drawn -= getattr(self, fault.name.lower())
            if drawn < 0:
                return fault, spread
        return None, spread


@dataclass(slots=True)
class MachineState:
    """The power of a host: ``on`` is true of it from ``changed_at`` on (ISO 8601), and the opposite before.

    ``up_at`` is when nova-compute is up after that, empty if it never is. ``says`` is what a controller says that lies,
    empty if it says what is true. ``fault`` lasts until an operator ends it; ``switched`` counts switches.
    """

    on: bool
    changed_at: str
    up_at: str = ""
    says: str = ""
    fault: str = ""
    switched: int = 0

    def turn_on(self, now: datetime, up_at: datetime | None) -> None:
        """Give it power; nova-compute is up at an instant, or never."""
        self.on, self.changed_at, self.up_at = True, now.isoformat(), "" if up_at is None else up_at.isoformat()

    def turn_off(self, at: datetime) -> None:
        """Take its power at an instant."""
        self.on, self.changed_at, self.up_at = False, at.isoformat(), ""

    def is_on(self, now: datetime) -> bool:
        """Return whether it has power."""
        return self.on == (datetime.fromisoformat(self.changed_at) <= now)

    def is_up(self, now: datetime) -> bool:
        """Return whether nova-compute runs as far as power allows it."""
        if not self.is_on(now):
            return False
        # While it shuts down, its nova-compute is still there.
        return not self.on or bool(self.up_at and datetime.fromisoformat(self.up_at) <= now)
