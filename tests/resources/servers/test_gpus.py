# SPDX-License-Identifier: Apache-2.0
"""GPUs of servers that are booted at the start, asked for beside sizes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.leases.states import LeaseStatus
from blazar.resources.hosts.gpus import GpuModels
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.pci_aliases import NO_ALIASES
from tests.world import NOON, World, flavored, of_hosts, servers

HOUR = timedelta(hours=1)
TWO = {"gpus": 2, "gpu_model": "A16"}


@pytest.fixture
def world(a_world) -> World:
    state = of_hosts({"nested": {"node_pci_0": {"VGPU": {"total": 4, "max_unit": 4}}}})
    models = GpuModels.of({"A16": "class/VGPU"}, NO_ALIASES)
    world = a_world(state=state, hosts=1, host_settings=HostSettings(gpus=models))
    one = Flavor("one", "one", 1, 512, 1, public=True, extra_specs={"resources:VGPU": "1"})
    world.simulated.operators.offer_flavor(one)
    return world


def test_servers_have_them_from_the_start_on(world):
    lease = world.lease(servers(vcpus=2, **TWO), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(3, "one"), start=HOUR)
    world.lease(flavored(2, "one"), start=HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    with world.simulated.inspect() as state:
        assert [server.cards for server in state.servers.values()] == [{"node_pci_0": {"VGPU": 2}}]
    shown = world.now(lease).reservations[0].shown
    assert {key: shown[key] for key in TWO} == TWO


def test_before_the_start_they_change_and_the_flavor_follows(world):
    lease = world.lease(servers(vcpus=2), start=HOUR)
    assert "gpus" not in lease.reservations[0].shown
    id_ = lease.reservations[0].id
    world.resize(lease, **TWO)
    assert world.simulated.compute.flavor(id_).extra_specs["resources:VGPU"] == "2"
    world.resize(lease, gpus=0)
    assert "resources:VGPU" not in world.simulated.compute.flavor(id_).extra_specs
    assert "gpus" not in world.now(lease).reservations[0].shown


def test_a_flavor_has_its_own(world):
    asked = servers(vcpus=None, memory_mb=None, disk_gb=None, flavor="one", **TWO)
    with pytest.raises(InvalidInput, match="gpus is given, and a flavor, which has its own; leave one out") as refused:
        world.lease(asked)
    assert refused.value.pointer == "/reservations/0/gpus"
