# SPDX-License-Identifier: Apache-2.0
"""What is measured, type by type: another type is another entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.amounts import Amounts
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, HOST, NETWORK, VOLUME, ResourceKind
from blazar.resources.contract.type import ResourceType
from blazar.resources.devices.type import DeviceReservation
from blazar.resources.floating_ips.type import VirtualFloatingIp
from blazar.resources.generic.type import Generic
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.type import PhysicalHost
from blazar.resources.instances.flavor import FlavorInstance
from blazar.resources.instances.virtual import VirtualInstance
from blazar.resources.networks.type import NetworkReservation
from blazar.resources.servers.type import VirtualServer
from blazar.resources.stacks.type import VirtualStack
from blazar.resources.volumes.type import VirtualVolume

Room = Mapping[str, object]

FLAVORS = tuple(
    Flavor(f"bench{number}", f"c1.bench{number}", vcpus=2, memory_mb=2048, disk_gb=10, public=True)
    for number in range(12)
)
"""What every ground offers for servers of a flavor."""

POOL_GB, LAST_POOL_GB = 80, 50
"""GiB of a pool that the calendar is full of, and of one of the last tenth, which stay free."""

SERVER = Amounts.of({"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 10})


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource type as it is measured, on a ground of so many ``resources``.

    ``filled`` are the parameters of the leases that the calendar is full of, ``count`` of ``per_instance`` each (None:
    whole) of one resource; ``creates`` what is asked for, by the name it has in the table; ``starts`` what is due in a
    burst.
    """

    resource_type: str
    filled: Room
    starts: Room
    creates: Mapping[str, Room]
    make: Callable[[Cloud, HostSettings], ResourceType]
    resources: ResourceKind = HOST
    count: int = 1
    per_instance: Amounts | None = None
    least_free: Mapping[str, int] = field(default_factory=dict)
    """How many resources without a lease a request needs; it is left out where there are fewer."""
    searches: Callable[[int, int], Room] = lambda hosts, free: {}
    """What a search for free time asks for, on so many resources of which so many have no lease: it fits at the end."""
    lists: Mapping[str, str] = field(default_factory=lambda: {"allocations": "/v1/os-hosts/allocations"})
    """What operators list of the resources, by the name it has in the table."""


def _hosts(count: int) -> Room:
    return {"min": count, "max": count, "hypervisor_properties": "", "resource_properties": ""}


def _servers(amount: int, affinity: bool | None) -> Room:
    return {
        "amount": amount,
        "vcpus": 2,
        "memory_mb": 2048,
        "disk_gb": 10,
        "affinity": affinity,
        "resource_properties": "",
    }


def _of_flavor(amount: int) -> Room:
    return {"amount": amount, "flavor_id": FLAVORS[0].id, "affinity": None}


def _addresses(amount: int) -> Room:
    return {"amount": amount, "network_id": "public"}


def _devices(count: int) -> Room:
    return {"min": count, "max": count, "resource_properties": ""}


def _things(count: int) -> Room:
    return {"class": "bench", "min": count, "max": count}


def _volumes(amount: int, size: int, mode: str = "volume") -> Room:
    return {"amount": amount, "size": size, "mode": mode}


def _booted(amount: int) -> Room:
    return {**_servers(amount, None), "image": "cirros"}


def _stack(servers: int, flavors: int = 1) -> Room:
    """Ask for a stack of servers in turn of so many flavors: it is made of a reservation for each of these."""
    resources = {
        f"server{number}": {
            "type": "OS::Nova::Server",
            "properties": {"flavor": FLAVORS[number % flavors].name, "image": "cirros"},
        }
        for number in range(servers)
    }
    return {"template": {"heat_template_version": "2018-08-31", "resources": resources}}


