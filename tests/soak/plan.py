# SPDX-License-Identifier: Apache-2.0
"""What the processes of a soak share, and how one of them begins."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import Durations, Faults, FileStorage, State, of_size
from blazar.context import check_change
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import CloudUnavailable
from tests.people import PeopledCloud

HOSTS = 12
ADDRESSES = range(10, 22)
SEGMENTS = range(101, 109)
DEVICES = range(3)
THINGS = range(6)
POOLS = range(1, 4)
POOL_GB = 60
OFFERED = tuple(
    Flavor(name, f"c1.{name}", vcpus, 2048, 10, extra_specs={"quota:cpu_shares": "100"}, public=True)
    for name, vcpus in (("small", 1), ("large", 4))
)
FAILING = 0.01
"""Share of the calls of the cloud that fail, half of them after they have taken effect."""

LATENCY = 0.012
"""Seconds of a call of the cloud, on average."""

SLOW = timedelta(milliseconds=300)
"""How long the cloud takes to delete a server, to make an image, to move a server, to make a volume or a stack."""

WRONG = timedelta(seconds=15)
"""By how much the clocks of some managers are wrong."""

PR_SET_PDEATHSIG = 1


class PunctualFile(FileStorage):
    """The file of a cloud in which a call takes effect when it is made, or never.

    A process that is stopped while it waits for the file has passed the check of its claim, and would change the cloud
    when it goes on. A real cloud has carried its call out by then.
    """

    @contextmanager
    def open(self, *, to_change: bool) -> Iterator[State]:
        """Open the state; if it is to be changed, after one more check of the claim."""
        with super().open(to_change=to_change) as state:
            if to_change:
                check_change()
            yield state


@dataclass(frozen=True, slots=True)
class Plan:
    """Where things are. While the file ``busy`` exists calls of the cloud fail."""

    folder: Path
    database_url: str
    topic: str
    seed: int

    @property
    def config_file(self) -> Path:
        """blazar.conf of all processes."""
        return self.folder / "blazar.conf"

    @property
    def cloud_file(self) -> Path:
        """The cloud."""
        return self.folder / "cloud.json"

    @property
    def busy(self) -> Path:
        """Exists while there is trouble."""
        return self.folder / "busy"

    def cloud(self, on_call: Callable[[str, str], None] | None = None, *, latency: float = 0) -> PeopledCloud:
        """Return a way to the cloud, with trouble of its own."""
        return PeopledCloud(
            PunctualFile(self.cloud_file, of_size(HOSTS)),
            clock=SystemClock(),
            faults=Faults(latency=timedelta(seconds=latency), on_call=on_call, sleep=uneven),
            durations=Durations(deletion=SLOW, snapshot=SLOW, migration=SLOW, volume=SLOW, stack=SLOW, boot=SLOW),
        )

    def troubled_cloud(self, number: int) -> PeopledCloud:
        """Return the cloud as managers see it: slow, and now and then a call fails."""
        dice = random.Random(f"{self.seed}:{number}")

        def fail(name: str, phase: str) -> None:
            if dice.random() < FAILING / 2 and self.busy.exists():
                raise CloudUnavailable(f"trouble {phase} {name}")

        return self.cloud(fail, latency=LATENCY)


def uneven(seconds: float) -> None:
    """Sleep for about so long."""
    time.sleep(random.uniform(0.3, 1.7) * seconds)


def begin_process(log: Path) -> None:
    """Begin a process of the soak: it ends with its parent, whatever happens to that, and writes to a file."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
