# SPDX-License-Identifier: Apache-2.0
"""Storage of the state of a simulated cloud: in memory, or in a file."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import yaml

from blazar.clouds.ports.volumes import BACKEND_NAME, POOL_NAME
from blazar.clouds.simulated.state import FlavorState, HostState, NetworkState, State, SubnetState
from blazar.clouds.simulated.volume_state import PoolState, VolumeTypeState


class StateStorage(Protocol):
    """Has one state, which one thread of one process opens at a time."""

    def open(self, *, to_change: bool) -> AbstractContextManager[State]:
        """Open the state; changes are stored only if it was opened for them and no exception leaves the block."""


class MemoryStorage:
    """Stores the state in the process."""

    def __init__(self, initial: State) -> None:
        self._state = initial
        self._lock = threading.RLock()

    @contextmanager
    def open(self, *, to_change: bool) -> Iterator[State]:
        """Open the state. A call of the cloud checks before it changes anything, so nothing has to be undone."""
        with self._lock:
            yield self._state


class FileStorage:
    """Stores the state in a JSON file that several processes may share.

    A lock file serialises them; a change replaces the whole file, so that a crash at any moment leaves either the old
    state or the new one.
    """

    def __init__(self, path: Path, initial: State) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock = threading.RLock()
        self._text, self._state = "", initial
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if not path.exists():
                self._write(initial)

    @contextmanager
    def open(self, *, to_change: bool) -> Iterator[State]:
        """Open the state that is in the file."""
        with self._locked():
            state = self._read()
            if not to_change:
                yield state
                return
            # A change that fails half-way leaves what was read unlike the file.
            self._text = ""
            yield state
            self._write(state)

    def _read(self) -> State:
        """Return the state of the file; what this process has read or written last is not made again."""
        text = self._path.read_text(encoding="utf-8")
        if text != self._text:
            self._text, self._state = text, State.from_json(json.loads(text))
        return self._state

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock, self._lock_path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, state: State) -> None:
        text = state.to_text()
        new = self._path.with_name(self._path.name + ".new")
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
        self._text, self._state = text, state


FREEPOOL = "freepool"


def describe_cpu(architecture: str, cells: int) -> str:
    """Return what a host says of its processors, which are in a number of NUMA cells."""
    return json.dumps({"arch": architecture, "model": "simulated", "topology": {"cells": cells}})


def _host(number: int, entry: Mapping[str, Any]) -> HostState:
    return HostState(
        str(number),
        entry["name"],
        entry["name"],
        entry["vcpus"],
        entry["memory_mb"],
        entry["local_gb"],
        inventories=entry.get("inventories", {}),
        nested=entry.get("nested", {}),
        nested_traits=entry.get("nested_traits", {}),
        traits=entry.get("traits", []),
        cpu_info=describe_cpu("x86_64", entry.get("cells", 1)),
    )


def of_yaml(text: str) -> State:
    """Return the cloud that a YAML text describes: ``zones``, and ``hosts`` with name, zone and sizes (MiB, GiB).

    A host may have ``traits``, ``inventories``, ``nested`` and ``nested_traits`` as well, as in HostState, and a number
    of NUMA ``cells``. ``flavors`` are public unless they name ``projects``, with keys as in FlavorState; ``networks``
    have keys as in NetworkState, ``pci_aliases`` as in State. ``pools`` have a name as in Cinder, ``total_gb``, and the
    private volume ``type`` that leads only there.
    """
    data = yaml.safe_load(text)
    hosts = [(_host(number, entry), entry["zone"]) for number, entry in enumerate(data["hosts"], start=1)]
    networks = [
        NetworkState(
            **{**entry, "subnets": [SubnetState(**subnet) for subnet in entry["subnets"]]},
        )
        for entry in data.get("networks", ())
    ]
    state = _state(hosts, data["zones"], networks)
    flavors = (FlavorState(**{"public": "projects" not in entry, **entry}) for entry in data.get("flavors", []))
    state.pci_aliases = data.get("pci_aliases", {})
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
