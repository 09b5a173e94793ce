# SPDX-License-Identifier: Apache-2.0
"""A simulated cloud: for standalone mode, for demos, and for fast tests.

It has the rules of Nova, Placement and Neutron that reservations depend on (zones of aggregates, conflicts, slow
deletions, addresses in use). The contract tests check it and a real cloud by the same assertions.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from blazar.clouds.ports import Cloud
from blazar.clouds.simulated.cloud import SimulatedCloud
from blazar.clouds.simulated.service import Durations, Faults
from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.storage import FileStorage, MemoryStorage, of_size, of_yaml
from blazar.model.base.clock import Clock
from blazar.model.base.errors import CloudUnavailable

__all__ = [
    "Durations",
    "Faults",
    "FileStorage",
    "MemoryStorage",
    "SimulatedCloud",
    "State",
    "default_inventory",
    "of_size",
    "of_yaml",
    "open_cloud",
]


def default_inventory(number: int = 1) -> State:
    """Return the initial state of a cloud in standalone mode; each has networks with other ids, and else the same."""
    text = resources.files(__package__).joinpath("inventory.yaml").read_text(encoding="utf-8")
    return of_yaml(text.replace("id: 5e1f7c1e-", f"id: {0x5E1F7C1D + number:08x}-"))


def open_cloud(path: Path, *, clock: Clock, number: int = 1, down: Path | None = None) -> Cloud:
    """Return the simulated cloud whose state is in a file, a new one if the file does not exist.

    ``number`` is that of its region. While the file ``down`` exists, no service of the cloud answers.
    """
    simulated = SimulatedCloud(FileStorage(path, default_inventory(number)), clock=clock)
    if down is not None:
        simulated.faults.on_call = lambda name, _: _check_up(down, name)
    return simulated.cloud


def _check_up(down: Path, name: str) -> None:
    if down.exists():
        raise CloudUnavailable(f"{name}: the cloud is down while the file {down.name} exists")
