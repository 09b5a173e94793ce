# SPDX-License-Identifier: Apache-2.0
"""Our resource types as the conformance suite sees them, on a simulated cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.segments import Segment, SegmentNetwork
from blazar.clouds.simulated import Durations, MemoryStorage, State
from blazar.clouds.simulated.state import BootImageState, NetworkState, SubnetState
from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.resources.changes import Registration
from blazar.resources.contract.kind import CloudResource, Kind
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Task
from blazar.resources.devices.kind import Devices
from blazar.resources.devices.type import DeviceReservation
from blazar.resources.floating_ips.kind import FloatingIps
from blazar.resources.floating_ips.registration import name_of, reservation_tag
from blazar.resources.floating_ips.type import VirtualFloatingIp
from blazar.resources.generic.kind import GenericResources
from blazar.resources.generic.type import Generic
from blazar.resources.hosts.kind import Hosts
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.registration import HostRegistration
from blazar.resources.hosts.type import PhysicalHost
from blazar.resources.instances.flavor import FlavorInstance
from blazar.resources.instances.virtual import VirtualInstance
from blazar.resources.networks.kind import NetworkSegments
from blazar.resources.networks.registration import name_of as segment_name
from blazar.resources.networks.type import NetworkReservation
from blazar.resources.servers.type import VirtualServer
from blazar.resources.volumes.kind import VolumePools
from blazar.resources.volumes.type import VirtualVolume
from blazarconformance import Harness, Invalid, Surroundings
from tests.people import PeopledCloud
from tests.world import of_hosts

MADE_UP = ("id", "created_at", "active_at", "gone_at", "server_group_id", "affinity_id")


class Simulated:
    """A simulated cloud of four hosts and an external network, with one type of ours."""

    def __init__(
        self, around: Surroundings, make: Callable[[Cloud], ResourceType], kind: Callable[[Cloud], Kind], state: State
    ) -> None:
        self.durations = Durations()
        self.cloud = PeopledCloud(
            MemoryStorage(state), clock=around.clock, faults=around.faults, durations=self.durations
        )
        self.cloud.operators.offer_flavor(Flavor("small", "c1.small", 8, 4096, 20, public=True))
        self.cloud.operators.offer_flavor(
            Flavor("traits", "c1.traits", 8, 4096, 20, extra_specs={"hw:numa_nodes": "1"}, public=True)
        )
        self._make = make
        self.type = self.another_type()
        self.kind = kind(self.cloud.cloud)

    def another_type(self) -> ResourceType:
        return self._make(self.cloud.cloud)

    def snapshot(self) -> dict[str, object]:
        with self.cloud.inspect() as state:
            state.remove_gone(self.cloud.compute._clock.now())
            whole = json.loads(state.to_text())
        groups = {group["id"]: group["name"] for group in whole["groups"].values()}
        # Providers without capacity stay on purpose when a host leaves, and images are for users to keep.
        del whole["providers"], whole["images"], whole["last_aggregate"]
        whole["inventories"] = {name: totals for name, totals in whole["inventories"].items() if totals}
        networks = {each["id"]: each["name"] for each in whole["networks"].values()}
        for port in whole["ports"].values():
            port.update(network_id=networks.get(port["network_id"]), device_id="")
        for part in ("aggregates", "servers", "groups", "floating_ips", "networks", "ports", "routers"):
            plain = [_plain(each, groups) for each in whole[part].values()]
            whole[part] = sorted(plain, key=repr)
        whole["flavors"] = {key: _plain(each, groups) for key, each in whole["flavors"].items()}
        whole["classes"] = sorted(whole["classes"])
        return whole


class OnHosts(Simulated):
    """A type on hosts."""

    def slow(self, duration: timedelta) -> None:
        self.durations.deletion = duration

    def fail(self, name: str) -> None:
        self.cloud.operators.host_down(name)

    def recover(self, name: str) -> None:
        self.cloud.operators.host_up(name)

    def vanish(self, name: str) -> None:
        self.cloud.operators.host_vanishes(name)


class WholeHosts(OnHosts):
    """Hosts that a reservation has alone."""

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            return [h for a in state.aggregates.values() if a.zone == f"blazar_{reservation_id}" for h in a.hosts]

    def use(self, task: Task) -> None:
        for resource in task.resources:
            self.cloud.users.boot_server(
                "work",
                project_id=task.lease.project_id,
                user_id="u",
                host=resource.name,
                hint=task.reservation.id,
            )

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            for key in [key for key, a in state.aggregates.items() if a.name == reservation_id]:
                for host in state.aggregates.pop(key).hosts:
                    _at_home(state, host)


class SharedHosts(OnHosts):
    """Hosts that several reservations share."""

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            flavor = state.flavors.get(reservation_id)
            if flavor is None or not flavor.projects:
                return ()
            classes = [key.removeprefix("resources:") for key in flavor.extra_specs if key.startswith("resources:CUS")]
            inside = {
                h for a in state.aggregates.values() if a.metadata.get("reservation") == reservation_id for h in a.hosts
            }
            return [h for h in inside if any(state.inventories.get(h, {}).get(name) for name in classes)]

    def use(self, task: Task) -> None:
        for _ in range(sum(task.counts.values())):
            self.cloud.users.boot_reserved(task.reservation.id, project_id=task.lease.project_id)

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            state.flavors.pop(reservation_id, None)
            for key in [key for key, group in state.groups.items() if reservation_id in group.name]:
                del state.groups[key]
            for key in [k for k, a in state.aggregates.items() if a.metadata.get("reservation") == reservation_id]:
                del state.aggregates[key]


class Booted(OnHosts):
    """Hosts that several reservations share, with servers that the service boots."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around, lambda cloud: VirtualServer(cloud, SETTINGS), _hosts, _cloud())
        with self.cloud.change_state() as state:
            state.boot.images["other"] = BootImageState("other")

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            now = self.cloud.compute._clock.now()
            mine = [
                server for server in state.servers.values() if server.flavor_name == f"reservation:{reservation_id}"
            ]
            return [server.host for server in mine if server.host and server.status_at(now) == "ACTIVE"]

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            state.flavors.pop(reservation_id, None)
            for key in [k for k, a in state.aggregates.items() if a.metadata.get("reservation") == reservation_id]:
                del state.aggregates[key]


