# SPDX-License-Identifier: Apache-2.0
"""The cloud of the demo: 60 hosts of six kinds, in three zones and nine racks; and what else can be reserved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from blazar.clouds.simulated import State, of_yaml
from blazar.clouds.simulated.storage import describe_cpu
from blazar.cmd.demo.energy import describe_power
from blazar.model.base.values import dataclass, field
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, VOLUME, ResourceKind
from blazar.model.resources.resource import NETWORK as SEGMENT

NETWORK = "7b0d2f4e-6a1c-4f3b-8e5d-9c2a4b6d8f01"

POOLS: list[dict[str, Any]] = [
    {"name": "storage-1@ssd#pool1", "type": "fast", "total_gb": 4000},
    {"name": "storage-1@disks#pool1", "type": "large", "total_gb": 40000},
    # Of which nobody needs anything: it sleeps, where pools are switched.
    {"name": "storage-2@archive#pool1", "type": "archive", "total_gb": 100000},
]
"""Pools of volumes, each with a private volume type that leads only there."""

_ZONES = ("az-1", "az-2", "az-3")

ADDRESSES = range(10, 26)
"""The last numbers of the addresses of 198.51.100.0/24 that can be reserved."""

VLANS, VXLANS = range(101, 107), range(5001, 5005)
MICROSCOPES: Mapping[str, str] = {"microscope-1": "40", "microscope-2": "60", "microscope-3": "100"}
"""The lens of each."""

BOARDS: Mapping[str, int] = {"jetson-orin": 4, "raspberry-pi-5": 6}
SEATS = 20


@dataclass(frozen=True, slots=True)
class HostFamily:
    """Hosts of one kind: how many, what they have, and the properties that their operators gave them."""

    name: str
    count: int
    vcpus: int
    memory_mb: int
    local_gb: int
    properties: Mapping[str, str]
    gpus: int = 0
    traits: tuple[str, ...] = ()
    cpu: str = "x86_64"


FAMILIES = (
    HostFamily("a100", 12, 64, 515_000, 3_500, {"gpu": "A100", "node_type": "gpu"}, 4, ("HW_CPU_X86_AVX512F",)),
    HostFamily("h100", 6, 96, 1_031_000, 7_000, {"gpu": "H100", "node_type": "gpu"}, 8, ("HW_CPU_X86_AVX512F",)),
    HostFamily("mem", 6, 128, 2_063_000, 3_500, {"node_type": "big-memory"}, traits=("HW_CPU_X86_AVX512F",)),
    HostFamily("cpu", 24, 64, 257_000, 1_800, {"node_type": "compute", "network": "25G"}, traits=("HW_CPU_X86_AVX2",)),
    HostFamily("io", 6, 48, 193_000, 30_000, {"node_type": "storage", "network": "100G"}),
    HostFamily("arm", 6, 80, 257_000, 900, {"node_type": "compute", "network": "25G"}, cpu="aarch64"),
)


@dataclass(frozen=True, slots=True)
class DemoHost:
    """A host: its name, kind and place."""

    name: str
    family: HostFamily
    zone: str
    rack: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def registration(self) -> Registration:
        """What its operator registers."""
        return Registration(
            {"name": self.name}, {**self.family.properties, "rack": self.rack, **describe_power(self.family.name)}
        )


def list_hosts() -> Iterator[DemoHost]:
    """Return all hosts; those of one kind are spread over zones and racks."""
    for family in FAMILIES:
        for number in range(family.count):
            zone = number % len(_ZONES)
            rack = f"r{1 + zone * 3 + number // len(_ZONES) % 3}"
            yield DemoHost(f"{family.name}-{number + 1:02d}", family, _ZONES[zone], rack)


def make_cloud() -> State:
    """Return the initial state of the simulated cloud."""
    entries: list[dict[str, Any]] = []
    for host in list_hosts():
        family = host.family
        entry: dict[str, Any] = {"name": host.name, "zone": host.zone, "vcpus": family.vcpus}
        entry |= {"memory_mb": family.memory_mb, "local_gb": family.local_gb, "traits": list(family.traits)}
        if family.gpus:
            entry["inventories"] = {"CUSTOM_GPU": {"total": family.gpus}}
        entries.append(entry)
    subnet = {"id": f"{NETWORK[:-2]}02", "cidr": "198.51.100.0/24", "gateway": "198.51.100.1"}
    subnet_pools: dict[str, Any] = {**subnet, "pools": [["198.51.100.128", "198.51.100.254"]]}
    flavors = [
        {"id": "small", "name": "m1.small", "vcpus": 2, "memory_mb": 4096, "disk_gb": 20},
        {"id": "large", "name": "m1.large", "vcpus": 8, "memory_mb": 32768, "disk_gb": 80},
    ]
    network = {"id": NETWORK, "name": "campus", "subnets": [subnet_pools]}
    given = {"zones": list(_ZONES), "hosts": entries, "flavors": flavors, "networks": [network], "pools": POOLS}
    state = of_yaml(yaml.safe_dump(given))
    for number, host in enumerate(list_hosts(), start=1):
        state.hosts[str(number)].cpu_info = describe_cpu(host.family.cpu, 1)
    return state


def registrations() -> Iterator[tuple[ResourceKind, Registration]]:
    """Return what the operators register besides hosts."""
    given: dict[str, Any]
    for number in ADDRESSES:
        given = {"floating_network_id": NETWORK, "floating_ip_address": f"198.51.100.{number}"}
        yield FLOATING_IP, Registration(given)
    for pool in POOLS:
        size = pool["total_gb"] // 2
        yield VOLUME, Registration({"pool": pool["name"], "volume_type": pool["type"], "gigabytes": size})
    for number in VLANS:
        given = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": number}
        yield SEGMENT, Registration(given, {"usage": "storage" if number % 2 else "experiments"})
    for number in VXLANS:
        yield SEGMENT, Registration({"network_type": "vxlan", "segment_id": number})
    for name, lens in MICROSCOPES.items():
        given = {"name": name, "class": "microscope", "hook_url": f"https://lab.example/{name}"}
        yield GENERIC, Registration(given, {"lens": lens})
    given = {
        "name": "solver",
        "class": "solver-licence",
        "capacity": SEATS,
        "hook_url": "https://licences.example/hook",
    }
    yield GENERIC, Registration(given)
    for machine, count in BOARDS.items():
        for number in range(1, count + 1):
            given = {"name": f"{machine}-{number}", "hook_url": "https://edge.example/hook"}
            yield DEVICE, Registration(given, {"machine_name": machine})
