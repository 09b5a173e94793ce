# SPDX-License-Identifier: Apache-2.0
"""The base of every simulated service: calls with faults over one state, a clock, and durations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from blazar.clouds.simulated.faults import Faults
from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.storage import StateStorage
from blazar.context import check_change
from blazar.model.clock import Clock


@dataclass(slots=True)
class Durations:
    """How long the cloud takes to complete what a call begins; tests change it.

    ``settling``: from the arrival of a server that moves cold until the move can be confirmed. ``hook``: until a
    thing with a hook is handed over, or back. ``volume``: until a volume is there. ``stack``: until a stack is made,
    or deleted. ``boot``: until a server that the service boots is ACTIVE.
    """

    deletion: timedelta = timedelta(0)
    snapshot: timedelta = timedelta(0)
    migration: timedelta = timedelta(0)
    settling: timedelta = timedelta(0)
    hook: timedelta = timedelta(0)
    volume: timedelta = timedelta(0)
    stack: timedelta = timedelta(0)
    boot: timedelta = timedelta(0)


class Calls:
    """The calls of the ports of one cloud: each may fail or be slow, and opens the state once."""

    def __init__(self, storage: StateStorage, faults: Faults) -> None:
        self._storage = storage
        self._faults = faults

    @contextmanager
    def reading(self, call: str) -> Iterator[State]:
        """Make a call that changes nothing; yield the state to read it."""
        # The faults are outside of the state's lock: a slow call does not delay the others.
        with self._faults.around(call), self._storage.open(to_change=False) as state:
            yield state

    @contextmanager
    def changing(self, call: str) -> Iterator[State]:
        """Make a call of ``CHANGES``, after the check of the caller's claim; yield the state to change it."""
        with self._faults.around(call):
            check_change()
            with self._storage.open(to_change=True) as state:
                yield state


class SimulatedService:
    """Base of the simulated services."""

    def __init__(self, calls: Calls, clock: Clock, durations: Durations) -> None:
        self._calls = calls
        self._clock = clock
        self._durations = durations