class Addresses(Simulated):
    """Addresses of an external network."""

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            return [
                name_of(f.network_id, f.address)
                for f in state.floating_ips.values()
                if reservation_tag(reservation_id) in f.tags and f.project_id
            ]

    def use(self, task: Task) -> None:
        for found in self.cloud.network.floating_ips(tag=reservation_tag(task.reservation.id)):
            self.cloud.users.attach(found.id, "port-of-a-user")

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            for key in [k for k, f in state.floating_ips.items() if reservation_tag(reservation_id) in f.tags]:
                del state.floating_ips[key]

    def fail(self, name: str) -> None:
        self._port = self.cloud.operators.take_address("public", name.split()[0])

    def recover(self, name: str) -> None:
        with self.cloud.change_state() as state:
            del state.ports[self._port]


class Networks(Simulated):
    """Segments of networks."""

    def usable(self, reservation_id: str) -> Collection[str]:
        return [segment_name(each) for found in self._networks(reservation_id) for each in found.segments]

    def use(self, task: Task) -> None:
        users = self.cloud.network_users
        for found in self._networks(task.reservation.id):
            users.port(found.id, "compute:nova")
            users.subnet(found.id)

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            for found in self._networks(reservation_id):
                del state.networks[found.id]
                for key in [key for key, port in state.ports.items() if port.network_id == found.id]:
                    del state.ports[key]

    def fail(self, name: str) -> None:
        number = int(name.split()[1])
        self._stranger = self.cloud.network_users.network(Segment("vlan", "physnet1", number), project_id="art").id

    def recover(self, name: str) -> None:
        with self.cloud.change_state() as state:
            del state.networks[self._stranger]

    def _networks(self, reservation_id: str) -> tuple[SegmentNetwork, ...]:
        return self.cloud.network_users.calls.segment_networks(tag=reservation_tag(reservation_id))