KINDS: Mapping[str, Kind] = {
    kind.resource_type: kind
    for kind in (
        Kind(
            "physical:host",
            filled=_hosts(1),
            starts=_hosts(1),
            creates={"create 1 host": _hosts(1), "create 10 hosts": _hosts(10)},
            least_free={"create 10 hosts": 10},
            searches=lambda hosts, free: _hosts(free + 1),
            make=PhysicalHost,
        ),
        Kind(
            "virtual:instance",
            filled=_servers(4, None),
            starts=_servers(4, None),
            creates={
                "create 4 servers": _servers(4, None),
                "create 4 together": _servers(4, True),
                "create 4 apart": _servers(4, False),
            },
            least_free={"create 4 apart": 4},
            searches=lambda hosts, free: _servers(17 * hosts, None),
            make=VirtualInstance,
            count=4,
            per_instance=SERVER,
        ),
        Kind(
            "flavor:instance",
            filled=_of_flavor(4),
            starts=_of_flavor(4),
            creates={"create 4 servers": _of_flavor(4)},
            searches=lambda hosts, free: _of_flavor(17 * hosts),
            make=FlavorInstance,
            count=4,
            per_instance=SERVER,
        ),
        Kind(
            "virtual:floatingip",
            filled=_addresses(1),
            starts=_addresses(1),
            creates={"create 1 address": _addresses(1), "create 10 addresses": _addresses(10)},
            least_free={"create 10 addresses": 10},
            searches=lambda hosts, free: _addresses(free + 1),
            make=lambda cloud, settings: VirtualFloatingIp(cloud, before_end=settings.before_end),
            resources=FLOATING_IP,
            lists={"addresses": "/v1/floatingips"},
        ),
        Kind(
            "network",
            filled={"network_name": "bench"},
            starts={"network_name": "bench"},
            creates={"create 1 network": {"network_name": "bench"}},
            # One is all that a reservation can ask for: it fits at once.
            searches=lambda hosts, free: {"network_name": "bench"},
            make=lambda cloud, settings: NetworkReservation(cloud, before_end=settings.before_end),
            resources=NETWORK,
            lists={"segments": "/v1/networks"},
        ),
        Kind(
            "device",
            filled=_devices(1),
            starts=_devices(1),
            creates={"create 1 device": _devices(1), "create 10 devices": _devices(10)},
            least_free={"create 10 devices": 10},
            searches=lambda hosts, free: _devices(free + 1),
            make=lambda cloud, settings: DeviceReservation(cloud.hooks),
            resources=DEVICE,
            lists={"devices": "/v1/devices", "allocations": "/v1/devices/allocations"},
        ),
        Kind(
            "generic",
            filled=_things(1),
            starts=_things(1),
            creates={"create 1 thing": _things(1), "create 10 things": _things(10)},
            least_free={"create 10 things": 10},
            searches=lambda hosts, free: _things(free + 1),
            make=lambda cloud, settings: Generic(cloud.hooks),
            resources=GENERIC,
            lists={"things": "/v1/resources/generic", "allocations": "/v1/resources/generic/allocations"},
        ),
        Kind(
            "virtual:volume",
            filled=_volumes(5, 10),
            starts=_volumes(1, 10),
            creates={
                "create 1 volume": _volumes(1, 40),
                "create 10 volumes": _volumes(10, 5),
                "create a quota": _volumes(5, 10, "quota"),
            },
            # Only the pools that the calendar is full of have so much.
            searches=lambda hosts, free: _volumes(1, LAST_POOL_GB + 10),
            make=lambda cloud, settings: VirtualVolume(cloud, before_end=settings.before_end),
            resources=VOLUME,
            count=5,
            per_instance=Amounts.of({"GIGABYTES": 10, "VOLUMES": 1}),
            lists={"pools": "/v1/resources/volume", "allocations": "/v1/resources/volume/allocations"},
        ),
        Kind(
            "virtual:server",
            filled=_booted(4),
            starts=_booted(1),
            creates={"create 1 server": _booted(1), "create 4 servers": _booted(4)},
            searches=lambda hosts, free: _booted(min(17 * hosts, 100)),
            make=VirtualServer,
            count=4,
            per_instance=SERVER,
        ),
        Kind(
            "virtual:stack",
            filled=_stack(4),
            starts=_stack(1),
            creates={
                "create 4 servers": _stack(4),
                "create 40 servers": _stack(40),
                "create 12 children": _stack(12, flavors=12),
            },
            least_free={"create 40 servers": 10, "create 12 children": 10},
            searches=lambda hosts, free: _stack(100),
            make=lambda cloud, settings: VirtualStack(cloud, before_end=settings.before_end),
            count=4,
            per_instance=SERVER,
        ),
    )
}
