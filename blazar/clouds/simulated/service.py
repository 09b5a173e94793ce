# SPDX-License-Identifier: Apache-2.0
"""The base of every simulated service: calls over one state, a clock, durations, and faults on demand.

Faults are slow answers, failed calls and lost answers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.storage import StateStorage
from blazar.context import check_change
from blazar.model.base.clock import Clock
from blazar.model.base.errors import NotFound, RoleMissing
from blazar.model.base.values import dataclass
from blazar.observe.cloud_calls import count_cloud_call
from blazar.observe.spans import Side, span

Key = TypeVar("Key", int, str)
Item = TypeVar("Item")
Hook = Callable[[str, str], None]
"""Called with a call's name and ``before`` or ``after``; the call fails with what it raises."""

OWN_PROJECT = "service"
"""The project of the service user."""


class Faults:
    """Faults of a simulated cloud. Safe to use from several threads."""

    def __init__(
        self,
        *,
        latency: timedelta = timedelta(0),
        sleep: Callable[[float], None] = time.sleep,
        on_call: Hook | None = None,
    ) -> None:
        self.latency = latency
        self.on_call = on_call
        self.calls: Counter[str] = Counter()
        self._sleep = sleep
        self._planned: dict[tuple[str, str], list[Exception]] = {}
        self._lock = threading.Lock()

    def fail_before(self, name: str, error: Exception, times: int = 1) -> None:
        """Let the next calls of this name fail without an effect."""
        self._plan(name, "before", error, times)

    def fail_after(self, name: str, error: Exception, times: int = 1) -> None:
        """Let the next calls of this name take effect, and then fail as if the answer was lost."""
        self._plan(name, "after", error, times)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._planned.clear()
        self.on_call = None
        self.latency = timedelta(0)

    @contextmanager
    def apply_around(self, name: str) -> Iterator[None]:
        """Apply the faults that are planned for a call, before and after it."""
        with self._lock:
            self.calls[name] += 1
        if self.latency:
            self._sleep(self.latency.total_seconds())
        self._apply(name, "before")
        yield
        self._apply(name, "after")

    def _plan(self, name: str, phase: str, error: Exception, times: int) -> None:
        with self._lock:
            self._planned.setdefault((name, phase), []).extend([error] * times)

    def _apply(self, name: str, phase: str) -> None:
        with self._lock:
            planned = self._planned.get((name, phase))
            error = planned.pop(0) if planned else None
        if error is not None:
            raise error
        if self.on_call is not None:
            self.on_call(name, phase)


@dataclass(slots=True)
class Durations:
    """How long the cloud takes to complete what a call begins; tests change it.

    ``settling``: from the arrival of a server that moves cold until the move can be confirmed. ``hook``: until a
    thing with a hook is handed over, or back. ``volume``: until a volume is there. ``stack``: until a stack is made,
    or deleted. ``boot``: until a server that the service boots is ACTIVE. ``shutdown`` and ``wake``: until a machine
    that is switched off has no power, and until nova-compute is up on one that is switched on.
    """

    deletion: timedelta = timedelta(0)
    snapshot: timedelta = timedelta(0)
    migration: timedelta = timedelta(0)
    settling: timedelta = timedelta(0)
    hook: timedelta = timedelta(0)
    volume: timedelta = timedelta(0)
    stack: timedelta = timedelta(0)
    boot: timedelta = timedelta(0)
    shutdown: timedelta = timedelta(0)
    wake: timedelta = timedelta(0)


class Calls:
    """The calls of the ports of one cloud: each may fail or be slow, and opens the state once."""

    def __init__(self, storage: StateStorage, faults: Faults) -> None:
        self._storage = storage
        self._faults = faults

    @contextmanager
    def reading(self, call: str) -> Iterator[State]:
        """Make a call that changes nothing; yield the state to read it."""
        # The faults are outside of the state's lock: a slow call does not delay the others.
        with (
            span(f"cloud simulated {call}", side=Side.CLIENT),
            count_cloud_call("simulated"),
            self._faults.apply_around(call),
            self._storage.open(to_change=False) as state,
        ):
            yield state

    @contextmanager
    def changing(self, call: str) -> Iterator[State]:
        """Make a call of ``CHANGES``, after the check of the caller's claim; yield the state to change it."""
        with (
            span(f"cloud simulated {call}", side=Side.CLIENT),
            count_cloud_call("simulated"),
            self._faults.apply_around(call),
        ):
            check_change()
            with self._storage.open(to_change=True) as state:
                yield state


class SimulatedService:
    """Base of the simulated services."""

    def __init__(self, calls: Calls, clock: Clock, durations: Durations) -> None:
        self._calls = calls
        self._clock = clock
        self._durations = durations


def look_up(known: Mapping[Key, Item], id_: Key, noun: str) -> Item:
    """Return what has this id; NotFound."""
    if id_ not in known:
        raise NotFound(f"there is no {noun} {id_}")
    return known[id_]


def check_role(state: State, project_id: str) -> None:
    """Raise RoleMissing if the service user has no role in a project."""
    if project_id in state.closed_projects:
        raise RoleMissing(f"the service user has no role in project {project_id}")
