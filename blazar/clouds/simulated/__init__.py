# SPDX-License-Identifier: Apache-2.0
"""A small cloud that is not there: for trying Blazar out, for demos, and for fast tests.

It keeps the rules of Nova, Placement and Neutron that reservations depend on (zones of aggregates, conflicts, slow
deletions, addresses that are taken);
the contract tests hold it to what a real cloud does.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from blazar.clouds.ports import Cloud
from blazar.clouds.simulated.cloud import SimulatedCloud
from blazar.clouds.simulated.faults import Faults
from blazar.clouds.simulated.initial_state import of_size, of_yaml
from blazar.clouds.simulated.service import Durations
from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.storage import FileStorage, MemoryStorage
from blazar.model.clock import Clock

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


def default_inventory() -> State:
    """Return the cloud that standalone mode begins with."""
    text = resources.files(__package__).joinpath("inventory.yaml").read_text(encoding="utf-8")
    return of_yaml(text)


def open_cloud(path: Path, *, clock: Clock) -> Cloud:
    """Return the simulated cloud that lives in a file, a new one if there is no file yet."""
    return SimulatedCloud(FileStorage(path, default_inventory()), clock=clock).cloud
