"""The clouds that keep the contract. A real one joins them when there is an adapter for it."""

from __future__ import annotations

import pytest

from blazar.clouds.simulated import FileKeeper, MemoryKeeper, SimulatedCloud, of_size
from tests.world import ManualClock


@pytest.fixture(params=["memory", "file"])
def simulated(request, tmp_path) -> SimulatedCloud:
    keeper = (
        MemoryKeeper(of_size(12)) if request.param == "memory" else FileKeeper(tmp_path / "cloud.json", of_size(12))
    )
    return SimulatedCloud(keeper, clock=ManualClock())


@pytest.fixture
def cloud(simulated):
    """The ports alone: all that a contract test may use."""
    return simulated.cloud


@pytest.fixture
def boot(simulated):
    """Let a server run on a host, by whatever means the cloud has."""
    return lambda host, **more: simulated.boot_server("work", project_id="p", user_id="u", host=host, **more)
