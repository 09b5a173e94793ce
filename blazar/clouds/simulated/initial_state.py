# SPDX-License-Identifier: Apache-2.0
"""Initial states of a simulated cloud."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from blazar.clouds.ports.volumes import BACKEND_NAME, POOL_NAME
from blazar.clouds.simulated.state import FlavorState, HostState, NetworkState, State, SubnetState
from blazar.clouds.simulated.volume_state import PoolState, VolumeTypeState

FREEPOOL = "freepool"


def of_yaml(text: str) -> State:
    """Return the cloud that a YAML text describes: ``zones``, and ``hosts`` with name, zone and sizes (MiB, GiB).

    A host may have ``traits``, ``inventories`` and ``nested`` as well, as in HostState. ``flavors`` are public unless
    they name ``projects``, with keys as in FlavorState; ``networks`` have keys as in NetworkState. ``pools`` have
    a name as in Cinder, ``total_gb``, and the private volume ``type`` that leads only there.
    """
    data = yaml.safe_load(text)
    hosts = [
        (
            HostState(
                str(number),
                entry["name"],
                entry["name"],
                entry["vcpus"],
                entry["memory_mb"],
                entry["local_gb"],
                inventories=entry.get("inventories", {}),
                nested=entry.get("nested", {}),
                traits=entry.get("traits", []),
            ),
            entry["zone"],
        )
        for number, entry in enumerate(data["hosts"], start=1)
    ]
    networks = [
        NetworkState(
            **{**entry, "subnets": [SubnetState(**subnet) for subnet in entry["subnets"]]},
        )
        for entry in data.get("networks", ())
    ]
    state = _state(hosts, data["zones"], networks)
    flavors = (FlavorState(**{"public": "projects" not in entry, **entry}) for entry in data.get("flavors", []))
    state.flavors.update((flavor.id, flavor) for flavor in flavors)
    for entry in data.get("pools", ()):
        backend_name, pool_name = entry["name"].partition("@")[2].split("#")
        pool = PoolState(entry["name"], backend_name, pool_name, entry["total_gb"])
        specs = {BACKEND_NAME: pool.backend_name, POOL_NAME: pool.pool_name}
        state.block.pools.append(pool)
        state.block.types[entry["type"]] = VolumeTypeState(entry["type"], entry["type"], public=False, specs=specs)
    return state


def of_size(count: int) -> State:
    """Return a cloud of ``count`` hosts of three sizes in two zones with one external network, for benchmarks."""
    sizes = ((16, 65536, 400), (32, 131072, 900), (64, 262144, 1800))
    hosts = []
    for number in range(1, count + 1):
        vcpus, memory_mb, local_gb = sizes[number % 3]
        name = f"node-{number}"
        hosts.append((HostState(str(number), name, name, vcpus, memory_mb, local_gb), f"az-{1 + number % 2}"))
    subnet = SubnetState("public-subnet", "203.0.113.0/24", "203.0.113.1", [["203.0.113.128", "203.0.113.254"]])
    return _state(hosts, ("az-1", "az-2"), [NetworkState("public", "public", subnets=[subnet])])


def _state(hosts: Iterable[tuple[HostState, str]], zones: Iterable[str], networks: Iterable[NetworkState]) -> State:
    state = State(networks={network.id: network for network in networks})
    state.add_aggregate(FREEPOOL, None)
    by_zone = {zone: state.add_aggregate(zone, zone) for zone in zones}
    for host, zone in hosts:
        state.hosts[host.id] = host
        by_zone[zone].hosts.append(host.service_name)
    return state
