# SPDX-License-Identifier: Apache-2.0
"""What the cloud of the demo has to reserve besides hosts: addresses, volumes, networks, instruments, boards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blazar.cmd.demo.hosts import NETWORK, POOLS
from blazar.model.requests import Registration
from blazar.model.resource import DEVICE, FLOATING_IP, GENERIC, VOLUME, ResourceKind
from blazar.model.resource import NETWORK as SEGMENT

ADDRESSES = range(10, 26)
"""The last numbers of the addresses of 198.51.100.0/24 that can be reserved."""

VLANS, VXLANS = range(101, 107), range(5001, 5005)
MICROSCOPES: Mapping[str, str] = {"microscope-1": "40", "microscope-2": "60", "microscope-3": "100"}
"""The lens of each."""

BOARDS: Mapping[str, int] = {"jetson-orin": 4, "raspberry-pi-5": 6}
SEATS = 20


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