class Pools(Simulated):
    """Pools of volumes. What users delete is not made again, so that nobody can wreck it."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around, VirtualVolume, lambda cloud: VolumePools(cloud.volumes), State())
        for number in range(1, 4):
            pool = PoolState(f"node@disks#{number}", "disks", str(number), 30)
            self.cloud.volume_users.add_pool(pool, type_name=f"disks-{number}")
        with self.cloud.change_state() as state:
            state.boot.images["plain"] = BootImageState("plain")
            state.block.backups = True

    def snapshot(self) -> dict[str, object]:
        with self.cloud.inspect() as state:
            block = state.block
            block.remove_gone(self.cloud.compute._clock.now())
            return {
                "volumes": sorted(
                    (v.name, v.project_id, v.size_gb, v.pool or "", len(v.servers)) for v in block.volumes.values()
                ),
                "access": {each.name: sorted(each.projects) for each in block.types.values()},
                # Without access to a type its quota is good for nothing.
                "quotas": {
                    f"{project} {each.name}": [limits.get(f"{what}_{each.name}") for what in ("gigabytes", "volumes")]
                    for project, limits in block.quotas.items()
                    for each in block.types.values()
                    if project in each.projects
                },
            }

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            mine = [v for v in state.block.volumes.values() if v.metadata.get("blazar:reservation") == reservation_id]
            return [v.pool for v in mine if v.pool and v.project_id in state.block.types[v.type_id].projects]

    def use(self, task: Task) -> None:
        server = self.cloud.users.boot_server("work", project_id=task.lease.project_id, user_id="u", host=None)
        for volume in self._volumes(task.reservation.id):
            self.cloud.volume_users.attach(volume, server.id)

    def slow(self, duration: timedelta) -> None:
        self.durations.deletion = duration

    def fail(self, name: str) -> None:
        self._size(name, 1)

    def recover(self, name: str) -> None:
        self._size(name, 30)

    def _size(self, name: str, total: int) -> None:
        with self.cloud.change_state() as state:
            next(pool for pool in state.block.pools if pool.name == name).total_gb = total

    def _volumes(self, reservation_id: str) -> list[str]:
        with self.cloud.inspect() as state:
            return [
                v.id for v in state.block.volumes.values() if v.metadata.get("blazar:reservation") == reservation_id
            ]


class Hooked(Simulated):
    """Things with hooks."""

    def __init__(
        self, around: Surroundings, make_type: Callable[[Cloud], ResourceType], make_kind: Callable[[Cloud], Kind]
    ) -> None:
        super().__init__(around, make_type, make_kind, State())
        self._ids: dict[str, str] = {}
        self._find = self.kind.find
        self.kind.find = self._noted  # type: ignore[method-assign]

    def snapshot(self) -> dict[str, object]:
        with self.cloud.inspect() as state:
            return {thing.name: thing.users for thing in state.things.values() if thing.users}

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            return [thing.name for thing in state.things.values() if reservation_id in thing.users]

    def wreck(self, reservation_id: str) -> None:
        """Let the receivers forget everything."""
        with self.cloud.change_state() as state:
            for thing in state.things.values():
                thing.users.pop(reservation_id, None)
                thing.heard = []

    def fail(self, name: str) -> None:
        self.cloud.operators.break_thing(self._ids[name], "it burns")

    def recover(self, name: str) -> None:
        self.cloud.operators.break_thing(self._ids[name])

    def _noted(self, request: Registration) -> CloudResource:
        found = self._find(request)
        self._ids[found.name] = found.external_id
        return found


def _plain(each: dict[str, Any], groups: dict[str, str]) -> dict[str, Any]:
    """Return a part of the cloud without ids and times that it has made up, and sorted."""
    specs = {key: groups.get(value, value) for key, value in (each.get("extra_specs") or {}).items()}
    kept = {key: value for key, value in each.items() if key not in MADE_UP}
    for name in ("hosts", "projects", "tags"):
        if name in kept:
            kept[name] = sorted(kept[name])
    if "metadata" in kept:
        kept["metadata"] = {key: groups.get(value, value) for key, value in kept["metadata"].items()}
    return {**kept, "extra_specs": specs}


def _at_home(state: State, host: str) -> None:
    for aggregate in state.aggregates.values():
        if aggregate.name in ("freepool", "az-1") and host not in aggregate.hosts:
            aggregate.hosts.append(host)


def _cloud() -> State:
    state = of_hosts(*[{} for _ in range(4)])
    subnet = SubnetState("public-subnet", "203.0.113.0/24", "203.0.113.1", [["203.0.113.128", "203.0.113.254"]])
    state.networks["public"] = NetworkState("public", "public", subnets=[subnet])
    return state


def _hosts(cloud: Cloud) -> Kind:
    return Hosts(HostRegistration(cloud, HostSettings().aggregates))


SETTINGS = HostSettings()
NAMES = tuple({"name": f"node-{number}"} for number in range(1, 5))
NO_HOSTS = ({"name": "no-such-host"}, {"id": "77"})
FLAT = '[">=", "$vcpus", "1"]'

HOSTS = Harness(
    name="physical:host",
    build=lambda around: WholeHosts(around, lambda cloud: PhysicalHost(cloud, SETTINGS), _hosts, _cloud()),
    registrations=NAMES,
    strangers=NO_HOSTS,
    request={"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": "", "before_end": "default"},
    others=(
        {"min": 1, "max": 2, "hypervisor_properties": FLAT, "resource_properties": "", "before_end": "snapshot"},
        {"min": "2", "max": "3", "hypervisor_properties": "", "resource_properties": FLAT, "before_end": "none"},
    ),
    fits=4,
    needed=("min", "max", "hypervisor_properties", "resource_properties"),
    numbers=("min", "max"),
    requirement="resource_properties",
    known=FLAT,
    invalid=(
        Invalid({"min": 2, "max": 1}, "max"),
        Invalid({"before_end": "dance"}, "before_end"),
        Invalid({"min": 0}, "min"),
    ),
    larger={"min": 2, "max": 2},
    fixed=(),
    per_lease={"host": 1},
)

INSTANCES = Harness(
    name="virtual:instance",
    build=lambda around: SharedHosts(around, lambda cloud: VirtualInstance(cloud, SETTINGS), _hosts, _cloud()),
    registrations=NAMES,
    strangers=NO_HOSTS,
    request={
        "amount": 1,
        "vcpus": 8,
        "memory_mb": 4096,
        "disk_gb": 20,
        "affinity": None,
        "resource_properties": "",
        "before_end": "default",
    },
    others=(
        {
            "amount": "2",
            "vcpus": 1,
            "memory_mb": 512,
            "disk_gb": 0,
            "ephemeral_gb": 5,
            "extra_specs": {"hw:cpu_cores": "1"},
            "affinity": True,
            "resource_properties": FLAT,
            "before_end": "snapshot",
        },
        {
            "amount": 1,
            "vcpus": 2,
            "memory_mb": 512,
            "disk_gb": 1,
            "affinity": "false",
            "resource_properties": "",
            "before_end": "none",
        },
    ),
    fits=8,
    needed=("amount", "vcpus", "memory_mb", "disk_gb", "affinity", "resource_properties"),
    numbers=("amount", "vcpus", "memory_mb"),
    requirement="resource_properties",
    known=FLAT,
    invalid=(
        Invalid({"disk_gb": -1}, "disk_gb"),
        Invalid({"ephemeral_gb": -1}, "ephemeral_gb"),
        Invalid({"extra_specs": {"trait:CUSTOM_A": "required"}}, "extra_specs"),
        Invalid({"affinity": "perhaps"}, "affinity"),
        Invalid({"before_end": "migration"}, "before_end"),
    ),
    larger={"amount": 3},
    shrinks=True,
    fixed=({"vcpus": 1}, {"ephemeral_gb": 1}, {"extra_specs": {"hw:cpu_cores": "1"}}, {"affinity": True}),
    per_lease={"instance": 1, "vcpu": 8},
)

FLAVORS = Harness(
    name="flavor:instance",
    build=lambda around: SharedHosts(around, lambda cloud: FlavorInstance(cloud, SETTINGS), _hosts, _cloud()),
    registrations=NAMES,
    strangers=NO_HOSTS,
    request={"flavor_id": "small", "amount": 1, "affinity": None, "before_end": "default"},
    others=(
        {"flavor_id": "traits", "amount": "2", "affinity": True, "before_end": "snapshot"},
        {"flavor_id": "small", "amount": 1, "affinity": "none", "before_end": "none"},
    ),
    fits=8,
    derived=("vcpus", "memory_mb", "disk_gb", "resource_properties"),
    needed=("flavor_id", "amount", "affinity"),
    numbers=("amount",),
    invalid=(
        Invalid({"flavor_id": "no-such-flavor"}, "flavor_id"),
        Invalid({"flavor_id": "../servers"}, "flavor_id"),
        Invalid({"affinity": "perhaps"}, "affinity"),
        Invalid({"before_end": "migration"}, "before_end"),
    ),
    larger={"amount": 3},
    shrinks=True,
    fixed=({"flavor_id": "traits"}, {"affinity": True}),
    per_lease={"instance": 1, "vcpu": 8},
)

ADDRESSES = Harness(
    name="virtual:floatingip",
    build=lambda around: Addresses(
        around,
        VirtualFloatingIp,
        lambda cloud: FloatingIps(cloud.network),
        _cloud(),
    ),
    registrations=tuple(
        {"floating_network_id": "public", "floating_ip_address": f"203.0.113.{number}"} for number in range(10, 14)
    ),
    strangers=(
        {"floating_network_id": "no-such-network", "floating_ip_address": "203.0.113.10"},
        {"floating_network_id": "public", "floating_ip_address": "198.51.100.1"},
        {"floating_network_id": "public", "floating_ip_address": "203.0.113.130"},
    ),
    request={"network_id": "public", "amount": 1, "required_floatingips": [], "before_end": "default"},
    others=(
        {"network_id": "public", "amount": "2", "required_floatingips": ["203.0.113.11"], "before_end": "none"},
        {"network_id": "public", "amount": 1},
    ),
    fits=4,
    needed=("network_id", "amount"),
    numbers=("amount",),
    invalid=(
        Invalid({"network_id": 5}, "network_id"),
        Invalid({"required_floatingips": ["no address"]}, "required_floatingips"),
        Invalid({"required_floatingips": ["203.0.113.10", "203.0.113.11"]}, "required_floatingips"),
        Invalid({"before_end": "snapshot"}, "before_end"),
    ),
    larger={"amount": 3},
    shrinks=True,
    fixed=({"network_id": "other"},),
    per_lease={"floatingip": 1},
)

_VLAN = {"network_type": "vlan", "physical_network": "physnet1"}
NETWORKS = Harness(
    name="network",
    build=lambda around: Networks(around, NetworkReservation, lambda cloud: NetworkSegments(cloud.segments), _cloud()),
    registrations=tuple({**_VLAN, "segment_id": number} for number in range(101, 105)),
    strangers=(
        {**_VLAN, "segment_id": 5000},
        {"network_type": "vlan", "segment_id": 101},
        {"network_type": "vxlan", "physical_network": "physnet1", "segment_id": 101},
    ),
    request={
        "network_name": "lab",
        "network_description": "",
        "network_properties": "",
        "resource_properties": "",
        "before_end": "default",
    },
    others=(
        {
            "network_name": "lab",
            "network_description": "for the course",
            "network_properties": '[">=", "$segment_id", "1"]',
            "resource_properties": '["==", "$physical_network", "physnet1"]',
            "before_end": "none",
        },
        {"network_name": "lab"},
    ),
    fits=4,
    needed=("network_name",),
    requirement="resource_properties",
    known='[">=", "$segment_id", "1"]',
    invalid=(
        Invalid({"network_name": ""}, "network_name"),
        Invalid({"network_description": []}, "network_description"),
        Invalid({"before_end": "snapshot"}, "before_end"),
    ),
    fixed=({"network_name": "other", "subnet": {"cidr": "10.9.0.0/24"}}, {"network_description": "other"}),
    per_lease={"network": 1},
)

BENCH = {"class": "bench", "hook_url": "https://lab.example/bench"}
EVERY_DEVICE = '["==", "$device_type", "container"]'
EVERY_BENCH = '[">=", "$capacity", "1"]'

THINGS = Harness(
    name="generic",
    build=lambda around: Hooked(
        around, lambda cloud: Generic(cloud.hooks), lambda cloud: GenericResources(cloud.hooks)
    ),
    registrations=tuple({**BENCH, "name": f"bench-{number}"} for number in range(1, 5)),
    strangers=(
        {**BENCH, "name": ""},
        {**BENCH, "name": "x", "hook_url": "ftp://x"},
        {**BENCH, "name": "x", "class": 5},
    ),
    request={"class": "bench", "min": 1, "max": 1, "resource_properties": "", "before_end": "default"},
    others=(
        {"class": "bench", "min": "1", "max": "2", "resource_properties": EVERY_BENCH, "before_end": "none"},
        {"class": "bench", "min": 1, "max": 1},
    ),
    fits=4,
    needed=("class",),
    numbers=("min", "max"),
    requirement="resource_properties",
    known=EVERY_BENCH,
    invalid=(
        Invalid({"min": 2, "max": 1}, "max"),
        Invalid({"amount": 1}, "amount"),
        Invalid({"class": "No Class"}, "class"),
        Invalid({"before_end": "snapshot"}, "before_end"),
    ),
    larger={"min": 2, "max": 2},
    fixed=({"class": "other"}, {"resource_properties": '[">", "$capacity", "9"]'}),
    per_lease={"generic": 1},
)

UNITS = replace(
    THINGS,
    name="generic units",
    registrations=tuple({**BENCH, "name": f"bench-{number}", "capacity": 3} for number in range(1, 4)),
    request={"class": "bench", "amount": 1, "resource_properties": "", "before_end": "default"},
    others=(
        {"class": "bench", "amount": "2", "resource_properties": EVERY_BENCH, "before_end": "none"},
        {"class": "bench", "amount": 3},
    ),
    fits=9,
    needed=("class", "amount"),
    numbers=("amount",),
    invalid=(Invalid({"min": 1}, "amount"), Invalid({"amount": "many"}, "amount")),
    larger={"amount": 3},
    shrinks=True,
)

DEVICES = Harness(
    name="device",
    build=lambda around: Hooked(
        around, lambda cloud: DeviceReservation(cloud.hooks), lambda cloud: Devices(cloud.hooks)
    ),
    registrations=tuple({"name": f"edge-{n}", "hook_url": "https://edge.example/hook"} for n in range(1, 5)),
    strangers=(
        {"name": "", "hook_url": "https://edge.example/hook"},
        {"name": "x"},
        {"name": "x", "device_driver": "zun"},
        {"name": "x", "device_driver": "none", "hook_url": "https://edge.example/hook"},
        {"name": "x", "hook_url": "ftp://x"},
    ),
    request={"min": 1, "max": 1, "resource_properties": "", "before_end": "default"},
    others=(
        {"min": "1", "max": "2", "resource_properties": EVERY_DEVICE, "before_end": "none"},
        {"min": 1, "max": 1, "resource_properties": "[]"},
    ),
    fits=4,
    needed=("min", "max"),
    numbers=("min", "max"),
    requirement="resource_properties",
    known=EVERY_DEVICE,
    invalid=(Invalid({"min": 2, "max": 1}, "max"), Invalid({"before_end": "snapshot"}, "before_end")),
    larger={"min": 2, "max": 2},
    fixed=({"resource_properties": '["==", "$name", "other"]'},),
    per_lease={"device": 1},
)

VOLUMES = Harness(
    name="virtual:volume",
    build=Pools,
    registrations=tuple(
        {"pool": f"node@disks#{number}", "volume_type": f"disks-{number}", "gigabytes": 30, "volumes": 3}
        for number in range(1, 4)
    ),
    strangers=(
        {"pool": "node@disks#9", "volume_type": "disks-1", "gigabytes": 1},
        {"pool": "node@disks#1", "volume_type": "disks-2", "gigabytes": 1},
        {"pool": "node@disks#1", "volume_type": "disks-1", "gigabytes": 31},
        {"pool": "node@disks#1", "volume_type": "none", "gigabytes": 1},
    ),
    request={
        "size": 10,
        "amount": 1,
        "mode": "volume",
        "volume_type": None,
        "name": None,
        "image": None,
        "resource_properties": "",
        "before_end": "default",
    },
    others=(
        {
            "size": "5",
            "amount": "2",
            "mode": "volume",
            "volume_type": "disks-2",
            "name": "data",
            "image": "plain",
            "resource_properties": '[">=", "$gigabytes", "1"]',
            "before_end": "none",
        },
        {"size": 10},
    ),
    fits=9,
    needed=("size",),
    numbers=("size", "amount"),
    requirement="resource_properties",
    known='[">=", "$gigabytes", "1"]',
    invalid=(
        Invalid({"mode": "loan"}, "mode"),
        Invalid({"image": "../x"}, "image"),
        Invalid({"amount": 1000}, "amount"),
        Invalid({"before_end": "migration"}, "before_end"),
        Invalid({"before_end": "transfer"}, "before_end"),
        Invalid({"before_end": "backup", "mode": "quota"}, "before_end"),
        Invalid({"image": "none"}, "image"),
    ),
    larger={"amount": 3},
    fixed=({"volume_type": "disks-2"}, {"name": "other"}, {"size": 5}, {"mode": "quota"}),
    used_at_once=True,
    per_lease={"volume": 1, "gigabyte": 10},
)

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINZkG171DjZbTnvAsKfM4N0lbLF16hJvVKq9EBzZjWvF me"

SERVERS = Harness(
    name="virtual:server",
    build=Booted,
    registrations=NAMES,
    strangers=NO_HOSTS,
    request={
        "amount": 1,
        "name": "web",
        "image": "cirros",
        "flavor": None,
        "vcpus": 8,
        "memory_mb": 4096,
        "disk_gb": 20,
        "affinity": None,
        "resource_properties": "",
        "networks": "auto",
        "key_name": None,
        "public_key": PUBLIC_KEY,
        "user_data": None,
        "metadata": {},
        "security_groups": [],
        "volumes": [],
        "floating_ip": None,
        "before_end": "default",
    },
    others=(
        {
            "amount": "2",
            "name": "web",
            "image": "cirros",
            "flavor": "small",
            "affinity": True,
            "resource_properties": FLAT,
            "networks": "none",
            "key_name": "mine",
            "public_key": PUBLIC_KEY,
            "user_data": "IyEvYmluL3No",
            "metadata": {"role": "web"},
            "security_groups": ["default"],
            "before_end": "snapshot",
        },
        {"image": "cirros", "flavor": "small"},
    ),
    fits=8,
    needed=("image", "vcpus", "memory_mb", "disk_gb"),
    numbers=("amount", "vcpus", "memory_mb", "disk_gb"),
    requirement="resource_properties",
    known=FLAT,
    invalid=(
        Invalid({"disk_gb": 0}, "disk_gb"),
        Invalid({"affinity": "perhaps"}, "affinity"),
        Invalid({"before_end": "migration"}, "before_end"),
        Invalid({"image": "no-such-image"}, "image"),
        Invalid({"flavor": "no-such-flavor"}, "flavor"),
        Invalid({"networks": [{"uuid": "no-such-network"}]}, "networks"),
        Invalid({"networks": "many"}, "networks"),
        Invalid({"public_key": "secret"}, "public_key"),
        Invalid({"user_data": "no base64"}, "user_data"),
        Invalid({"metadata": {"blazar:x": "y"}}, "metadata"),
        Invalid({"networks": [{"reservation": -1}]}, "networks"),
        Invalid({"volumes": [{}]}, "volumes"),
        Invalid({"floating_ip": {"reservation": 0, "uuid": "x"}}, "floating_ip"),
        Invalid({"security_groups": ["no-such-group"]}, "security_groups"),
    ),
    larger={"amount": 3},
    fixed=(
        {"vcpus": 1},
        {"affinity": True},
        {"image": "other"},
        {"user_data": "IyE=", "public_key": f"{PUBLIC_KEY}b"},
        {"name": "other", "memory_mb": 512, "disk_gb": 1},
        {"volumes": [{"reservation": "another"}], "floating_ip": {"reservation": "another"}},
    ),
    used_at_once=True,
    per_lease={"instance": 1, "vcpu": 8},
)

OURS = (HOSTS, INSTANCES, FLAVORS, ADDRESSES, NETWORKS, DEVICES, THINGS, UNITS, VOLUMES, SERVERS)
